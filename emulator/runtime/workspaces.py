"""Workspaces: bringing a session's sandbox up, connecting its MCP servers, and its life on the clock.

Law: the sandbox starts on the first call that needs it and not before. A start that is refused
leaves the session as it was but for the failure it records (contract §5, §13).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from emulator.domain.limits import IDLE_SECONDS, WORKSPACE_SECONDS
from emulator.domain.tools import ToolSet
from emulator.refusals import Refusal, invalid
from emulator.runtime.tool_server import CONNECT_SECONDS, DID_NOT_ANSWER, ServerUnreachable

if TYPE_CHECKING:
    from collections.abc import Callable

    from emulator.clock import Clock, Timer
    from emulator.domain.session import Session
    from emulator.domain.tools import McpTool
    from emulator.domain.world import World
    from emulator.runtime.tool_server import ToolServer


@dataclass(slots=True)
class Machine:
    """The running side of one workspace: its connections and its timers.

    `life_left` is what remains of its two hours, in milliseconds, while it is paused.
    """

    servers: dict[str, ToolServer] = field(default_factory=dict)
    unreachable: dict[str, str] = field(default_factory=dict)
    idle: Timer | None = None
    reclaim: Timer | None = None
    life_left: int = WORKSPACE_SECONDS * 1000


@dataclass(slots=True)
class Start:
    """What connecting to the servers gave, before anything about it is shown."""

    connected: bool
    tools: ToolSet = field(default_factory=ToolSet)
    servers: dict[str, ToolServer] = field(default_factory=dict)
    unreachable: dict[str, str] = field(default_factory=dict)


class Workspaces:
    """The workspaces of one emulator. `reach` gives the server behind a tool entry of a session."""

    def __init__(
        self,
        world: World,
        clock: Clock,
        reach: Callable[[Session, McpTool], ToolServer],
        reclaimed: Callable[[Session], None],
    ) -> None:
        self._world = world
        self._clock = clock
        self._reach = reach
        self._reclaimed = reclaimed
        self._machines: dict[str, Machine] = {}

    def machine(self, session: Session) -> Machine:
        """The running side of a session's workspace."""
        return self._machines.setdefault(session.id, Machine())

    def tools(self, session: Session) -> ToolSet:
        """The tools the next turn has: those of the running workspace where a PUT waits for another (contract §5)."""
        if session.workspace.tools is not None and self._world.settings.tools_reach == "next_workspace":
            return session.workspace.tools
        return session.agent.tools

    async def connect(self, session: Session) -> Start:
        """Connect the servers of a workspace that has yet to, and show nothing of it.

        Raises 400 `invalid_request` when a required one is down (contract §5) and 500
        `workspace_recovery_failed` when the workspace cannot be built again.
        """
        workspace = session.workspace
        if workspace.state in ("destroyed", "recovery_failed") and self._world.settings.workspace_recovery == "fails":
            session.workspace_step("recover")
            session.workspace_step("give_up")
            raise Refusal(
                "workspace_recovery_failed",
                "This session's workspace could not be built again: no snapshot was available for this workspace.",
            )
        if workspace.servers_started and workspace.state in ("running", "paused"):
            return Start(connected=False)
        start = Start(connected=True, tools=self.tools(session))
        for server in self.machine(session).servers.values():
            await server.close()
        missing: list[str] = []
        for tool in start.tools.servers():
            server = self._reach(session, tool)
            try:
                await server.connect()
            except ServerUnreachable as unreachable:
                if unreachable.reason == DID_NOT_ANSWER:
                    # Nobody could advance the clock: the caller sits inside its own request.
                    self._clock.jump(CONNECT_SECONDS)
                if tool.required:
                    missing.append(f"{tool.name}: {unreachable.reason}")
                else:
                    start.unreachable[tool.name] = unreachable.reason
            else:
                start.servers[tool.name] = server
        if missing:
            for server in start.servers.values():
                await server.close()
            raise RequiredServersDown("; ".join(missing))
        return start

    def come_up(self, session: Session, start: Start) -> None:
        """Show the workspace running, and the servers that had to be skipped."""
        workspace = session.workspace
        machine = self.machine(session)
        match workspace.state:
            case "unknown":
                session.workspace_step("start")
                self._live(session, machine, WORKSPACE_SECONDS * 1000)
            case "paused":
                session.workspace_step("resume")
                self._live(session, machine, machine.life_left)
            case "destroyed" | "recovery_failed":
                session.workspace_step("recover")
                session.workspace_step("start")
                self._live(session, machine, WORKSPACE_SECONDS * 1000)
            case _:
                pass
        if start.connected:
            machine.servers, machine.unreachable = start.servers, start.unreachable
            workspace.tools = start.tools
            workspace.servers_started = True
            for name, reason in start.unreachable.items():
                session.record("mcp.unavailable", {"server": name, "name": name, "reason": reason})
        self.busy(session)

    def tools_replaced(self, session: Session) -> None:
        """Have the servers started anew by the next call that needs the workspace (contract §5)."""
        if self._world.settings.tools_reach == "next_turn":
            session.workspace.servers_started = False

    def busy(self, session: Session) -> None:
        """A turn is open: the workspace is not idle."""
        machine = self.machine(session)
        if machine.idle is not None:
            machine.idle.cancel()
            machine.idle = None

    def rest(self, session: Session) -> None:
        """The last turn has settled: pause after five idle minutes."""
        if session.workspace.state == "running":
            self.busy(session)
            self.machine(session).idle = self._clock.call_in(IDLE_SECONDS, lambda: self._pause(session))

    async def destroy(self, session: Session) -> None:
        """Let go of everything a deleted session's workspace holds."""
        machine = self._machines.pop(session.id, None)
        if machine is None:
            return
        for timer in (machine.idle, machine.reclaim):
            if timer is not None:
                timer.cancel()
        for server in machine.servers.values():
            await server.close()

    def _live(self, session: Session, machine: Machine, milliseconds: int) -> None:
        machine.reclaim = self._clock.call_at(self._world.now() + milliseconds, lambda: self._reclaim(session))

    def _pause(self, session: Session) -> None:
        machine = self.machine(session)
        machine.idle = None
        if machine.reclaim is not None:
            machine.life_left = max(0, machine.reclaim.when - self._world.now())
            machine.reclaim.cancel()
            machine.reclaim = None
        session.workspace_step("pause")
        self._reclaimed(session)

    def _reclaim(self, session: Session) -> None:
        machine = self.machine(session)
        self.busy(session)
        machine.reclaim = None
        session.workspace_step("reclaim")
        self._reclaimed(session)


class RequiredServersDown(Refusal):
    """The refusal of a start without a required server; `problem` is what the error item says."""

    def __init__(self, servers: str) -> None:
        self.problem = f"required MCP server(s) failed to initialise — {servers}"
        refused = invalid(
            f"This session cannot start: {self.problem}. That server is configured with `required: true`, so the "
            "session refuses to run without it — fix the server, or set `required: false` to let the agent continue "
            "with fewer tools."
        )
        super().__init__(refused.code, refused.message)
