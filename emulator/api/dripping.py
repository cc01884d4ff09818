"""Dripping: an event stream that meets a fault.

Law: what a client was not sent whole counts as not sent. Frames are known by their ends: JSON has no line ends in it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from emulator.api.faulty import Meeting
    from emulator.runtime.feed import Reader


async def altered(meeting: Meeting, reader: Reader, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The bytes of a stream as its fault has them sent."""
    fault = meeting.fault
    place = _Place(meeting)
    # Nothing comes after a cut, nor after a stall that ends with the stream.
    last = fault.cut is not None or fault.stall == "forever"
    whole = reader.start
    async for chunk in chunks:
        for frame in _frames(chunk):
            sent = _announced(meeting, frame)
            before, rest = place.split(sent)
            if rest is not None:
                # What comes behind goes to nobody.
                reader.sent = whole
                if before:
                    yield before
                await _strike(meeting, reader)
                if last:
                    return
                sent = rest
            async for piece in _pieces(meeting, sent, place.copies(frame)):
                yield piece
            if frame.startswith(b"id: "):
                whole = reader.sent = int(frame[4 : frame.index(b"\n")])
            if place.passed(frame):
                reader.sent = whole
                await _strike(meeting, reader)
                if last:
                    return


def _frames(chunk: bytes) -> Iterator[bytes]:
    return (frame + b"\n\n" for frame in chunk.split(b"\n\n")[:-1])


def _is_event(frame: bytes) -> bool:
    return frame.startswith((b"id: ", b"event: "))


def _announced(meeting: Meeting, frame: bytes) -> bytes:
    """The frame, or another one that tells the reconnect delay."""
    retry = meeting.fault.retry
    if retry is None or not frame.startswith(b"retry: "):
        return frame
    meeting.acts()
    return b"" if retry == "absent" else b"retry: %d\n\n" % retry


async def _pieces(meeting: Meeting, frame: bytes, copies: int) -> AsyncIterator[bytes]:
    """A frame as often as it is sent, and as slowly."""
    if copies > 1:
        meeting.acts()
    drip = meeting.fault.drip
    for _ in range(copies):
        if drip is None:
            if frame:
                yield frame
            continue
        meeting.acts()
        for at in range(0, len(frame), drip["bytes"]):
            yield frame[at : at + drip["bytes"]]
            await meeting.deployment.clock.pause(drip["seconds"])


async def _strike(meeting: Meeting, reader: Reader) -> None:
    """Cut the stream, or hold it up."""
    fault = meeting.fault
    meeting.acts()
    if fault.cut is None:
        await reader.ended(None if fault.stall == "forever" else fault.stall)
        return
    if fault.cut == "end" or meeting.connection is None:
        return
    if fault.cut == "reset":
        await meeting.arrived()
        meeting.connection.reset()
    else:
        meeting.connection.close()
    # Whoever waits for the client to leave ends it all.
    await asyncio.get_running_loop().create_future()


class _Place:
    """Where in a stream a cut or a stall happens, and which of its events come twice. It happens once."""

    def __init__(self, meeting: Meeting) -> None:
        self._fault = meeting.fault
        self._strikes = meeting.fault.cut is not None or meeting.fault.stall is not None
        self._events = 0
        self._bytes = 0

    def split(self, frame: bytes) -> tuple[bytes, bytes | None]:
        """The part of a frame before the place and what follows, where it is within this one; else all, and `None`."""
        if not self._strikes:
            return frame, None
        at = self._within(frame)
        self._bytes += len(frame)
        if at is None:
            return frame, None
        self._strikes = False
        return frame[:at], frame[at:]

    def passed(self, frame: bytes) -> bool:
        """Count a frame that was sent. Whether the place is right behind it."""
        self._events += _is_event(frame)
        fault = self._fault
        if not self._strikes or fault.inside is not None or fault.after_bytes is not None:
            return False
        behind = self._events == (fault.after_event or 0)
        self._strikes = not behind
        return behind

    def copies(self, frame: bytes) -> int:
        """How often a frame is sent."""
        duplicate = self._fault.duplicate
        return 2 if _is_event(frame) and duplicate in ("all", self._events + 1) else 1

    def _within(self, frame: bytes) -> int | None:
        fault = self._fault
        if fault.after_bytes is not None:
            at = fault.after_bytes - self._bytes
            return at if at <= len(frame) else None
        if fault.inside is None or self._events < (fault.after_event or 0) or not _is_event(frame):
            return None
        if fault.inside == "frame":
            return len(frame) // 2
        return next((at + 1 for at, byte in enumerate(frame) if byte >= 0xC0), None)
