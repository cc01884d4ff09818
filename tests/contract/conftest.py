"""The contract suite runs twice: straight into the application, and over a real socket."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.contract.canaries import Watch
from tests.support import Api

if TYPE_CHECKING:
    from emulator import Emulator
    from tests.support import Kind


@pytest.fixture(params=["in-process", "socket"])
def api(request: pytest.FixtureRequest, gobare: Emulator) -> Api:
    """A client of the test's emulator."""
    kind: Kind = request.param
    return Api(gobare, kind)


@pytest.fixture
def watch(api: Api, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]) -> Watch:
    """The same client, which keeps every answer and looks for secrets."""
    return Watch(api.emulator, api.kind, caplog, capfd)
