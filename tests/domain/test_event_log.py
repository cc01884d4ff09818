"""The event log: order, cursors, what is not kept, and what is forgotten."""

from __future__ import annotations

from typing import Any

from emulator.domain.event_log import FORGOTTEN, FORGOTTEN_BYTES, EventLog


class Words:
    """Frames that can be read by eye."""

    def encode(
        self, event_type: str, session_id: str, seq: int | None, created_at: int, payload: dict[str, Any]
    ) -> bytes:
        return f"{seq} {session_id} {event_type} {created_at} {payload.get('text', '')}".encode()

    def payload(self, frame: bytes) -> dict[str, Any]:
        return {"text": frame.decode().split(" ")[-1]}


def log_of(*sessions: str) -> EventLog:
    """A log with an event of each session, in order; times go up by ten."""
    stamps = iter(range(10, 100_000, 10))
    log = EventLog(Words(), lambda: next(stamps))
    for n, session in enumerate(sessions, start=1):
        log.append(session, "user.context", {"text": f"n{n}"})
    return log


def test_an_event_is_kept_as_the_frame_that_is_sent_and_its_payload_read_back_from_it() -> None:
    log = log_of()
    event = log.append("a", "user.message", {"text": "hello"})
    assert (event.seq, event.type, event.session_id, event.created_at) == (1, "user.message", "a", 10)
    assert event.frame == b"1 a user.message 10 hello"
    assert log.payload(event) == {"text": "hello"}


def test_seqs_count_over_all_sessions() -> None:
    log = log_of("a", "b", "a")
    assert [event.seq for event in log.of("a")] == [1, 3]
    assert [event.seq for event in log.of("b")] == [2]
    assert [event.seq for event in log.of(None)] == [1, 2, 3]
    assert log.last_seq == 3


def test_a_log_in_which_nothing_happened_is_at_zero() -> None:
    log = log_of()
    assert (log.last_seq, list(log.of(None)), list(log.of("nobody"))) == (0, [], [])
    assert (log.after(0, None), log.after(7, "nobody")) == (0, 0)


def test_a_cursor_finds_the_first_event_after_it_in_a_session_and_in_all() -> None:
    log = log_of("a", "b", "a", "b", "a")
    for cursor in range(7):
        for session in (None, "a", "b"):
            later = list(log.of(session))[log.after(cursor, session) :]
            assert later == [event for event in log.of(session) if event.seq > cursor]


def test_what_is_not_recorded_has_no_seq_and_moves_no_cursor() -> None:
    log = log_of("a")
    assert log.transient("a", "agent.text", {"text": "he"}, 99) == b"None a agent.text 99 he"
    assert (log.last_seq, len(log.of(None)), len(log.of("a"))) == (1, 1, 1)
    assert log.append("a", "agent.message", {}).created_at == 20


def test_a_forgotten_session_leaves_the_others_their_seqs() -> None:
    log = log_of("a", "b", "a", "c")
    log.forget("a")
    log.forget("nobody")
    assert [(event.session_id, event.seq) for event in log.of(None) if event.frame] == [("b", 2), ("c", 4)]
    assert list(log.of("a")) == []
    assert [event.seq for event in list(log.of(None))[log.after(2, None) :] if event.frame] == [4]
    assert log.append("a", "user.context", {}).seq == 5
    assert [event.seq for event in log.of("a")] == [5]


def test_of_forgotten_sessions_the_latest_events_are_kept_within_bounds() -> None:
    log = log_of("a", "b", "a")
    log.forget("a")
    assert [event.seq for event in log.forgotten] == [1, 3]
    for n in range(FORGOTTEN):
        log.append("c", "user.context", {"text": str(n)})
    log.forget("c")
    assert len(log.forgotten) == FORGOTTEN
    assert {event.session_id for event in log.forgotten} == {"c"}
    log.append("d", "user.context", {"text": "x" * (FORGOTTEN_BYTES - 1000)})
    log.forget("d")
    assert sum(len(event.frame) for event in log.forgotten) <= FORGOTTEN_BYTES
    assert log.forgotten[-1].session_id == "d"
    log.append("e", "user.context", {"text": "x" * FORGOTTEN_BYTES})
    log.forget("e")
    assert log.forgotten == ()
