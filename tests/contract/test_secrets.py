"""Secrets in tool sets and in bodies: they go in by every door and come out by none (contract §5)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.contract.tool_doors import BUILT_INS, DOORS, FUNCTION, PROCESS, SERVER, put

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.contract.canaries import Watch

MISSPELT: Final = (
    "Authorization",
    "authorisation",
    "auth",
    "bearer",
    "token",
    "api_key",
    "header",
    "Headers",
    "env",
    "x",
)


def everywhere(watch: Watch, tools: Any) -> None:
    """Send a set that must be refused through both doors."""
    for door in DOORS:
        assert door.send(watch, tools=tools).status == 400


@pytest.mark.behaviour("secrets.tool-credentials")
def test_credentials_of_a_server_come_out_nowhere(watch: Watch) -> None:
    mark = watch.mark()

    @watch.emulator.agent
    async def agent(turn: Any) -> None:
        await turn.say(f"{turn.session} {turn.session.tools}")
        await turn.mcp("down", "search", {})
        await turn.call("lookup_order")

    def tools() -> list[dict[str, Any]]:
        secrets = {"authorization": f"Bearer {watch.secret()}", "headers": {"x-api-key": watch.secret()}}
        down = SERVER | {"name": "down", "authorization": watch.token(), "headers": {"Cookie": watch.secret()}}
        return [SERVER | secrets, down, FUNCTION | {"description": mark}]

    watch.emulator.mcp.down("down")
    session_id = watch.session({"agent": {"tools": tools()}, "input": "hello"})
    put(watch, session_id, *tools())
    watch.say(session_id, "again")
    watch.answer(session_id, watch.actions(session_id)[0])
    watch.emulator.mcp.down("docs")
    put(watch, session_id, *(tool | {"required": True} if tool["type"] == "mcp" else tool for tool in tools()))
    watch.send(session_id, {"type": "input.cancel"})
    assert watch.say(session_id, "once more").status == 400

    watch.check()


@pytest.mark.behaviour("secrets.agent")
def test_the_agent_sees_tools_as_a_client_reads_them(watch: Watch) -> None:
    seen: list[Any] = []

    @watch.emulator.agent
    async def agent(turn: Any) -> None:
        seen.append(turn.session.tools)

    entry = SERVER | {"authorization": watch.secret(), "headers": {"x-api-key": watch.secret()}}
    session_id = watch.session({"agent": {"tools": [entry]}, "input": "hello"})

    assert seen == [watch.get(f"/v1/sessions/{session_id}/tools").json["tools"]]
    assert seen[0][0]["redacted"] == ["authorization", "headers.x-api-key"]
    watch.check()


@pytest.mark.behaviour("secrets.idempotent-replays")
def test_a_replayed_answer_withholds_the_same(watch: Watch) -> None:
    session_id = watch.session()
    key = {"idempotency-key": "job-1"}
    for _ in range(2):
        body = {"tools": [SERVER | {"authorization": watch.secret()}]}
        assert watch.put(f"/v1/sessions/{session_id}/tools", body, headers=key).status == 200

    watch.check()


# Values and fields that are refused

WRONG: Final[dict[str, Callable[[str], dict[str, Any]]]] = {
    "authorization-list": lambda secret: {"authorization": [secret]},
    "authorization-object": lambda secret: {"authorization": {"bearer": secret}},
    "authorization-key": lambda secret: {"authorization": {secret: True}},
    "authorization-deep": lambda secret: {"authorization": [{"x": [secret]}]},
    "headers-string": lambda secret: {"headers": f"x-api-key: {secret}"},
    "headers-list": lambda secret: {"headers": [f"x-api-key: {secret}", secret]},
    "headers-pairs": lambda secret: {"headers": [["x-api-key", secret]]},
    "headers-list-of-objects": lambda secret: {"headers": [{"name": "x-api-key", "value": secret}]},
    "headers-value-list": lambda secret: {"headers": {"x-api-key": [secret]}},
    "headers-value-object": lambda secret: {"headers": {"x-api-key": {"value": secret}}},
    "headers-beside-a-wrong-one": lambda secret: {"headers": {"x-api-key": secret, "x": None}},
    "valid-beside-a-wrong-one": lambda secret: {"authorization": secret, "required": "yes"},
    "of-the-other-transport": lambda secret: {"url": None, "command": "x", "authorization": secret},
    "beside-a-bad-address": lambda secret: {"url": "nowhere", "authorization": secret, "headers": {"x": secret}},
    "with-redacted": lambda secret: {"authorization": secret, "redacted": ["authorization", secret]},
}


@pytest.mark.behaviour("secrets.refused-values")
@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG.keys())
def test_a_refused_secret_is_neither_repeated_nor_kept(watch: Watch, wrong: Callable[[str], dict[str, Any]]) -> None:
    mark = watch.mark()

    everywhere(watch, [FUNCTION | {"description": mark}, SERVER | wrong(watch.secret())])

    watch.check()


@pytest.mark.behaviour("secrets.refused-values")
def test_a_secret_in_a_set_that_is_refused_for_something_else_is_not_kept(watch: Watch) -> None:
    mark = watch.mark()

    def server() -> dict[str, Any]:
        return SERVER | {"authorization": watch.secret(), "headers": {"x-api-key": watch.secret()}}

    everywhere(watch, [server(), server(), FUNCTION | {"description": mark}])
    everywhere(watch, [server() | {"name": f"s{n}"} for n in range(33)])
    watch.put(f"/v1/sessions/{watch.session()}/tools", {"tools": [server()], "x": watch.secret()})
    watch.put("/v1/sessions/nobody/tools", {"tools": [server()]})
    watch.post(f"/v1/sessions/{watch.session()}/tools", {"tools": [server()]})

    watch.check()


@pytest.mark.behaviour("secrets.misspelt-fields")
@pytest.mark.parametrize("field", MISSPELT)
def test_a_secret_behind_an_unknown_field_is_not_kept(watch: Watch, field: str) -> None:
    mark = watch.mark()

    for entry in (SERVER, PROCESS, FUNCTION, {"type": "browse"}):
        for value in (watch.secret(), [watch.secret()], {"x": {"y": watch.secret()}}):
            everywhere(watch, [FUNCTION | {"name": "first", "description": mark}, entry | {field: value}])

    watch.check()


@pytest.mark.behaviour("secrets.misspelt-fields")
def test_a_secret_behind_an_unknown_field_anywhere_in_a_body_is_not_kept(watch: Watch) -> None:
    session_id = watch.session()
    path = f"/v1/sessions/{session_id}"

    def secret() -> dict[str, Any]:
        return {"authorization": watch.secret(), "secret": {"key": [watch.secret()]}}

    message = {"type": "input.message", "content": "hello"}
    refused = [
        watch.post("/v1/sessions", secret()),
        watch.post("/v1/sessions", {"agent": secret()}),
        watch.post("/v1/sessions", {"environment": secret()}),
        watch.post("/v1/sessions", {"agent": {"text": secret()}}),
        watch.post("/v1/sessions", {"agent": {"permission_rules": [{"decision": "allow", **secret()}]}}),
        watch.post("/v1/sessions", {"agent": {"tool": [SERVER | secret()]}}),
        watch.patch(path, secret()),
        watch.patch(path, {"agent": secret()}),
        watch.put(f"{path}/tools", secret()),
        watch.put(f"{path}/tools", {"text": secret()}),
        watch.put(f"{path}/tools", {"text": {"format": {"type": "json_schema", "schema": {}, **secret()}}}),
        watch.post(f"{path}/events", {"events": [message], **secret()}),
        watch.post(f"{path}/events", {"events": [message | secret()]}),
        watch.post(f"{path}/events", {"events": [{"type": "input.login", **secret()}]}),
        watch.post(f"{path}/events", {"events": [{**secret()}]}),
        watch.post(f"{path}/events", {"events": secret()}),
        watch.post(f"{path}/events", {"events": [message | {"content": [secret()]}]}),
        watch.post(f"{path}/events", {"events": [message | {"content": secret()}]}),
    ]

    assert [answer.status for answer in refused] == [400] * len(refused)
    watch.check()


MISPLACED: Final[dict[str, Callable[[dict[str, Any]], Any]]] = {
    "an-object-for-the-list": lambda entry: entry,
    "a-list-in-the-list": lambda entry: [[entry]],
    "by-name": lambda entry: {"docs": entry},
    "text": lambda entry: json.dumps([entry]),
    "texts-in-the-list": lambda entry: [json.dumps(entry)],
    "no-type": lambda entry: [{key: value for key, value in entry.items() if key != "type"}],
    "unknown-type": lambda entry: [entry | {"type": "http"}],
    "wrapped": lambda entry: [{"type": "mcp", "mcp": entry}],
    "in-the-name": lambda entry: [{"type": "mcp", "name": entry, "url": "https://x.example"}],
    "in-the-url": lambda entry: [{"type": "mcp", "name": "docs", "url": entry}],
    "in-allowed-tools": lambda entry: [SERVER | {"allowed_tools": [entry]}],
    "for-allowed-tools": lambda entry: [SERVER | {"allowed_tools": entry}],
    "in-args": lambda entry: [PROCESS | {"args": [entry]}],
    "in-env-refs": lambda entry: [PROCESS | {"env_refs": {"docs": entry}}],
    "in-required": lambda entry: [SERVER | {"required": entry}],
    "in-the-timeout": lambda entry: [FUNCTION | {"timeout_seconds": entry}],
    "in-the-description": lambda entry: [FUNCTION | {"description": [entry]}],
    "for-parameters": lambda entry: [FUNCTION | {"parameters": [entry]}],
    "in-a-built-in": lambda entry: [{"type": name, "config": entry} for name in BUILT_INS],
    "as-the-type": lambda entry: [{"type": entry}],
}


@pytest.mark.behaviour("secrets.misplaced")
@pytest.mark.parametrize("place", MISPLACED.values(), ids=MISPLACED.keys())
def test_a_whole_entry_in_the_wrong_place_is_not_kept_with_its_secrets(
    watch: Watch, place: Callable[[dict[str, Any]], Any]
) -> None:
    entry = SERVER | {"authorization": f"Bearer {watch.secret()}", "headers": {"x-api-key": watch.secret()}}

    everywhere(watch, place(entry))

    watch.check()


@pytest.mark.behaviour("secrets.misplaced")
@pytest.mark.parametrize("field", ["title", "metadata", "parent_session_id", "agent", "environment", "input"])
def test_an_entry_in_the_place_of_another_field_is_not_kept(watch: Watch, field: str) -> None:
    entry = SERVER | {"authorization": watch.secret(), "headers": {"x-api-key": watch.secret()}}

    # Metadata holds strings of any name, so that an entry there is one for the most part.
    for value in ([entry], {"x": entry}) if field == "metadata" else (entry, [entry], {"x": entry}):
        assert watch.post("/v1/sessions", {field: value}).status == 400

    watch.check()
