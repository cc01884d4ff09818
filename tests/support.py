"""What tests drive an emulator with: one client, over a real socket or straight into the application.

The in-process bridge speaks ASGI and hands chunks on as they are sent, which a buffering test client
cannot do for event streams. Every wait is bounded.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import queue
import socket
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol
from urllib.parse import unquote

from emulator.server import application

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from emulator import Emulator

WAIT: Final = 10.0
Kind = Literal["in-process", "socket"]


@dataclass(frozen=True)
class Answer:
    """A response: its status, its headers by lower-case name, its bytes."""

    status: int
    headers: dict[str, str]
    raw: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.raw)

    @property
    def code(self) -> str:
        """The code of a refusal."""
        code: str = self.json["error"]["code"]
        return code

    @property
    def message(self) -> str:
        """The message of a refusal."""
        message: str = self.json["error"]["message"]
        return message


@dataclass(frozen=True)
class Frame:
    """One frame of an event stream, as it was sent."""

    text: str

    @property
    def fields(self) -> dict[str, str]:
        return dict(line.split(": ", 1) for line in self.text.splitlines() if not line.startswith(":"))

    @property
    def type(self) -> str | None:
        return self.fields.get("event")

    @property
    def id(self) -> int | None:
        return int(self.fields["id"]) if "id" in self.fields else None

    @property
    def data(self) -> dict[str, Any]:
        data: dict[str, Any] = json.loads(self.fields["data"])
        return data

    @property
    def payload(self) -> dict[str, Any]:
        payload: dict[str, Any] = self.data["payload"]
        return payload


class Stream(Protocol):
    """An open event stream."""

    status: int
    headers: dict[str, str]

    def read(self) -> bytes:
        """The next bytes; empty at the end. Raises `TimeoutError` when nothing comes."""
        ...

    def close(self) -> None: ...


@dataclass
class Frames:
    """The frames of a stream, one by one."""

    stream: Stream
    _rest: bytes = b""
    seen: list[Frame] = field(default_factory=list)

    def next(self) -> Frame | None:
        """The next frame, comments and the reconnect delay included; `None` at the end."""
        while b"\n\n" not in self._rest:
            more = self.stream.read()
            if not more:
                return None
            self._rest += more
        text, _, self._rest = self._rest.partition(b"\n\n")
        frame = Frame(text.decode())
        self.seen.append(frame)
        return frame

    def event(self) -> Frame | None:
        """The next frame that is an event."""
        while (frame := self.next()) is not None:
            if frame.type is not None:
                return frame
        return None

    def until(self, event_type: str) -> list[Frame]:
        """The events up to and with the first of a type."""
        events: list[Frame] = []
        while (frame := self.event()) is not None:
            events.append(frame)
            if frame.type == event_type:
                return events
        raise AssertionError(f"the stream ended without {event_type}: {[frame.type for frame in events]}")

    def close(self) -> None:
        self.stream.close()

    def __enter__(self) -> Frames:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


class Api:
    """A client of one emulator. Every method takes the token to use; the default has every scope but cli."""

    def __init__(self, emulator: Emulator, kind: Kind = "socket") -> None:
        self.emulator = emulator
        self.kind: Kind = kind

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        token: str | None = "default",
        headers: Mapping[str, str] | None = None,
        raw: bytes | None = None,
    ) -> Answer:
        """Send one request. `body` is sent as JSON, `raw` as it is; `token=None` sends none."""
        sent = self._headers(token, headers)
        data = raw if raw is not None else None if body is None else json.dumps(body).encode()
        if data is not None:
            sent.setdefault("content-type", "application/json")
        if self.kind == "socket":
            return self._over_socket(method, path, data, sent)
        return self.emulator.run(_bridged(self.emulator, method, path, data or b"", sent))

    def get(self, path: str, **options: Any) -> Answer:
        return self.request("GET", path, **options)

    def post(self, path: str, body: Any = None, **options: Any) -> Answer:
        return self.request("POST", path, body, **options)

    def put(self, path: str, body: Any = None, **options: Any) -> Answer:
        return self.request("PUT", path, body, **options)

    def patch(self, path: str, body: Any = None, **options: Any) -> Answer:
        return self.request("PATCH", path, body, **options)

    def delete(self, path: str, **options: Any) -> Answer:
        return self.request("DELETE", path, **options)

    def stream(self, path: str, *, token: str | None = "default", headers: Mapping[str, str] | None = None) -> Frames:
        """Open an event stream."""
        sent = self._headers(token, headers)
        if self.kind == "socket":
            return Frames(_SocketStream(self.emulator.url, path, sent))
        return Frames(_BridgedStream(self.emulator, path, sent))

    # Steps that most tests begin with

    def session(self, body: Any = None, **options: Any) -> str:
        """The id of a new session."""
        answer = self.post("/v1/sessions", {} if body is None else body, **options)
        assert answer.status == 201, answer.raw
        session_id: str = answer.json["id"]
        return session_id

    def send(self, session_id: str, event: dict[str, Any], **options: Any) -> Answer:
        """Send one input event."""
        return self.post(f"/v1/sessions/{session_id}/events", {"events": [event]}, **options)

    def say(self, session_id: str, text: str, **options: Any) -> Answer:
        """Send a message."""
        return self.send(session_id, {"type": "input.message", "content": text}, **options)

    def answer(self, session_id: str, action: dict[str, Any], output: str = "done", **options: Any) -> Answer:
        """Answer a function call with success."""
        event = {"type": "input.tool_result", "turn_id": action["turn_id"], "call_id": action["call_id"]}
        return self.send(session_id, {**event, "success": True, "output": output}, **options)

    def actions(self, session_id: str) -> list[dict[str, Any]]:
        """What a session waits for."""
        actions: list[dict[str, Any]] = self.get(f"/v1/sessions/{session_id}").json["required_actions"]
        return actions

    def items(self, session_id: str) -> list[dict[str, Any]]:
        """A session's items, oldest first."""
        items: list[dict[str, Any]] = self.get(f"/v1/sessions/{session_id}/items?limit=100&order=asc").json["data"]
        return items

    def turns(self, session_id: str) -> list[dict[str, Any]]:
        """A session's turns, oldest first."""
        turns: list[dict[str, Any]] = self.get(f"/v1/sessions/{session_id}/turns?limit=100&order=asc").json["data"]
        return turns

    def events(self, session_id: str) -> list[dict[str, Any]]:
        """A session's persisted events, oldest first."""
        return list(self.emulator.events(session_id))

    def _headers(self, token: str | None, headers: Mapping[str, str] | None) -> dict[str, str]:
        sent = {name.lower(): value for name, value in (headers or {}).items()}
        if token is not None:
            sent["authorization"] = f"Bearer {self.emulator.token if token == 'default' else token}"
        return sent

    def _over_socket(self, method: str, path: str, data: bytes | None, headers: dict[str, str]) -> Answer:
        connection = http.client.HTTPConnection(self.emulator.url.removeprefix("http://"), timeout=WAIT)
        try:
            connection.request(method, path, data, headers)
            response = connection.getresponse()
            received = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, received, response.read())
        finally:
            connection.close()


