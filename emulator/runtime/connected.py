"""Real connections to MCP servers, by `url` or by `command`.

Law: a connection is held by a task of its own, which ends it and all that belongs to it; whoever uses it only
waits. A turn that is cancelled leaves its call, and the connection goes on. `mcp` is imported when the first
connection is made.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import sys
from collections.abc import Mapping
from contextvars import Context
from typing import TYPE_CHECKING, Any, Final, TypeVar

from emulator.domain.outages import CALL_SECONDS, FETCH_FAILED
from emulator.redaction import Secret
from emulator.runtime.noticed import NO_PROCESSES, Noticed, did_not_answer
from emulator.runtime.strays import MARK, end_strays
from emulator.runtime.tool_server import ServerUnreachable, ToolResult

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from emulator.clock import Clock
    from emulator.domain.tools import McpTool
    from emulator.runtime.mcp_link import Link
    from emulator.runtime.tool_server import ServerTool
    from emulator.settings import Settings

T = TypeVar("T")

# What a connection needs. The first brings the SDK, which takes a second.
_NEEDED: Final = tuple(f"emulator.runtime.{name}" for name in ("mcp_http", "mcp_process", "mcp_link"))
# Real seconds an ending connection is given before it is cut off.
_END_SECONDS: Final = 0.8


class Connections:
    """The real connections of one emulator."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.open: set[Connected] = set()
        self.closed = False
        self._mark = f"{os.getpid()}-{id(self)}-"
        self._marks = 0

    def mark(self) -> str:
        """A mark for what one more connection starts."""
        self._marks += 1
        return f"{self._mark}{self._marks}."

    def to(
        self,
        tool: McpTool,
        variables: Mapping[str, Secret],
        settings: Settings,
        own: Callable[[], object] | None = None,
    ) -> Connected:
        """The server of a tool entry, yet to be connected to. `variables` are those of the session's profiles.

        `own` is for one that this emulator serves: it gives another object when what that offers has changed.
        """
        return Connected(tool, variables, settings, self, own)

    async def close(self) -> None:
        """End all that are left, at once, and let nobody make another."""
        self.closed = True
        await asyncio.gather(*(connection.close() for connection in list(self.open)))
        if self._marks:
            end_strays(self._mark)


