"""Notices: what happened that webhooks tell of, read from the event log (contract §11).

Law: a reader of the log with a cursor for each organization, like any other. What nobody has subscribed to
is passed over, so whoever subscribes later is not told of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from emulator.domain.event_log import Event
    from emulator.domain.session import Session, Turn
    from emulator.domain.world import Organization

_ACTIONS: Final[Mapping[str, str]] = {
    "tool.required": "function_call",
    "approval.requested": "approval",
    "question.asked": "question",
}
_TOLD: Final = frozenset((*_ACTIONS, "turn.started", "turn.ended", "agent.error"))
# After that many milliseconds no two notices can be taken for each other any more.
_APART: Final = 60_000


@dataclass(slots=True)
class Notice:
    """Something to tell of. `turn` is the one whose publication is to be waited for, if there is one."""

    type: str
    session: Session
    created_at: int
    data: dict[str, Any] = field(default_factory=dict)
    turn: Turn | None = None


class Notices:
    """The cursors, and what has been told of lately."""

    def __init__(self) -> None:
        self._seqs: dict[str, int] = {}
        self._sessions: dict[str, int] = {}
        self._latest: dict[tuple[str, str], int] = {}
        self._sweep_at = 1000

    def read(self, organization: Organization) -> list[Notice]:
        """What has happened since the last call, in order."""
        log = organization.log
        seq, newest = self._seqs.get(organization.id, 0), self._sessions.get(organization.id, 0)
        if seq == log.last_seq and newest == organization.newest:
            return []
        self._seqs[organization.id], self._sessions[organization.id] = log.last_seq, organization.newest
        if not organization.webhooks.subscriptions:
            return []
        found = [Notice("session.created", session, session.created_at) for session in organization.since(newest)]
        for event in log.of(None)[log.after(seq, None) :]:
            if event.type in _TOLD and (session := organization.find(event.session_id)) is not None:
                found += _of(organization, session, event)
        for notice in found:
            self._keep_apart(notice)
        return found

    def _keep_apart(self, notice: Notice) -> None:
        """Receivers take what agrees in session, type and time for the same: two that happen at once differ by 1 ms."""
        key = (notice.session.id, notice.type)
        latest = self._latest.get(key)
        if latest is not None and notice.created_at <= latest:
            notice.created_at = latest + 1
        self._latest[key] = notice.created_at
        if len(self._latest) > self._sweep_at:
            old = notice.created_at - _APART
            self._latest = {known: at for known, at in self._latest.items() if at > old}
            # Not with every notice where none of them is old yet.
            self._sweep_at = max(1000, 2 * len(self._latest))


def _of(organization: Organization, session: Session, event: Event) -> Iterator[Notice]:
    """What one event is to webhooks."""
    at = event.created_at
    if event.type in _ACTIONS:
        yield Notice("session.action_required", session, at, {"required_action": {"type": _ACTIONS[event.type]}})
    elif event.type == "turn.started":
        yield Notice("session.working", session, at)
    elif event.type == "agent.error":
        # A start that was refused opens no turn; the error of a turn is told of as its end.
        if event.seq == session.refused_start:
            yield Notice("session.failed", session, at)
    elif (turn := session.turn(organization.log.payload(event)["turnId"])) is not None:
        if not session.busy:
            # With another message behind it the session goes on, and nobody may take it for quiet.
            yield Notice("session.failed" if turn.status == "failed" else "session.idle", session, at)
        if turn.status == "completed":
            yield Notice("turn.completed", session, at, {"turn_id": turn.id}, turn)
        elif turn.status == "failed":
            yield Notice("turn.failed", session, at, {"turn_id": turn.id})
