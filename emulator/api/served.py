"""The HTTP of served MCP servers: one request to /_mcp/NAME from its first byte to its last.

Law: any MCP client can use it, and one that breaks the transport's rules is refused as MCP servers do. What
a server is scripted to do wrong is done here, on the wire. Nothing of a request reaches a log or the journal.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from emulator import render
from emulator.api import parse, replies
from emulator.listening import Connection
from emulator.refusals import Refusal
from emulator.runtime.mcp_answers import (
    HANDSHAKE,
    HEADER_MISMATCH,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    STATELESS,
    TOOLS_CHANGED,
    UNSUPPORTED_VERSION,
    error,
    failed,
    params_of,
    result,
)
from emulator.runtime.served import OWN, STALL

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from starlette.types import Receive, Scope, Send

    from emulator.api.app import Holder
    from emulator.domain.outages import CallEntry, ConnectEntry
    from emulator.runtime.served import ServedServer

_BODY_LIMIT: Final = 4 * 1024 * 1024
_VERBS: Final = "GET, POST, DELETE"
_JSON: Final = (b"content-type", b"application/json")
_STREAM: Final = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-cache")]
_PAGE: Final = b"<!doctype html><title>Sign in</title><p>There is a web page here.</p>"
_META: Final = "io.modelcontextprotocol/protocolVersion"


class Refused(Exception):
    """What this transport refuses: a status, and an error without a result."""

    def __init__(self, status: int, answer: Any, **headers: str) -> None:
        super().__init__(status)
        self.status = status
        self.answer = answer
        self.headers = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]


class Served:
    """Serves /_mcp for whatever deployment the scope's state holds."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        holder: Holder = scope["state"]["emulator"]
        try:
            segments = parse.segments(scope["raw_path"])
            server = holder.deployment.served.find(segments[1]) if segments and len(segments) == 2 else None
            if server is None:
                raise Refused(404, error(None, INVALID_REQUEST, "No MCP server of that name is served here."))
            await _Exchange(server, scope, receive, send).run()
        except Refused as refused:
            await _reply(send, refused.status, refused.answer, refused.headers)
        except parse.Disconnected:
            pass


