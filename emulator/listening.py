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
    def get_write_buffer_size(self) -> int: ...
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

        What is `unsent` is dropped.
        """
        if self._transport.is_closing():
            # The client was quicker.
            return
        file = self._transport.get_extra_info("socket")
        file.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._transport.abort()

    @property
    def unsent(self) -> int:
        """How many bytes wait to be sent; without those that the system holds, where it does not tell (Linux does)."""
        waiting = self._transport.get_write_buffer_size()
        if waiting or sys.platform != "linux" or self._transport.is_closing():
            return waiting
        import fcntl

        file = self._transport.get_extra_info("socket")
        (count,) = struct.unpack("i", fcntl.ioctl(file.fileno(), _UNSENT, bytes(4)))
        return int(count)


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
