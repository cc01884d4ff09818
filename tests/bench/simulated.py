"""A turn with a simulated MCP server, and one that calls its tool, beside the same turns without."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from tests.bench.harness import Child, Connection, Line, alternate, emulator, milliseconds, request

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_TURNS: Final = 40
_SCENARIO: Final[Mapping[str, Any]] = {
    "mcp": {"docs": {"tools": {"search": {"read_only": True, "text": "3 pages found"}}}},
    "agent": [
        {
            "when": {"message": {"equals": "mcp"}},
            "do": [
                {"mcp": {"server": "docs", "tool": "search", "arguments": {"q": "deploy"}}},
                {"say": "Found."},
            ],
        },
        {
            "when": {"message": {"equals": "use"}},
            "do": [
                {"use": {"tool": "mcp_docs_search", "args": {"q": "deploy"}, "summary": "3 pages found"}},
                {"say": "Found."},
            ],
        },
        {"otherwise": [{"say": "Found."}]},
    ],
}
_DOCS: Final = [{"type": "mcp", "name": "docs", "url": "https://mcp.example.com/docs"}]


def measure() -> Iterator[Line]:
    """A turn each: with a declared server and without, with a call of its tool and with the same events without."""
    with tempfile.TemporaryDirectory() as folder:
        scenario = Path(folder, "scenario.json")
        scenario.write_text(json.dumps(_SCENARIO))
        with emulator("--pace", "instant", "--scenario", str(scenario)) as ours, Connection(ours.port) as client:
            for what, with_server, without in (
                ("turn with a server / without", "hello", "hello"),
                ("turn that calls its tool / without", "mcp", "use"),
            ):
                sides = (_turns(ours, client, _DOCS, with_server), _turns(ours, client, [], without))
                for side in sides:
                    side()
                mcp, plain = alternate(20, 150, *sides)
                detail = f"{milliseconds([s / _TURNS for s in mcp])} beside {milliseconds([s / _TURNS for s in plain])}"
                yield Line(what, median(mcp) / median(plain), 1.05, "at most", detail)


def _turns(server: Child, client: Connection, tools: list[dict[str, str]], message: str) -> Callable[[], float]:
    """Some turns of a new session, each over when its reply comes; the server's processor time of them."""
    create = request("POST", "/v1/sessions", json.dumps({"agent": {"tools": tools}}).encode())
    body = json.dumps({"events": [{"type": "input.message", "content": message}]}).encode()

    def turns() -> float:
        status, answer = client.ask(create)
        assert status == 201, answer
        path = f"/v1/sessions/{json.loads(answer)['id']}"
        send = request("POST", f"{path}/events", body)
        # The first brings the workspace up.
        client.ask(send)
        began = server.cpu()
        for _ in range(_TURNS):
            status, answer = client.ask(send)
            assert status == 202, answer
        took = server.cpu() - began
        client.ask(request("DELETE", path))
        return took

    return turns
