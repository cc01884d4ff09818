"""What the suite cannot reach, and why. A reason for a cell that was reached is an error."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

# Patterns of cells (`*` stands for anything), each with the reason.
REASONS: Final[Mapping[str, str]] = {}


def explained(cells: Iterable[str]) -> dict[str, str]:
    """Those of the cells that have a reason, with the pattern it is under."""
    return {cell: pattern for cell in cells for pattern in REASONS if fnmatchcase(cell, pattern)}
