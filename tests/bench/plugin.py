"""The plugin: what it costs a suite that has it installed and does not use it."""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.bench.harness import PEERS, ROOT, Line, alternate, clean_environment, milliseconds, now, skipped

if TYPE_CHECKING:
    from collections.abc import Iterator

_SUITE: Final = "def test_nothing():\n    pass\n"
# What takes its own time on either side: pytest's cache, and the plugin anyio brings, whoever needs it.
_ALIKE: Final = ("-p", "no:cacheprovider", "-p", "no:anyio")
_WHAT: Final = "plugin installed but unused"
_LOOK: Final = "import emulator.pytest_plugin as plugin; print(plugin.__file__)"


def measure() -> Iterator[Line]:
    """Whole pytest runs of one empty test, with the plugin and without, taking turns."""
    python = _python()
    if python is None:
        yield skipped(_WHAT, 10, "at most", f"no python with the distribution in it: {PEERS}/venv, or this one")
        return
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "test_nothing.py").write_text(_SUITE)
        found = subprocess.run([python, "-c", _LOOK], cwd=folder, check=True, capture_output=True, text=True)
        same = Path(found.stdout.strip()).read_bytes() == (ROOT / "emulator" / "pytest_plugin.py").read_bytes()
        processor: dict[bool, list[float]] = {True: [], False: []}

        def run(with_plugin: bool) -> float:
            options = [] if with_plugin else ["-p", "no:gobare"]
            before, began = resource.getrusage(resource.RUSAGE_CHILDREN), now()
            subprocess.run(
                [python, "-m", "pytest", "-q", *_ALIKE, *options],
                cwd=folder,
                check=True,
                capture_output=True,
                env=clean_environment(),
            )
            took, after = now() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
            processor[with_plugin].append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
            return took

        run(True), run(False)
        for values in processor.values():
            values.clear()
        installed, without = alternate(50, 40, lambda: run(True), lambda: run(False))
    # Of two long runs that differ by little, the least disturbed ones are compared.
    with_plugin, bare = min(processor[True]) * 1000, min(processor[False]) * 1000
    yield Line(
        _WHAT,
        with_plugin - bare,
        10,
        "at most",
        f"least processor time {with_plugin:.0f} beside {bare:.0f} ms, {len(installed)} turns; "
        f"median wall {milliseconds(installed)} beside {milliseconds(without)}"
        + ("" if same else "; NOT this checkout's plugin: install it again"),
        unit="ms",
    )


def _python() -> str | None:
    """A python whose pytest finds the plugin by its entry point: best one with nothing else in it."""
    own = PEERS / "venv" / "bin" / "python"
    if own.exists():
        return str(own)
    return sys.executable if entry_points(group="pytest11", name="gobare") else None
