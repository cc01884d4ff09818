"""Upstream: the server behind the recorder, as requests are sent to it.

Law: what is sent is what was received, but for the headers of one connection. Nothing is followed,
retried, cached or sent along of its own.
"""

from __future__ import annotations

import json
import logging
import ssl
import zlib
from typing import TYPE_CHECKING, Any, Final

from emulator.redaction import address

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

# What belongs to one connection, and what is made anew for the next (RFC 9110 §7.6.1).
_HOP: Final = frozenset(
    (
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
        b"host",
    )
)
_CONNECT_SECONDS: Final = 10.0
_TELLTALES: Final = (
    "httpx2",
    "httpcore2.connection",
    "httpcore2.http11",
    "httpcore2.http2",
    "httpcore2.proxy",
    "httpcore2.socks",
)
_READABLE: Final = ("gzip", "deflate")

Headers = list[tuple[bytes, bytes]]


class Upstream:
    """The server at `url`. Made on the loop it is used on."""

    def __init__(self, url: str) -> None:
        # Imported here: only a recorder needs an HTTP client.
        import httpx2

        for name in _TELLTALES:
            # At their lowest level they tell of every header.
            logging.getLogger(name).setLevel(logging.WARNING)
        self._httpx = httpx2
        self.url = httpx2.URL(url)
        self.shown = address(url)
        self.unreachable = httpx2.TransportError
        self._base = self.url.raw_path.rstrip(b"/")
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=20, keepalive_expiry=5)
        # A TLS context takes 40 ms, which http:// has no use for; what is https is always verified.
        self._transport = httpx2.AsyncHTTPTransport(verify=self.url.scheme == "https", limits=limits)

    async def send(
        self, verb: str, raw_path: bytes, headers: Headers, content: AsyncIterator[bytes] | bytes | None
    ) -> Any:
        """Send a request and give the response, its body unread. Raises `unreachable`."""
        url = self.url.copy_with(raw_path=self._base + raw_path)
        request = self._httpx.Request(verb, url, headers=headers, content=content)
        request.extensions = {
            "timeout": {"connect": _CONNECT_SECONDS, "read": None, "write": None, "pool": None},
        }
        return await self._transport.handle_async_request(request)

    async def get(self, path: str, authorization: str, ceiling: int) -> tuple[int, bytes | None, int]:
        """Read something for the recorder itself: status, body (`None` past the ceiling) and its size."""
        headers = [(b"authorization", authorization.encode("latin-1")), (b"accept", b"*/*")]
        response = await self.send("GET", path.encode("latin-1"), headers, None)
        kept = Kept(response.headers.get("content-encoding", ""), ceiling)
        try:
            async for chunk in response.aiter_raw():
                kept.add(chunk)
        finally:
            await response.aclose()
        return response.status_code, kept.body(), kept.size

    async def close(self) -> None:
        await self._transport.aclose()


def why(error: BaseException) -> str:
    """Why an upstream cannot be reached, in the words of the system: nothing of a request is in them."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"its certificate is not trusted ({cause.verify_message})"
        if isinstance(cause, ssl.SSLError):
            return f"TLS failed ({cause.reason})"
        if isinstance(cause, OSError) and cause.strerror:
            return cause.strerror
        cause = cause.__cause__ or cause.__context__
    return type(error).__name__


def passed_on(headers: Sequence[tuple[bytes, bytes]], *, request: bool) -> Headers:
    """The headers that go on to the other side."""
    named = {
        name.strip().lower() for key, value in headers if key.lower() == b"connection" for name in value.split(b",")
    }
    kept: Headers = []
    for name, value in headers:
        lower = name.lower()
        if lower in _HOP or lower in named:
            continue
        if request and lower == b"accept-encoding":
            # Of the codings the client takes, those that can be read here.
            offered = [part.split(b";")[0].strip().lower().decode("latin-1") for part in value.split(b",")]
            value = ", ".join(coding for coding in _READABLE if coding in offered or "*" in offered).encode()
            value = value or b"identity"
        kept.append((name, value))
    return kept


class Decoder:
    """Undoes a content coding, piece by piece. One it does not know is left as it is."""

    def __init__(self, coding: str) -> None:
        self._inflate = zlib.decompressobj(47) if coding.strip().lower() in _READABLE else None

    def feed(self, chunk: bytes) -> bytes:
        """What a chunk holds."""
        if self._inflate is None:
            return chunk
        try:
            return self._inflate.decompress(chunk)
        except zlib.error:
            return b""


class Kept:
    """The body of a message as it goes by: one copy of it up to a ceiling, its size beyond."""

    def __init__(self, coding: str, ceiling: int) -> None:
        self._decoder = Decoder(coding)
        self._ceiling = ceiling
        self._parts: list[bytes] | None = []
        self.size = 0

    def add(self, chunk: bytes) -> None:
        """Keep a chunk."""
        data = self._decoder.feed(chunk)
        self.size += len(data)
        if self._parts is not None:
            if self.size > self._ceiling:
                self._parts = None
            else:
                self._parts.append(data)

    def body(self) -> bytes | None:
        """All of it; `None` past the ceiling."""
        return None if self._parts is None else b"".join(self._parts)


class Frames:
    """The events of a stream, taken from its bytes as they come."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, chunk: bytes) -> list[dict[str, Any]]:
        """The events that a chunk completes."""
        *whole, self._rest = (self._rest + chunk).replace(b"\r\n", b"\n").split(b"\n\n")
        found = []
        for frame in whole:
            lines = [line[5:].removeprefix(b" ") for line in frame.split(b"\n") if line.startswith(b"data:")]
            try:
                event = json.loads(b"\n".join(lines)) if lines else None
            except (ValueError, RecursionError):
                continue
            if isinstance(event, dict):
                found.append(event)
        return found
