"""Answers to required actions (contract §7): outcomes, refusals and races."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.contract.steps import (
    at_once,
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

KINDS = ["function_call", "approval", "question"]
EVENTS = {
    "function_call": "input.tool_result",
    "approval": "input.approval",
    "question": "input.question_answer",
}


def as_event(action: dict[str, Any], event_type: str) -> dict[str, Any]:
    """The answer of one type, with the ids of an action that may be of another."""
    kind = next(kind for kind, name in EVENTS.items() if name == event_type)
    return replying({**action, "type": kind})


# Tool results


@pytest.mark.behaviour("answers.accepted", "answers.resolved")
def test_an_answer_is_accepted_and_the_turn_goes_on(api: Api) -> None:
    session, action = parked(api)
    answer = api.send(session, replying(action))
    assert answer.status == 202
    assert answer.json == {
        "object": "input.accepted",
        "session_id": session,
        "type": "input.tool_result",
        "outcome": "accepted",
    }
    assert said(api, session) == ["output=shipped error=None"]
    assert payloads(api, session, "tool.resolved") == [
        {"toolCallId": action["call_id"], "name": "lookup_order", "success": True}
    ]
    assert (status(api, session), api.actions(session)) == ("idle", [])


@pytest.mark.behaviour("answers.output")
@pytest.mark.parametrize(
    "output", ["", " ", '{"status": "shipped"}', "Grüße\n\t\u2028 – 你好 \U0001f600", "x" * 50_000]
)
def test_the_agent_gets_the_output_as_it_was_sent(api: Api, output: str) -> None:
    got: list[str | None] = []

    @api.emulator.agent
    async def agent(turn: Turn) -> None:
        result = await turn.call("lookup_order")
        assert result.success
        got.append(result.output)

    session = session_with(api, function())
    api.say(session, "Go.")
    api.answer(session, api.actions(session)[0], output)
    assert got == [output]


@pytest.mark.behaviour("answers.error", "answers.resolved")
def test_the_agent_gets_the_error_of_a_failure(api: Api) -> None:
    session, action = parked(api)
    failure = {**replying(action), "success": False, "error": "no such order"}
    del failure["output"]
    assert api.send(session, failure).json["outcome"] == "accepted"
    assert said(api, session) == ["output=None error=no such order"]
    assert payloads(api, session, "tool.resolved") == [
        {"toolCallId": action["call_id"], "name": "lookup_order", "success": False}
    ]
    assert api.turns(session)[0]["status"] == "completed"


@pytest.mark.behaviour("answers.tool-result-fields")
@pytest.mark.parametrize("name", ["turn_id", "call_id", "success"])
def test_a_tool_result_without_a_field_is_refused(api: Api, name: str) -> None:
    session, action = parked(api)
    event = replying(action)
    del event[name]
    answer = api.send(session, event)
    assert (answer.status, answer.code, answer.message) == (
        400,
        "invalid_request",
        f"`events[0].{name}` is required.",
    )
    assert api.actions(session) == [action]


@pytest.mark.behaviour("answers.tool-result-fields")
@pytest.mark.parametrize(
    ("name", "value", "wanted"),
    [
        ("turn_id", 7, "a string; an integer was sent"),
        ("call_id", None, "a string; null was sent"),
        ("success", "yes", "a boolean, true or false; a string was sent"),
        ("success", 1, "a boolean, true or false; an integer was sent"),
        ("success", None, "a boolean, true or false; null was sent"),
    ],
)
def test_a_tool_result_with_a_field_of_another_type_is_refused(api: Api, name: str, value: Any, wanted: str) -> None:
    session, action = parked(api)
    answer = api.send(session, replying(action, **{name: value}))
    assert (answer.code, answer.message) == ("invalid_request", f"`events[0].{name}` must be {wanted}.")
    assert api.actions(session) == [action]


@pytest.mark.behaviour("answers.output-is-a-string")
@pytest.mark.parametrize("output", [{"status": "shipped"}, ["shipped"], 7, True, None])
def test_an_output_that_is_no_string_is_refused(api: Api, output: Any) -> None:
    session, action = parked(api)
    answer = api.send(session, replying(action, output=output))
    assert (answer.status, answer.code) == (400, "invalid_request")
    assert "`events[0].output`" in answer.message
    assert "a string" in answer.message
    assert api.actions(session) == [action]
    assert api.send(session, replying(action, output=json.dumps(output))).json["outcome"] == "accepted"


@pytest.mark.behaviour("answers.output-or-error")
@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"success": True}, "output"),
        ({"success": True, "error": "no"}, "error"),
        ({"success": True, "output": "yes", "error": "no"}, "error"),
        ({"success": False}, "error"),
        ({"success": False, "output": "yes"}, "output"),
        ({"success": False, "output": "yes", "error": "no"}, "output"),
        ({"success": False, "error": {"code": 1}}, "error"),
    ],
)
def test_output_goes_with_success_and_error_with_failure(api: Api, fields: dict[str, Any], named: str) -> None:
    session, action = parked(api)
    ids = {"type": "input.tool_result", "turn_id": action["turn_id"], "call_id": action["call_id"]}
    answer = api.send(session, {**ids, **fields})
    assert (answer.status, answer.code) == (400, "invalid_request")
    assert f"`events[0].{named}`" in answer.message
    assert api.actions(session) == [action]


@pytest.mark.behaviour("answers.unknown-pair")
@pytest.mark.parametrize("instead", [{"turn_id": "turn_0000000000000000"}, {"call_id": "call_00000000"}])
def test_an_unknown_pair_is_not_found(api: Api, instead: dict[str, str]) -> None:
    session, action = parked(api)
    answer = api.send(session, replying(action, **instead))
    assert (answer.status, answer.code) == (404, "not_found")
    assert answer.message.startswith("No pending action")
    assert api.actions(session) == [action]


@pytest.mark.behaviour("answers.unknown-pair", "answers.no-longer-pending")
@pytest.mark.parametrize("kind", KINDS)
def test_a_call_of_another_session_is_unknown(api: Api, kind: str) -> None:
    session, action = parked_on(api, kind)
    answer = api.send(api.session(), replying(action))
    if kind == "function_call":
        assert answer.status == 404
        assert answer.message.startswith("No pending action")
    else:
        assert (answer.status, answer.json["outcome"]) == (202, "no_longer_pending")
    assert api.actions(session) == [action]


@pytest.mark.behaviour("answers.already-resolved")
@pytest.mark.parametrize("second", [{"output": "lost"}, {"output": None, "success": False, "error": "lost"}])
def test_a_second_answer_is_discarded(api: Api, second: dict[str, Any]) -> None:
    session, action = parked(api)
    api.send(session, replying(action))
    before = (api.events(session), api.turns(session))
    event = {name: value for name, value in replying(action, **second).items() if value is not None}
    answer = api.send(session, event)
    assert answer.status == 202
    assert answer.json == {
        "object": "input.accepted",
        "session_id": session,
        "type": "input.tool_result",
        "outcome": "already_resolved",
    }
    assert (api.events(session), api.turns(session)) == before


@pytest.mark.behaviour("answers.already-resolved")
def test_a_second_answer_is_discarded_while_the_turn_waits_for_something_else(api: Api) -> None:
    @api.emulator.agent
    async def agent(turn: Turn) -> None:
        first = await turn.call("lookup_order", order_id="one")
        second = await turn.call("lookup_order", order_id="two")
        await turn.say(f"{first.output} {second.output}")

    session = session_with(api, function())
    api.say(session, "Go.")
    (first,) = api.actions(session)
    api.answer(session, first, "1")
    assert api.answer(session, first, "again").json["outcome"] == "already_resolved"
    (second,) = api.actions(session)
    api.answer(session, second, "2")
    assert said(api, session) == ["1 2"]


@pytest.mark.behaviour("answers.race")
def test_of_many_answers_at_once_exactly_one_is_accepted(api: Api) -> None:
    session, action = parked(api)
    answers = at_once(16, lambda n: api.answer(session, action, f"answer {n}"))
    assert [answer.status for answer in answers] == [202] * 16
    outcomes = [answer.json["outcome"] for answer in answers]
    assert sorted(outcomes) == ["accepted"] + ["already_resolved"] * 15
    assert said(api, session) == [f"output=answer {outcomes.index('accepted')} error=None"]
    assert types(api.events(session)).count("tool.resolved") == 1


@pytest.mark.behaviour("answers.race", "answers.no-longer-pending")
@pytest.mark.parametrize("kind", ["approval", "question"])
def test_of_many_decisions_at_once_exactly_one_is_accepted(api: Api, kind: str) -> None:
    session, action = parked_on(api, kind)
    outcomes = [answer.json["outcome"] for answer in at_once(8, lambda n: api.send(session, replying(action)))]
    assert sorted(outcomes) == ["accepted"] + ["no_longer_pending"] * 7
    assert said(api, session) == ["Thanks."]


# The wrong event


@pytest.mark.behaviour("answers.wrong-event", "answers.wrong-event-open")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sent", list(EVENTS.values()))
def test_an_answer_of_the_wrong_type_names_the_right_event(api: Api, kind: str, sent: str) -> None:
    session, action = parked_on(api, kind)
    answer = api.send(session, as_event(action, sent))
    if sent == EVENTS[kind]:
        assert answer.json["outcome"] == "accepted"
        return
    assert (answer.status, answer.code) == (400, "invalid_request")
    assert EVENTS[kind] in answer.message
    assert (api.actions(session), status(api, session)) == ([action], "requires_action")
    assert api.send(session, replying(action)).json["outcome"] == "accepted"


@pytest.mark.behaviour("answers.wrong-event-words")
@pytest.mark.parametrize("kind", ["approval", "question"])
def test_a_tool_result_for_something_else_is_refused_in_the_words_clients_match(api: Api, kind: str) -> None:
    session, action = parked_on(api, kind)
    answer = api.send(session, as_event(action, "input.tool_result"))
    assert "not a function call, so it cannot be answered with input.tool_result" in answer.message


# Approvals and questions


@pytest.mark.behaviour("answers.approval", "answers.decision-outcome")
@pytest.mark.parametrize("approved", [True, False])
def test_a_decision_reaches_the_agent(api: Api, approved: bool) -> None:
    got: list[bool] = []

    @api.emulator.agent
    async def agent(turn: Turn) -> None:
        got.append(await turn.approve("bash", {"command": "./deploy"}))

    session = api.session()
    api.say(session, "Go.")
    (action,) = api.actions(session)
    answer = api.send(session, replying(action, approved=approved))
    assert answer.status == 202
    assert answer.json == {
        "object": "input.accepted",
        "session_id": session,
        "type": "input.approval",
        "outcome": "accepted",
    }
    assert got == [approved]
    assert payloads(api, session, "approval.resolved") == [{"toolCallId": action["call_id"], "approved": approved}]
    assert status(api, session) == "idle"


@pytest.mark.behaviour("answers.question", "answers.decision-outcome")
@pytest.mark.parametrize("text", ["eu", "Use the staging bucket.", "Grüße\n – 你好"])
def test_an_answer_reaches_the_agent_as_written(api: Api, text: str) -> None:
    got: list[str] = []

    @api.emulator.agent
    async def agent(turn: Turn) -> None:
        got.append(await turn.ask("Which region?", ["eu", "us"]))

    session = api.session()
    api.say(session, "Go.")
    (action,) = api.actions(session)
    answer = api.send(session, replying(action, answer=text))
    assert answer.json == {
        "object": "input.accepted",
        "session_id": session,
        "type": "input.question_answer",
        "outcome": "accepted",
    }
    assert got == [text]
    assert payloads(api, session, "question.answered") == [{"toolCallId": action["call_id"], "answer": text}]


@pytest.mark.behaviour("answers.approval-fields", "answers.question-fields")
@pytest.mark.parametrize(
    ("kind", "name", "value", "message"),
    [
        ("approval", "call_id", ..., "`events[0].call_id` is required."),
        ("approval", "call_id", 1, "`events[0].call_id` must be a string; an integer was sent."),
        ("approval", "approved", ..., "`events[0].approved` is required."),
        ("approval", "approved", "yes", "`events[0].approved` must be a boolean, true or false; a string was sent."),
        ("approval", "approved", 1, "`events[0].approved` must be a boolean, true or false; an integer was sent."),
        ("approval", "approved", None, "`events[0].approved` must be a boolean, true or false; null was sent."),
        ("question", "call_id", ..., "`events[0].call_id` is required."),
        ("question", "answer", ..., "`events[0].answer` is required."),
        ("question", "answer", "", "`events[0].answer` must not be empty."),
        ("question", "answer", ["eu"], "`events[0].answer` must be a string; a list was sent."),
        ("question", "answer", None, "`events[0].answer` must be a string; null was sent."),
    ],
)
def test_a_decision_without_a_field_or_with_a_wrong_one_is_refused(
    api: Api, kind: str, name: str, value: Any, message: str
) -> None:
    session, action = parked_on(api, kind)
    event = replying(action)
    if value is ...:
        del event[name]
    else:
        event[name] = value
    answer = api.send(session, event)
    assert (answer.status, answer.code, answer.message) == (400, "invalid_request", message)
    assert api.actions(session) == [action]


@pytest.mark.behaviour("answers.no-longer-pending", "answers.first-decision-stands")
@pytest.mark.parametrize(("kind", "second"), [("approval", {"approved": False}), ("question", {"answer": "us"})])
def test_a_second_decision_changes_nothing(api: Api, kind: str, second: dict[str, Any]) -> None:
    session, action = parked_on(api, kind)
    api.send(session, replying(action))
    before = (api.events(session), api.turns(session))
    answer = api.send(session, replying(action, **second))
    assert answer.status == 202
    assert answer.json == {
        "object": "input.accepted",
        "session_id": session,
        "type": EVENTS[kind],
        "outcome": "no_longer_pending",
    }
    assert (api.events(session), api.turns(session)) == before


@pytest.mark.behaviour("answers.no-longer-pending")
@pytest.mark.parametrize(
    "event", [{"type": "input.approval", "approved": True}, {"type": "input.question_answer", "answer": "eu"}]
)
def test_a_decision_about_a_call_that_never_was_is_no_longer_pending(api: Api, event: dict[str, Any]) -> None:
    answer = api.send(api.session(), {**event, "call_id": "call_00000000"})
    assert (answer.status, answer.json["outcome"]) == (202, "no_longer_pending")
