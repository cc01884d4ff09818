"""An MCP server at an address on loopback, written by hand, that misbehaves by path and keeps what it was sent."""

from __future__ import annotations

import json
import socket
import ssl
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from types import TracebackType

    from tests.support import Api

SECRET: Final = "tok-9f2b7c41d8"
# What sessions with such a server need.
connected = pytest.mark.gobare(mcp="connect", allow_processes=True)
WAIT: Final = 10.0
TOOLS: Final = [
    {"name": "read", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}},
    *(
        {"name": name, "inputSchema": {"type": "object"}}
        for name in ("write", "hang", "cut", "status", "malformed", "gzip")
    ),
]


def at(url: str, **fields: Any) -> dict[str, Any]:
    """The tool entry of a server at an address."""
    return {"type": "mcp", "name": "docs", "url": url, **fields}


def session(api: Api, *entries: dict[str, Any], **body: Any) -> str:
    """A session with these servers."""
    return api.session({"agent": {"tools": list(entries)}, **body})


@dataclass(frozen=True)
class Received:
    """One request, as it came."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any


@dataclass
class Web:
    """The server. Paths: `/mcp` and `/sse` behave, the others do what they are called."""

    received: list[Received] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)
    # The methods that hang while they are in here.
    hangs: set[str] = field(default_factory=set)
    asked: threading.Event = field(default_factory=threading.Event)
    # Where clients that are answered meet: none is before all are there.
    meeting: threading.Barrier | None = None

    def __enter__(self) -> Web:
        web = self

        class Handler(_Handler):
            web_ = web

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.over.set()
        self._server.shutdown()
        self._thread.join(WAIT)
        self._server.server_close()

    def secure(self, context: ssl.SSLContext) -> None:
        """Speak TLS from now on."""
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        self.url = self.url.replace("http://127.0.0.1", "https://localhost")

    def methods(self) -> list[str]:
        """What was asked by POST, in order."""
        return [one.body.get("method") for one in self.received if one.method == "POST"]


class _Handler(BaseHTTPRequestHandler):
    web_: Web
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        self._keep(None)
        self._send(405)

    def do_DELETE(self) -> None:
        self._keep(None)
        if self.path == "/no-goodbye":
            self._hang()
        self._send(200)

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self._keep(body)
        way = self.path.partition("?")[0].strip("/")
        if way in self.web_.hangs or body.get("method") in self.web_.hangs:
            self._hang()
        elif way.isdigit():
            self._send(int(way), json.dumps({"token": self.headers["authorization"]}).encode())
        elif way == "redirect":
            self._send(307, b"", location=f"http://localhost:{self.headers['host'].rpartition(':')[2]}/mcp")
        elif way == "html":
            self._send(200, b"<html>a proxy</html>", "text/html")
        elif way == "json":
            self._send(200, b'{"hello": "world"}')
        elif way == "nothing":
            self._send(200, b"not json at all")
        elif way == "reset":
            self._cut(b"")
        elif way == "half":
            self._cut(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 500\r\n\r\n{")
        elif body.get("id") is None:
            self._send(202)
        else:
            self._answer(body)

    def _answer(self, body: dict[str, Any]) -> None:
        method = body["method"]
        if method == "initialize":
            if self.web_.meeting is not None:
                self.web_.meeting.wait(WAIT)
            version = body["params"]["protocolVersion"]
            result: Any = {"protocolVersion": version, "capabilities": {"tools": {}}}
            result["serverInfo"] = {"name": "web", "version": "1"}
            if self.path == "/old":
                result["protocolVersion"] = "1999-01-01"
        elif method == "tools/list":
            result = {"tools": TOOLS}
        else:
            tool = body["params"]["name"]
            text = {"type": "text", "text": json.dumps(body["params"].get("arguments", {}))}
            result = {"content": [text], "structuredContent": {"tool": tool}}
            match tool:
                case "hang":
                    return self._hang()
                case "cut":
                    return self._cut(
                        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 500\r\n\r\n{"
                    )
                case "gzip":
                    return self._send(200, b"nothing that was compressed", **{"content-encoding": "gzip"})
                case "status":
                    return self._send(503)
                case "malformed":
                    result = {"content": 7}
        answer = json.dumps({"jsonrpc": "2.0", "id": body["id"], "result": result}).encode()
        if self.path == "/sse":
            self._send(200, b"event: message\ndata: " + answer + b"\n\n", "text/event-stream")
        else:
            self._send(200, answer)
        return None

    def _keep(self, body: Any) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.web_.received.append(Received(self.command, self.path, headers, body))

    def _hang(self) -> None:
        self.web_.asked.set()
        self.web_.over.wait(WAIT)
        self.close_connection = True

    def _cut(self, head: bytes) -> None:
        self.wfile.write(head)
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def _send(self, status: int, body: bytes = b"", kind: str = "application/json", **headers: str) -> None:
        self.send_response(status)
        for name, value in {"content-type": kind, "content-length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.send_header("mcp-session-id", "of-a-client")
        self.end_headers()
        self.wfile.write(body)
