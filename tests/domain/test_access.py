"""Access: how a token is recognised, when it no longer is, and what its scopes allow."""

from __future__ import annotations

import pytest

from emulator.domain.access import DEFAULT_SCOPES, SCOPES, UNRECOGNISED, Access, Token, check_scopes
from emulator.refusals import Refusal


def token(token_id: str = "tok_1", *scopes: str, expires_at: int | None = None) -> Token:
    return Token(token_id, "default", frozenset(scopes or DEFAULT_SCOPES), expires_at)


def refusal(access: Access, header: str | None, now: int = 0) -> Refusal:
    with pytest.raises(Refusal) as refused:
        access.authenticate(header, now)
    assert refused.value.code == "authentication_error"
    return refused.value


@pytest.mark.parametrize("header", ["Bearer gbr_pat_a", "bearer gbr_pat_a", "BEARER   gbr_pat_a  "])
def test_the_kind_is_read_in_any_case_and_space_around_the_token_passed_over(header: str) -> None:
    access, known = Access(), token()
    access.add("gbr_pat_a", known)
    assert access.authenticate(header, 0) is known


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Bearer ", "Bearer  \t", "Basic gbr_pat_a", "gbr_pat_a", "Token gbr_pat_a"]
)
def test_a_header_of_another_form_is_told_the_form(header: str) -> None:
    access = Access()
    access.add("gbr_pat_a", token())
    refused = refusal(access, header)
    assert refused.message == "The Authorization header is not of the form `Bearer gbr_pat_…`."
    assert refused.headers == {"WWW-Authenticate": 'Bearer realm="gobare", error="invalid_request"'}


def test_no_header_is_told_what_to_send() -> None:
    refused = refusal(Access(), None)
    assert "This request has no access token" in refused.message
    assert refused.headers == {"WWW-Authenticate": 'Bearer realm="gobare", error="invalid_token"'}


def test_unknown_revoked_and_expired_are_told_the_same() -> None:
    access = Access()
    access.add("gone", token("tok_1"))
    access.add("late", token("tok_2", expires_at=100))
    assert access.revoke("tok_1") is not None
    said = {refusal(access, f"Bearer {text}", 100).message for text in ("gone", "late", "never was", "\udce9")}
    assert said == {UNRECOGNISED}


def test_a_token_is_good_until_the_moment_it_expires() -> None:
    access, known = Access(), token(expires_at=100)
    access.add("a", known)
    assert access.authenticate("Bearer a", 99) is known
    refusal(access, "Bearer a", 100)


def test_a_token_that_does_not_exist_cannot_be_revoked() -> None:
    assert Access().revoke("tok_1") is None


def test_the_same_text_again_replaces_its_token() -> None:
    access, second = Access(), token("tok_2")
    access.add("a", token("tok_1"))
    access.add("a", second)
    assert access.authenticate("Bearer a", 0) is second
    assert access.revoke("tok_1") is None
    assert access.authenticate("Bearer a", 0) is second


def test_the_text_of_a_token_is_not_kept() -> None:
    access = Access()
    access.add("gbr_pat_canary", token())
    assert "canary" not in repr(vars(access))


def test_one_of_the_scopes_is_enough_and_a_refusal_names_them_all() -> None:
    reader = token("tok_1", "sessions:read")
    reader.require("sessions:read")
    reader.require("sessions:write", "sessions:read")
    with pytest.raises(Refusal) as refused:
        reader.require("sessions:write")
    assert refused.value.message == 'This token does not have the "sessions:write" scope.'
    with pytest.raises(Refusal) as refused:
        reader.require("sessions:write", "tools:respond")
    assert refused.value.message == 'This token does not have the "sessions:write" or "tools:respond" scope.'
    assert (refused.value.code, refused.value.status) == ("permission_denied", 403)


def test_scopes_are_checked_by_name() -> None:
    assert check_scopes(SCOPES) == set(SCOPES)
    assert check_scopes([]) == frozenset()
    with pytest.raises(ValueError, match="'sessions' is not a scope; the scopes are cli, sessions:read,"):
        check_scopes(["cli", "sessions", "nonsense"])


@pytest.mark.parametrize(
    ("scopes", "only"), [(("cli",), True), (("cli", "sessions:read"), False), (("sessions:read",), False)]
)
def test_a_token_for_the_command_line_has_that_scope_alone(scopes: tuple[str, ...], only: bool) -> None:
    assert token("tok_1", *scopes).cli_only is only


def test_the_usual_scopes_are_all_but_the_command_lines() -> None:
    assert set(SCOPES) - set(DEFAULT_SCOPES) == {"cli"}
