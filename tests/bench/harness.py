"""What the benchmarks share: a light client, servers as child processes, alternation, and the verdict.

Law: a comparison is made in one run, the two sides taking turns, and judged by medians: the machine
may slow down or speed up, and both sides feel it. The client costs a few microseconds a request, so
that it hides nothing of the server's cost.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import struct
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

ROOT: Final = Path(__file__).resolve().parents[2]
PEERS: Final = Path(os.environ.get("GOBARE_BENCH_PEERS", Path.home() / ".cache" / "gobare-bench"))
TOKEN: Final = "gbr_pat_emulator"

# Server flags of the bare peers: what the emulator sets for itself, so that only the handler differs.
BARE_FLAGS: Final = (
    *("--http", "httptools", "--loop", "uvloop", "--ws", "none", "--lifespan", "off"),
    *("--no-access-log", "--no-server-header", "--no-date-header", "--no-proxy-headers"),
)

_OTHERS: Final = ("PYTHONDONTWRITEBYTECODE", "PYTEST", "COV", "GOBARE_EMULATOR_")
_ADDRESS: Final = re.compile(r"http://(?:127\.0\.0\.1|localhost|\[::1\]):(\d+)|port:\s+(\d+)")
_LENGTH: Final = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_START_SECONDS: Final = 30.0

now: Final = time.perf_counter


class Missing(Exception):
    """A peer that is not on this machine, and why."""


@dataclass(frozen=True, slots=True)
class Line:
    """One figure beside its target. A line without a value could not be measured, and says why."""

    what: str
    value: float | None
    target: float
    good: Literal["at most", "at least"]
    detail: str
    unit: str = "x"

    @property
    def verdict(self) -> str:
        """PASS, FAIL, or SKIP where there is nothing to judge."""
        if self.value is None:
            return "SKIP"
        passed = self.value <= self.target if self.good == "at most" else self.value >= self.target
        return "PASS" if passed else "FAIL"

    def __str__(self) -> str:
        shown = "-" if self.value is None else f"{self.value:.2f} {self.unit}"
        return f"{self.verdict}  {self.what:<34} {shown:>10}  ({self.good} {self.target:g} {self.unit})  {self.detail}"


def skipped(what: str, target: float, good: Literal["at most", "at least"], why: str) -> Line:
    """A line that could not be measured."""
    return Line(what, None, target, good, why)


def alternate(seconds: float, rounds: int, *sides: Callable[[], float]) -> list[list[float]]:
    """Let the sides take turns, `rounds` times or until `seconds` have passed; what each measured."""
    measured: list[list[float]] = [[] for _ in sides]
    until = now() + seconds
    for _ in range(rounds):
        for side, values in zip(sides, measured, strict=True):
            values.append(side())
        if now() > until:
            break
    return measured


def milliseconds(values: Sequence[float]) -> str:
    """The median of some seconds, in words."""
    return f"{median(values) * 1000:.2f} ms"


def request(verb: str, path: str, body: bytes | None = None, *, token: str | None = TOKEN) -> bytes:
    """The bytes of a request on a kept connection."""
    lines = [f"{verb} {path} HTTP/1.1", "host: 127.0.0.1", "accept: */*"]
    if token is not None:
        lines.append(f"authorization: Bearer {token}")
    if body is not None:
        lines += ["content-type: application/json", f"content-length: {len(body)}"]
    return "\r\n".join([*lines, "", ""]).encode() + (body or b"")


class Connection:
    """A kept connection. `ask` sends the bytes of a request and gives the status and the body."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # The kernel's own timeout: Python's would poll before every call.
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 30, 0))

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *exc: object) -> None:
        self.socket.close()

    def ask(self, raw: bytes) -> tuple[int, bytes]:
        self.socket.sendall(raw)
        return self.answer()

    def answer(self) -> tuple[int, bytes]:
        """Read one response, of known length or in chunks."""
        data = self._more(b"")
        while (end := data.find(b"\r\n\r\n")) < 0:
            data = self._more(data)
        status, body = int(data[9:12]), data[end + 4 :]
        found = _LENGTH.search(data, 0, end + 2)
        if found is None:
            while not body.endswith(b"0\r\n\r\n"):
                body = self._more(body)
            return status, _joined(body)
        while len(body) < int(found[1]):
            body = self._more(body)
        return status, body

    def _more(self, data: bytes) -> bytes:
        part = self.socket.recv(262_144)
        if not part:
            raise ConnectionError("the server closed the connection")
        return data + part


