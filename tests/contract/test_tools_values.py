"""What each field of a tool entry takes, and what it does not, at both doors (contract §5)."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.contract.tool_doors import FUNCTION, PROCESS, PUT, SERVER, Door, at_both_doors, without

if TYPE_CHECKING:
    from tests.support import Api

# One value of every kind JSON has.
KINDS: Final[dict[str, Any]] = {
    "a string": "yes",
    "an integer": 1,
    "a number": 1.5,
    "a boolean": True,
    "null": None,
    "a list": [],
    "an object": {},
}

# Every field, an entry it belongs to, the kinds it takes, and the words for them.
FIELDS: Final[dict[str, tuple[dict[str, Any], tuple[str, ...], str]]] = {
    "name": (FUNCTION, ("a string",), "a string"),
    "description": (FUNCTION, ("a string",), "a string"),
    "parameters": (FUNCTION, ("an object",), "an object"),
    "timeout_seconds": (FUNCTION, ("an integer",), "an integer"),
    "url": (SERVER, ("a string",), "a string"),
    "authorization": (SERVER, ("a string",), "a string"),
    "headers": (SERVER, ("an object",), "an object"),
    "command": (PROCESS, ("a string",), "a string"),
    "args": (PROCESS, ("a list",), "a list"),
    "env_refs": (PROCESS, ("a list", "an object"), "an object or a list"),
    "allowed_tools": (SERVER, ("a list",), "a list"),
    "required": (SERVER, ("a boolean",), "a boolean"),
}


@pytest.mark.behaviour("tools.refuse.wrong-kind", "tools.refuse.null", "tools.mcp.required-boolean")
@at_both_doors
@pytest.mark.parametrize("field", FIELDS)
def test_a_value_of_the_wrong_kind_is_refused_with_its_path(api: Api, door: Door, field: str) -> None:
    entry, taken, words = FIELDS[field]

    for kind, value in KINDS.items():
        if kind in taken:
            continue
        message = door.refused(api, tools=[{"type": "browse"}, entry | {field: value}])
        assert f"`tools[1].{field}` must be {words}" in message
        assert f"{kind} was sent" in message


@pytest.mark.behaviour("tools.refuse.wrong-kind", "tools.refuse.null")
@at_both_doors
@pytest.mark.parametrize(
    ("entry", "field", "path"),
    [
        (SERVER, "headers", "headers.x-api-key"),
        (PROCESS, "args", "args[1]"),
        (PROCESS, "env_refs", "env_refs[1]"),
        (SERVER, "allowed_tools", "allowed_tools[1]"),
    ],
    ids=["headers", "args", "env_refs", "allowed_tools"],
)
def test_what_is_inside_is_a_string(api: Api, door: Door, entry: dict[str, Any], field: str, path: str) -> None:
    for kind, value in KINDS.items():
        if kind == "a string":
            continue
        sent = {"x-api-key": value} if field == "headers" else ["x", value]
        message = door.refused(api, tools=[entry | {field: sent}])
        assert f"`tools[0].{path}` must be a string" in message
        assert f"{kind} was sent" in message


@pytest.mark.behaviour("tools.refuse.wrong-kind", "tools.mcp.env-refs")
@at_both_doors
@pytest.mark.parametrize("value", [1, None, {}, []], ids=str)
def test_a_variable_that_is_named_by_no_string_is_refused(api: Api, door: Door, value: Any) -> None:
    message = door.refused(api, tools=[PROCESS | {"env_refs": {"API_KEY": value}}])

    assert "`tools[0].env_refs.API_KEY` must be a string" in message


@pytest.mark.behaviour("tools.refuse.wrong-kind")
@at_both_doors
@pytest.mark.parametrize("tools", ["mcp", 1, True, {}, {"type": "browse"}, None], ids=str)
def test_the_set_is_a_list(api: Api, door: Door, tools: Any) -> None:
    assert "`tools` must be a list" in door.refused(api, tools=tools)


@pytest.mark.behaviour("tools.refuse.wrong-kind")
@at_both_doors
@pytest.mark.parametrize("entry", ["browse", 1, True, None, ["browse"]], ids=str)
def test_an_entry_is_an_object(api: Api, door: Door, entry: Any) -> None:
    assert "`tools[1]` must be an object" in door.refused(api, tools=[{"type": "browse"}, entry])


# Functions


@pytest.mark.behaviour("tools.function.timeout")
@at_both_doors
@pytest.mark.parametrize("seconds", [0, -1, 7201, 10**9, 10**30])
def test_a_timeout_out_of_range_is_refused_with_every_number(api: Api, door: Door, seconds: int) -> None:
    message = door.refused(api, tools=[FUNCTION | {"timeout_seconds": seconds}])

    assert "`tools[0].timeout_seconds`" in message
    assert {"1", "7200", str(seconds)} <= set(re.findall(r"-?\d+", message.partition(" ")[2]))


@pytest.mark.behaviour("tools.function.timeout")
@pytest.mark.parametrize("digits", [20, 4300, 4301, 100_000])
@pytest.mark.parametrize("sign", ["", "-"])
def test_a_timeout_of_thousands_of_digits_is_refused_like_any_other(api: Api, digits: int, sign: str) -> None:
    body = json.dumps({"tools": [FUNCTION | {"timeout_seconds": "@"}]})
    raw = body.replace('"@"', f"{sign}1{'0' * (digits - 1)}").encode()

    answer = api.put(f"/v1/sessions/{api.session()}/tools", raw=raw)

    assert (answer.status, answer.code) == (400, "invalid_request")
    assert len(answer.raw) < 10_000


@pytest.mark.behaviour("tools.function.timeout")
@at_both_doors
@pytest.mark.parametrize("seconds", ["30", 30.0, 30.5, True], ids=str)
def test_a_timeout_is_not_coerced_to_an_integer(api: Api, door: Door, seconds: Any) -> None:
    message = door.refused(api, tools=[FUNCTION | {"timeout_seconds": seconds}])

    assert "`tools[0].timeout_seconds` must be an integer" in message


@pytest.mark.behaviour("tools.function.waits-as-long")
@pytest.mark.parametrize("seconds", [1, 7200, None])
def test_a_call_expires_as_long_after_it_was_asked_as_its_function_says(api: Api, seconds: int | None) -> None:
    entry = FUNCTION if seconds is None else FUNCTION | {"timeout_seconds": seconds}
    session_id = api.session({"agent": {"tools": [entry]}})

    api.say(session_id, "where is my order?")

    (action,) = api.actions(session_id)
    assert action["expires_at"] == (None if seconds is None else action["created_at"] + seconds * 1000)


# Servers


@pytest.mark.behaviour("tools.mcp.one-transport")
@at_both_doors
@pytest.mark.parametrize("both", [True, False])
def test_a_server_has_exactly_one_of_url_and_command(api: Api, door: Door, both: bool) -> None:
    entry = SERVER | {"command": "notes-server"} if both else without(SERVER, "url")

    message = door.refused(api, tools=[{"type": "browse"}, entry])

    assert "`tools[1]`" in message
    assert "exactly one of `url` and `command`" in message
    assert ("both" in message, "neither" in message) == (both, not both)


URLS: Final = [
    "https://mcp.example.com",
    "https://mcp.example.com/mcp?tenant=acme&x=%20#top",
    "HTTPS://MCP.EXAMPLE.COM/",
    "http://localhost",
    "http://127.0.0.1:8080/mcp",
    "http://[::1]:8080/mcp",
    "https://bücher.example/mcp",
    "https://xn--bcher-kva.example/",
    "http://host.internal:65535/",
]
NOT_URLS: Final = [
    "",
    " ",
    "mcp.example.com/mcp",
    "//mcp.example.com/mcp",
    "/mcp",
    "mcp",
    "https:",
    "https://",
    "https:///mcp",
    "https://:8080/mcp",
    "https://?x",
    "https://user@/mcp",
    "https:mcp.example.com",
    "ftp://mcp.example.com/mcp",
    "ws://mcp.example.com/mcp",
    "file:///etc/passwd",
    "stdio:notes-server",
    "javascript:alert(1)",
    "http://[::1/mcp",
    "http://[not-an-address]/mcp",
    "http://mcp.example.com:99999/",
    "http://mcp.example.com:port/",
    "http://mcp.example.com:-1/",
    "http://mcp example.com/",
    "http://mcp.example.com/a b",
    " https://mcp.example.com",
    "https://mcp.example.com\n",
    "https://mcp.exa\tmple.com",
    "https://mcp.example.com/\u0000",
    "https://mcp.example.com/\u202e",
]


@pytest.mark.behaviour("tools.mcp.url-parses")
@at_both_doors
def test_an_address_that_parses_is_taken_and_returned_as_sent(api: Api, door: Door) -> None:
    entries = [SERVER | {"name": f"s{n}", "url": url} for n, url in enumerate(URLS)]

    assert door.configured(api, tools=entries)["tools"] == entries


@pytest.mark.behaviour("tools.mcp.url-parses")
@pytest.mark.gobare(session_limit=100)
@at_both_doors
def test_an_address_that_does_not_parse_is_refused(api: Api, door: Door) -> None:
    for url in NOT_URLS:
        message = door.refused(api, tools=[{"type": "browse"}, SERVER | {"url": url}])
        assert "`tools[1].url` does not parse: an http or https address with a host" in message, ascii(url)


@pytest.mark.behaviour("tools.mcp.command-not-empty")
@at_both_doors
@pytest.mark.parametrize("command", ["", " ", "\t\n"], ids=ascii)
def test_a_command_is_not_empty(api: Api, door: Door, command: str) -> None:
    assert "`tools[0].command`" in door.refused(api, tools=[PROCESS | {"command": command}])


@pytest.mark.behaviour("tools.mcp.fields-of-the-other-transport")
@at_both_doors
@pytest.mark.parametrize(
    ("entry", "field", "value", "goes_with"),
    [
        (PROCESS, "authorization", "Bearer s", "url"),
        (PROCESS, "headers", {"x-api-key": "s"}, "url"),
        (PROCESS, "headers", {}, "url"),
        (SERVER, "args", ["-v"], "command"),
        (SERVER, "args", [], "command"),
        (SERVER, "env_refs", ["X"], "command"),
        (SERVER, "env_refs", {}, "command"),
    ],
)
def test_a_field_that_serves_the_other_transport_is_refused(
    api: Api, door: Door, entry: dict[str, Any], field: str, value: Any, goes_with: str
) -> None:
    message = door.refused(api, tools=[entry | {field: value}])

    assert f"`tools[0].{field}`" in message
    assert f"`{goes_with}`" in message


@pytest.mark.behaviour("tools.mcp.env-refs")
@at_both_doors
@pytest.mark.parametrize("refs", [{}, [], {"A": "b", "C": ""}, ["A", "A", ""]], ids=str)
def test_env_refs_is_returned(api: Api, door: Door, refs: Any) -> None:
    entry = PROCESS | {"env_refs": refs}

    assert door.configured(api, tools=[entry])["tools"] == [entry]


@pytest.mark.behaviour("tools.mcp.required-boolean")
@at_both_doors
@pytest.mark.parametrize("value", ["yes", "true", "", 1, 0, None], ids=ascii)
def test_required_is_never_read_out_of_something_else(api: Api, door: Door, value: Any) -> None:
    message = door.refused(api, tools=[SERVER | {"required": value}])

    assert "`tools[0].required` must be a boolean, true or false" in message


# Text


@pytest.mark.behaviour("tools.text.refused")
@at_both_doors
@pytest.mark.parametrize(
    ("text", "path", "words"),
    [
        ({"verbosity": "loud"}, "text.verbosity", ["low", "medium", "high"]),
        ({"verbosity": "Low"}, "text.verbosity", ["Did you mean `low`?"]),
        ({"verbosity": 1}, "text.verbosity", ["low", "medium", "high"]),
        ({"verbosity": None}, "text.verbosity", ["low", "medium", "high"]),
        ({"verbose": "low"}, "text.verbose", ["verbosity", "format"]),
        ({"format": "json_schema"}, "text.format", ["an object"]),
        ({"format": None}, "text.format", ["an object"]),
        ({"format": {"schema": {}}}, "text.format.type", ["required"]),
        ({"format": {"type": "json_schema"}}, "text.format.schema", ["required"]),
        ({"format": {"type": "json-schema", "schema": {}}}, "text.format.type", ["json_schema"]),
        ({"format": {"type": "text", "schema": {}}}, "text.format.type", ["json_schema"]),
        ({"format": {"type": "json_schema", "schema": []}}, "text.format.schema", ["an object"]),
        ({"format": {"type": "json_schema", "schema": "x"}}, "text.format.schema", ["an object"]),
        ({"format": {"type": "json_schema", "schema": {}, "strict": True}}, "text.format.strict", ["type", "schema"]),
        ({"format": {"type": "json_schema", "schema_": {}}}, "text.format.schema_", ["Did you mean `schema`?"]),
        ("low", "text", ["an object"]),
        ([], "text", ["an object"]),
        (True, "text", ["an object"]),
    ],
    ids=str,
)
def test_anything_else_in_text_is_refused_with_its_path(
    api: Api, door: Door, text: Any, path: str, words: list[str]
) -> None:
    message = door.refused(api, tools=[], text=text)

    assert f"`{path}`" in message
    for word in words:
        assert word in message


@pytest.mark.behaviour("tools.text.asked-not-enforced")
def test_the_agent_is_told_of_text_and_not_held_to_it(api: Api) -> None:
    text = {"verbosity": "low", "format": {"type": "json_schema", "schema": {"type": "object"}}}
    told: list[Any] = []

    @api.emulator.agent
    async def agent(turn: Any) -> None:
        told.append(turn.session.text)
        await turn.say("This is no object.")

    session_id = PUT.configured(api, text=text)["session_id"]
    api.say(session_id, "answer in JSON")

    assert told == [text]
    assert api.items(session_id)[-1]["content"] == "This is no object."
    assert api.turns(session_id)[-1]["status"] == "completed"
