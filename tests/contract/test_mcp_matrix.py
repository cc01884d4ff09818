"""Every way an MCP server can go wrong, for every kind of server, required and not (contract §5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from emulator import ControlError
from tests.contract.outages import CALLS, CONNECTS, FOUND, KINDS
from tests.contract.steps import payloads, said, session_with, status

if TYPE_CHECKING:
    from collections.abc import Iterator

    from emulator import Turn
    from tests.contract.outages import CallCase, ConnectCase, Server
    from tests.support import Api


@pytest.fixture(params=list(KINDS))
def server(request: pytest.FixtureRequest, api: Api) -> Iterator[Server]:
    """A server called docs, which is there."""
    kind: str = request.param
    with KINDS[kind](api) as server:
        yield server


async def searches(turn: Turn) -> None:
    """An agent that calls one tool and tells what came of it."""
    result = await turn.mcp("docs", "search", {"q": turn.message})
    await turn.say(f"{'error' if result.is_error else 'found'}: {result.text}")


@pytest.mark.behaviour("mcp.fault.connect", "mcp.fault.connect-slow", "mcp.outage.script")
@pytest.mark.parametrize("required", [False, True], ids=["optional", "required"])
@pytest.mark.parametrize("case", CONNECTS.values(), ids=CONNECTS)
def test_a_connect_ends_as_it_is_scripted(api: Api, server: Server, case: ConnectCase, required: bool) -> None:
    if server.on_the_wire and case.worded:
        with pytest.raises(ControlError, match="finds its own words"):
            server.connects([case.entry])
        return
    api.emulator.agent(searches)
    server.connects([case.entry])
    session = session_with(api, {**server.entry, "required": required})
    before, events = api.emulator.clock.now(), len(api.events(session))

    answer = api.say(session, "hello")

    passed = api.emulator.clock.now() - before
    # Besides, each persisted event takes a millisecond.
    assert passed == case.seconds * 1000 + len(api.events(session)) - events
    if case.reason is None:
        assert (answer.status, said(api, session)) == (202, [f"found: {FOUND}"])
    elif required:
        assert answer.status == 400
        assert f"failed to initialise — docs: {case.reason}. That server is" in answer.message
        assert status(api, session) == "failed"
        # It is tried again, and meets what comes after.
        assert (api.say(session, "again").status, said(api, session)) == (202, [f"found: {FOUND}"])
    else:
        told = [{"server": "docs", "name": "docs", "reason": case.reason}]
        assert (answer.status, payloads(api, session, "mcp.unavailable")) == (202, told)
        assert said(api, session) == [f"error: docs is unavailable: {case.reason}"]


@pytest.mark.behaviour("mcp.fault.call", "mcp.fault.call-seconds", "mcp.fault.call-hangs")
@pytest.mark.parametrize("required", [False, True], ids=["optional", "required"])
@pytest.mark.parametrize("case", CALLS.values(), ids=CALLS)
def test_a_call_ends_as_it_is_scripted(api: Api, server: Server, case: CallCase, required: bool) -> None:
    text = case.on_the_wire if server.on_the_wire and case.on_the_wire is not None else case.text
    api.emulator.agent(searches)
    server.calls([case.entry])
    session = session_with(api, {**server.entry, "required": required})

    assert api.say(session, "hello").status == 202

    if case.seconds != 0:
        assert len(payloads(api, session, "agent.tool_call")) == 1
        assert (status(api, session), payloads(api, session, "agent.tool_result")) == ("working", [])
        api.emulator.clock.advance((case.seconds or 10**6) - 0.5)
        assert payloads(api, session, "agent.tool_result") == []
        api.emulator.clock.advance(0.5)
    if case.seconds is None:
        assert [turn["status"] for turn in api.turns(session)] == ["failed"]
        assert (said(api, session), payloads(api, session, "agent.tool_result")) == ([], [])
    else:
        (told,) = said(api, session)
        assert told == (f"found: {FOUND}" if text is None else f"error: {text}")
        (result,) = payloads(api, session, "agent.tool_result")
        assert (result["isError"], result["summary"]) == (text is not None, text or FOUND)
        assert [turn["status"] for turn in api.turns(session)] == ["completed"]
    # The next one finds everything as it should be.
    assert api.say(session, "again").status == 202
    assert said(api, session)[-1] == f"found: {FOUND}"


@pytest.mark.behaviour("mcp.fault.connect", "mcp.outage.script", "mcp.outage.counts-attempts")
@pytest.mark.parametrize("required", [False, True], ids=["optional", "required"])
def test_a_server_that_flaps_is_down_as_often_as_it_is_scripted(api: Api, server: Server, required: bool) -> None:
    flaps = ["refuse", "up", "time_out", "unauthorized", "up", "wrong_protocol"]
    server.connects(flaps)
    ends: list[str | None] = []
    for _ in range(len(flaps) + 1):
        session = session_with(api, {**server.entry, "required": required})
        api.say(session, "hello")
        told = [payload["reason"] for payload in payloads(api, session, "mcp.unavailable")]
        ends.append("failed" if status(api, session) == "failed" else told[0] if told else None)
        api.delete(f"/v1/sessions/{session}")
    outcomes = [CONNECTS[flap].reason for flap in flaps] + [None]
    assert ends == [reason and ("failed" if required else reason) for reason in outcomes]


@pytest.mark.behaviour("mcp.tools.change", "mcp.tools.gone")
@pytest.mark.parametrize("required", [False, True], ids=["optional", "required"])
def test_tools_appear_and_vanish_as_it_is_scripted(api: Api, server: Server, required: bool) -> None:
    async def agent(turn: Turn) -> None:
        for tool in ("fetch", "search", "fetch"):
            result = await turn.mcp("docs", tool)
            await turn.say(result.text)

    api.emulator.agent(agent)
    server.connects([{"state": "up", "tools": {"fetch": {"text": "page 13"}}}])
    server.calls([{"fault": "ok", "tool": "fetch", "tools": {"search": {"text": "none found"}}}])
    session = session_with(api, {**server.entry, "required": required})

    api.say(session, "hello")

    assert said(api, session) == ["page 13", "none found", "docs: the server has this tool no more"]
