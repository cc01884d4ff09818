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

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from emulator.domain.event_log import Event
    from emulator.domain.world import Organization, World

DROP_BYTES: Final = 1024 * 1024
CLOSE_BYTES: Final = 8 * 1024 * 1024
BATCH: Final = 256

_PING: Final = b": ping\n\n"


class _Tape:
    """Live frames of one session, or of one organization, kept while somebody has yet to read them."""

    def __init__(self) -> None:
        self.frames: list[tuple[bytes, bool, str]] = []
        self.start = 0
        self.readers: set[Reader] = set()

    def add(self, frame: bytes, transient: bool, session_id: str) -> None:
        self.frames.append((frame, transient, session_id))
        for reader in self.readers:
            reader.offer(len(frame))

    def after(self, position: int) -> list[tuple[bytes, bool, str]]:
        """The next frames from a position on, at most a batch."""
        start = position - self.start
        return self.frames[start : start + BATCH]

    def trim(self) -> None:
        read = min((reader.position for reader in self.readers), default=self.start + len(self.frames))
        if read - self.start >= BATCH or not self.readers:
            del self.frames[: read - self.start]
            self.start = read


class Feed:
    """The live side of every organization's event log."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._tapes: dict[tuple[str, str | None], _Tape] = {}
        self._cursors: dict[str, int] = {}
        self._readers: set[Reader] = set()

    def pump(self, organization: Organization) -> None:
        """Pass on what has been recorded since the last call."""
        log = organization.log
        cursor = self._cursors.get(organization.id, 0)
        if cursor == log.last_seq:
            return
        self._cursors[organization.id] = log.last_seq
        if self._tapes:
            for event in log.of(None)[log.after(cursor, None) :]:
                self._put(organization.id, event.session_id, event.frame, transient=False)

    def transient(self, organization: Organization, session_id: str, event_type: str, payload: dict[str, str]) -> None:
        """Show a frame to whoever is reading now, and keep it nowhere."""
        self.pump(organization)
        if self.watched(organization, session_id):
            frame = organization.log.transient(session_id, event_type, payload, self._world.now())
            self._put(organization.id, session_id, frame, transient=True)

    def watched(self, organization: Organization, session_id: str) -> bool:
        """Whether anybody reads this session's frames now."""
        return (organization.id, session_id) in self._tapes or (organization.id, None) in self._tapes

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
        tape = self._tapes.setdefault(key, _Tape())
        backlog: Sequence[Event] = ()
        if cursor is not None:
            log = organization.log
            backlog = log.of(session_id)[log.after(cursor, session_id) :]
            if member is not None:
                backlog = [event for event in backlog if member(event.session_id)]
        reader = Reader(self, key, tape, token_id, request_id, backlog, member)
        tape.readers.add(reader)
        self._readers.add(reader)
        return reader

    def close(self, reader: Reader) -> None:
        """Forget a reader; its slot is free."""
        self._readers.discard(reader)
        tape = reader.tape
        tape.readers.discard(reader)
        if tape.readers:
            tape.trim()
        else:
            self._tapes.pop(reader.key, None)

    def readers(self) -> list[Reader]:
        """Every open reader."""
        return list(self._readers)

    def open_streams(self, organization_id: str) -> list[Reader]:
        """The readers of one organization."""
        return [reader for reader in self._readers if reader.key[0] == organization_id]

    def end_session(self, organization: Organization, session_id: str) -> None:
        """End the streams of a deleted session, after what they have not read yet."""
        self.pump(organization)
        tape = self._tapes.get((organization.id, session_id))
        for reader in list(tape.readers) if tape is not None else ():
            reader.end()

    def end(self) -> None:
        """End every stream."""
        for reader in list(self._readers):
            reader.end()

    @property
    def settings(self) -> tuple[float, int, int]:
        """Seconds between pings, the reconnect delay in ms, the replay ceiling."""
        settings = self._world.settings
        return settings.ping_seconds, settings.retry_ms, settings.replay_limit

    def _put(self, organization_id: str, session_id: str, frame: bytes, *, transient: bool) -> None:
        for key in ((organization_id, session_id), (organization_id, None)):
            tape = self._tapes.get(key)
            if tape is not None:
                tape.add(frame, transient, session_id)


class Reader:
    """One open stream. Iterate `chunks()`; `overrun` is done when the reader was too slow."""

    def __init__(
        self,
        feed: Feed,
        key: tuple[str, str | None],
        tape: _Tape,
        token_id: str,
        request_id: str | None,
        backlog: Sequence[Event],
        member: Callable[[str], bool] | None,
    ) -> None:
        self.key = key
        self.tape = tape
        self.token_id = token_id
        self.request_id = request_id
        self.position = tape.start + len(tape.frames)
        self.overrun = asyncio.get_running_loop().create_future()
        self._feed = feed
        self._backlog = backlog
        self._member = member
        self._unread = 0
        self._ended = False
        self._waiter: asyncio.Future[bool] | None = None

    def offer(self, size: int) -> None:
        """Note a new frame on the tape, and wake up for it."""
        self._unread += size
        if self._unread > CLOSE_BYTES and not self.overrun.done():
            self.overrun.set_result(None)
        self._wake()

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
            # Others are served between batches, however fast this reader is.
            await asyncio.sleep(0)
        if len(backlog) > replay_limit:
            yield render.replay_truncated(backlog[replay_limit - 1].seq, replay_limit)
        del backlog
        while True:
            live = self._take()
            if live:
                yield live
            elif self._ended:
                return
            elif not await self._woken(ping_seconds):
                yield _PING

    def _take(self) -> bytes:
        """The next frames this reader wants, in one piece; moves on past them."""
        while batch := self.tape.after(self.position):
            behind = self._unread > DROP_BYTES
            self.position += len(batch)
            self._unread -= sum(len(frame) for frame, _, _ in batch)
            wanted = [
                frame
                for frame, transient, session_id in batch
                if not (behind and transient) and (self._member is None or self._member(session_id))
            ]
            if wanted:
                self.tape.trim()
                return b"".join(wanted)
        self.tape.trim()
        return b""

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
