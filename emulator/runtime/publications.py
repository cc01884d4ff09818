"""Publications: what a settled turn left becomes artifacts, at once or a while later (design, "Pace")."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from emulator.clock import monotonic

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any

    from emulator.clock import Clock
    from emulator.domain.session import Session, Turn
    from emulator.domain.world import Organization, World
    from emulator.runtime.feed import Feed


class Publications:
    """The publications of one world. `spawn` runs a task until the engine is closed."""

    def __init__(
        self,
        world: World,
        clock: Clock,
        feed: Feed,
        spawn: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]],
    ) -> None:
        self._world = world
        self._clock = clock
        self._feed = feed
        self._spawn = spawn
        # What is published a moment of real time from now, whatever the clock does.
        self.soon: set[asyncio.Task[None]] = set()

    def begin(self, organization: Organization, session: Session, turn: Turn) -> None:
        """Publish what a turn that has just settled left behind, as late as the settings say."""
        settings = self._world.settings
        if settings.publication_seconds > 0:
            self._clock.call_in(settings.publication_seconds, lambda: self.publish(organization, session, turn))
        elif settings.pace == "instant":
            self.publish(organization, session, turn)
        else:
            task = self._spawn(self._publish_soon(organization, session, turn))
            self.soon.add(task)
            task.add_done_callback(self.soon.discard)

    def publish(self, organization: Organization, session: Session, turn: Turn) -> None:
        """Publish it now, or have that fail where it is scripted to."""
        if not session.deleted:
            session.publish(turn, works=self._world.settings.publication == "works")
            self._feed.pump(organization)

    async def wait(self, until: float) -> bool:
        """Wait for what is published soon, until `monotonic` gives `until`. Gives whether all of it was.

        What waits for the emulator's clock is not waited for.
        """
        while self.soon and (left := until - monotonic()) > 0:
            await asyncio.wait(self.soon, timeout=left)
        return not self.soon

    async def _publish_soon(self, organization: Organization, session: Session, turn: Turn) -> None:
        await self._clock.pause(0.05 + 0.1 * self._world.ids.fraction("publish", turn.id, 0))
        self.publish(organization, session, turn)
