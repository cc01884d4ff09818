"""Replacing a tool configuration and reading it back (contract §5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.contract.tool_doors import (
    BUILT_INS,
    FUNCTION,
    POST,
    PROCESS,
    PUT,
    SERVER,
    Door,
    at_both_doors,
    put,
    read,
    without,
)

if TYPE_CHECKING:
    from tests.support import Api

SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"order_id": {"type": "string", "description": "Such as A-4471."}},
    "required": ["order_id"],
}

# Every field of every type of entry, with the ends of each range.
ENTRIES: Final[dict[str, dict[str, Any]]] = {
    "function-name-alone": FUNCTION,
    "function-description": FUNCTION | {"description": "Look up an order."},
    "function-description-empty": FUNCTION | {"description": ""},
    "function-parameters": FUNCTION | {"parameters": SCHEMA},
    "function-timeout-lowest": FUNCTION | {"timeout_seconds": 1},
    "function-timeout-highest": FUNCTION | {"timeout_seconds": 7200},
    "function-everything": FUNCTION | {"description": "x", "parameters": SCHEMA, "timeout_seconds": 30},
    "function-name-of-one": {"type": "function", "name": "f"},
    "function-name-of-64": {"type": "function", "name": "f" * 64},
    "function-name-of-64-letters": {"type": "function", "name": "ü" * 64},
    "server-url-alone": SERVER,
    "server-http": SERVER | {"url": "http://localhost:8080/mcp"},
    "server-allowed-tools": SERVER | {"allowed_tools": ["search", "fetch"]},
    "server-allowed-tools-none": SERVER | {"allowed_tools": []},
    "server-required": SERVER | {"required": True},
    "server-not-required": SERVER | {"required": False},
    "process-command-alone": PROCESS,
    "process-args": PROCESS | {"args": ["--root", "", "/workspace"]},
    "process-args-none": PROCESS | {"args": []},
    "process-env-refs-object": PROCESS | {"env_refs": {"API_KEY": "notes_key"}},
    "process-env-refs-list": PROCESS | {"env_refs": ["NOTES_KEY"]},
    "process-everything": PROCESS
    | {"args": ["-v"], "env_refs": {"A": "b"}, "allowed_tools": ["read"], "required": True},
    **{name: {"type": name} for name in BUILT_INS},
}


@pytest.mark.behaviour("tools.read.as-sent", "tools.create.same-configuration")
@at_both_doors
@pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES.keys())
def test_an_entry_comes_back_as_it_was_sent(api: Api, door: Door, entry: dict[str, Any]) -> None:
    assert door.configured(api, tools=[entry])["tools"] == [entry]


# From the Tools page: what is put, and what of it is read back differently.
EXAMPLES: Final[list[tuple[list[dict[str, Any]], dict[str, Any]]]] = [
    ([{"type": "web_search"}, {"type": "web_fetch"}], {}),
    ([FUNCTION | {"description": "Look up the delivery status of an order by id.", "parameters": SCHEMA}], {}),
    (
        [SERVER | {"headers": {"x-api-key": "…"}, "allowed_tools": ["search", "fetch"], "required": True}],
        {"redacted": ["headers.x-api-key"]},
    ),
    ([SERVER | {"allowed_tools": ["search"], "authorization": "…"}], {"redacted": ["authorization"]}),
    ([], {}),
]


@pytest.mark.behaviour("tools.page.examples", "tools.redacted.names")
@at_both_doors
@pytest.mark.parametrize(("tools", "instead"), EXAMPLES, ids=range(len(EXAMPLES)))
def test_the_examples_of_the_page_read_back_as_it_shows(
    api: Api, door: Door, tools: list[dict[str, Any]], instead: dict[str, Any]
) -> None:
    shown = [without(tool, "headers", "authorization") | instead for tool in tools]

    assert door.configured(api, tools=tools)["tools"] == shown


@pytest.mark.behaviour("tools.put.answers-what-get-answers")
def test_a_put_answers_the_object_a_get_answers(api: Api) -> None:
    session_id = api.session()
    text = {"verbosity": "low"}

    answer = api.put(f"/v1/sessions/{session_id}/tools", {"tools": [FUNCTION, SERVER], "text": text})

    assert answer.status == 200
    assert answer.json == {
        "object": "session.tools",
        "session_id": session_id,
        "tools": [FUNCTION, SERVER],
        "text": text,
    }
    assert read(api, session_id) == answer.json


@pytest.mark.behaviour("tools.create.same-configuration")
def test_a_configuration_of_the_creation_reads_as_one_that_was_put(api: Api) -> None:
    configuration: dict[str, Any] = {
        "tools": [FUNCTION, SERVER | {"authorization": "Bearer s"}, {"type": "browse"}],
        "text": {"verbosity": "high"},
    }

    created, replaced = POST.configured(api, **configuration), PUT.configured(api, **configuration)

    assert created["text"] == {"verbosity": "high"}
    assert created | {"session_id": ""} == replaced | {"session_id": ""}


@pytest.mark.behaviour("tools.put.replaces-all")
def test_nothing_of_the_configuration_before_is_left(api: Api) -> None:
    session_id = api.session({"agent": {"tools": [FUNCTION, SERVER, {"type": "browse"}]}})

    put(api, session_id, PROCESS)

    assert read(api, session_id)["tools"] == [PROCESS]


@pytest.mark.behaviour("tools.put.replaces-all")
def test_an_entry_of_the_same_name_does_not_inherit_from_the_one_before(api: Api) -> None:
    session_id = api.session()
    put(api, session_id, FUNCTION | {"description": "old", "timeout_seconds": 5})

    put(api, session_id, FUNCTION)

    assert read(api, session_id)["tools"] == [FUNCTION]


@pytest.mark.behaviour("tools.put.absent-half-resets")
def test_a_put_of_text_alone_leaves_the_tools_unconfigured(api: Api) -> None:
    session_id = api.session({"agent": {"tools": []}})
    assert api.emulator.effective_tools(session_id)["configured"] is True

    answer = api.put(f"/v1/sessions/{session_id}/tools", {"text": {"verbosity": "low"}})

    assert (answer.json["tools"], answer.json["text"]) == ([], {"verbosity": "low"})
    effective = api.emulator.effective_tools(session_id)
    assert (effective["configured"], effective["built_ins"]) == (False, list(BUILT_INS))


@pytest.mark.behaviour("tools.put.absent-half-resets")
def test_a_put_of_tools_alone_takes_the_text_away(api: Api) -> None:
    session_id = api.session({"agent": {"tools": [FUNCTION], "text": {"verbosity": "low"}}})

    put(api, session_id, FUNCTION)

    assert read(api, session_id)["text"] is None


@pytest.mark.behaviour("tools.put.absent-half-resets")
def test_a_put_of_neither_half_is_refused(api: Api) -> None:
    session_id = api.session({"agent": {"tools": [FUNCTION]}})

    answer = api.put(f"/v1/sessions/{session_id}/tools", {})

    assert (answer.status, answer.code) == (400, "invalid_request")
    assert "`tools`" in answer.message
    assert "`text`" in answer.message
    assert read(api, session_id)["tools"] == [FUNCTION]


@pytest.mark.behaviour("tools.put.text-null")
def test_text_is_cleared_by_null(api: Api) -> None:
    session_id = api.session({"agent": {"text": {"verbosity": "low"}}})

    answer = api.put(f"/v1/sessions/{session_id}/tools", {"tools": [FUNCTION], "text": None})

    assert (answer.status, answer.json["text"]) == (200, None)
    assert read(api, session_id)["text"] is None


@pytest.mark.behaviour("tools.put.text-null")
def test_null_text_alone_is_a_configuration(api: Api) -> None:
    session_id = api.session({"agent": {"tools": [FUNCTION], "text": {"verbosity": "low"}}})

    answer = api.put(f"/v1/sessions/{session_id}/tools", {"text": None})

    assert (answer.status, answer.json["tools"], answer.json["text"]) == (200, [], None)


@pytest.mark.behaviour("tools.read.order")
@at_both_doors
def test_entries_come_back_in_the_order_they_were_sent_in(api: Api, door: Door) -> None:
    entries = [{"type": "screenshot"}, PROCESS, {"type": "browse"}, FUNCTION, SERVER, {"type": "web_search"}]

    assert door.configured(api, tools=entries)["tools"] == entries


# What a JSON Schema never says, a JSON Schema that is wrong, and everything JSON has.
PARAMETERS: Final[list[dict[str, Any]]] = [
    {},
    {"type": "objekt", "properties": "none", "required": 7},
    {"$ref": "https://elsewhere.example/schema", "x": [None, True, False, 0, -1, 1.5, 1e300, "", "ü\u2028😀"]},
    {"": {"": []}, "additionalProperties": False, "redacted": ["authorization"], "tools": [{"type": "mcp"}]},
    {"authorization": "a schema may have a property of any name", "headers": {"x": 1}},
    {"large": 2**63, "larger": -(10**30), "small": -(2**63)},
]


@pytest.mark.behaviour("tools.read.parameters-unexamined")
@at_both_doors
@pytest.mark.parametrize("parameters", PARAMETERS, ids=range(len(PARAMETERS)))
def test_parameters_are_carried_unexamined(api: Api, door: Door, parameters: dict[str, Any]) -> None:
    (entry,) = door.configured(api, tools=[FUNCTION | {"parameters": parameters}])["tools"]

    assert entry["parameters"] == parameters


@pytest.mark.behaviour("tools.read.parameters-unexamined")
def test_parameters_keep_the_order_of_their_keys(api: Api) -> None:
    parameters = {name: name for name in "zebra"}

    (entry,) = PUT.configured(api, tools=[FUNCTION | {"parameters": parameters}])["tools"]

    assert list(entry["parameters"]) == list("zebra")


@pytest.mark.behaviour("tools.read.parameters-unexamined")
@at_both_doors
def test_parameters_may_nest_deeply(api: Api, door: Door) -> None:
    parameters: dict[str, Any] = {}
    for _ in range(100):
        parameters = {"properties": parameters}

    (entry,) = door.configured(api, tools=[FUNCTION | {"parameters": parameters}])["tools"]

    assert entry["parameters"] == parameters


@pytest.mark.behaviour("tools.read.on-the-session")
@at_both_doors
def test_a_read_of_the_session_carries_the_same_list(api: Api, door: Door) -> None:
    entries = [FUNCTION, SERVER | {"authorization": "s", "headers": {"x-api-key": "s"}}, {"type": "browse"}]

    configuration = door.configured(api, tools=entries)

    session = api.get(f"/v1/sessions/{configuration['session_id']}").json
    assert session["agent"]["tools"] == configuration["tools"]
    assert [entry["type"] for entry in session["agent"]["tools"]] == ["function", "mcp", "browse"]


@pytest.mark.behaviour("tools.read.not-on-other-replies")
def test_tools_are_on_no_other_reply_than_the_single_read(api: Api) -> None:
    created = api.post("/v1/sessions", {"agent": {"tools": [FUNCTION]}}).json
    patched = api.patch(f"/v1/sessions/{created['id']}", {"title": "x"}).json
    (listed,) = api.get("/v1/sessions").json["data"]

    for session in (created, patched, listed):
        assert "model" in session["agent"]
        assert "tools" not in session["agent"]


@pytest.mark.behaviour("tools.read.never-configured")
@pytest.mark.parametrize("body", [{}, {"agent": {}}], ids=["no-agent", "an-agent"])
def test_a_session_never_configured_reads_an_empty_list(api: Api, body: dict[str, Any]) -> None:
    session_id = api.session(body)

    configuration = read(api, session_id)

    assert configuration == {"object": "session.tools", "session_id": session_id, "tools": [], "text": None}
    assert api.get(f"/v1/sessions/{session_id}").json["agent"]["tools"] == []
    effective = api.emulator.effective_tools(session_id)
    assert effective == {"configured": False, "built_ins": list(BUILT_INS), "functions": [], "servers": []}


@pytest.mark.behaviour("tools.read.built-ins")
@at_both_doors
def test_a_declared_built_in_reads_back_as_its_type_alone(api: Api, door: Door) -> None:
    entries = [{"type": name} for name in BUILT_INS]

    assert door.configured(api, tools=entries)["tools"] == entries


@pytest.mark.behaviour("tools.read.built-ins-collapse")
@at_both_doors
def test_a_built_in_named_twice_is_one_entry(api: Api, door: Door) -> None:
    web_fetch = {"type": "web_fetch"}
    browse = {"type": "browse"}

    assert door.configured(api, tools=[web_fetch, browse, FUNCTION, web_fetch])["tools"] == [
        web_fetch,
        browse,
        FUNCTION,
    ]


@pytest.mark.behaviour("tools.redacted.names")
@at_both_doors
def test_redacted_names_what_was_withheld(api: Api, door: Door) -> None:
    secrets = {"authorization": "Bearer s", "headers": {"x-api-key": "s", "X-Tenant": "acme"}}

    (entry,) = door.configured(api, tools=[SERVER | secrets | {"allowed_tools": ["search"]}])["tools"]

    assert sorted(entry.pop("redacted")) == ["authorization", "headers.X-Tenant", "headers.x-api-key"]
    assert entry == SERVER | {"allowed_tools": ["search"]}


@pytest.mark.behaviour("tools.redacted.names")
@at_both_doors
@pytest.mark.parametrize(
    ("sent", "redacted"),
    [
        ({"authorization": "s"}, ["authorization"]),
        ({"authorization": ""}, ["authorization"]),
        ({"headers": {"a.b": "s"}}, ["headers.a.b"]),
        ({"headers": {"authorization": "s"}}, ["headers.authorization"]),
        ({"headers": {"": "s"}}, ["headers."]),
        ({"headers": {"Two Words": "", "ü": "s"}}, ["headers.Two Words", "headers.ü"]),
    ],
    ids=str,
)
def test_redacted_names_each_secret_as_it_was_sent(
    api: Api, door: Door, sent: dict[str, Any], redacted: list[str]
) -> None:
    (entry,) = door.configured(api, tools=[SERVER | sent])["tools"]

    assert entry == SERVER | {"redacted": redacted}


@pytest.mark.behaviour("tools.redacted.absent")
@at_both_doors
@pytest.mark.parametrize("entry", [SERVER, SERVER | {"headers": {}}, PROCESS], ids=["url", "no-headers", "command"])
def test_redacted_is_absent_when_nothing_was_withheld(api: Api, door: Door, entry: dict[str, Any]) -> None:
    (shown,) = door.configured(api, tools=[entry])["tools"]

    assert "redacted" not in shown
    assert "headers" not in shown


@pytest.mark.behaviour("tools.redacted.tells-apart")
def test_a_server_with_credentials_is_told_from_one_without(api: Api) -> None:
    session_id = api.session()
    put(api, session_id, SERVER | {"authorization": "Bearer s"})
    (with_one,) = read(api, session_id)["tools"]

    put(api, session_id, SERVER)

    (without_one,) = read(api, session_id)["tools"]
    assert with_one["redacted"] == ["authorization"]
    assert without_one == SERVER


@pytest.mark.behaviour("tools.text.as-sent", "tools.create.same-configuration")
@at_both_doors
@pytest.mark.parametrize(
    "text",
    [
        {},
        {"verbosity": "low"},
        {"verbosity": "medium"},
        {"verbosity": "high"},
        {"format": {"type": "json_schema", "schema": SCHEMA}},
        {"format": {"type": "json_schema", "schema": {}}},
        {"verbosity": "low", "format": {"type": "json_schema", "schema": {"type": "nonsense"}}},
    ],
    ids=str,
)
def test_text_comes_back_as_it_was_sent(api: Api, door: Door, text: dict[str, Any]) -> None:
    assert door.configured(api, tools=[], text=text)["text"] == text
    assert door.configured(api, text=text)["text"] == text
