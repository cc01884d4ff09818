"""Input (contract §7): the request, messages and the queue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.contract.steps import at_once, function, hold, looks_up, parked, payloads, said, session_with, status, types

if TYPE_CHECKING:
    from emulator import Turn
    from tests.support import Api

SEVEN = [
    "input.message",
    "input.context",
    "input.tool_result",
    "input.approval",
    "input.question_answer",
    "input.steer",
    "input.cancel",
]
COMPLETE: dict[str, dict[str, Any]] = {
    "input.message": {"content": "Hello"},
    "input.context": {"content": "Hello"},
    "input.tool_result": {"turn_id": "turn_1", "call_id": "call_1", "success": True, "output": "done"},
    "input.approval": {"call_id": "call_1", "approved": True},
    "input.question_answer": {"call_id": "call_1", "answer": "eu"},
    "input.steer": {"content": "Hello"},
    "input.cancel": {},
}
MESSAGE = {"type": "input.message", "content": "Hello"}


def refused(api: Api, body: Any) -> str:
    """Send a body that is refused, see that nothing came of it, and give the message."""
    session = api.session()
    answer = api.post(f"/v1/sessions/{session}/events", body)
    assert (answer.status, answer.code) == (400, "invalid_request")
    assert api.events(session) == []
    assert api.turns(session) == []
    assert api.items(session) == []
    assert status(api, session) == "idle"
    return answer.message


@pytest.mark.behaviour("input.one-event", "input.refused-changes-nothing")
@pytest.mark.parametrize(
    ("body", "fragments"),
    [
        ({}, ["`events`", "required"]),
        ({"events": []}, ["`events`", "exactly one", "0 were sent"]),
        ({"events": [MESSAGE, MESSAGE]}, ["`events`", "exactly one", "2 were sent"]),
        ({"events": [MESSAGE] * 40}, ["`events`", "exactly one", "40 were sent"]),
        ({"events": MESSAGE}, ["`events`", "a list", "an object was sent"]),
        ({"events": None}, ["`events`", "a list", "null was sent"]),
        ({"events": ["hello"]}, ["`events[0]`", "an object", "a string was sent"]),
        ({"events": [MESSAGE], "event": MESSAGE}, ["Unknown field `event`", "Did you mean `events`?"]),
        (MESSAGE, ["Unknown field `type`"]),
    ],
)
def test_a_body_of_anything_but_one_event_is_refused(api: Api, body: Any, fragments: list[str]) -> None:
    message = refused(api, body)
    for fragment in fragments:
        assert fragment in message


@pytest.mark.behaviour("input.unknown-type")
@pytest.mark.parametrize("sent", ["input.mesage", "message", "user.message", ""])
def test_an_unknown_type_is_refused_with_the_seven_there_are(api: Api, sent: str) -> None:
    message = refused(api, {"events": [{"type": sent, "content": "Hello"}]})
    assert "`events[0].type` must be one of " + ", ".join(SEVEN) in message


@pytest.mark.behaviour("input.unknown-type")
def test_a_misspelt_type_is_told_what_was_probably_meant(api: Api) -> None:
    assert "Did you mean `input.message`?" in refused(api, {"events": [{"type": "input.mesage", "content": "Hi"}]})


@pytest.mark.behaviour("input.unknown-type")
@pytest.mark.parametrize("event", [{"content": "Hello"}, {"type": None, "content": "Hello"}, {"type": 1}])
def test_an_event_without_a_type_is_refused(api: Api, event: dict[str, Any]) -> None:
    message = refused(api, {"events": [event]})
    assert "`events[0].type`" in message
    assert ", ".join(SEVEN) in message


@pytest.mark.behaviour("input.unknown-field", "input.refused-changes-nothing")
@pytest.mark.parametrize("kind", SEVEN)
def test_a_field_the_type_does_not_know_is_refused_with_those_it_does(api: Api, kind: str) -> None:
    message = refused(api, {"events": [{"type": kind, **COMPLETE[kind], "priority": 1}]})
    assert "Unknown field `events[0].priority`" in message
    for name in ("type", *COMPLETE[kind]):
        assert name in message.partition("accepts")[2]


@pytest.mark.behaviour("input.unknown-field")
@pytest.mark.parametrize(
    ("event", "path"),
    [
        ({**MESSAGE, "turn_id": "turn_1"}, "events[0].turn_id"),
        ({"type": "input.cancel", "turn_id": "turn_1"}, "events[0].turn_id"),
        ({"type": "input.cancel", "content": "stop"}, "events[0].content"),
        ({"type": "input.approval", "call_id": "call_1", "approved": True, "turn_id": "t"}, "events[0].turn_id"),
        ({"type": "input.steer", "content": "go", "call_id": "call_1"}, "events[0].call_id"),
        ({"type": "input.message", "content": [{"type": "input_text", "text": "a", "lang": "en"}]}, "content[0].lang"),
    ],
)
def test_a_field_of_another_type_is_unknown(api: Api, event: dict[str, Any], path: str) -> None:
    message = refused(api, {"events": [event]})
    assert message.startswith("Unknown field `")
    assert f"{path}`" in message


@pytest.mark.behaviour("input.unknown-field")
@pytest.mark.parametrize(
    ("event", "meant"),
    [
        ({"type": "input.message", "text": "Hello"}, "content"),
        ({"type": "input.approval", "callId": "call_1", "approved": True}, "call_id"),
        ({"type": "input.tool_result", "call_id": "c", "turnId": "t", "success": True, "output": ""}, "turn_id"),
    ],
)
def test_a_near_miss_is_told_the_field_that_was_meant(api: Api, event: dict[str, Any], meant: str) -> None:
    assert f"Did you mean `{meant}`?" in refused(api, {"events": [event]})


@pytest.mark.behaviour("input.no-session")
@pytest.mark.parametrize("kind", SEVEN)
def test_input_to_no_session_is_not_found(api: Api, kind: str) -> None:
    answer = api.send("3f9c1b60-4e2a-4d18-9a77-6c0b2e5d81af", {"type": kind, **COMPLETE[kind]})
    assert (answer.status, answer.code) == (404, "not_found")
    assert "3f9c1b60-4e2a-4d18-9a77-6c0b2e5d81af" in answer.message


@pytest.mark.behaviour("input.content-text", "input.refused-changes-nothing")
@pytest.mark.parametrize("kind", ["input.message", "input.context", "input.steer"])
@pytest.mark.parametrize(
    ("content", "path"),
    [
        ("", "events[0].content"),
        (None, "events[0].content"),
        (7, "events[0].content"),
        (True, "events[0].content"),
        ({"type": "input_text", "text": "Hello"}, "events[0].content"),
        ([], "events[0].content"),
        ([{"type": "input_text", "text": ""}], "events[0].content"),
        (["Hello"], "events[0].content[0]"),
        ([{"type": "text", "text": "Hello"}], "events[0].content[0].type"),
        ([{"text": "Hello"}], "events[0].content[0].type"),
        ([{"type": "input_text"}], "events[0].content[0].text"),
        ([{"type": "input_text", "text": 7}], "events[0].content[0].text"),
        ([{"type": "input_text", "text": "a"}, {"type": "input_image", "text": "b"}], "events[0].content[1].type"),
    ],
)
def test_content_that_is_no_text_is_refused_by_its_path(api: Api, kind: str, content: Any, path: str) -> None:
    assert f"`{path}`" in refused(api, {"events": [{"type": kind, "content": content}]})


@pytest.mark.behaviour("input.content-text")
@pytest.mark.parametrize("kind", ["input.message", "input.context", "input.steer"])
def test_content_must_be_there(api: Api, kind: str) -> None:
    assert refused(api, {"events": [{"type": kind}]}) == "`events[0].content` is required."


@pytest.mark.behaviour("input.content-blank")
@pytest.mark.parametrize("content", ["   ", "\n\t", [{"type": "input_text", "text": " "}]])
def test_white_space_alone_is_no_message(api: Api, content: Any) -> None:
    assert "`events[0].content`" in refused(api, {"events": [{"type": "input.message", "content": content}]})


@pytest.mark.behaviour("input.content-text", "input.content-parts")
@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("Hello", "Hello"),
        ("  Grüße – 你好\n", "  Grüße – 你好\n"),
        ([{"type": "input_text", "text": "Hello"}], "Hello"),
        ([{"type": "input_text", "text": "Hel"}, {"type": "input_text", "text": "lo"}], "Hello"),
        ([{"type": "input_text", "text": ""}, {"type": "input_text", "text": "Hello"}], "Hello"),
    ],
)
def test_a_message_is_recorded_as_it_was_sent(api: Api, content: Any, text: str) -> None:
    session = api.session()
    assert api.send(session, {"type": "input.message", "content": content}).status == 202
    assert payloads(api, session, "user.message") == [{"text": text}]


@pytest.mark.behaviour("input.reply", "input.message-idle", "input.no-turn-id")
def test_a_message_to_an_idle_session_is_not_queued(api: Api) -> None:
    session = api.session()
    for _ in range(2):
        answer = api.say(session, "Hello")
        assert answer.status == 202
        assert answer.json == {
            "object": "input.accepted",
            "session_id": session,
            "type": "input.message",
            "queued": False,
            "queue_position": None,
        }


@pytest.mark.behaviour("input.message-queued", "input.message-parked", "input.reply")
def test_a_message_behind_a_parked_turn_waits_in_its_place(api: Api) -> None:
    session, _ = parked(api)
    for position in (1, 2, 3):
        assert api.say(session, f"Message {position}").json == {
            "object": "input.accepted",
            "session_id": session,
            "type": "input.message",
            "queued": True,
            "queue_position": position,
        }
    assert status(api, session) == "requires_action"


@pytest.mark.behaviour("input.message-visible")
def test_the_turn_of_a_message_is_there_with_the_reply(api: Api) -> None:
    session, action = parked(api)
    (turn,) = api.get(f"/v1/sessions/{session}/turns?limit=1").json["data"]
    assert (turn["id"], turn["status"]) == (action["turn_id"], "working")
    api.say(session, "Another")
    (waiting,) = api.get(f"/v1/sessions/{session}/turns?limit=1").json["data"]
    assert waiting["id"] != turn["id"]
    assert (waiting["status"], waiting["started_at"], waiting["artifacts"]) == ("working", None, None)


@pytest.mark.behaviour("input.message-visible")
@pytest.mark.gobare(pace="realistic")
def test_the_turn_is_there_before_it_has_begun(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    let_go = hold(api, monkeypatch)
    session = api.session()
    api.say(session, "Hello")
    assert status(api, session) == "working"
    (turn,) = api.turns(session)
    assert (turn["status"], turn["started_at"]) == ("working", None)
    let_go()
    api.emulator.settle()
    assert api.turns(session)[0]["started_at"] == api.events(session)[2]["created_at"]


@pytest.mark.behaviour("input.queue-order", "input.queue-events", "input.queue-user-message")
def test_queued_messages_run_in_their_order(api: Api) -> None:
    session, action = parked(api)

    @api.emulator.agent
    async def echo(turn: Turn) -> None:
        await turn.say(f"{turn.number}: {turn.message}")

    api.say(session, "second")
    api.say(session, "third")
    assert payloads(api, session, "message.queued") == [
        {"text": "second", "position": 1},
        {"text": "third", "position": 2},
    ]
    assert payloads(api, session, "user.message") == [{"text": "Where is my order?"}]
    assert [item["content"] for item in api.items(session) if item["type"] == "message"] == ["Where is my order?"]
    api.answer(session, action)
    assert said(api, session) == ["output=done error=None", "2: second", "3: third"]
    after = types(api.events(session))
    first_end = after.index("turn.ended")
    one = ["message.dequeued", "user.message", "turn.started", "agent.message", "turn.ended"]
    assert after[first_end + 1 :] == one * 2
    assert payloads(api, session, "message.dequeued") == [{"text": "second"}, {"text": "third"}]
    assert [turn["status"] for turn in api.turns(session)] == ["completed"] * 3
    assert status(api, session) == "idle"


@pytest.mark.behaviour("input.queue-full", "input.refused-changes-nothing")
def test_the_sixth_waiting_message_is_refused(api: Api) -> None:
    session, _ = parked(api)
    positions = [api.say(session, f"{n}").json["queue_position"] for n in range(5)]
    assert positions == [1, 2, 3, 4, 5]
    before = (api.events(session), api.turns(session))
    answer = api.say(session, "one too many")
    assert (answer.status, answer.code) == (429, "queue_full")
    assert answer.headers["retry-after"].isdigit()
    assert "5 messages" in answer.message
    assert (api.events(session), api.turns(session)) == before


@pytest.mark.behaviour("input.queue-frees")
def test_a_message_that_has_started_frees_its_place(api: Api) -> None:
    session, action = parked(api)
    for n in range(5):
        api.say(session, f"{n}")
    api.answer(session, action)
    assert api.say(session, "five wait again").json["queue_position"] == 5
    assert api.say(session, "one too many").code == "queue_full"


@pytest.mark.behaviour("input.queue-limit")
@pytest.mark.gobare(queue_limit=1)
def test_how_many_messages_wait_can_be_set(api: Api) -> None:
    session, _ = parked(api)
    assert api.say(session, "waits").json["queue_position"] == 1
    assert api.say(session, "one too many").code == "queue_full"


@pytest.mark.behaviour("input.queue-race")
def test_messages_sent_at_once_to_an_idle_session_get_a_place_each(api: Api) -> None:
    api.emulator.agent(looks_up)
    session = session_with(api, function())
    answers = at_once(12, lambda n: api.say(session, f"{n}"))
    accepted = [answer.json for answer in answers if answer.status == 202]
    assert [entry["queued"] for entry in accepted].count(False) == 1
    assert sorted(entry["queue_position"] or 0 for entry in accepted) == [0, 1, 2, 3, 4, 5]
    assert [answer.code for answer in answers if answer.status != 202] == ["queue_full"] * 6
    assert len(api.turns(session)) == 6
