"""MCP servers that the emulator itself serves, and sessions that declare them (contract §5)."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

import pytest

from emulator import Emulator
from tests.contract.steps import payloads, said, session_with
from tests.contract.tool_doors import SERVER
from tests.mcp_client import McpClient
from tests.support import Api

if TYPE_CHECKING:
    from emulator import Turn
    from emulator.client.served import ServedServer

KEY: Final = "Token 9f2b7c41d8"
TOOLS: Final[dict[str, Any]] = {
    "search": {"description": "Looks pages up.", "read_only": True, "text": "3 pages found"},
    "write": {"structured": {"written": 1}, "input_schema": {"type": "object", "title": "A page"}},
    "fail": {"is_error": True, "content": [{"type": "text", "text": "no"}, {"type": "text", "text": "way"}]},
}


@pytest.fixture
def docs(api: Api) -> ServedServer:
    """A server that the emulator serves."""
    return api.emulator.mcp.serve("docs", TOOLS)


def results(api: Api, session: str, *tools: str) -> list[Any]:
    """What each of these tools gives in one turn, as plain data."""
    found: list[Any] = []

    async def agent(turn: Turn) -> None:
        found.extend([asdict(await turn.mcp("docs", tool, {"q": "deploy"})) for tool in tools])

    api.emulator.agent(agent, times=1)
    assert api.say(session, "go").status == 202
    return found


def shown(api: Api, session: str) -> list[Any]:
    """What the events of a session say, without their ids."""
    payloads = [event["payload"].items() for event in api.events(session)]
    return [{name: value for name, value in payload if name not in ("toolCallId", "turnId")} for payload in payloads]


@pytest.mark.behaviour("connect.own", "connect.url")
def test_the_credential_and_the_headers_arrive_and_nothing_else_does(api: Api, docs: ServedServer) -> None:
    entry = SERVER | {"url": f"{docs.url}?team=blue", "authorization": KEY, "headers": {"X-Api-Key": "k-1"}}
    session = session_with(api, entry)
    results(api, session, "search")
    assert api.delete(f"/v1/sessions/{session}").status == 200

    requests = docs.requests
    assert [(one.method, one.body and one.body["method"]) for one in requests if one.method != "GET"] == [
        ("POST", "initialize"),
        ("POST", "notifications/initialized"),
        ("POST", "tools/list"),
        ("POST", "tools/call"),
        ("DELETE", None),
    ]
    protocol = {"host", "accept", "accept-encoding", "connection", "content-length", "content-type", "user-agent"}
    protocol |= {"cache-control", "authorization", "x-api-key"}
    for one in requests:
        assert (one.headers["authorization"], one.headers["x-api-key"], one.query) == (KEY, "k-1", "team=blue")
        assert {name for name in one.headers if not name.startswith("mcp-")} <= protocol | {
            "authorization",
            "x-api-key",
        }
    assert [(call.tool, call.arguments) for call in docs.calls] == [("search", {"q": "deploy"})]


@pytest.mark.behaviour("connect.own", "connect.tools")
def test_a_served_server_answers_as_a_simulated_one(api: Api, docs: ServedServer) -> None:
    api.emulator.load({"mcp": {"docs": {"tools": TOOLS}}})
    served, simulated = session_with(api, SERVER | {"url": docs.url}), session_with(api, SERVER)

    assert results(api, served, *TOOLS) == results(api, simulated, *TOOLS)
    assert len(docs.calls) == 3
    assert shown(api, served) == shown(api, simulated)


@pytest.mark.behaviour("connect.own")
def test_what_a_mode_lets_through_is_told_by_the_server(api: Api, docs: ServedServer) -> None:
    session = session_with(api, SERVER | {"url": docs.url}, approval_mode="read_only")
    search, write = results(api, session, "search", "write")
    assert (search["is_error"], write["is_error"]) == (False, True)
    assert [call.tool for call in docs.calls] == ["search"]


@pytest.mark.behaviour("connect.own", "connect.tools")
def test_tools_that_vanish_are_gone_for_a_session_that_has_them(api: Api, docs: ServedServer) -> None:
    docs.script(calls=[{"fault": "ok", "tools": {}}])
    session = session_with(api, SERVER | {"url": docs.url})

    search, write = results(api, session, "search", "write")

    assert search["is_error"] is False
    assert write["content"][0]["text"] == "docs: the server has this tool no more"


@pytest.mark.behaviour("connect.own", "connect.tools")
def test_tools_that_appear_can_be_called_at_once(api: Api, docs: ServedServer) -> None:
    session = session_with(api, SERVER | {"url": docs.url})
    results(api, session, "search")
    docs.offer({"read": {"text": "a page"}})
    assert results(api, session, "read")[0]["content"][0]["text"] == "a page"
    docs.stop()
    assert results(api, session, "read")[0]["content"][0]["text"] == "docs: the server answered 404"


@pytest.mark.behaviour("connect.own", "connect.calls")
def test_a_connection_goes_on_after_whatever_went_wrong(api: Api, docs: ServedServer) -> None:
    docs.script(calls=["drop", "malformed", "unauthorized", "wrong_protocol", "refuse", "error", "ok"])
    session = session_with(api, SERVER | {"url": docs.url})
    assert [result["is_error"] for result in results(api, session, *["search"] * 7)] == [True] * 6 + [False]
    assert [one.body["method"] for one in docs.requests if one.body is not None].count("initialize") == 1


@pytest.mark.behaviour("connect.own")
def test_calls_side_by_side_each_take_their_own_time(api: Api, docs: ServedServer) -> None:
    slow = [{"fault": "slow", "tool": "search", "seconds": 5}, {"fault": "slow", "tool": "write", "seconds": 9}]
    docs.script(calls=slow)

    async def agent(turn: Turn) -> None:
        await turn.together(turn.mcp("docs", "search"), turn.mcp("docs", "write"))
        await turn.say("done")

    api.emulator.agent(agent)
    session = session_with(api, SERVER | {"url": docs.url})
    api.say(session, "go")
    api.emulator.clock.advance(5)
    assert len(payloads(api, session, "agent.tool_result")) == 1
    api.emulator.clock.advance(4)
    assert said(api, session) == ["done"]


@pytest.mark.behaviour("connect.own", "connect.reasons")
def test_a_server_that_is_served_no_more_is_not_there(api: Api, docs: ServedServer) -> None:
    docs.stop()
    session = session_with(api, SERVER | {"url": docs.url})
    api.say(session, "hello")
    (told,) = payloads(api, session, "mcp.unavailable")
    assert told["reason"] == "the server answered 404"


@pytest.mark.behaviour("connect.own")
@pytest.mark.gobare(mcp_except=["docs"])
def test_it_is_connected_to_by_any_name_of_this_machine_and_whatever_is_excepted(api: Api, docs: ServedServer) -> None:
    session = session_with(api, SERVER | {"url": docs.url.replace("127.0.0.1", "localhost")})
    results(api, session, "search")
    assert len(docs.calls) == 1


@pytest.mark.behaviour("connect.own")
def test_what_strangers_are_not_told_is_not_told_them(docs: ServedServer) -> None:
    docs.script([{"fault": "slow", "seconds": 0.01}])
    with McpClient(docs.url) as client:
        assert "_meta" not in client.initialize().json["result"]


@pytest.mark.behaviour("connect.ends")
def test_an_emulator_that_stops_with_sessions_on_its_own_servers_leaves_no_task() -> None:
    with Emulator() as emulator:
        api = Api(emulator)
        docs = emulator.mcp.serve("docs", TOOLS)
        docs.script(calls=["ok", "hang"])
        for _ in range(3):
            results(api, session_with(api, SERVER | {"url": docs.url}), "search")
        loop = emulator.loop
    assert loop.run(_tasks()) == []


async def _tasks() -> list[str]:
    return [repr(task) for task in asyncio.all_tasks() if task is not asyncio.current_task()]
