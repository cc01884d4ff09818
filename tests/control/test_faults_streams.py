"""Event streams that are cut, held up, sent twice or slowly, over a real socket."""

from __future__ import annotations

import http.client
import threading
from typing import TYPE_CHECKING, Any

import pytest

from emulator.clock import stopwatch
from tests.support import WAIT, Api

if TYPE_CHECKING:
    from emulator import Emulator

TEXT = "Grüße 🌍 an alle"


@pytest.fixture
def session(gobare: Emulator, api: Api) -> str:
    """A session of one turn."""

    @gobare.agent
    async def agent(turn: Any) -> None:
        await turn.say(TEXT)

    return api.session({"input": "hello"})


class Reader:
    """A client that reads a stream from its start."""

    def __init__(self, gobare: Emulator, path: str, cursor: int | None = 0) -> None:
        self._connection = http.client.HTTPConnection(gobare.url.removeprefix("http://"), timeout=WAIT)
        query = "" if cursor is None else f"?last_event_id={cursor}"
        self._connection.request("GET", f"{path}{query}", headers={"authorization": f"Bearer {gobare.token}"})
        self._response = self._connection.getresponse()
        self.got = b""

    def more(self) -> bytes:
        """The next bytes; nothing at a proper end. Raises `ConnectionResetError`, or `IncompleteRead`."""
        part = self._response.read1(65536)
        self.got += part
        return part

    def until(self, mark: bytes) -> bytes:
        """Everything up to and with a mark."""
        while mark not in self.got:
            assert self.more(), self.got
        return self.got

    def end(self) -> str:
        """Read on to the end, and tell what it was like."""
        try:
            while self.more():
                pass
        except ConnectionResetError:
            return "reset"
        except http.client.IncompleteRead:
            return "close"
        finally:
            self.close()
        return "end"

    def close(self) -> None:
        self._response.close()
        self._connection.close()


def path(session: str) -> str:
    return f"/v1/sessions/{session}/events"


def seqs(got: bytes) -> list[int]:
    """The ids of the frames that came whole."""
    return [int(frame[4 : frame.index(b"\n")]) for frame in got.split(b"\n\n")[:-1] if frame.startswith(b"id: ")]


@pytest.mark.parametrize("how", ["end", "close", "reset"])
@pytest.mark.parametrize("events", [None, 0, 1, 3])
def test_a_stream_is_cut_right_after_an_event(gobare: Emulator, session: str, how: Any, events: int | None) -> None:
    place: dict[str, Any] = {} if events is None else {"after_event": events}
    fault = gobare.faults.add({"session": session}, cut=how, times=1, **place)
    reader = Reader(gobare, path(session))
    assert reader.end() == how
    assert seqs(reader.got) == list(range(1, (events or 0) + 1))
    assert reader.got.endswith(b"\n\n")
    again = Reader(gobare, path(session), events or 0)
    again.until(b"turn.ended")
    again.close()
    assert seqs(again.got)[0] == (events or 0) + 1
    assert [(one.id, one.hits) for one in gobare.faults.list()] == [(fault.id, 1)]
    assert [entry.fault for entry in gobare.requests] == [None, fault.id, None]
    assert gobare.report()["open_streams"] == []


@pytest.mark.parametrize("count", [0, 5, 13, 14, 40, 300])
@pytest.mark.parametrize("how", ["end", "close", "reset"])
def test_a_stream_is_cut_after_so_many_bytes(gobare: Emulator, session: str, how: Any, count: int) -> None:
    gobare.faults.add(cut=how, after_bytes=count, times=1)
    reader = Reader(gobare, path(session))
    assert reader.end() == how
    assert len(reader.got) == count
    whole = Reader(gobare, path(session))
    assert whole.until(b"turn.ended").startswith(reader.got)
    whole.close()


