"""What the agent sees of an MCP server, and what a client sees of its use (contract §5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from emulator import ScriptError
from tests.contract.tool_doors import PROCESS, SERVER, put

if TYPE_CHECKING:
    from tests.support import Api

SCENARIO: Final[dict[str, Any]] = {
    "mcp": {
        "docs": {
            "tools": {
                "search": {"text": "3 pages found", "read_only": True},
                "fetch": {"content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]},
                "count": {"structured": {"pages": 3}},
                "drop": {"text": "not allowed", "is_error": True},
            }
        },
        "notes": {"tools": {"search": {"text": "2 notes found"}}},
    }
}
TOOLS: Final = ("search", "fetch", "count", "drop")

described = pytest.mark.gobare(scenario=SCENARIO)


def callable_tools(api: Api, session_id: str, server: str = "docs") -> list[str]:
    """The tools of a server that the agent of a session can call."""
    called: list[str] = []

    @api.emulator.agent
    async def agent(turn: Any) -> None:
        for tool in TOOLS:
            try:
                await turn.mcp(server, tool, {})
            except ScriptError as refused:
                assert tool in str(refused)  # noqa: PT017
            else:
                called.append(tool)

    api.say(session_id, "call everything")
    return called


@described
@pytest.mark.behaviour("mcp.tools.name")
@pytest.mark.parametrize("entry", [SERVER, PROCESS | {"name": "docs"}], ids=["url", "command"])
def test_a_servers_tool_is_named_after_server_and_tool(api: Api, entry: dict[str, Any]) -> None:
    results: list[Any] = []

    @api.emulator.agent
    async def agent(turn: Any) -> None:
        results.append(await turn.mcp("docs", "search", {"q": "deploy"}))

    session_id = api.session({"agent": {"tools": [entry]}})
    api.say(session_id, "hello")

    assert [(result.text, result.is_error) for result in results] == [("3 pages found", False)]
    call, outcome = [event for event in api.events(session_id) if event["type"].startswith("agent.tool_")]
    call_id = call["payload"]["toolCallId"]
    assert call["payload"] == {"toolCallId": call_id, "toolName": "mcp_docs_search", "args": {"q": "deploy"}}
    assert outcome["payload"] == {
        "toolCallId": call_id,
        "toolName": "mcp_docs_search",
        "isError": False,
        "cancelled": False,
        "summary": "3 pages found",
    }
    items = [item for item in api.items(session_id) if item["type"] == "tool_call"]
    assert [(item["detail"]["event"], item["detail"]["toolName"]) for item in items] == [
        ("agent.tool_call", "mcp_docs_search"),
        ("agent.tool_result", "mcp_docs_search"),
    ]


@described
@pytest.mark.behaviour("mcp.tools.name")
def test_tools_of_one_name_are_told_apart_by_their_servers(api: Api) -> None:
    texts: list[str] = []

    @api.emulator.agent
    async def agent(turn: Any) -> None:
        texts.extend([(await turn.mcp(server, "search", {})).text for server in ("docs", "notes")])

    session_id = api.session({"agent": {"tools": [SERVER, PROCESS]}})
    api.say(session_id, "hello")

    assert texts == ["3 pages found", "2 notes found"]
    calls = [event["payload"]["toolName"] for event in api.events(session_id) if event["type"] == "agent.tool_call"]
    assert calls == ["mcp_docs_search", "mcp_notes_search"]


@described
@pytest.mark.behaviour("mcp.tools.name")
def test_the_result_is_what_the_server_gave(api: Api) -> None:
    results: list[Any] = []

    @api.emulator.agent
    async def agent(turn: Any) -> None:
        for tool in ("fetch", "count", "drop"):
            results.append(await turn.mcp("docs", tool, {}))  # noqa: PERF401

    session_id = api.session({"agent": {"tools": [SERVER]}})
    api.say(session_id, "hello")

    fetched, counted, dropped = results
    assert fetched.text == "one\ntwo"
    assert fetched.content == [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]
    assert counted.structured == {"pages": 3}
    assert (dropped.text, dropped.is_error) == ("not allowed", True)
    outcomes = [event["payload"] for event in api.events(session_id) if event["type"] == "agent.tool_result"]
    assert [outcome["isError"] for outcome in outcomes] == [False, False, True]


@described
@pytest.mark.behaviour("mcp.tools.all")
def test_without_allowed_tools_every_tool_is_there(api: Api) -> None:
    session_id = api.session({"agent": {"tools": [SERVER]}})

    assert callable_tools(api, session_id) == list(TOOLS)


@described
@pytest.mark.behaviour("mcp.tools.allowed")
@pytest.mark.parametrize(
    ("allowed", "expected"),
    [
        (["search", "fetch"], ["search", "fetch"]),
        (["count"], ["count"]),
        (["drop", "nonsense", "drop"], ["drop"]),
        (["Search", "sear", "search*", "mcp_docs_search", ""], []),
        ([], []),
    ],
    ids=str,
)
def test_only_the_allowed_tools_exist_for_the_agent(api: Api, allowed: list[str], expected: list[str]) -> None:
    session_id = api.session({"agent": {"tools": [SERVER | {"allowed_tools": allowed}]}})

    assert callable_tools(api, session_id) == expected
    called = [event["payload"]["toolName"] for event in api.events(session_id) if event["type"] == "agent.tool_call"]
    assert called == [f"mcp_docs_{tool}" for tool in expected]


@described
@pytest.mark.behaviour("mcp.tools.allowed")
def test_the_tools_of_one_server_are_not_those_of_another(api: Api) -> None:
    tools = [SERVER | {"allowed_tools": ["search"]}, PROCESS | {"allowed_tools": []}]
    session_id = api.session({"agent": {"tools": tools}})

    assert callable_tools(api, session_id, "docs") == ["search"]
    assert callable_tools(api, session_id, "notes") == []


@described
@pytest.mark.behaviour("mcp.tools.allowed")
def test_a_put_changes_which_tools_are_allowed(api: Api) -> None:
    session_id = api.session({"agent": {"tools": [SERVER | {"allowed_tools": ["search"]}]}})
    assert callable_tools(api, session_id) == ["search"]

    put(api, session_id, SERVER | {"allowed_tools": ["fetch"]})

    assert callable_tools(api, session_id) == ["fetch"]


@described
@pytest.mark.behaviour("mcp.tools.own-servers-only")
@pytest.mark.parametrize("tools", [[], [PROCESS], [SERVER | {"name": "Docs"}]], ids=["none", "another", "nearly"])
def test_a_server_that_is_not_declared_is_not_there(api: Api, tools: list[dict[str, Any]]) -> None:
    told: list[str] = []

    @api.emulator.agent
    async def agent(turn: Any) -> None:
        with pytest.raises(ScriptError) as refused:
            await turn.mcp("docs", "search", {})
        told.append(str(refused.value))

    session_id = api.session({"agent": {"tools": tools}})
    api.say(session_id, "hello")

    assert len(told) == 1
    assert "docs" in told[0]
    assert [event["type"] for event in api.events(session_id) if event["type"].startswith("agent.")] == []


@pytest.mark.behaviour("mcp.tools.all")
def test_a_server_nobody_described_is_reachable_and_has_no_tools(api: Api) -> None:
    session_id = api.session({"agent": {"tools": [SERVER | {"required": True}]}})

    assert callable_tools(api, session_id) == []
    assert [turn["status"] for turn in api.turns(session_id)] == ["completed"]
