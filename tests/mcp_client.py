"""A client of one MCP server, as plain as its transport: what is sent is written out, what comes back is as it is."""

from __future__ import annotations

import http.client
import json
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from tests.support import WAIT, Answer

if TYPE_CHECKING:
    from types import TracebackType

BOTH: Final = "application/json, text/event-stream"
NEWEST: Final = "2026-07-28"


class McpClient:
    """Speaks to the server at `url` over one connection, as a context manager. `headers` go with every request."""

    def __init__(self, url: str, **headers: str) -> None:
        place = urlsplit(url)
        self._path = place.path
        self._http = http.client.HTTPConnection(place.netloc, timeout=WAIT)
        self.headers = {"accept": BOTH, "content-type": "application/json"} | {
            name.replace("_", "-"): value for name, value in headers.items()
        }
        self._sent = 0

    def send(self, verb: str, body: bytes | None = None, **headers: str | None) -> Answer:
        """One request. A header that is `None` is left out."""
        changed = {name.replace("_", "-"): value for name, value in headers.items()}
        sent = {name: value for name, value in (self.headers | changed).items() if value is not None}
        self._http.request(verb, self._path, body, sent)
        response = self._http.getresponse()
        return Answer(response.status, {name.lower(): value for name, value in response.getheaders()}, response.read())

    def open(self) -> http.client.HTTPResponse:
        """The stream on which the server tells of changes. Read and close it."""
        self._http.request("GET", self._path, None, self.headers)
        return self._http.getresponse()

    def ask(self, method: str, params: dict[str, Any] | None = None, **headers: str | None) -> Answer:
        """One JSON-RPC request."""
        return self.send("POST", self._message(method, params), **headers)

    def ask_statelessly(self, method: str, params: dict[str, Any] | None = None, **headers: str | None) -> Answer:
        """One JSON-RPC request of the revision without sessions."""
        meta = {"io.modelcontextprotocol/protocolVersion": NEWEST, "io.modelcontextprotocol/clientCapabilities": {}}
        routed: dict[str, str | None] = {"mcp_protocol_version": NEWEST, "mcp_method": method, **headers}
        return self.ask(method, {**(params or {}), "_meta": meta}, **routed)

    def initialize(self, version: str = "2025-11-25") -> Answer:
        """Begin a session, which every later request is of."""
        client = {"name": "a test", "version": "1"}
        answer = self.ask("initialize", {"protocolVersion": version, "capabilities": {}, "clientInfo": client})
        if answer.status == 200:
            self.headers["mcp-session-id"] = answer.headers["mcp-session-id"]
            self.headers["mcp-protocol-version"] = answer.json["result"]["protocolVersion"]
            self.send("POST", json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}).encode())
        return answer

    def tools(self) -> list[dict[str, Any]]:
        """The tools the server lists."""
        found: list[dict[str, Any]] = self.ask("tools/list").json["result"]["tools"]
        return found

    def call(self, tool: str, **arguments: Any) -> Any:
        """The result of a tool, or the error in place of it."""
        answer = self.ask("tools/call", {"name": tool, "arguments": arguments}).json
        return answer.get("result", answer.get("error"))

    def hears_nothing(self, seconds: float) -> bool:
        """Whether no answer comes for so long to a call, which is left waiting."""
        self._http.request("POST", self._path, self._message("tools/call", {"name": "search"}), self.headers)
        self._http.sock.settimeout(seconds)
        try:
            return self._http.sock.recv(1) is None
        except TimeoutError:
            return True
        finally:
            self._http.sock.settimeout(WAIT)

    def was_reset(self) -> bool:
        """Whether the connection is broken off, which is waited for."""
        try:
            return self._http.sock.recv(1) is None
        except ConnectionResetError:
            return True

    def _message(self, method: str, params: dict[str, Any] | None) -> bytes:
        self._sent += 1
        return json.dumps({"jsonrpc": "2.0", "id": self._sent, "method": method, "params": params or {}}).encode()

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> McpClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
