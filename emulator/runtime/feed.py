"""The feed: wakes the readers of event streams and hands them frames.

Law: a reader of the event log like any other, with a cursor for each organization. A frame is
passed on as the bytes the log keeps, to any number of readers; a slow reader delays nobody and
holds a bounded amount: past 1 MiB unread it loses transient frames, past 8 MiB its stream is closed
(contract §9).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from emulator import render
from emulator.clock import monotonic

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from emulator.domain.event_log import Event
    from emulator.domain.world import Organization, World

DROP_BYTES: Final = 1024 * 1024
CLOSE_BYTES: Final = 8 * 1024 * 1024
BATCH: Final = 256
# How often the agent waits for a reader that takes nothing.
PATIENCE: Final = 200

_PING: Final = b": ping\n\n"
# Seconds between two looks of something that waits for good.
_LONG: Final = 3600.0


class Feed:
    """The live side of every organization's event log."""

    def __init__(self, world: World) -> None:
        self._world = world
        # Open readers by what they read: one session, or (`None`) the organization.
        self._readers: dict[tuple[str, str | None], set[Reader]] = {}
        self._cursors: dict[str, int] = {}
        # Other readers of the log, told after every command that something may have changed.
        self.listeners: list[Callable[[Organization], None]] = []

    def pump(self, organization: Organization) -> None:
        """Pass on what has been recorded since the last call."""
        log = organization.log
        cursor = self._cursors.get(organization.id, 0)
        if cursor != log.last_seq:
            self._cursors[organization.id] = log.last_seq
            if self._readers:
                for event in log.of(None)[log.after(cursor, None) :]:
                    self._put(organization.id, event.session_id, event.frame, event.seq)
        for listener in self.listeners:
            listener(organization)

    def transient(self, organization: Organization, session_id: str, event_type: str, payload: dict[str, str]) -> None:
        """Show a frame to whoever is reading now, and keep it nowhere."""
        self.pump(organization)
        if self.watched(organization, session_id):
            frame = organization.log.transient(session_id, event_type, payload, self._world.now())
            self._put(organization.id, session_id, frame, None)

    def watched(self, organization: Organization, session_id: str) -> bool:
        """Whether anybody reads this session's frames now."""
        return (organization.id, session_id) in self._readers or (organization.id, None) in self._readers

    def lags(self, organization: Organization, session_id: str) -> bool:
        """Whether to wait a moment for a reader of this session's frames that has much to read yet.

        One that does not read at all is not waited for after a while: it delays nobody.
        """
        waited_for = False
        for key in ((organization.id, session_id), (organization.id, None)):
            for reader in self._readers.get(key, ()):
                if reader.behind and reader.patience:
                    reader.patience -= 1
                    waited_for = True
        return waited_for

    def open(
        self,
        organization: Organization,
        session_id: str | None,
        *,
        token_id: str,
        request_id: str | None = None,
        cursor: int | None,
        member: Callable[[str], bool] | None = None,
    ) -> Reader:
        """A reader of one session, or (`None`) of the organization narrowed by `member`.

        `cursor` replays what was persisted after that seq first; `None` gives live frames only.
        The caller closes the reader.
        """
        self.pump(organization)
        key = (organization.id, session_id)
        backlog: Sequence[Event] = ()
        if cursor is not None:
            log = organization.log
            backlog = log.of(session_id)[log.after(cursor, session_id) :]
            if member is not None:
                backlog = [event for event in backlog if member(event.session_id)]
        reader = Reader(self, key, token_id, request_id, backlog, member)
        reader.start = reader.sent = organization.log.last_seq if cursor is None else cursor
        self._readers.setdefault(key, set()).add(reader)
        return reader

    def close(self, reader: Reader) -> None:
        """Forget a reader; its slot is free."""
        readers = self._readers.get(reader.key)
        if readers is not None:
            readers.discard(reader)
            if not readers:
                del self._readers[reader.key]

    def readers(self, organization_id: str | None = None) -> list[Reader]:
        """Every open reader, or those of one organization."""
        return [
            reader
            for (owner, _), readers in self._readers.items()
            if organization_id in (None, owner)
            for reader in readers
        ]

    def end_session(self, organization: Organization, session_id: str) -> None:
        """End the streams of a deleted session, after what they have not read yet."""
        self.pump(organization)
        for reader in self._readers.get((organization.id, session_id), ()):
            reader.end()

    def end(self) -> None:
        """End every stream."""
        for reader in self.readers():
            reader.end()

    def now(self) -> int:
        """The time on the emulator's clock."""
        return self._world.now()

    @property
    def settings(self) -> tuple[float, int, int]:
        """Seconds between pings, the reconnect delay in ms, the replay ceiling."""
        settings = self._world.settings
        return settings.ping_seconds, settings.retry_ms, settings.replay_limit

    def _put(self, organization_id: str, session_id: str, frame: bytes, seq: int | None) -> None:
        for key in ((organization_id, session_id), (organization_id, None)):
            for reader in self._readers.get(key, ()):
                reader.offer(frame, session_id, seq)