def test_a_client_has_all_that_came_before_a_break_however_much_it_is(gobare: Emulator, api: Api) -> None:
    @gobare.agent
    async def agent(turn: Any) -> None:
        for _ in range(40):
            await turn.use("bash", args={"command": "x" * 20_000})

    session = api.session({"input": "go"})
    gobare.faults.add(cut="reset", after_event=60)
    reader = Reader(gobare, path(session))
    while not gobare.faults.list()[0].hits:
        pass
    assert reader.end() == "reset"
    assert reader.got.count(b"\nevent: ") == 60


def test_a_stream_is_cut_inside_a_frame(gobare: Emulator, session: str) -> None:
    gobare.faults.add(cut="reset", inside="frame", after_event=1)
    reader = Reader(gobare, path(session))
    assert reader.end() == "reset"
    assert seqs(reader.got) == [1]
    assert b'"internal_type"' in reader.got.split(b"\n\n")[-1]


def test_a_stream_is_cut_inside_a_character(gobare: Emulator, session: str) -> None:
    gobare.faults.add(cut="close", inside="character")
    reader = Reader(gobare, path(session))
    assert reader.end() == "close"
    assert reader.got.endswith(b'{"text":"Gr\xc3')
    with pytest.raises(UnicodeDecodeError):
        reader.got.decode()


def test_a_live_stream_is_cut_as_the_event_comes(gobare: Emulator, api: Api, session: str) -> None:
    gobare.faults.add(cut="reset", after_event=2)
    reader = Reader(gobare, "/v1/events", None)
    reader.until(b"retry: 2000\n\n")
    api.say(session, "again")
    assert reader.end() == "reset"
    assert reader.got.count(b"event: ") == 2


@pytest.mark.gobare(ping_seconds=0.05)
def test_a_stalled_stream_sends_no_ping_and_then_goes_on(gobare: Emulator, api: Api, session: str) -> None:
    gobare.faults.add(stall=0.4, after_event=2)
    reader = Reader(gobare, path(session))
    reader.until(b'"state":"running"')
    assert (seqs(reader.got), b": ping" in reader.got) == ([1, 2], False)
    began = stopwatch()
    assert reader.more().startswith(b"id: 3\n")
    assert stopwatch() - began >= 0.2
    reader.until(b"turn.ended")
    reader.until(b": ping")
    reader.close()
    assert seqs(reader.got) == [1, 2, 3, 4, 5]


@pytest.mark.gobare(ping_seconds=0.05)
def test_a_stream_that_stalls_for_good_ends_with_its_server(gobare: Emulator, api: Api, session: str) -> None:
    gobare.faults.add(stall="forever", inside="frame", after_event=1)
    reader = Reader(gobare, path(session))
    reader.until(b'"internal_type":"sandbox.created"')
    (entry,) = gobare.report()["open_streams"]
    assert entry["session_id"] == session
    other = threading.Thread(target=lambda: api.get("/v1/sessions"))
    other.start()
    other.join(WAIT)
    gobare.reset()
    assert reader.end() == "end"
    assert (seqs(reader.got), b": ping" in reader.got) == ([1], False)


@pytest.mark.parametrize(("which", "found"), [("all", [1, 1, 2, 2, 3, 3, 4, 4, 5, 5]), (2, [1, 2, 2, 3, 4, 5])])
def test_events_come_twice(gobare: Emulator, session: str, which: Any, found: list[int]) -> None:
    gobare.faults.add(duplicate=which)
    reader = Reader(gobare, path(session))
    reader.until(b"id: 5\n")
    while reader.got.count(b"id: ") < len(found):
        reader.more()
    reader.close()
    assert seqs(reader.got) == found


def test_a_stream_comes_slowly(gobare: Emulator, session: str) -> None:
    gobare.faults.add(drip={"bytes": 40, "seconds": 0.001})
    reader = Reader(gobare, path(session))
    parts = []
    while b"turn.ended" not in reader.got:
        parts.append(reader.more())
    reader.close()
    assert max(len(part) for part in parts[:5]) <= 40
    assert TEXT.encode() in reader.got


def test_a_stream_that_comes_slowly_does_not_outlive_a_reset(gobare: Emulator, session: str) -> None:
    gobare.faults.add(drip={"bytes": 1, "seconds": 3600})
    reader = Reader(gobare, path(session))
    reader.more()
    gobare.reset()
    assert (reader.end(), seqs(reader.got)) == ("end", [1, 2, 3, 4, 5])


