"""Rules about event streams, and about what only they and the items tell."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Final

from emulator.domain.findings.view import ASKED, Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from emulator.domain.findings.record import Happening, Watch
    from emulator.domain.findings.view import SessionSeen, TurnSeen, View

# What the agent did, and a client can miss: what it sent itself it knows, and other reads tell the rest.
_TELLING: Final = frozenset(
    {
        "agent.message",
        "agent.tool_call",
        "agent.tool_result",
        "agent.error",
        "file.changed",
        "tool.required",
        "approval.requested",
        "question.asked",
    }
)


def missed(view: View) -> Iterator[Finding]:
    """Events that no stream and no read showed, before a stream that was opened without a cursor."""
    for session in view.sessions.values():
        watches = [w for w in view.watches if w.organization == session.organization and w.shows(session.id)]
        for place, watch in enumerate(watches):
            # One that is narrowed to a tree was opened for who was in it.
            if not watch.cursor and (watch.members is None or session.id in watch.members):
                before = watches[:place]
                found = _resumed(view, session, watch, before) or _late(view, session, watch, before)
                if found is not None:
                    yield found


def _resumed(view: View, session: SessionSeen, watch: Watch, before: list[Watch]) -> Finding | None:
    """A stream that had ended in the middle of a turn was taken up again, but not where it had ended."""
    last = before[-1] if before else None
    if last is None or last.end is None or last.end > watch.n:
        return None
    turn = _sent_in(session, last)
    if turn is None or not _unseen(view, session, session.between(last.sent, watch.start)):
        return None
    ids = [last.request_id, watch.request_id]
    return Finding("resumed-without-cursor", ids, session_id=session.id, turn_id=turn.id)


def _sent_in(session: SessionSeen, watch: Watch) -> TurnSeen | None:
    """The turn that a stream had been sent the beginning of, and not the end, when it ended."""
    begun = bisect_right(session.turns, watch.sent, key=lambda turn: turn.begin.seq)
    if not begun or watch.end is None:
        return None
    turn = session.turns[begun - 1]
    over = turn.end is not None and turn.end.seq <= watch.sent
    return turn if not over and watch.end > turn.begin.n else None


def _late(view: View, session: SessionSeen, watch: Watch, before: list[Watch]) -> Finding | None:
    """A stream that was opened in the middle of a turn, or after it and nothing was sent any more."""
    begun = bisect_right(session.turns, watch.start, key=lambda turn: turn.begin.seq)
    if not begun:
        return None
    turn = session.turns[begun - 1]
    if turn.end is not None and turn.end.seq <= watch.start:
        until = float("inf") if watch.end is None else watch.end
        more = any(later.ok and later.facts.event == "input.message" for later in session.later(watch.n, until))
        # One of the whole organization is not opened for a turn that is over.
        if watch.session_id is None or more:
            return None
    if not _unseen(view, session, session.between(turn.begin.seq, watch.start)):
        return None
    if any(_saw(other, turn) for other in before):
        # Somebody has seen it from its beginning, or it is for `_resumed` to tell.
        return None
    said = [sent.request_id for sent in session.exchanges if sent.facts.event and sent.facts.turn_id == turn.id]
    return Finding("subscribed-late", [*said[:1], watch.request_id], session_id=session.id, turn_id=turn.id)


def _saw(watch: Watch, turn: TurnSeen) -> bool:
    """Whether a stream was open in a turn."""
    started = turn.end is None or watch.start < turn.end.seq
    return started and watch.sent >= turn.begin.seq


def _unseen(view: View, session: SessionSeen, happenings: list[Happening]) -> bool:
    """Whether any of these tells something that no client has seen."""
    for happening in happenings:
        if happening.type in ASKED:
            if not view.action_seen(session, happening):
                return True
        elif happening.type in _TELLING and not view.covered(happening):
            return True
    return False


def unread_outages(view: View) -> Iterator[Finding]:
    """Optional servers that were down without any client having read of it."""
    for session in view.sessions.values():
        unread: dict[str, Happening] = {}
        for happening in session.happenings:
            if happening.type == "mcp.unavailable" and happening.ref is not None and not view.covered(happening):
                unread.setdefault(happening.ref, happening)
        for server, happening in unread.items():
            # What was asked is noted once it has been answered, which is after what it led to.
            cause = next((asked.request_id for asked in session.later(happening.n) if asked.verb != "GET"), None)
            yield Finding("mcp-outage-unread", [] if cause is None else [cause], session_id=session.id, server=server)
