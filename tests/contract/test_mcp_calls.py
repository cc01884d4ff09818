"""Scripted calls of MCP tools: what becomes of a turn that waits for one, and tools that come and go (contract §5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from emulator import ScriptError
from emulator.domain.limits import WORKSPACE_SECONDS
from tests.contract.outages import FOUND, TOOLS
from tests.contract.steps import payloads, said, session_with
from tests.contract.tool_doors import SERVER, put

if TYPE_CHECKING:
    from emulator import Turn
    from tests.support import Api

pytestmark = pytest.mark.gobare(scenario={"mcp": {"docs": {"tools": TOOLS}}})
REQUIRED: Final = {**SERVER, "required": True}
CANCEL: Final = {"type": "input.cancel"}


async def searches(turn: Turn) -> None:
    """An agent that calls one tool and tells what came of it."""
    result = await turn.mcp("docs", "search")
    await turn.say(f"{turn.message}: {result.text}")


def searching(api: Api, *calls: Any) -> str:
    """A session whose agent is on a call that is scripted so."""
    api.emulator.agent(searches)
    api.emulator.mcp.calls("docs", calls)
    session = session_with(api, SERVER)
    assert api.say(session, "one").status == 202
    return session


def statuses(api: Api, session: str) -> list[str]:
    return [turn["status"] for turn in api.turns(session)]


# A turn that waits for a server


@pytest.mark.behaviour("mcp.fault.call-seconds")
def test_a_message_that_arrives_during_a_slow_call_waits_for_its_turn(api: Api) -> None:
    session = searching(api, {"fault": "slow", "seconds": 30})

    answer = api.say(session, "two")
    assert (answer.status, statuses(api, session)) == (202, ["working", "working"])
    api.emulator.clock.advance(30)

    assert (said(api, session), statuses(api, session)) == (
        [f"one: {FOUND}", f"two: {FOUND}"],
        ["completed", "completed"],
    )


@pytest.mark.behaviour("mcp.fault.call-hangs")
def test_a_cancel_ends_a_call_that_hangs_and_the_queue_goes_on(api: Api) -> None:
    session = searching(api, "hang")
    api.say(session, "two")

    assert api.send(session, CANCEL).status == 202
    api.emulator.settle()

    assert statuses(api, session) == ["cancelled", "completed"]
    assert said(api, session) == [f"two: {FOUND}"]
    assert (len(payloads(api, session, "agent.tool_call")), len(payloads(api, session, "agent.tool_result"))) == (2, 1)


@pytest.mark.behaviour("mcp.fault.call-hangs")
def test_a_session_can_be_deleted_during_a_call_that_hangs(api: Api) -> None:
    session = searching(api, "hang")

    assert api.delete(f"/v1/sessions/{session}").status == 200

    report = api.emulator.report()
    assert (report["running_turns"], report["script_errors"], report["agent_not_at_rest"]) == ([], [], [])


@pytest.mark.behaviour("mcp.fault.call-hangs")
def test_a_call_that_hangs_ends_with_the_workspace(api: Api) -> None:
    session = searching(api, "hang")

    api.emulator.clock.advance(WORKSPACE_SECONDS)

    (turn,) = api.turns(session)
    assert (turn["status"], turn["error"]["code"]) == ("failed", "sandbox_unavailable")
    assert api.say(session, "two").status == 202
    assert said(api, session) == [f"two: {FOUND}"]


@pytest.mark.behaviour("mcp.fault.call-hangs", "mcp.fault.call-of-a-tool")
def test_two_calls_can_hang_beside_one_that_does_not(api: Api) -> None:
    found: list[str] = []

    async def once(turn: Turn, tool: str) -> None:
        found.append((await turn.mcp("docs", tool)).text)

    @api.emulator.agent
    async def agent(turn: Turn) -> None:
        await turn.together(once(turn, "search"), once(turn, "fetch"), once(turn, "search"))

    api.emulator.mcp.calls("docs", [{"fault": "hang", "tool": "search"}, {"fault": "hang", "tool": "search"}])
    session = session_with(api, SERVER)

    assert api.say(session, "hello").status == 202

    assert (found, statuses(api, session)) == (["page 12"], ["working"])
    assert len(payloads(api, session, "agent.tool_call")) == 3
    api.send(session, CANCEL)
    api.emulator.settle()
    assert (found, statuses(api, session)) == (["page 12"], ["cancelled"])
    assert api.emulator.report()["script_errors"] == []


@pytest.mark.behaviour("mcp.fault.call-seconds")
def test_calls_side_by_side_each_take_their_own_seconds(api: Api) -> None:
    @api.emulator.agent
    async def agent(turn: Turn) -> None:
        results = await turn.together(turn.mcp("docs", "search"), turn.mcp("docs", "fetch"))
        await turn.say(", ".join(result.text for result in results))

    slow = {"fault": "slow", "tool": "fetch", "seconds": 5}
    api.emulator.mcp.calls("docs", [slow, {"fault": "slow", "seconds": 20}])
    session = session_with(api, SERVER)
    api.say(session, "hello")

    api.emulator.clock.advance(5)
    assert len(payloads(api, session, "agent.tool_result")) == 1
    api.emulator.clock.advance(15)

    assert said(api, session) == [f"{FOUND}, page 12"]


@pytest.mark.behaviour("mcp.fault.call-of-a-tool")
def test_each_call_takes_the_first_entry_that_suits_it(api: Api) -> None:
    texts: list[str] = []

    @api.emulator.agent
    async def agent(turn: Turn) -> None:
        texts.extend([(await turn.mcp("docs", tool)).text for tool in ("search", "search", "fetch", "search")])

    error = {"fault": "error", "text": "no fetch", "tool": "fetch"}
    api.emulator.mcp.calls("docs", [error, "ok", {"fault": "error", "text": "no search", "tool": "search"}])
    api.say(session_with(api, SERVER), "hello")

    assert texts == [FOUND, "no search", "no fetch", FOUND]


# Tools that come and go


@pytest.mark.behaviour("mcp.tools.change", "mcp.tools.gone")
def test_a_tool_may_appear_and_vanish_within_a_turn(api: Api) -> None:
    told: list[str] = []

    @api.emulator.agent
    async def agent(turn: Turn) -> None:
        for tool in ("search", "search", "summarise", "search"):
            result = await turn.mcp("docs", tool)
            told.append(f"{result.is_error} {result.text}")
        with pytest.raises(ScriptError, match=r"'fetsh' of 'docs', which has no such tool \(it has: summarise\)"):
            await turn.mcp("docs", "fetsh")

    api.emulator.mcp.calls("docs", [{"tools": {"summarise": {"text": "in short"}}}])
    session = session_with(api, SERVER)
    api.say(session, "hello")

    gone = "docs: the server has this tool no more"
    assert told == [f"False {FOUND}", f"True {gone}", "False in short", f"True {gone}"]
    results = payloads(api, session, "agent.tool_result")
    assert [result["isError"] for result in results] == [False, True, False, True]
    assert api.emulator.report()["script_errors"] == []


@pytest.mark.behaviour("mcp.tools.gone")
def test_a_tool_that_was_there_at_the_connect_and_never_called_may_be_gone(api: Api) -> None:
    session = session_with(api, SERVER)
    api.say(session, "hello")
    api.put("/_emulator/mcp/docs", {"tools": {}}, token=None)

    api.emulator.agent(searches)
    api.say(session, "one")

    assert said(api, session)[-1] == "one: docs: the server has this tool no more"


@pytest.mark.behaviour("mcp.tools.change")
def test_a_server_may_offer_other_tools_from_a_connect_on(api: Api) -> None:
    api.emulator.agent(searches)
    later = {"search": {"text": "4 pages found"}}
    api.emulator.mcp.script("docs", ["up", {"state": "down", "tools": later}])
    sessions = [session_with(api, SERVER) for _ in range(3)]

    for session in sessions:
        api.say(session, "one")
    api.say(sessions[0], "two")

    # The first saw the change at its next call, without connecting again.
    assert said(api, sessions[0]) == [f"one: {FOUND}", "two: 4 pages found"]
    assert said(api, sessions[1]) == ["one: docs is unavailable: fetch failed"]
    assert said(api, sessions[2]) == ["one: 4 pages found"]


@pytest.mark.behaviour("mcp.tools.change", "mcp.tools.gone")
def test_a_tool_of_which_nothing_is_said_stays_the_servers_own(api: Api) -> None:
    session = searching(api, "ok")
    body: dict[str, Any] = {"tools": {"search": {}, "new": {}}}
    assert api.put("/_emulator/mcp/docs", body, token=None).json["tools"] == ["search", "new"]

    @api.emulator.agent(when={"turn": 2})
    async def agent(turn: Turn) -> None:
        texts = [(await turn.mcp("docs", tool)).text for tool in ("search", "new", "fetch")]
        await turn.say(" | ".join(texts))

    api.say(session, "two")
    assert said(api, session)[-1] == f"{FOUND} |  | docs: the server has this tool no more"
    # What is said of it is changed, and with what was scripted the change is taken back.
    api.put("/_emulator/mcp/docs", {"tools": {"search": {"text": "none"}}}, token=None)
    api.say(session, "three")
    api.delete("/_emulator/mcp/docs", token=None)
    api.emulator.mcp.calls("docs", ["ok"])
    api.say(session, "four")
    assert said(api, session)[-2:] == ["three: none", f"four: {FOUND}"]


@pytest.mark.behaviour("mcp.tools.change")
def test_a_tool_that_appears_is_narrowed_and_judged_like_any_other(api: Api) -> None:
    tools = {"look": {"read_only": True, "text": "seen"}, "write": {"text": "written"}, "hidden": {"read_only": True}}
    api.put("/_emulator/mcp/docs", {"tools": tools}, token=None)
    told: list[str] = []

    @api.emulator.agent
    async def agent(turn: Turn) -> None:
        told.extend([(await turn.mcp("docs", tool)).text for tool in ("look", "write")])
        with pytest.raises(ScriptError, match="`allowed_tools` leaves out"):
            await turn.mcp("docs", "hidden")

    entry = {**SERVER, "allowed_tools": ["look", "write"]}
    api.say(session_with(api, entry, approval_mode="read_only"), "hello")

    seen, denied = told
    assert seen == "seen"
    assert "read-only" in denied
    assert api.emulator.report()["script_errors"] == []


# Connects


@pytest.mark.behaviour("mcp.outage.counts-attempts", "mcp.required.tries-again")
def test_every_attempt_at_a_required_server_counts(api: Api) -> None:
    api.emulator.agent(searches)
    api.emulator.mcp.down("docs", fault="unauthorized", times=3)
    session = session_with(api, REQUIRED)
    path = f"/v1/sessions/{session}/files"
    files = {"files": [{"path": "a.txt", "data": "eA=="}]}

    attempts = [api.say(session, "one"), api.post(path, files), api.say(session, "two"), api.post(path, files)]

    assert [answer.status for answer in attempts] == [400, 400, 400, 200]
    assert all("docs: the server answered 401" in answer.message for answer in attempts[:3])
    assert (api.say(session, "three").status, said(api, session)) == (202, [f"three: {FOUND}"])


@pytest.mark.behaviour("mcp.outage.flapping", "mcp.optional.once-a-start")
def test_a_server_that_comes_and_goes_is_told_of_once_for_each_start(api: Api) -> None:
    api.emulator.agent(searches)
    api.emulator.mcp.script("docs", ["down", "up", "unauthorized", "hang", "up", "refuse"])
    session = session_with(api, SERVER)
    reasons: list[list[str]] = []

    for start in range(7):
        if start:
            put(api, session, SERVER)
        before = len(payloads(api, session, "mcp.unavailable"))
        for message in ("one", "two"):
            assert api.say(session, message).status == 202
        reasons.append([payload["reason"] for payload in payloads(api, session, "mcp.unavailable")[before:]])

    timed_out = "the server did not answer within 10s"
    assert reasons == [["fetch failed"], [], ["the server answered 401"], [timed_out], [], ["fetch failed"], []]


@pytest.mark.behaviour("mcp.fault.connect", "mcp.fault.call", "mcp.outage.scenario")
def test_a_scenario_says_all_of_it(api: Api) -> None:
    def docs(**said: Any) -> None:
        api.emulator.load({"mcp": {"docs": {**said, "tools": TOOLS}}})

    def tells() -> str:
        session = session_with(api, SERVER)
        api.say(session, "?")
        return said(api, session)[-1]

    api.emulator.agent(searches)
    docs(fault="wrong_protocol", times=1, calls=["drop", {"fault": "error", "tool": "search", "text": "no"}])
    assert [tells() for _ in range(4)] == [
        "?: docs is unavailable: the server does not speak MCP",
        "?: docs: the connection was lost during the call",
        "?: no",
        f"?: {FOUND}",
    ]
    docs(script=["unauthorized", {"fault": "refuse", "tools": {"search": {"text": "4 pages found"}}}])
    assert [tells() for _ in range(3)] == [
        "?: docs is unavailable: the server answered 401",
        "?: docs is unavailable: fetch failed",
        "?: 4 pages found",
    ]
    # Another scenario brings its own tools, and takes with it what the one before had changed.
    docs()
    assert tells() == f"?: {FOUND}"
