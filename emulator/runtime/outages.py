"""Outages: whether an MCP server can be reached, scripted by name.

Law: an outage is a wrapper around any `ToolServer`; what it wraps does not know of it.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from emulator.runtime.tool_server import FETCH_FAILED, ServerUnreachable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from emulator.runtime.tool_server import ServerTool, ToolResult, ToolServer


@dataclass(frozen=True, slots=True)
class Condition:
    """How a server answers a connect. `times`: how many connects fail before it is up again."""

    state: Literal["up", "down"]
    reason: str = FETCH_FAILED
    times: int | None = None


class Outages:
    """The scripted condition of each server of one emulator, by name."""

    def __init__(self) -> None:
        self._now: dict[str, Condition] = {}
        self._next: dict[str, deque[Condition]] = {}

    def set(self, server: str, condition: Condition) -> None:
        """Have a server be up or down from its next connect on."""
        self._next.pop(server, None)
        self._now[server] = condition

    def script(self, server: str, conditions: Sequence[Condition]) -> None:
        """Give each of the next connects its own condition; after the last one the server is up."""
        self._now.pop(server, None)
        self._next[server] = deque(conditions)

    def clear(self, server: str) -> bool:
        """Forget what was scripted for a server. Whether there was anything."""
        return (self._now.pop(server, None) is not None) | (self._next.pop(server, None) is not None)

    def conditions(self) -> dict[str, Condition]:
        """The condition the next connect of each scripted server meets."""
        ahead = {server: queue[0] if queue else Condition("up") for server, queue in self._next.items()}
        return self._now | ahead

    def meet(self, server: str) -> None:
        """Count a connect. Raises `ServerUnreachable` if the server is down for it."""
        queue = self._next.get(server)
        if queue is not None:
            condition = queue.popleft() if queue else Condition("up")
        else:
            condition = self._now.get(server, Condition("up"))
            if condition.state == "down" and condition.times is not None:
                left = condition.times - 1
                self._now[server] = Condition("down", condition.reason, left) if left > 0 else Condition("up")
        if condition.state == "down":
            raise ServerUnreachable(condition.reason)

    def around(self, name: str, server: ToolServer) -> ToolServer:
        """`server` behind whatever is scripted for `name`."""
        return _Guarded(name, server, self)


class _Guarded:
    def __init__(self, name: str, server: ToolServer, outages: Outages) -> None:
        self._name = name
        self._server = server
        self._outages = outages

    async def connect(self) -> None:
        self._outages.meet(self._name)
        await self._server.connect()

    async def tools(self) -> list[ServerTool]:
        return await self._server.tools()

    async def call(self, tool: str, arguments: dict[str, Any]) -> ToolResult:
        return await self._server.call(tool, arguments)

    async def close(self) -> None:
        await self._server.close()
