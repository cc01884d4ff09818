"""Loops: the event loops agents run on, and the watchdog that keeps an agent from holding one.

Law: a loop's time cannot be frozen by a test, and an agent that holds a loop is named within
seconds; it must never look like a server that hangs.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import traceback
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from emulator.clock import monotonic, thread_seconds
from emulator.runtime.stepping import Holder, exception_handler, task_factory

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

T = TypeVar("T")

_LOOK_EVERY: Final = 0.5
_BLOCKED_AFTER: Final = 2.5
_STUCK_AFTER: Final = 3.5


class Cuttable(Protocol):
    """Something whose connections can be shut down from another thread."""

    def cut(self) -> None: ...


class AgentBlocked(BaseException):
    """Raised inside an agent that holds the event loop, by the watchdog."""

    def __init__(self) -> None:
        super().__init__("it held the event loop for seconds")


class EmulatorStuck(RuntimeError):
    """The emulator's loop is held by an agent that cannot be interrupted. The message has its stack."""


def new_loop() -> asyncio.AbstractEventLoop:
    """An event loop for agents, whose time nobody's test can freeze."""
    loop: asyncio.AbstractEventLoop
    try:
        import uvloop
    except ImportError:
        loop = asyncio.new_event_loop()
        loop.time = monotonic  # type: ignore[method-assign]
    else:
        loop = uvloop.new_event_loop()
    loop.set_task_factory(task_factory)
    loop.set_exception_handler(exception_handler)
    return loop


class Watchdog:
    """Names an agent that holds the loop, and gets the loop back from it if it can.

    An agent that runs Python code is interrupted with `AgentBlocked`. One inside a call that cannot
    be interrupted leaves the loop stuck: `stuck` is called, so that nobody waits for it.
    """

    def __init__(self, holder: Holder, thread_id: int, stuck: Callable[[str], None]) -> None:
        self._holder = holder
        self._thread_id = thread_id
        self._stuck = stuck
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="gobare-emulator watchdog", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop watching."""
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        named: tuple[object, float] | None = None
        used = thread_seconds(self._thread_id)
        while not self._stop.wait(_LOOK_EVERY):
            before, used = used, thread_seconds(self._thread_id)
            steps, since = self._holder.steps, self._holder.since
            if steps is None or monotonic() - since < _BLOCKED_AFTER:
                continue
            if named != (steps, since):
                named = (steps, since)
                steps.blocked(self._stack())
                # One that sleeps in a call would not hear of it. Meanwhile the interpreter goes on looking for
                # whom the error is, at every step of every thread, and under a tracer never gets past that.
                runs = before is None or used is None or used - before > _LOOK_EVERY / 25
                if runs and self._holder.steps is steps and self._holder.since == since:
                    raise_in(self._thread_id, AgentBlocked)
            elif monotonic() - since >= _STUCK_AFTER:
                self._stuck(self._stack())
                return

    def _stack(self) -> str:
        frame = sys._current_frames().get(self._thread_id)
        if frame is None:
            return "(its stack is gone)"
        frames = traceback.extract_stack(frame)
        inside = next((n for n, entry in enumerate(frames) if entry.filename.endswith("stepping.py")), 0)
        return "".join(traceback.format_list(frames[inside + 1 :])) or "(no frame of its own)"


def raise_in(thread_id: int, error: type[BaseException]) -> None:
    """Have a thread raise an error at its next step of Python code."""
    import ctypes

    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread_id), ctypes.py_object(error))


class BackgroundLoop:
    """An event loop on a thread of its own, for the emulators of a process that has other things to do."""

    def __init__(self) -> None:
        self.holder = Holder()
        self.loop = new_loop()
        self.stuck: str | None = None
        self.sockets: set[Cuttable] = set()
        self._thread = threading.Thread(target=self._run, name="gobare-emulator", daemon=True)
        self._thread.start()
        assert self._thread.ident is not None
        self._watchdog = Watchdog(self.holder, self._thread.ident, self._give_up)

    def inside(self) -> bool:
        """Whether the caller is on this loop."""
        return threading.get_ident() == self._thread.ident

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the loop and wait for what it gives.

        Raises `RuntimeError` when called from the loop itself, where waiting would never end, and
        `EmulatorStuck` when an agent holds the loop for good.
        """
        if self.inside():
            coroutine.close()
            raise RuntimeError(
                "this call waits for the emulator's own loop, and was made from it: inside an agent use the "
                "awaitable handle (`await gobare.aio…`)"
            )
        if self.stuck is not None:
            coroutine.close()
            raise EmulatorStuck(self.stuck)
        future = asyncio.run_coroutine_threadsafe(coroutine, self.loop)
        while True:
            try:
                return future.result(timeout=0.5)
            except TimeoutError:
                if future.done():
                    raise
                if self.stuck is not None:
                    raise EmulatorStuck(self.stuck) from None

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        while True:
            try:
                self.loop.run_forever()
            except AgentBlocked:
                # It arrived just after the agent had let go.
                continue
            return

    def _give_up(self, stack: str) -> None:
        if self.stuck is None:
            self.stuck = f"An agent holds the emulator's event loop and cannot be interrupted:\n{stack}"
            for listening in list(self.sockets):
                listening.cut()
