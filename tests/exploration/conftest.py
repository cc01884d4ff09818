"""How the tests of this folder run tests of a user's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

# Loaded once here, not by each of the runs below.
import emulator.embedded
import emulator.exploration.explorer
import emulator.exploration.plan  # noqa: F401
from tests.exploration.programs import CLIENT

if TYPE_CHECKING:
    from collections.abc import Callable

    Run = Callable[..., pytest.RunResult]


@pytest.fixture
def run(pytester: pytest.Pytester) -> Run:
    """Run a test file with the client in it, in a process of its own if asked."""

    def run_file(code: str, *options: str, ini: str = "", alone: bool = False) -> pytest.RunResult:
        pytester.makeini(f"[pytest]\nasyncio_default_fixture_loop_scope = function\nfilterwarnings = error\n{ini}")
        pytester.makepyfile(test_it=CLIENT + code)
        if alone:
            return pytester.runpytest_subprocess("-p", "no:cacheprovider", *options, timeout=60)
        return pytester.runpytest_inprocess("-p", "no:cacheprovider", "-p", "no:cov", *options)

    return run_file
