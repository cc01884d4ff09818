"""Stepping: knowing, from outside, what the tasks of an agent are doing.

A script is any coroutine: it may gather, make tasks, wait for its own things. To say whether a turn
is at rest, and which turn is holding the loop when it blocks, every task started inside a turn is
wrapped in a `Step`, which sees each time the task runs and what it waits for when it stops.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextvars import Context, ContextVar
from typing import TYPE_CHECKING, Any
from weakref import ref

from emulator.clock import monotonic

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from types import TracebackType


_CURRENT: ContextVar[Steps | None] = ContextVar("steps", default=None)


class Holder:
    """Which turn's code is running on a loop at this moment, and since when. One for each loop.

    Written by the loop's thread, read by a watchdog on another.
    """

    def __init__(self) -> None:
        self.steps: Steps | None = None
        self.since = 0.0

    def enter(self, steps: Steps) -> None:
        self.since = monotonic()
        self.steps = steps

    def leave(self) -> None:
        self.steps = None


class Steps:
    """The tasks of one turn, and the verbs it has parked on outside input.

    `blocked` is called, from the watchdog's thread, with the stack of a task that holds the loop; `lost`
    with the error of a task that nobody waited for.
    """

    def __init__(
        self,
        name: str,
        holder: Holder,
        *,
        blocked: Callable[[str], None],
        lost: Callable[[BaseException], None],
    ) -> None:
        self.name = name
        self.holder = holder
        self.blocked = blocked
        self.lost = lost
        self._alive: set[Step] = set()
        self._parked: set[asyncio.Future[Any]] = set()
        self._watcher: asyncio.Future[None] | None = None

    @property
    def parked(self) -> bool:
        """Whether at least one verb waits for somebody outside."""
        return any(not future.done() for future in self._parked)

    @property
    def runnable(self) -> bool:
        """Whether a task of the turn can run now."""
        return any(step.runnable for step in self._alive)

    def park(self, future: asyncio.Future[Any]) -> None:
        """Count a future as outside input until it is done."""
        self._parked.add(future)
        future.add_done_callback(self._unpark)

    def moved(self) -> asyncio.Future[None]:
        """A future that is done when a task of the turn has run."""
        if self._watcher is None or self._watcher.done():
            self._watcher = asyncio.get_running_loop().create_future()
        return self._watcher

    def tasks(self) -> list[asyncio.Task[Any]]:
        """The tasks of the turn that have not ended."""
        return [task for step in self._alive if (task := step.task()) is not None]

    def cancel(self) -> None:
        """Cancel every task of the turn but the one that asks."""
        try:
            current = asyncio.current_task()
        except RuntimeError:
            # No loop runs any more: a coroutine is being thrown away.
            return
        for task in self.tasks():
            if task is not current:
                task.cancel()

    def start(self, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run a coroutine as the turn's main task; tasks it starts are counted with it."""
        context = Context()
        context.run(_CURRENT.set, self)
        return asyncio.get_running_loop().create_task(coroutine, name=self.name, context=context)

    def _unpark(self, future: asyncio.Future[Any]) -> None:
        self._parked.discard(future)
        self._notify()

    def _notify(self) -> None:
        if self._watcher is not None and not self._watcher.done():
            self._watcher.set_result(None)


def current_steps() -> Steps | None:
    """The tasks of the turn the caller runs in, if it runs in one."""
    return _CURRENT.get()


class Step(Coroutine[Any, Any, Any]):
    """A coroutine of a turn, watched each time it runs."""

    def __init__(self, coroutine: Coroutine[Any, Any, Any], steps: Steps) -> None:
        self._coroutine = coroutine
        self.steps = steps
        self._waits_for: Any = None
        # Weak, since the task holds the step: an error nobody waits for is told of when the task goes.
        self.task: Callable[[], asyncio.Task[Any] | None] = lambda: None
        steps._alive.add(self)

    @property
    def runnable(self) -> bool:
        waits_for = self._waits_for
        return waits_for is None or waits_for.done()

    def send(self, value: Any) -> Any:
        return self._watch(self._coroutine.send, value)

    def throw(
        self,
        typ: type[BaseException] | BaseException,
        val: BaseException | object = None,
        tb: TracebackType | None = None,
    ) -> Any:
        return self._watch(self._coroutine.throw, typ)

    def close(self) -> None:
        self.steps._alive.discard(self)
        self._coroutine.close()

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._coroutine.__await__()

    def _watch(self, step: Callable[..., Any], argument: Any) -> Any:
        self.steps.holder.enter(self.steps)
        try:
            self._waits_for = step(argument)
        except BaseException:
            self.steps._alive.discard(self)
            raise
        finally:
            self.steps.holder.leave()
            self.steps._notify()
        return self._waits_for


def task_factory(
    loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, Any] | Generator[Any, None, Any], **options: Any
) -> asyncio.Task[Any]:
    """The task factory of a loop that runs agents: a task made inside a turn is counted with it."""
    context: Context | None = options.get("context")
    steps = _CURRENT.get() if context is None else context.get(_CURRENT)
    if steps is None or not isinstance(coroutine, Coroutine):
        return asyncio.Task(coroutine, loop=loop, **options)
    step = Step(coroutine, steps)
    task = asyncio.Task(step, loop=loop, **options)
    step.task = ref(task)
    return task


def exception_handler(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """The exception handler of a loop that runs agents: an error nobody of a turn waited for is its script's."""
    task = context.get("task") or context.get("future")
    step = task.get_coro() if isinstance(task, asyncio.Task) else None
    error = context.get("exception")
    if isinstance(step, Step) and isinstance(error, BaseException):
        if asyncio._get_running_loop() is loop:
            step.steps.lost(error)
        elif not loop.is_closed():
            # Garbage is collected on whichever thread asks for memory; what is to be done is the loop's.
            loop.call_soon_threadsafe(step.steps.lost, error)
    else:
        loop.default_exception_handler(context)
