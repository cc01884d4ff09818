"""The explorer: runs a test, and then again with each variant of what the run showed there is to try.

Law: a test that does not pass by itself is not explored. An explored run is judged by its invariants; what a
test asserts of the happy path does not count, for it may be false by design. The same seed and the same test
give the same runs.
"""

from __future__ import annotations

import contextlib
import shlex
import threading
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pytest

from emulator.clock import monotonic
from emulator.exploration import reruns
from emulator.exploration.invariants import Run, hold
from emulator.exploration.part import Variant
from emulator.ids import Ids

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Sequence

    from emulator.embedded import Emulator
    from emulator.settings import Settings

# A run that takes this much longer than the one it repeats does not come to an end by itself.
_LEAST_SECONDS: Final = 5.0
_TIMES_AS_LONG: Final = 5.0
# How long a client has to make something of it that nothing is served any more.
_LAST_SECONDS: Final = 3.0
_REST_SECONDS: Final = 1.0

_Sections = list[tuple[str, str]]


class RunTookTooLong(BaseException):
    """Raised inside a test that goes on in spite of everything."""


@dataclass(frozen=True, slots=True)
class _Failure:
    variant: Variant
    text: str
    sections: _Sections


class Explorer:
    """Explores one test. `now` is what the setting `explore` is for the run under way.

    `sections` tells of an emulator for a report; `raise_in` raises an exception in a thread.
    """

    def __init__(
        self,
        item: pytest.Item,
        settings: Settings,
        sections: Callable[[Emulator], _Sections],
        raise_in: Callable[[int, type[BaseException]], None],
    ) -> None:
        self.now: tuple[str, ...] = ()
        self._item = item
        self._settings = settings
        self._sections = sections
        self._raise_in = raise_in
        self._modes = tuple(entry for entry in settings.explore if ":" not in entry)
        self._queue = deque(Variant(entry, "") for entry in settings.explore if ":" in entry)
        self._named = len(self._queue)
        self._variant: Variant | None = None
        self._known: list[Variant] = []
        self._until = 0.0
        self._limit = settings.explore_seconds
        self._hung = False
        self._failure: str | None = None
        self._shown: _Sections = []
        self._failures: list[_Failure] = []
        self._missed: list[str] = []
        self._ran = 0

    def run(self, following: pytest.Item | None) -> None:
        """Run the test and what is to be explored of it, and report it as one test."""
        item = self._item
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        for report in self._explored(following):
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)

    # What the plugin tells of a call

    @property
    def exploring(self) -> bool:
        """Whether the run under way is an explored one."""
        return self._variant is not None

    def passed(self, emulators: Sequence[Emulator]) -> None:
        """The test's own run has passed: take down what there is to try."""
        self._known = [Variant(**variant) for variant in _exploration(emulators).get("variants", ())]

    def call(self, emulators: Sequence[Emulator]) -> Generator[None, Any, None]:
        """Around the call of an explored run: nothing it raises gets out, and everything is judged."""
        assert self._variant is not None
        error: BaseException | None = None
        watch = _Watch(self._limit, emulators, self._raise_in)
        try:
            yield
        except (KeyboardInterrupt, pytest.exit.Exception):
            raise
        except BaseException as raised:
            error = raised
        finally:
            watch.stop()
        self._hung = watch.gave_up
        if isinstance(error, pytest.skip.Exception):
            return
        run = Run(self._variant.explore, error)
        self._failure = f"The run did not come to an end within {self._limit:.1f} s." if self._hung else None
        for emulator in emulators:
            self._failure = self._failure or self._judged(emulator, run)
            if self._failure is not None:
                self._shown = self._sections(emulator)
        if not _exploration(emulators).get("reached", True):
            self._missed.append(self._variant.explore)

    # Inside

    def _explored(self, following: pytest.Item | None) -> list[pytest.TestReport]:
        self._until = monotonic() + self._settings.explore_seconds
        reports: list[pytest.TestReport] = []
        again = bool(self._queue)
        if self._modes:
            self.now, self._variant = self._modes, None
            reports, again = reruns.run(self._item, following, self._more)
        while again:
            self._variant = self._queue.popleft()
            self.now, self._failure, self._shown = (self._variant.explore,), None, []
            own, again = reruns.run(self._item, following, self._more)
            self._ran += 1
            if not reports:
                self._take(own[1:2])
                reports = own
                continue
            # The last run tears down what is wider than the test as well: that is told as ever.
            self._take(own if again else own[:-1])
            if not again and own[-1].failed:
                reports[-1] = own[-1]
                told = f"the run was explored with {self._variant.explore}"
                reports[-1].sections.append(("gobare exploration", told))
        self._tell(reports)
        return reports

    def _more(self, so_far: list[pytest.TestReport]) -> bool:
        """Whether the test is run once more, after a run of which these are the reports."""
        if self._variant is None:
            self._plan(so_far)
        return bool(self._queue) and not self._hung and monotonic() < self._until

    def _plan(self, so_far: list[pytest.TestReport]) -> None:
        """Decide what to explore, in the order of the run; of too much, a sample drawn from the seed."""
        if not all(report.passed for report in so_far):
            self._queue.clear()
            return
        limit = self._settings.explore_limit
        self._limit = _LEAST_SECONDS + _TIMES_AS_LONG * so_far[-1].duration
        chosen = self._known
        if len(chosen) > limit:
            ids = Ids(self._settings.seed)
            drawn = sorted(chosen, key=lambda variant: ids.fraction("explore", self._item.nodeid + variant.explore, 0))
            kept = {variant.explore for variant in drawn[:limit]}
            chosen = [variant for variant in chosen if variant.explore in kept]
        self._queue += chosen

    def _judged(self, emulator: Emulator, run: Run) -> str | None:
        """What is wrong with a run, if anything."""
        try:
            if emulator.running:
                emulator.rest(_REST_SECONDS)
            hold(emulator, run)
        except (KeyboardInterrupt, pytest.exit.Exception):
            raise
        except BaseException as broken:
            raised = "" if run.error is None else f"\nThe test itself had raised {_short(run.error)}"
            return reruns.told(self._item, broken) + raised
        if emulator.blocked:
            return emulator.blocked[0]
        if run.error is not None and _counts(run.error, run, judged=bool(emulator.invariants)):
            return reruns.told(self._item, run.error)
        return None

    def _take(self, own: list[pytest.TestReport]) -> None:
        """Keep what went wrong in an explored run."""
        assert self._variant is not None
        text = self._failure
        for report in own:
            if text is None and report.failed:
                text = f"{report.when}: {report.longreprtext}"
        if text is not None:
            self._failures.append(_Failure(self._variant, text, self._shown))

    def _tell(self, reports: list[pytest.TestReport]) -> None:
        """Put into the report of the call what came of it all."""
        call = next((report for report in reports if report.when == "call"), None)
        if call is None or (not self._ran and not (call.passed and self._modes)):
            return
        left = len(self._known) - (self._ran - self._named) if self._modes else 0
        said = f"run again {self._ran} times" if self._ran != 1 else "run again once"
        if left > 0:
            reason = (
                "after one that did not end"
                if self._hung
                else "for explore_seconds"
                if self._queue
                else "for explore_limit"
            )
            said += f", {left} left out {reason}"
        if self._missed:
            said += f", without anything happening for {', '.join(self._missed)}"
        call.gobare_explored = said  # type: ignore[attr-defined]
        if self._failures:
            call.outcome = "failed"
            # Its run left something over, but a test that failed is not asked to account for that.
            vars(reports[-1]).pop("gobare_left", None)
            call.longrepr = self._text()
            call.sections += self._failures[0].sections

    def _text(self) -> str:
        first, *others = self._failures
        lines = [f"{len(self._failures)} of {self._ran} explored runs failed; the first was {_named(first)}"]
        lines += ["", f"    explore={first.variant.explore!r} on the marker, or on the command line", ""]
        lines += [f"    pytest {shlex.quote(self._item.nodeid)} --gobare-explore {first.variant.explore}", ""]
        lines += ["runs it alone.", "", first.text]
        if others:
            lines += ["", "The others:"]
            lines += [f"    {_named(failure)}: {failure.text.splitlines()[-1]}" for failure in others]
        return "\n".join(lines)


