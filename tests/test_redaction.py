"""Redaction: a secret that shows itself in no way at all, and texts that may hold one."""

from __future__ import annotations

import copy
import json
import logging
import pickle
from collections.abc import Callable
from typing import Any, Final

import pytest
from pydantic_core import PydanticSerializationError, to_json

from emulator.redaction import WITHHELD, Secret, names_a_secret, scrub, scrub_value, size_of
from emulator.wire.agents import AgentCreateRequest

CANARY: Final = "canary-8f3a"

Way = Callable[[Secret], object]

SHOWS: Final[dict[str, Way]] = {
    "str": str,
    "repr": repr,
    "format": format,
    "format with a width": lambda secret: f"{secret:>40}",
    "format with a conversion": lambda secret: f"{secret!r:>40} {secret!s} {secret!a}",
    "str.format": lambda secret: "{0} {0!r}".format(secret),  # noqa: UP032
    "percent": lambda secret: "%s %r" % (secret, secret),  # noqa: UP031
    "in a list": lambda secret: str([secret, {"a": secret}, (secret,)]),
    "in an exception": lambda secret: repr(ValueError(secret)) + str(ValueError(secret)),
}

REFUSES: Final[dict[str, Way]] = {
    "pickle": pickle.dumps,
    "pickle, the oldest way": lambda secret: pickle.dumps(secret, 0),
    "copy": copy.copy,
    "deepcopy": lambda secret: copy.deepcopy({"a": secret}),
    "json": json.dumps,
    "json in an object": lambda secret: json.dumps({"a": [secret]}),
    "pydantic": to_json,
    "iteration": lambda secret: list(secret),  # type: ignore[call-overload]
    "length": lambda secret: len(secret),  # type: ignore[arg-type]
    "joining": lambda secret: "".join([secret]),  # type: ignore[list-item]
    "adding": lambda secret: "Bearer " + secret,  # type: ignore[operator]
    "bytes": lambda secret: bytes(secret),  # type: ignore[call-overload]
    "vars": vars,
    "order": lambda secret: secret < secret,  # type: ignore[operator]
}


@pytest.mark.parametrize("way", SHOWS)
def test_a_secret_prints_as_withheld(way: str) -> None:
    shown = str(SHOWS[way](Secret(CANARY)))
    assert WITHHELD in shown
    assert CANARY not in shown


@pytest.mark.parametrize("way", REFUSES)
def test_what_would_serialise_or_take_a_secret_apart_raises_without_it(way: str) -> None:
    with pytest.raises((TypeError, PydanticSerializationError)) as raised:
        REFUSES[way](Secret(CANARY))
    assert CANARY not in str(raised.value)


def test_a_secret_is_logged_as_withheld(caplog: pytest.LogCaptureFixture) -> None:
    logging.getLogger("test").warning("token %s", Secret(CANARY))
    assert caplog.messages == [f"token {WITHHELD}"]


def test_a_secret_gives_itself_up_only_when_asked() -> None:
    assert Secret(CANARY).reveal() == CANARY


def test_secrets_are_compared_by_what_they_hold_and_with_each_other_only() -> None:
    one, same, other = Secret(CANARY), Secret(CANARY), Secret("other")
    assert one == same
    assert one != other
    assert one != CANARY
    assert (hash(one), {one, same, other}) == (hash(same), {one, other})
    assert hash(one) != hash(CANARY)


def test_a_secret_takes_nothing_else_on() -> None:
    with pytest.raises(AttributeError):
        Secret(CANARY).name = "x"  # type: ignore[attr-defined]