class Reader:
    """One open stream. Iterate `chunks()`; `overrun` is done when the reader was too slow.

    Frames that wait to be read are references to those of the log: a reader holds no copy.
    """

    def __init__(
        self,
        feed: Feed,
        key: tuple[str, str | None],
        token_id: str,
        request_id: str | None,
        backlog: Sequence[Event],
        member: Callable[[str], bool] | None,
    ) -> None:
        self.key = key
        self.token_id = token_id
        self.request_id = request_id
        self.patience = PATIENCE
        # What it has been sent: what was persisted after the one and up to the other.
        self.start = self.sent = 0
        self.overrun = asyncio.get_running_loop().create_future()
        self._feed = feed
        self._backlog = backlog
        self._member = member
        self._waiting: list[bytes] = []
        self._unread = 0
        self._newest = 0
        self._ended = False
        self._waiter: asyncio.Future[bool] | None = None

    def offer(self, frame: bytes, session_id: str, seq: int | None) -> None:
        """Hand a new frame over; wakes the reader up. One without a `seq` is dropped when too much waits."""
        if self._member is not None and not self._member(session_id):
            return
        if seq is None and self.behind:
            return
        if seq is not None:
            self._newest = seq
        self._waiting.append(frame)
        self._unread += len(frame)
        if self._unread > CLOSE_BYTES and not self.overrun.done():
            self.overrun.set_result(None)
        self._wake()

    @property
    def behind(self) -> bool:
        """Whether so much waits that transient frames are dropped."""
        return self._unread > DROP_BYTES

    def end(self) -> None:
        """Finish after what is already there."""
        self._ended = True
        self._wake()

    async def chunks(self) -> AsyncIterator[bytes]:
        """The bytes of the stream: the reconnect delay, the backlog, then live frames and pings."""
        ping_seconds, retry_ms, replay_limit = self._feed.settings
        yield b"retry: %d\n\n" % retry_ms
        backlog, self._backlog = self._backlog, ()
        for start in range(0, min(len(backlog), replay_limit), BATCH):
            batch = backlog[start : min(start + BATCH, replay_limit)]
            yield b"".join([event.frame for event in batch])
            self.sent = batch[-1].seq
            # Others are served between batches, however fast this reader is.
            await asyncio.sleep(0)
        if len(backlog) > replay_limit:
            yield render.replay_truncated(backlog[replay_limit - 1].seq, replay_limit, self.key[1], self._feed.now())
        del backlog
        while True:
            if self._waiting:
                frames, self._waiting = self._waiting[:BATCH], self._waiting[BATCH:]
                live = b"".join(frames)
                self._unread -= len(live)
                self.patience = PATIENCE
                if not self._waiting:
                    self.sent = max(self.sent, self._newest)
                yield live
            elif self._ended:
                return
            elif not await self._woken(ping_seconds):
                yield _PING

    async def ended(self, seconds: float | None) -> None:
        """Wait until it is to end, at most so many real seconds if any, whatever there is to send meanwhile."""
        until = None if seconds is None else monotonic() + seconds
        while not self._ended:
            left = _LONG if until is None else until - monotonic()
            if left <= 0:
                return
            await self._woken(left)

    async def _woken(self, seconds: float) -> bool:
        """Wait for a frame. `False` when `seconds` passed without one."""
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[bool] = loop.create_future()
        self._waiter = waiter
        timer = loop.call_later(seconds, lambda: None if waiter.done() else waiter.set_result(False))
        try:
            return await waiter
        finally:
            timer.cancel()
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(True)
