"""The server: where the parts are put together, and the sockets and loops they run on.

Law: the application is built once per process and is immutable; a deployment belongs to a socket.
A socket is bound before anything else happens and is handed over, so an address that was told to
somebody answers. Stopping leaves no task and prints nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import inspect
import logging
import os
import socket
import sys
import threading
import traceback
from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypeVar

from uvicorn.config import Config
from uvicorn.server import ServerState

from emulator import render
from emulator.api.app import LINK, Api
from emulator.client import AsyncHandle, Handle
from emulator.clock import monotonic
from emulator.domain.access import DEFAULT_SCOPES, DEFAULT_TOKEN
from emulator.redaction import Secret, scrub
from emulator.refusals import Refusal, not_found
from emulator.runtime.deployment import Deployment
from emulator.runtime.stepping import Holder, task_factory
from emulator.settings import Settings, changed

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping, Sequence
    from pathlib import Path

    from starlette.types import ASGIApp, Receive, Scope, Send

    from emulator.runtime.run import Fault
    from emulator.runtime.scenario_file import LoadedScenario

T = TypeVar("T")

# Nothing the HTTP server has to say about a connection is news to a test.
_QUIET: Final = logging.getLogger("emulator.http")
_QUIET.addHandler(logging.NullHandler())
_QUIET.propagate = False

_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")
_BLOCKED_AFTER: Final = 2.5
_STUCK_AFTER: Final = 3.5


class AgentBlocked(BaseException):
    """Raised inside an agent that holds the event loop, by the watchdog."""


class EmulatorStuck(RuntimeError):
    """The emulator's loop is held by an agent that cannot be interrupted. The message has its stack."""


@cache
def application() -> ASGIApp:
    """The application of every emulator in this process, outermost layer first."""
    mounts: dict[str, ASGIApp] = {"v1": Api()}
    try:
        from emulator.control.routes import Control
    except ModuleNotFoundError as missing:
        # The API serves without its control side; anything else missing is a fault.
        if not (missing.name or "").startswith("emulator.control"):
            raise
    else:
        mounts["_emulator"] = Control()
    return Hosts(Mounts(mounts))


