"""Test files as a stranger writes them, run by a pytest of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import emulator.embedded  # noqa: F401 - loaded once here, not by each of the runs

if TYPE_CHECKING:
    import pytest


# In this process, which loads no plugin unasked, those that a stranger may have.
_LOADED: Final = (
    *("--disable-plugin-autoload", "-pgobare", "-pasyncio", "-panyio.pytest_plugin", "-pxdist"),
    "-pno:cacheprovider",
)
# In a process of its own it finds all there are. These a stranger has not, and they take longer to load than it runs.
_LEFT_OUT: Final = tuple(
    f"-pno:{name}" for name in ("cacheprovider", "schemathesis", "pytest_httpserver", "hypothesispytest", "pytest_cov")
)


class Run:
    """Runs test files that begin with `helpers`, in the folder of a `pytester`."""

    def __init__(self, pytester: pytest.Pytester, helpers: str) -> None:
        self._pytester = pytester
        self._helpers = helpers

    def __call__(self, code: str, *options: str, ini: str = "", alone: bool = False) -> pytest.RunResult:
        """Run `code` with further lines in the ini file, in a process of its own if asked (`alone`)."""
        self._pytester.makeini(
            f"[pytest]\nasyncio_default_fixture_loop_scope = function\nfilterwarnings = error\n{ini}"
        )
        self._pytester.makepyfile(test_it=self._helpers + code)
        if alone:
            return self._pytester.runpytest_subprocess(*_LEFT_OUT, *options, timeout=60)
        return self._pytester.runpytest_inprocess(*_LOADED, *options)
