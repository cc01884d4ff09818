"""Every exchange of the test process, noted as it passes the applications.

The applications themselves are wrapped, so that it makes no difference how a request comes in. What is
noted is looked at later, by whoever drains it: nothing is held up meanwhile.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from emulator.api.app import Api
from emulator.control import routes
from emulator.control.routes import Control

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.types import Message, Receive, Scope, Send

# Of a larger body nothing is kept: no JSON is that large but by intent.
CEILING: Final = 4 * 1024 * 1024
SENT_CEILING: Final = 64 * 1024
_STREAM: Final = b"text/event-stream"


@dataclass(slots=True)
class Exchange:
    """One request and its answer. `body` is `None` where it is too large, or not JSON; `frames` are a stream's."""

    control: bool
    verb: str
    raw_path: bytes
    query: bytes
    asked: dict[bytes, bytes]
    sent: bytes | None = b""
    status: int = 0
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    body: bytes | None = b""
    frames: list[bytes] | None = None

    def __str__(self) -> str:
        return f"{self.verb} {self.raw_path.decode('latin-1')} → {self.status}"


class Recorder:
    """What has passed since it was last drained."""

    def __init__(self) -> None:
        self._noted: deque[Exchange | dict[str, Any]] = deque()

    def note(self, passed: Exchange | dict[str, Any]) -> None:
        """Keep an exchange, or the answer of `GET /_emulator/events` to a handle of this process."""
        self._noted.append(passed)

    def drain(self) -> list[Exchange | dict[str, Any]]:
        """Everything noted so far. Frames of a stream that is still open are those it has sent by now."""
        drained = []
        while self._noted:
            drained.append(self._noted.popleft())
        return drained


def install(recorder: Recorder) -> None:
    """Have the applications of this process noted from now on."""
    Api.__call__ = _watched(Api.__call__, recorder, False)  # type: ignore[method-assign, assignment]
    Control.__call__ = _watched(Control.__call__, recorder, True)  # type: ignore[method-assign, assignment]
    routes.dispatch = _watched_dispatch(routes.dispatch, recorder)


def _watched(
    call: Callable[[Any, Scope, Receive, Send], Awaitable[None]], recorder: Recorder, control: bool
) -> Callable[[Any, Scope, Receive, Send], Awaitable[None]]:
    async def watched(app: Any, scope: Scope, receive: Receive, send: Send) -> None:
        seen = Exchange(control, scope["method"], scope["raw_path"], scope["query_string"], dict(scope["headers"]))
        part = b""
        whole = False

        async def take() -> Message:
            message = await receive()
            if message["type"] == "http.request" and seen.sent is not None:
                more = message.get("body", b"")
                seen.sent = seen.sent + more if len(seen.sent) + len(more) <= SENT_CEILING else None
            return message

        async def give(message: Message) -> None:
            nonlocal part, whole
            whole = message["type"] == "http.response.body" and not message.get("more_body", False)
            if message["type"] == "http.response.start":
                seen.status, seen.headers = message["status"], list(message["headers"])
                kind = dict(seen.headers)[b"content-type"]
                if kind != b"application/json":
                    seen.body = None
                if kind.startswith(_STREAM):
                    seen.frames = []
                    recorder.note(seen)
            elif seen.frames is not None:
                *whole, part = (part + message.get("body", b"")).split(b"\n\n")
                seen.frames += whole
            elif seen.body is not None:
                more = message.get("body", b"")
                seen.body = seen.body + more if len(seen.body) + len(more) <= CEILING else None
            await send(message)

        try:
            await call(app, scope, take, give)
        finally:
            if seen.status and seen.frames is None:
                # Of an answer that a fault cut off there is no JSON.
                seen.body = seen.body if whole else None
                recorder.note(seen)

    return watched


def _watched_dispatch(dispatch: Callable[..., Awaitable[Any]], recorder: Recorder) -> Any:
    async def watched(host: Any, verb: str, path: str, body: Any = None) -> Any:
        answer = await dispatch(host, verb, path, body)
        if verb == "GET" and path.partition("?")[0] == "/_emulator/events":
            recorder.note(answer)
        return answer

    return watched
