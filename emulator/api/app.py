"""The ASGI application of /v1: one request from its first byte to its last.

Law: built once per process and immutable. The deployment a request is for is in the scope's state,
put there by whoever owns the socket it came in on.
"""

from __future__ import annotations

import asyncio
import logging
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from emulator import render
from emulator.api import gates, parse, witness
from emulator.api.call import Call, Download, Stream
from emulator.api.operations import OPERATIONS
from emulator.api.routes import Routes
from emulator.clock import stopwatch
from emulator.redaction import WITHHELD, names_a_secret, scrub
from emulator.refusals import INTERNAL_MESSAGE, Refusal, reset_meanwhile
from emulator.runtime.journal import Entry
from emulator.runtime.playback import Written

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from emulator.api.operations import Operation
    from emulator.domain import idempotency
    from emulator.runtime.deployment import Deployment
    from emulator.runtime.feed import Reader

LOG: Final = logging.getLogger("emulator")

Headers = list[tuple[bytes, bytes]]

_JSON: Final = (b"content-type", b"application/json")
LINK: Final = (b"link", b'</v1/openapi.json>; rel="service-desc"')
_EVENTS: Final = (b"content-type", b"text/event-stream; charset=utf-8")
_NO_CACHE: Final = (b"cache-control", b"no-cache")


class Holder(Protocol):
    """Whoever owns the socket: its present deployment changes when it is reset."""

    deployment: Deployment


