"""The server: where the parts are put together, and the sockets they are reached through.

Law: the application is built once per process and is immutable; a deployment belongs to a socket.
A socket is bound before anything else happens and is handed over, so an address that was told to
somebody answers. Stopping leaves no task and prints nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import logging
import os
import socket
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from uvicorn.config import Config
from uvicorn.server import ServerState

from emulator import render
from emulator.api.app import Api
from emulator.api.previews import Pages
from emulator.api.replies import LINK
from emulator.api.served import Served
from emulator.listening import Connection, hang_up
from emulator.redaction import Secret
from emulator.refusals import Refusal, invalid, not_found
from emulator.runtime import previews, served
from emulator.runtime.deployment import Deployment

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from starlette.types import ASGIApp, Receive, Scope, Send

    from emulator.runtime.fault import Fault
    from emulator.runtime.scenario_file import LoadedScenario
    from emulator.runtime.stepping import Holder
    from emulator.settings import Settings

# Nothing the HTTP server has to say about a connection is news to a test.
_QUIET: Final = logging.getLogger("emulator.http")
_QUIET.addHandler(logging.NullHandler())
_QUIET.propagate = False

_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")


@cache
def application() -> ASGIApp:
    """The application of every emulator in this process, outermost layer first."""
    mounts: dict[str, ASGIApp] = {"v1": Api(), previews.PREFIX: Pages(), served.PREFIX: Served()}
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
    headers, body = refusal_of(scope["state"]["emulator"], refused)
    await send({"type": "http.response.start", "status": refused.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def refusal_of(listening: Socket, refused: Refusal) -> tuple[list[tuple[bytes, bytes]], bytes]:
    """The headers and the body of a refusal."""
    request_id = listening.deployment.world.ids.request()
    body = render.encode(render.refusal(refused, request_id))
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(body)),
        (b"x-request-id", request_id.encode()),
        LINK,
    ]
    return headers, body


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
    # Without the wrapper that would log every address, with what is in it, at the lowest level of logging.
    config.loaded_app = application()
    return config


class Corked:
    """A transport that sends the head of a response together with what follows it.

    The HTTP server writes the two one after the other; one packet costs half of two.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._head = b""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Send, or keep for a moment what begins a response."""
        if self._head:
            head, self._head = self._head, b""
            self._transport.write(head + data)
        elif data.startswith(b"HTTP/1.1 "):
            self._head = data
            self._loop.call_soon(self.flush)
        else:
            self._transport.write(data)

    def flush(self) -> None:
        """Send what is kept."""
        if self._head:
            head, self._head = self._head, b""
            self._transport.write(head)

    def get_write_buffer_size(self) -> int:
        return len(self._head) + self._transport.get_write_buffer_size()

    def close(self) -> None:
        self.flush()
        self._transport.close()

    def abort(self) -> None:
        self.flush()
        self._transport.abort()


@cache
def corked(protocol_class: Any) -> Any:
    """An HTTP protocol class of the server's that writes through `Corked`."""

    class Protocol(protocol_class):  # type: ignore[misc]
        app_state: dict[str, Any]

        def connection_made(self, transport: asyncio.Transport) -> None:
            writing = Corked(transport, self.loop)
            # Each request of this connection finds it in its scope's state.
            self.app_state: dict[str, Any] = {**self.app_state, "connection": Connection(writing)}
            super().connection_made(writing)

        def _start_asgi_task(self, cycle: Any, app: ASGIApp) -> None:
            self._under_way: Any = cycle
            super()._start_asgi_task(cycle, app)

        def connection_lost(self, exc: Exception | None) -> None:
            # The base tells the request that came last. Where one is pipelined behind it, that is not the one that
            # is being handled, and it would never know.
            cycle = getattr(self, "_under_way", None)
            if cycle is not None and not cycle.response_complete:
                cycle.disconnected = True
                cycle.message_event.set()
            super().connection_lost(exc)

        def send_400_response(self, msg: str) -> None:
            # What is no HTTP never reaches the application; it is refused in the API's words all the same.
            listening: Socket = self.app_state["emulator"]
            head, body = refusal_of(listening, invalid("The request is not valid HTTP."))
            lines = [b"HTTP/1.1 400 Bad Request", *(b"%b: %b" % pair for pair in head), b"connection: close", b"", body]
            self.transport.write(b"\r\n".join(lines))
            self.transport.close()

    return Protocol


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
        self.script_errors: list[Fault] = []
        self.failed_expectations: list[dict[str, Any]] = []
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
            made: Any = corked(protocol_class)(config=config, server_state=self.state, app_state=app_state, _loop=loop)
            made.logger = _QUIET
            # An access log has addresses in it, and addresses may have secrets in them.
            made.access_log = False
            return made  # type: ignore[no-any-return]

        self._server = await loop.create_server(protocol, sock=self.bound, backlog=512)

    async def reset(self) -> None:
        """Put a new deployment in place, as it was at the start."""
        old, self.deployment = self.deployment, self._new()
        await old.close()
        # A script that failed has failed, whatever is reset after it.
        self.script_errors += old.engine.script_errors
        self.failed_expectations += old.engine.answers.missed

    async def begin_again(self, settings: Settings, scenario: LoadedScenario | None) -> None:
        """Reset to another start."""
        self._settings, self._scenario = settings, scenario
        await self.reset()
        self.script_errors.clear()
        self.failed_expectations.clear()

    async def stop(self) -> None:
        """Stop serving: streams end, connections close, no task is left."""
        if self._server is not None:
            self._server.close()
        await self.deployment.close()
        await hang_up(self.state)
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
        made = Deployment(self._settings, self._holder, tokens=self._tokens, scenario=scenario, url=self.url)
        if self._settings.explore:
            from emulator.exploration.plan import install

            install(made)
        return made
