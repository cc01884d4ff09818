"""The start: from nothing to the first answered request, as a command."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from tests.bench.harness import (
    Child,
    Connection,
    Line,
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
    mine, peer = alternate(30, 25, _ours, _bare)
    yield Line(
        "serve / bare server of three models",
        median(mine) / median(peer),
        1.3,
        "at most",
        f"{milliseconds(mine)} beside {milliseconds(peer)}, {len(mine)} turns",
    )
    command = wiremock()
    what = "serve / WireMock"
    if isinstance(command, str):
        yield skipped(what, 0.25, "at most", command)
        return
    mine, peer = alternate(25, 7, _ours, lambda: _first(lambda: Child(command), "/__admin/health"))
    yield Line(
        what,
        median(mine) / median(peer),
        0.25,
        "at most",
        f"{milliseconds(mine)} beside {milliseconds(peer)}, {len(mine)} turns",
    )


def _ours() -> float:
    return _first(emulator, "/v1/health")


def _bare() -> float:
    return _first(lambda: bare("bare_start"), "/models")


def _first(start: Callable[[], Child], path: str) -> float:
    """Seconds from the start of a process to its first answer."""
    with start() as child:
        with Connection(child.port) as client:
            status, _ = client.ask(request("GET", path))
        took = now() - child.started
    assert status == 200, f"{path} answered {status}"
    return took
