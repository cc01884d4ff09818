"""Turns (contract §8): their states, times, errors and artifacts."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from tests.contract.steps import EPOCH, function, hold, parked, replying, session_with, status, types

if TYPE_CHECKING:
    from emulator import Turn
    from tests.support import Api

CANCEL = {"type": "input.cancel"}


def turn_of(api: Api, session: str) -> dict[str, Any]:
    """The only turn of a session."""
    (turn,) = api.turns(session)
    return turn


@pytest.mark.behaviour("turns.shape", "turns.completed", "turns.times", "turns.artifacts-skipped")
def test_a_completed_turn_has_exactly_these_fields(api: Api) -> None:
    session = api.session()
    api.say(session, "Hello")
    turn = turn_of(api, session)
    assert re.fullmatch(r"turn_[0-9a-f]{16}", turn["id"])
    assert turn == {
        "object": "turn",
        "id": turn["id"],
        "session_id": session,
        "status": "completed",
        "created_at": EPOCH,
        "started_at": EPOCH + 3,
        "completed_at": EPOCH + 5,
        "artifacts": "ready",
        "artifacts_skipped": [],
        "subagent_id": None,
        "error": None,
    }


@pytest.mark.behaviour("turns.shape", "turns.working", "turns.artifacts-null")
def test_a_working_turn_has_the_same_fields_and_nothing_of_the_end(api: Api) -> None:
    session, action = parked(api)
    turn = turn_of(api, session)
    assert turn == {
        "object": "turn",
        "id": action["turn_id"],
        "session_id": session,
        "status": "working",
        "created_at": EPOCH,
        "started_at": EPOCH + 3,
        "completed_at": None,
        "artifacts": None,
        "artifacts_skipped": [],
        "subagent_id": None,
        "error": None,
    }


@pytest.mark.behaviour("turns.times")
def test_the_times_of_a_turn_are_those_of_its_events(api: Api) -> None:
    session, action = parked(api)
    api.emulator.clock.advance(10)
    api.answer(session, action)
    turn = turn_of(api, session)
    at = {event["type"]: event["created_at"] for event in api.events(session)}
    assert (turn["started_at"], turn["completed_at"]) == (at["turn.started"], at["turn.ended"])
    assert turn["completed_at"] - turn["started_at"] > 10_000
    assert [event["payload"] for event in api.events(session) if event["type"].startswith("turn.")] == [
        {"turnId": turn["id"]},
        {"turnId": turn["id"]},
    ]


@pytest.mark.behaviour("turns.read")
def test_a_turn_reads_alike_alone_and_in_the_list(api: Api) -> None:
    session, action = parked(api)
    for _ in range(2):
        turn = turn_of(api, session)
        assert api.get(f"/v1/sessions/{session}/turns/{turn['id']}").json == turn
        api.answer(session, action)


@pytest.mark.behaviour("turns.not-found")
def test_a_turn_of_another_session_is_as_unknown_as_one_that_never_was(api: Api) -> None:
    session, action = parked(api)
    other = api.session()
    foreign = api.get(f"/v1/sessions/{other}/turns/{action['turn_id']}")
    never = api.get(f"/v1/sessions/{session}/turns/turn_0000000000000000")
    for answer in (foreign, never):
        assert (answer.status, answer.code) == (404, "not_found")
    assert foreign.message.replace(action["turn_id"], "X") == never.message.replace("turn_0000000000000000", "X")


@pytest.mark.behaviour("turns.failed", "turns.failed-session")
@pytest.mark.parametrize("code", ["provider_error", "context_length_exceeded", "internal_error", "sandbox_error"])
def test_a_failed_turn_says_why(api: Api, code: str) -> None:
    @api.emulator.agent
    async def agent(turn: Turn) -> None:
        if turn.number == 1:
            await turn.say("Let me see.")
            await turn.fail(code, "the model provider returned 502")

    session = api.session()
    api.say(session, "Go.")
    turn = turn_of(api, session)
    assert (turn["status"], turn["artifacts"]) == ("failed", "ready")
    assert turn["error"] == {"code": code, "message": "the model provider returned 502"}
    assert types(api.events(session))[-2:] == ["agent.error", "turn.ended"]
    error = api.items(session)[-1]
    assert (error["type"], error["detail"]) == (
        "error",
        {"event": "agent.error", "message": "the model provider returned 502"},
    )
    assert status(api, session) == "failed"
    assert api.say(session, "Again.").json["queued"] is False
    assert [entry["status"] for entry in api.turns(session)] == ["failed", "completed"]
    assert status(api, session) == "idle"


@pytest.mark.behaviour("turns.failed-drops")
def test_what_a_failed_turn_waited_for_is_dropped(api: Api) -> None:
    @api.emulator.agent
    async def agent(turn: Turn) -> None:
        async def give_up() -> None:
            await turn.ask("Go on?")
            await turn.fail("provider_error", "gone")

        await turn.together(turn.call("lookup_order"), give_up())

    session = session_with(api, function())
    api.say(session, "Go.")
    call, question = api.actions(session)
    api.send(session, replying(question))
    assert (status(api, session), api.actions(session)) == ("failed", [])
    assert api.answer(session, call).code == "not_found"


@pytest.mark.behaviour("turns.cancelled")
def test_a_cancelled_turn_is_neither_failed_nor_completed(api: Api) -> None:
    session, _ = parked(api)
    api.send(session, CANCEL)
    turn = turn_of(api, session)
    assert (turn["status"], turn["error"], turn["artifacts"]) == ("cancelled", None, "ready")
    assert turn["completed_at"] > turn["started_at"]


@pytest.mark.behaviour("turns.settled-stays")
@pytest.mark.parametrize("ending", ["completed", "failed", "cancelled"])
def test_a_settled_turn_never_moves(api: Api, ending: str) -> None:
    @api.emulator.agent
    async def agent(turn: Turn) -> None:
        if turn.number == 1:
            await turn.call("lookup_order")
            if ending == "failed":
                await turn.fail("provider_error", "gone")

    session = session_with(api, function())
    api.say(session, "Go.")
    (action,) = api.actions(session)
    api.send(session, CANCEL if ending == "cancelled" else replying(action))
    settled = turn_of(api, session)
    assert settled["status"] == ending
    api.answer(session, action)
    api.send(session, CANCEL)
    api.say(session, "Again.")
    api.emulator.clock.advance(10_000)
    assert api.turns(session)[0] == settled


@pytest.mark.behaviour("turns.queued", "turns.artifacts-null")
def test_a_queued_turn_begins_when_the_one_before_has_ended(api: Api) -> None:
    session, action = parked(api)
    api.say(session, "waits")
    waiting = api.turns(session)[1]
    assert (waiting["status"], waiting["started_at"], waiting["artifacts"]) == ("working", None, None)
    api.emulator.clock.advance(5)
    api.answer(session, action)
    first, second = api.turns(session)
    assert second["id"] == waiting["id"]
    assert second["created_at"] == waiting["created_at"]
    assert second["started_at"] > first["completed_at"]
    assert second["started_at"] - second["created_at"] > 5000


@pytest.mark.behaviour("turns.artifacts-pending", "turns.artifacts-null")
def test_artifacts_are_pending_until_they_are_published(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    @api.emulator.agent
    async def agent(turn: Turn) -> None:
        await turn.write("/workspace/outputs/report.md", "# Report")
        await turn.call("lookup_order")

    session = session_with(api, function())
    api.say(session, "Go.")
    api.emulator.settings.update(pace="realistic")
    let_go = hold(api, monkeypatch)
    with api.stream(f"/v1/sessions/{session}/events", headers={"Last-Event-ID": "0"}) as frames:
        api.answer(session, api.actions(session)[0])
        frames.until("turn.ended")
        turn = turn_of(api, session)
        assert (turn["status"], turn["artifacts"]) == ("completed", "pending")
        assert api.emulator.report()["undeleted"]["artifacts"] == []
        let_go()
        frames.until("artifact.created")
    api.emulator.settle()
    turn = turn_of(api, session)
    assert (turn["artifacts"], turn["artifacts_skipped"]) == ("ready", [])


@pytest.mark.behaviour("turns.artifacts-partial")
def test_a_file_that_is_too_large_is_skipped_and_named(api: Api) -> None:
    @api.emulator.agent
    async def agent(turn: Turn) -> None:
        await turn.write("/workspace/outputs/build.tar", bytes(209_715_201))
        await turn.write("/workspace/outputs/report.md", "# Report")

    session = api.session()
    api.say(session, "Go.")
    turn = turn_of(api, session)
    assert turn["status"] == "completed"
    assert turn["artifacts"] == "partial"
    assert turn["artifacts_skipped"] == [{"path": "outputs/build.tar", "reason": "larger than 209715200 bytes"}]
    created = [event["payload"]["path"] for event in api.events(session) if event["type"] == "artifact.created"]
    assert created == ["/workspace/outputs/report.md"]


@pytest.mark.behaviour("turns.reclaimed", "turns.failed-session")
def test_a_turn_that_outlives_its_workspace_fails(api: Api) -> None:
    session, action = parked(api)
    api.emulator.clock.advance(7199)
    assert api.actions(session) == [action]
    api.emulator.clock.advance(1)
    turn = turn_of(api, session)
    assert turn["status"] == "failed"
    assert turn["error"]["code"] == "sandbox_unavailable"
    assert (status(api, session), api.actions(session)) == ("failed", [])
    assert api.get(f"/v1/sessions/{session}").json["environment"]["state"] == "destroyed"