# Texts


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("", ""),
        ("nothing to hide", "nothing to hide"),
        ("Bearer gbr_pat_Abc-1.2~3+4/5=", f"Bearer {WITHHELD}"),
        ("a gbr_pat_x, and gbr_pat_y!", f"a {WITHHELD}, and {WITHHELD}!"),
        ("gbr_pat_…", "gbr_pat_…"),
        ('{"token":"gbr_pat_x"}', f'{{"token":"{WITHHELD}"}}'),
        ("/v1?t=gbr_pat_x&u=1", f"/v1?t={WITHHELD}&u=1"),
        ("gbr_pa and pat_x", "gbr_pa and pat_x"),
        ("https://user:pw@example.com/a", f"https://{WITHHELD}@example.com/a"),
        ("https://user@example.com", f"https://{WITHHELD}@example.com"),
        ("see http://a:b@x.test and redis://:pw@y.test", f"see http://{WITHHELD}@x.test and redis://{WITHHELD}@y.test"),
        ("https://example.com/@user", "https://example.com/@user"),
        ("https://example.com?mail=a@b.test", "https://example.com?mail=a@b.test"),
        ("https://example.com#a@b", "https://example.com#a@b"),
        ("me@example.com", "me@example.com"),
        ("see https://example.com or me@x.test", "see https://example.com or me@x.test"),
        ("https://gbr_pat_x@example.com", f"https://{WITHHELD}@example.com"),
        ("a sk-ant-api03-0123456789, and more", f"a {WITHHELD}, and more"),
        ('{"key":"sk-proj_0123456789abcdef"}', f'{{"key":"{WITHHELD}"}}'),
        ("xai-0123456789abcdef", WITHHELD),
        ("sk-short and xai-short", "sk-short and xai-short"),
        ("a task-that-is-longer-than-a-key", "a task-that-is-longer-than-a-key"),
    ],
)
def test_tokens_and_the_user_of_an_address_are_taken_out_of_a_text(text: str, clean: str) -> None:
    assert scrub(text) == clean
    assert scrub(clean) == clean


def test_the_user_of_an_address_ends_at_its_last_at_sign() -> None:
    assert scrub("https://user:p@ss@example.com/") == f"https://{WITHHELD}@example.com/"


@pytest.mark.parametrize(
    ("key", "secret"),
    [
        ("authorization", True),
        ("Proxy-Authorization", True),
        ("apikey", True),
        ("x-api-key", True),
        ("API_KEY", True),
        ("access_token", True),
        ("token", True),
        ("clientSecret", True),
        ("password", True),
        ("passwd", True),
        ("model_credentials", True),
        ("token_id", False),
        ("created_by_token_id", False),
        ("key", False),
        ("author", False),
        ("tenant", False),
    ],
)
def test_a_key_may_name_a_secret(key: str, secret: bool) -> None:
    assert names_a_secret(key) is secret


def test_a_value_is_cleaned_all_the_way_down() -> None:
    sent = {
        "text": "gbr_pat_x",
        "list": ["https://a:b@x.test", {"deep": ["gbr_pat_y", 1, None, True, 1.5]}],
        "gbr_pat_key": "kept",
        "metadata": {"api_key": CANARY, "tenant": "acme"},
        "token": 7,
    }
    assert scrub_value(sent) == {
        "text": WITHHELD,
        "list": [f"https://{WITHHELD}@x.test", {"deep": [WITHHELD, 1, None, True, 1.5]}],
        WITHHELD: "kept",
        "metadata": {"api_key": WITHHELD, "tenant": "acme"},
        "token": 7,
    }
    assert sent["text"] == "gbr_pat_x"


@pytest.mark.parametrize(
    ("value", "size"),
    [
        ("", "text of 0 characters"),
        (CANARY, "text of 11 characters"),
        ([CANARY, 2], "list of 2"),
        ({CANARY: 1}, "object of 1"),
        (True, "boolean"),
        (None, "null"),
        (0, "number"),
        (1.5, "number"),
    ],
)
def test_what_is_withheld_is_told_by_its_size(value: Any, size: str) -> None:
    assert size_of(value) == size


def test_what_was_sent_is_printed_by_its_names() -> None:
    server = {"type": "mcp", "name": "docs", "url": "https://docs.example", "headers": {"x-key": CANARY}}
    sent = AgentCreateRequest.model_validate({"name": "a", "tools": [server | {"authorization": CANARY}]})
    assert repr(sent) == "AgentCreateRequest('name', 'tools')"
    assert str(sent.tools) == "[McpTool('type', 'name', 'url', 'authorization', 'headers')]"
