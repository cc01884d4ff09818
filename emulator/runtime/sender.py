"""The sender: one HTTP request for each attempt at a delivery, and what became of it.

Law: an address gets what it is sent and nothing else: no proxies, no redirects, no cookies. What it answers
is a status; its body is not kept. Nothing logs an address: its query may have a secret in it. HTTP is imported
when the first delivery goes out.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from emulator.redaction import scrub

if TYPE_CHECKING:
    from collections.abc import Mapping

# As much of an answer as is read, so that its connection can be used again.
_READ: Final = 65_536
# Connections kept open, and for how long: shorter than servers usually keep theirs.
_KEPT: Final = 16
_KEPT_SECONDS: Final = 2.0
# Characters of an error that are told: it may repeat what was answered.
_TOLD: Final = 200


class Sender:
    """The connections of one emulator, opened when first needed. Close it."""

    def __init__(self) -> None:
        # By whether they speak TLS: its context takes 40 ms, and http has no use for one.
        self._transports: dict[bool, Any] = {}

    async def send(
        self, url: str, headers: Mapping[str, str], body: bytes, seconds: float
    ) -> tuple[int | None, str | None]:
        """POST `body`. Gives the status, or `None` and why there is none within real `seconds`."""
        import httpx2

        try:
            request = httpx2.Request("POST", url, headers=headers, content=body)
            transport = self._transport(secure=request.url.scheme == "https")
            async with asyncio.timeout(seconds):
                response = await transport.handle_async_request(request)
                try:
                    read = 0
                    async for part in response.aiter_raw():
                        read += len(part)
                        if read > _READ:
                            break
                finally:
                    await response.aclose()
                status: int = response.status_code
                return status, None
        except TimeoutError:
            return None, f"no answer within {seconds:g}s"
        except Exception as error:
            # Whatever it was, the delivery has not arrived.
            return None, scrub(str(error))[:_TOLD] or type(error).__name__

    async def close(self) -> None:
        """Close every connection."""
        transports, self._transports = self._transports, {}
        for transport in transports.values():
            await transport.aclose()

    def _transport(self, *, secure: bool) -> Any:
        transport = self._transports.get(secure)
        if transport is None:
            import httpx2

            limits = httpx2.Limits(
                max_connections=None, max_keepalive_connections=_KEPT, keepalive_expiry=_KEPT_SECONDS
            )
            # Not a client: that logs the address of every request.
            transport = httpx2.AsyncHTTPTransport(verify=secure, trust_env=False, limits=limits)
            self._transports[secure] = transport
        return transport
