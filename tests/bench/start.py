"""The start: from nothing to the first answered request, as a command."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from tests.bench.harness import (
    Child,
    Connection,
    Line,
    Missing,
    alternate,
    bare,
    emulator,
    milliseconds,
    now,
    request,
    skipped,
    wiremock,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def measure() -> Iterator[Line]:
    """Beside a bare server of three models, then beside WireMock, each of them taking turns."""
    _ours(), _bare()
    mine, peer, session = alternate(30, 20, _ours, _bare, _session)
    yield Line(
        "serve / bare server of three models",
        median(mine) / median(peer),
        1.3,
        "at most",
        f"{milliseconds(mine)} beside {milliseconds(peer)}, {len(mine)} turns; "
        f"to a first session {milliseconds(session)}",
    )
    what = "serve / WireMock"
    try:
        command = wiremock()
    except Missing as missing:
        yield skipped(what, 0.25, "at most", str(missing))
        return
    mine, peer = alternate(18, 6, _ours, lambda: _first(lambda: Child(command), request("GET", "/__admin/health")))
    yield Line(
        what,
        median(mine) / median(peer),
        0.25,
        "at most",
        f"{milliseconds(mine)} beside {milliseconds(peer)}, {len(mine)} turns",
    )


def _ours() -> float:
    return _first(emulator, request("GET", "/v1/health"))


def _session() -> float:
    return _first(emulator, request("POST", "/v1/sessions", b"{}"))


def _bare() -> float:
    return _first(lambda: bare("bare_start"), request("GET", "/models"))


def _first(start: Callable[[], Child], raw: bytes) -> float:
    """Seconds from the start of a process to its first answer."""
    with start() as child:
        with Connection(child.port) as client:
            status, answer = client.ask(raw)
        took = now() - child.started
    assert status < 300, f"{raw!r}: {status} {answer!r}"
    return took
