"""Action: what a session waits for, and who answered it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

ActionType: TypeAlias = Literal["function_call", "approval", "question"]
ActionState: TypeAlias = Literal["open", "answered", "expired", "withdrawn", "lost", "dropped"]


@dataclass(frozen=True, slots=True)
class Answerer:
    """Who answered: a client over the API, with its token and the request, or the person at the console."""

    by: Literal["api", "console"]
    token_id: str | None = None
    request_id: str | None = None


CONSOLE: Final = Answerer("console")


@dataclass(frozen=True, slots=True)
class Attempt:
    """One answer that was given, what became of it, and when (Unix milliseconds)."""

    answerer: Answerer
    outcome: str
    at: int


@dataclass(slots=True)
class Action:
    """Something a session waits for. `lost`: the sandbox no longer holds the call.

    It is `expired` past its deadline, `withdrawn` when the agent gave it up, `dropped` when its turn ended.
    `outcome` is the state it closed with, whatever becomes of it later.
    """

    type: ActionType
    turn_id: str
    call_id: str
    name: str
    arguments: dict[str, Any]
    created_at: int
    expires_at: int | None = None
    state: ActionState = "open"
    lost: bool = False
    outcome: ActionState = "open"
    closed_at: int | None = None
    attempts: list[Attempt] = field(default_factory=list)

    @property
    def answered_by(self) -> Attempt | None:
        """The answer that was accepted."""
        return next((attempt for attempt in self.attempts if attempt.outcome == "accepted"), None)
