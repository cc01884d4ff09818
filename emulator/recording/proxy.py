"""The proxy: passes requests on to the upstream and answers back, and tells the recorder of both.

Law: a chunk goes on as soon as it is there, before anything is kept of it. Either side leaving ends the
other. Only /v1 is recorded; everything else is passed on unseen.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import TYPE_CHECKING, Any, Final

from emulator.ids import Ids
from emulator.recording.upstream import Decoder, Frames, Kept, passed_on, why

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine

    from starlette.types import Receive, Scope, Send

    from emulator.recording.recorder import Exchange, Recorder
    from emulator.recording.upstream import Headers, Upstream
    from emulator.recording.watch import Watch

# More than the API takes of any body, and than a recording needs of any answer.
_SENT: Final = 20 * 1024 * 1024
_ANSWERED: Final = 16 * 1024 * 1024
_DELETE: Final = "/v1/sessions/{session_id}"


class _Gone(Exception):
    """The client has left."""


class Proxy:
    """An ASGI application between a client and an upstream."""

    def __init__(self, upstream: Upstream, recorder: Recorder, watch: Watch) -> None:
        self._upstream = upstream
        self._recorder = recorder
        self._watch = watch
        self._ids = Ids(0)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # Whoever of the two is left sees the connection end without the answer's end.
        with contextlib.suppress(_Gone, self._upstream.unreachable):
            await self._pass(scope, receive, send)

    async def _pass(self, scope: Scope, receive: Receive, send: Send) -> None:
        raw_path: bytes = scope["raw_path"]
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        recorded = raw_path == b"/v1" or raw_path.startswith(b"/v1/")
        exchange: Exchange | None = None
        authorization = headers.get("authorization", "")
        if recorded:
            query = scope["query_string"].decode("latin-1")
            exchange = self._recorder.begin(scope["method"], raw_path.decode("latin-1"), query, headers)
            if authorization:
                await self._watch.follow(authorization)
            if scope["method"] == "DELETE" and exchange.names(_DELETE) and exchange.session_id:
                # Once it is deleted there is nothing left to read of it.
                await self._watch.catch_up(exchange.session_id)
        kept = Kept(headers.get("content-encoding", ""), _SENT)

        def whole() -> None:
            # Told of before the upstream has all of it: nothing it causes is seen before its secrets are known.
            if exchange is not None:
                self._tell(self._recorder.sent, exchange, kept.body(), kept.size)

        body = _Body(receive, kept, whole)
        has_body = "content-length" in headers or "transfer-encoding" in headers
        path = raw_path + (b"?" + scope["query_string"] if scope["query_string"] else b"")
        sent = passed_on(scope["headers"], request=True)
        content = body.chunks() if has_body else None
        if not has_body:
            body.finished.set()
        try:
            response = await self._sent(body, self._upstream.send(scope["method"], path, sent, content))
        except _Gone:
            if exchange is not None:
                self._tell(self._recorder.answered, exchange, 0, {}, None, 0, cut=True)
            raise
        except self._upstream.unreachable as error:
            # What the client wanted is kept all the same.
            async for _ in body.chunks():
                pass
            await self._unreachable(send, exchange, error)
            return
        try:
            await self._answer(body, send, exchange, response, authorization)
        finally:
            await response.aclose()

    async def _sent(self, body: _Body, request: Coroutine[Any, Any, Any]) -> Any:
        """The response to a request. Raises `_Gone` when the client leaves before there is one."""
        sending, leaver = asyncio.ensure_future(request), asyncio.ensure_future(body.left())
        try:
            await asyncio.wait((sending, leaver), return_when=asyncio.FIRST_COMPLETED)
            if not sending.done():
                raise _Gone
            return sending.result()
        finally:
            for task in (sending, leaver):
                task.cancel()
            await asyncio.gather(sending, leaver, return_exceptions=True)

    async def _answer(
        self, body: _Body, send: Send, exchange: Exchange | None, response: Any, authorization: str
    ) -> None:
        """Pass an answer back, until it ends or the client leaves."""
        writer = asyncio.ensure_future(self._write(send, exchange, response, authorization))
        leaver = asyncio.ensure_future(body.left())
        try:
            await asyncio.wait((writer, leaver), return_when=asyncio.FIRST_COMPLETED)
            if writer.done():
                writer.result()
        finally:
            for task in (writer, leaver):
                task.cancel()
            await asyncio.gather(writer, leaver, return_exceptions=True)

    async def _write(self, send: Send, exchange: Exchange | None, response: Any, authorization: str) -> None:
        headers: Headers = passed_on(response.headers.raw, request=False)
        coding = response.headers.get("content-encoding", "")
        stream = response.headers.get("content-type", "").startswith("text/event-stream")
        answer = dict(response.headers.items())
        if exchange is not None and stream:
            self._tell(self._recorder.answered, exchange, response.status_code, answer, b"", 0, stream=True)
        await send({"type": "http.response.start", "status": response.status_code, "headers": headers})
        kept, frames, decoder = Kept(coding, _ANSWERED), Frames(), Decoder(coding)
        whole = False
        try:
            async for chunk in response.aiter_raw():
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
                if exchange is None:
                    continue
                if not stream:
                    kept.add(chunk)
                elif not self._watch.live(authorization):
                    for event in frames.feed(decoder.feed(chunk)):
                        self._tell(self._recorder.frame, event)
            whole = True
        finally:
            if exchange is not None and not stream:
                more = {} if whole else {"cut": True}
                body = kept.body() if whole else None
                self._tell(self._recorder.answered, exchange, response.status_code, answer, body, kept.size, **more)
        await send({"type": "http.response.body", "body": b""})

    def _tell(self, what: Callable[..., None], *facts: Any, **more: Any) -> None:
        """Tell the recorder. What it cannot keep is missed by the recording, and by nobody else."""
        try:
            what(*facts, **more)
        except Exception as error:
            self._recorder.incomplete("an exchange or an event", f"it could not be kept ({type(error).__name__})")

    async def _unreachable(self, send: Send, exchange: Exchange | None, error: Exception) -> None:
        request_id = self._ids.request()
        message = f"The recorder cannot reach its upstream, {self._upstream.shown}: {why(error)}."
        refused = {"error": {"code": "provider_error", "message": message, "request_id": request_id}}
        body = json.dumps(refused).encode()
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(body)),
            (b"x-request-id", request_id.encode()),
            (b"retry-after", b"1"),
        ]
        if exchange is not None:
            self._tell(self._recorder.answered, exchange, 502, {}, body, len(body), unreachable=True)
            lack = ("answers of the upstream", f"it cannot be reached: {why(error)}")
            if lack not in self._recorder.missing:
                self._recorder.missing.append(lack)
        await send({"type": "http.response.start", "status": 502, "headers": headers})
        await send({"type": "http.response.body", "body": body})


class _Body:
    """What a client sends, read once and piece by piece; and whether it has left."""

    def __init__(self, receive: Receive, kept: Kept, whole: Callable[[], None]) -> None:
        self._told = whole
        self._receive = receive
        self._kept = kept
        self._gone = False
        # Nothing more comes of the body; who goes on listening hears only that the client leaves.
        self.finished = asyncio.Event()

    async def chunks(self) -> AsyncIterator[bytes]:
        """The pieces that are left. Raises `_Gone` when the client leaves before the last."""
        more = not self.finished.is_set()
        while more:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                self._gone = True
                self.finished.set()
                raise _Gone
            chunk, more = message.get("body", b""), message.get("more_body", False)
            self._kept.add(chunk)
            if not more:
                self._told()
            if chunk:
                yield chunk
        self.finished.set()

    async def left(self) -> None:
        """Return when the client has left."""
        await self.finished.wait()
        while not self._gone:
            self._gone = (await self._receive())["type"] == "http.disconnect"
