"""The guard as a part of every run: what it stopped fails the test in which it did."""

from __future__ import annotations

import os
from collections import deque
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING

import pytest

from tests.proof.guard import VARIABLE, Guard

if TYPE_CHECKING:
    from collections.abc import Generator


class Guarded:
    """The pytest plugin of it, one in each process that runs tests."""

    def __init__(self) -> None:
        self._told: deque[str] = deque()
        with NamedTemporaryFile(prefix="gobare-emulator-guard-", delete=False) as file:
            self._children = Path(file.name)
        Guard(self._told.append).install()

    @property
    def variables(self) -> dict[str, str]:
        """What has the Python processes that tests start under the guard."""
        paths = [str(Path(__file__).parent / "child"), *filter(None, [os.environ.get("PYTHONPATH")])]
        return {VARIABLE: str(self._children), "PYTHONPATH": os.pathsep.join(paths)}

    def drain(self) -> list[str]:
        """What was stopped since the last call."""
        told = [self._told.popleft() for _ in range(len(self._told))]
        if self._children.stat().st_size:
            told.append(self._children.read_text("utf-8"))
            self._children.write_bytes(b"")
        return told

    def close(self) -> None:
        """Take away what it keeps."""
        self._children.unlink(missing_ok=True)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self) -> Generator[None, object, object]:
        try:
            return (yield)
        finally:
            if told := self.drain():
                pytest.fail("\n".join(("stopped by the guard:", *told)), pytrace=False)
