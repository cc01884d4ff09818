"""The parts of a handle: what it says of one thing, the clock, the tokens, the MCP servers.

Law: a part knows no more than how its handle carries an operation out. Both spellings, plain and awaitable,
take every operation from `requests`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from emulator.client import requests
from emulator.client.served import AsyncServedServer, ServedServer

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from emulator.client.handle import AsyncHandle, Handle
    from emulator.client.requests import Deliveries
    from emulator.wire import control as wire
    from emulator.wire.deliveries import Delivery


class Part:
    """What a plain part knows."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self._perform = handle.perform


class Mcp(Part):
    """What goes wrong with MCP servers, by name, from their next connect and their next call on."""

    def down(
        self,
        server: str,
        reason: str | None = None,
        times: int | None = None,
        fault: str | None = None,
        seconds: float | None = None,
    ) -> None:
        """Have connects fail for a reason: the next `times` of them, or all.

        `fault` is how: refuse, time_out, hang, unauthorized, wrong_protocol, or slow, which takes `seconds` of the
        emulator's clock and fails from ten on.
        """
        self._perform(requests.server_down(server, reason, times, fault, seconds))

    def up(self, server: str) -> None:
        """Have connects succeed."""
        self._perform(requests.server_up(server))

    def script(self, server: str, connects: Iterable[str | Mapping[str, Any]]) -> None:
        """Say how each of the next connects ends; then it is up.

        An entry is `"up"`, `"down"`, a fault of `down`, or an object: `state` or `fault`, `reason`, `seconds`, and
        `tools`, as in a scenario, for what the server offers from then on.
        """
        self._perform(requests.server_script(server, connects))

    def calls(self, server: str, calls: Iterable[str | Mapping[str, Any]]) -> None:
        """Say how each of the next calls of its tools ends; each call takes the first entry that suits it.

        An entry is `"ok"`, drop, error, malformed, a fault of `down`, or an object: `fault`, `tool` for which tool it
        waits, `seconds` of `slow`, `text` of `error`, and `tools` for what the server offers to calls after it.
        """
        self._perform(requests.server_calls(server, calls))

    def serve(self, server: str, tools: Mapping[str, Any] | None = None) -> ServedServer:
        """Serve a server for real, at an address of this emulator's, with tools as a scenario describes them.

        Without `tools` it has those that the scenario gives the server of that name. One that is served already gets
        these tools. Gives it, with its `url` and what it is sent.
        """
        return ServedServer(self._handle, server, self._perform(requests.serve(server, tools)))


class Clock(Part):
    """The emulator's clock."""

    def now(self) -> int:
        """Unix milliseconds."""
        return self._perform(requests.now())

    def advance(self, seconds: float) -> int:
        """Move the clock forward, running what falls due in order. Gives the time afterwards."""
        return self._perform(requests.advance(seconds))


class Webhooks(Part):
    """What webhooks were sent, and how their next deliveries go wrong."""

    def deliveries(self) -> Deliveries:
        """The deliveries, oldest first: each has `type`, `state`, `body`, `attempts` and ids."""
        return self._perform(requests.deliveries())

    def redeliver(self, delivery_id: str) -> Delivery:
        """Send a delivery once more, now, with the same body. Gives it with what came of that."""
        return self._perform(requests.redeliver(delivery_id))

    def script(self, entries: Iterable[Mapping[str, Any]]) -> None:
        """Have the next deliveries go wrong: `{"do": "duplicate", "type": "turn.completed", "times": 2}` and the like.

        Each delivery takes the first entry that suits it. `do` is duplicate, delay (with `seconds` of the emulator's
        clock), drop, reorder, early, wrong_secret, old_timestamp, corrupt, extra_data (with `data`) or no_turn_id.
        """
        self._perform(requests.script_webhooks(entries))

    def scripted(self) -> list[dict[str, Any]]:
        """What is still scripted, in order."""
        return self._perform(requests.scripted_webhooks())

    def clear(self) -> None:
        """Forget what is scripted."""
        self._perform(requests.clear_webhooks())


