"""A deployment: one world with everything that makes it run. A reset is a new one.

Law: this is the only place that puts the runtime's parts together. Two deployments share nothing.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from emulator.clock import Clock
from emulator.domain.access import DEFAULT_TOKEN, check_scopes
from emulator.domain.faults import Faults
from emulator.domain.world import World
from emulator.redaction import Secret
from emulator.render import FrameCodec
from emulator.runtime.connected import Connections
from emulator.runtime.delivery import Deliveries
from emulator.runtime.engine import Engine
from emulator.runtime.feed import Feed
from emulator.runtime.journal import Journal
from emulator.runtime.outages import Outages
from emulator.runtime.script import Script
from emulator.runtime.served import OWN, ServedServers
from emulator.runtime.simulated import SimulatedServer
from emulator.runtime.watcher import Watcher

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from emulator.domain.servers import SimulatedTool
    from emulator.domain.session import Session
    from emulator.domain.tools import McpTool
    from emulator.runtime.exploring import Exploring
    from emulator.runtime.playback import WriteCheck
    from emulator.runtime.scenario_file import LoadedScenario
    from emulator.runtime.stepping import Holder
    from emulator.runtime.tool_server import ToolServer
    from emulator.settings import Settings


class Deployment:
    """Made on the loop it runs on. `tokens` are (text, scopes) pairs of the default organization.

    `url` is where clients reach it.
    """

    def __init__(
        self,
        settings: Settings,
        holder: Holder,
        *,
        tokens: Sequence[tuple[Secret, Sequence[str]]] = (),
        scenario: LoadedScenario | None = None,
        url: str = "",
    ) -> None:
        self.clock = Clock(virtual=settings.clock == "virtual")
        self.world = World(settings, FrameCodec(), self.clock.now, self.clock.stamp)
        self.world.url = url
        self.feed = Feed(self.world)
        self.journal = Journal()
        self.outages = Outages(self.clock)
        self.connections = Connections(self.clock)
        self.served = ServedServers(self.world)
        self.faults = Faults(self.world.ids, self.clock.now)
        self.script = Script()
        self.deliveries = Deliveries(self.world, self.clock)
        self.feed.listeners.append(self.deliveries.pump)
        # What an explored run does differently. Put there from outside, if at all.
        self.exploring: Exploring | None = None
        # What holds the client's writes against the recording that is played.
        self.write_check: WriteCheck | None = None
        self.watcher = Watcher(self.world) if settings.findings == "on" else None
        if self.watcher is not None:
            self.feed.listeners.append(self.watcher.pump)
        self.engine = Engine(self.world, self.clock, self.feed, self.script, self._reach, holder, self.deliveries)
        if tokens:
            for text, scopes in tokens:
                self.world.mint(text.reveal(), scopes=check_scopes(scopes))
        else:
            self.world.mint(DEFAULT_TOKEN)
        if scenario is not None:
            self.load(scenario)

    def load(self, scenario: LoadedScenario) -> None:
        """Put a scenario in place of the present one. A running turn keeps its script."""
        self.unload()
        self.script.scenario = scenario
        self.write_check = None if scenario.check is None else scenario.check()
        for name, plan in scenario.mcp.items():
            if plan.scripts:
                # Its tools are those the simulated server has, and not others in their place.
                self.outages.plan(name, replace(plan, tools=None))
        for match, asked in scenario.faults:
            self.faults.add(match, source=scenario, **asked)

    def unmatched_writes(self) -> list[dict[str, Any]]:
        """Where the client's writes are not those of a recording that is played strictly."""
        if self.write_check is None or self.script.scenario is None:
            return []
        strict = (self.script.scenario.mode or self.world.settings.mode) == "strict"
        return self.write_check.findings() if strict else []

    def unload(self) -> None:
        """Take the scenario away, and the outages and faults it brought."""
        if self.script.scenario is not None:
            for name in self.script.scenario.mcp:
                self.outages.clear(name)
            self.faults.remove(lambda fault: fault.source is not None)
        self.script.scenario = None
        self.write_check = None

    async def close(self) -> None:
        """Stop everything; streams end, tasks are gone."""
        self.feed.end()
        self.served.close()
        # Together: no session that ends takes time for a connection of its own.
        await asyncio.gather(self.engine.close(), self.connections.close())
        await self.deliveries.close()
        self.clock.close()

    def described(self, server: str) -> Mapping[str, SimulatedTool] | None:
        """The tools the scenario says a server has; `None` where it says nothing of them."""
        scenario = self.script.scenario
        plan = None if scenario is None else scenario.mcp.get(server)
        return None if plan is None else plan.tools

    def _reach(self, session: Session, tool: McpTool) -> ToolServer:
        return self.outages.around(tool.name, self._server(session, tool))

    def _server(self, session: Session, tool: McpTool) -> ToolServer:
        settings = self.world.settings
        if tool.url is not None and (address := self.served.local(tool.url)) is not None:
            # On this very socket: nothing goes out, whatever the settings say.
            marked = {**(tool.headers or {}), OWN: Secret("1")}
            return self.connections.to(
                replace(tool, url=address, headers=marked), {}, settings, partial(self.served.offered, address)
            )
        if (settings.mcp == "connect") != (tool.name in settings.mcp_except):
            found = self.world.find_session(session.id)
            variables = {} if found is None else found[0].profiles.variables(session.workspace.profiles)
            return self.connections.to(tool, variables, settings)
        return SimulatedServer(self.described(tool.name))
