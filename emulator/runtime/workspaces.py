"""Workspaces: bringing a session's sandbox up, connecting its MCP servers, and its life on the clock.

Law: the sandbox starts on the first call that needs it and not before. A start that is refused
leaves the session as it was but for the failure it records (contract §5, §13).
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from math import ceil
from typing import TYPE_CHECKING, Any, Final

from emulator.domain.limits import IDLE_SECONDS, WORKSPACE_SECONDS
from emulator.domain.tools import ToolSet
from emulator.refusals import Refusal, invalid
from emulator.runtime.tool_server import ServerUnreachable

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Coroutine, Sequence

    from emulator.clock import Clock, Timer
    from emulator.domain.session import Session
    from emulator.domain.tools import McpTool
    from emulator.domain.world import World
    from emulator.runtime.tool_server import ToolServer

# What a clone of a repository that is not there says (the sessions page).
NOT_FOUND: Final = "Repository not found"


@dataclass(slots=True)
class Machine:
    """The running side of one workspace: its connections and its timers. `connecting` are those yet to be made.

    `life_left` is what remains of its two hours, in milliseconds, while they do not count.
    """

    servers: dict[str, ToolServer] = field(default_factory=dict)
    connecting: Sequence[ToolServer] = ()
    unreachable: dict[str, str] = field(default_factory=dict)
    idle: Timer | None = None
    reclaim: Timer | None = None
    life_left: int = WORKSPACE_SECONDS * 1000
    ready_at: int = 0

    def take_servers(self) -> dict[str, ToolServer]:
        """The connections, to be closed by whoever takes them."""
        servers, self.servers = self.servers, {}
        return servers


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
        spawn: Callable[[Coroutine[Any, Any, None]], object],
    ) -> None:
        self._world = world
        self._clock = clock
        self._reach = reach
        self._reclaimed = reclaimed
        self._spawn = spawn
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
        while True:
            start = await self._connected(session)
            if session.deleted:
                await _close(start.servers.values())
                return start
            if start.tools is self.tools(session):
                return start
            # They were replaced while their servers were being connected to: what came up is of no use.
            await _close(start.servers.values())

    async def _connected(self, session: Session) -> Start:
        """Connect to the servers of the tools of now. Raises `RequiredServersDown`."""
        start = Start(connected=True, tools=self.tools(session))
        machine = self.machine(session)
        await _close(machine.take_servers().values())
        tools = start.tools.servers()
        machine.connecting = servers = [self._reach(session, tool) for tool in tools]
        reasons = await _connect(servers)
        machine.connecting = ()
        missing: list[str] = []
        for tool, server, reason in zip(tools, servers, reasons, strict=True):
            if reason is None:
                start.servers[tool.name] = server
            elif tool.required:
                missing.append(f"{tool.name}: {reason}")
            else:
                start.unreachable[tool.name] = reason
        if missing:
            await _close(start.servers.values())
            raise RequiredServersDown("; ".join(missing))
        return start

    def come_up(self, session: Session, start: Start) -> None:
        """Show the workspace running, and the servers that had to be skipped."""
        workspace = session.workspace
        machine = self.machine(session)
        match workspace.state:
            case "unknown":
                self._clone(session)
                session.workspace_step("start")
                self._seed(session)
                self._live(session, machine, WORKSPACE_SECONDS * 1000)
            case "paused":
                session.workspace_step("resume")
                self._live(session, machine, machine.life_left)
            case "destroyed" | "recovery_failed":
                session.workspace_step("recover")
                self._clone(session)
                session.workspace_step("start")
                self._seed(session)
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
        restart = self._world.settings.tools_restart_seconds
        if session.workspace.state == "running" and restart > 0:
            self.machine(session).ready_at = self._world.now() + round(restart * 1000)
        if self._world.settings.tools_reach == "next_turn":
            session.workspace.servers_started = False
            if not session.busy:
                # A turn keeps the servers it began with.
                self._let_go(self.machine(session))

    def check_ready(self, session: Session) -> None:
        """Raise 409 `conflict` while a running workspace restarts to pick its new tools up (contract §5)."""
        machine = self._machines.get(session.id)
        if machine is not None and (left := machine.ready_at - self._world.now()) > 0:
            raise Refusal(
                "conflict",
                "This session's workspace is not ready yet — it is starting, or restarting to pick up a configuration "
                "change. Retry in a few seconds; nothing was written.",
                retry_after=ceil(left / 1000),
            )

    def keep(self, session: Session) -> None:
        """Do not reclaim a workspace whose preview was published: its two hours do not count (contract §12)."""
        self._hold(self.machine(session))

    def release(self, session: Session) -> None:
        """The preview is published no more: what was left of the two hours counts again."""
        machine = self.machine(session)
        if session.workspace.state == "running" and machine.reclaim is None:
            self._count_down(session, machine)

    def visited(self, session: Session) -> None:
        """Somebody opened what the workspace serves: it is woken if it was paused, and its idle time begins again."""
        if session.workspace.state == "paused":
            session.workspace_step("resume")
            self._live(session, self.machine(session), self.machine(session).life_left)
        if not session.busy:
            self.rest(session)

    def busy(self, session: Session) -> None:
        """A turn is open: the workspace is not idle."""
        machine = self.machine(session)
        if machine.idle is not None:
            machine.idle.cancel()
            machine.idle = None

    def rest(self, session: Session) -> None:
        """The last turn has settled: pause after five idle minutes."""
        if not session.workspace.servers_started:
            # Replaced while the turn had them.
            self._let_go(self.machine(session))
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
        # Whoever waits for a connection that is being made waits no more.
        await _close([*machine.take_servers().values(), *machine.connecting])

    def _clone(self, session: Session) -> None:
        """Clone the session's repository, if it has one and did not get its files from another session."""
        repo, known = session.workspace.repo, self._world.settings.repositories
        if repo is None or session.workspace.copied:
            return
        name = str(repo["full_name"]).casefold()
        found = next((repository for repository in known if repository.full_name.casefold() == name), None)
        if found is not None:
            session.workspace.cloned(found.branch, found.clone_error, found.files or {})
        else:
            session.workspace.cloned("main", NOT_FOUND if known else None, {})

    def _seed(self, session: Session) -> None:
        """Write the seeded files, after the clone; a copy of another workspace has them already."""
        if not session.workspace.copied:
            session.seed(self._world.settings.unwritable_files)

    def _live(self, session: Session, machine: Machine, milliseconds: int) -> None:
        session.workspace.meter.begin(self._world.now())
        machine.life_left = milliseconds
        if session.preview.subdomain is None:
            self._count_down(session, machine)

    def _count_down(self, session: Session, machine: Machine) -> None:
        machine.reclaim = self._clock.call_at(self._world.now() + machine.life_left, lambda: self._reclaim(session))

    def _hold(self, machine: Machine) -> None:
        if machine.reclaim is not None:
            machine.life_left = max(0, machine.reclaim.when - self._world.now())
            machine.reclaim.cancel()
            machine.reclaim = None

    def _pause(self, session: Session) -> None:
        machine = self.machine(session)
        machine.idle = None
        self._hold(machine)
        session.workspace.meter.end(self._world.now())
        session.workspace_step("pause")
        self._reclaimed(session)

    def _reclaim(self, session: Session) -> None:
        machine = self.machine(session)
        self.busy(session)
        machine.reclaim = None
        session.workspace.meter.end(self._world.now())
        session.capture(self._world.now())
        session.workspace_step("reclaim")
        self._reclaimed(session)
        self._let_go(machine)

    def _let_go(self, machine: Machine) -> None:
        """Close connections nobody uses any more, in a moment of their own."""
        if servers := machine.take_servers():
            self._spawn(_close(servers.values()))


async def _connect(servers: Sequence[ToolServer]) -> list[str | None]:
    """Connect to servers, all at once, and give why each cannot be reached, in their order."""

    async def reason(server: ToolServer) -> str | None:
        try:
            await server.connect()
        except ServerUnreachable as unreachable:
            return unreachable.reason
        return None

    try:
        if len(servers) < 2:
            return [await reason(server) for server in servers]
        async with asyncio.TaskGroup() as together:
            tasks = [together.create_task(reason(server)) for server in servers]
        return [task.result() for task in tasks]
    except BaseException:
        await _close(servers)
        raise


async def _close(servers: Collection[ToolServer]) -> None:
    await asyncio.gather(*(server.close() for server in servers))


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
