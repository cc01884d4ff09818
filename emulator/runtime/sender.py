"""The sender: one HTTP request for each attempt at a delivery, and what became of it.

Law: an address gets what it is sent and nothing else: no proxies, no redirects, no cookies. What it answers
is a status; its body is not kept. HTTP is imported when the first delivery goes out.
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
    """The HTTP clients of one emulator, made when first needed. Close it."""

    def __init__(self) -> None:
        # By whether they speak TLS: its context takes 40 ms, and http has no use for one.
        self._clients: dict[bool, Any] = {}

    async def send(
        self, url: str, headers: Mapping[str, str], body: bytes, seconds: float
    ) -> tuple[int | None, str | None]:
        """POST `body`. Gives the status, or `None` and why there is none within real `seconds`."""
        import httpx2

        try:
            request = httpx2.Request("POST", url, headers=headers, content=body)
            client = self._client(secure=request.url.scheme == "https")
            async with asyncio.timeout(seconds):
                response = await client.send(request, stream=True)
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
        clients, self._clients = self._clients, {}
        for client in clients.values():
            await client.aclose()

    def _client(self, *, secure: bool) -> Any:
        client = self._clients.get(secure)
        if client is None:
            import httpx2

            limits = httpx2.Limits(
                max_connections=None, max_keepalive_connections=_KEPT, keepalive_expiry=_KEPT_SECONDS
            )
            client = self._clients[secure] = httpx2.AsyncClient(
                verify=secure, trust_env=False, follow_redirects=False, timeout=None, limits=limits
            )
        return client
