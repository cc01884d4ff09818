"""The tools of a session, read and replaced with every gate on, beside bare handlers."""

from __future__ import annotations

import json
from contextlib import ExitStack
from statistics import median
from typing import TYPE_CHECKING, Final

from tests.bench.harness import Child, Connection, Line, alternate, bare, emulator, now, request

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# Requests in flight at once, so that the server is never waiting for the client.
_CONNECTIONS: Final = 8
_BATCHES: Final = 60

_PARAMETERS: Final = {
    "type": "object",
    "properties": {
        "order_id": {"type": "string", "description": "The number on the invoice, such as A-4471."},
        "fields": {"type": "array", "items": {"type": "string", "enum": ["status", "carrier", "eta"]}},
    },
    "required": ["order_id"],
    "additionalProperties": False,
}
CONFIGURATION: Final = {
    "tools": [
        {
            "type": "function",
            "name": "lookup_order",
            "description": "Look an order up.",
            "parameters": _PARAMETERS,
            "timeout_seconds": 120,
        },
        {"type": "function", "name": "cancel_order", "description": "Cancel an order.", "parameters": _PARAMETERS},
        {
            "type": "mcp",
            "name": "runbook",
            "url": "https://mcp.example.com/runbook",
            "authorization": "Bearer not-a-real-one",
            "headers": {"x-tenant": "acme"},
            "allowed_tools": ["search", "read_page"],
        },
        {"type": "web_search"},
        {"type": "web_fetch"},
    ],
    "text": {"verbosity": "low"},
}


def measure() -> Iterator[Line]:
    """Requests a second of both, and the processor time of both servers, for each verb."""
    body = json.dumps(CONFIGURATION).encode()
    with emulator("--pace", "instant") as ours, bare("bare_tools") as plain:
        with Connection(ours.port) as client:
            status, answer = client.ask(request("POST", "/v1/sessions", b"{}"))
            assert status == 201, answer
            path = f"/v1/sessions/{json.loads(answer)['id']}/tools"
            status, answer = client.ask(request("PUT", path, body))
            assert status == 200, answer
        with Connection(plain.port) as client:
            client.ask(request("PUT", "/bytes", answer))
        yield from _compared("GET", request("GET", path), answer, ours, plain)
        yield from _compared("PUT", request("PUT", path, body), answer, ours, plain)


def _compared(verb: str, raw: bytes, answer: bytes, ours: Child, plain: Child) -> Iterator[Line]:
    with ExitStack() as stack:
        sides = [
            _Side(child, [stack.enter_context(Connection(child.port)) for _ in range(_CONNECTIONS)], raw, answer)
            for child in (ours, plain)
        ]
        for side in sides:
            side()
            side.processor.clear()
        mine, peer = alternate(12, 80, *sides)
    count = _BATCHES * _CONNECTIONS
    yield Line(
        f"{verb} tools / bare handler",
        median(peer) / median(mine),
        0.5,
        "at least",
        f"{count / median(mine):.0f} beside {count / median(peer):.0f} requests a second",
    )
    mine, peer = sides[0].processor, sides[1].processor
    yield Line(
        f"{verb} tools / bare handler, processor",
        median(peer) / median(mine),
        0.5,
        "at least",
        f"{median(mine) / count * 1e6:.0f} beside {median(peer) / count * 1e6:.0f} µs a request",
    )


class _Side:
    """One server and its connections. A call sends some hundred requests and gives the seconds."""

    def __init__(self, child: Child, connections: Sequence[Connection], raw: bytes, answer: bytes) -> None:
        self.processor: list[float] = []
        self._child = child
        self._connections = connections
        self._raw = raw
        for connection in connections:
            status, body = connection.ask(raw)
            assert (status, body) == (200, answer), body

    def __call__(self) -> float:
        before, began = self._child.cpu(), now()
        for _ in range(_BATCHES):
            for connection in self._connections:
                connection.socket.sendall(self._raw)
            for connection in self._connections:
                connection.answer()
        took = now() - began
        self.processor.append(self._child.cpu() - before)
        return took
