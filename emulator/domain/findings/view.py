"""The view: a record in the order rules ask for it, by session and by turn."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from itertools import islice, takewhile
from typing import TYPE_CHECKING, Any, Final

from emulator.domain.findings.record import Exchange, Happening

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from emulator.domain.findings.record import Record, Watch

# How many reads make a poll: one or two may be under way when things change.
POLLS: Final = 3
# As many request ids as one reads.
SHOWN: Final = 10

SESSIONS: Final = "/v1/sessions"
SESSION: Final = "/v1/sessions/{session_id}"
EVENTS: Final = f"{SESSION}/events"
TURNS: Final = f"{SESSION}/turns"
TURN: Final = f"{SESSION}/turns/{{turn_id}}"
ITEMS: Final = f"{SESSION}/items"
ARTIFACTS: Final = f"{SESSION}/artifacts"
TOOLS: Final = f"{SESSION}/tools"

ASKED: Final = frozenset({"tool.required", "approval.requested", "question.asked"})
ANSWERED: Final = frozenset({"tool.resolved", "approval.resolved", "question.answered"})


@dataclass(frozen=True, slots=True)
class Finding:
    """A rule that was broken, and by what: ids and names, nothing that was sent."""

    id: str
    request_ids: Sequence[str] = ()
    session_id: str | None = None
    turn_id: str | None = None
    call_id: str | None = None
    token_id: str | None = None
    server: str | None = None
    scopes: Sequence[str] = ()

    def evidence(self) -> dict[str, Any]:
        """What it is told by, in the report's shape."""
        return {
            "request_ids": list(self.request_ids),
            "session_id": self.session_id,
            "turn_id": self.turn_id,
            "call_id": self.call_id,
            "token_id": self.token_id,
            "server": self.server,
            "scopes": list(self.scopes),
        }


@dataclass(slots=True)
class TurnSeen:
    """A turn as its events tell of it: `begin` is its message in the conversation."""

    id: str
    session_id: str
    begin: Happening
    started: Happening
    end: Happening | None = None
    inside: list[Happening] = field(default_factory=list)

    def open_at(self, n: int) -> bool:
        return self.begin.n <= n and (self.end is None or self.end.n > n)


@dataclass(slots=True)
class SessionSeen:
    """What was asked of a session, and what happened in it."""

    id: str
    organization: str
    exchanges: list[Exchange] = field(default_factory=list)
    happenings: list[Happening] = field(default_factory=list)
    turns: list[TurnSeen] = field(default_factory=list)
    # The times of the oldest and the newest item of each page of them that was read.
    items: list[tuple[int, int]] = field(default_factory=list)
    # Where in the record each call was no longer waited for.
    closed: dict[str | None, int] = field(default_factory=dict)
    # The times of the items that were read, and the seqs of the events that were sent, once they are asked for.
    shown: list[tuple[int, int]] | None = None
    sent: list[tuple[int, int]] | None = None

    def sends(self, event: str) -> Iterator[Exchange]:
        """The inputs of a type that were taken."""
        return (sent for sent in self.exchanges if sent.ok and sent.facts.event == event)

    def later(self, n: int, until: float = float("inf")) -> Iterator[Exchange]:
        """What was asked after one place in the record and before another."""
        start = bisect_right(self.exchanges, n, key=lambda exchange: exchange.n)
        return takewhile(lambda asked: asked.n < until, islice(self.exchanges, start, None))

    def turn_at(self, n: int) -> TurnSeen | None:
        """The turn that was open at a place in the record."""
        place = bisect_right(self.turns, n, key=lambda turn: turn.begin.n)
        turn = self.turns[place - 1] if place else None
        return turn if turn is not None and turn.open_at(n) else None

    def between(self, after: int, until: int) -> list[Happening]:
        """What happened after the event of one seq, up to that of another."""
        start, end = (bisect_right(self.happenings, seq, key=lambda happening: happening.seq) for seq in (after, until))
        return self.happenings[start:end]


class View:
    """A record for the rules. `notices` are delivered webhooks: session, type, time."""

    def __init__(self, record: Record, notices: Sequence[tuple[str, str, int]]) -> None:
        self.exchanges: list[Exchange] = []
        self.watches: list[Watch] = list(record.watches)
        self.sessions: dict[str, SessionSeen] = {}
        self.turns: dict[str, TurnSeen] = {}
        # Calls that a client was told of, or answered.
        self._calls: set[str] = set()
        self._notices: dict[str, list[tuple[str, int]]] = {}
        for session_id, event_type, at in notices:
            self._notices.setdefault(session_id, []).append((event_type, at))
        for entry in record.kept():
            if isinstance(entry, Exchange):
                self.exchanges.append(entry)
                self._calls.update(entry.facts.calls)
                if entry.facts.call_id is not None:
                    self._calls.add(entry.facts.call_id)
                if entry.session_id is not None:
                    session = self._session(entry.session_id, entry.organization)
                    session.exchanges.append(entry)
                    if entry.facts.items is not None:
                        session.items.append(entry.facts.items)
            else:
                self._session(entry.session_id, entry.organization).happenings.append(entry)
        for session in self.sessions.values():
            self._find_turns(session)

    def covered(self, happening: Happening) -> bool:
        """Whether a client ever saw an event: on a stream, or as an item."""
        session = self.sessions[happening.session_id]
        if session.shown is None:
            session.shown = _merged(session.items)
        return self.streamed(happening) or _within(session.shown, happening.at)

    def streamed(self, happening: Happening) -> bool:
        """Whether a client ever was sent an event on a stream."""
        session = self.sessions[happening.session_id]
        if session.sent is None:
            watches = [watch for watch in self.watches if watch.organization == session.organization]
            session.sent = _merged([(w.start + 1, w.sent) for w in watches if w.shows(session.id)])
        return _within(session.sent, happening.seq)

    def told(self, session_id: str, types: frozenset[str], since: int) -> bool:
        """Whether a webhook of one of these types reached a client, about something at `since` or later."""
        return any(at >= since and event_type in types for event_type, at in self._notices.get(session_id, ()))

    def action_seen(self, session: SessionSeen, asked: Happening) -> bool:
        """Whether a client ever saw that a session waits for a call, in any of the ways there are."""
        if asked.ref in self._calls or self.covered(asked):
            return True
        return self.told(session.id, frozenset({"session.action_required"}), asked.at)

    def _session(self, session_id: str, organization: str) -> SessionSeen:
        found = self.sessions.get(session_id)
        if found is None:
            found = self.sessions[session_id] = SessionSeen(session_id, organization)
        return found

    def _find_turns(self, session: SessionSeen) -> None:
        message: Happening | None = None
        turn: TurnSeen | None = None
        for happening in session.happenings:
            if happening.type == "user.message":
                message = happening
            elif happening.type == "turn.started" and happening.ref is not None:
                turn = TurnSeen(happening.ref, session.id, message or happening, happening)
                session.turns.append(turn)
                self.turns[turn.id] = turn
            elif happening.type == "turn.ended":
                if turn is not None:
                    turn.end = happening
                turn = None
            elif turn is not None:
                turn.inside.append(happening)
            if happening.type in ANSWERED:
                session.closed.setdefault(happening.ref, happening.n)


def _merged(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans of whole numbers, in order and apart from each other."""
    merged: list[tuple[int, int]] = []
    for first, last in sorted(spans):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], last))
        elif first <= last:
            merged.append((first, last))
    return merged


def _within(spans: list[tuple[int, int]], number: int) -> bool:
    place = bisect_right(spans, number, key=lambda span: span[0])
    return place > 0 and number <= spans[place - 1][1]
