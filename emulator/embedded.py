"""Embedded emulators: the handle of one that runs in this process.

Law: all of a process's emulators share one background loop and nothing else. A call that would wait
for that loop from within it raises instead.
"""

from __future__ import annotations

import inspect
import threading
from typing import TYPE_CHECKING, Any, Final, TypeVar, overload

from emulator.client import AsyncHandle, Handle
from emulator.domain.access import DEFAULT_SCOPES, DEFAULT_TOKEN
from emulator.loops import BackgroundLoop
from emulator.redaction import Secret, scrub
from emulator.server import Socket, bind
from emulator.settings import Settings, changed

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
    from pathlib import Path

    from emulator.runtime.fault import Fault
    from emulator.runtime.scenario_file import LoadedScenario
    from emulator.runtime.turn import Turn

T = TypeVar("T")
Invariant = TypeVar("Invariant", bound="Callable[..., object]")
Play = TypeVar("Play", bound="Callable[[Turn], Awaitable[object]]")


class _Background:
    """The background loop of this process: made when first needed, replaced when an agent got it stuck."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: BackgroundLoop | None = None

    def get(self) -> BackgroundLoop:
        with self._lock:
            if self._loop is None or self._loop.stuck is not None:
                self._loop = BackgroundLoop()
            return self._loop


_BACKGROUND: Final = _Background()


class _Local:
    """The handle's way to an emulator of this process: the control operations, without HTTP."""

    def __init__(self, emulator: Emulator) -> None:
        self._emulator = emulator

    def send(self, verb: str, path: str, body: Any = None) -> Any:
        from emulator.control.routes import dispatch

        return self._emulator.run(dispatch(self._emulator.socket, verb, path, body))


class _LocalAsync:
    """The same for awaitable handles, under asyncio and trio, and from inside an agent."""

    def __init__(self, emulator: Emulator) -> None:
        self._emulator = emulator

    async def send(self, verb: str, path: str, body: Any = None) -> Any:
        from emulator.control.routes import dispatch

        if self._emulator.loop.inside():
            return await dispatch(self._emulator.socket, verb, path, body)
        from anyio import to_thread

        return await to_thread.run_sync(
            lambda: self._emulator.run(dispatch(self._emulator.socket, verb, path, body)), abandon_on_cancel=True
        )


def _loaded(scenario: str | Path | Mapping[str, Any] | None) -> LoadedScenario | None:
    if scenario is None:
        return None
    from emulator.recording import load

    return load(scenario)


class EmbeddedHandle(AsyncHandle):
    """The awaitable handle of an emulator in this process. `agent` is as the plain one's, not awaited."""

    def __init__(self, emulator: Emulator) -> None:
        self._emulator = emulator
        super().__init__(_LocalAsync(emulator), url="", token=emulator.token)

    @overload
    def agent(self, play: Play, /, *, when: Mapping[str, Any] | None = None, times: int | None = None) -> Play: ...
    @overload
    def agent(
        self, /, *, when: Mapping[str, Any] | None = None, times: int | None = None
    ) -> Callable[[Play], Play]: ...
    def agent(self, play: Any = None, /, *, when: Mapping[str, Any] | None = None, times: int | None = None) -> Any:
        """As `Emulator.agent`."""
        register = self._emulator.agent(when=when, times=times)
        return register if play is None else register(play)


