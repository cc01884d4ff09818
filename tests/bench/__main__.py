"""`python -m tests.bench [name …]`: measure, print each figure beside its target, fail on a miss."""

from __future__ import annotations

import importlib
import sys
from typing import Final

from tests.bench.harness import Line, now

BENCHES: Final = (
    "fixture",
    "plugin",
    "start",
    "tools",
    "loop",
    "replay",
    "scale",
    "streams",
    "webhooks",
    "simulated",
    "faults",
    "hammer",
    "mcp",
)


def main(names: list[str]) -> int:
    """Run the benches of those names, all of them for none. Gives the exit status."""
    unknown = [name for name in names if name not in BENCHES]
    if unknown:
        sys.stderr.write(f"no bench named {unknown[0]!r}; there are {', '.join(BENCHES)}\n")
        return 2
    lines: list[Line] = []
    for name in names or BENCHES:
        began = now()
        for line in importlib.import_module(f"tests.bench.{name}").measure():
            lines.append(line)
            sys.stdout.write(f"{line}\n")
            sys.stdout.flush()
        sys.stdout.write(f"      {name} took {now() - began:.0f} s\n")
    missed = [line.what for line in lines if line.verdict == "FAIL"]
    skipped = sum(line.verdict == "SKIP" for line in lines)
    sys.stdout.write(f"{len(lines) - len(missed) - skipped} of {len(lines)} met, {skipped} not measured")
    sys.stdout.write(f"; missed: {', '.join(missed)}\n" if missed else "\n")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