class _SocketStream:
    def __init__(self, url: str, path: str, headers: dict[str, str]) -> None:
        self._connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=WAIT)
        self._connection.request("GET", path, headers=headers)
        self._response = self._connection.getresponse()
        self.status = self._response.status
        self.headers = {name.lower(): value for name, value in self._response.getheaders()}

    def read(self) -> bytes:
        return self._response.read1(65536)

    def close(self) -> None:
        self._response.close()
        self._connection.close()


class _BridgedStream:
    def __init__(self, emulator: Emulator, path: str, headers: dict[str, str]) -> None:
        self._chunks: queue.Queue[bytes | Exception] = queue.Queue()
        self._emulator = emulator
        self._started = threading.Event()
        self.status = 0
        self.headers: dict[str, str] = {}
        self._gone = asyncio.Event()
        self._future = asyncio.run_coroutine_threadsafe(self._run(path, headers), emulator.loop.loop)
        assert self._started.wait(WAIT), "the stream did not open"

    def read(self) -> bytes:
        try:
            chunk = self._chunks.get(timeout=WAIT)
        except queue.Empty:
            raise TimeoutError("nothing came") from None
        if isinstance(chunk, Exception):
            raise chunk
        return chunk

    def close(self) -> None:
        self._emulator.loop.loop.call_soon_threadsafe(self._gone.set)
        self._future.result(timeout=WAIT)

    async def _run(self, path: str, headers: dict[str, str]) -> None:
        asked = False

        async def receive() -> dict[str, Any]:
            nonlocal asked
            if not asked:
                asked = True
                return {"type": "http.request", "body": b"", "more_body": False}
            await self._gone.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                self.status = message["status"]
                self.headers = {name.decode(): value.decode() for name, value in message["headers"]}
                self._started.set()
            elif message.get("body"):
                self._chunks.put(message["body"])

        await application()(_scope(self._emulator, "GET", path, headers), receive, send)
        self._chunks.put(b"")


async def _bridged(emulator: Emulator, method: str, path: str, body: bytes, headers: dict[str, str]) -> Answer:
    status = 0
    received: dict[str, str] = {}
    parts: list[bytes] = []
    pieces: Iterator[bytes] = iter([body[: len(body) // 2], body[len(body) // 2 :]])
    left = 2

    async def receive() -> dict[str, Any]:
        nonlocal left
        if left == 0:
            return {"type": "http.disconnect"}
        left -= 1
        return {"type": "http.request", "body": next(pieces), "more_body": left > 0}

    async def send(message: Any) -> None:
        nonlocal status
        if message["type"] == "http.response.start":
            status = message["status"]
            received.update((name.decode(), value.decode()) for name, value in message["headers"])
        else:
            parts.append(message.get("body", b""))

    if body:
        headers.setdefault("content-length", str(len(body)))
    async with asyncio.timeout(WAIT):
        await application()(_scope(emulator, method, path, headers), receive, send)
    return Answer(status, received, b"".join(parts))


def _scope(emulator: Emulator, method: str, path: str, headers: dict[str, str]) -> dict[str, Any]:
    raw_path, _, query = path.partition("?")
    host = emulator.url.removeprefix("http://")
    return {
        "type": "http",
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": unquote(raw_path),
        "raw_path": raw_path.encode("latin-1"),
        "query_string": query.encode("latin-1"),
        "headers": [(b"host", host.encode()), *((k.encode(), v.encode("latin-1")) for k, v in headers.items())],
        "state": {"emulator": emulator.socket},
    }


def read_to_end(connection: socket.socket) -> tuple[bytes, str]:
    """All that a connection has for its client, and how it ends: `closed` or `reset`."""
    got = b""
    try:
        while part := connection.recv(65536):
            got += part
    except ConnectionResetError:
        return got, "reset"
    return got, "closed"
