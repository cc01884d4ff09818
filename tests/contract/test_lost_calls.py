"""Lost calls (contract §7): answers to calls the sandbox does not hold any more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.contract.steps import function, payloads, said, session_with, status

if TYPE_CHECKING:
    from emulator import Turn
    from tests.support import Api


def lost_call(api: Api, way: str) -> tuple[str, dict[str, Any]]:
    """A session parked on a call the sandbox does not hold: from the start, or forgotten later."""

    @api.emulator.agent
    async def agent(turn: Turn) -> None:
        await turn.call("lookup_order", lose=way == "from the start")
        await turn.say("Resumed.")

    session = session_with(api, function())
    api.say(session, "Go.")
    (action,) = api.actions(session)
    if way == "later":
        assert api.emulator.lose_calls(session) == [action["call_id"]]
    assert (api.actions(session), status(api, session)) == ([action], "requires_action")
    return session, action


@pytest.mark.behaviour("lost.not-delivered", "lost.action-closes", "lost.turn-stays", "lost.silent")
@pytest.mark.parametrize("way", ["from the start", "later"])
def test_the_answer_to_a_lost_call_is_not_delivered(api: Api, way: str) -> None:
    session, action = lost_call(api, way)
    before = api.events(session)
    answer = api.answer(session, action)
    assert answer.status == 202
    assert answer.json == {
        "object": "input.accepted",
        "session_id": session,
        "type": "input.tool_result",
        "outcome": "not_delivered",
    }
    assert (status(api, session), api.actions(session)) == ("working", [])
    (turn,) = api.turns(session)
    assert (turn["status"], turn["completed_at"]) == ("working", None)
    assert said(api, session) == []
    assert api.events(session) == before


@pytest.mark.behaviour("lost.second-answer")
def test_a_second_answer_to_a_lost_call_is_already_resolved(api: Api) -> None:
    session, action = lost_call(api, "later")
    api.answer(session, action)
    assert api.answer(session, action).json["outcome"] == "already_resolved"
    assert status(api, session) == "working"


@pytest.mark.behaviour("lost.turn-stays")
def test_a_turn_stuck_on_a_lost_call_still_runs(api: Api) -> None:
    session, action = lost_call(api, "later")
    api.answer(session, action)
    assert api.say(session, "Anybody there?").json["queued"] is True
    assert api.send(session, {"type": "input.steer", "content": "Go on."}).status == 202
    assert api.send(session, {"type": "input.cancel"}).status == 202
    assert api.turns(session)[0]["status"] == "cancelled"


@pytest.mark.behaviour("lost.side-by-side")
def test_one_lost_call_closes_alone(api: Api) -> None:
    @api.emulator.agent
    async def agent(turn: Turn) -> None:
        await turn.together(turn.call("lookup_order", lose=True), turn.call("lookup_order"))
        await turn.say("Resumed.")

    session = session_with(api, function())
    api.say(session, "Go.")
    lost, held = api.actions(session)
    assert api.answer(session, lost).json["outcome"] == "not_delivered"
    assert (api.actions(session), status(api, session)) == ([held], "requires_action")
    assert api.answer(session, held).json["outcome"] == "accepted"
    assert (api.actions(session), status(api, session)) == ([], "working")
    assert said(api, session) == []


@pytest.mark.behaviour("lost.deadline")
def test_the_deadline_of_a_lost_call_closes_it_and_nothing_more(api: Api) -> None:
    @api.emulator.agent
    async def agent(turn: Turn) -> None:
        await turn.call("lookup_order", lose=True)
        await turn.say("Resumed.")

    session = session_with(api, function(timeout_seconds=30))
    api.say(session, "Go.")
    (action,) = api.actions(session)
    api.emulator.clock.advance(30)
    assert (status(api, session), api.actions(session)) == ("working", [])
    assert payloads(api, session, "tool.resolved") == [
        {"toolCallId": action["call_id"], "name": "lookup_order", "success": False}
    ]
    assert said(api, session) == []
    assert api.answer(session, action).json["outcome"] == "not_delivered"


@pytest.mark.behaviour("lost.ends-with-workspace")
def test_a_turn_stuck_on_a_lost_call_fails_with_its_workspace(api: Api) -> None:
    session, action = lost_call(api, "later")
    api.answer(session, action)
    api.emulator.clock.advance(7200)
    (turn,) = api.turns(session)
    assert turn["status"] == "failed"
    assert (status(api, session), api.actions(session)) == ("failed", [])
    assert said(api, session) == []
