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
    Missing,
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

_POLLS: Final = 1000
_WHAT: Final = "whole loop / aimock tool turn"
_QUESTION: Final = "Where is order A-4471?"
_RESULT: Final = json.dumps('{"status":"shipped"}')
_PARAMETERS: Final = {"type": "object", "properties": {"order_id": {"type": "string"}}, "required": ["order_id"]}
_FUNCTION: Final = {"name": "lookup_order", "description": "Look an order up.", "parameters": _PARAMETERS}
_CALL: Final = {"name": "lookup_order", "arguments": '{"order_id":"A-4471"}'}
_FIXTURE: Final = {
    "fixtures": [
        {"match": {"toolCallId": "call_order"}, "response": {"content": "It is shipped."}},
        {"match": {"userMessage": "Where is order"}, "response": {"toolCalls": [{"id": "call_order", **_CALL}]}},
    ]
}

# What can be known of the requests beforehand is made beforehand, on both sides.
_CREATE: Final = request(
    "POST", "/v1/sessions", json.dumps({"agent": {"tools": [{"type": "function", **_FUNCTION}]}}).encode()
)
_MESSAGE: Final = json.dumps({"events": [{"type": "input.message", "content": _QUESTION}]}).encode()
_ANSWER: Final = (
    f'{{"events":[{{"type":"input.tool_result","turn_id":"%s","call_id":"%s","success":true,"output":{_RESULT}}}]}}'
)
_COMPLETION: Final = (
    f'{{"model":"gpt-4","tools":{json.dumps([{"type": "function", "function": _FUNCTION}])},'
    f'"messages":[{{"role":"user","content":"{_QUESTION}"}}%s]}}'
)
_FIRST: Final = request("POST", "/v1/chat/completions", (_COMPLETION % "").encode())


def measure() -> Iterator[Line]:
    """Five requests to `serve`, two to aimock, on one kept connection each, taking turns."""
    with tempfile.TemporaryDirectory() as folder:
        fixture = Path(folder, "order.json")
        fixture.write_text(json.dumps(_FIXTURE))
        try:
            command = aimock(fixture)
        except Missing as missing:
            yield skipped(_WHAT, 1.5, "at most", str(missing))
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
            mine, peer = alternate(25, 1500, lambda: _loop(client), lambda: _tool_turn(other))
            used = [(child.cpu() - start) / len(mine) for child, start in zip((ours, theirs), before, strict=True)]
            floor = request("GET", "/_emulator/health")
            five = alternate(5, 500, lambda: _five(client, floor))[0]
    yield Line(
        _WHAT,
        median(mine) / median(peer),
        1.5,
        "at most",
        f"{milliseconds(mine)} beside {milliseconds(peer)}, {len(mine)} turns; "
        f"processor {used[0] * 1000:.2f} ms (with a delete) beside {used[1] * 1000:.2f} ms; "
        f"five requests of the least kind {milliseconds(five)}",
    )


def _loop(client: Connection) -> float:
    """Create with tools, message, read the required action, answer, see the turn completed."""
    began = now()
    path = f"/v1/sessions/{_ask(client, _CREATE)['id']}"
    _ask(client, request("POST", f"{path}/events", _MESSAGE))
    for _ in range(_POLLS):
        if actions := (session := _ask(client, request("GET", path)))["required_actions"]:
            break
    else:
        raise RuntimeError(f"nothing is required: {session}")
    told = _ANSWER % (actions[0]["turn_id"], actions[0]["call_id"])
    accepted = _ask(client, request("POST", f"{path}/events", told.encode()))
    for _ in range(_POLLS):
        if (turn := _ask(client, request("GET", f"{path}/turns?limit=1"))["data"][0])["status"] != "working":
            break
    took = now() - began
    assert (accepted["outcome"], turn["status"]) == ("accepted", "completed")
    _ask(client, request("DELETE", path))
    return took


def _five(client: Connection, raw: bytes) -> float:
    """As many requests, with next to nothing behind them: what the loop's transport costs."""
    began = now()
    for _ in range(5):
        _ask(client, raw)
    return now() - began


def _tool_turn(client: Connection) -> float:
    """A completion that gives a tool call, and the one that is given its result."""
    began = now()
    said = _ask(client, _FIRST)["choices"][0]["message"]
    result = f',{json.dumps(said)},{{"role":"tool","tool_call_id":"{said["tool_calls"][0]["id"]}","content":{_RESULT}}}'
    said = _ask(client, request("POST", "/v1/chat/completions", (_COMPLETION % result).encode()))
    took = now() - began
    assert said["choices"][0]["message"]["content"] == "It is shipped."
    return took


def _ask(client: Connection, raw: bytes) -> Any:
    status, answer = client.ask(raw)
    assert status < 300, f"{raw!r}: {status} {answer!r}"
    return json.loads(answer)
