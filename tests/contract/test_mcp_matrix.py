"""Every way an MCP server can go wrong, for every kind of server, required and not (contract §5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.contract.outages import CALLS, CONNECTS, FOUND, KINDS
from tests.contract.steps import payloads, said, session_with, status

if TYPE_CHECKING:
    from emulator import Turn
    from tests.contract.outages import CallCase, ConnectCase
    from tests.support import Api


@pytest.fixture(params=list(KINDS))
def server(request: pytest.FixtureRequest, api: Api) -> dict[str, Any]:
    """The entry that declares a server called docs, which is there."""
    kind: str = request.param
    return KINDS[kind](api)


async def searches(turn: Turn) -> None:
    """An agent that calls one tool and tells what came of it."""
    result = await turn.mcp("docs", "search", {"q": turn.message})
    await turn.say(f"{'error' if result.is_error else 'found'}: {result.text}")


@pytest.mark.behaviour("mcp.fault.connect", "mcp.fault.connect-slow", "mcp.outage.script")
@pytest.mark.parametrize("required", [False, True], ids=["optional", "required"])
@pytest.mark.parametrize("case", CONNECTS.values(), ids=CONNECTS)
def test_a_connect_ends_as_it_is_scripted(api: Api, server: dict[str, Any], case: ConnectCase, required: bool) -> None:
    api.emulator.agent(searches)
    api.emulator.mcp.script("docs", [case.entry])
    session = session_with(api, {**server, "required": required})
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
@pytest.mark.parametrize("case", CALLS.values(), ids=CALLS)
def test_a_call_ends_as_it_is_scripted(api: Api, server: dict[str, Any], case: CallCase) -> None:
    api.emulator.agent(searches)
    api.emulator.mcp.calls("docs", [case.entry])
    session = session_with(api, server)

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
        assert told == (f"found: {FOUND}" if case.text is None else f"error: {case.text}")
        (result,) = payloads(api, session, "agent.tool_result")
        assert (result["isError"], result["summary"]) == (case.text is not None, case.text or FOUND)
        assert [turn["status"] for turn in api.turns(session)] == ["completed"]
    # The next one finds everything as it should be.
    assert api.say(session, "again").status == 202
    assert said(api, session)[-1] == f"found: {FOUND}"
