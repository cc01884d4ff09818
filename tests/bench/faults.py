"""Reading a session's tools while there are faults that are none of its business, beside the same without any."""

from __future__ import annotations

import json
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from tests.bench.harness import Child, Connection, Line, alternate, emulator, request

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_REQUESTS: Final = 200
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
    scenario = json.dumps({"faults": [unmet(n) for n in range(_FAULTS)]}).encode()
    with emulator("--pace", "instant") as server, Connection(server.port) as client:
        _, made = client.ask(request("POST", "/v1/sessions", b"{}"))
        read = request("GET", f"/v1/sessions/{json.loads(made)['id']}/tools")

        def side(before: bytes) -> Callable[[], float]:
            def once() -> float:
                status, answer = client.ask(before)
                assert status == 200, answer
                # What it cost to put them there is not felt any more then.
                _used(server, client, read)
                return _used(server, client, read)

            return once

        plain = side(request("DELETE", "/_emulator/scenario"))
        busy = side(request("PUT", "/_emulator/scenario", scenario))
        plain()
        busy()
        without, with_faults = alternate(40, 1000, plain, busy)
        _, listed = client.ask(request("GET", "/_emulator/faults"))
        assert [fault["matched"] for fault in json.loads(listed)["faults"]] == [0] * _FAULTS
    yield Line(
        f"{_FAULTS} faults that do not match / none",
        median(with_faults) / median(without),
        1.02,
        "at most",
        f"{median(with_faults) * 1e6:.1f} beside {median(without) * 1e6:.1f} µs of processor a request, "
        f"{len(without)} rounds",
    )


def _used(server: Child, client: Connection, raw: bytes) -> float:
    before = server.cpu()
    for _ in range(_REQUESTS):
        client.ask(raw)
    return (server.cpu() - before) / _REQUESTS
