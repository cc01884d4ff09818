"""A server that is a process: started, spoken to over its standard streams, and ended with all it started.

Law: it ends in well under a second whatever it does: its input is closed, then its process group is asked to end,
then it is killed. What it started goes with it, also when it ends by itself. Of the environment it has the few
variables every program needs and those it was given; what it writes to its standard error goes nowhere.

The SDK's own transport leaves what a server started behind when the server ends by itself, does not tell why it
ended, and takes four seconds to end one that does not listen.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, SubprocessStreamProtocol
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

import anyio
from mcp.client.stdio import get_default_environment
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from emulator.domain.outages import NOT_MCP
from emulator.runtime.noticed import NO_START, ended

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence

    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

    from emulator.redaction import Secret
    from emulator.runtime.noticed import Noticed

# Bytes of one message.
_LARGEST: Final = 32 * 1024 * 1024
# Real seconds each way of ending a process is given before the next.
_GRACE: Final = 0.2


class _Pipes(SubprocessStreamProtocol):
    """The streams of a process, and its end."""

    def __init__(self, noticed: Noticed, strays: Callable[[], None]) -> None:
        loop = asyncio.get_running_loop()
        super().__init__(limit=_LARGEST, loop=loop)
        self.exited: asyncio.Future[None] = loop.create_future()
        self._noticed = noticed
        self._strays = strays
        self._ending = False
        # An `asyncio.SubprocessTransport`, or uvloop's, which is of another class.
        self.process: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.process = transport
        super().connection_made(transport)

    def process_exited(self) -> None:
        super().process_exited()
        if not self._ending:
            self._noticed.reason = ended(self.process.get_returncode())
        # What it started would keep its output open.
        self.kill(hard=True)
        self._strays()
        if not self.exited.done():
            self.exited.set_result(None)

    def kill(self, *, hard: bool) -> None:
        """Ask the process and all it started to end, or end them."""
        # Its group has its number: it was started as the first of a session.
        with suppress(ProcessLookupError, PermissionError):
            if sys.platform == "win32":
                self.process.kill()
            else:
                os.killpg(self.process.get_pid(), signal.SIGKILL if hard else signal.SIGTERM)

    async def end(self) -> None:
        """End the process and all it started."""
        self._ending = True
        try:
            if self.stdin is not None:
                self.stdin.close()
            for step in (None, False, True):
                if step is not None:
                    self.kill(hard=step)
                await asyncio.wait({self.exited}, timeout=_GRACE)
                if self.exited.done():
                    break
        finally:
            if not self.exited.done():
                self.kill(hard=True)
                self._strays()
            self.process.close()


@asynccontextmanager
async def process(
    command: str,
    args: Sequence[str],
    variables: Mapping[str, Secret],
    noticed: Noticed,
    strays: Callable[[], None],
) -> AsyncIterator[Any]:
    """The streams of a server started as `command`, as the SDK's client takes them. Raises `OSError` if it cannot be.

    `variables` are added to its environment. `strays` ends what it started and its process group does not have.
    """
    environment = get_default_environment() | {name: value.reveal() for name, value in variables.items()}
    try:
        _, pipes = await asyncio.get_running_loop().subprocess_exec(
            lambda: _Pipes(noticed, strays),
            command,
            *args,
            stdin=PIPE,
            stdout=PIPE,
            stderr=DEVNULL,
            env=environment,
            start_new_session=True,
        )
    except (OSError, ValueError):
        noticed.reason = NO_START
        raise
    # No await from here to the `try`: one that is cancelled there would leave the process.
    told, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    write, asked = anyio.create_memory_object_stream[SessionMessage](0)
    tasks = {asyncio.create_task(_read(pipes, told, noticed)), asyncio.create_task(_write(pipes, asked, told))}
    try:
        yield read, write
    finally:
        for stream in (told, read, write, asked):
            stream.close()
        for task in tasks:
            task.cancel()
        try:
            await pipes.end()
        finally:
            await asyncio.wait(tasks)


async def _read(pipes: _Pipes, told: MemoryObjectSendStream[SessionMessage | Exception], noticed: Noticed) -> None:
    """Pass on what the process writes, a message a line. What is no message is passed over, as by other clients."""
    assert pipes.stdout is not None
    with told, suppress(anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
        while True:
            try:
                line = await pipes.stdout.readline()
            except ValueError:
                # Longer than any message: what follows would begin in the middle of it.
                noticed.reason = NOT_MCP
                return
            if not line:
                break
            try:
                message = jsonrpc_message_adapter.validate_json(line, by_name=False)
            except ValueError:
                noticed.reason = NOT_MCP
                continue
            noticed.reason = None
            await told.send(SessionMessage(message))
        # How it ended is known a moment after its output is closed.
        await asyncio.wait({pipes.exited}, timeout=_GRACE)


async def _write(
    pipes: _Pipes,
    asked: MemoryObjectReceiveStream[SessionMessage],
    told: MemoryObjectSendStream[SessionMessage | Exception],
) -> None:
    """Pass on what the process is to read."""
    assert pipes.stdin is not None
    try:
        async for sent in asked:
            pipes.stdin.write(sent.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
            await pipes.stdin.drain()
    except (anyio.ClosedResourceError, OSError):
        # It reads no more: nothing that is asked can be answered.
        told.close()