class _Exchange:
    """One request to one server, and its answer."""

    def __init__(self, server: ServedServer, scope: Scope, receive: Receive, send: Send) -> None:
        self._server = server
        self._scope = scope
        self._receive = receive
        self._send = send
        self._stateless = False
        self._headers: dict[str, str] = {}
        for name, value in scope["headers"]:
            key, text = name.decode("latin-1"), _text(value)
            self._headers[key] = f"{self._headers[key]}, {text}" if key in self._headers else text
        # What tells the emulator's own connections from others was not sent by whom the test is about.
        self._own = self._headers.pop(OWN, None) is not None

    async def run(self) -> None:
        """Raises `Refused`, and `Disconnected` when the client left."""
        sent = await self._body()
        path, query = self._scope["raw_path"].decode("latin-1"), self._scope["query_string"].decode("latin-1")
        self._server.received(self._scope["method"], path, query, self._headers, sent)
        match self._scope["method"]:
            case "POST":
                await self._post(sent)
            case "GET":
                await self._listen()
            case "DELETE":
                self._server.end_session(self._session())
                await _reply(self._send, 200, None)
            case _:
                raise Refused(405, error(None, INVALID_REQUEST, f"This address takes {_VERBS}."), allow=_VERBS)

    async def _body(self) -> bytes:
        headers = dict(self._scope["headers"])
        try:
            return await parse.read_body(self._receive, headers, _BODY_LIMIT)
        except Refusal as refused:
            raise Refused(413, error(None, INVALID_REQUEST, refused.message)) from None

    async def _post(self, sent: bytes) -> None:
        accepted = self._headers.get("accept", "")
        if not (_takes(accepted, "application/json") and _takes(accepted, "text/event-stream")):
            wanted = "`Accept` must have both application/json and text/event-stream."
            raise Refused(406, error(None, INVALID_REQUEST, wanted))
        if self._headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            raise Refused(415, error(None, INVALID_REQUEST, "`Content-Type` must be application/json."))
        try:
            message = render.decode(sent)
        except (ValueError, RecursionError):
            raise Refused(400, error(None, PARSE_ERROR, "The body is not JSON.")) from None
        if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
            raise Refused(400, error(None, INVALID_REQUEST, "The body must be one JSON-RPC message."))
        if (at := message.get("id", 0)) is None or not isinstance(at, str | int) or isinstance(at, bool):
            raise Refused(400, error(None, INVALID_REQUEST, "`id` must be a string or an integer."))
        method = message.get("method")
        self._stateless = self._is_stateless(message, method)
        if method != "initialize" and not self._stateless:
            self._session()
        if not isinstance(method, str) or "id" not in message:
            # A notification, or the answer to a request that no server here sends.
            await _reply(self._send, 202, None)
            return
        tool = params_of(message).get("name")
        if method == ("server/discover" if self._stateless else "initialize"):
            entry = self._server.connecting(method, self._headers.get("user-agent", ""))
            if entry.tools is not None:
                self._server.offer(entry.tools)
            if not await self._goes_wrong(entry, message):
                await self._answer(message, entry)
        elif method == "tools/call" and isinstance(tool, str):
            called = self._server.calling(tool, sent)
            try:
                if not await self._goes_wrong(called, message):
                    await self._answer(message, called)
            finally:
                if called.tools is not None:
                    self._server.offer(called.tools)
        else:
            await self._answer(message)

    async def _goes_wrong(self, entry: ConnectEntry | CallEntry, message: Mapping[str, Any]) -> bool:
        """Do what is scripted to go wrong. Whether that was all; where it was a wait, it is over.

        Raises `Refused`, and `Disconnected` when there is no connection any more.
        """
        match entry.fault:
            case None:
                return False
            case "slow" | "time_out" | "hang":
                if not self._own:
                    await self._wait(entry.seconds if entry.fault == "slow" else None)
                return False
            case "refuse":
                await self._hang_up(Connection.reset)
            case "unauthorized":
                refused = error(message, INVALID_REQUEST, "Unauthorized")
                raise Refused(401, refused, www_authenticate="Bearer")
            case "wrong_protocol":
                await replies.send_whole(self._send, 200, [(b"content-type", b"text/html; charset=utf-8")], _PAGE)
            case "drop":
                await self._send({"type": "http.response.start", "status": 200, "headers": _STREAM})
                await self._write(b": working\n\n")
                await self._hang_up(Connection.close)
            case "malformed":
                await _reply(self._send, 200, result(message, {"content": "no blocks"}, stateless=self._stateless))
            case "error":
                told = failed(entry.failure or "")
                await _reply(self._send, 200, result(message, told, stateless=self._stateless))
        return True

    async def _answer(self, message: Mapping[str, Any], entry: ConnectEntry | CallEntry | None = None) -> None:
        answer = self._server.answer(message, stateless=self._stateless)
        headers: list[tuple[bytes, bytes]] = []
        if "result" in answer:
            if message["method"] == "initialize":
                headers.append((b"mcp-session-id", self._server.open_session().encode()))
            if self._own and entry is not None and entry.fault is not None:
                stall = {STALL: {"takes": entry.takes, "failure": entry.failure}}
                answer["result"]["_meta"] = {**answer["result"].get("_meta", {}), **stall}
        unknown = self._stateless and answer.get("error", {}).get("code") == METHOD_NOT_FOUND
        await _reply(self._send, 404 if unknown else 200, answer, headers)

    async def _wait(self, seconds: float | None) -> None:
        """Keep the client waiting for real seconds, or for ever. Raises `Disconnected` when it leaves meanwhile."""
        waiting = [asyncio.ensure_future(parse.left(self._receive)), asyncio.ensure_future(self._server.ended.wait())]
        try:
            done, _ = await asyncio.wait(waiting, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for waiter in waiting:
                waiter.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)
        if done:
            await self._hang_up(Connection.reset)

    async def _hang_up(self, how: Callable[[Connection], None]) -> None:
        """Be done with the connection. Raises `Disconnected`."""
        connection = self._scope["state"].get("connection")
        if connection is not None:
            how(connection)
            await parse.left(self._receive)
        raise parse.Disconnected

    def _is_stateless(self, message: dict[str, Any], method: Any) -> bool:
        """Whether a message is of the revision without sessions. Raises `Refused` for what it does not allow."""
        version = self._headers.get("mcp-protocol-version")
        if version is None or version in HANDSHAKE:
            return False
        if version != STATELESS:
            data = {"supported": [*HANDSHAKE, STATELESS], "requested": version}
            raise Refused(400, error(message, UNSUPPORTED_VERSION, "Unsupported protocol version", data))
        if "id" not in message:
            return True
        meta = params_of(message).get("_meta")
        if not isinstance(meta, dict) or meta.get(_META) != version:
            wanted = f"`params._meta` must have {_META}, the same as the header MCP-Protocol-Version."
            raise Refused(400, error(message, INVALID_PARAMS, wanted))
        if self._headers.get("mcp-method") != method:
            raise Refused(400, error(message, HEADER_MISMATCH, "The header Mcp-Method must be the message's method."))
        return True

    def _session(self) -> str:
        """The session a request is of. Raises `Refused` where it has none, or one that is not open."""
        session = self._headers.get("mcp-session-id")
        if session is None:
            raise Refused(400, error(None, INVALID_REQUEST, "`Mcp-Session-Id` is missing; initialize gives it."))
        if not self._server.knows(session):
            raise Refused(404, error(None, INVALID_REQUEST, "This session is not open; initialize opens one."))
        return session

    async def _listen(self) -> None:
        """Tell of every change of the tools until the client leaves, or the server ends."""
        if not _takes(self._headers.get("accept", ""), "text/event-stream"):
            raise Refused(406, error(None, INVALID_REQUEST, "`Accept` must have text/event-stream."))
        self._session()
        changed = self._server.listen()
        leaver = asyncio.ensure_future(parse.left(self._receive))
        try:
            await self._send({"type": "http.response.start", "status": 200, "headers": _STREAM})
            # Something at once: the head goes out with it.
            await self._write(b": listening\n\n")
            while not self._server.ended.is_set() and not leaver.done():
                waiter = asyncio.ensure_future(changed.wait())
                await asyncio.wait((waiter, leaver), return_when=asyncio.FIRST_COMPLETED)
                waiter.cancel()
                if changed.is_set() and not self._server.ended.is_set():
                    changed.clear()
                    await self._write(b"event: message\ndata: " + render.encode(TOOLS_CHANGED) + b"\n\n")
            await self._send({"type": "http.response.body", "body": b""})
        finally:
            self._server.unlisten(changed)
            leaver.cancel()
            await asyncio.gather(leaver, return_exceptions=True)

    async def _write(self, chunk: bytes) -> None:
        await self._send({"type": "http.response.body", "body": chunk, "more_body": True})


def _text(value: bytes) -> str:
    """The value of a header. HTTP knows no encoding; clients that go beyond ASCII mostly mean UTF-8."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


def _takes(accepted: str, wanted: str) -> bool:
    """Whether an Accept header lets a type through."""
    ranges = {part.partition(";")[0].strip().lower() for part in accepted.split(",")}
    return bool({wanted, f"{wanted.partition('/')[0]}/*", "*/*"} & ranges)


async def _reply(send: Send, status: int, answer: Any, headers: Sequence[tuple[bytes, bytes]] = ()) -> None:
    """Send an answer, or a status alone."""
    if answer is None:
        await replies.send_whole(send, status, headers, b"")
    else:
        await replies.send_whole(send, status, [_JSON, *headers], render.encode(answer))
