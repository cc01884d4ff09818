"""The fixture: a fresh emulator with one request in it, beside a fresh pytest-httpserver."""

from __future__ import annotations

import gc
import logging
from typing import TYPE_CHECKING, Final

from pytest_httpserver import HTTPServer

from emulator import Emulator
from tests.bench.harness import Connection, Line, alternate, milliseconds, now, request

if TYPE_CHECKING:
    from collections.abc import Iterator

from statistics import median

_OURS: Final = request("GET", "/v1/health")
_THEIRS: Final = request("GET", "/health")


def measure() -> Iterator[Line]:
    """Start, one request, stop: in this process, the two taking turns."""
    # Its server's line for each request would otherwise go to the terminal.
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    began = now()
    ours()
    first = now() - began
    theirs()
    gc.collect()
    mine, peer = alternate(40, 300, ours, theirs)
    yield Line(
        "fresh emulator / pytest-httpserver",
        median(mine) / median(peer),
        0.75,
        "at most",
        f"{milliseconds(mine)} beside {milliseconds(peer)}, {len(mine)} turns; the first took {first * 1000:.0f} ms",
    )


def ours() -> float:
    """Seconds an emulator takes from nothing to nothing."""
    began = now()
    with Emulator() as emulator, Connection(int(emulator.url.rpartition(":")[2])) as client:
        status, _ = client.ask(_OURS)
    took = now() - began
    assert status == 200
    return took


def theirs() -> float:
    """Seconds a pytest-httpserver takes."""
    began = now()
    with HTTPServer() as server:
        server.expect_request("/health").respond_with_json({"status": "ok"})
        with Connection(server.port) as client:
            status, _ = client.ask(_THEIRS)
    took = now() - began
    assert status == 200
    return took
