"""The engine: takes input and runs turns.

Law: every change to a session goes through here, one command at a time; after each the feed is
pumped and timers are set. What a verb of the script does is in `turn`; what the states allow is in
the domain.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager
from contextvars import Context
from typing import TYPE_CHECKING, Any, Final, Literal
from weakref import WeakValueDictionary

from emulator.domain.connections import NO_MODEL
from emulator.domain.scenario import unanswered
from emulator.redaction import scrub_value
from emulator.refusals import Refusal, not_found, reset_meanwhile
from emulator.runtime.actions import Actions
from emulator.runtime.answers import Answers
from emulator.runtime.fault import Fault, fault_of
from emulator.runtime.previews import Previews
from emulator.runtime.publications import Publications
from emulator.runtime.rest import Rest
from emulator.runtime.run import Failed, Run, ScriptError, TurnOver
from emulator.runtime.stepping import Holder, Steps
from emulator.runtime.turn import Turn as TurnVerbs
from emulator.runtime.workspaces import RequiredServersDown, Start, Workspaces

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Sequence

    from emulator.clock import Clock
    from emulator.domain.files import Blob
    from emulator.domain.session import Session, Turn
    from emulator.domain.snapshots import Snapshot
    from emulator.domain.tools import McpTool, ToolSet
    from emulator.domain.world import Organization, World
    from emulator.runtime.delivery import Deliveries
    from emulator.runtime.feed import Feed
    from emulator.runtime.script import Script
    from emulator.runtime.tool_server import ToolServer

LOG: Final = logging.getLogger("emulator")

# How often a task that goes on after it was cancelled is cancelled again.
_CANCELS: Final = 5


class Engine:
    """Runs the sessions of one world."""

    def __init__(
        self,
        world: World,
        clock: Clock,
        feed: Feed,
        script: Script,
        reach: Callable[[Session, McpTool], ToolServer],
        holder: Holder,
        deliveries: Deliveries,
    ) -> None:
        self.world = world
        self.clock = clock
        self.feed = feed
        self.script = script
        self.workspaces = Workspaces(world, clock, reach, self._workspace_moved, self.spawn)
        self.publications = Publications(world, clock, feed, self.spawn)
        self.previews = Previews(world, self.workspaces, feed)
        self._runs: dict[str, Run] = {}
        self.answers = Answers(max(1, world.settings.journal_limit))
        self.actions = Actions(clock, feed, self._runs, self.answers)
        self.script_errors: list[Fault] = []
        self.unmatched: list[dict[str, Any]] = []
        self.blocked: list[str] = []
        self._holder = holder
        # Each is there as long as somebody holds it or waits for it.
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        # What scripts keep for each session.
        self.states: dict[str, dict[str, Any]] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        # Sessions between two turns, one settled and the next about to begin; with what steers that one.
        self._between: dict[str, list[str]] = {}
        self.rest = Rest(world, clock, self._runs, self._between, deliveries, self.publications)

    # Sessions

    def create(self, organization: Organization, session: Session) -> None:
        """Keep a new session, and let the readers of what happens know of it."""
        organization.add(session)
        self.feed.pump(organization)

    # Input

    async def wake(self, organization: Organization, session: Session) -> Start:
        """Connect what the workspace needs. A required server that is down is recorded and refused."""
        try:
            return await self.workspaces.connect(session)
        except RequiredServersDown as refused:
            self._check_exists(session)
            session.cannot_start(refused.problem)
            raise
        finally:
            self.feed.pump(organization)

    async def message(
        self, organization: Organization, session: Session, text: str, request_id: str | None = None
    ) -> int | None:
        """Take a message. Gives its place in the queue, or `None` if its turn begins now (contract §7)."""
        async with self._lock(session):
            self._check_exists(session)
            if session.busy:
                limit = self.world.settings.queue_limit
                if len(session.queue) >= limit:
                    messages = "message" if limit == 1 else "messages"
                    raise Refusal(
                        "queue_full",
                        f"{limit} {messages} at most may wait behind a session's turn, and as many do now. "
                        "Send this one once a turn has ended.",
                    )
                session.open_turn(text, self.world.now(), request_id)
                self.feed.pump(organization)
                return len(session.queue)
            start = await self.wake(organization, session)
            self._check_exists(session)
            turn = session.open_turn(text, self.world.now(), request_id)
            self._begin(organization, session, turn, start)
            return None

    def context(self, organization: Organization, session: Session, text: str) -> bool:
        """Add context without running a turn. Whether the sandbox was up to take it (contract §7)."""
        delivered = session.add_context(text)
        self.feed.pump(organization)
        return delivered

    def steer(self, session: Session, text: str) -> None:
        """Pass a remark to the turn that runs or is about to. Raises 409 when there is none."""
        run = self._runs.get(session.id)
        steers = self._between.get(session.id) if run is None else run.steers
        if steers is None:
            raise Refusal(
                "conflict", "No turn is running in this session, so there is nothing to steer. Send a message."
            )
        steers.append(text)

    def cancel(self, organization: Organization, session: Session) -> None:
        """Stop the running turn, if any, keeping what was done; the queue goes on (contract §7)."""
        run = self._runs.get(session.id)
        if run is not None:
            self._settle(run, "cancel")
            run.steps.cancel()
        elif session.id in self._between:
            # Between two turns it is the one about to begin that is stopped.
            self._end_next(organization, session, "cancel")
            self._between[session.id].clear()
        self.feed.pump(organization)

    def replace_tools(self, organization: Organization, session: Session, tools: ToolSet) -> None:
        """Put a whole tool configuration in place of the session's."""
        session.agent.tools = tools
        session.touch(self.world.now())
        self.workspaces.tools_replaced(session)
        self.feed.pump(organization)

    async def delete(self, organization: Organization, session: Session) -> None:
        """Destroy a session: its sandbox, its streams, its place (contract §6)."""
        self.feed.end_session(organization, session.id)
        run = self._runs.pop(session.id, None)
        organization.remove(session)
        self.feed.pump(organization)
        if self.world.settings.artifacts_outlive_sessions:
            organization.keep_artifacts(session)
        session.empty()
        self.previews.unpublish(session)
        if run is not None:
            run.steps.cancel()
        self.states.pop(session.id, None)
        self._between.pop(session.id, None)
        await self.workspaces.destroy(session)

    # Files

    async def write_files(
        self, organization: Organization, session: Session, files: Sequence[tuple[str, Blob]]
    ) -> list[tuple[str, Blob]]:
        """Write files by (path, content), all or none. Gives them by absolute path (contract §10)."""
        self.workspaces.check_ready(session)
        async with self._awake(organization, session):
            return session.workspace.files.write_all(files, "files")

    async def refresh_files(self, organization: Organization, session: Session) -> Snapshot:
        """Take a snapshot of the workspace now."""
        async with self._awake(organization, session):
            return session.capture(self.world.now())

    @asynccontextmanager
    async def _awake(self, organization: Organization, session: Session) -> AsyncIterator[None]:
        """The workspace running for a call that opens no turn; idle afterwards where nothing else keeps it."""
        async with self._lock(session):
            self._check_exists(session)
            if session.current is None:
                start = await self.wake(organization, session)
                self._check_exists(session)
                self.workspaces.come_up(session, start)
            try:
                yield
            finally:
                if not session.busy:
                    self.workspaces.rest(session)
                self.feed.pump(organization)

    def finished(self, session: Session) -> bool:
        """Whether no turn is open and none about to begin."""
        return not session.busy and session.id not in self._between

    async def reply_when_ready(self, session: Session, request_id: str) -> None:
        """Hold the reply to an input as long as the pace asks for (design, "Pace")."""
        if self.world.settings.pace == "instant":
            await self.rest.of(session, request_id)
            self._check_exists(session)

    async def close(self) -> None:
        """Stop everything that runs, and wait until it has."""
        self.rest.over = True
        for run in self._runs.values():
            run.over = True
        tasks = self._tasks | {task for run in self._runs.values() for task in run.steps.tasks()}
        for task in tasks:
            task.cancel()
        for _ in range(_CANCELS):
            if not tasks:
                break
            # Some catch it and go on: the next verb they use ends them, or the next time they are cancelled.
            _, tasks = await asyncio.wait(tasks, timeout=0.1)
            for task in tasks:
                task.cancel()
        await asyncio.gather(*(self.workspaces.destroy(session) for session in list(self.world.sessions())))

    # What verbs need

    async def wait(self, run: Run, seconds: float | None) -> None:
        """Let `seconds` pass on the emulator's clock; `None` is until the turn ends."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        timer = None
        if seconds is not None:
            timer = self.clock.call_in(seconds, lambda: None if future.done() else future.set_result(None))
        run.steps.park(future)
        try:
            await future
        finally:
            if timer is not None:
                timer.cancel()

    def spawn(self, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run something of the engine's own, until `close` at the latest."""
        # In a context of its own: made inside a turn, it would count, and end, with that turn's tasks.
        task = asyncio.get_running_loop().create_task(coroutine, context=Context())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    # Inside

    def _lock(self, session: Session) -> asyncio.Lock:
        """What has a session's workspace brought up by one at a time."""
        lock = self._locks.get(session.id)
        if lock is None:
            lock = self._locks[session.id] = asyncio.Lock()
        return lock

    def _check_exists(self, session: Session) -> None:
        if self.rest.over:
            raise reset_meanwhile()
        if session.deleted:
            raise not_found(f"No session {session.id!r}.")

    def _begin(
        self, organization: Organization, session: Session, turn: Turn, start: Start, steers: Sequence[str] = ()
    ) -> None:
        """Set the agent going on a turn whose message is in the conversation."""
        self.workspaces.come_up(session, start)
        machine = self.workspaces.machine(session)
        run = Run(
            organization,
            session,
            turn,
            self.workspaces.tools(session),
            machine.servers,
            machine.unreachable,
            Steps(
                f"turn {turn.id}",
                self._holder,
                blocked=lambda stack: self._blocked(run, stack),
                lost=lambda error: self._script_failed(run, error),
            ),
            self.states.get(session.id, {}),
            session.agent.approval_mode,
            list(session.agent.permission_rules),
            steers=list(steers),
        )
        self._runs[session.id] = run
        self.feed.pump(organization)
        task = run.steps.start(self._play(run))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _play(self, run: Run) -> None:
        session, turn = run.session, run.turn
        try:
            if self.world.settings.pace == "realistic":
                await self.clock.pause(0.3 + 0.2 * self.world.ids.fraction("start", turn.id, 0))
            run.check()
            session.start(turn)
            self.feed.pump(run.organization)
            if session.agent.model_credential_id is None:
                raise Failed("provider_unauthorized", NO_MODEL)
            facts = run.facts(self.world.settings.disabled_tools)
            part = self.script.choose(facts)
            if part is None:
                misses = self.script.misses(facts)
                about = {"session_id": session.id, "turn_id": turn.id, "request_id": turn.request_id}
                self.unmatched.append(
                    {**about, "message": turn.text, "rules": [scrub_value(miss.as_json()) for miss in misses]}
                )
                raise Failed("internal_error", unanswered(misses))
            await part.play(TurnVerbs(self, run))
        except Failed as failed:
            if not turn.settled:
                self._settle(run, "fail", {"code": failed.code, "message": failed.message})
        except asyncio.CancelledError:
            # Somebody cancelled the turn, deleted the session or stopped the emulator.
            if not turn.settled and not session.deleted and not self.rest.over:
                self._script_failed(run, ScriptError("the agent's task was cancelled by its own code"))
        except TurnOver as over:
            if not turn.settled and not session.deleted and not self.rest.over:
                self._script_failed(run, over)
        except BaseException as error:
            # pytest.fail and its like are not Exceptions, and are as much the script's failure.
            if session.deleted or self.rest.over:
                return
            self._script_failed(run, error)
        else:
            if not turn.settled and not session.deleted:
                self._settle(run, "complete")
        finally:
            # What the script left running can do nothing any more.
            run.steps.cancel()

    def _script_failed(self, run: Run, error: BaseException) -> None:
        fault = fault_of(run, error)
        self.script_errors.append(fault)
        LOG.error("script error in session %s, at %s: %s", fault.session_id, fault.where, fault.message)
        if not run.turn.settled and not run.session.deleted and not self.rest.over:
            told = f"The script failed at {fault.where}: {fault.message}"
            self._settle(run, "fail", {"code": "internal_error", "message": told})
            # The error may be that of a task beside the script, which then waits for nothing any more.
            run.steps.cancel()

    def _settle(
        self,
        run: Run,
        command: Literal["complete", "fail", "cancel"],
        error: dict[str, str] | None = None,
    ) -> None:
        session, turn = run.session, run.turn
        session.settle(turn, command, error)
        if self._runs.get(session.id) is run:
            del self._runs[session.id]
        if run.state:
            self.states[session.id] = run.state
        self.publications.begin(run.organization, session, turn)
        self.feed.pump(run.organization)
        self._go_on(run.organization, session)

    def _go_on(self, organization: Organization, session: Session) -> None:
        """A turn has settled: begin the next, or let the workspace be idle."""
        if session.queue:
            self._between[session.id] = []
            self.spawn(self._next(organization, session))
        else:
            self.workspaces.rest(session)

    async def _next(self, organization: Organization, session: Session) -> None:
        """Begin the turn that waited behind the one that settled."""
        async with self._lock(session):
            if session.deleted or session.current is not None or not session.queue:
                self._between.pop(session.id, None)
                if not session.deleted and not session.busy:
                    self.workspaces.rest(session)
                return
            try:
                start = await self.workspaces.connect(session)
            except Refusal as refused:
                self._between.pop(session.id, None)
                problem = refused.problem if isinstance(refused, RequiredServersDown) else refused.message
                error = {"code": refused.code, "message": problem}
                self._end_next(organization, session, "fail", error, origin="sandbox")
                self.feed.pump(organization)
                self._go_on(organization, session)
                return
            steers = self._between.pop(session.id, [])
            if organization.find(session.id) is None:
                return
            turn = session.dequeue()
            assert turn is not None
            self._begin(organization, session, turn, start, steers)

    def _end_next(
        self,
        organization: Organization,
        session: Session,
        command: Literal["fail", "cancel"],
        error: dict[str, str] | None = None,
        *,
        origin: str | None = None,
    ) -> None:
        """End the turn that waits first without its having begun."""
        turn = session.dequeue()
        if turn is not None:
            session.settle(turn, command, error, origin=origin)
            self.publications.begin(organization, session, turn)

    def _workspace_moved(self, session: Session) -> None:
        """The clock paused or reclaimed a workspace; a turn open on a reclaimed one fails."""
        run = self._runs.get(session.id)
        if run is not None and session.workspace.state == "destroyed":
            message = "The workspace reached its two hours and was reclaimed before the turn ended."
            self._settle(run, "fail", {"code": "sandbox_unavailable", "message": message})
            run.steps.cancel()
        found = self.world.find_session(session.id)
        if found is not None:
            self.feed.pump(found[0])

    def _blocked(self, run: Run, stack: str) -> None:
        """Called by the watchdog, from its own thread."""
        self.blocked.append(f"The agent of session {run.session.id} blocks the event loop:\n{stack}")