class _Watch:
    """Looks after one run: ends what is served to a client that does not come to an end, and then the client."""

    def __init__(
        self, seconds: float, emulators: Iterable[Emulator], raise_in: Callable[[int, type[BaseException]], None]
    ) -> None:
        self.gave_up = False
        self._seconds = seconds
        self._emulators = list(emulators)
        self._raise_in = raise_in
        self._test = threading.get_ident()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="gobare-emulator explorer", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """The run is over."""
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        from emulator.exploration.plan import Plan

        if self._over.wait(self._seconds):
            return
        self.gave_up = True
        for emulator in self._emulators:
            plan = emulator.socket.deployment.exploring
            if isinstance(plan, Plan):
                emulator.loop.loop.call_soon_threadsafe(plan.give_up)
        if not self._over.wait(_LAST_SECONDS):
            self._raise_in(self._test, RunTookTooLong)


def _counts(error: BaseException, run: Run, *, judged: bool) -> bool:
    """Whether what a test raised fails its run; `judged`: there is an invariant, which has held."""
    if run.variant.endswith(":accepted"):
        # Nothing was different: this is the test itself, which passes or cannot be run again.
        return True
    if isinstance(error, BaseExceptionGroup):
        return any(_counts(one, run, judged=judged) for one in error.exceptions)
    if isinstance(error, AssertionError | pytest.fail.Exception):
        return False
    # In a race to give up may be just right, so an invariant decides where there is one.
    return run.mode != "race" or not judged


def _exploration(emulators: Sequence[Emulator]) -> dict[str, Any]:
    """What a test's emulator has to tell; nothing where it was stopped, or is stuck."""
    for emulator in emulators:
        with contextlib.suppress(RuntimeError):
            return emulator.exploration()
    return {}


def _short(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".rstrip(": ").partition("\n")[0]


def _named(failure: _Failure) -> str:
    about = f" ({failure.variant.about})" if failure.variant.about else ""
    return f"{failure.variant.explore}{about}"
