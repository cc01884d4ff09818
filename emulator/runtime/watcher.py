"""The watcher: puts what clients ask, what happens and what streams were sent into the record of findings.

Law: it changes nothing of what it watches, costs next to nothing, and judges only when asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from emulator.clock import stopwatch
from emulator.domain.findings.record import Happening, Record, Watch

if TYPE_CHECKING:
    from collections.abc import Mapping

    from emulator.domain.event_log import Event, EventLog
    from emulator.domain.findings.record import Exchange
    from emulator.domain.world import Organization, World
    from emulator.runtime.feed import Reader

# Where an event tells the id that rules know it by.
_REFS: Final[Mapping[str, str]] = {
    "tool.required": "toolCallId",
    "tool.resolved": "toolCallId",
    "approval.requested": "toolCallId",
    "approval.resolved": "toolCallId",
    "question.asked": "toolCallId",
    "question.answered": "toolCallId",
    "artifact.created": "turn_id",
    "mcp.unavailable": "server",
}


class Watcher:
    """The observer of one world, from its beginning to its end."""

    def __init__(self, world: World) -> None:
        self.record = Record()
        # Sessions whose tools were replaced while their workspace ran: which tools are used there matters.
        self.replaced: set[str] = set()
        self._world = world
        self._cursors: dict[str, int] = {}
        self._open: dict[Reader, Watch] = {}

    def moment(self) -> tuple[float, int]:
        """Now, in real seconds and in the clock's milliseconds."""
        return stopwatch(), self._world.now()

    def pump(self, organization: Organization) -> None:
        """Take note of the events since the last call."""
        log = organization.log
        cursor = self._cursors.get(organization.id, 0)
        if cursor == log.last_seq:
            return
        self._cursors[organization.id] = log.last_seq
        for event in log.of(None)[log.after(cursor, None) :]:
            if event.type:
                self.record.add(self._happening(organization.id, log, event))

    def asked(self, exchange: Exchange) -> None:
        """Take note of a request that was answered, after what it led to."""
        self.pump(self._world.organization(exchange.organization))
        self.record.add(exchange)

    def opened(self, reader: Reader, members: frozenset[str] | None, *, cursor: bool) -> None:
        """Take note of a stream."""
        self.pump(self._world.organization(reader.key[0]))
        organization_id, session_id = reader.key
        request_id = reader.request_id or ""
        watch = Watch(organization_id, session_id, request_id, members, cursor, reader.start, reader.sent)
        self._open[reader] = watch
        self.record.open(watch)

    def closed(self, reader: Reader) -> None:
        """Take note of a stream's end."""
        watch = self._open.pop(reader, None)
        if watch is not None:
            watch.sent = reader.sent
            watch.end = self.record.next()

    def seen(self) -> Record:
        """Everything up to now."""
        for organization in self._world.organizations():
            self.pump(organization)
        for reader, watch in self._open.items():
            watch.sent = reader.sent
        return self.record

    def _happening(self, organization_id: str, log: EventLog, event: Event) -> Happening:
        happening = Happening(organization_id, event.seq, event.session_id, event.type, event.created_at)
        if event.type in ("turn.started", "turn.ended"):
            # The most frequent ones, and there is nothing else in them.
            happening.ref = event.frame.partition(b'"turnId":"')[2].partition(b'"')[0].decode()
            return happening
        ref = _REFS.get(event.type)
        if ref is not None or (event.type == "agent.tool_call" and event.session_id in self.replaced):
            payload = log.payload(event)
            happening.ref = payload.get(ref or "toolCallId")
            happening.name = payload.get("name") or payload.get("toolName")
        return happening
