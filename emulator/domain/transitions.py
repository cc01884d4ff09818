"""Transitions: which command takes which state to which, as tables.

Law: a state changes only through `step`. A pair that is not in the table is illegal: `step` raises
`IllegalTransition`, and the caller has changed nothing before it asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeAlias, TypeVar

if TYPE_CHECKING:
    from collections.abc import Mapping

SessionStatus: TypeAlias = Literal["idle", "working", "requires_action", "failed"]
TurnStatus: TypeAlias = Literal["working", "completed", "failed", "cancelled"]
WorkspaceState: TypeAlias = Literal["unknown", "running", "paused", "destroyed", "recovering", "recovery_failed"]


State = TypeVar("State", bound=str)


class IllegalTransition(Exception):
    """A command that the present state does not allow. Nothing was changed."""


# contract §6: `failed` is the last turn's outcome, not a dead session.
SESSION: Final[Mapping[tuple[str, str], SessionStatus]] = {
    ("idle", "open"): "working",
    ("failed", "open"): "working",
    ("working", "open"): "working",
    ("requires_action", "open"): "requires_action",
    ("working", "ask"): "requires_action",
    ("requires_action", "ask"): "requires_action",
    ("requires_action", "answered"): "working",
    ("working", "complete"): "idle",
    ("working", "cancel"): "idle",
    ("working", "fail"): "failed",
    ("idle", "fail"): "failed",
    ("failed", "fail"): "failed",
}

# contract §8: settled never moves; a parked turn is still `working`.
TURN: Final[Mapping[tuple[str, str], TurnStatus]] = {
    ("working", "complete"): "completed",
    ("working", "fail"): "failed",
    ("working", "cancel"): "cancelled",
}

# contract §6, §13: time that is paused does not count, so nothing that is paused is reclaimed.
WORKSPACE: Final[Mapping[tuple[str, str], WorkspaceState]] = {
    ("unknown", "start"): "running",
    ("running", "pause"): "paused",
    ("paused", "resume"): "running",
    ("running", "reclaim"): "destroyed",
    ("destroyed", "recover"): "recovering",
    ("recovery_failed", "recover"): "recovering",
    ("recovering", "start"): "running",
    ("recovering", "give_up"): "recovery_failed",
}


def step(table: Mapping[tuple[str, str], State], state: State, command: str) -> State:
    """The state after `command`. Raises `IllegalTransition` where the table has no such pair."""
    try:
        return table[state, command]
    except KeyError:
        raise IllegalTransition(f"{command} does not apply to {state}") from None