@pytest.mark.parametrize(("retry", "first"), [(5, b"retry: 5\n\n"), (0, b"retry: 0\n\n"), ("absent", b"")])
def test_the_reconnect_delay_is_another_or_none(gobare: Emulator, session: str, retry: Any, first: bytes) -> None:
    gobare.faults.add(retry=retry, cut="end", after_event=1)
    reader = Reader(gobare, path(session))
    assert reader.end() == "end"
    assert reader.got.startswith(first + b"id: 1\n")
    assert seqs(reader.got) == [1]


def test_the_reconnect_delay_alone(gobare: Emulator, session: str) -> None:
    fault = gobare.faults.add(retry=7, times=1)
    reader = Reader(gobare, path(session))
    assert reader.until(b"turn.ended").startswith(b"retry: 7\n\nid: 1\n")
    reader.close()
    assert (gobare.faults.list()[0].id, gobare.faults.list()[0].hits) == (fault.id, 1)


def test_a_cut_that_is_not_reached_is_there_for_the_next_stream(gobare: Emulator, api: Api, session: str) -> None:
    gobare.faults.add(cut="reset", after_event=6, times=1)
    reader = Reader(gobare, path(session))
    reader.until(b"turn.ended")
    reader.close()
    assert api.get(f"{path(session)}?last_event_id=x").status == 400
    gobare.settle()
    assert [entry["hits"] for entry in gobare.report()["unused_faults"]] == [0]
    assert [entry.fault for entry in gobare.requests] == [None, None, None]
    api.say(session, "again")
    again = Reader(gobare, path(session))
    assert (again.end(), seqs(again.got)) == ("reset", [1, 2, 3, 4, 5, 6])


@pytest.mark.parametrize("fault", [{"reset": "before"}, {"reset": "after"}, {"empty": True}])
def test_a_stream_that_never_opens(gobare: Emulator, session: str, fault: dict[str, Any]) -> None:
    gobare.faults.add(times=1, **fault)
    with pytest.raises((ConnectionError, http.client.HTTPException)):
        Reader(gobare, path(session))
    gobare.settle()
    assert gobare.report()["open_streams"] == []
    assert gobare.requests[-1].status == 0
    reader = Reader(gobare, path(session))
    reader.until(b"turn.ended")
    reader.close()


# What is made of it


def finding_ids(gobare: Emulator) -> list[str]:
    return [finding["id"] for finding in gobare.report()["findings"]]


@pytest.mark.parametrize("how", ["end", "reset"])
def test_a_client_that_resumes_where_it_was_cut_is_not_blamed(gobare: Emulator, api: Api, how: Any) -> None:
    session = api.session()

    @gobare.agent
    async def agent(turn: Any) -> None:
        await turn.say("one")
        await turn.ask("Which?")

    gobare.faults.add(cut=how, after_event=3, times=1)
    first = Reader(gobare, path(session), None)
    first.until(b"retry: 2000\n\n")
    api.say(session, "again")
    assert first.end() == how
    last = seqs(first.got)[-1]
    second = Reader(gobare, path(session), last)
    second.until(b"question.asked")
    second.close()
    gobare.answer("this")
    gobare.settle()
    assert finding_ids(gobare) == []


def test_a_client_that_does_not_is(gobare: Emulator, api: Api) -> None:
    session = api.session()

    @gobare.agent
    async def agent(turn: Any) -> None:
        await turn.say("one")
        await turn.ask("Which?")

    gobare.faults.add(cut="reset", inside="frame", after_event=2, times=1)
    first = Reader(gobare, path(session), None)
    first.until(b"retry: 2000\n\n")
    api.say(session, "again")
    assert first.end() == "reset"
    gobare.settle()
    second = Reader(gobare, path(session), None)
    second.until(b"retry: 2000\n\n")
    gobare.answer("this")
    second.until(b"turn.ended")
    second.close()
    assert "resumed-without-cursor" in finding_ids(gobare)
