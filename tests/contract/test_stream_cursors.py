"""Cursors (contract §9): what a stream replays, where it goes live, and where a replay is cut short."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from emulator.settings import Settings
from tests.contract.steps import EPOCH, WAIT

if TYPE_CHECKING:
    from emulator import Turn
    from tests.support import Api, Frame, Frames


def note(api: Api, session: str, *texts: str) -> None:
    """Record events, one for each text, and nothing else."""
    for text in texts:
        assert api.send(session, {"type": "input.context", "content": text}).status == 202


def take(frames: Frames, count: int) -> list[Frame]:
    """The next so many events."""
    found = [frame for frame in (frames.event() for _ in range(count)) if frame is not None]
    assert len(found) == count, "the stream ended"
    return found


def texts(frames: list[Frame]) -> list[str]:
    return [frame.payload["text"] for frame in frames]


@pytest.mark.behaviour("events.no-cursor")
@pytest.mark.parametrize("path", ["/v1/sessions/{}/events", "/v1/events", "/v1/events?root={}"])
def test_without_a_cursor_only_live_frames_come(api: Api, path: str) -> None:
    session = api.session()
    note(api, session, "before", "also before")
    with api.stream(path.format(session)) as frames:
        note(api, session, "live")
        (frame,) = take(frames, 1)
    assert (frame.id, frame.payload) == (3, {"text": "live"})


@pytest.mark.behaviour("events.cursor", "events.cursor-zero")
@pytest.mark.parametrize("way", ["header", "parameter"])
@pytest.mark.parametrize("path", ["/v1/sessions/{}/events", "/v1/events", "/v1/events?root={}"])
@pytest.mark.parametrize("cursor", [0, 1, 3, 4])
def test_a_cursor_replays_what_came_after_it(api: Api, way: str, path: str, cursor: int) -> None:
    session = api.session()
    note(api, session, "one", "two", "three", "four")
    path = path.format(session)
    if way == "header":
        frames = api.stream(path, headers={"Last-Event-ID": str(cursor)})
    else:
        frames = api.stream(f"{path}{'&' if '?' in path else '?'}last_event_id={cursor}")
    with frames:
        note(api, session, "live")
        seen = take(frames, 5 - cursor)
    assert [frame.id for frame in seen] == list(range(cursor + 1, 6))
    assert texts(seen) == ["one", "two", "three", "four", "live"][cursor:]


@pytest.mark.behaviour("events.cursor")
def test_a_cursor_between_the_events_of_a_session_counts_the_organization(api: Api) -> None:
    one, two = api.session(), api.session()
    note(api, one, "1")
    note(api, two, "2", "3")
    note(api, one, "4")
    for cursor in (1, 2, 3):
        with api.stream(f"/v1/sessions/{one}/events?last_event_id={cursor}") as frames:
            note(api, one, "live")
            assert take(frames, 1)[0].id == 4


@pytest.mark.behaviour("events.cursor-both")
@pytest.mark.parametrize(("header", "parameter"), [(2, 0), (0, 2)])
def test_the_header_wins_over_the_parameter(api: Api, header: int, parameter: int) -> None:
    session = api.session()
    note(api, session, "one", "two", "three")
    path = f"/v1/sessions/{session}/events?last_event_id={parameter}"
    with api.stream(path, headers={"Last-Event-ID": str(header)}) as frames:
        assert take(frames, 1)[0].id == header + 1


@pytest.mark.behaviour("events.cursor-refused")
@pytest.mark.parametrize("sent", ["-1", "abc", "1.5", "1e3", "0x1", "1_000", "%D9%A3", "", "null", "%2B1"])
@pytest.mark.parametrize("path", ["/v1/sessions/{}/events", "/v1/events"])
def test_a_parameter_that_is_no_cursor_is_refused(api: Api, path: str, sent: str) -> None:
    answer = api.get(f"{path.format(api.session())}?last_event_id={sent}")
    assert (answer.status, answer.code) == (400, "invalid_request")
    assert "`last_event_id`" in answer.message
    assert answer.headers["content-type"] == "application/json"
    assert api.emulator.report()["open_streams"] == []


@pytest.mark.behaviour("events.cursor-refused")
@pytest.mark.parametrize("sent", ["-1", "abc", "1.5", "\u00b2", ""])
def test_a_header_that_is_no_cursor_is_refused(api: Api, sent: str) -> None:
    answer = api.get("/v1/events", headers={"Last-Event-ID": sent})
    assert (answer.status, answer.code) == (400, "invalid_request")
    assert "`Last-Event-ID`" in answer.message


@pytest.mark.behaviour("events.cursor-ahead")
@pytest.mark.parametrize("cursor", ["3", "100", "999999999999999999", "99999999999999999999999"])
def test_a_cursor_that_is_ahead_replays_nothing(api: Api, cursor: str) -> None:
    session = api.session()
    note(api, session, "one", "two", "three")
    with api.stream(f"/v1/sessions/{session}/events?last_event_id={cursor}") as frames:
        assert frames.stream.status == 200
        note(api, session, "live")
        assert texts(take(frames, 1)) == ["live"]


@pytest.mark.behaviour("events.seam")
@pytest.mark.parametrize("narrowed", ["session", "organization", "root"])
def test_nothing_is_missing_and_nothing_comes_twice_at_the_seam(api: Api, narrowed: str) -> None:
    session, other = api.session(), api.session()
    note(api, session, *(f"{n}" for n in range(20)))
    path = f"/v1/sessions/{session}/events" if narrowed == "session" else "/v1/events"
    query = f"root={session}&" if narrowed == "root" else ""

    def write() -> None:
        for n in range(60):
            note(api, other if n % 3 == 0 else session, f"live {n}")

    writer = threading.Thread(target=write)
    writer.start()
    opened = [(cursor, api.stream(f"{path}?{query}last_event_id={cursor}")) for cursor in (0, 3, 7, 19, 20)]
    writer.join(WAIT)
    assert not writer.is_alive()
    note(api, session, "the end")
    events = api.emulator.events() if narrowed == "organization" else api.events(session)
    for cursor, frames in opened:
        expected = [event["seq"] for event in events if event["seq"] > cursor]
        with frames:
            assert [frame.id for frame in take(frames, len(expected))] == expected
            assert frames.seen[-1].payload == {"text": "the end"}


@pytest.mark.behaviour("events.long-replay", "events.seam")
def test_a_long_replay_is_complete_and_goes_live(api: Api) -> None:
    @api.emulator.agent
    async def agent(turn: Turn) -> None:
        for n in range(3000):
            await turn.todos([{"label": f"{n}", "status": "done"}])

    session = api.session()
    api.say(session, "Go.")
    newest = api.events(session)[-1]["seq"]
    with api.stream(f"/v1/sessions/{session}/events?last_event_id=0") as frames:
        seen = take(frames, 700)
        api.say(session, "Again.")
        seen += take(frames, 2 * newest - 1 - 700)
    # The second turn makes every event again but the start of the sandbox.
    assert [frame.id for frame in seen] == list(range(1, 2 * newest))
    labels = [frame.payload["items"][0]["label"] for frame in seen if frame.type == "agent.todos"]
    assert labels == [f"{n}" for n in range(3000)] * 2


@pytest.mark.behaviour("events.truncated", "events.truncated-shape", "events.truncated-live")
@pytest.mark.gobare(replay_limit=3)
def test_past_the_ceiling_a_replay_stops_and_says_so(api: Api) -> None:
    session = api.session()
    note(api, session, "one", "two", "three", "four", "five")
    with api.stream(f"/v1/sessions/{session}/events?last_event_id=0") as frames:
        seen = take(frames, 4)
        note(api, session, "live")
        (live,) = take(frames, 1)
    assert [frame.id for frame in seen] == [1, 2, 3, None]
    told = {
        "from_seq": 3,
        "note": (
            "More than 3 events were waiting. Live frames follow from here; "
            "reconnect with last_event_id=3 to collect the rest first."
        ),
    }
    cut = seen[-1]
    assert cut.type == "gobare.replay_truncated"
    assert "id: " not in cut.text.split("data: ")[0]
    data = cut.data
    assert {name: data[name] for name in told} == told
    assert data["payload"] == told
    assert (data["object"], data["type"], data["seq"]) == ("event", "gobare.replay_truncated", None)
    assert (live.id, live.payload) == (6, {"text": "live"})


@pytest.mark.behaviour("events.truncated-resumes")
@pytest.mark.gobare(replay_limit=3)
def test_reconnecting_from_where_it_was_cut_collects_the_rest(api: Api) -> None:
    session, other = api.session(), api.session()
    for n in range(8):
        note(api, session, f"{n}")
        note(api, other, "elsewhere")
    cursor = 0
    collected: list[str] = []
    while True:
        with api.stream(f"/v1/sessions/{session}/events?last_event_id={cursor}") as frames:
            note(api, session, "live")
            seen = frames.until("gobare.replay_truncated") if len(collected) < 6 else take(frames, 2)
        collected += texts([frame for frame in seen if frame.id])
        if seen[-1].id:
            break
        cursor = seen[-1].data["from_seq"]
    assert collected == [f"{n}" for n in range(8)]


@pytest.mark.behaviour("events.replay-limit")
@pytest.mark.gobare(replay_limit=3)
def test_a_replay_up_to_the_ceiling_is_whole(api: Api) -> None:
    session = api.session()
    note(api, session, "one", "two", "three")
    with api.stream(f"/v1/sessions/{session}/events?last_event_id=0") as frames:
        note(api, session, "live")
        assert texts(take(frames, 4)) == ["one", "two", "three", "live"]
    assert Settings().replay_limit == 50_000


@pytest.mark.behaviour("events.truncated-shape")
@pytest.mark.gobare(replay_limit=1)
def test_the_cut_is_a_frame_like_any_other(api: Api) -> None:
    session = api.session()
    note(api, session, "one", "two")
    with api.stream(f"/v1/sessions/{session}/events?last_event_id=0") as frames:
        first, cut = take(frames, 2)
    assert first.data["created_at"] == EPOCH + 1
    assert cut.text.split("\n")[0] == "event: gobare.replay_truncated"
    assert len(cut.text.split("\n")) == 2
    assert {"object", "type", "internal_type", "seq", "payload"} <= set(cut.data)
