"""Rest: whether an agent can go on without somebody outside, and waiting until none can (design, "At rest")."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from emulator.clock import monotonic
from emulator.runtime.stepping import current_steps

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from emulator.clock import Clock
    from emulator.domain.session import Session
    from emulator.domain.world import World
    from emulator.runtime.delivery import Deliveries
    from emulator.runtime.publications import Publications
    from emulator.runtime.run import Run

# Passes of the loop that must find nothing to do before an agent counts as at rest: a finished task
# reaches whoever awaits it through a callback, and that one through another.
_QUIET_PASSES: Final = 3


class Rest:
    """The rest of one world. `runs` and `between` are the engine's: turns the agent is on, and sessions
    between two turns. `over`: the engine is closing, and nothing is waited for any more."""

    def __init__(
        self,
        world: World,
        clock: Clock,
        runs: Mapping[str, Run],
        between: Collection[str],
        deliveries: Deliveries,
        publications: Publications,
    ) -> None:
        self.over = False
        # The replies that went out although the agent was still at it.
        self.missed: list[dict[str, Any]] = []
        self._world = world
        self._clock = clock
        self._runs = runs
        self._between = between
        self._deliveries = deliveries
        self._publications = publications

    def has(self, session: Session) -> bool:
        """Whether nothing of a session can go on without somebody outside."""
        if self.over:
            return True
        if session.id in self._between:
            return False
        run = self._runs.get(session.id)
        # An agent that waits for rest does not wait for itself.
        return run is None or run.at_rest or run.steps is current_steps()

    async def of(self, session: Session, request_id: str | None = None) -> bool:
        """Wait until a session is at rest, at most `rest_seconds` of real time; then report it.

        Gives whether it came to rest.
        """
        restless = await self._until(lambda: () if self.has(session) else (session.id,), self._bound)
        self._report(restless, request_id)
        return not restless

    async def of_all(self, seconds: float | None = None, *, report: bool = True) -> bool:
        """Wait until every session is at rest, as `of` does for one, and no webhook is due or under way.

        `seconds` is another bound.
        """
        until = monotonic() + (self._bound if seconds is None else seconds)
        restless = await self._until(self._restless, until - monotonic())
        quiet = True
        while not restless and self._deliveries.busy and quiet:
            # Who is told of something may do something.
            quiet = await self._deliveries.quiet(until - monotonic())
            restless = await self._until(self._restless, until - monotonic())
        if report:
            self._report(restless, None)
        return not restless and quiet

    async def settle(self, seconds: float) -> bool:
        """Wait as `of_all` does, and for what turns left to be published. Gives whether all came to rest."""
        until = monotonic() + seconds
        while await self.of_all(max(0.0, until - monotonic()), report=False):
            if not self._publications.soon:
                return True
            if not await self._publications.wait(until):
                return False
        return False

    async def advance(self, seconds: float) -> int:
        """Move the clock, the agent coming to rest after each deadline; one bound holds for all of it together."""
        until = monotonic() + self._bound

        async def settle() -> None:
            # Those that can run get their turn, however long another one kept everybody waiting.
            await self.of_all(max(0.05, until - monotonic()))

        return await self._clock.advance(seconds, settle)

    @property
    def _bound(self) -> float:
        return self._world.settings.rest_seconds

    def _restless(self) -> Sequence[str]:
        if self.over:
            return ()
        return [*self._between, *(run.session.id for run in self._runs.values() if not self.has(run.session))]

    def _report(self, restless: Sequence[str], request_id: str | None) -> None:
        for session_id in restless:
            run = self._runs.get(session_id)
            turn_id = None if run is None else run.turn.id
            told = {"session_id": session_id, "turn_id": turn_id, "request_id": request_id}
            if told not in self.missed:
                self.missed.append(told)

    async def _until(self, restless: Callable[[], Sequence[str]], seconds: float) -> Sequence[str]:
        """Wait until `restless` names no session, at most real `seconds`. Gives those it names then.

        While an agent waits for something of its own this waits with it, and does not spin.
        """
        until = monotonic() + seconds
        quiet = 0
        while quiet < _QUIET_PASSES:
            names = restless()
            if not names:
                quiet += 1
                await asyncio.sleep(0)
                continue
            quiet = 0
            left = until - monotonic()
            if left <= 0:
                return names
            steps = [self._runs[name].steps for name in names if name in self._runs]
            if len(steps) < len(names) or any(step.runnable for step in steps):
                await asyncio.sleep(0)
            else:
                await asyncio.wait([step.moved() for step in steps], timeout=left, return_when=asyncio.FIRST_COMPLETED)
        return ()
