"""A served MCP server as a test holds it: where it is, what it offers, and what it was sent.

Law: what was sent is there for the test that asks, credentials included, and in no repr.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from emulator.client import requests

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from emulator.client.handle import AsyncHandle, Handle
    from emulator.client.requests import Records
    from emulator.wire import served as wire

T = TypeVar("T")


class ServedServer:
    """A served server: `name`, and the `url` to declare or to connect to. Raises `ControlError` once it is stopped."""

    def __init__(self, handle: Handle, name: str, url: str) -> None:
        self._perform = handle.perform
        self.name = name
        self.url = url

    @property
    def requests(self) -> Records[wire.ServedRequest]:
        """What it was sent, oldest first: `at`, `method`, `path`, `query`, `headers` (by lower-case name), `body`."""
        return self._perform(requests.served(self.name)).requests

    @property
    def calls(self) -> Records[wire.ServedCall]:
        """The calls of its tools, oldest first: `at`, `tool`, `arguments`."""
        return self._perform(requests.served(self.name)).calls

    def offer(self, tools: Mapping[str, Any]) -> None:
        """Put other tools in place of those it has, and tell the clients that listen."""
        self._perform(requests.change_tools(self.name, tools))

    def script(
        self,
        connects: Iterable[str | Mapping[str, Any]] | None = None,
        calls: Iterable[str | Mapping[str, Any]] | None = None,
    ) -> None:
        """Say how each of the next connects goes, or each of the next calls, as in `Mcp.script` and `Mcp.calls`.

        Here it is done on the wire, to every client: a connection that is reset, a 401, a page in place of an answer,
        a real wait.
        """
        self._perform(requests.script_served(self.name, connects, calls))

    def stop(self) -> None:
        """Serve it no longer."""
        self._perform(requests.stop_serving(self.name))

    def __repr__(self) -> str:
        return f"<ServedServer {self.name} {self.url}>"


class AsyncServedServer:
    """`ServedServer`, awaited. `requests` and `calls` are methods here."""

    def __init__(self, handle: AsyncHandle, name: str, url: str) -> None:
        self._perform = handle.perform
        self.name = name
        self.url = url

    async def requests(self) -> Records[wire.ServedRequest]:
        """As `ServedServer.requests`."""
        return (await self._perform(requests.served(self.name))).requests

    async def calls(self) -> Records[wire.ServedCall]:
        """As `ServedServer.calls`."""
        return (await self._perform(requests.served(self.name))).calls

    async def offer(self, tools: Mapping[str, Any]) -> None:
        """As `ServedServer.offer`."""
        await self._perform(requests.change_tools(self.name, tools))

    async def script(
        self,
        connects: Iterable[str | Mapping[str, Any]] | None = None,
        calls: Iterable[str | Mapping[str, Any]] | None = None,
    ) -> None:
        """As `ServedServer.script`."""
        await self._perform(requests.script_served(self.name, connects, calls))

    async def stop(self) -> None:
        """As `ServedServer.stop`."""
        await self._perform(requests.stop_serving(self.name))

    def __repr__(self) -> str:
        return f"<AsyncServedServer {self.name} {self.url}>"
