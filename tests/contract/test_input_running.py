"""Input to a session at work (contract §7): context, steer and cancel."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest

from emulator.runtime.simulated import SimulatedServer
from tests.contract.steps import (
    WAIT,
    at_once,
    function,
    hold,
    parked,
    parked_on,
    payloads,
    replying,
    said,
    session_with,
    status,
    types,
    until,
)

if TYPE_CHECKING:
    from emulator import Turn
    from tests.support import Api

CANCEL = {"type": "input.cancel"}


def context(text: Any) -> dict[str, Any]:
    return {"type": "input.context", "content": text}


def steer(text: Any) -> dict[str, Any]:
    return {"type": "input.steer", "content": text}


# Context


@pytest.mark.behaviour("input.context-no-turn", "input.context-shown", "input.context-delivered", "input.reply")
def test_context_for_a_session_that_never_ran_wakes_nothing(api: Api) -> None:
    session = api.session()
    answer = api.send(session, context("The rollback is merged."))
    assert answer.status == 202
    assert answer.json == {
        "object": "input.accepted",
        "session_id": session,
        "type": "input.context",
        "delivered": False,
    }
    shown = api.get(f"/v1/sessions/{session}").json
    assert (shown["status"], shown["environment"]["state"]) == ("idle", "unknown")
    assert api.turns(session) == []
    (event,) = api.events(session)
    assert (event["type"], event["payload"]) == ("user.context", {"text": "The rollback is merged."})
    (item,) = api.items(session)
    assert (item["type"], item["detail"]) == ("context", {"event": "user.context", "text": "The rollback is merged."})


@pytest.mark.behaviour("input.context-delivered", "input.context-no-turn")
def test_context_is_delivered_while_the_sandbox_is_up_and_not_while_it_is_paused(api: Api) -> None:
    session = api.session()
    api.say(session, "Hello")
    assert api.send(session, context("warm")).json["delivered"] is True
    api.emulator.clock.advance(301)
    assert api.get(f"/v1/sessions/{session}").json["environment"]["state"] == "paused"
    assert api.send(session, context("cold")).json["delivered"] is False
    assert api.get(f"/v1/sessions/{session}").json["environment"]["state"] == "paused"
    assert payloads(api, session, "user.context") == [{"text": "warm"}, {"text": "cold"}]
    assert len(api.turns(session)) == 1


@pytest.mark.behaviour("input.context-shown")
def test_context_takes_parts_like_a_message(api: Api) -> None:
    session = api.session()
    api.send(session, context([{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}]))
    assert payloads(api, session, "user.context") == [{"text": "ab"}]


@pytest.mark.behaviour("input.context-deferred", "input.context-delivered")
def test_context_sent_while_a_turn_runs_lands_after_it(api: Api) -> None:
    session, action = parked(api)
    assert api.send(session, context("first")).json["delivered"] is True
    assert api.send(session, context("second")).json["delivered"] is True
    assert payloads(api, session, "user.context") == []
    assert status(api, session) == "requires_action"
    api.answer(session, action)
    assert types(api.events(session))[-4:] == ["agent.message", "turn.ended", "user.context", "user.context"]
    assert payloads(api, session, "user.context") == [{"text": "first"}, {"text": "second"}]
    assert [item["type"] for item in api.items(session)][-2:] == ["context", "context"]
    assert len(api.turns(session)) == 1


@pytest.mark.behaviour("input.context-deferred")
def test_context_lands_after_a_cancelled_turn_too(api: Api) -> None:
    session, _ = parked(api)
    api.send(session, context("still true"))
    api.send(session, CANCEL)
    assert types(api.events(session))[-2:] == ["turn.ended", "user.context"]


@pytest.mark.behaviour("input.context-deferred")
def test_context_is_kept_once(api: Api) -> None:
    session, action = parked(api)
    api.send(session, context("once"))
    api.answer(session, action)
    api.say(session, "Again")
    api.send(session, CANCEL)
    assert payloads(api, session, "user.context") == [{"text": "once"}]


@pytest.mark.behaviour("input.context-before-queue")
def test_context_lands_before_the_turn_that_waits(api: Api) -> None:
    session, action = parked(api)
    api.say(session, "waits")
    api.send(session, context("known by then"))
    api.answer(session, action)
    seen = types(api.events(session))
    ended = seen.index("turn.ended")
    assert seen[ended + 1 : ended + 4] == ["user.context", "message.dequeued", "user.message"]


# Steer


@pytest.mark.behaviour("input.steer", "input.steer-silent", "input.reply")
def test_a_steer_reaches_the_running_turn_and_shows_nowhere(api: Api) -> None:
    @api.emulator.agent
    async def agent(turn: Turn) -> None:
        await turn.call("lookup_order")
        await turn.say(" / ".join(turn.steers))

    session = session_with(api, function())
    api.say(session, "Go.")
    before = (api.events(session), api.items(session))
    answer = api.send(session, steer("Use Go instead."))
    assert answer.status == 202
    assert answer.json == {"object": "input.accepted", "session_id": session, "type": "input.steer"}
    api.send(session, steer([{"type": "input_text", "text": "And "}, {"type": "input_text", "text": "be quick."}]))
    assert (api.events(session), api.items(session)) == before
    (action,) = api.actions(session)
    api.answer(session, action)
    assert said(api, session) == ["Use Go instead. / And be quick."]


@pytest.mark.behaviour("input.steer-conflict")
def test_a_steer_is_refused_before_the_first_turn(api: Api) -> None:
    session = api.session()
    answer = api.send(session, steer("Faster."))
    assert (answer.status, answer.code) == (409, "conflict")
    assert "retry-after" not in answer.headers
    assert api.events(session) == []


@pytest.mark.behaviour("input.steer-conflict")
@pytest.mark.parametrize("ending", ["answered", "cancelled"])
def test_a_steer_is_refused_once_the_turn_is_over(api: Api, ending: str) -> None:
    session, action = parked(api)
    api.send(session, replying(action) if ending == "answered" else CANCEL)
    assert api.send(session, steer("Faster.")).code == "conflict"


@pytest.mark.behaviour("input.steer")
def test_a_steer_does_not_reach_a_later_turn(api: Api) -> None:
    @api.emulator.agent
    async def agent(turn: Turn) -> None:
        await turn.call("lookup_order")
        await turn.say(f"{turn.number}: {turn.steers}")

    session = session_with(api, function())
    for n in (1, 2):
        api.say(session, "Go.")
        if n == 1:
            api.send(session, steer("Faster."))
        api.answer(session, api.actions(session)[0])
    assert said(api, session) == ["1: ['Faster.']", "2: []"]


# Cancel


@pytest.mark.behaviour("input.cancel-never-refused", "input.reply")
def test_cancel_with_nothing_to_cancel_is_accepted_and_does_nothing(api: Api) -> None:
    session = api.session()
    answer = api.send(session, CANCEL)
    assert answer.status == 202
    assert answer.json == {"object": "input.accepted", "session_id": session, "type": "input.cancel"}
    assert (api.events(session), api.turns(session)) == ([], [])
    api.say(session, "Hello")
    before = (api.events(session), api.turns(session), api.get(f"/v1/sessions/{session}").json)
    assert api.send(session, CANCEL).status == 202
    assert (api.events(session), api.turns(session), api.get(f"/v1/sessions/{session}").json) == before


@pytest.mark.behaviour("input.cancel-settles", "input.cancel-status", "input.cancel-drops-actions", "input.reply")
@pytest.mark.parametrize("kind", ["function_call", "approval", "question"])
def test_cancel_settles_the_turn_and_drops_what_it_waits_for(api: Api, kind: str) -> None:
    session, action = parked_on(api, kind)
    answer = api.send(session, CANCEL)
    assert answer.json == {"object": "input.accepted", "session_id": session, "type": "input.cancel"}
    shown = api.get(f"/v1/sessions/{session}").json
    assert (shown["status"], shown["required_actions"]) == ("idle", [])
    (turn,) = api.turns(session)
    assert (turn["id"], turn["status"], turn["error"]) == (action["turn_id"], "cancelled", None)
    ended = api.events(session)[-1]
    assert (ended["type"], ended["payload"]) == ("turn.ended", {"turnId": turn["id"]})
    assert turn["completed_at"] == ended["created_at"]
    assert "agent.error" not in types(api.events(session))


@pytest.mark.behaviour("input.cancel-late-answers")
def test_an_answer_to_a_cancelled_call_is_not_found(api: Api) -> None:
    session, action = parked_on(api, "function_call")
    api.send(session, CANCEL)
    answer = api.send(session, replying(action))
    assert (answer.status, answer.code) == (404, "not_found")
    assert answer.message.startswith("No pending action")


@pytest.mark.behaviour("input.cancel-late-answers")
@pytest.mark.parametrize("kind", ["approval", "question"])
def test_an_answer_to_a_cancelled_approval_or_question_comes_too_late(api: Api, kind: str) -> None:
    session, action = parked_on(api, kind)
    api.send(session, CANCEL)
    before = api.events(session)
    answer = api.send(session, replying(action))
    assert (answer.status, answer.json["outcome"]) == (202, "no_longer_pending")
    assert api.events(session) == before


@pytest.mark.behaviour("input.cancel-aborts-approval")
def test_a_cancelled_approval_is_resolved_as_aborted(api: Api) -> None:
    session, action = parked_on(api, "approval")
    api.send(session, CANCEL)
    (resolved,) = payloads(api, session, "approval.resolved")
    reason = resolved.pop("reason")
    assert isinstance(reason, str)
    assert reason
    assert resolved == {"toolCallId": action["call_id"], "approved": False, "name": "bash", "code": "aborted"}
    assert types(api.events(session))[-2:] == ["approval.resolved", "turn.ended"]


@pytest.mark.behaviour("input.cancel-keeps")
def test_cancel_keeps_what_was_done_and_publishes_it(api: Api) -> None:
    @api.emulator.agent
    async def agent(turn: Turn) -> None:
        await turn.say("Working on it.")
        await turn.write("/workspace/outputs/half.md", "# Half")
        await turn.write("/workspace/src/a.py", "1")
        await turn.call("lookup_order")

    session = session_with(api, function())
    api.say(session, "Go.")
    before = api.items(session)
    api.send(session, CANCEL)
    assert api.items(session) == before
    (turn,) = api.turns(session)
    assert (turn["status"], turn["artifacts"]) == ("cancelled", "ready")
    (created,) = payloads(api, session, "artifact.created")
    assert (created["path"], created["size_bytes"], created["turn_id"]) == ("/workspace/outputs/half.md", 6, turn["id"])
    assert types(api.events(session))[-2:] == ["turn.ended", "artifact.created"]


@pytest.mark.behaviour("input.cancel-queue", "input.cancel-once")
def test_the_queue_goes_on_after_a_cancel(api: Api) -> None:
    session, _ = parked(api)
    api.say(session, "waits")
    api.say(session, "waits too")
    api.send(session, CANCEL)
    assert [turn["status"] for turn in api.turns(session)] == ["cancelled", "working", "working"]
    assert status(api, session) == "requires_action"
    assert payloads(api, session, "message.dequeued") == [{"text": "waits"}]
    (action,) = api.actions(session)
    assert action["turn_id"] == api.turns(session)[1]["id"]
    api.send(session, CANCEL)
    assert [turn["status"] for turn in api.turns(session)] == ["cancelled", "cancelled", "working"]


@pytest.mark.behaviour("input.cancel-settles")
def test_a_cancelled_session_takes_the_next_message(api: Api) -> None:
    session, _ = parked(api)
    api.send(session, CANCEL)
    assert api.say(session, "Again").json["queued"] is False
    assert [turn["status"] for turn in api.turns(session)] == ["cancelled", "working"]


@pytest.mark.behaviour("input.cancel-settles", "input.cancel-unbegun")
@pytest.mark.gobare(pace="realistic")
def test_a_turn_can_be_cancelled_before_it_has_begun(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    hold(api, monkeypatch)
    session = api.session()
    api.say(session, "Hello")
    assert api.send(session, CANCEL).status == 202
    (turn,) = api.turns(session)
    assert status(api, session) == "idle"
    events = api.events(session)
    assert types(events) == ["user.message", "sandbox.created", "turn.started", "turn.ended"]
    times = [event["created_at"] for event in events[2:]]
    assert (turn["status"], turn["started_at"], turn["completed_at"]) == ("cancelled", *times)


@pytest.mark.behaviour("input.cancel-race")
def test_an_answer_and_a_cancel_at_once_settle_the_turn_once(api: Api) -> None:
    session, action = parked(api)
    events = [CANCEL, *(replying(action, output=f"{n}") for n in range(5)), CANCEL]
    answers = at_once(len(events), lambda n: api.send(session, events[n]))
    assert [answers[0].status, answers[-1].status] == [202, 202]
    outcomes = [answer.json.get("outcome", answer.status) for answer in answers[1:-1]]
    (turn,) = api.turns(session)
    if turn["status"] == "completed":
        assert sorted(outcomes) == ["accepted"] + ["already_resolved"] * 4
    else:
        assert turn["status"] == "cancelled"
        assert outcomes.count("accepted") <= 1
        assert set(outcomes) <= {"accepted", "already_resolved", 202, 404}
    assert types(api.events(session)).count("turn.ended") == 1
    assert status(api, session) == "idle"


@pytest.mark.behaviour("input.steer-between")
def test_a_steer_between_two_turns_reaches_the_next(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    @api.emulator.agent
    async def agent(turn: Turn) -> None:
        if turn.number == 1:
            await turn.ask("Which?")
        await turn.say(f"{turn.number}: {turn.steers}")

    gate, reached = asyncio.Event(), threading.Event()

    async def connect(self: SimulatedServer) -> None:
        reached.set()
        await gate.wait()

    session = api.session({"input": "first"})
    for text in ("second", "third"):
        api.say(session, text)
    monkeypatch.setattr(SimulatedServer, "connect", connect)
    api.put(f"/v1/sessions/{session}/tools", {"tools": [{"type": "mcp", "name": "docs", "command": "docs"}]})
    answering = threading.Thread(target=lambda: api.emulator.answer("a"))
    answering.start()
    try:
        assert reached.wait(WAIT)
        sent = threading.Thread(target=lambda: api.send(session, steer("Faster.")))
        sent.start()
        until(lambda: bool(api.emulator.socket.deployment.engine._between[session]), "the steer was taken")
    finally:
        api.emulator.loop.loop.call_soon_threadsafe(gate.set)
        answering.join(WAIT)
    sent.join(WAIT)
    assert said(api, session) == ["1: []", "2: ['Faster.']", "3: []"]
