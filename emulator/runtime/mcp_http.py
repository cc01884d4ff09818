"""A server at an address: streamable HTTP, with the credential and the headers of its tool entry.

Law: the credential goes to that address and nowhere else: no proxy, no redirect to another place. Certificates
are verified. What goes wrong with one request ends that request and not the connection.
"""

from __future__ import annotations

import asyncio
import ssl
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

import httpcore2  # noqa: F401 - httpx2 imports it at its first use, and it logs what it does from then on
import httpx2
from mcp.client.streamable_http import streamable_http_client

from emulator import __version__
from emulator.domain.outages import ANSWERED, FETCH_FAILED, LOST, NOT_MCP

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from emulator.redaction import Secret
    from emulator.runtime.noticed import Noticed

# Bytes of one answer, or of one event of a stream.
_LARGEST: Final = 32 * 1024 * 1024
# Real seconds a server has to take note that a connection ends.
_GOODBYE: Final = 0.3
_STREAM: Final = "text/event-stream"
_KINDS: Final = ("application/json", _STREAM)


@asynccontextmanager
async def http(
    url: str, authorization: Secret | None, headers: Mapping[str, Secret], noticed: Noticed
) -> AsyncIterator[Any]:
    """The streams of a server at `url`, as the SDK's client takes them. Raises `ValueError` for what HTTP cannot say.

    `authorization` is sent as it is, as the Authorization header, also where `headers` or the url have one.
    """
    noticed.reason = FETCH_FAILED
    sent = httpx2.Headers({"user-agent": f"gobare-emulator/{__version__}"})
    sent.update([(name.encode(), value.reveal().encode()) for name, value in headers.items()])
    if authorization is not None:
        sent.update([(b"authorization", authorization.reveal().encode())])
    client = httpx2.AsyncClient(
        headers=sent,
        # A user in the url is sent as its credential, unless there is another.
        auth=None if authorization is None else _as_it_is,
        timeout=None,
        trust_env=False,
        transport=_Watched(httpx2.URL(url), noticed),
    )
    noticed.reason = None
    async with client, streamable_http_client(url, http_client=client, max_sse_event_size=_LARGEST) as streams:
        yield streams


def _as_it_is(request: httpx2.Request) -> httpx2.Request:
    return request


class _Watched(httpx2.AsyncBaseTransport):
    """The connections to one server. One that fails is a refusal: an error would end all that go on beside it."""

    def __init__(self, url: httpx2.URL, noticed: Noticed) -> None:
        # The authorities take 40 ms to read, which http:// has no use for. There, none is trusted.
        verify = True if url.scheme == "https" else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._transport = httpx2.AsyncHTTPTransport(verify=verify)
        self._noticed = noticed

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        try:
            async with asyncio.timeout(_GOODBYE if request.method == "DELETE" else None):
                response = await self._transport.handle_async_request(request)
        except (httpx2.TransportError, OSError) as error:
            if request.method == "POST":
                self._noticed.reason = FETCH_FAILED if isinstance(error, httpx2.ConnectError) else LOST
            return httpx2.Response(502)
        if request.method == "POST":
            status, kind = response.status_code, response.headers.get("content-type", "")
            self._noticed.reason = None if status < 300 else ANSWERED.format(status=status)
            if status == 200 and not kind.startswith(_KINDS):
                self._noticed.reason = NOT_MCP
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        ceiling = None if response.headers.get("content-type", "").startswith(_STREAM) else _LARGEST
        response.stream = _Body(response.stream, ceiling, self._noticed)
        return response

    async def aclose(self) -> None:
        await self._transport.aclose()


class _Body(httpx2.AsyncByteStream):
    """The body of an answer. One that is cut off is an error of the kind the SDK knows what to do with."""

    def __init__(self, stream: httpx2.AsyncByteStream, ceiling: int | None, noticed: Noticed) -> None:
        self._stream = stream
        self._ceiling = ceiling
        self._noticed = noticed

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        try:
            async for part in self._stream:
                size += len(part)
                if self._ceiling is not None and size > self._ceiling:
                    raise httpx2.StreamError("the answer is too long")
                yield part
        except httpx2.TransportError:
            self._noticed.reason = LOST
            raise httpx2.StreamError("the answer was cut off") from None

    async def aclose(self) -> None:
        await self._stream.aclose()
