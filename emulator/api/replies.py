"""Replies: how an answer goes out, and what is kept of it.

Law: a stream and a download are sent piece by piece; nothing of a reply is held twice.
"""

from __future__ import annotations

import asyncio
import logging
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from emulator import render
from emulator.api import gates, parse, witness
from emulator.redaction import WITHHELD, names_a_secret, scrub
from emulator.runtime.playback import Written

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.types import Receive, Scope, Send

    from emulator.api.call import Call, Download
    from emulator.api.faulty import Meeting
    from emulator.api.operations import Operation
    from emulator.refusals import Refusal
    from emulator.runtime.deployment import Deployment
    from emulator.runtime.feed import Reader
    from emulator.runtime.journal import Entry
    from emulator.runtime.playback import WriteCheck

LOG: Final = logging.getLogger("emulator")

Headers = list[tuple[bytes, bytes]]

_JSON: Final = (b"content-type", b"application/json")
LINK: Final = (b"link", b'</v1/openapi.json>; rel="service-desc"')
_EVENTS: Final = (b"content-type", b"text/event-stream; charset=utf-8")
_NO_CACHE: Final = (b"cache-control", b"no-cache")


def check_write(check: WriteCheck, scope: Scope, entry: Entry, call: Call | None, meeting: Meeting | None) -> None:
    """Have a write that was answered held against a recording: once, also where a proxy sent it twice."""
    if meeting is not None and meeting.again:
        return
    sent = None if call is None else call.sent
    key = None if call is None else call.headers.get(b"idempotency-key")
    check.wrote(
        Written(
            scope["method"],
            scope["path"],
            {} if call is None else call.path,
            None if isinstance(sent, bytes) else sent,
            entry.status,
            None if call is None else getattr(call.outcome, "content", None),
            None if key is None else key.decode("latin-1"),
            entry.request_id,
            None if call is None or call.maybe_token is None else call.organization,
        )
    )


def shown(value: Any) -> str:
    """A query parameter as the journal keeps it."""
    if isinstance(value, tuple):
        key, label = value
        return f"{scrub(key)}:{WITHHELD if names_a_secret(key) else scrub(label)}"
    return scrub(str(value))


def note(
    deployment: Deployment, entry: Entry, operation: Operation | None, call: Call | None, meeting: Meeting | None = None
) -> None:
    """Put a request into the journal: one that was answered, or that met a fault."""
    if call is not None and operation is not None:
        if call.maybe_token is not None:
            entry.token_id = call.maybe_token.id
        entry.body = gates.kept_body(operation, call)
        if deployment.watcher is not None and (meeting is None or not meeting.unknown):
            witness.note(deployment.watcher, entry, operation, call, lost=meeting is not None and meeting.lost)
    if entry.status or meeting is not None:
        deployment.journal.add(entry, deployment.world.settings.journal_limit)


async def send_whole(send: Send, status: int, headers: Sequence[tuple[bytes, bytes]], body: bytes) -> None:
    """Send an answer that is all there, with its length."""
    length = (b"content-length", b"%d" % len(body))
    await send({"type": "http.response.start", "status": status, "headers": [*headers, length]})
    await send({"type": "http.response.body", "body": body})


async def send_json(send: Send, entry: Entry, headers: Headers, status: int, body: bytes) -> None:
    entry.status = status
    await send_whole(send, status, [_JSON, *headers], body)


async def download(send: Send, entry: Entry, headers: Headers, reply: Download) -> None:
    """Send bytes a piece at a time: no second copy of the whole is ever held."""
    entry.status = 200
    own = [(b"content-type", reply.content_type.encode("latin-1")), (b"content-length", b"%d" % reply.size)]
    await send({"type": "http.response.start", "status": 200, "headers": [*own, *reply.headers, *headers]})
    for chunk in reply.chunks:
        await send({"type": "http.response.body", "body": chunk, "more_body": True})
        # Others are served in between, however fast this client reads.
        await asyncio.sleep(0)
    await send({"type": "http.response.body", "body": b""})


async def refuse(send: Send, entry: Entry, headers: Headers, refused: Refusal, deployment: Deployment) -> None:
    entry.code, entry.message = refused.code, scrub(refused.message)
    content = render.refusal(refused, entry.request_id)
    body = render.encode(content if deployment.exploring is None else deployment.exploring.answer(content))
    await send_json(send, entry, headers + render.refusal_headers(refused), refused.status, body)


async def stream(
    receive: Receive, send: Send, deployment: Deployment, headers: Headers, reader: Reader, meeting: Meeting | None
) -> None:
    """Send an event stream until it ends, its client leaves, or it falls too far behind."""

    async def write() -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [_EVENTS, _NO_CACHE, *headers]})
        chunks = reader.chunks()
        if deployment.exploring is not None:
            chunks = deployment.exploring.stream(reader, chunks)
        if meeting is not None:
            chunks = meeting.stream(reader, chunks)
        async for chunk in chunks:
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    writer = asyncio.ensure_future(write())
    leaver = asyncio.ensure_future(parse.left(receive))
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
