"""The transition tables: every pair of a state and a command, those that lead somewhere and those that do not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, get_args

import pytest

from emulator.domain import transitions
from emulator.domain.transitions import SESSION, TURN, WORKSPACE, IllegalTransition, step

if TYPE_CHECKING:
    from collections.abc import Mapping

# A row is a state and a column a command; what stands where they meet is the next state, and a dash is a refusal.
SESSIONS: Final = """
                 open             ask              answered  complete  cancel  fail
idle             working          -                -         -         -       failed
working          working          requires_action  -         idle      idle    failed
requires_action  requires_action  requires_action  working   -         -       -
failed           working          -                -         -         -       failed
"""

TURNS: Final = """
           complete   fail    cancel
working    completed  failed  cancelled
completed  -          -       -
failed     -          -       -
cancelled  -          -       -
"""

WORKSPACES: Final = """
                 start    pause   resume   reclaim    recover     give_up
unknown          running  -       -        -          -           -
running          -        paused  -        destroyed  -           -
paused           -        -       running  -          -           -
destroyed        -        -       -        -          recovering  -
recovering       running  -       -        -          -           recovery_failed
recovery_failed  -        -       -        -          recovering  -
"""

Pair = tuple[str, str]


def read(drawn: str) -> dict[Pair, str]:
    """Every pair of a drawn table, refusals included."""
    commands, *rows = (line.split() for line in drawn.strip().splitlines())
    return {(row[0], command): after for row in rows for command, after in zip(commands, row[1:], strict=True)}


DRAWN: Final[list[tuple[str, Mapping[Pair, str], dict[Pair, str]]]] = [
    ("SESSION", SESSION, read(SESSIONS)),
    ("TURN", TURN, read(TURNS)),
    ("WORKSPACE", WORKSPACE, read(WORKSPACES)),
]
CASES: Final = [
    pytest.param(table, before, command, after, id=f"{name.lower()}-{before}-{command}")
    for name, table, drawn in DRAWN
    for (before, command), after in drawn.items()
]


@pytest.mark.parametrize(("table", "before", "command", "after"), CASES)
def test_a_pair_leads_to_one_state_or_nowhere(table: Mapping[Pair, str], before: str, command: str, after: str) -> None:
    if after == "-":
        with pytest.raises(IllegalTransition, match=f"^{command} does not apply to {before}$"):
            step(table, before, command)
    else:
        assert step(table, before, command) == after


@pytest.mark.parametrize(("name", "table", "drawn"), DRAWN, ids=[name for name, _, _ in DRAWN])
def test_a_table_has_every_state_and_nothing_that_is_not_drawn(
    name: str, table: Mapping[Pair, str], drawn: dict[Pair, str]
) -> None:
    kinds = {
        "SESSION": transitions.SessionStatus,
        "TURN": transitions.TurnStatus,
        "WORKSPACE": transitions.WorkspaceState,
    }
    assert {state for state, _ in drawn} == set(get_args(kinds[name]))
    assert set(table) == {pair for pair, after in drawn.items() if after != "-"}


def test_an_unknown_state_or_command_is_illegal_too() -> None:
    for state, command in (("asleep", "open"), ("idle", "dance")):
        with pytest.raises(IllegalTransition):
            step(SESSION, state, command)
