"""Required actions (contract §8): what a session waits for."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from tests.contract.steps import (
    advance_to,
    function,
    parked,
    parked_on,
    payloads,
    replying,
    said,
    session_with,
    status,
    types,
)

if TYPE_CHECKING:
    from emulator import Turn
    from tests.support import Api

ASKED = {
    "function_call": "tool.required",
    "approval": "approval.requested",
    "question": "question.asked",
}


async def three_at_once(turn: Turn) -> None:
    """Park on one action of each type, side by side."""
    result, approved, region = await turn.together(
        turn.call("lookup_order", order_id="A-4471"),
        turn.approve("bash", {"command": "./deploy"}),
        turn.ask("Which region?", ["eu", "us"]),
    )
    await turn.say(f"{result.output} {approved} {region}")


@pytest.mark.behaviour("actions.function-call")
def test_a_function_call_shows_with_its_name_and_arguments(api: Api) -> None:
    session, action = parked_on(api, "function_call")
    (turn,) = api.turns(session)
    assert re.fullmatch(r"call_[0-9a-f]{8}", action["call_id"])
    assert action == {
        "type": "function_call",
        "turn_id": turn["id"],
        "call_id": action["call_id"],
        "name": "lookup_order",
        "arguments": {"order_id": "A-4471"},
        "created_at": action["created_at"],
        "expires_at": None,
    }


@pytest.mark.behaviour("actions.question", "actions.question-event")
def test_a_question_shows_with_its_text_and_its_options(api: Api) -> None:
    session, action = parked_on(api, "question")
    assert action == {
        "type": "question",
        "turn_id": api.turns(session)[0]["id"],
        "call_id": action["call_id"],
        "name": "Which region?",
        "arguments": {"options": [{"label": "eu"}, {"label": "us"}], "allowFreeform": True},
        "created_at": action["created_at"],
        "expires_at": None,
    }
    assert payloads(api, session, "question.asked") == [
        {
            "toolCallId": action["call_id"],
            "question": "Which region?",
            "options": ["eu", "us"],
            "allowFreeform": True,
        }
    ]


@pytest.mark.behaviour("actions.question")
@pytest.mark.parametrize(
    ("options", "freeform", "arguments"),
    [
        (None, True, {"options": [], "allowFreeform": True}),
        (["eu"], False, {"options": [{"label": "eu"}], "allowFreeform": False}),
    ],
)
def test_a_question_says_whether_it_takes_free_text(
    api: Api, options: list[str] | None, freeform: bool, arguments: dict[str, Any]
) -> None:
    @api.emulator.agent
    async def agent(turn: Turn) -> None:
        await turn.ask("Which region?", options, freeform)

    session = api.session()
    api.say(session, "Go.")
    assert api.actions(session)[0]["arguments"] == arguments


@pytest.mark.behaviour("actions.approval")
def test_an_approval_shows_with_the_tool_and_its_arguments(api: Api) -> None:
    session, action = parked_on(api, "approval")
    assert action == {
        "type": "approval",
        "turn_id": api.turns(session)[0]["id"],
        "call_id": action["call_id"],
        "name": "bash",
        "arguments": {"command": "./deploy"},
        "created_at": action["created_at"],
        "expires_at": None,
    }


@pytest.mark.behaviour("actions.same-call-id", "actions.created-at")
@pytest.mark.parametrize("kind", list(ASKED))
def test_the_event_that_asks_has_the_same_id_and_time(api: Api, kind: str) -> None:
    session, action = parked_on(api, kind)
    (event,) = [event for event in api.events(session) if event["type"] == ASKED[kind]]
    assert event["payload"]["toolCallId"] == action["call_id"]
    assert event["created_at"] == action["created_at"]


@pytest.mark.behaviour("actions.status", "actions.turn-works-on")
@pytest.mark.parametrize("kind", list(ASKED))
def test_the_session_requires_action_exactly_while_something_is_required(api: Api, kind: str) -> None:
    session = api.session()
    assert (status(api, session), api.actions(session)) == ("idle", [])
    session, action = parked_on(api, kind)
    assert status(api, session) == "requires_action"
    assert api.turns(session)[0]["status"] == "working"
    api.send(session, replying(action))
    assert (status(api, session), api.actions(session)) == ("idle", [])


@pytest.mark.behaviour("actions.several", "actions.any-order", "actions.status", "actions.resumes")
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_three_actions_side_by_side_are_answered_in_any_order(api: Api, order: tuple[int, ...]) -> None:
    api.emulator.agent(three_at_once)
    session = session_with(api, function())
    api.say(session, "Go.")
    actions = api.actions(session)
    assert [action["type"] for action in actions] == ["function_call", "approval", "question"]
    assert len({action["call_id"] for action in actions}) == 3
    for done, n in enumerate(order, start=1):
        assert api.send(session, replying(actions[n])).json["outcome"] == "accepted"
        left = [action for place, action in enumerate(actions) if place not in order[:done]]
        assert api.actions(session) == left
        assert status(api, session) == ("requires_action" if left else "idle")
        assert bool(said(api, session)) is not bool(left)
    assert said(api, session) == ["shipped True eu"]
    assert len(api.turns(session)) == 1
    assert types(api.events(session)).count("turn.started") == 1


@pytest.mark.behaviour("actions.several")
def test_three_calls_of_one_function_are_three_actions(api: Api) -> None:
    @api.emulator.agent
    async def agent(turn: Turn) -> None:
        results = await turn.together(*(turn.call("lookup_order", order_id=f"A-{n}") for n in range(3)))
        await turn.say(" ".join(result.output for result in results))

    session = session_with(api, function())
    api.say(session, "Go.")
    actions = api.actions(session)
    assert [action["arguments"] for action in actions] == [{"order_id": f"A-{n}"} for n in range(3)]
    for action in reversed(actions):
        api.answer(session, action, f"answer to {action['arguments']['order_id']}")
    assert said(api, session) == ["answer to A-0 answer to A-1 answer to A-2"]


@pytest.mark.behaviour("actions.resumes")
def test_a_turn_parks_again_on_its_next_call(api: Api) -> None:
    @api.emulator.agent
    async def agent(turn: Turn) -> None:
        first = await turn.call("lookup_order", order_id="one")
        second = await turn.call("lookup_order", order_id="two")
        await turn.say(f"{first.output} {second.output}")

    session = session_with(api, function())
    api.say(session, "Go.")
    (first,) = api.actions(session)
    api.answer(session, first, "1")
    (second,) = api.actions(session)
    assert second["call_id"] != first["call_id"]
    assert second["turn_id"] == first["turn_id"]
    assert status(api, session) == "requires_action"
    api.answer(session, second, "2")
    assert said(api, session) == ["1 2"]


# Deadlines


@pytest.mark.behaviour("deadline.none")
@pytest.mark.parametrize("kind", list(ASKED))
def test_what_has_no_deadline_waits_as_long_as_the_workspace_lives(api: Api, kind: str) -> None:
    session, action = parked_on(api, kind)
    assert action["expires_at"] is None
    api.emulator.clock.advance(7190)
    assert api.actions(session) == [action]
    assert api.send(session, replying(action)).json["outcome"] == "accepted"


@pytest.mark.behaviour("deadline.expires-at")
@pytest.mark.parametrize("seconds", [1, 30, 7200])
def test_a_call_expires_so_long_after_it_was_asked(api: Api, seconds: int) -> None:
    _, action = parked(api, timeout_seconds=seconds)
    assert action["expires_at"] == action["created_at"] + seconds * 1000


@pytest.mark.behaviour("deadline.passes", "actions.status")
def test_past_its_deadline_a_call_fails_and_the_turn_carries_on(api: Api) -> None:
    @api.emulator.agent
    async def agent(turn: Turn) -> None:
        result = await turn.call("lookup_order")
        assert (result.success, result.output) == (False, None)
        await turn.say(f"Told: {result.error}")

    session = session_with(api, function(timeout_seconds=30))
    api.say(session, "Go.")
    (action,) = api.actions(session)
    api.emulator.clock.advance(30)
    assert payloads(api, session, "tool.resolved") == [
        {"toolCallId": action["call_id"], "name": "lookup_order", "success": False}
    ]
    (told,) = said(api, session)
    assert len(told) > len("Told: ")
    assert told != "Told: None"
    assert (status(api, session), api.actions(session)) == ("idle", [])
    (turn,) = api.turns(session)
    assert (turn["status"], turn["error"]) == ("completed", None)


@pytest.mark.behaviour("deadline.exact")
def test_a_call_can_be_answered_in_the_last_millisecond(api: Api) -> None:
    session, action = parked(api, timeout_seconds=30)
    advance_to(api, action["expires_at"] - 1)
    assert api.actions(session) == [action]
    assert api.answer(session, action).json["outcome"] == "accepted"


@pytest.mark.behaviour("deadline.exact", "deadline.late-answer")
def test_at_its_deadline_a_call_can_no_longer_be_answered(api: Api) -> None:
    session, action = parked(api, timeout_seconds=30)
    advance_to(api, action["expires_at"])
    assert api.actions(session) == []
    (resolved,) = [event for event in api.events(session) if event["type"] == "tool.resolved"]
    assert resolved["created_at"] == action["expires_at"] + 1
    assert api.answer(session, action).json["outcome"] == "not_delivered"


@pytest.mark.behaviour("deadline.late-answer")
def test_a_late_answer_is_not_delivered_however_often_it_comes(api: Api) -> None:
    session, action = parked(api, timeout_seconds=30)
    api.emulator.clock.advance(31)
    before = (api.events(session), api.turns(session), api.get(f"/v1/sessions/{session}").json)
    for _ in range(2):
        answer = api.answer(session, action)
        assert answer.status == 202
        assert answer.json == {
            "object": "input.accepted",
            "session_id": session,
            "type": "input.tool_result",
            "outcome": "not_delivered",
        }
    assert (api.events(session), api.turns(session), api.get(f"/v1/sessions/{session}").json) == before


@pytest.mark.behaviour("deadline.late-answer")
def test_a_late_answer_does_not_disturb_the_turn_that_carried_on(api: Api) -> None:
    @api.emulator.agent
    async def agent(turn: Turn) -> None:
        await turn.call("quick")
        await turn.call("slow")

    session = session_with(api, function("quick", timeout_seconds=10), function("slow"))
    api.say(session, "Go.")
    (quick,) = api.actions(session)
    api.emulator.clock.advance(11)
    (slow,) = api.actions(session)
    assert api.answer(session, quick).json["outcome"] == "not_delivered"
    assert (api.actions(session), status(api, session)) == ([slow], "requires_action")
    assert api.answer(session, slow).json["outcome"] == "accepted"


@pytest.mark.behaviour("deadline.several")
def test_deadlines_side_by_side_pass_in_order(api: Api) -> None:
    @api.emulator.agent
    async def agent(turn: Turn) -> None:
        results = await turn.together(turn.call("late"), turn.call("early"), turn.call("never"))
        await turn.say(" ".join(str(result.success) for result in results))

    session = session_with(
        api, function("late", timeout_seconds=60), function("early", timeout_seconds=20), function("never")
    )
    api.say(session, "Go.")
    late, early, never = api.actions(session)
    api.emulator.clock.advance(40)
    assert api.actions(session) == [late, never]
    assert status(api, session) == "requires_action"
    api.emulator.clock.advance(4000)
    assert api.actions(session) == [never]
    resolved = [event for event in api.events(session) if event["type"] == "tool.resolved"]
    assert [event["payload"]["name"] for event in resolved] == ["early", "late"]
    assert [event["created_at"] for event in resolved] == [early["expires_at"] + 1, late["expires_at"] + 1]
    api.answer(session, never)
    assert said(api, session) == ["False False True"]


@pytest.mark.behaviour("deadline.answered-in-time")
def test_the_deadline_of_an_answered_call_means_nothing(api: Api) -> None:
    session, action = parked(api, timeout_seconds=30)
    api.answer(session, action)
    before = api.events(session)
    api.emulator.clock.advance(60)
    assert api.events(session) == before
    assert payloads(api, session, "tool.resolved") == [
        {"toolCallId": action["call_id"], "name": "lookup_order", "success": True}
    ]
    assert api.answer(session, action).json["outcome"] == "already_resolved"
