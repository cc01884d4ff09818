"""The clock: virtual and real time, timers in order, and advances that let everything come to rest between."""

from __future__ import annotations

import asyncio
import functools
import gc
import threading
import time
from typing import TYPE_CHECKING, Final, ParamSpec

import pytest

from emulator import clock as module
from emulator.clock import EPOCH_MS, Clock, Timer

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

P = ParamSpec("P")

WAIT: Final = 5
HOUR: Final = 3600
KINDS: Final = pytest.mark.parametrize("virtual", [True, False], ids=["virtual", "real"])


def on_a_loop(test: Callable[P, Coroutine[object, object, None]]) -> Callable[P, None]:
    """Run a coroutine test on a loop of its own, for so long at most."""

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        asyncio.run(asyncio.wait_for(test(*args, **kwargs), WAIT))

    return run


async def at_rest() -> None:
    """Nothing to wait for."""


class Bells:
    """What rang, and what the clock said."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._start = clock.now()
        self.rang: list[str] = []
        self.at: list[int] = []
        self.heard = asyncio.Event()

    def bell(self, name: str) -> Callable[[], None]:
        def ring() -> None:
            self.rang.append(name)
            self.at.append(self._clock.now() - self._start)
            self.heard.set()

        return ring


# What it says


def test_virtual_time_stands_still_but_for_events() -> None:
    clock = Clock(virtual=True)
    assert EPOCH_MS == 1_767_225_600_000
    assert [clock.now(), clock.now()] == [EPOCH_MS, EPOCH_MS]
    assert [clock.stamp(), clock.stamp(), clock.now()] == [EPOCH_MS + 1, EPOCH_MS + 2, EPOCH_MS + 2]


def test_real_time_is_the_machines_and_events_do_not_move_it() -> None:
    clock = Clock(virtual=False)
    before = time.time_ns() // 1_000_000
    said = [clock.now(), *(clock.stamp() for _ in range(1000))]
    after = time.time_ns() // 1_000_000
    assert before <= said[0]
    assert said == sorted(said)
    assert said[-1] <= after


def test_the_machines_time_was_captured_before_anybody_could_freeze_it(monkeypatch: pytest.MonkeyPatch) -> None:
    readings = (module.real_now, module.monotonic, module.stopwatch)
    before = [read() for read in readings]
    for name in ("time", "time_ns", "monotonic", "perf_counter"):
        monkeypatch.setattr(time, name, lambda: 0)
    assert all(read() >= earlier > 0 for read, earlier in zip(readings, before, strict=True))


def test_the_processor_time_of_a_thread_is_told_where_the_system_tells_it(monkeypatch: pytest.MonkeyPatch) -> None:
    used = module.thread_seconds(threading.get_ident())
    assert used is None or used > 0
    monkeypatch.setattr(module._Process, "thread_clock", staticmethod(lambda ident: None))
    assert module.thread_seconds(threading.get_ident()) is None


# Timers


@KINDS
@on_a_loop
async def test_timers_run_in_order_and_those_of_one_time_as_they_were_set(virtual: bool) -> None:
    clock = Clock(virtual=virtual)
    bells = Bells(clock)
    base = clock.now() + 1000 * HOUR
    order = [(when, n) for n, when in enumerate([300, 100, 100, 200, 100, 300, 200, 100] * 4)]
    for when, n in order:
        clock.call_at(base + when, bells.bell(f"{when} {n}"))
    await clock.advance(2 * HOUR, at_rest)
    assert bells.rang == [f"{when} {n}" for when, n in sorted(order)]


@on_a_loop
async def test_a_timer_runs_at_its_time_and_not_a_millisecond_sooner() -> None:
    clock = Clock(virtual=True)
    bells = Bells(clock)
    clock.call_in(2.5, bells.bell("a"))
    await clock.advance(2.499, at_rest)
    assert bells.rang == []
    await clock.advance(0.001, at_rest)
    assert (bells.rang, bells.at) == (["a"], [2500])


@KINDS
@on_a_loop
async def test_a_cancelled_timer_does_not_run_and_stands_in_nobodys_way(virtual: bool) -> None:
    clock = Clock(virtual=virtual)
    bells = Bells(clock)
    timers = [clock.call_in(HOUR + n, bells.bell(str(n))) for n in range(5)]
    for n in (0, 3, 4):
        timers[n].cancel()
        timers[n].cancel()
    await clock.advance(2 * HOUR, at_rest)
    assert bells.rang == ["1", "2"]


@on_a_loop
async def test_a_timer_may_cancel_the_next_and_set_another() -> None:
    clock = Clock(virtual=True)
    bells = Bells(clock)

    def interfere() -> None:
        doomed.cancel()
        clock.call_in(5, bells.bell("new"))

    clock.call_in(10, interfere)
    doomed = clock.call_in(12, bells.bell("doomed"))
    clock.call_in(20, bells.bell("old"))
    await clock.advance(30, at_rest)
    assert (bells.rang, bells.at) == (["new", "old"], [15_000, 20_000])


@KINDS
@on_a_loop
async def test_what_is_due_already_runs_at_the_next_pass_of_the_loop_and_not_inside_the_call(virtual: bool) -> None:
    clock = Clock(virtual=virtual)
    bells = Bells(clock)
    clock.call_in(0, bells.bell("now"))
    clock.call_at(0, bells.bell("long ago"))
    assert bells.rang == []
    await bells.heard.wait()
    assert bells.rang == ["long ago", "now"]


@KINDS
@on_a_loop
async def test_a_jump_runs_what_it_passed_right_after_and_in_order(virtual: bool) -> None:
    clock = Clock(virtual=virtual)
    bells = Bells(clock)
    clock.call_in(2 * HOUR, bells.bell("second"))
    clock.call_in(HOUR, bells.bell("first"))
    clock.call_in(9 * HOUR, bells.bell("not yet"))
    clock.jump(3 * HOUR)
    assert bells.rang == []
    await bells.heard.wait()
    assert bells.rang == ["first", "second"]
    assert bells.at[0] >= 3 * HOUR * 1000


@on_a_loop
async def test_events_alone_bring_a_deadline_of_virtual_time() -> None:
    clock = Clock(virtual=True)
    bells = Bells(clock)
    clock.call_in(0.003, bells.bell("a"))
    clock.stamp()
    clock.stamp()
    await asyncio.sleep(0)
    assert bells.rang == []
    clock.stamp()
    await bells.heard.wait()
    assert bells.at == [3]


@on_a_loop
async def test_real_time_passes_by_itself_and_the_sooner_timer_runs_first() -> None:
    clock = Clock(virtual=False)
    bells = Bells(clock)
    later = asyncio.Event()
    clock.call_in(0.02, later.set)
    clock.call_in(HOUR, bells.bell("much later"))
    clock.call_in(0.01, bells.bell("soon"))
    await later.wait()
    assert bells.rang == ["soon"]
    assert bells.at[0] >= 10


@pytest.mark.parametrize("by", ["jump", "advance"])
@on_a_loop
async def test_an_alarm_set_before_real_time_was_moved_comes_as_much_sooner(by: str) -> None:
    clock = Clock(virtual=False)
    bells = Bells(clock)
    clock.call_in(HOUR, bells.bell("a"))
    if by == "jump":
        clock.jump(HOUR - 0.02)
    else:
        await clock.advance(HOUR - 0.02, at_rest)
    await bells.heard.wait()
    assert bells.rang == ["a"]


@on_a_loop
async def test_a_pause_is_of_real_seconds_on_a_clock_that_stands_still() -> None:
    clock = Clock(virtual=True)
    started = time.monotonic()
    await clock.pause(0.01)
    assert time.monotonic() - started >= 0.009
    assert clock.now() == EPOCH_MS


@on_a_loop
async def test_a_pause_ends_with_its_clock() -> None:
    clock = Clock(virtual=True)
    paused = asyncio.ensure_future(clock.pause(HOUR))
    await asyncio.sleep(0)
    clock.close()
    async with asyncio.timeout(1):
        await paused
        await clock.pause(HOUR)


# Advancing


@KINDS
@on_a_loop
async def test_an_advance_moves_the_clock_and_tells_the_time(virtual: bool) -> None:
    clock = Clock(virtual=virtual)
    before = clock.now()
    after = await clock.advance(90.5, at_rest)
    assert after - before >= 90_500
    assert after - before <= 90_500 + (0 if virtual else WAIT * 1000)
    assert clock.now() >= after


@on_a_loop
async def test_everything_comes_to_rest_after_each_deadline_before_the_next() -> None:
    clock = Clock(virtual=True)
    bells = Bells(clock)
    log: list[str] = []

    async def settle() -> None:
        await asyncio.sleep(0)
        log.append(f"rest after {bells.rang[-1]} at {clock.now() - EPOCH_MS}")
        if bells.rang[-1] == "a":
            clock.call_in(1, bells.bell("set while resting"))

    clock.call_in(10, bells.bell("a"))
    clock.call_in(20, bells.bell("b"))
    await clock.advance(60, settle)
    assert log == ["rest after a at 10000", "rest after set while resting at 11000", "rest after b at 20000"]
    assert clock.now() == EPOCH_MS + 60_000


@on_a_loop
async def test_events_of_a_deadline_count_within_the_advance_and_not_on_top() -> None:
    clock = Clock(virtual=True)

    async def settle() -> None:
        for _ in range(100):
            clock.stamp()

    clock.call_in(1, lambda: None)
    assert await clock.advance(60, settle) == EPOCH_MS + 60_000
    clock.call_in(59.99, lambda: None)
    assert await clock.advance(60, settle) == EPOCH_MS + 120_090


@on_a_loop
async def test_advances_that_meet_follow_one_another() -> None:
    clock = Clock(virtual=True)
    bells = Bells(clock)
    resting = 0
    most = 0

    async def settle() -> None:
        nonlocal resting, most
        resting += 1
        most = max(most, resting)
        for _ in range(3):
            await asyncio.sleep(0)
        resting -= 1

    for n in (5, 15, 25, 35):
        clock.call_in(n, bells.bell(str(n)))
    times = await asyncio.gather(*(clock.advance(10, settle) for _ in range(3)))
    assert times == [EPOCH_MS + 10_000, EPOCH_MS + 20_000, EPOCH_MS + 30_000]
    assert (bells.rang, bells.at) == (["5", "15", "25"], [5000, 15_000, 25_000])
    assert most == 1


@on_a_loop
async def test_an_advance_that_fails_leaves_the_clock_where_it_was_and_the_next_may_go_on() -> None:
    clock = Clock(virtual=True)
    bells = Bells(clock)

    async def fail() -> None:
        raise RuntimeError("not at rest")

    clock.call_in(10, bells.bell("a"))
    clock.call_in(20, bells.bell("b"))
    with pytest.raises(RuntimeError, match="not at rest"):
        await clock.advance(60, fail)
    assert clock.now() == EPOCH_MS + 10_000
    await clock.advance(10, at_rest)
    assert bells.rang == ["a", "b"]


# The end


@KINDS
@on_a_loop
async def test_a_closed_clock_runs_nothing_any_more(virtual: bool) -> None:
    clock = Clock(virtual=virtual)
    bells = Bells(clock)
    clock.call_in(0, bells.bell("due"))
    clock.call_in(HOUR, bells.bell("later"))
    clock.close()
    clock.call_in(0, bells.bell("after the end"))
    clock.jump(2 * HOUR)
    for _ in range(3):
        await asyncio.sleep(0)
    assert bells.rang == []


@on_a_loop
async def test_a_clock_closed_within_an_advance_ends_it() -> None:
    clock = Clock(virtual=True)
    bells = Bells(clock)

    async def settle() -> None:
        clock.close()

    clock.call_in(10, bells.bell("a"))
    clock.call_in(20, bells.bell("b"))
    await clock.advance(60, settle)
    assert bells.rang == ["a"]


@KINDS
@on_a_loop
async def test_cancelled_timers_are_let_go_of_although_the_clock_stands_still(virtual: bool) -> None:
    clock = Clock(virtual=virtual)
    bells = Bells(clock)

    def timers() -> int:
        return sum(isinstance(thing, Timer) for thing in gc.get_objects())

    before = timers()
    clock.call_in(HOUR, bells.bell("first"))
    for _ in range(5000):
        clock.call_in(HOUR, bells.bell("never")).cancel()
    assert timers() - before <= 1000
    await clock.advance(HOUR, at_rest)
    assert bells.rang == ["first"]
    clock.close()
