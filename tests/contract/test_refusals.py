"""Refusals: their shape, their codes and their order (contract §2)."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pytest

from emulator.refusals import CATALOGUE, Refusal
from tests.contract.calls import CALLS, NOWHERE, OF_A_SESSION, Known, Place, call, mint, place

if TYPE_CHECKING:
    from tests.support import Api

CODES = {
    "invalid_request": (400, False),
    "context_length_exceeded": (400, False),
    "authentication_error": (401, False),
    "permission_denied": (403, False),
    "not_found": (404, False),
    "method_not_allowed": (405, False),
    "conflict": (409, False),
    "queue_full": (429, True),
    "rate_limit_exceeded": (429, True),
    "project_limit_exceeded": (429, False),
    "internal_error": (500, True),
    "sandbox_error": (500, True),
    "workspace_recovery_failed": (500, False),
    "bridge_incompatible": (500, False),
    "provider_error": (502, True),
    "provider_unauthorized": (502, False),
    "sandbox_unavailable": (503, True),
    "directory_unavailable": (503, True),
}
ALLOW = {
    "/v1/health": "GET",
    "/v1/openapi.json": "GET",
    "/v1/sessions": "GET, POST",
    "/v1/sessions/{session_id}": "GET, PATCH, DELETE",
    "/v1/sessions/{session_id}/turns": "GET",
    "/v1/sessions/{session_id}/turns/{turn_id}": "GET",
    "/v1/sessions/{session_id}/items": "GET",
    "/v1/sessions/{session_id}/events": "GET, POST",
    "/v1/sessions/{session_id}/tools": "PUT, GET",
    "/v1/events": "GET",
}
CANCEL = {"type": "input.cancel"}


def rig(api: Api, monkeypatch: pytest.MonkeyPatch, error: Exception) -> str:
    """A session in which every cancel goes wrong with `error`."""

    def fail(*_: Any) -> None:
        raise error

    monkeypatch.setattr(api.emulator.socket.deployment.engine, "cancel", fail)
    return api.session()


@pytest.mark.rigged
@pytest.mark.behaviour("refusals.envelope", "refusals.codes")
@pytest.mark.parametrize(("code", "status", "waits"), [(code, *row) for code, row in CODES.items()])
def test_a_code_has_its_status_and_says_to_wait_where_that_helps(
    api: Api, monkeypatch: pytest.MonkeyPatch, code: str, status: int, waits: bool
) -> None:
    session_id = rig(api, monkeypatch, Refusal(code, "Because."))
    answer = api.send(session_id, CANCEL)
    assert answer.status == status
    assert answer.json == {"error": {"code": code, "message": "Because.", "request_id": answer.headers["x-request-id"]}}
    assert ("retry-after" in answer.headers) is waits
    assert answer.headers.get("retry-after", "1").isdigit()


@pytest.mark.behaviour("refusals.codes")
def test_there_are_no_other_codes(api: Api) -> None:
    assert set(CATALOGUE) == set(CODES)
    described = api.get("/v1/openapi.json").json["components"]["schemas"]["ErrorBody"]
    assert set(described["properties"]["code"]["enum"]) == set(CODES)


@pytest.mark.behaviour("refusals.conflict-retry")
def test_a_conflict_that_waiting_does_not_end_says_nothing_of_waiting(api: Api) -> None:
    answer = api.send(api.session(), {"type": "input.steer", "content": "left"})
    assert (answer.status, answer.code) == (409, "conflict")
    assert "retry-after" not in answer.headers


@pytest.mark.behaviour("refusals.challenge")
@pytest.mark.parametrize("token", [None, "gbr_pat_nobody"])
def test_a_401_carries_a_challenge(api: Api, token: str | None) -> None:
    answer = api.get("/v1/sessions", token=token)
    assert answer.status == 401
    assert answer.headers["www-authenticate"] == 'Bearer realm="gobare", error="invalid_token"'


@pytest.mark.behaviour("refusals.allow")
@pytest.mark.parametrize("path", ALLOW)
def test_a_verb_that_is_not_there_is_told_those_that_are(api: Api, path: str) -> None:
    taken = ALLOW[path].split(", ")
    others = {"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"}.difference(taken)
    for verb in sorted(others - {"POST"} if path.endswith("/tools") else others):
        answer = api.request(verb, NOWHERE.fill(path))
        assert (answer.status, answer.code) == (405, "method_not_allowed")
        assert sorted(answer.headers["allow"].split(", ")) == sorted(taken)


@pytest.mark.behaviour("refusals.allow")
def test_a_head_request_is_not_a_get(api: Api) -> None:
    answer = api.request("HEAD", "/v1/health")
    assert (answer.status, answer.headers["allow"]) == (405, "GET")


@pytest.mark.behaviour("refusals.post-tools")
@pytest.mark.parametrize("token", ["default", None])
def test_posting_tools_is_told_to_put_them(api: Api, token: str | None) -> None:
    answer = api.post(f"/v1/sessions/{api.session()}/tools", {"tools": []}, token=token)
    assert (answer.status, answer.code) == (400, "invalid_request")
    assert "replaced" in answer.message
    assert "PUT" in answer.message


@pytest.mark.behaviour("refusals.internal")
def test_a_fault_of_the_server_leaks_nothing(
    api: Api, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    secret = "SELECT token FROM tokens WHERE id='s3cret' -- /srv/app/db.py"
    session_id = rig(api, monkeypatch, RuntimeError(secret))
    with caplog.at_level(logging.DEBUG):
        answers = [api.send(session_id, CANCEL), api.send(session_id, CANCEL)]
    assert [answer.status for answer in answers] == [500, 500]
    assert answers[0].message == answers[1].message
    for word in ("SELECT", "s3cret", "/srv", ".py", "RuntimeError", "Traceback"):
        assert word not in answers[0].raw.decode()
    assert answers[0].headers["x-request-id"] in caplog.text
    assert "s3cret" not in caplog.text


@pytest.mark.behaviour("refusals.foreign-is-unknown")
@pytest.mark.parametrize("known", OF_A_SESSION, ids=str)
def test_an_id_of_somebody_else_never_existed(api: Api, known: Known) -> None:
    theirs, mine = place(api), mint(api, organization="other")
    foreign = call(api, known, theirs, token=mine)
    unknown = call(api, known, Place(NOWHERE.session_id, theirs.turn_id), token=mine)
    assert (foreign.status, foreign.code) == (unknown.status, unknown.code) == (404, "not_found")
    assert foreign.message.replace(theirs.session_id, "X") == unknown.message.replace(NOWHERE.session_id, "X")
    assert "X" in foreign.message.replace(theirs.session_id, "X")


# The order of the checks: each call below is wrong in every way from its own on.

READ_ONLY = ("sessions:read",)
BAD_KEY = {"idempotency-key": "k" * 256}
STEPS: list[tuple[str, str, str, dict[str, Any], tuple[str, ...] | None, int, str]] = [
    ("path", "POST", "/v1/none?x=1", {"raw": b"{", "headers": BAD_KEY}, None, 404, "endpoint"),
    ("verb", "POST", "/v1/sessions/none?x=1", {"raw": b"{", "headers": BAD_KEY}, None, 405, "GET"),
    ("token", "PATCH", "/v1/sessions/none?x=1", {"raw": b"{", "headers": BAD_KEY}, None, 401, "token"),
    ("scope", "PATCH", "/v1/sessions/none?x=1", {"raw": b"{", "headers": BAD_KEY}, READ_ONLY, 403, "sessions:write"),
    ("key", "PATCH", "/v1/sessions/none?x=1", {"raw": b"{", "headers": BAD_KEY}, (), 400, "Idempotency-Key"),
    ("query", "PATCH", "/v1/sessions/none?x=1", {"raw": b"{"}, (), 400, "`x`"),
    ("size", "PATCH", "/v1/sessions/none", {"raw": b"{" * 1_048_577}, (), 400, "1048576"),
    ("json", "PATCH", "/v1/sessions/none", {"raw": b"{"}, (), 400, "JSON"),
    ("shape", "PATCH", "/v1/sessions/none", {"body": {"titel": "a"}}, (), 400, "`titel`"),
    ("existence", "PATCH", "/v1/sessions/none", {"body": {"title": "a"}}, (), 404, "none"),
]


@pytest.mark.behaviour("refusals.order")
@pytest.mark.parametrize(
    ("verb", "path", "options", "scopes", "status", "says"), [step[1:] for step in STEPS], ids=[s[0] for s in STEPS]
)
def test_the_first_thing_wrong_in_order_is_refused(
    api: Api, verb: str, path: str, options: dict[str, Any], scopes: tuple[str, ...] | None, status: int, says: str
) -> None:
    token = None if scopes is None else mint(api, *scopes)
    answer = api.request(verb, path, token=token, **options)
    assert answer.status == status
    assert says in answer.message


@pytest.mark.behaviour("refusals.order")
@pytest.mark.gobare(rates="published")
def test_the_rate_is_checked_after_the_token_and_before_the_scope(api: Api) -> None:
    token = mint(api, "cli")
    codes = [api.post("/v1/sessions", {}, token=token).code for _ in range(11)]
    assert codes == ["permission_denied"] * 10 + ["rate_limit_exceeded"]
    assert api.post("/v1/sessions", {}, token=None).code == "authentication_error"


@pytest.mark.behaviour("refusals.order")
def test_existence_is_checked_before_the_state(api: Api) -> None:
    steer = {"type": "input.steer", "content": "left"}
    assert api.send("none", steer).code == "not_found"
    assert api.send(api.session(), steer).code == "conflict"


@pytest.mark.behaviour("refusals.order")
@pytest.mark.gobare(session_limit=1)
def test_a_full_organization_is_told_what_is_wrong_with_its_body_first(api: Api) -> None:
    api.session()
    assert api.post("/v1/sessions", {"titel": "a"}).code == "invalid_request"
    assert api.post("/v1/sessions", {"parent_session_id": "none"}).code == "not_found"
    assert api.post("/v1/sessions", {}).code == "project_limit_exceeded"


@pytest.mark.behaviour("refusals.order-events")
@pytest.mark.parametrize(
    ("scope", "raw", "status", "says"),
    [
        ("sessions:read", b"{", 403, '"sessions:write" or "tools:respond"'),
        ("tools:respond", b"{", 400, "JSON"),
        ("tools:respond", b'{"events":[{"type":"input.message","nothing":1}]}', 403, '"sessions:write"'),
        ("tools:respond", b'{"events":[{"type":"input.approval"}]}', 403, '"sessions:write"'),
        ("sessions:write", b'{"events":[{"type":"input.tool_result","nothing":1}]}', 403, '"tools:respond"'),
        ("tools:respond", b'{"events":[{"type":"input.tool_result","nothing":1}]}', 400, "`events[0].nothing`"),
        ("tools:respond", b'{"events":[{"type":7}]}', 400, "`events[0].type`"),
        ("tools:respond", b'{"events":7}', 400, "`events`"),
    ],
)
def test_the_exact_scope_is_asked_for_once_the_type_is_known(
    api: Api, scope: str, raw: bytes, status: int, says: str
) -> None:
    answer = api.post("/v1/sessions/none/events", raw=raw, token=mint(api, scope))
    assert answer.status == status
    assert says in answer.message


@pytest.mark.behaviour("refusals.unknown-parameter")
@pytest.mark.parametrize("known", CALLS, ids=str)
def test_an_unknown_parameter_is_refused_by_name(api: Api, known: Known) -> None:
    for query in ("?nothing=1", "?nothing", "?nothing=", "?%6eothing=1"):
        answer = call(api, known, query=query)
        assert (answer.status, answer.code) == (400, "invalid_request")
        assert "`nothing`" in answer.message


@pytest.mark.behaviour("refusals.long-values")
def test_a_long_value_is_not_repeated_whole(api: Api) -> None:
    answer = api.post("/v1/sessions", {"agent": {"model_credential_id": "x" * 100_000}})
    assert (answer.status, len(answer.message)) == (400, 4096)
    assert answer.message.startswith("This organization has no model connection with id xxx")
    assert answer.message.endswith("is one that GET /v1/model-credentials lists.")
    kept = api.get("/_emulator/requests").json["data"][-1]
    assert kept["message"] == answer.message
