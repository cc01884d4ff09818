"""No secret reaches the disk: one of its own at every place of requests and answers, looked for everywhere."""

from __future__ import annotations

import base64
import hashlib
import http.client
import json
import logging
from typing import TYPE_CHECKING, Any

import pytest

from tests.recording.recorded import Recorded
from tests.recording.upstream import Answer, Request, Scripted
from tests.support import WAIT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from emulator import Emulator

SESSION = "98e997bb-d64f-4e4e-9391-24b87f74fd04"
PATH = f"/v1/sessions/{SESSION}"


class Canaries:
    """Makes secrets that look drawn, and remembers them by the place they were put in."""

    def __init__(self) -> None:
        self.made: dict[str, str] = {}

    def __call__(self, place: str) -> str:
        assert place not in self.made, place
        digest = hashlib.sha256(place.encode()).digest()
        self.made[place] = base64.b64encode(digest).decode().translate(str.maketrans("+/=", "xY7"))[:32]
        return self.made[place]

    def check(self, where: str, text: str) -> None:
        """None of them is in a text, whatever it was made into."""
        lower = text.lower()
        for place, canary in self.made.items():
            assert canary.lower() not in lower, f"{where} has the canary of {place}"
            encoded = base64.b64encode(canary.encode()).decode()[:40]
            assert encoded not in text, f"{where} has the canary of {place}, in base64"


def request_places(canary: Canaries) -> list[tuple[str, str, dict[str, str], Any]]:
    """Requests with a canary in every place: verb, target, headers, body."""
    data = base64.b64encode(f"API_KEY={canary('seed file')}\n".encode()).decode()
    binary = base64.b64encode(b"\xff\xfe" + canary("binary file").encode() + b"\x00").decode()
    tools = [
        {
            "type": "mcp",
            "name": "docs",
            "url": f"https://docs.test/mcp?key={canary('mcp url')}",
            "authorization": f"Bearer {canary('mcp authorization')}",
            "headers": {"x-key": canary("mcp header"), canary("mcp header name"): "x"},
        },
        {"type": "mcp", "name": "local", "command": f"run --key {canary('command')}", "args": ["--k", canary("args")]},
        {
            "type": "function",
            "name": "f",
            "description": canary("description"),
            "parameters": {"properties": {canary("parameter"): {"default": canary("parameter default")}}},
        },
    ]
    create = {
        "title": f"about {canary('title')}.",
        "metadata": {canary("metadata key"): canary("metadata value")},
        "agent": {"instructions": canary("instructions"), "tools": tools, "unknown": canary("unknown field")},
        "environment": {"files": [{"path": f"{canary('file name')}.env", "data": data}, {"path": "b", "data": binary}]},
        "input": [{"type": "input_text", "text": f"password: {canary('message part')}"}],
        canary("unknown key"): {"deep": [{"deeper": canary("deep value")}]},
    }
    result = {"type": "input.tool_result", "turn_id": canary("turn id"), "call_id": canary("call id")}
    json_type = {"content-type": "application/json"}
    return [
        ("POST", "/v1/sessions", json_type, create),
        ("POST", f"{PATH}/events", json_type, {"events": [{**result, "success": True, "output": canary("output")}]}),
        ("POST", f"{PATH}/events", {"idempotency-key": canary("key")}, {"events": [{"type": canary("type")}]}),
        (
            "POST",
            "/v1/model-credentials",
            json_type,
            {"key": "hunter2 x", "base_url": f"https://{canary('base')}.test"},
        ),
        ("POST", "/v1/webhooks", json_type, {"url": f"https://u:{canary('userinfo')}@hooks.test/{canary('hook')}"}),
        ("POST", "/v1/agents", {"content-type": canary("content type")}, {"name": canary("agent name")}),
        ("POST", f"/v1/{canary('path')}", {}, {}),
        ("GET", f"/v1/sessions/{canary('session id')}/turns/{canary('turn in path')}", {}, None),
        ("GET", f"/v1/sessions?{canary('query name')}={canary('query value')}", {}, None),
        ("GET", f"{PATH}/files/content?path=%2Fworkspace%2F{canary('query path')}", {}, None),
        ("GET", f"{PATH}/events", {"last-event-id": canary("cursor"), "x-custom": canary("header")}, None),
        ("POST", f"{PATH}/events", {}, f"not json {canary('text body')}".encode()),
        ("POST", f"{PATH}/files", {}, b"\xff\x00" + canary("binary body").encode()),
        ("GET", "/v1/answers", {"authorization": f"Basic {canary('basic')}"}, None),
    ]