class Emulator(Handle):
    """An emulator in this process, on a port of its own, started by `start` or as a context manager.

    `settings` is a `Settings` or a mapping of values by name; further keyword arguments are settings
    too. `scenario` is a path or a mapping. Raises `SettingError` and `ScenarioError` for wrong ones.
    """

    def __init__(
        self,
        *,
        scenario: str | Path | Mapping[str, Any] | None = None,
        settings: Settings | Mapping[str, Any] | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        token: str = DEFAULT_TOKEN,
        control_token: str | None = None,
        allow_hosts: Sequence[str] = (),
        **values: Any,
    ) -> None:
        base = settings if isinstance(settings, Settings) else changed(Settings(), settings or {})
        self._settings = changed(base, values) if values else base
        self._scenario = _loaded(scenario)
        self._address = (host, port)
        self._options: dict[str, Any] = {
            "tokens": [(Secret(token), DEFAULT_SCOPES)],
            "control_token": None if control_token is None else Secret(control_token),
            "allow_hosts": allow_hosts,
        }
        # What must hold at the end of every run of a test: the fixtures see to it.
        self.invariants: list[Callable[..., object]] = []
        self._started = False
        self._socket: Socket | None = None
        super().__init__(_Local(self), url="", token=token)
        self.aio = EmbeddedHandle(self)

    @property
    def running(self) -> bool:
        """Whether it has been started and not stopped."""
        return self._started

    @property
    def socket(self) -> Socket:
        """The listening socket. Raises `RuntimeError` before the start."""
        if self._socket is None:
            raise RuntimeError("this emulator is not running: start it, or use it as a context manager")
        return self._socket

    def start(self) -> Emulator:
        """Bind, then serve. Returns itself once requests are answered. Raises `OSError`, or `RuntimeError` twice."""
        if self._started:
            raise RuntimeError(f"this emulator is running already, at {self.url}")
        bound = bind(*self._address)
        self.loop = _BACKGROUND.get()
        self._socket = Socket(
            bound, settings=self._settings, holder=self.loop.holder, scenario=self._scenario, **self._options
        )
        self.url = self.aio.url = self.socket.url
        self._started = True
        self.loop.run(self.socket.start())
        self.loop.sockets.add(self.socket)
        return self

    def stop(self) -> None:
        """Stop serving. Calling it again does nothing."""
        if not self._started:
            return
        self._started = False
        self.loop.sockets.discard(self.socket)
        if self.loop.stuck is not None:
            self.socket.bound.close()
            return
        self.loop.run(self.socket.stop())

    def begin_again(self, settings: Settings, scenario: str | Path | Mapping[str, Any] | None) -> None:
        """Reset to another start: other settings, another scenario. The address stays."""
        self._settings, self._scenario = settings, _loaded(scenario)
        self.invariants.clear()
        self.run(self.socket.begin_again(self._settings, self._scenario))

    def rest(self, seconds: float) -> bool:
        """Wait until every agent is at rest, at most real `seconds`. Whether they are."""
        return self.run(self.socket.deployment.engine.rest.settle(seconds))

    def __enter__(self) -> Emulator:
        return self.start()

    def __exit__(self, *exc: object) -> None:
        self.stop()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the emulator's loop and wait for it. Raises `RuntimeError` when it is not running."""
        if not self._started:
            coroutine.close()
            raise RuntimeError("this emulator is not running: start it, or use it as a context manager")
        return self.loop.run(coroutine)

    @overload
    def agent(self, play: Play, /, *, when: Mapping[str, Any] | None = None, times: int | None = None) -> Play: ...
    @overload
    def agent(
        self, /, *, when: Mapping[str, Any] | None = None, times: int | None = None
    ) -> Callable[[Play], Play]: ...
    def agent(self, play: Any = None, /, *, when: Mapping[str, Any] | None = None, times: int | None = None) -> Any:
        """Have a coroutine function play the agent: `@gobare.agent`, or `@gobare.agent(when={…})`.

        `when` is a scenario's condition. Without one the agent answers whatever nothing else does. With `times` it
        answers that many messages, and the agents and rules after it get the rest.
        Raises `TypeError` for what is not a coroutine function, `ScenarioError` for a bad condition.
        """
        if times is not None and (isinstance(times, bool) or times < 1):
            raise ValueError(f"`times` is a number of messages, at least 1, which {times!r} is not")
        condition = None
        if when is not None:
            from emulator.runtime.scenario_file import condition as read_condition

            condition = read_condition(when)

        def register(function: Any) -> Any:
            if not inspect.iscoroutinefunction(function):
                raise TypeError(f"an agent is a coroutine function (async def), which {function!r} is not")
            try:
                inspect.signature(function).bind(None)
            except TypeError:
                raise TypeError(f"an agent takes one argument, the turn, which {function!r} does not") from None
            self.socket.deployment.script.add(function, condition, times)
            return function

        return register if play is None else register(play)

    def invariant(self, function: Invariant) -> Invariant:
        """Say what must hold at the end of every run of this test, explored or not: `@gobare.invariant`.

        The function is given this emulator and the run (`variant`, `mode`, `error`), as far as it takes arguments,
        and raises where it does not hold. Raises `TypeError` for what is no plain function.
        """
        plain: object = function
        if not callable(plain) or inspect.iscoroutinefunction(plain):
            raise TypeError(f"an invariant is a plain function, which {function!r} is not")
        self.invariants.append(function)
        return function

    @property
    def script_errors(self) -> list[Fault]:
        """The script errors so far, resets notwithstanding, with their exceptions."""
        return self.socket.script_errors + self.socket.deployment.engine.script_errors

    @property
    def failed_expectations(self) -> list[dict[str, Any]]:
        """The answers so far that were not as the script expects, resets notwithstanding, as the report has them."""
        return self.socket.failed_expectations + self.socket.deployment.engine.answers.missed

    def raise_script_errors(self) -> None:
        """Raise the first script error, if there is one: the fixtures do so by themselves."""
        for fault in self.script_errors:
            raise fault.error

    @property
    def blocked(self) -> list[str]:
        """What the watchdog said of agents that held the loop, with their stacks."""
        return [scrub(text) for text in self.socket.deployment.engine.blocked]

    def __repr__(self) -> str:
        return f"<Emulator {self.url if self._started else 'stopped'}>"


class AsyncEmulator(EmbeddedHandle):
    """`Emulator` for async code: `async with AsyncEmulator() as gobare`. Every name but `agent` is awaited."""

    def __init__(self, **options: Any) -> None:
        super().__init__(Emulator(**options))

    async def __aenter__(self) -> AsyncEmulator:
        from anyio import to_thread

        await to_thread.run_sync(self._emulator.start)
        self.url = self._emulator.url
        return self

    async def __aexit__(self, *exc: object) -> None:
        from anyio import CancelScope, to_thread

        with CancelScope(shield=True):
            await to_thread.run_sync(self._emulator.stop)
