"""The whole loop, from a new session to a finished turn, beside aimock's two-call tool turn."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from tests.bench.harness import (
    ROOT,
    Child,
    Connection,
    Line,
    aimock,
    alternate,
    emulator,
    milliseconds,
    now,
    request,
    skipped,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

_WHAT: Final = "whole loop / aimock tool turn"
_QUESTION: Final = "Where is order A-4471?"
_RESULT: Final = '{"status":"shipped"}'
_PARAMETERS: Final = {"type": "object", "properties": {"order_id": {"type": "string"}}, "required": ["order_id"]}
_FUNCTION: Final = {"name": "lookup_order", "description": "Look an order up.", "parameters": _PARAMETERS}
_CALL: Final = {"name": "lookup_order", "arguments": '{"order_id":"A-4471"}'}
_FIXTURE: Final = {
    "fixtures": [
        {"match": {"toolCallId": "call_order"}, "response": {"content": "It is shipped."}},
        {"match": {"userMessage": "Where is order"}, "response": {"toolCalls": [{"id": "call_order", **_CALL}]}},
    ]
}


def measure() -> Iterator[Line]:
    """Five requests to `serve`, two to aimock, on one kept connection each, taking turns."""
    with tempfile.TemporaryDirectory() as folder:
        fixture = Path(folder, "order.json")
        fixture.write_text(json.dumps(_FIXTURE))
        command = aimock(fixture)
        if isinstance(command, str):
            yield skipped(_WHAT, 1.5, "at most", command)
            return
        scenario = str(ROOT / "fixtures" / "order_lookup.yaml")
        with (
            emulator("--pace", "instant", "--scenario", scenario) as ours,
            Child(command) as theirs,
            Connection(ours.port) as client,
            Connection(theirs.port) as other,
        ):
            for _ in range(300):
                _loop(client)
                _tool_turn(other)
            before = ours.cpu(), theirs.cpu()
            mine, peer = alternate(30, 1500, lambda: _loop(client), lambda: _tool_turn(other))
            used = [
                (after - start) / len(mine) for after, start in zip((ours.cpu(), theirs.cpu()), before, strict=True)
            ]
    yield Line(
        _WHAT,
        median(mine) / median(peer),
        1.5,
        "at most",
        f"{milliseconds(mine)} beside {milliseconds(peer)}, {len(mine)} turns; "
        f"processor {used[0] * 1000:.2f} ms (with a delete) beside {used[1] * 1000:.2f} ms",
    )


def _loop(client: Connection) -> float:
    """Create with tools, message, read the required action, answer, see the turn completed."""
    began = now()
    created = _ask(client, "POST", "/v1/sessions", {"agent": {"tools": [{"type": "function", **_FUNCTION}]}})
    path = f"/v1/sessions/{created['id']}"
    _send(client, path, {"type": "input.message", "content": _QUESTION})
    while not (actions := _ask(client, "GET", path)["required_actions"]):
        pass
    action = actions[0]
    assert action["name"] == "lookup_order"
    told = {"turn_id": action["turn_id"], "call_id": action["call_id"], "success": True, "output": _RESULT}
    assert _send(client, path, {"type": "input.tool_result", **told})["outcome"] == "accepted"
    while _ask(client, "GET", f"{path}/turns?limit=1")["data"][0]["status"] != "completed":
        pass
    took = now() - began
    _ask(client, "DELETE", path)
    return took


def _tool_turn(client: Connection) -> float:
    """A completion that gives a tool call, and the one that is given its result."""
    began = now()
    messages: list[dict[str, Any]] = [{"role": "user", "content": _QUESTION}]
    asked = {"model": "gpt-4", "tools": [{"type": "function", "function": _FUNCTION}], "messages": messages}
    said = _ask(client, "POST", "/v1/chat/completions", asked)["choices"][0]["message"]
    messages += [said, {"role": "tool", "tool_call_id": said["tool_calls"][0]["id"], "content": _RESULT}]
    said = _ask(client, "POST", "/v1/chat/completions", asked)["choices"][0]["message"]
    took = now() - began
    assert said["content"] == "It is shipped."
    return took


def _send(client: Connection, path: str, event: dict[str, Any]) -> dict[str, Any]:
    return _ask(client, "POST", f"{path}/events", {"events": [event]})


def _ask(client: Connection, verb: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    status, answer = client.ask(request(verb, path, None if body is None else json.dumps(body).encode()))
    assert status < 300, f"{verb} {path}: {status} {answer!r}"
    content: dict[str, Any] = json.loads(answer)
    return content