class Connected:
    """A `ToolServer` that is really there, or is to be."""

    def __init__(
        self,
        tool: McpTool,
        variables: Mapping[str, Secret],
        settings: Settings,
        connections: Connections,
        own: Callable[[], object] | None,
    ) -> None:
        self._tool = tool
        self._variables = variables
        self._settings = settings
        self._all = connections
        self._own = own
        self._offer: object = None
        self._noticed = Noticed()
        self._over = asyncio.Event()
        self._offered: list[ServerTool] = []
        self._up = False
        self._link: Link | None = None
        self._holder: asyncio.Task[None] | None = None
        self._calls: set[asyncio.Task[Any]] = set()

    async def connect(self) -> None:
        """Connect, and learn what the server offers, within `mcp_seconds`. Raises `ServerUnreachable`."""
        link = self._link = await self._to_be()
        if self._all.closed or self._over.is_set():
            raise ServerUnreachable(FETCH_FAILED)
        self._offer = self._own and self._own()
        ready: asyncio.Future[list[ServerTool] | str] = asyncio.get_running_loop().create_future()
        self._holder = _apart(link.run(ready, self._over))
        self._all.open.add(self)
        self._holder.add_done_callback(lambda _: self._all.open.discard(self))
        seconds = self._settings.mcp_seconds
        try:
            found = await _answer(ready, seconds)
            if link.took:
                # Nobody could advance the clock: the caller sits inside its own request.
                self._all.clock.jump(link.took)
            if isinstance(found, str):
                raise ServerUnreachable(found)
        except TimeoutError:
            reason = self._noticed.reason or did_not_answer(seconds)
            await self._cut()
            if self._all.clock.virtual:
                # Nobody could advance it: the caller sits inside its own request.
                self._all.clock.jump(seconds)
            raise ServerUnreachable(reason) from None
        except BaseException:
            await self._cut()
            raise
        self._offered, self._up = found, True

    async def tools(self) -> list[ServerTool]:
        """What the server offers; asked anew once it has said that this has changed."""
        offer = self._own and self._own()
        if self._link is not None and (self._link.stale or offer is not self._offer):
            self._offer = offer
            try:
                self._offered = await self._ask(self._link.tools(), self._settings.mcp_seconds)
            except Exception:
                # It stays what it was: a call will tell what is wrong.
                self._link.stale = True
        return self._offered

    async def call(self, tool: str, arguments: dict[str, Any]) -> ToolResult:
        """Call a tool. Whatever goes wrong is an error result that says what."""
        assert self._link is not None
        try:
            return await self._ask(self._link.call(tool, arguments), CALL_SECONDS)
        except TimeoutError:
            return ToolResult.of(f"{self._tool.name}: {did_not_answer(CALL_SECONDS)}", is_error=True)

    async def close(self) -> None:
        """End the connection, and the process if there is one, in under a second."""
        self._over.set()
        if self._holder is not None and self._up:
            await asyncio.wait({self._holder}, timeout=_END_SECONDS)
        await self._cut()

    async def _cut(self) -> None:
        """End the connection without a goodbye."""
        tasks = {task for task in (self._holder, *self._calls) if task is not None and not task.done()}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=_END_SECONDS)

    async def _ask(self, question: Coroutine[Any, Any, T], seconds: float) -> T:
        """Ask the server something, in a task of its own. Raises `TimeoutError`."""
        task = _apart(question)
        self._calls.add(task)
        task.add_done_callback(self._answered)
        try:
            return await _answer(task, seconds)
        finally:
            # Whoever asked may have gone, and does not wait for this to end.
            task.cancel()

    def _answered(self, task: asyncio.Task[Any]) -> None:
        self._calls.discard(task)
        if not task.cancelled():
            # Looked at, should nobody wait for it any more.
            task.exception()

    async def _to_be(self) -> Link:
        """The link to this server. Raises `ServerUnreachable` for one that may not be connected to."""
        # What is imported here takes a second, and most emulators connect to nothing.
        tool = self._tool
        if tool.command is None:
            assert tool.url is not None
            await _imported()
            from emulator.runtime.mcp_http import http
            from emulator.runtime.mcp_link import Link

            there = http(tool.url, tool.authorization, tool.headers or {}, self._noticed)
            return Link(tool.name, there, self._noticed, own=self._own is not None)
        if not self._settings.allow_processes:
            raise ServerUnreachable(NO_PROCESSES)
        variables = self._named(tool)
        await _imported()
        from emulator.runtime.mcp_link import Link
        from emulator.runtime.mcp_process import process

        mark = self._all.mark()
        # Closing all ends the strays of all: looking for them takes milliseconds.
        strays = lambda: None if self._all.closed else end_strays(mark)  # noqa: E731
        here = process(tool.command, tool.args or (), variables | {MARK: Secret(mark)}, self._noticed, strays)
        return Link(tool.name, here, self._noticed)

    def _named(self, tool: McpTool) -> dict[str, Secret]:
        """The variables that `env_refs` names, by the name the process knows them by."""
        refs = tool.env_refs or {}
        names = refs if isinstance(refs, Mapping) else {name: name for name in refs}
        for variable in names.values():
            if variable not in self._variables:
                raise ServerUnreachable(f"`env_refs` names {variable}, which no profile of this session has")
        return {name: self._variables[variable] for name, variable in names.items()}


async def _imported() -> None:
    """Have what a connection needs imported: it takes a second, in which others are served."""
    if any(name not in sys.modules for name in _NEEDED):
        await asyncio.to_thread(_import)


def _import() -> None:
    for name in _NEEDED:
        importlib.import_module(name)


def _apart(coroutine: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    """A task that belongs to nobody's turn: made in a context of its own."""
    return asyncio.get_running_loop().create_task(coroutine, context=Context())


async def _answer(future: asyncio.Future[T], seconds: float) -> T:
    """Wait for what a server answers, in real seconds. Raises `TimeoutError`.

    The only place where anybody waits for a real server.
    """
    await asyncio.wait({future}, timeout=seconds)
    if not future.done():
        raise TimeoutError
    return future.result()
