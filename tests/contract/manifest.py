"""The manifest: every behaviour of the contract that is served, with its source.

A row has an id, where it comes from, what is promised and, where sources disagree or we decided,
what and why. Every row has a test marked with its id and every marked test has its rows;
`test_manifest.py` fails if either is missing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Final

from emulator.settings import NAMES


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


def fidelity() -> str:
    """The fidelity table as it is published: every row where sources disagree or we decided (contract §14)."""
    lines = [
        "# Fidelity",
        "",
        "Where the sources of the API disagree, or leave something open, this is what the emulator does and why. Each",
        "row is held by a test marked with its name; a setting named last switches the behaviour.",
        "",
        "| behaviour | source | what the emulator does | why | setting |",
        "|---|---|---|---|---|",
    ]
    for row in sorted((row for row in ROWS.values() if row.decision), key=lambda row: row.id):
        text = f"{row.promise} {row.decision}"
        settings = ", ".join(f"`{name}`" for name in NAMES if re.search(rf"\b{name}\b", text) and "_" in name)
        settings = settings or ("`rates`" if "rates=" in text else "")
        lines.append(f"| `{row.id}` | {row.source} | {row.promise} | {row.decision} | {settings} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    (Path(__file__).parent.parent.parent / "emulator" / "fidelity.md").write_text(fidelity())
