"""Findings about reads: a client that breaks the rule, one that keeps it, and those in between."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.findings.support import LOOKUP, close, evidence, found, ids, parked
from tests.receiver import Receiver

if TYPE_CHECKING:
    from collections.abc import Iterator

    from emulator import Emulator
    from emulator.runtime.turn import Turn
    from tests.support import Api


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """Takes webhooks."""
    with Receiver() as listening:
        yield listening


def _two_turns(gobare: Emulator, api: Api, *, shows: bool = True) -> str:
    """A session that answers its first message and takes a minute for its second."""

    @gobare.agent
    async def agent(turn: Turn) -> None:
        if turn.number > 1:
            if shows:
                await turn.use("bash", {"command": "make"})
            await turn.wait(60)
        await turn.say(f"Answer {turn.number}.")

    session_id = api.session({"input": "one"})
    api.items(session_id)
    return session_id


def _finish(gobare: Emulator) -> None:
    """Let the turn end without this client looking."""
    gobare.clock.advance(60)


@pytest.mark.parametrize("what", ["items", "turns?order=asc&limit=1"])
def test_the_answer_before_is_taken_for_the_new_one(gobare: Emulator, api: Api, what: str) -> None:
    session_id = _two_turns(gobare, api)
    said = api.say(session_id, "two")
    read = api.get(f"/v1/sessions/{session_id}/{what}")
    _finish(gobare)
    turn_id = gobare.socket.deployment.world.organization("default").session(session_id).turns[1].id
    assert found(gobare) == {"previous-answer-taken": evidence(ids(said, read), session_id=session_id, turn_id=turn_id)}


@pytest.mark.parametrize("then", ["says", "deletes"])
@pytest.mark.parametrize("shows", [False, True])
def test_a_client_goes_on_before_the_new_answer_is_there(gobare: Emulator, api: Api, shows: bool, then: str) -> None:
    session_id = _two_turns(gobare, api, shows=shows)
    said = api.say(session_id, "two")
    read = api.get(f"/v1/sessions/{session_id}/items")
    if then == "says":
        api.say(session_id, "three")
    else:
        api.delete(f"/v1/sessions/{session_id}")
    told = found(gobare)
    # Where the read showed the agent at it, the client knows that there is more to come.
    assert list(told) == ([] if shows else ["previous-answer-taken"])
    if told:
        assert told["previous-answer-taken"]["request_ids"] == ids(said, read)


@pytest.mark.parametrize(
    "how", ["items after", "turn", "turns", "stream", "beginning", "looks on", "under way", "webhook"]
)
def test_the_new_answer_is_waited_for(gobare: Emulator, api: Api, receiver: Receiver, how: str) -> None:
    session_id = _two_turns(gobare, api, shows=how != "under way")
    if how == "webhook":
        api.post("/v1/webhooks", {"url": receiver.url, "events": ["turn.completed"]})
    stream = api.stream(f"/v1/sessions/{session_id}/events") if how in ("stream", "beginning") else None
    api.say(session_id, "two")
    if stream is not None and how == "beginning":
        # It knows that the new turn is at it, and was not there for its answer.
        stream.until("agent.tool_call")
        close(gobare, stream)
    read = api.get(f"/v1/sessions/{session_id}/items").json
    assert [item["content"] for item in read["data"] if item.get("role") == "assistant"] == ["Answer 1."]
    if how != "under way":
        _finish(gobare)
    match how:
        case "items after":
            api.items(session_id)
        case "turn" | "turns":
            turn_id = api.turns(session_id)[-1]["id"]
            api.get(f"/v1/sessions/{session_id}/turns/{turn_id}")
        case "looks on":
            api.get(f"/v1/sessions/{session_id}")
        case "webhook":
            gobare.settle()
    if stream is not None and how == "stream":
        stream.until("turn.ended")
        stream.close()
    assert found(gobare) == {}


def test_the_first_answer_is_nobody_elses(gobare: Emulator, api: Api) -> None:
    gobare.load({"agent": [{"otherwise": [{"wait": 60}, {"say": "Ok."}]}]})
    session_id = api.session({"input": "go"})
    api.get(f"/v1/sessions/{session_id}/items")
    _finish(gobare)
    assert found(gobare) == {}


@pytest.mark.parametrize("what", ["turns?limit=1", "turns/{}"])
def test_the_turn_is_polled_and_never_the_session(gobare: Emulator, api: Api, what: str) -> None:
    _, session_id = parked(api)
    turn_id, call_id = _waiting(gobare, session_id)
    polls = [api.get(f"/v1/sessions/{session_id}/{what.format(turn_id)}") for _ in range(3)]
    assert found(gobare) == {
        "polled-turn-only": evidence(ids(*polls), session_id=session_id, turn_id=turn_id, call_id=call_id)
    }


@pytest.mark.parametrize(
    "how", ["session", "list", "stream", "items", "webhook", "answered", "twice", "another", "not waiting", "too late"]
)
def test_what_the_session_waits_for_is_seen(gobare: Emulator, api: Api, receiver: Receiver, how: str) -> None:
    if how == "webhook":
        api.post("/v1/webhooks", {"url": receiver.url, "events": ["session.action_required"]})
    session_id = parked(api, tools=[{**LOOKUP, "timeout_seconds": 5}])[1]
    turn_id, call_id = _waiting(gobare, session_id)
    if how == "not waiting":
        gobare.load({"agent": [{"otherwise": [{"wait": 60}, {"say": "Ok."}]}]})
        session_id = api.session({"input": "go"})
        turn_id = gobare.socket.deployment.world.organization("default").session(session_id).turns[0].id
        _finish(gobare)
    if how == "another":
        # The turn it reads is one that is over, and another one waits.
        gobare.load({"agent": [{"otherwise": [{"say": "Ok."}]}]})
        session_id = api.session({"input": "go"})
        turn_id = api.turns(session_id)[0]["id"]
        gobare.load({"agent": [{"otherwise": [{"ask": {"question": "Which?"}}]}]})
        api.say(session_id, "and now")
    if how == "too late":
        gobare.clock.advance(6)
    for _ in range(2 if how == "twice" else 5):
        api.get(f"/v1/sessions/{session_id}/turns/{turn_id}")
    match how:
        case "session":
            api.actions(session_id)
        case "list":
            api.get("/v1/sessions?status=requires_action")
        case "items":
            api.items(session_id)
        case "stream":
            with api.stream("/v1/events?last_event_id=0") as stream:
                stream.until("tool.required")
        case "answered":
            api.answer(session_id, {"turn_id": turn_id, "call_id": call_id})
        case "webhook":
            gobare.settle()
    assert found(gobare) == {}


def _waiting(gobare: Emulator, session_id: str) -> tuple[str, str]:
    """The turn of a session and the call it waits for, as no client read them."""
    session = gobare.socket.deployment.world.organization("default").session(session_id)
    (action,) = session.actions.values()
    return action.turn_id, action.call_id


def test_a_turn_is_waited_for_after_its_answer_was_not_delivered(gobare: Emulator, api: Api) -> None:
    session_id, answer, action = _not_delivered(gobare, api)
    polls = [api.get(f"/v1/sessions/{session_id}") for _ in range(3)]
    assert found(gobare) == {
        "waited-after-not-delivered": evidence(
            ids(answer, *polls), session_id=session_id, turn_id=action["turn_id"], call_id=action["call_id"]
        )
    }


@pytest.mark.parametrize("event", ["input.message", "input.cancel"])
def test_a_message_or_a_cancel_goes_on_from_what_was_not_delivered(gobare: Emulator, api: Api, event: str) -> None:
    session_id, _, _ = _not_delivered(gobare, api)
    api.get(f"/v1/sessions/{session_id}")
    content = {"content": "Go on without it."} if event == "input.message" else {}
    assert api.send(session_id, {"type": event, **content}).status == 202
    for _ in range(5):
        api.get(f"/v1/sessions/{session_id}")
    assert found(gobare) == {}


@pytest.mark.parametrize("how", ["looks round", "waits for another call"])
def test_a_client_looks_where_it_is_after_what_was_not_delivered(gobare: Emulator, api: Api, how: str) -> None:
    @gobare.agent
    async def agent(turn: Turn) -> None:
        calls = [turn.call("lookup", lose=True)]
        await turn.together(*calls, *([turn.call("lookup")] if how != "looks round" else []))

    session_id = api.session({"input": "go", "agent": {"tools": [LOOKUP]}})
    lost, *others = api.actions(session_id)
    assert api.answer(session_id, lost).json["outcome"] == "not_delivered"
    for _ in range(5 if others else 2):
        assert len(api.actions(session_id)) == len(others)
        if not others:
            api.turns(session_id)
            api.items(session_id)
    assert found(gobare) == {}


def test_a_client_that_pages_on_takes_nothing_for_new(gobare: Emulator, api: Api) -> None:
    session_id = _two_turns(gobare, api)
    page = api.get(f"/v1/sessions/{session_id}/items?order=asc&limit=1").json
    api.say(session_id, "two")
    later = api.get(f"/v1/sessions/{session_id}/items?order=asc&limit=1&after={page['last_id']}").json["data"]
    assert [item["content"] for item in later] == ["Answer 1."]
    _finish(gobare)
    assert found(gobare) == {}


def test_a_turn_goes_on_by_itself_from_a_call_that_expired(gobare: Emulator, api: Api) -> None:
    @gobare.agent
    async def agent(turn: Turn) -> None:
        await turn.call("lookup")
        await turn.wait(60)

    session_id = api.session({"input": "go", "agent": {"tools": [{**LOOKUP, "timeout_seconds": 5}]}})
    action = api.actions(session_id)[0]
    gobare.clock.advance(6)
    assert api.answer(session_id, action).json["outcome"] == "not_delivered"
    for _ in range(5):
        api.actions(session_id)
    assert found(gobare) == {}


def _not_delivered(gobare: Emulator, api: Api) -> tuple[str, Any, dict[str, Any]]:
    _, session_id = parked(api)
    action = api.actions(session_id)[0]
    gobare.lose_calls(session_id)
    answer = api.answer(session_id, action)
    assert answer.json["outcome"] == "not_delivered"
    return session_id, answer, action


@pytest.mark.gobare(publication_seconds=3)
@pytest.mark.parametrize("then", ["goes", "deletes", "reads something else"])
def test_an_empty_list_is_taken_for_the_result(gobare: Emulator, api: Api, then: str) -> None:
    session_id, turn_id = _written(gobare, api)
    read = api.get(f"/v1/sessions/{session_id}/artifacts")
    assert read.json["data"] == []
    if then == "deletes":
        api.delete(f"/v1/sessions/{session_id}")
    if then == "reads something else":
        gobare.clock.advance(3)
        api.get(f"/v1/sessions/{session_id}")
    assert found(gobare) == {"empty-artifacts-taken": evidence(ids(read), session_id=session_id, turn_id=turn_id)}


@pytest.mark.gobare(publication_seconds=3)
@pytest.mark.parametrize("how", ["list", "turn's list", "archive", "stream", "nothing written", "waiting", "failed"])
def test_the_artifacts_are_waited_for(gobare: Emulator, api: Api, how: str) -> None:
    if how == "failed":
        gobare.settings.update(publication="fails")
    session_id, turn_id = _written(gobare, api, nothing=how == "nothing written")
    artifacts = f"/v1/sessions/{session_id}/artifacts"
    stream = api.stream("/v1/events?last_event_id=0") if how == "stream" else None
    assert api.get(artifacts).json["data"] == []
    if how == "waiting":
        assert api.get(f"/v1/sessions/{session_id}/turns/{turn_id}").json["artifacts"] == "pending"
        assert found(gobare) == {}
    gobare.clock.advance(3)
    match how:
        case "list" | "waiting":
            assert len(api.get(artifacts).json["data"]) == 1
        case "turn's list":
            assert len(api.get(f"{artifacts}?turn_id={turn_id}").json["data"]) == 1
        case "archive":
            assert api.get(f"{artifacts}/archive").status == 200
        case "stream":
            assert stream is not None
            stream.until("artifact.created")
            stream.close()
    assert found(gobare) == {}


def _written(gobare: Emulator, api: Api, *, nothing: bool = False) -> tuple[str, str]:
    @gobare.agent
    async def agent(turn: Turn) -> None:
        if not nothing:
            await turn.write("/workspace/outputs/report.md", "# Report")

    session_id = api.session({"input": "go"})
    return session_id, api.turns(session_id)[0]["id"]
