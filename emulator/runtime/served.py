"""Served MCP servers: descriptions that are served for real, on the emulator's own socket.

Law: they belong to a deployment and go with it. What one was sent is kept for the test that asks for it,
credentials included, bounded; it is in no repr, no log and no other answer of the emulator.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar
from urllib.parse import quote, unquote, urlsplit

from emulator import render
from emulator.runtime.mcp_answers import answer
from emulator.runtime.outages import Scripted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from emulator.domain.outages import CallEntry, ConnectEntry, ServerPlan
    from emulator.domain.servers import SimulatedTool
    from emulator.domain.world import World

PREFIX: Final = "_mcp"
"""The first segment of every served server's path."""
# Requests and calls that are kept of one server, and the bytes of both.
_KEPT: Final = 1000
_KEPT_BYTES: Final = 8 * 1024 * 1024
# Sessions of clients that are known at a time; the oldest is forgotten for a new one.
_SESSIONS: Final = 1000
# Clients of which it is known how their connect goes, after the first of two messages that may begin it.
_DISCOVERING: Final = 100
OWN: Final = "x-gobare-own-connection"
"""The header by which a connection of this emulator's own is known. It is kept from the records."""
STALL: Final = "gobare-emulator/stall"
"""The key in the `_meta` of an answer that tells an own connection what others wait for in real time: what it `takes`
of the clock, in seconds (null: for ever), and the `failure` it ends in, if any."""
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True, slots=True)
class Received:
    """One request as it came in. Names of headers are in lower case."""

    at: int
    method: str
    path: str
    query: str = field(repr=False)
    headers: dict[str, str] = field(repr=False)
    raw: bytes = field(repr=False)

    def as_json(self) -> dict[str, Any]:
        shown = {name: getattr(self, name) for name in ("at", "method", "path", "query", "headers")}
        try:
            return {**shown, "body": render.decode(self.raw) if self.raw else None}
        except (ValueError, RecursionError):
            return {**shown, "body": self.raw.decode("utf-8", "replace")}


@dataclass(frozen=True, slots=True)
class Called:
    """One call of a tool, whether or not there is such a tool. `raw` is the whole message."""

    at: int
    tool: str
    raw: bytes = field(repr=False)

    def as_json(self) -> dict[str, Any]:
        arguments = render.decode(self.raw)["params"].get("arguments")
        return {"at": self.at, "tool": self.tool, "arguments": {} if arguments is None else arguments}


T = TypeVar("T")


class Kept(Generic[T]):
    """The latest of something, oldest first, bounded by number and size. `dropped` counts the older ones."""

    def __init__(self) -> None:
        self._entries: deque[tuple[T, int]] = deque()
        self._size = 0
        self.dropped = 0

    def add(self, entry: T, size: int) -> None:
        """Keep one that takes about `size` bytes, and let go of the oldest that no longer fit."""
        self._entries.append((entry, size))
        self._size += size
        while len(self._entries) > _KEPT or (self._size > _KEPT_BYTES and len(self._entries) > 1):
            self._size -= self._entries.popleft()[1]
            self.dropped += 1

    def __iter__(self) -> Iterator[T]:
        return (entry for entry, _ in self._entries)


