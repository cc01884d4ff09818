"""Running a test again: everything of pytest's inside that this takes.

Law: nobody else touches what pytest keeps to itself. Each run is set up and torn down like a test of its own:
fixtures of function scope are new, wider ones stay, as between two tests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest
from _pytest.runner import call_and_report

if TYPE_CHECKING:
    from collections.abc import Callable

_PROPERTIES: Final = pytest.StashKey[list[Any]]()


def run(
    item: pytest.Item, following: pytest.Item | None, more: Callable[[list[pytest.TestReport]], bool]
) -> tuple[list[pytest.TestReport], bool]:
    """Set a test up, call it and tear it down; give the reports, which nobody has been shown, and what `more` said.

    `more` is told the reports of setup and call, and says whether the same test is run once more. If it is not,
    what is wider than the test is torn down too, as far as `following` does not need it.
    """
    inside: Any = item
    if not hasattr(inside, "_request"):
        raise pytest.UsageError(f"{item.nodeid} is no test function, and cannot be run again.")
    properties = item.stash.setdefault(_PROPERTIES, list(item.user_properties))
    if not inside._request:
        _renew(item, properties)
    reports = []
    try:
        reports.append(call_and_report(item, "setup", log=False))
        if reports[0].passed:
            reports.append(call_and_report(item, "call", log=False))
        stopping = bool(item.session.shouldfail or item.session.shouldstop)
        again = not stopping and more(reports)
        # A test's parent as what comes next has the test itself torn down, and nothing else.
        next_one: Any = item.parent if again else None if stopping else following
        reports.append(call_and_report(item, "teardown", log=False, nextitem=next_one))
    finally:
        # As pytest does after a test: what is left of the run is let go of.
        inside._request = False
        inside.funcargs = None
    return reports, again


def told(item: pytest.Item, error: BaseException) -> str:
    """An exception of a test as pytest shows it."""
    return str(item.repr_failure(pytest.ExceptionInfo.from_exception(error)))


def _renew(item: pytest.Item, properties: list[Any]) -> None:
    """Make a test that has run as it was when it was collected."""
    inside: Any = item
    inside._initrequest()
    item._report_sections.clear()
    item.user_properties = list(properties)
    if isinstance(item.parent, pytest.Class):
        # The instance of the class is the test's own, and so is the method that is bound to it.
        inside.__dict__.pop("_instance", None)
        inside.__dict__.pop("_obj", None)