class Tokens(Part):
    """Access tokens."""

    def mint(
        self,
        *,
        scopes: Iterable[str] | None = None,
        organization: str | None = None,
        expires_in: float | None = None,
    ) -> wire.MintedToken:
        """Make a token: all scopes but `cli`, the default organization, no expiry, unless said otherwise.

        `expires_in` is in seconds of the emulator's clock. The result has `id`, `token`, `scopes`,
        `organization` and `expires_at`.
        """
        return self._perform(requests.mint(scopes, organization, expires_in))

    def revoke(self, token_id: str) -> None:
        """Have a token, named by its id, refused from its next request on."""
        self._perform(requests.revoke(token_id))


class SettingsControl(Part):
    """The settings of the emulator."""

    def get(self) -> dict[str, Any]:
        """Every setting by name."""
        return self._perform(requests.get_settings())

    def update(self, **values: Any) -> dict[str, Any]:
        """Change settings until the next reset. Gives all of them."""
        return self._perform(requests.update_settings(values))


class AsyncPart:
    """What an awaitable part knows."""

    def __init__(self, handle: AsyncHandle) -> None:
        self._handle = handle
        self._perform = handle.perform


class AsyncMcp(AsyncPart):
    """`Mcp`, awaited."""

    async def down(
        self,
        server: str,
        reason: str | None = None,
        times: int | None = None,
        fault: str | None = None,
        seconds: float | None = None,
    ) -> None:
        """As `Mcp.down`."""
        await self._perform(requests.server_down(server, reason, times, fault, seconds))

    async def up(self, server: str) -> None:
        """As `Mcp.up`."""
        await self._perform(requests.server_up(server))

    async def script(self, server: str, connects: Iterable[str | Mapping[str, Any]]) -> None:
        """As `Mcp.script`."""
        await self._perform(requests.server_script(server, connects))

    async def calls(self, server: str, calls: Iterable[str | Mapping[str, Any]]) -> None:
        """As `Mcp.calls`."""
        await self._perform(requests.server_calls(server, calls))

    async def serve(self, server: str, tools: Mapping[str, Any] | None = None) -> AsyncServedServer:
        """As `Mcp.serve`."""
        return AsyncServedServer(self._handle, server, await self._perform(requests.serve(server, tools)))


class AsyncClock(AsyncPart):
    """`Clock`, awaited."""

    async def now(self) -> int:
        """As `Clock.now`."""
        return await self._perform(requests.now())

    async def advance(self, seconds: float) -> int:
        """As `Clock.advance`."""
        return await self._perform(requests.advance(seconds))


class AsyncWebhooks(AsyncPart):
    """`Webhooks`, awaited."""

    async def deliveries(self) -> Deliveries:
        """As `Webhooks.deliveries`."""
        return await self._perform(requests.deliveries())

    async def redeliver(self, delivery_id: str) -> Delivery:
        """As `Webhooks.redeliver`."""
        return await self._perform(requests.redeliver(delivery_id))

    async def script(self, entries: Iterable[Mapping[str, Any]]) -> None:
        """As `Webhooks.script`."""
        await self._perform(requests.script_webhooks(entries))

    async def scripted(self) -> list[dict[str, Any]]:
        """As `Webhooks.scripted`."""
        return await self._perform(requests.scripted_webhooks())

    async def clear(self) -> None:
        """As `Webhooks.clear`."""
        await self._perform(requests.clear_webhooks())


class AsyncTokens(AsyncPart):
    """`Tokens`, awaited."""

    async def mint(
        self,
        *,
        scopes: Iterable[str] | None = None,
        organization: str | None = None,
        expires_in: float | None = None,
    ) -> wire.MintedToken:
        """As `Tokens.mint`."""
        return await self._perform(requests.mint(scopes, organization, expires_in))

    async def revoke(self, token_id: str) -> None:
        """As `Tokens.revoke`."""
        await self._perform(requests.revoke(token_id))


class AsyncSettingsControl(AsyncPart):
    """`SettingsControl`, awaited."""

    async def get(self) -> dict[str, Any]:
        """As `SettingsControl.get`."""
        return await self._perform(requests.get_settings())

    async def update(self, **values: Any) -> dict[str, Any]:
        """As `SettingsControl.update`."""
        return await self._perform(requests.update_settings(values))
