"""The published fidelity table is that of the manifest: nothing is decided silently."""

from __future__ import annotations

from pathlib import Path

from tests.contract.fidelity import fidelity
from tests.contract.manifest import ROWS

TABLE = Path(__file__).parent.parent / "emulator" / "fidelity.md"


def test_the_published_table_is_the_manifests() -> None:
    # Written by `python -m tests.contract.fidelity`.
    assert TABLE.read_text() == fidelity()


def test_a_row_fits_its_table() -> None:
    for row in ROWS.values():
        assert "|" not in f"{row.source}{row.promise}{row.decision}", row.id
