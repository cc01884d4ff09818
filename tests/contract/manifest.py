"""The manifest: every behaviour of the contract that is served, with its source.

A row has an id, where it comes from, what is promised and, where sources disagree or we decided,
what and why. Every row has a test marked with its id and every marked test has its rows;
`test_manifest.py` fails if either is missing.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Final


@dataclass(frozen=True)
class Row:
    """One behaviour. `source` is a section of the contract; `decision` says what we chose and why."""

    id: str
    source: str
    promise: str
    decision: str | None = None


def rows() -> dict[str, Row]:
    """Every row by id, from the modules `rows_*.py` beside this one."""
    found: dict[str, Row] = {}
    for path in sorted(Path(__file__).parent.glob("rows_*.py")):
        module = import_module(f"tests.contract.{path.stem}")
        for row in module.ROWS:
            assert row.id not in found, f"two rows are called {row.id}"
            found[row.id] = row
    return found


ROWS: Final = rows()
