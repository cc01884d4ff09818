"""Frames (contract §9): what is sent for an event, byte for byte, and what holds a stream open."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from emulator.settings import Settings
from tests.contract.steps import EPOCH

if TYPE_CHECKING:
    from emulator import Turn
    from tests.support import Api, Frames


def sent(frames: Frames) -> bytes:
    """The bytes of the frames read so far."""
    return b"".join(frame.text.encode() + b"\n\n" for frame in frames.seen)


@pytest.mark.behaviour("events.frame", "events.data", "events.transient-frame", "events.retry", "events.text")
def test_a_turn_is_sent_byte_for_byte(api: Api) -> None:
    @api.emulator.agent
    async def agent(turn: Turn) -> None:
        await turn.say("It is shipped.")

    session = api.session()
    with api.stream(f"/v1/sessions/{session}/events") as frames:
        api.say(session, "Grüße")
        frames.until("turn.ended")
    (turn,) = api.turns(session)

    def data(event_type: str, seq: str, at: int, payload: str) -> str:
        return (
            f'{{"object":"event","type":"{event_type}","internal_type":"{event_type}","session_id":"{session}",'
            f'"seq":{seq},"created_at":{EPOCH + at},"payload":{payload}}}'
        )

    said_turn = f'{{"turnId":"{turn["id"]}"}}'
    kept = [
        ("user.message", '{"text":"Grüße"}'),
        ("sandbox.created", '{"state":"running"}'),
        ("turn.started", said_turn),
        ("agent.message", '{"text":"It is shipped."}'),
        ("turn.ended", said_turn),
    ]
    expected = [
        f"id: {seq}\nevent: {event_type}\ndata: {data(event_type, str(seq), seq, payload)}\n\n"
        for seq, (event_type, payload) in enumerate(kept, start=1)
    ]
    delta = data("agent.text", "null", 3, '{"delta":"It is shipped."}')
    expected.insert(3, f"event: agent.text\ndata: {delta}\n\n")
    assert sent(frames) == ("retry: 2000\n\n" + "".join(expected)).encode()


@pytest.mark.behaviour("events.one-line")
def test_whatever_a_text_holds_its_frame_is_three_lines(api: Api) -> None:
    text = 'a\nb\r\nc\rd\u2028e\u2029f\x0bg\x85h\x00i\n\n\ndata: x\n\nid: 9\n\\ " 你好 \U0001f600'
    session = api.session()
    with api.stream(f"/v1/sessions/{session}/events") as frames:
        api.say(session, text)
        frames.next()
        frame = frames.next()
    assert frame is not None
    lines = frame.text.split("\n")
    assert [line.partition(": ")[0] for line in lines] == ["id", "event", "data"]
    assert "\r" not in frame.text
    assert json.loads(lines[2].removeprefix("data: "))["payload"] == {"text": text}


@pytest.mark.behaviour("events.content-type")
def test_a_stream_is_an_event_stream_with_the_usual_headers(api: Api) -> None:
    session = api.session()
    for path in (f"/v1/sessions/{session}/events", "/v1/events"):
        with api.stream(path) as frames:
            assert frames.stream.status == 200
            headers = frames.stream.headers
        assert headers["content-type"].partition(";")[0] == "text/event-stream"
        assert re.fullmatch(r"[0-9a-f]{8}", headers["x-request-id"])
        assert headers["link"] == '</v1/openapi.json>; rel="service-desc"'
        assert headers["x-ratelimit-resource"] == "general"


@pytest.mark.behaviour("events.retry")
@pytest.mark.gobare(retry_ms=8000)
def test_the_reconnect_delay_can_be_set(api: Api) -> None:
    with api.stream("/v1/events") as frames:
        first = frames.next()
    assert first is not None
    assert first.text == "retry: 8000"


@pytest.mark.behaviour("events.ping")
@pytest.mark.gobare(ping_seconds=0.01)
def test_a_quiet_stream_is_pinged(api: Api) -> None:
    with api.stream("/v1/events") as frames:
        seen = [frames.next() for _ in range(4)]
    assert [frame.text for frame in seen if frame is not None] == ["retry: 2000", ": ping", ": ping", ": ping"]
    assert Settings().ping_seconds == 15


@pytest.mark.behaviour("events.ping")
@pytest.mark.gobare(ping_seconds=0.01)
def test_a_stream_of_one_session_goes_on_after_a_ping(api: Api) -> None:
    session = api.session()
    with api.stream(f"/v1/sessions/{session}/events") as frames:
        frames.next()
        frames.next()
        api.say(session, "Hello")
        assert [frame.id for frame in frames.until("turn.ended") if frame.id] == [1, 2, 3, 4, 5]


@pytest.mark.behaviour("events.seq")
def test_one_sequence_counts_over_all_sessions_of_an_organization(api: Api) -> None:
    one, two = api.session(), api.session()
    for session in (one, two, one):
        api.send(session, {"type": "input.context", "content": "Hello"})
    assert [event["seq"] for event in api.events(one)] == [1, 3]
    assert [event["seq"] for event in api.events(two)] == [2]
    other = api.emulator.tokens.mint(organization="other").token
    foreign = api.session(token=other)
    api.send(foreign, {"type": "input.context", "content": "Hello"}, token=other)
    assert [event["seq"] for event in api.events(foreign)] == [1]


@pytest.mark.behaviour("events.text", "events.thinking", "events.transient-frame", "events.transient-live")
def test_deltas_make_up_the_text_and_are_not_replayed(api: Api) -> None:
    thought = "The error rate started at 09:12, so the release of 09:10 is to blame.\n\nI will say so. "
    text = "I found the regression:\n\n  export-svc v2.3.2 – see Grüße 你好. " * 5

    async def play(turn: Turn) -> None:
        await turn.think(thought)
        await turn.say(text)

    api.emulator.agent(play)
    session = api.session()
    with api.stream(f"/v1/sessions/{session}/events") as frames:
        api.say(session, "Go.")
        seen = frames.until("turn.ended")
    deltas = [frame for frame in seen if frame.type in ("agent.text", "agent.thinking")]
    for name, whole in (("agent.thinking", thought), ("agent.text", text)):
        parts = [frame.payload["delta"] for frame in deltas if frame.type == name]
        assert len(parts) > 1
        assert "" not in parts
        assert "".join(parts) == whole
    for frame in deltas:
        assert frame.id is None
        assert "id: " not in frame.text
        assert frame.data["seq"] is None
        assert frame.data["session_id"] == session
    order = [frame.type for frame in seen]
    assert order.index("agent.message") == len(order) - 2
    assert [frame.id for frame in seen if frame.id] == [1, 2, 3, 4, 5]
    with api.stream(f"/v1/sessions/{session}/events?last_event_id=0") as again:
        assert [frame.type for frame in again.until("turn.ended")] == [
            "user.message",
            "sandbox.created",
            "turn.started",
            "agent.message",
            "turn.ended",
        ]
