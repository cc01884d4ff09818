"""Listening: what the HTTP servers of this package have in common about their connections."""

from __future__ import annotations

import asyncio
import socket
import struct
import sys
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from uvicorn.server import ServerState

# Linux's SIOCOUTQNSD.
_UNSENT = 0x894B
# How long answers under way have to end, and then those that were cancelled, in seconds.
_SECONDS = 0.2


class _Transport(Protocol):
    """What is asked of the transport of a connection."""

    def get_extra_info(self, name: str, default: Any = None) -> Any: ...
    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None: ...
    def is_closing(self) -> bool: ...
    def close(self) -> None: ...
    def abort(self) -> None: ...


class Connection:
    """The connection a request came in on, for what no HTTP reply can do to it.

    An application finds it as `scope["state"]["connection"]`; it is not there where there is no socket. Once
    it was ended, `receive` gives `http.disconnect`.
    """

    def __init__(self, transport: _Transport) -> None:
        self._transport = transport

    def close(self) -> None:
        """End it properly, after everything that was sent: the client reads to an end."""
        self._transport.close()

    def reset(self) -> None:
        """Break it off (RST): reading fails at the client once it has read what it was sent.

        What waits to be sent is dropped; after `send_at_once` nothing waits once another `send` has returned and
        `unsent` is 0.
        """
        if self._transport.is_closing():
            # The client was quicker.
            return
        file = self._transport.get_extra_info("socket")
        file.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._transport.abort()

    @property
    def unsent(self) -> int:
        """How many bytes the system holds for a client that reads slowly; 0 where it does not tell."""
        if sys.platform != "linux":
            return 0
        import fcntl

        if self._transport.is_closing():
            return 0
        file = self._transport.get_extra_info("socket")
        (count,) = struct.unpack("i", fcntl.ioctl(file.fileno(), _UNSENT, bytes(4)))
        return int(count)

    def send_at_once(self) -> None:
        """Have each `send` wait from now on until what was sent before it has left."""
        self._transport.set_write_buffer_limits(high=0)


async def hang_up(state: ServerState) -> None:
    """Close every connection, kindly at first; no task is left."""
    for connection in list(state.connections):
        connection.shutdown()
    if state.tasks:
        await asyncio.wait(state.tasks, timeout=_SECONDS)
    for task in list(state.tasks):
        task.cancel()
    for connection in list(state.connections):
        connection.transport.abort()
    if state.tasks:
        await asyncio.wait(state.tasks, timeout=_SECONDS)
