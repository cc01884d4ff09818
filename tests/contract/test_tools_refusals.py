"""What a tool configuration is refused for, at both doors (contract §5)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.contract.tool_doors import BUILT_INS, FUNCTION, PROCESS, SERVER, Door, at_both_doors, put, read, without

if TYPE_CHECKING:
    from tests.support import Api

ENTRY_FIELDS: Final[dict[str, list[str]]] = {
    "function": ["type", "name", "description", "parameters", "timeout_seconds"],
    "mcp": [
        "type",
        "name",
        "url",
        "authorization",
        "headers",
        "command",
        "args",
        "env_refs",
        "allowed_tools",
        "required",
    ],
    **{name: ["type"] for name in BUILT_INS},
}
VALUES: Final[dict[str, Any]] = {
    "name": "x",
    "description": "x",
    "parameters": {},
    "timeout_seconds": 30,
    "url": "https://mcp.example.com/mcp",
    "authorization": "x",
    "headers": {"x": "x"},
    "command": "x",
    "args": ["x"],
    "env_refs": ["X"],
    "allowed_tools": ["x"],
    "required": True,
}
VALID: Final[dict[str, dict[str, Any]]] = {
    "function": FUNCTION,
    "mcp": SERVER,
    **{name: {"type": name} for name in BUILT_INS},
}


def words(message: str) -> set[str]:
    """The names in a message, however it joins and quotes them."""
    return set(re.findall(r"[A-Za-z0-9_]+", message))


@pytest.mark.behaviour("tools.refuse.envelope")
@at_both_doors
def test_a_refusal_is_the_envelope_and_no_more(api: Api, door: Door) -> None:
    answer = door.send(api, tools=[FUNCTION | {"x": 1}])

    assert answer.status == 400
    assert answer.headers["content-type"] == "application/json"
    assert "retry-after" not in answer.headers
    assert list(answer.json) == ["error"]
    assert answer.json["error"] == {
        "code": "invalid_request",
        "message": answer.message,
        "request_id": answer.headers["x-request-id"],
    }


# Counts and names


@pytest.mark.behaviour("tools.refuse.count")
@at_both_doors
def test_thirty_two_entries_are_taken(api: Api, door: Door) -> None:
    entries = [FUNCTION | {"name": f"f{n}"} for n in range(31)] + [{"type": "browse"}]

    assert door.configured(api, tools=entries)["tools"] == entries


@pytest.mark.behaviour("tools.refuse.count")
@at_both_doors
@pytest.mark.parametrize("count", [33, 100])
def test_more_than_thirty_two_entries_are_refused_with_both_numbers(api: Api, door: Door, count: int) -> None:
    entries = [FUNCTION | {"name": f"f{n}"} for n in range(count)]

    message = door.refused(api, tools=entries)

    assert "`tools`" in message
    assert {"32", str(count)} <= words(message)


@pytest.mark.behaviour("tools.refuse.count")
@at_both_doors
def test_entries_are_counted_before_repeated_built_ins_collapse(api: Api, door: Door) -> None:
    message = door.refused(api, tools=[{"type": "browse"}] * 33)

    assert {"32", "33"} <= words(message)


@pytest.mark.behaviour("tools.refuse.name")
@at_both_doors
@pytest.mark.parametrize("entry", [FUNCTION, SERVER, PROCESS], ids=["function", "url", "command"])
def test_a_name_is_required(api: Api, door: Door, entry: dict[str, Any]) -> None:
    message = door.refused(api, tools=[{"type": "browse"}, without(entry, "name")])

    assert "`tools[1].name`" in message
    assert "required" in message


@pytest.mark.behaviour("tools.refuse.name")
@at_both_doors
@pytest.mark.parametrize("entry", [FUNCTION, SERVER, PROCESS], ids=["function", "url", "command"])
def test_a_name_is_not_empty(api: Api, door: Door, entry: dict[str, Any]) -> None:
    assert "`tools[0].name`" in door.refused(api, tools=[entry | {"name": ""}])


@pytest.mark.behaviour("tools.refuse.name")
@at_both_doors
@pytest.mark.parametrize("entry", [FUNCTION, SERVER, PROCESS], ids=["function", "url", "command"])
@pytest.mark.parametrize("name", ["n" * 65, "n" * 500], ids=len)
def test_a_name_over_64_characters_is_refused_with_both_numbers(
    api: Api, door: Door, entry: dict[str, Any], name: str
) -> None:
    message = door.refused(api, tools=[entry | {"name": name}])

    assert "`tools[0].name`" in message
    assert {"64", str(len(name))} <= words(message)


@pytest.mark.behaviour("tools.refuse.duplicate")
@at_both_doors
@pytest.mark.parametrize(
    ("first", "second"),
    [(SERVER, SERVER), (SERVER, PROCESS), (FUNCTION, FUNCTION), (FUNCTION, SERVER), (PROCESS, FUNCTION)],
    ids=["mcp-mcp", "url-command", "function-function", "function-mcp", "mcp-function"],
)
def test_two_entries_of_one_name_are_refused_by_that_name(
    api: Api, door: Door, first: dict[str, Any], second: dict[str, Any]
) -> None:
    entries = [first | {"name": "twice"}, {"type": "browse"}, second | {"name": "twice"}]

    message = door.refused(api, tools=entries)

    assert "twice" in message
    assert "`tools[2].name`" in message


@pytest.mark.behaviour("tools.refuse.duplicate")
@at_both_doors
def test_names_that_differ_at_all_are_two_names(api: Api, door: Door) -> None:
    entries = [FUNCTION | {"name": name} for name in ("docs", "Docs", "docs ", "browse")] + [{"type": "browse"}]

    assert door.configured(api, tools=entries)["tools"] == entries


# Unknown fields


@pytest.mark.behaviour("tools.refuse.unknown-field")
@pytest.mark.parametrize(("field", "meant"), [("tool", "tools"), ("Tools", "tools"), ("texts", "text"), ("x", None)])
def test_an_unknown_field_beside_the_list_is_refused_by_name(api: Api, field: str, meant: str | None) -> None:
    session_id = api.session()

    answer = api.put(f"/v1/sessions/{session_id}/tools", {"tools": [FUNCTION], field: []})

    assert (answer.status, answer.code) == (400, "invalid_request")
    assert f"`{field}`" in answer.message
    assert {"tools", "text"} <= words(answer.message)
    assert ("Did you mean" in answer.message) is (meant is not None)
    assert meant is None or answer.message.endswith(f"`{meant}`?")


@pytest.mark.behaviour("tools.refuse.unknown-field")
def test_a_configuration_of_the_wrong_door_is_refused(api: Api) -> None:
    session_id = api.session()

    put_answer = api.put(f"/v1/sessions/{session_id}/tools", {"agent": {"tools": []}})
    post_answer = api.post("/v1/sessions", {"tools": []})

    assert (put_answer.status, put_answer.code) == (400, "invalid_request")
    assert "`agent`" in put_answer.message
    assert (post_answer.status, post_answer.code) == (400, "invalid_request")
    assert "`tools`" in post_answer.message
    assert "`agent.tools`" in post_answer.message


# (entry, the field as it was misspelt, what is meant)
MISSPELT: Final = [
    (SERVER, "allowedTools", "allowed_tools"),
    (SERVER, "AllowedTools", "allowed_tools"),
    (SERVER, "allowed-tools", "allowed_tools"),
    (PROCESS, "cmd", "command"),
    (PROCESS, "Command", "command"),
    (FUNCTION, "timeout", "timeout_seconds"),
    (FUNCTION, "timeoutSeconds", "timeout_seconds"),
    (FUNCTION, "parametres", "parameters"),
    (FUNCTION, "desciption", "description"),
    (SERVER, "Authorization", "authorization"),
    (SERVER, "authorisation", "authorization"),
    (SERVER, "header", "headers"),
    (SERVER, "require", "required"),
    (PROCESS, "envRefs", "env_refs"),
    (PROCESS, "arg", "args"),
]


@pytest.mark.behaviour("tools.refuse.unknown-field-of-an-entry")
@at_both_doors
@pytest.mark.parametrize(("entry", "field", "meant"), MISSPELT, ids=[field for _, field, _ in MISSPELT])
def test_a_misspelt_field_is_refused_with_the_field_that_was_meant(
    api: Api, door: Door, entry: dict[str, Any], field: str, meant: str
) -> None:
    message = door.refused(api, tools=[{"type": "browse"}, entry | {field: VALUES[meant]}])

    assert f"`tools[1].{field}`" in message
    assert set(ENTRY_FIELDS[entry["type"]]) <= words(message)
    assert message.endswith(f"`{meant}`?")


@pytest.mark.behaviour("tools.refuse.unknown-field-of-an-entry", "tools.built-in.type-alone")
@at_both_doors
@pytest.mark.parametrize("kind", ENTRY_FIELDS)
def test_an_unknown_field_lists_what_its_entry_accepts_and_nothing_else(api: Api, door: Door, kind: str) -> None:
    message = door.refused(api, tools=[VALID[kind] | {"zzz": 1}])

    assert "`tools[0].zzz`" in message
    assert "Did you mean" not in message
    every = {field for fields in ENTRY_FIELDS.values() for field in fields}
    assert words(message) & every == set(ENTRY_FIELDS[kind])


@pytest.mark.behaviour("tools.refuse.field-of-another-type", "tools.built-in.type-alone")
@at_both_doors
@pytest.mark.parametrize("kind", ENTRY_FIELDS)
def test_a_field_of_another_type_is_refused(api: Api, door: Door, kind: str) -> None:
    foreign = [field for field in VALUES if field not in ENTRY_FIELDS[kind]]
    assert foreign

    for field in foreign:
        message = door.refused(api, tools=[VALID[kind] | {field: VALUES[field]}])
        assert f"`tools[0].{field}`" in message


@pytest.mark.behaviour("tools.refuse.redacted")
@at_both_doors
@pytest.mark.parametrize("value", [["authorization"], [], None, "authorization"], ids=str)
def test_redacted_sent_back_is_refused(api: Api, door: Door, value: Any) -> None:
    message = door.refused(api, tools=[FUNCTION, SERVER | {"redacted": value}])

    assert "redacted" in words(message)
    assert "tools[1]" in message
    assert re.search(r"again|re-send", message)


@pytest.mark.behaviour("tools.refuse.redacted", "tools.put.changes-nothing-when-refused")
def test_what_was_read_cannot_be_put_back_and_lose_the_credentials(api: Api) -> None:
    session_id = api.session()
    put(api, session_id, SERVER | {"authorization": "Bearer s"})
    configuration = read(api, session_id)

    answer = api.put(f"/v1/sessions/{session_id}/tools", {"tools": configuration["tools"]})

    assert (answer.status, answer.code) == (400, "invalid_request")
    assert "redacted" in answer.message
    assert read(api, session_id) == configuration


@pytest.mark.behaviour("tools.read.as-sent")
def test_what_was_read_goes_back_when_nothing_was_withheld(api: Api) -> None:
    session_id = api.session()
    put(api, session_id, SERVER, PROCESS, FUNCTION, {"type": "browse"})
    configuration = read(api, session_id)

    body = {"tools": configuration["tools"], "text": configuration["text"]}
    answer = api.put(f"/v1/sessions/{session_id}/tools", body)

    assert answer.status == 200
    assert answer.json == configuration


# Types


@pytest.mark.behaviour("tools.refuse.unknown-type")
@at_both_doors
@pytest.mark.parametrize(
    ("kind", "meant"),
    [("web-search", "web_search"), ("webFetch", "web_fetch"), ("functions", "function"), ("MCP", "mcp"), ("", None)],
)
def test_an_unknown_type_is_refused_and_the_types_are_listed(
    api: Api, door: Door, kind: str, meant: str | None
) -> None:
    message = door.refused(api, tools=[{"type": kind, "name": "x"}])

    assert "`tools[0].type`" in message
    assert {"function", "mcp", *BUILT_INS} <= words(message)
    assert meant is None or message.endswith(f"`{meant}`?")


@pytest.mark.behaviour("tools.refuse.unknown-type")
@at_both_doors
@pytest.mark.parametrize("entry", [{}, {"name": "docs", "url": "https://x.example"}], ids=["empty", "no-type"])
def test_a_missing_type_is_refused_and_the_types_are_listed(api: Api, door: Door, entry: dict[str, Any]) -> None:
    message = door.refused(api, tools=[entry])

    assert "`tools[0].type`" in message
    assert {"function", "mcp", *BUILT_INS} <= words(message)


@pytest.mark.behaviour("tools.refuse.unknown-type")
@at_both_doors
@pytest.mark.parametrize("kind", [None, 1, True, ["mcp"], {"mcp": 1}], ids=str)
def test_a_type_that_is_no_string_is_refused(api: Api, door: Door, kind: Any) -> None:
    message = door.refused(api, tools=[{"type": kind, "name": "x"}])

    assert "`tools[0].type`" in message
    assert {"function", "mcp", *BUILT_INS} <= words(message)


@pytest.mark.behaviour("tools.post-instead-of-put")
def test_a_post_is_told_that_the_set_is_replaced_with_put(api: Api) -> None:
    session_id = api.session({"agent": {"tools": [FUNCTION]}})

    answer = api.post(f"/v1/sessions/{session_id}/tools", {"tools": [SERVER]})

    assert (answer.status, answer.code) == (400, "invalid_request")
    assert {"replaced", "PUT"} <= words(answer.message)
    assert read(api, session_id)["tools"] == [FUNCTION]


@pytest.mark.behaviour("tools.put.changes-nothing-when-refused")
@pytest.mark.parametrize(
    "body",
    [
        {"tools": [PROCESS, SERVER | {"required": "yes"}], "text": {"verbosity": "low"}},
        {"tools": [PROCESS], "text": {"verbosity": "loud"}},
        {"tools": [PROCESS, PROCESS]},
        {"tools": [PROCESS], "x": 1},
        {"text": "low"},
        {"tools": None},
    ],
    ids=["an-entry", "the-text", "between-entries", "beside-them", "text-alone", "null"],
)
def test_a_refused_put_changes_nothing(api: Api, body: dict[str, Any]) -> None:
    before = [FUNCTION, SERVER | {"authorization": "s"}, {"type": "browse"}]
    session_id = api.session({"agent": {"tools": before, "text": {"verbosity": "high"}}})
    configuration, session = read(api, session_id), api.get(f"/v1/sessions/{session_id}").json
    api.emulator.clock.advance(1)

    answer = api.put(f"/v1/sessions/{session_id}/tools", body)

    assert (answer.status, answer.code) == (400, "invalid_request")
    assert read(api, session_id) == configuration
    assert api.get(f"/v1/sessions/{session_id}").json == session


@pytest.mark.behaviour("tools.put.changes-nothing-when-refused")
def test_a_refused_creation_leaves_no_session(api: Api) -> None:
    answer = api.post("/v1/sessions", {"agent": {"tools": [SERVER | {"required": "yes"}]}})

    assert answer.status == 400
    assert api.get("/v1/sessions").json["data"] == []
