"""Outages: what is scripted to go wrong with MCP servers, by name.

Law: an outage is a wrapper around any `ToolServer`; what it wraps does not know of it. It counts
connects and calls, and takes their time from the emulator's clock: nobody waits for it in real time.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from emulator.domain.outages import GONE, CallEntry, ConnectEntry
from emulator.domain.servers import SimulatedTool
from emulator.runtime.simulated import canned, listed
from emulator.runtime.tool_server import NoSuchTool, ServerUnreachable, ToolResult

if TYPE_CHECKING:
    from collections.abc import Mapping

    from emulator.clock import Clock
    from emulator.domain.outages import ServerPlan
    from emulator.runtime.tool_server import ServerTool, ToolServer

_UP: Final = ConnectEntry()
_OK: Final = CallEntry()
# A tool of which nothing is said: whatever the server itself has under that name.
_ITS_OWN: Final = SimulatedTool()


@dataclass(slots=True)
class Scripted:
    """What lies ahead of one server. `times` is how many more connects `standing` is for; `None` is all."""

    standing: ConnectEntry = _UP
    times: int | None = None
    connects: list[ConnectEntry] = field(default_factory=list)
    calls: list[CallEntry] = field(default_factory=list)
    tools: Mapping[str, SimulatedTool] | None = None

    def plan(self, plan: ServerPlan) -> None:
        """Put what a plan says in place of what was there; what it does not speak of stays."""
        if plan.standing is not None or plan.connects is not None:
            self.standing, self.times = plan.standing or _UP, plan.times
            self.connects = list(plan.connects or ())
        if plan.calls is not None:
            self.calls = list(plan.calls)
        if plan.tools is not None:
            self.tools = plan.tools

    @property
    def next_connect(self) -> ConnectEntry:
        """How the next connect goes."""
        return self.connects[0] if self.connects else self.standing

    @property
    def unmet(self) -> tuple[int, int]:
        """How many connects and calls that were counted out to go otherwise than they should are yet to come."""
        connects = [entry for entry in self.connects if entry != _UP]
        return self.times or len(connects), len([entry for entry in self.calls if entry != _OK])

    def meet(self) -> ConnectEntry:
        """Count a connect. Gives how it goes."""
        entry = self.next_connect
        if self.connects:
            del self.connects[0]
        elif self.times is not None:
            self.times -= 1
            if self.times == 0:
                self.standing, self.times = _UP, None
        return entry

    def call(self, tool: str) -> CallEntry:
        """Count a call of a tool. Gives how it goes: as the first entry says that is for any tool, or for this one."""
        for n, entry in enumerate(self.calls):
            if entry.tool is None or entry.tool == tool:
                del self.calls[n]
                return entry
        return _OK


class Outages:
    """What is scripted for the servers of one emulator, by name."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.scripted: dict[str, Scripted] = {}

    def plan(self, server: str, plan: ServerPlan) -> Scripted:
        """Script a server from its next connect, and its next call, on. Gives what lies ahead of it."""
        scripted = self.scripted.setdefault(server, Scripted())
        scripted.plan(plan)
        return scripted

    def clear(self, server: str) -> None:
        """Forget what was scripted for a server."""
        self.scripted.pop(server, None)

    def around(self, name: str, server: ToolServer) -> ToolServer:
        """`server` behind whatever is scripted for `name`."""
        return _Guarded(name, server, self)


class _Guarded:
    """A connection behind its outages. Remembers every tool it was offered."""

    def __init__(self, name: str, server: ToolServer, outages: Outages) -> None:
        self._name = name
        self._server = server
        self._outages = outages
        self._offered: list[ServerTool] = []
        self._seen: set[str] = set()
        # The tools that are answered here, as scripted, and not by the server.
        self._canned: dict[str, SimulatedTool] = {}

    async def connect(self) -> None:
        scripted = self._outages.scripted.get(self._name)
        if scripted is not None:
            entry = scripted.meet()
            if entry.tools is not None:
                scripted.tools = entry.tools
            if entry.takes:
                # Nobody could advance the clock: the caller sits inside its own request.
                self._outages.clock.jump(entry.takes)
            if entry.failure is not None:
                raise ServerUnreachable(entry.failure)
        await self._server.connect()
        await self.tools()

    async def tools(self) -> list[ServerTool]:
        offered, self._canned = await self._server.tools(), {}
        scripted = self._outages.scripted.get(self._name)
        if scripted is not None and scripted.tools is not None:
            own = {tool.name: tool for tool in offered}
            self._canned = {name: tool for name, tool in scripted.tools.items() if tool != _ITS_OWN or name not in own}
            offered = [
                listed(name, tool) if name in self._canned else own[name] for name, tool in scripted.tools.items()
            ]
        if offered is not self._offered:
            self._offered = offered
            self._seen.update(tool.name for tool in offered)
        return offered

    async def call(self, tool: str, arguments: dict[str, Any]) -> ToolResult:
        # Whoever calls has just asked for the list, but a person's approval may lie in between.
        if all(offered.name != tool for offered in await self.tools()):
            if tool not in self._seen:
                raise NoSuchTool([offered.name for offered in self._offered])
            return _failed(self._name, GONE)
        scripted = self._outages.scripted.get(self._name)
        if scripted is None:
            return await self._server.call(tool, arguments)
        entry = scripted.call(tool)
        if entry.tools is not None:
            scripted.tools = entry.tools
        if entry.fault == "error":
            result = ToolResult.of(entry.failure or "", is_error=True)
        elif entry.failure is not None:
            result = _failed(self._name, entry.failure)
        elif tool in self._canned:
            result = canned(self._canned[tool])
        else:
            result = await self._server.call(tool, arguments)
        return result if entry.takes == 0 else replace(result, seconds=entry.takes)

    async def close(self) -> None:
        await self._server.close()


def _failed(server: str, reason: str) -> ToolResult:
    return ToolResult.of(f"{server}: {reason}", is_error=True)
