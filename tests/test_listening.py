"""Connections: what an application can do to the one that a request came in on."""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING, cast

import pytest

from emulator.listening import Connection
from emulator.loops import new_loop
from emulator.server import Corked
from tests.support import read_to_end

if TYPE_CHECKING:
    from collections.abc import Callable

LOOPS = {"uvloop or asyncio": new_loop, "asyncio": asyncio.new_event_loop}


async def met_by_a_client(end: Callable[[Connection], None], sends: bytes) -> tuple[bytes, str]:
    """What a client reads of a server that sends something and ends the connection, and how that ends."""
    loop = asyncio.get_running_loop()

    class Server(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            self.corked = Corked(cast("asyncio.Transport", transport), loop)

        def data_received(self, data: bytes) -> None:
            self.connection = Connection(self.corked)
            self.corked.write(sends)
            self.end()

        def end(self) -> None:
            if self.connection.unsent:
                loop.call_soon(self.end)
            else:
                end(self.connection)

    server = await loop.create_server(Server, "127.0.0.1", 0)
    try:
        return await loop.run_in_executor(None, read, server.sockets[0].getsockname())
    finally:
        server.close()
        await asyncio.sleep(0)


def read(address: tuple[str, int]) -> tuple[bytes, str]:
    with socket.create_connection(address, timeout=5) as client:
        client.sendall(b"x")
        return read_to_end(client)


@pytest.mark.parametrize("loop", LOOPS.values(), ids=LOOPS)
@pytest.mark.parametrize("sends", [b"", b"HTTP/1.1 200 OK\r\n"])
@pytest.mark.parametrize(("end", "seen"), [(Connection.reset, "reset"), (Connection.close, "closed")])
def test_a_connection_is_closed_or_broken_off_after_what_was_sent(
    loop: Callable[[], asyncio.AbstractEventLoop], sends: bytes, end: Callable[[Connection], None], seen: str
) -> None:
    with asyncio.Runner(loop_factory=loop) as runner:
        assert runner.run(met_by_a_client(end, sends)) == (sends, seen)
