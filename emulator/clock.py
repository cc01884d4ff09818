"""The clock: the only place that reads the time or sleeps.

Two kinds of time. The emulator's clock is what the API shows and what deadlines run on; it is
virtual (moved by persisted events and `advance`) or real plus what `advance` added. Real seconds
are for what a client waits for whatever the clock says: pings, pacing, bounds.

The process's own time functions are captured inside a class when this module is imported: libraries
that freeze time in a test replace module attributes, and must not stop the server.
"""

from __future__ import annotations

import asyncio
import time
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

EPOCH_MS: Final = 1_767_225_600_000  # 2026-01-01T00:00:00Z, where virtual time starts


class _Process:
    """The process's time functions as they were at import."""

    monotonic = staticmethod(time.monotonic)
    perf_counter = staticmethod(time.perf_counter)
    time_ns = staticmethod(time.time_ns)
    thread_clock = staticmethod(getattr(time, "pthread_getcpuclockid", lambda ident: None))
    clock_gettime = staticmethod(getattr(time, "clock_gettime", lambda clock: 0.0))


def monotonic() -> float:
    """Seconds of a clock that never goes back and that nobody's test freezes."""
    return _Process.monotonic()


def stopwatch() -> float:
    """Seconds of the finest clock, for durations."""
    return _Process.perf_counter()


def real_now() -> int:
    """Real Unix milliseconds."""
    return _Process.time_ns() // 1_000_000


def thread_seconds(thread_id: int) -> float | None:
    """The processor time a thread has used, in seconds; `None` where the system does not tell."""
    clock = _Process.thread_clock(thread_id)
    return None if clock is None else _Process.clock_gettime(clock)


class Timer:
    """Something due at a time on the emulator's clock. `cancel()` forgets it."""

    __slots__ = ("callback", "order", "when")

    def __init__(self, when: int, order: int, callback: Callable[[], None]) -> None:
        self.when = when
        self.order = order
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        self.callback = None

    def __lt__(self, other: Timer) -> bool:
        return (self.when, self.order) < (other.when, other.order)


def _end(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


class Clock:
    """The emulator's clock, in Unix milliseconds.

    Virtual: starts at 2026-01-01T00:00:00Z and stands still but for `stamp`, `jump` and `advance`.
    Real: the process's time plus what `jump` and `advance` added.
    """

    def __init__(self, *, virtual: bool) -> None:
        self.virtual = virtual
        self._offset = EPOCH_MS if virtual else 0
        self._timers: list[Timer] = []
        self._order = 0
        self._sweep_at = 1000
        self._alarm: asyncio.Handle | None = None
        self._alarm_for: int | None = None
        self._advancing = asyncio.Lock()
        self._closed = False
        self._pauses: set[asyncio.Future[None]] = set()

    def now(self) -> int:
        """The time now, in Unix milliseconds."""
        return self._offset if self.virtual else real_now() + self._offset

    def stamp(self) -> int:
        """The time of the next persisted event. On virtual time each event moves the clock 1 ms."""
        if self.virtual:
            self._offset += 1
            self._arm()
        return self.now()

    def jump(self, seconds: float) -> None:
        """Move the clock without running what falls due in between; that runs right after."""
        self._offset += round(seconds * 1000)
        self._disarm()
        self._arm()

    def call_at(self, when: int, callback: Callable[[], None]) -> Timer:
        """Run `callback` once the clock has reached `when` (Unix milliseconds)."""
        self._order += 1
        if len(self._timers) >= self._sweep_at:
            self._sweep()
        timer = Timer(when, self._order, callback)
        heappush(self._timers, timer)
        self._arm()
        return timer

    def call_in(self, seconds: float, callback: Callable[[], None]) -> Timer:
        """Run `callback` once `seconds` have passed on this clock."""
        return self.call_at(self.now() + round(seconds * 1000), callback)

    async def pause(self, seconds: float) -> bool:
        """Wait for real seconds, whatever this clock says. `False`, and no longer, where it is closed meanwhile."""
        if self._closed:
            await asyncio.sleep(0)
            return False
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()
        timer = loop.call_later(seconds, _end, waiter)
        self._pauses.add(waiter)
        try:
            await waiter
        finally:
            timer.cancel()
            self._pauses.discard(waiter)
        return not self._closed

    async def advance(self, seconds: float, settle: Callable[[], Awaitable[object]]) -> int:
        """Move the clock forward, running everything that falls due in order.

        `settle` is awaited after each, so that what one deadline sets in motion has come to rest
        before the next. Gives the time afterwards.
        """
        async with self._advancing:
            target = self.now() + round(seconds * 1000)
            while (timer := self._head()) is not None and timer.when <= target:
                self._offset += max(0, timer.when - self.now())
                self._run(heappop(self._timers))
                await settle()
            self._offset += max(0, target - self.now())
            self._disarm()
            self._arm()
        return self.now()

    def close(self) -> None:
        """Forget every timer, and end every pause. Used when the world this clock belongs to ends."""
        self._closed = True
        for waiter in self._pauses:
            _end(waiter)
        self._timers.clear()
        self._disarm()

    def _sweep(self) -> None:
        """Drop timers that were cancelled: where the clock stands still they would never come up to be dropped."""
        self._timers = [timer for timer in self._timers if timer.callback is not None]
        heapify(self._timers)
        self._sweep_at = max(1000, 2 * len(self._timers))

    def _head(self) -> Timer | None:
        while self._timers and self._timers[0].callback is None:
            heappop(self._timers)
        return self._timers[0] if self._timers else None

    def _disarm(self) -> None:
        """Forget the alarm: the clock has moved, so what it was set for is nearer than it was."""
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    def _arm(self) -> None:
        """Have the loop call `_due` when the head falls due: at once, or, on real time, later."""
        head = self._head()
        if head is None or self._closed:
            return
        delay = (head.when - self.now()) / 1000
        if self.virtual and delay > 0:
            return
        if self._alarm is not None:
            if self._alarm_for is not None and self._alarm_for <= head.when and delay > 0:
                return
            self._alarm.cancel()
        loop = asyncio.get_running_loop()
        self._alarm_for = head.when
        self._alarm = loop.call_soon(self._due) if delay <= 0 else loop.call_later(delay, self._due)

    def _due(self) -> None:
        self._alarm = None
        while (head := self._head()) is not None and head.when <= self.now():
            self._run(heappop(self._timers))
        self._arm()

    @staticmethod
    def _run(timer: Timer) -> None:
        callback, timer.callback = timer.callback, None
        if callback is not None:
            callback()
