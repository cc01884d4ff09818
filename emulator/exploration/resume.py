"""Resuming: every event stream is cut once, right after one event."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from emulator.exploration.part import Part, Variant

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from emulator.domain.event_log import Event
    from emulator.domain.world import Organization
    from emulator.runtime.deployment import Deployment
    from emulator.runtime.feed import Reader


@dataclass(frozen=True, slots=True)
class _Seen:
    organization: str
    session_id: str
    seq: int
    type: str


class Resume(Part):
    """Cuts the streams that carry the event of a seq. By turns of seq the cut is the proper end of the response
    and a connection that is just gone: clients meet both, and go different ways.

    A stream that is opened once its like has been cut stays whole, or a client that reads everything from the
    start would never be done. The reconnect delay is 0.
    """

    def __init__(self, deployment: Deployment, variant: str) -> None:
        super().__init__(deployment, variant)
        self._events: list[_Seen] = []
        self._streamed: set[tuple[str, str | None]] = set()
        self._cut: set[tuple[str, str | None]] = set()
        if variant:
            deployment.world.settings = replace(deployment.world.settings, retry_ms=0)

    def variants(self) -> Sequence[Variant]:
        return [
            Variant(
                f"resume_everywhere:{seen.seq}",
                f"every event stream {'is gone' if _gone(seen.seq) else 'ends'} right after event {seen.seq}, "
                f"{seen.type}",
            )
            for seen in self._events
            if {(seen.organization, seen.session_id), (seen.organization, None)} & self._streamed
        ]

    def happened(self, organization: Organization, events: Sequence[Event]) -> None:
        if not self.variant:
            self._events += [_Seen(organization.id, event.session_id, event.seq, event.type) for event in events]

    def stream(self, reader: Reader, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        self._streamed.add(reader.key)
        if not self.variant or reader.key in self._cut:
            return chunks
        return self._until(int(self.variant), reader, chunks)

    async def _until(self, seq: int, reader: Reader, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        # JSON has no line ends in it: this can only be where a frame begins.
        mark = b"\n\nid: %d\n" % seq
        async for chunk in chunks:
            at = (b"\n\n" + chunk).find(mark)
            if at < 0:
                yield chunk
                continue
            self._cut.add(reader.key)
            self.reached = True
            # What comes behind it in this chunk goes to nobody.
            reader.sent = seq
            yield chunk[: chunk.index(b"\n\n", at) + 2]
            if _gone(seq):
                if not reader.overrun.done():
                    reader.overrun.set_result(None)
                await asyncio.get_running_loop().create_future()
            return


def _gone(seq: int) -> bool:
    return seq % 2 == 1
