"""The handle: an emulator as a test sees it, whether in this process or anywhere else.

Law: a handle knows a transport and nothing of what is behind it. Both spellings, plain and awaitable,
take every operation from `requests`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from emulator.client import requests
from emulator.client.assertions import Assertions, AsyncAssertions
from emulator.client.faults import AsyncFaults, Faults
from emulator.client.parts import (
    AsyncClock,
    AsyncMcp,
    AsyncSettingsControl,
    AsyncTokens,
    AsyncWebhooks,
    Clock,
    Mcp,
    SettingsControl,
    Tokens,
    Webhooks,
)
from emulator.client.requests import ControlError
from emulator.refusals import Refusal

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from emulator.client.requests import Request, Requests
    from emulator.client.timeline import Timeline
    from emulator.client.transcript import Transcript

T = TypeVar("T")


class Transport(Protocol):
    """Carries an operation out and gives its answer as a JSON value.

    Raises `ControlError`, or a `Refusal` that becomes one.
    """

    def send(self, verb: str, path: str, body: Any = None) -> Any: ...


class AsyncTransport(Protocol):
    """The same, awaited."""

    async def send(self, verb: str, path: str, body: Any = None) -> Any: ...


class Handle(Assertions):
    """An emulator to script and inspect. Raises `ControlError` for what the emulator refuses.

    `url` and `token` are what the code under test is given.
    """

    def __init__(self, transport: Transport, url: str, token: str) -> None:
        self._transport = transport
        self.url = url
        self.token = token
        self.mcp = Mcp(self)
        self.faults = Faults(self)
        self.clock = Clock(self)
        self.webhooks = Webhooks(self)
        self.tokens = Tokens(self)
        self.settings = SettingsControl(self)

    def perform(self, request: Request[T]) -> T:
        """Carry out an operation."""
        try:
            return request.parse(self._transport.send(request.verb, request.path, request.body))
        except (Refusal, ControlError) as error:
            raise request.refused(error) from None

    def load(self, source: str | os.PathLike[str] | Mapping[str, Any], *, mode: str | None = None) -> dict[str, Any]:
        """Put a scenario in place, from a file of this machine or as a mapping, and give it as it was taken.

        A recording is taken as the scenario it is played as; its `mode` is `script` or `strict`, else the setting's.
        """
        return self.perform(requests.load(source, mode))

    def approve(self, call_id: str | None = None, approved: bool = True, *, code: str | None = None) -> str:
        """Decide an approval as the person at the console: the only open one, unless named. Gives its call id.

        With `approved=False` a `code` (`approval_timeout`, `credential_inspection_denied`) has the platform refuse.
        """
        return self.perform(requests.approve(call_id, approved, code))

    def answer(self, text: str, call_id: str | None = None) -> str:
        """Answer a question as the person at the console: the only open one, unless named. Gives its call id."""
        return self.perform(requests.decide(call_id, {"answer": text}))

    def lose_calls(self, session_id: str) -> list[str]:
        """Have the sandbox forget the function calls a session is parked on. Gives their ids."""
        return self.perform(requests.lose_calls(session_id))

    def effective_tools(self, session_id: str) -> dict[str, Any]:
        """What a session's agent can reach: `configured`, `built_ins`, `functions`, `servers`."""
        return self.perform(requests.effective_tools(session_id))

    @property
    def requests(self) -> Requests:
        """The requests to /v1 so far, as the journal keeps them."""
        return self.perform(requests.requests())

    def events(self, session_id: str | None = None) -> list[dict[str, Any]]:
        """Every persisted event, or those of one session, oldest first."""
        return self.perform(requests.events(session_id))

    def transcript(self, session_id: str | None = None) -> Transcript:
        """What was said and done in a session; in the one created last unless named."""
        return self.perform(requests.transcript(session_id))

    def timeline(self, session_id: str | None = None) -> Timeline:
        """What clients sent and what the agent did, interleaved: of everybody, or of one session. Prints as lines."""
        return self.perform(requests.timeline(session_id))

    def settle(self, timeout: float = 5) -> bool:
        """Wait, at most `timeout` real seconds, until every agent is at rest and no webhook delivery is due.

        Gives whether that came.
        """
        return self.perform(requests.settle(timeout))

    def exploration(self) -> dict[str, Any]:
        """What this run is explored with (`explore`, `reached`), and what there is to try (`variants`)."""
        return self.perform(requests.exploration())

    def report(self) -> dict[str, Any]:
        """What is left over: unanswered calls, steps never reached, what was not deleted, script errors."""
        return self.perform(requests.report())

    def reset(self) -> None:
        """Start over: everything is as it was when the emulator started."""
        self.perform(requests.reset())


class AsyncHandle(AsyncAssertions):
    """`Handle`, awaited: the same names and results. `requests` is a method here."""

    def __init__(self, transport: AsyncTransport, url: str, token: str) -> None:
        self._transport = transport
        self.url = url
        self.token = token
        self.mcp = AsyncMcp(self)
        self.faults = AsyncFaults(self)
        self.clock = AsyncClock(self)
        self.webhooks = AsyncWebhooks(self)
        self.tokens = AsyncTokens(self)
        self.settings = AsyncSettingsControl(self)

    async def perform(self, request: Request[T]) -> T:
        """As `Handle.perform`."""
        try:
            return request.parse(await self._transport.send(request.verb, request.path, request.body))
        except (Refusal, ControlError) as error:
            raise request.refused(error) from None

    async def load(
        self, source: str | os.PathLike[str] | Mapping[str, Any], *, mode: str | None = None
    ) -> dict[str, Any]:
        """As `Handle.load`."""
        return await self.perform(requests.load(source, mode))

    async def approve(self, call_id: str | None = None, approved: bool = True, *, code: str | None = None) -> str:
        """As `Handle.approve`."""
        return await self.perform(requests.approve(call_id, approved, code))

    async def answer(self, text: str, call_id: str | None = None) -> str:
        """As `Handle.answer`."""
        return await self.perform(requests.decide(call_id, {"answer": text}))

    async def lose_calls(self, session_id: str) -> list[str]:
        """As `Handle.lose_calls`."""
        return await self.perform(requests.lose_calls(session_id))

    async def effective_tools(self, session_id: str) -> dict[str, Any]:
        """As `Handle.effective_tools`."""
        return await self.perform(requests.effective_tools(session_id))

    async def requests(self) -> Requests:
        """As `Handle.requests`."""
        return await self.perform(requests.requests())

    async def events(self, session_id: str | None = None) -> list[dict[str, Any]]:
        """As `Handle.events`."""
        return await self.perform(requests.events(session_id))

    async def transcript(self, session_id: str | None = None) -> Transcript:
        """As `Handle.transcript`."""
        return await self.perform(requests.transcript(session_id))

    async def timeline(self, session_id: str | None = None) -> Timeline:
        """As `Handle.timeline`."""
        return await self.perform(requests.timeline(session_id))

    async def settle(self, timeout: float = 5) -> bool:
        """As `Handle.settle`."""
        return await self.perform(requests.settle(timeout))

    async def exploration(self) -> dict[str, Any]:
        """As `Handle.exploration`."""
        return await self.perform(requests.exploration())

    async def report(self) -> dict[str, Any]:
        """As `Handle.report`."""
        return await self.perform(requests.report())

    async def reset(self) -> None:
        """As `Handle.reset`."""
        await self.perform(requests.reset())
