"""The proof as a part of every run: each test's answers are held against the document, and what the run
has reached is counted at its end.

A run of everything fails when a cell was neither reached nor explained. A run of a part only counts (with
`-v` it lists what it did not reach).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.proof import coverage, exchanges, validation
from tests.proof.reasons import REASONS, explained

if TYPE_CHECKING:
    from pathlib import Path

_KEY: Final = "api_coverage"
_HELD: Final = "api_held"
_PARTIAL: Final = "api_partial"


class Proof:
    """The pytest plugin of it. In a worker of pytest-xdist what was reached is handed to the controller."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._recorder = exchanges.Recorder()
        self._reached: set[str] = set()
        self._states: set[str] = set()
        self._held: set[str] = set()
        # What need not be looked for any more, made when first needed.
        self._done: set[str] = set()
        self._selected = not _whole(config)
        self._worker: dict[str, Any] | None = getattr(config, "workeroutput", None)
        exchanges.install(self._recorder)
        coverage.watch_states(self._states)

    def check(self, *, alone: bool, row: bool) -> list[str]:
        """What was wrong with the answers given since the last call.

        What a part of the product went through by itself (`alone`) is nothing that a client has brought about.
        What a test of a `row` of the manifest brings about is held by it.
        """
        if not alone:
            self._reached |= self._states
        self._states.clear()
        wrong: list[str] = []
        for passed in self._recorder.drain():
            if isinstance(passed, dict):
                events = passed["data"]
                faults = [fault for event in events for fault in validation.of_event(event)]
                wrong += [f"GET /_emulator/events: {fault}" for fault in faults]
                self._reach({coverage.of_event(event) for event in events}, row)
                continue
            reading = validation.read(passed)
            if row:
                self._held |= set(coverage.held_by(reading, self._held))
            faults = list(validation.problems(reading))
            if not faults:
                self._done = self._done or set(explained(coverage.cells()))
                found = set(coverage.of_exchange(reading, self._done))
                self._reached |= found
                self._done |= found
            for frame in passed.frames or ():
                event, about = validation.frame_problems(frame)
                faults += about
                if event is not None:
                    self._reach({coverage.of_event(event)}, row)
            wrong += [f"{passed}: {fault}" for fault in faults]
        return wrong

    def _reach(self, events: set[str], row: bool) -> None:
        self._reached |= events
        if row:
            self._held |= events

    def pytest_deselected(self) -> None:
        self._selected = True

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        output = getattr(node, "workeroutput", {})
        self._reached |= set(output.get(_KEY, ()))
        self._held |= set(output.get(_HELD, ()))
        self._selected |= output.get(_PARTIAL, True)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        if self._worker is not None:
            self._worker |= {_KEY: sorted(self._reached), _HELD: sorted(self._held), _PARTIAL: self._selected}
            return
        self._selected |= exitstatus != pytest.ExitCode.OK
        if not self._selected and (self._missing() or self._needless() or self._unheld()):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._selected and not self._reached:
            return
        cells, missing, needless = coverage.cells(), self._missing(), self._needless()
        reasons = len(explained(cells - self._reached))
        if not self._selected or terminalreporter.verbosity > 0:
            for cell in missing:
                terminalreporter.line(f"not reached, and no reason given: {cell}", red=True)
            for promise in self._unheld():
                terminalreporter.line(f"held by no row of the manifest: {promise}", red=True)
        if not self._selected:
            for pattern in needless:
                terminalreporter.line(f"reached, or not there, in spite of the reason for: {pattern}", red=True)
        terminalreporter.line(
            f"API coverage: {len(cells & self._reached)} of {len(cells)} cells reached, {reasons} explained, "
            f"{len(missing)} missing{' (a part of the suite)' if self._selected else ''}"
        )

    def _unheld(self) -> list[str]:
        return sorted(coverage.promised() - self._held)

    def _missing(self) -> list[str]:
        left = coverage.cells() - self._reached
        return sorted(left - set(explained(left)))

    def _needless(self) -> list[str]:
        """The patterns that explain a cell that was reached, or none at all."""
        used = explained(coverage.cells())
        reached = {pattern for cell, pattern in used.items() if cell in self._reached}
        return [pattern for pattern in REASONS if pattern in reached or pattern not in used.values()]


def _whole(config: pytest.Config) -> bool:
    """Whether everything is to be run."""
    root: Path = config.rootpath
    everything = {root, root / "tests"}
    options = config.option
    return (
        {config.invocation_params.dir / argument for argument in config.args} <= everything
        and not any(getattr(options, name, None) for name in ("keyword", "markexpr", "lf", "deselect", "ignore_glob"))
        and not options.collectonly
    )