def events(canary: Canaries) -> Iterator[dict[str, Any]]:
    """Events with a canary in every place."""

    def event(seq: int | None, kind: str, payload: Any) -> dict[str, Any]:
        return {"object": "event", "type": kind, "session_id": SESSION, "seq": seq, "created_at": 1, "payload": payload}

    split = canary("deltas")
    for delta in ("let me see: ", split[:9], split[9:20], split[20:], " is it"):
        yield event(None, "agent.thinking", {"delta": delta})
    yield event(1, "user.message", {"text": canary("event text")})
    yield event(2, "agent.tool_call", {"toolCallId": "c1", "toolName": canary("tool"), "args": {"a": canary("arg")}})
    summary = f"token={canary('summary')}"
    yield event(3, "agent.tool_result", {"toolCallId": "c1", "summary": summary, canary("payload key"): 1})
    yield event(4, "file.changed", {"path": f"/workspace/{canary('changed path')}", "diff": f"+{canary('diff')}"})
    yield event(5, canary("event type"), {"nested": {"list": [canary("nested")]}})
    yield event(6, "turn.ended", {"turnId": "turn_1234567890"})


def test_no_canary_reaches_the_disk_or_the_terminal(
    gobare: Emulator, tmp_path: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    canary = Canaries()
    caplog.set_level(logging.DEBUG)
    pem = f"-----BEGIN PRIVATE KEY-----\n{canary('pem')}\n-----END PRIVATE KEY-----"
    jwt = f"eyJhbGciOiJIUzI1NiJ9.{canary('jwt')}.{canary('jwt signature')}"
    answers = {
        "/v1/sessions": {
            "object": "session",
            "id": SESSION,
            "title": canary("answer"),
            canary("answer key"): [pem, jwt],
        },
        "/v1/webhooks": {"object": "webhook.subscription", "id": "whsub_1", "secret": "whsec_x"},
        "/v1/model-credentials": {"error": {"code": "invalid_request", "message": "the key hunter2 x is wrong"}},
        f"{PATH}/turns/turn_1234567890": {
            "object": "turn",
            "id": "turn_1234567890",
            "status": "failed",
            "artifacts": "ready",
            "error": {"code": "x", "message": canary("turn error")},
        },
        f"{PATH}/artifacts": {
            "data": [{"id": "art_1", "size_bytes": 60, "path": f"/workspace/outputs/{canary('artifact path')}"}]
        },
        f"{PATH}/files/content": {"content": canary("file content"), "encoding": "utf8"},
    }
    frames = [b"data: %b\n\n" % json.dumps(event).encode() for event in events(canary)]
    artifact = b"\x89PNG\x00" + canary("artifact").encode()

    def answer(request: Request) -> Answer:
        path = request.target.partition("?")[0]
        if path == "/v1/events":
            # The last of them only once it is plain whose they are.
            return 200, {"content-type": "text/event-stream"}, iter(frames)
        if path == f"{PATH}/artifacts/art_1/content":
            return 200, {"content-type": canary.made["content type of an answer"]}, artifact
        body = json.dumps(answers.get(path, {"message": canary.made["fallback"]})).encode()
        return 200, {"content-type": "application/json", "retry-after": canary.made["retry-after"]}, body

    for place in ("content type of an answer", "fallback", "retry-after"):
        canary(place)
    requests = request_places(canary)
    path = tmp_path / "canaries.jsonl"
    with Scripted(answer) as upstream, Recorded(gobare, path, upstream=upstream.url) as recorded:
        token = canary("token")
        for verb, target, headers, body in requests:
            connection = http.client.HTTPConnection(recorded.server.url.removeprefix("http://"), timeout=WAIT)
            content = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
            connection.request(verb, target, content, {"authorization": f"Bearer {token}", **headers})
            connection.getresponse().read()
            connection.close()
    lines = recorded.lines()
    assert sum("verb" in line for line in lines) == len(requests)
    assert {line["event"] for line in lines if "event" in line} >= {"agent.thinking", "file.changed", "turn.ended"}
    assert any("artifact" in line for line in lines)
    for file in sorted(tmp_path.rglob("*")):
        text = file.read_text()
        canary.check(file.name, text)
        for line in text.splitlines():
            _check_base64(canary, json.loads(line))
    assert "hunter2" not in path.read_text()
    out, err = capfd.readouterr()
    canary.check("what was printed", out + err)
    canary.check("the log", "\n".join(record.getMessage() for record in caplog.records))
    canary.check("what is reported", json.dumps(recorded.server.secrets.suspected))


def _check_base64(canary: Canaries, value: Any) -> None:
    """The contents kept in base64 are looked into as well."""
    match value:
        case dict():
            for entry in value.values():
                _check_base64(canary, entry)
        case list():
            for entry in value:
                _check_base64(canary, entry)
        case str():
            try:
                decoded = base64.b64decode(value, validate=True)
            except ValueError:
                return
            canary.check("a content in base64", decoded.decode("latin-1"))
