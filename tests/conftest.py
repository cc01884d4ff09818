"""What every test may use."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support import Api

if TYPE_CHECKING:
    from emulator import Emulator


@pytest.fixture
def api(gobare: Emulator) -> Api:
    """A client of the test's emulator, over a real socket."""
    return Api(gobare)
