"""A link: one MCP conversation over a transport, and what it gives in the words of the port.

Law: the SDK's context managers are entered and left by the task that runs `run`, and nobody else's. Nothing of a
link is logged: servers write what they like, and the SDK tells of it. Importing this module takes a second.
"""

from __future__ import annotations

import asyncio
import logging
from contextvars import ContextVar
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from mcp import Client, MCPError
from mcp_types import CONNECTION_CLOSED, Implementation, PaginatedRequestParams, ToolListChangedNotification

from emulator import __version__
from emulator.domain.outages import FETCH_FAILED, LOST, MALFORMED, NOT_MCP
from emulator.runtime.served import STALL
from emulator.runtime.tool_server import ServerTool, ToolResult

if TYPE_CHECKING:
    from mcp_types import Result, Tool

    from emulator.runtime.noticed import Noticed

# Pages of a list of tools, beyond which it is taken for one without an end.
_PAGES: Final = 100
# What the SDK says in place of an answer that will not come. Its code for that is one that servers use as well.
_NO_ANSWER: Final = ("Connection closed", "SSE stream ")
_LIBRARIES: Final = ("mcp", "client", "httpx2", "httpcore2")
_OURS: ContextVar[bool] = ContextVar("ours", default=False)


class Link:
    """One conversation, with the server of a name, which is the emulator's `own` or somebody else's.

    `stale`: the server has said that its tools are others now. `took`: what connecting took of the clock, in seconds.
    """

    def __init__(self, name: str, transport: Any, noticed: Noticed, *, own: bool = False) -> None:
        self._name = name
        self._own = own
        self._noticed = noticed
        self._client = Client(
            transport,
            # The handshake that every published server speaks, and in which it tells by itself that its tools changed.
            mode="legacy",
            cache=None,
            client_info=Implementation(name="gobare-emulator", version=__version__),
            message_handler=self._told,
        )
        self.stale = False
        self.took = 0.0
        self._ended = False

    async def run(self, ready: asyncio.Future[list[ServerTool] | str], over: asyncio.Event) -> None:
        """Hold the conversation until `over`. `ready` is told what the server offers, or why it cannot be reached."""
        _hush()
        try:
            async with self._client:
                self.took, failure = self._stall(self._client.session.initialize_result)
                if failure is not None:
                    ready.set_result(failure)
                    return
                tools = await self.tools()
                if not ready.done():
                    ready.set_result(tools)
                await over.wait()
        except BaseException:
            # Somebody ends it, or the server does; who waits is told, and the rest is of no interest.
            pass
        finally:
            self._ended = True
            if not ready.done():
                reason = self._noticed.reason or NOT_MCP
                ready.set_result(FETCH_FAILED if reason == LOST else reason)

    async def tools(self) -> list[ServerTool]:
        """What the server offers now, all pages of it."""
        _OURS.set(True)
        self.stale = False
        capabilities = self._client.session.server_capabilities
        if capabilities is not None and capabilities.tools is None:
            return []
        found: list[ServerTool] = []
        cursor: str | None = None
        for _ in range(_PAGES):
            params = None if cursor is None else PaginatedRequestParams(cursor=cursor)
            page = await self._client.session.list_tools(params=params)
            found += map(_tool, page.tools)
            cursor = page.next_cursor
            if cursor is None:
                break
        return found

    async def call(self, tool: str, arguments: dict[str, Any]) -> ToolResult:
        """What a tool gives. What goes wrong is an error result, too."""
        _OURS.set(True)
        if self._ended:
            return self._failed(self._noticed.reason or LOST)
        try:
            result = await self._client.session.call_tool(tool, arguments)
        except MCPError as error:
            lost = error.code == CONNECTION_CLOSED and error.message.startswith(_NO_ANSWER)
            told = LOST if lost else f"MCP error {error.code}: {error.message}"
            return self._failed(self._noticed.reason or told)
        except Exception:
            # A result of another shape, or one that is not as the tool itself says.
            return self._failed(MALFORMED)
        took, failure = self._stall(result)
        if failure is not None:
            return replace(self._failed(failure), seconds=took)
        content = [block.model_dump(by_alias=True, mode="json", exclude_none=True) for block in result.content]
        return ToolResult(content, result.structured_content, bool(result.is_error), took)

    def _stall(self, result: Result | None) -> tuple[Any, str | None]:
        """What an answer of the emulator's own server takes of the clock, in seconds, and the failure it ends in."""
        told = result.meta.get(STALL) if self._own and result is not None and result.meta is not None else None
        return (0.0, None) if told is None else (told["takes"], told["failure"])

    def _failed(self, reason: str) -> ToolResult:
        return ToolResult.of(f"{self._name}: {reason}", is_error=True)

    async def _told(self, message: Any) -> None:
        if isinstance(message, ToolListChangedNotification):
            self.stale = True


def _tool(listed: Tool) -> ServerTool:
    read_only = listed.annotations is not None and listed.annotations.read_only_hint is True
    return ServerTool(listed.name, listed.description or "", read_only, listed.input_schema)


def _hush() -> None:
    """Have the libraries log nothing of what the task of now does, nor the tasks it starts."""
    _OURS.set(True)
    for name in list(logging.Logger.manager.loggerDict):
        if name.partition(".")[0] in _LIBRARIES:
            logging.getLogger(name).addFilter(_not_ours)


def _not_ours(record: logging.LogRecord) -> bool:
    return not _OURS.get()