class ServedServer:
    """One served server: what it offers, who is connected, and what it was sent."""

    def __init__(self, name: str, world: World) -> None:
        self.name = name
        self.scripted = Scripted(tools={})
        self.requests: Kept[Received] = Kept()
        self.calls: Kept[Called] = Kept()
        self.ended = asyncio.Event()
        self._world = world
        self._sessions: OrderedDict[str, None] = OrderedDict()
        self._opened = 0
        self._discovering: OrderedDict[str, ConnectEntry] = OrderedDict()
        # Whoever listens for changes of the tools.
        self._listeners: set[asyncio.Event] = set()

    def received(self, method: str, path: str, query: str, headers: dict[str, str], raw: bytes) -> None:
        """Keep a request."""
        size = len(raw) + sum(len(name) + len(value) for name, value in headers.items())
        self.requests.add(Received(self._world.now(), method, path, query, headers, raw), size)

    def connecting(self, method: str, client: str) -> ConnectEntry:
        """Count a connect. Gives how it goes.

        A `client`, known by how it calls itself, that got no good answer to `server/discover` takes the server for
        an older one and goes on with `initialize`: that is one connect.
        """
        entry = self._discovering.pop(client, None) if method == "initialize" else None
        if entry is None:
            entry = self.scripted.meet()
        if method != "initialize" and entry.failure is not None and entry.fault != "refuse":
            self._discovering[client] = entry
            if len(self._discovering) > _DISCOVERING:
                self._discovering.popitem(last=False)
        return entry

    def calling(self, tool: str, raw: bytes) -> CallEntry:
        """Keep a call, the whole message of it. Gives how it goes."""
        self.calls.add(Called(self._world.now(), tool, raw), len(raw))
        return self.scripted.call(tool)

    def answer(self, message: Mapping[str, Any], *, stateless: bool) -> Any:
        """The answer to a request, of the tools of now."""
        return answer(self.name, self.tools, message, stateless=stateless)

    @property
    def tools(self) -> Mapping[str, SimulatedTool]:
        """What it offers now."""
        assert self.scripted.tools is not None
        return self.scripted.tools

    def plan(self, plan: ServerPlan) -> None:
        """Script what a plan speaks of; the rest stays as it is."""
        self.scripted.plan(plan)
        if plan.tools is not None:
            self.offer(plan.tools)

    def offer(self, tools: Mapping[str, SimulatedTool]) -> None:
        """Put other tools in place, and tell whoever listens."""
        self.scripted.tools = tools
        for changed in self._listeners:
            changed.set()

    def open_session(self) -> str:
        """A new client's session id."""
        self._opened += 1
        session = self._world.ids.derive("mcp", self.name, self._opened, length=32)
        self._sessions[session] = None
        if len(self._sessions) > _SESSIONS:
            self._sessions.popitem(last=False)
        return session

    def knows(self, session: str) -> bool:
        """Whether a client's session was opened here and has not ended."""
        return session in self._sessions

    def end_session(self, session: str) -> None:
        """Forget a client's session."""
        self._sessions.pop(session, None)

    def listen(self) -> asyncio.Event:
        """An event that is set whenever the tools have changed, and when the server ends. Give it back."""
        changed = asyncio.Event()
        self._listeners.add(changed)
        return changed

    def unlisten(self, changed: asyncio.Event) -> None:
        """Tell it nothing more."""
        self._listeners.discard(changed)

    def end(self) -> None:
        """Have whoever waits for something here wait no more."""
        self.ended.set()
        for changed in self._listeners:
            changed.set()


class ServedServers:
    """The served servers of one deployment, by name."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._servers: dict[str, ServedServer] = {}

    def serve(self, name: str) -> ServedServer:
        """Serve a server; one of that name that is served already ends, with its records."""
        self.stop(name)
        self._servers[name] = server = ServedServer(name, self._world)
        return server

    def __iter__(self) -> Iterator[ServedServer]:
        return iter(self._servers.values())

    def find(self, name: str) -> ServedServer | None:
        """The server of a name, if one is served."""
        return self._servers.get(name)

    def offered(self, url: str) -> object:
        """What the server at an own address offers: another object once that has changed, `None` where none is."""
        server = self._servers.get(unquote(urlsplit(url).path.rpartition("/")[2]))
        return None if server is None else server.tools

    def stop(self, name: str) -> None:
        """Serve a server no longer, if it is served."""
        server = self._servers.pop(name, None)
        if server is not None:
            server.end()

    def address(self, name: str) -> str:
        """Where clients reach a server."""
        base = self._world.settings.public_url or self._world.url
        return f"{base.rstrip('/')}/{PREFIX}/{quote(name, safe='')}"

    def local(self, url: str) -> str | None:
        """The same address on this emulator's own socket, or `None` for one that leads elsewhere."""
        for base in (self._world.settings.public_url, self._world.url):
            if base and (rest := _under(f"{base.rstrip('/')}/{PREFIX}/", url)) is not None:
                own, asked = urlsplit(self._world.url), urlsplit(url)
                user = "".join(asked.netloc.rpartition("@")[:2])
                return asked._replace(scheme=own.scheme, netloc=user + own.netloc, path=f"/{PREFIX}/{rest}").geturl()
        return None

    def close(self) -> None:
        """End them all."""
        for name in list(self._servers):
            self.stop(name)


def _under(base: str, url: str) -> str | None:
    """What of an address comes behind `base`, whichever name of this machine it has."""
    own, asked = urlsplit(base), urlsplit(url)
    same_host = own.hostname == asked.hostname or {own.hostname, asked.hostname} <= _LOOPBACK
    if not same_host or (own.scheme, own.port) != (asked.scheme, asked.port) or not asked.path.startswith(own.path):
        return None
    return asked.path[len(own.path) :]
