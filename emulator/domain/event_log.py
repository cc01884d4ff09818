"""The event log: what happened in one organization, in order, and the only truth about it.

Law: it is appended to and read with a cursor; it knows none of its readers. An event is kept as the
bytes a stream sends (`frame`), once: readers that want the payload have it decoded.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from typing import TYPE_CHECKING, Any, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


# How much is kept of what deleted sessions did: events, and bytes of them.
FORGOTTEN: Final = 1000
FORGOTTEN_BYTES: Final = 2 * 1024 * 1024


class Codec(Protocol):
    """How an event becomes the bytes of its frame, and how its payload is read back."""

    def encode(
        self, event_type: str, session_id: str, seq: int | None, created_at: int, payload: dict[str, Any]
    ) -> bytes: ...

    def payload(self, frame: bytes) -> dict[str, Any]: ...


class Event:
    """One persisted event. `seq` increases over the whole organization (contract §9)."""

    __slots__ = ("created_at", "frame", "seq", "session_id", "type")

    def __init__(self, seq: int, event_type: str, session_id: str, created_at: int, frame: bytes) -> None:
        self.seq = seq
        self.type = event_type
        self.session_id = session_id
        self.created_at = created_at
        self.frame = frame


class EventLog:
    """The events of one organization. `stamp` gives the time of each as it is appended."""

    def __init__(self, codec: Codec, stamp: Callable[[], int]) -> None:
        self._codec = codec
        self._stamp = stamp
        self._all: list[Event] = []
        self._by_session: dict[str, list[Event]] = {}
        self._seq = 0
        self._empty = 0
        self._forgotten: deque[Event] = deque()
        self._forgotten_bytes = 0

    @property
    def last_seq(self) -> int:
        """The seq of the newest event, 0 before the first."""
        return self._seq

    def append(self, session_id: str, event_type: str, payload: dict[str, Any]) -> Event:
        """Record an event and give it back with its seq and time."""
        created_at = self._stamp()
        # Encoded first: what cannot be raises, and has taken no seq.
        frame = self._codec.encode(event_type, session_id, self._seq + 1, created_at, payload)
        self._seq += 1
        event = Event(self._seq, event_type, session_id, created_at, frame)
        self._all.append(event)
        self._by_session.setdefault(session_id, []).append(event)
        return event

    def transient(self, session_id: str, event_type: str, payload: dict[str, Any], now: int) -> bytes:
        """The frame of an event that is not recorded: it has no seq and moves no cursor."""
        return self._codec.encode(event_type, session_id, None, now, payload)

    def payload(self, event: Event) -> dict[str, Any]:
        """What an event says."""
        return self._codec.payload(event.frame)

    def of(self, session_id: str | None) -> Sequence[Event]:
        """The events of one session, or of all, in order. A live view: do not change it.

        Among all, the places of deleted sessions' events may still stand, with empty frames.
        """
        return self._all if session_id is None else self._by_session.get(session_id, ())

    def after(self, seq: int, session_id: str | None) -> int:
        """Where in `of(session_id)` the first event after `seq` stands."""
        return bisect_right(self.of(session_id), seq, key=lambda event: event.seq)

    @property
    def forgotten(self) -> Sequence[Event]:
        """The latest events of deleted sessions, by session: for whoever tells what happened, and no client."""
        return tuple(self._forgotten)

    def forget(self, session_id: str) -> None:
        """Drop a deleted session's events from all that is read. The seqs of the others stay as they are."""
        forgotten = self._by_session.pop(session_id, ())
        for event in forgotten:
            self._forgotten.append(event)
            self._forgotten_bytes += len(event.frame)
            # Whoever is reading holds the event itself; its place is kept by one that says nothing.
            place = self.after(event.seq - 1, None)
            self._all[place] = Event(event.seq, "", "", event.created_at, b"")
        while self._forgotten_bytes > FORGOTTEN_BYTES or len(self._forgotten) > FORGOTTEN:
            self._forgotten_bytes -= len(self._forgotten.popleft().frame)
        self._empty += len(forgotten)
        if self._empty * 2 > len(self._all):
            # Not at each: many deletes would go through all that is left each time.
            self._all = [event for event in self._all if event.frame]
            self._empty = 0