def _joined(chunked: bytes) -> bytes:
    parts: list[bytes] = []
    at = 0
    while True:
        end = chunked.index(b"\r\n", at)
        size = int(chunked[at:end], 16)
        if size == 0:
            return b"".join(parts)
        parts.append(chunked[end + 2 : end + 2 + size])
        at = end + size + 4


def clean_environment() -> dict[str, str]:
    """The environment of a child: it finds modules compiled, as an installed program does, and no settings."""
    return {name: text for name, text in os.environ.items() if not name.startswith(_OTHERS)}


class Child:
    """A server as a process of its own. It is ready when it has said its address."""

    def __init__(self, command: Sequence[str]) -> None:
        self.started = now()
        self._output: list[str] = []
        self._process = subprocess.Popen(
            command,
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**clean_environment(), "PYTHONPYCACHEPREFIX": str(PEERS / "pycache")},
        )
        self.pid = self._process.pid
        try:
            self.port = self._address()
        except BaseException:
            self._process.kill()
            self._process.wait()
            raise
        # What a server says later is read and dropped, so that no full pipe stops it.
        self._drain = threading.Thread(target=self._discard, daemon=True)
        self._drain.start()

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    def stop(self) -> None:
        """End the process, kindly at first."""
        self._process.terminate()
        try:
            self._process.wait(3)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._drain.join()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def cpu(self) -> float:
        """Processor seconds it has used, all threads together, to the nanosecond."""
        return time.clock_gettime(((~self.pid) << 3) | 2)

    def _lines(self) -> Iterator[str]:
        assert self._process.stdout is not None
        return iter(self._process.stdout.readline, "")

    def _address(self) -> int:
        timer = threading.Timer(_START_SECONDS, self._process.kill)
        timer.start()
        try:
            for line in self._lines():
                self._output.append(line)
                if (found := _ADDRESS.search(line)) is not None:
                    return int(found[1] or found[2])
        finally:
            timer.cancel()
        raise RuntimeError(f"{self._process.args!r} did not start:\n{''.join(self._output)}")

    def _discard(self) -> None:
        for _ in self._lines():
            pass


def emulator(*flags: str) -> Child:
    """`gobare-emulator serve` on any free port."""
    return Child([sys.executable, "-m", "emulator", "serve", "--port", "0", *flags])


def bare(app: str) -> Child:
    """A bare Starlette application of this folder under uvicorn, on any free port."""
    return Child([sys.executable, "-m", "uvicorn", f"tests.bench.{app}:app", "--port", "0", *BARE_FLAGS])


def wiremock() -> list[str]:
    """The command that starts WireMock. Raises `Missing`."""
    jars = sorted(PEERS.glob("node_modules/wiremock/build/wiremock-standalone-*.jar"))
    command = _command("java", jars[-1] if jars else None, "-jar")
    return [*command, "--port", "0", "--bind-address", "127.0.0.1", "--root-dir", str(PEERS / "wiremock")]


def aimock(fixture: Path) -> list[str]:
    """The command that starts aimock with a fixture file. Raises `Missing`."""
    script = PEERS / "node_modules" / "@copilotkit" / "aimock" / "dist" / "cli.js"
    return [*_command("node", script if script.exists() else None), "--port", "0", "--fixtures", str(fixture)]


def _command(program: str, file: Path | None, *options: str) -> list[str]:
    found = shutil.which(program)
    if found is None:
        raise Missing(f"there is no {program} here")
    if file is None:
        raise Missing(f"not installed under {PEERS} (see tests/bench/README.md)")
    return [found, *options, str(file)]
