"""Rules about reads: what a client polls, and what it takes for the result."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final

from emulator.domain.findings.view import (
    ARTIFACTS,
    ASKED,
    ITEMS,
    POLLS,
    SESSION,
    SHOWN,
    TURN,
    TURNS,
    Finding,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from emulator.domain.findings.record import Exchange, Happening
    from emulator.domain.findings.view import SessionSeen, TurnSeen, View

_TURN_NOTICES: Final = frozenset({"turn.completed", "turn.failed", "session.idle", "session.failed"})


def previous_answer(view: View) -> Iterator[Finding]:
    """A message whose answer was never read, the one before it having been read in its stead."""
    for session in view.sessions.values():
        marks = [sent for sent in session.exchanges if sent.ok and _moves_on(sent)]
        for said, following in [*pairwise(marks), *((mark, None) for mark in marks[-1:])]:
            if said.facts.event == "input.message":
                stale = _stale(view, session, said, following)
                if stale:
                    ids = [said.request_id, *(read.request_id for read in stale[-SHOWN:])]
                    yield Finding("previous-answer-taken", ids, session_id=session.id, turn_id=said.facts.turn_id)


def _moves_on(exchange: Exchange) -> bool:
    return exchange.facts.event == "input.message" or (exchange.verb == "DELETE" and exchange.path == SESSION)


def _stale(view: View, session: SessionSeen, said: Exchange, following: Exchange | None) -> list[Exchange]:
    """The reads that showed an earlier turn's answer, where none showed this one's or looked on."""
    turn = view.turns.get(said.facts.turn_id or "")
    if turn is None or (following is None and turn.end is None):
        return []
    answers = [inside for inside in turn.inside if inside.type in ("agent.message", "agent.error")]
    stale: list[Exchange] = []
    for read in session.later(said.n, float("inf") if following is None else following.n):
        facts = read.facts
        if turn.id in (turn_id for turn_id, _ in facts.turns):
            return []
        older = read.path == ITEMS and 0 < facts.answer_at < turn.begin.at
        older = older or (read.path == TURNS and any(status != "working" for _, status in facts.turns))
        older = older and not facts.paged
        # Whoever saw the agent at it, and went on before it was done, took nothing for its answer.
        if older and (turn.end is not None if facts.agent_at >= turn.begin.at else answers or _runs(turn, read)):
            stale.append(read)
        elif read.path in (SESSION, TURN, TURNS) and read.verb == "GET":
            # Still looking: whatever was read before was not taken for the answer.
            stale.clear()
    if not stale or any(view.covered(answer) for answer in answers):
        return []
    seen = [*turn.inside, *(() if turn.end is None else (turn.end,))]
    if any(view.streamed(happening) for happening in seen) or view.told(session.id, _TURN_NOTICES, turn.begin.at):
        return []
    return stale


def _runs(turn: TurnSeen, read: Exchange) -> bool:
    return turn.end is None or read.n < turn.end.n


def polled_turn(view: View) -> Iterator[Finding]:
    """A turn that was polled while its session waited for something no read of the client showed."""
    for session in view.sessions.values():
        for asked in session.happenings:
            if asked.type not in ASKED:
                continue
            turn = session.turn_at(asked.n)
            if turn is None:
                continue
            until = _closed(session, turn, asked)
            polls = [
                read
                for read in session.later(asked.n, until)
                if read.verb == "GET" and read.ok and read.path in (TURN, TURNS) and _about(read, turn)
            ]
            if len(polls) >= POLLS and not view.action_seen(session, asked):
                ids = [read.request_id for read in polls[:SHOWN]]
                yield Finding("polled-turn-only", ids, session_id=session.id, turn_id=turn.id, call_id=asked.ref)


def _about(read: Exchange, turn: TurnSeen) -> bool:
    return any(turn_id == turn.id for turn_id, _ in read.facts.turns)


def _closed(session: SessionSeen, turn: TurnSeen, asked: Happening) -> float:
    """Where in the record a call was no longer waited for."""
    over = float("inf") if turn.end is None else turn.end.n
    return min(session.closed.get(asked.ref, over), over)


def not_delivered(view: View) -> Iterator[Finding]:
    """A turn that was waited for after the sandbox had lost the call it was parked on."""
    for session in view.sessions.values():
        lost = {answer.facts.call_id for answer in session.exchanges if answer.facts.lost}
        for answer in session.exchanges:
            if not answer.facts.lost:
                continue
            turn = view.turns.get(answer.facts.turn_id or "")
            over = float("inf") if turn is None or turn.end is None else turn.end.n
            waits = [] if turn is None else _waits(session, turn, lost)
            polls: dict[str, list[str]] = {}
            for later in session.later(answer.n, over):
                if later.ok and (_moves_on(later) or later.facts.event == "input.cancel"):
                    break
                # While it waits for another call as well, its client looks for that.
                if later.verb == "GET" and not any(since < later.n < until for since, until in waits):
                    polls.setdefault(later.path, []).append(later.request_id)
            most = max((polls.get(path, []) for path in (SESSION, TURN, TURNS, ITEMS)), key=len)
            if len(most) >= POLLS:
                ids = [answer.request_id, *most[:SHOWN]]
                call_id = answer.facts.call_id
                yield Finding(
                    "waited-after-not-delivered", ids, session.id, turn_id=answer.facts.turn_id, call_id=call_id
                )


def _waits(session: SessionSeen, turn: TurnSeen, lost: set[str | None]) -> list[tuple[int, float]]:
    """From where to where in the record a turn waited for calls the sandbox held."""
    asked = [inside for inside in turn.inside if inside.type in ASKED and inside.ref not in lost]
    return [(inside.n, _closed(session, turn, inside)) for inside in asked]


def empty_artifacts(view: View) -> Iterator[Finding]:
    """An empty list read before a turn's files were published, and none after."""
    for session in view.sessions.values():
        found: dict[str, list[str]] = {}
        for read in session.exchanges:
            for turn_id in read.facts.unpublished:
                if _taken(view, session, read, turn_id):
                    found.setdefault(turn_id, []).append(read.request_id)
        for turn_id, ids in found.items():
            yield Finding("empty-artifacts-taken", ids[:SHOWN], session_id=session.id, turn_id=turn_id)


def _taken(view: View, session: SessionSeen, read: Exchange, turn_id: str) -> bool:
    later = [other for other in session.later(read.n) if other.ok]
    published = [h for h in session.happenings if h.type == "artifact.created" and h.ref == turn_id]
    if any(view.streamed(happening) for happening in published):
        return False
    for other in later:
        if other.verb != "GET" or not other.path.startswith(ARTIFACTS):
            continue
        if turn_id in other.facts.artifacts or (other.path != ARTIFACTS and published and other.n > published[0].n):
            return False
    if published or any(other.verb == "DELETE" and other.path == SESSION for other in later):
        return True
    return not any(other.verb == "GET" and other.path in (SESSION, TURN, TURNS, ARTIFACTS) for other in later)