class Hosts:
    """Serves only the host names it was told of, and pages from them: a page in a browser must not get
    here through a name of its own that resolves to this machine, nor by posting blindly."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        emulator: Socket = scope["state"]["emulator"]
        host, origin = b"", None
        for name, value in scope["headers"]:
            if name == b"host":
                host = value
            elif name == b"origin":
                origin = value.decode("latin-1")
        known = host_name(host.decode("latin-1")) in emulator.hosts
        if known and (origin is None or host_name(origin.partition("://")[2]) in emulator.hosts):
            await self._app(scope, receive, send)
            return
        what = "pages of that origin" if known else "that host name"
        message = f"This emulator does not serve {what}. Start it with --allow-host NAME to have it do so."
        await refuse(scope, send, Refusal("permission_denied", message))


class Mounts:
    """Passes a request on by the first segment of its path."""

    def __init__(self, apps: Mapping[str, ASGIApp]) -> None:
        self._apps = dict(apps)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self._apps.get(scope["path"].split("/", 2)[1] if scope["path"].startswith("/") else "")
        if app is not None:
            await app(scope, receive, send)
            return
        await refuse(scope, send, not_found("There is nothing here; the API is under /v1."))


async def refuse(scope: Scope, send: Send, refused: Refusal) -> None:
    """Send a refusal from outside the applications, in the words and with the headers of the API."""
    emulator: Socket = scope["state"]["emulator"]
    request_id = emulator.deployment.world.ids.request()
    body = render.encode(render.refusal(refused, request_id))
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(body)),
        (b"x-request-id", request_id.encode()),
        LINK,
    ]
    await send({"type": "http.response.start", "status": refused.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def host_name(header: str) -> str:
    """The name in a Host header, without its port and brackets."""
    if header.startswith("["):
        return header[1:].partition("]")[0].lower()
    return header.rpartition(":")[0].lower() if header.rpartition(":")[2].isdigit() else header.lower()


def bind(host: str, port: int) -> socket.socket:
    """A bound socket. `port` 0 takes any that is free. Raises `OSError`."""
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    bound = socket.socket(family, kind, protocol)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
        bound.listen(512)
        bound.setblocking(False)
    except OSError:
        bound.close()
        raise
    return bound


@cache
def _config() -> Config:
    http = "httptools" if importlib.util.find_spec("httptools") is not None else "h11"
    config = Config(
        application(),
        http=http,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        timeout_keep_alive=75,
    )
    config.load()
    return config


class Socket:
    """One listening socket and the deployment behind it. Lives on the loop it is started on."""

    def __init__(
        self,
        bound: socket.socket,
        *,
        settings: Settings,
        holder: Holder,
        tokens: Sequence[tuple[Secret, Sequence[str]]] = (),
        scenario: LoadedScenario | None = None,
        control_token: Secret | None = None,
        allow_hosts: Sequence[str] = (),
    ) -> None:
        self.bound = bound
        address, port = bound.getsockname()[:2]
        self.hosts = {*_LOOPBACK, address.lower(), *(name.lower() for name in allow_hosts)}
        shown = "127.0.0.1" if address in ("0.0.0.0", "::") else address
        self.url = f"http://[{shown}]:{port}" if ":" in shown else f"http://{shown}:{port}"
        self.control_token = control_token
        self.state = ServerState()
        self._settings = settings
        self._holder = holder
        self._tokens = tokens
        self._scenario = scenario
        self._server: asyncio.Server | None = None
        self.deployment: Deployment

    async def start(self) -> None:
        """Begin to serve."""
        self.deployment = self._new()
        loop = asyncio.get_running_loop()
        config = _config()
        protocol_class: Any = config.http_protocol_class
        app_state = {"emulator": self}

        def protocol() -> asyncio.Protocol:
            made: Any = protocol_class(config=config, server_state=self.state, app_state=app_state, _loop=loop)
            made.logger = _QUIET
            return made  # type: ignore[no-any-return]

        self._server = await loop.create_server(protocol, sock=self.bound, backlog=512)

    async def reset(self) -> None:
        """Put a new deployment in place, as it was at the start."""
        old, self.deployment = self.deployment, self._new()
        await old.close()

    async def begin_again(self, settings: Settings, scenario: LoadedScenario | None) -> None:
        """Reset to another start."""
        self._settings, self._scenario = settings, scenario
        await self.reset()

    async def stop(self) -> None:
        """Stop serving: streams end, connections close, no task is left."""
        if self._server is not None:
            self._server.close()
        await self.deployment.close()
        for connection in list(self.state.connections):
            connection.shutdown()
        if self.state.tasks:
            await asyncio.wait(self.state.tasks, timeout=0.2)
        for task in list(self.state.tasks):
            task.cancel()
        for connection in list(self.state.connections):
            connection.transport.abort()
        if self.state.tasks:
            await asyncio.wait(self.state.tasks, timeout=0.2)
        # One pass, in which the loop closes what was just let go of.
        await asyncio.sleep(0)

    def cut(self) -> None:
        """Shut every connection down from another thread, when the loop cannot."""
        for connection in list(self.state.connections):
            with contextlib.suppress(Exception):
                file = os.dup(connection.transport.get_extra_info("socket").fileno())
                with socket.socket(fileno=file) as duplicate:
                    duplicate.shutdown(socket.SHUT_RDWR)

    def _new(self) -> Deployment:
        scenario = None if self._scenario is None else self._scenario.fresh()
        return Deployment(self._settings, self._holder, tokens=self._tokens, scenario=scenario)


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
        while not self._stop.wait(0.5):
            steps, since = self._holder.steps, self._holder.since
            if steps is None or monotonic() - since < _BLOCKED_AFTER:
                continue
            if named != (steps, since):
                named = (steps, since)
                steps.blocked(self._stack())
                if self._holder.steps is steps and self._holder.since == since:
                    import ctypes

                    ctypes.pythonapi.PyThreadState_SetAsyncExc(
                        ctypes.c_ulong(self._thread_id), ctypes.py_object(AgentBlocked)
                    )
            elif monotonic() - since >= _STUCK_AFTER:
                self._stuck(self._stack())

    def _stack(self) -> str:
        frame = sys._current_frames().get(self._thread_id)
        if frame is None:
            return "(its stack is gone)"
        frames = traceback.extract_stack(frame)
        inside = next((n for n, entry in enumerate(frames) if entry.filename.endswith("stepping.py")), 0)
        return "".join(traceback.format_list(frames[inside + 1 :])) or "(no frame of its own)"


class BackgroundLoop:
    """An event loop on a thread of its own, for the emulators of a process that has other things to do."""

    def __init__(self) -> None:
        self.holder = Holder()
        self.loop = new_loop()
        self.stuck: str | None = None
        self.sockets: set[Socket] = set()
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
    from emulator.runtime.scenario_file import load

    return load(scenario)


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
        self._started = False
        super().__init__(_Local(self), url="", token=token)
        self.aio = AsyncHandle(_LocalAsync(self), url="", token=token)

    def start(self) -> Emulator:
        """Bind, then serve. Returns itself once requests are answered. Raises `OSError`."""
        bound = bind(*self._address)
        self.loop = _BACKGROUND.get()
        self.socket = Socket(
            bound, settings=self._settings, holder=self.loop.holder, scenario=self._scenario, **self._options
        )
        self.url = self.aio.url = self.socket.url
        self.loop.run(self.socket.start())
        self.loop.sockets.add(self.socket)
        self._started = True
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
        self.run(self.socket.begin_again(self._settings, self._scenario))

    def rest(self, seconds: float) -> bool:
        """Wait until every agent is at rest, at most real `seconds`. Whether they are."""
        return self.run(self.socket.deployment.engine.rest_all(seconds, report=False))

    def __enter__(self) -> Emulator:
        return self.start()

    def __exit__(self, *exc: object) -> None:
        self.stop()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the emulator's loop and wait for it."""
        return self.loop.run(coroutine)

    def agent(self, play: Any = None, /, *, when: Mapping[str, Any] | None = None) -> Any:
        """Have a coroutine function play the agent: `@gobare.agent`, or `@gobare.agent(when={…})`.

        `when` is a scenario's condition. Without one the agent answers whatever nothing else does.
        Raises `TypeError` for what is not a coroutine function, `ScenarioError` for a bad condition.
        """
        condition = None
        if when is not None:
            from emulator.runtime.scenario_file import condition as read_condition

            condition = read_condition(when)

        def register(function: Any) -> Any:
            if not inspect.iscoroutinefunction(function):
                raise TypeError(f"an agent is a coroutine function (async def), which {function!r} is not")
            self.socket.deployment.script.add(function, condition)
            return function

        return register if play is None else register(play)

    @property
    def faults(self) -> list[Fault]:
        """The script errors so far, with their exceptions."""
        return self.socket.deployment.engine.faults

    @property
    def blocked(self) -> list[str]:
        """What the watchdog said of agents that held the loop, with their stacks."""
        return [scrub(text) for text in self.socket.deployment.engine.blocked]

    def __repr__(self) -> str:
        return f"<Emulator {self.url if self._started else 'stopped'}>"


class AsyncEmulator(AsyncHandle):
    """`Emulator` for async code: `async with AsyncEmulator() as gobare`. Every name is awaited."""

    def __init__(self, **options: Any) -> None:
        self._emulator = Emulator(**options)
        super().__init__(_LocalAsync(self._emulator), url="", token=self._emulator.token)

    async def __aenter__(self) -> AsyncEmulator:
        from anyio import to_thread

        await to_thread.run_sync(self._emulator.start)
        self.url = self._emulator.url
        return self

    async def __aexit__(self, *exc: object) -> None:
        from anyio import CancelScope, to_thread

        with CancelScope(shield=True):
            await to_thread.run_sync(self._emulator.stop)

    def agent(self, play: Any = None, /, *, when: Mapping[str, Any] | None = None) -> Any:
        """As `Emulator.agent`."""
        return self._emulator.agent(play, when=when)
