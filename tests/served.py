"""`serve` as a process of its own, and the other commands: what tests of the command line run.

Every wait is bounded: a process that says nothing is ended, and the test fails on what it did say.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from tests.support import WAIT, Answer

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT: Final = Path(__file__).parent.parent
COMMAND: Final = (sys.executable, "-m", "emulator")
LINES: Final = 3


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """This process's environment without anything of ours, and `extra`."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GOBARE")}
    return {**kept, **(extra or {})}


def run(*arguments: str, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run(
        [*COMMAND, *arguments],
        cwd=ROOT,
        env=environment(env),
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )


def ask(url: str, verb: str, path: str, body: Any = None, **headers: str) -> Answer:
    """Send one request; underscores in names of headers become hyphens."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=WAIT)
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        connection.request(verb, path, None if body is None else json.dumps(body), sent)
        response = connection.getresponse()
        received = {name.lower(): value for name, value in response.getheaders()}
        return Answer(response.status, received, response.read())
    finally:
        connection.close()


class Served:
    """A running `serve`, as a context manager. `greeting` is what it printed; `url` is where it says it is."""

    def __init__(self, *arguments: str, env: Mapping[str, str] | None = None, command: tuple[str, ...] = ()) -> None:
        self._command = [*(command or (*COMMAND, "serve", "--port", "0")), *arguments]
        self._env = environment(env)

    def __enter__(self) -> Served:
        self.process = subprocess.Popen(
            self._command, cwd=ROOT, env=self._env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        bound = threading.Timer(60, self.process.kill)
        bound.start()
        try:
            assert self.process.stdout is not None
            self.greeting = [self.process.stdout.readline() for _ in range(LINES)]
        finally:
            bound.cancel()
        found = re.search(r"http://\S+", self.greeting[0])
        if found is None:
            self.process.kill()
            raise AssertionError(f"it did not start: {self.process.communicate(timeout=WAIT)}")
        self.url = found[0]
        return self

    def stop(self, number: int = signal.SIGTERM) -> tuple[int, str, str]:
        """Send a signal, and give the exit status and what was printed since the greeting, on both streams."""
        self.process.send_signal(number)
        return self.ended()

    def ended(self) -> tuple[int, str, str]:
        """The same for one that ends by itself."""
        printed, complained = self.process.communicate(timeout=WAIT)
        return self.process.returncode, printed, complained

    def __exit__(self, *exc: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate(timeout=WAIT)