class Api:
    """Serves /v1 for whatever deployment the scope's state holds."""

    def __init__(self) -> None:
        self._routes = Routes(OPERATIONS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = stopwatch()
        holder: Holder = scope["state"]["emulator"]
        deployment = holder.deployment
        world = deployment.world
        request_id = world.ids.request()
        headers: Headers = [(b"x-request-id", request_id.encode()), LINK]
        entry = Entry(scope["method"], scrub(scope["path"]), {}, 0, request_id, world.now())
        operation: Operation | None = None
        call: Call | None = None
        key: idempotency.Scope | None = None
        write: int | None = None
        explored: int | None = None
        try:
            operation, values = self._routes.find(scope["method"], scope["raw_path"])
            call = Call(deployment, request_id, values, {}, dict(scope["headers"]))
            try:
                headers += gates.check_token(operation, call)
            except gates.Limited as limited:
                headers += limited.budget
                raise
            gates.check_scope(operation, call)
            key, answer = gates.claim_key(operation, call, scope["raw_path"])
            if answer is not None:
                key = None
                call.outcome = answer
                if deployment.watcher is not None:
                    await gates.compare_body(operation, call, receive)
                await _send(send, entry, headers, answer.status, answer.body)
                return
            if scope["query_string"]:
                call.query = parse.read_query(scope["query_string"], operation.query)
                entry.query = {name: _shown(value) for name, value in call.query.items()}
            if operation.writes:
                await gates.read_body(operation, call, receive)
            if deployment.exploring is not None and call.maybe_token is not None:
                explored = await deployment.exploring.before(
                    call.organization, scope["method"], scope["path"], call.sent, stream=operation.stream
                )
            if operation.writes:
                if holder.deployment is not deployment:
                    raise reset_meanwhile()
                write = deployment.deliveries.begin(call.token.organization)
            call.outcome = reply = await operation.handler(call)
            if isinstance(reply, Stream):
                # Noted as it opens: it may stay open for as long as the emulator runs.
                entry.status = 200
                _note(deployment, entry, operation, call)
                await _stream(receive, send, deployment, headers, reply.reader)
                return
            if isinstance(reply, Download):
                await _download(send, entry, headers, reply)
                return
            status = reply.status or operation.status
            content = reply.content if deployment.exploring is None else deployment.exploring.answer(reply.content)
            body = render.encode(content)
            if write is not None:
                await deployment.deliveries.overtake(call.token.organization, write)
            if key is not None:
                world.keys.finish(key, status, body, world.now())
                key = None
            await _send(send, entry, headers + reply.headers, status, body)
        except Refusal as refused:
            if call is not None:
                call.outcome = refused
            await _refuse(send, entry, headers, refused, deployment)
        except parse.Disconnected:
            pass
        except Exception as error:
            log_fault("request", request_id, error)
            await _refuse(send, entry, headers, Refusal("internal_error", INTERNAL_MESSAGE), deployment)
        finally:
            if explored is not None and deployment.exploring is not None:
                deployment.exploring.after(explored)
            if key is not None:
                world.keys.finish(key, 0, b"", world.now())
            if write is not None and call is not None:
                # What the call caused is told of from here on: its client has the reply.
                deployment.deliveries.end(call.token.organization, write)
            if deployment.write_check is not None and entry.status and scope["method"] not in ("GET", "HEAD"):
                deployment.write_check.wrote(_written(scope["method"], scope["path"], entry, call))
            entry.duration_ms = round((stopwatch() - started) * 1000, 3)
            if operation is None or not operation.stream or entry.status != 200:
                # After the answer has gone out: the client need not wait for it.
                _note(deployment, entry, operation, call)


def _written(verb: str, path: str, entry: Entry, call: Call | None) -> Written:
    """A write, for whoever holds it against a recording."""
    sent = None if call is None else call.sent
    key = None if call is None else call.headers.get(b"idempotency-key")
    return Written(
        verb,
        path,
        {} if call is None else call.path,
        None if isinstance(sent, bytes) else sent,
        entry.status,
        None if call is None else getattr(call.outcome, "content", None),
        None if key is None else key.decode("latin-1"),
        entry.request_id,
        None if call is None or call.maybe_token is None else call.organization,
    )


def _shown(value: Any) -> str:
    """A query parameter as the journal keeps it."""
    if isinstance(value, tuple):
        key, label = value
        return f"{scrub(key)}:{WITHHELD if names_a_secret(key) else scrub(label)}"
    return scrub(str(value))


def _note(deployment: Deployment, entry: Entry, operation: Operation | None, call: Call | None) -> None:
    """Put a request that was answered into the journal."""
    if call is not None and operation is not None:
        if call.maybe_token is not None:
            entry.token_id = call.maybe_token.id
        entry.body = gates.kept_body(operation, call)
        if deployment.watcher is not None:
            witness.note(deployment.watcher, entry, operation, call)
    if entry.status:
        deployment.journal.add(entry, deployment.world.settings.journal_limit)


async def _send(send: Send, entry: Entry, headers: Headers, status: int, body: bytes) -> None:
    entry.status = status
    length = (b"content-length", b"%d" % len(body))
    await send({"type": "http.response.start", "status": status, "headers": [_JSON, length, *headers]})
    await send({"type": "http.response.body", "body": body})


async def _download(send: Send, entry: Entry, headers: Headers, reply: Download) -> None:
    """Send bytes a piece at a time: no second copy of the whole is ever held."""
    entry.status = 200
    own = [(b"content-type", reply.content_type.encode("latin-1")), (b"content-length", b"%d" % reply.size)]
    await send({"type": "http.response.start", "status": 200, "headers": [*own, *reply.headers, *headers]})
    for chunk in reply.chunks:
        await send({"type": "http.response.body", "body": chunk, "more_body": True})
        # Others are served in between, however fast this client reads.
        await asyncio.sleep(0)
    await send({"type": "http.response.body", "body": b""})


async def _refuse(send: Send, entry: Entry, headers: Headers, refused: Refusal, deployment: Deployment) -> None:
    entry.code, entry.message = refused.code, scrub(refused.message)
    content = render.refusal(refused, entry.request_id)
    body = render.encode(content if deployment.exploring is None else deployment.exploring.answer(content))
    await _send(send, entry, headers + render.refusal_headers(refused), refused.status, body)


async def _stream(receive: Receive, send: Send, deployment: Deployment, headers: Headers, reader: Reader) -> None:
    """Send an event stream until it ends, its client leaves, or it falls too far behind."""

    async def write() -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [_EVENTS, _NO_CACHE, *headers]})
        chunks = reader.chunks()
        async for chunk in chunks if deployment.exploring is None else deployment.exploring.stream(reader, chunks):
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    async def gone() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    writer = asyncio.ensure_future(write())
    leaver = asyncio.ensure_future(gone())
    tasks: set[asyncio.Future[Any]] = {writer, leaver}
    try:
        # A reader that overran is left without an end: the server then closes its connection.
        await asyncio.wait((*tasks, reader.overrun), return_when=asyncio.FIRST_COMPLETED)
    finally:
        deployment.feed.close(reader)
        if deployment.watcher is not None:
            deployment.watcher.closed(reader)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def log_fault(what: str, request_id: str, error: Exception) -> None:
    """Log a fault of ours by its place, never by its values."""
    frames = traceback.extract_tb(error.__traceback__)
    places = " < ".join(f"{Path(frame.filename).name}:{frame.lineno} {frame.name}" for frame in reversed(frames[-6:]))
    LOG.error("internal error in %s %s: %s at %s", what, request_id, type(error).__name__, places)
