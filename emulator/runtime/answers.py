"""Answers: who answered what the agent asked for, and which answers were not what the script expected.

Law: it only keeps. What is kept outlives the session it happened in, and has no secret in it.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from emulator.redaction import encodable, scrub

if TYPE_CHECKING:
    from collections.abc import Sequence

    from emulator.differences import Difference
    from emulator.domain.action import Action
    from emulator.domain.session import Session, Turn
    from emulator.runtime.player import Expected


class Answers:
    """The required actions of one emulator, as many as `limit`, and the expectations that were not met."""

    def __init__(self, limit: int) -> None:
        self._asked: deque[tuple[Session, Turn, Action]] = deque(maxlen=limit)
        self.missed: list[dict[str, Any]] = []

    def asked(self, session: Session, turn: Turn, action: Action) -> None:
        """Keep an action from the moment somebody waits for it."""
        self._asked.append((session, turn, action))

    def miss(
        self,
        session: Session,
        turn: Turn,
        about: tuple[str, str, Action | None],
        expected: Expected,
        found: Sequence[Difference],
        at: int,
    ) -> None:
        """Keep where an answer was not as expected. `about` is the type of action, its name, and itself if any."""
        kind, name, action = about
        attempt = None if action is None else action.answered_by
        self.missed.append(
            {
                "session_id": session.id,
                "turn_id": turn.id,
                "call_id": None if action is None else action.call_id,
                "type": kind,
                "name": encodable(scrub(name)),
                "scenario": expected.scenario,
                "where": expected.where,
                "answered_by": None if attempt is None else attempt.answerer.by,
                "request_id": None if attempt is None else attempt.answerer.request_id,
                "at": at,
                "differences": [difference.as_json() for difference in found],
            }
        )

    def as_json(self) -> list[dict[str, Any]]:
        """Every required action, oldest first: how it ended, and who answered it when."""
        return [_told(session, turn, action) for session, turn, action in self._asked]


def _told(session: Session, turn: Turn, action: Action) -> dict[str, Any]:
    outcome, closed_at, attempt = action.outcome, action.closed_at, action.answered_by
    if outcome == "open" and session.deleted:
        outcome = "dropped"
    if outcome == "dropped" and closed_at is None:
        closed_at = turn.completed_at
    return {
        "session_id": session.id,
        "turn_id": action.turn_id,
        "call_id": action.call_id,
        "type": action.type,
        "name": action.name,
        "asked_at": action.created_at,
        "outcome": outcome,
        "at": closed_at,
        "answered_by": None if attempt is None else attempt.answerer.by,
        "token_id": None if attempt is None else attempt.answerer.token_id,
        "request_id": None if attempt is None else attempt.answerer.request_id,
        "attempts": [
            {
                "by": tried.answerer.by,
                "token_id": tried.answerer.token_id,
                "request_id": tried.answerer.request_id,
                "outcome": tried.outcome,
                "at": tried.at,
            }
            for tried in action.attempts
        ],
    }
