"""How the tests of this folder run tests of a user's."""

from __future__ import annotations

import pytest

# Loaded once here, not by each of the runs below.
import emulator.exploration.explorer
import emulator.exploration.plan  # noqa: F401
from tests.exploration.programs import CLIENT
from tests.inner import Run


@pytest.fixture
def run(pytester: pytest.Pytester) -> Run:
    """Runs a test file with the client in it."""
    return Run(pytester, CLIENT)
