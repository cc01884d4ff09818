"""The fidelity table, made from the manifest: `python -m tests.contract.fidelity` writes it into the package."""

from __future__ import annotations

import re
from pathlib import Path

from emulator.settings import NAMES
from tests.contract.manifest import ROWS


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
