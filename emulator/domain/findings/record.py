"""The record: what a client asked and was told, what happened meanwhile, and which streams it read.

Law: bounded. It holds ids, times and digests, and none of what was sent. The oldest goes first, so whatever
is kept of an event, every later look at it is kept as well.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

LIMIT: Final = 20_000
# Streams are fewer, and one may be looked at long after it was opened.
STREAMS: Final = 2_000


@dataclass(slots=True)
class Facts:
    """What a request said or was told that a rule looks at. Times are Unix milliseconds.

    `calls`: what the sessions that were shown wait for. `turns`: id and status of those shown. `items`: the times
    of the oldest and the newest shown; `agent_at` and `answer_at` those of the newest by the agent and of its newest
    message. `paged`: a later page of a list. `artifacts`: the turns of those listed; `unpublished`: turns that left
    files which an empty list does not have yet. `event`: the type of an input. `lost`, `wrong_answer`, `exception`
    and `read_back`: what was wrong with it, or came of it. `labelled`: a new session has input and metadata.
    `gained`: names a `PUT …/tools` added to those of the running workspace; `differs`: it changed something there;
    `waits`: by the setting that does not reach the agent yet.
    """

    calls: tuple[str, ...] = ()
    turns: tuple[tuple[str, str], ...] = ()
    items: tuple[int, int] | None = None
    paged: bool = False
    agent_at: int = 0
    answer_at: int = 0
    artifacts: frozenset[str] = frozenset()
    unpublished: tuple[str, ...] = ()
    event: str | None = None
    turn_id: str | None = None
    call_id: str | None = None
    lost: bool = False
    wrong_answer: bool = False
    exception: bool = False
    read_back: bool = False
    labelled: bool = False
    gained: frozenset[str] = frozenset()
    differs: bool = False
    waits: bool = False

    def unread(self) -> Facts:
        """The same of a write whose answer never came: what it has done, and nothing it was told."""
        return replace(self, calls=(), lost=False)


NO_FACTS: Final = Facts()


@dataclass(slots=True)
class Exchange:
    """A request and its answer. `path` is the operation's.

    `arrived` and `answered` are real seconds and the clock's milliseconds. `place`, `digest` and `key` tell what was
    asked for, bodies and idempotency keys apart; 0 and `None` where there was no body and no key.
    `n` is its place in the record.
    """

    organization: str
    token_id: str
    request_id: str
    verb: str
    path: str
    place: int
    session_id: str | None
    status: int
    code: str | None
    arrived: tuple[float, int]
    answered: tuple[float, int]
    retry_after: int | None
    digest: int
    key: int | None
    facts: Facts
    n: int = 0

    @property
    def ok(self) -> bool:
        return self.status < 300

    def after(self, earlier: Exchange) -> float:
        """Milliseconds from the answer to another, real ones or the clock's, whichever were more."""
        real = (self.arrived[0] - earlier.answered[0]) * 1000
        return max(real, self.arrived[1] - earlier.answered[1])


@dataclass(slots=True)
class Happening:
    """An event of the log: what it was, and the one id (of a turn, a call or a server) and name it told."""

    organization: str
    seq: int
    session_id: str
    type: str
    at: int
    ref: str | None = None
    name: str | None = None
    n: int = 0


@dataclass(slots=True)
class Watch:
    """An event stream: of one session or, with `None`, of the organization, narrowed to `members` where given.

    It was sent what was persisted after `start` up to `sent`. `end` is its place in the record when it closed.
    """

    organization: str
    session_id: str | None
    request_id: str
    members: frozenset[str] | None
    cursor: bool
    start: int
    sent: int
    n: int = 0
    end: int | None = None

    def shows(self, session_id: str) -> bool:
        """Whether it may carry events of a session. Who joins a tree later is let pass."""
        return self.session_id in (None, session_id)


Entry: TypeAlias = Exchange | Happening


class Record:
    """Everything observed of one deployment, oldest first. `dropped` counts what no longer fits."""

    def __init__(self, limit: int = LIMIT, streams: int = STREAMS) -> None:
        self.entries: deque[Entry] = deque()
        self.watches: deque[Watch] = deque()
        self.dropped = 0
        self._limit = limit
        self._streams = streams
        self._n = 0
        # What stands before this place is not judged: looks at it may be gone.
        self._floor = 0

    def next(self) -> int:
        """The next place in the record."""
        self._n += 1
        return self._n

    def add(self, entry: Entry) -> None:
        """Keep an exchange or an event."""
        entry.n = self.next()
        self.entries.append(entry)
        if len(self.entries) > self._limit:
            self.entries.popleft()
            self.dropped += 1

    def open(self, watch: Watch) -> None:
        """Keep a stream."""
        watch.n = self.next()
        self.watches.append(watch)
        if len(self.watches) > self._streams:
            self._floor = self.watches.popleft().end or self._n
            self.dropped += 1

    def kept(self) -> list[Entry]:
        """What can be judged."""
        return [entry for entry in self.entries if entry.n > self._floor]
