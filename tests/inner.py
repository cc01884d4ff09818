"""Test files as a stranger writes them, run by a pytest of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import emulator.embedded  # noqa: F401 - loaded once here, not by each of the runs

if TYPE_CHECKING:
    import pytest


# Plugins that a stranger has not, and that take longer to load than the runs do: for a pytest that finds its plugins.
LEFT_OUT: Final = tuple(
    f"-pno:{name}" for name in ("cacheprovider", "schemathesis", "pytest_httpserver", "hypothesispytest", "pytest_cov")
)
# These runs are told of theirs, by the names they would be found by.
_ALONE: Final = ("--disable-plugin-autoload", "-pgobare", "-pxdist", "-pno:cacheprovider")
HERE: Final = (*_ALONE, "-pasyncio", "-panyio.pytest_plugin")


class Run:
    """Runs test files that begin with `helpers`, in the folder of a `pytester`."""

    def __init__(self, pytester: pytest.Pytester, helpers: str) -> None:
        self._pytester = pytester
        self._helpers = helpers

    def __call__(self, code: str, *options: str, ini: str = "", alone: bool = False) -> pytest.RunResult:
        """Run `code` with further lines in the ini file, in a process of its own if asked (`alone`)."""
        loops = "" if alone else "asyncio_default_fixture_loop_scope = function\n"
        self._pytester.makeini(f"[pytest]\nfilterwarnings = error\n{loops}{ini}")
        self._pytester.makepyfile(test_it=self._helpers + code)
        if alone:
            return self._pytester.runpytest_subprocess(*_ALONE, *options, timeout=60)
        return self._pytester.runpytest_inprocess(*HERE, *options)
