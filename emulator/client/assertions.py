"""Assertions of a handle, in both spellings: what must be true of an emulator now.

Law: each reads the emulator once and says what is wrong; what it says is made in `verdict`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from emulator.client import requests, verdict

if TYPE_CHECKING:
    from collections.abc import Iterable

    from emulator.client.requests import Request
    from emulator.wire.control import RequestEntry

T = TypeVar("T")


class Assertions:
    """What a plain handle can assert."""

    def perform(self, request: Request[T]) -> T:
        """Carry out an operation."""
        raise NotImplementedError

    def assert_clean(self, ignore: Iterable[str] = ()) -> None:
        """Raise `AssertionError` with a list of what failed and what is left over; `ignore` names kinds of it.

        The kinds are those of the report's verdict: `unanswered_actions`, `unreached_steps`, `sessions` and so on.
        """
        __tracebackhide__ = True
        report = self.perform(requests.report())
        verdict.check_clean(report, ignore)

    def assert_no_requests(self) -> None:
        """Raise `AssertionError` if a client has sent anything to /v1."""
        __tracebackhide__ = True
        verdict.check_no_requests(self.perform(requests.requests()))

    def assert_sent(self, method: str, path: str, body: Any = None, times: int | None = None) -> list[RequestEntry]:
        """Give the requests of a method to a path; raise `AssertionError` if there is none, or not `times` of them.

        In `path` a segment `*` or `{…}` stands for any. `body` is what the body has at least, as the journal keeps
        it; objects may have more, lists may not. What is raised names the nearest requests, and what differs.
        """
        __tracebackhide__ = True
        return verdict.check_sent(self.perform(requests.requests()), method, path, body, times)

    def assert_not_sent(self, method: str, path: str, body: Any = None) -> None:
        """Raise `AssertionError` if a request fits, as `assert_sent` has it."""
        __tracebackhide__ = True
        verdict.check_not_sent(self.perform(requests.requests()), method, path, body)


class AsyncAssertions:
    """The same, awaited."""

    async def perform(self, request: Request[T]) -> T:
        """Carry out an operation."""
        raise NotImplementedError

    async def assert_clean(self, ignore: Iterable[str] = ()) -> None:
        """As `Assertions.assert_clean`."""
        __tracebackhide__ = True
        report = await self.perform(requests.report())
        verdict.check_clean(report, ignore)

    async def assert_no_requests(self) -> None:
        """As `Assertions.assert_no_requests`."""
        __tracebackhide__ = True
        verdict.check_no_requests(await self.perform(requests.requests()))

    async def assert_sent(
        self, method: str, path: str, body: Any = None, times: int | None = None
    ) -> list[RequestEntry]:
        """As `Assertions.assert_sent`."""
        __tracebackhide__ = True
        return verdict.check_sent(await self.perform(requests.requests()), method, path, body, times)

    async def assert_not_sent(self, method: str, path: str, body: Any = None) -> None:
        """As `Assertions.assert_not_sent`."""
        __tracebackhide__ = True
        verdict.check_not_sent(await self.perform(requests.requests()), method, path, body)
