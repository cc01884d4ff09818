"""Reading a session's tools while there are faults that are none of its business, beside the same without any."""

from __future__ import annotations

import json
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from tests.bench.harness import Child, Connection, Line, alternate, emulator, request

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_REQUESTS: Final = 400
_FAULTS: Final = 50


def unmet(n: int) -> dict[str, Any]:
    """A fault that no read of tools meets; all kinds of match take turns."""
    matches = (
        {"method": "POST"},
        {"path": "/v1/sessions/*/events"},
        {"method": "GET", "path": f"/v1/agents/agt_{n}"},
        {"session": f"of-nobody-{n}"},
        {"method": "GET", "path": "/v1/sessions/*/artifacts/*/content"},
    )
    return {"match": matches[n % len(matches)], "error": "directory_unavailable"}


def measure() -> Iterator[Line]:
    """The processor time of a request with fifty faults, and with none, taking turns on one server."""
    faults = [request("POST", "/_emulator/faults", json.dumps(unmet(n)).encode()) for n in range(_FAULTS)]
    with emulator("--pace", "instant") as server, Connection(server.port) as client:
        _, made = client.ask(request("POST", "/v1/sessions", b"{}"))
        read = request("GET", f"/v1/sessions/{json.loads(made)['id']}/tools")
        clear = request("DELETE", "/_emulator/faults")

        def side(before: list[bytes]) -> Callable[[], float]:
            def once() -> float:
                for raw in (clear, *before):
                    status, answer = client.ask(raw)
                    assert status < 300, answer
                return _used(server, client, read)

            return once

        side(faults)()
        side([])()
        plain, busy = alternate(40, 300, side([]), side(faults))
        _, listed = client.ask(request("GET", "/_emulator/faults"))
        assert [fault["matched"] for fault in json.loads(listed)["faults"]] == [0] * _FAULTS
    # One after the other, so that a machine that slows down is felt by both of a pair.
    ratio = median(more / less for less, more in zip(plain, busy, strict=True))
    yield Line(
        f"{_FAULTS} faults that do not match / none",
        ratio,
        1.02,
        "at most",
        f"{median(busy) * 1e6:.1f} beside {median(plain) * 1e6:.1f} µs of processor a request, {len(plain)} rounds",
    )


def _used(server: Child, client: Connection, raw: bytes) -> float:
    before = server.cpu()
    for _ in range(_REQUESTS):
        client.ask(raw)
    return (server.cpu() - before) / _REQUESTS
