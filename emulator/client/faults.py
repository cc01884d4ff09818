"""HTTP faults, as a handle scripts them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypedDict

from emulator.client import requests
from emulator.client.parts import AsyncPart, Part

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TypeAlias, Unpack

    from emulator.wire.faults import Fault

    Listed: TypeAlias = list[Fault]


class Asked(TypedDict, total=False):
    """What goes wrong, and when. Seconds of `delay`, `stall` and `drip` are real, those of `after` and `until` are of
    the emulator's clock, from now."""

    error: str
    message: str
    retry_after: int
    html: int
    empty: Literal[True]
    reset: Literal["before", "during", "after"]
    truncate: int
    twice: Literal[True]
    cut: Literal["end", "close", "reset"]
    stall: float | Literal["forever"]
    after_event: int
    after_bytes: int
    inside: Literal["frame", "character"]
    duplicate: int | Literal["all"]
    drip: Mapping[str, float]
    retry: int | Literal["absent"]
    delay: float
    times: int
    probability: float
    after: float
    until: float


class Faults(Part):
    """Requests to /v1 that go wrong."""

    def add(self, match: Mapping[str, str | int] | None = None, **asked: Unpack[Asked]) -> Fault:
        """Have the requests go wrong that are such: `faults.add({"method": "GET"}, error="directory_unavailable")`.

        `match` may have `method`, `path` (`*` stands for a segment), `nth`, `token` and `session` (ids); empty, it is
        every request. One of `error` (with `message`, `retry_after`), `html`, `empty`, `reset`, `truncate`, `twice`;
        for streams `cut` or `stall` (with `after_event`, `after_bytes` or `inside`), `duplicate`, `drip`; `delay` goes
        with each, `retry` with those of streams. `times` says how often, `probability` how likely, `after` and `until`
        when. Gives it with its `id`.
        """
        return self._perform(requests.add_fault(match, dict(asked)))

    def clear(self, fault_id: str | None = None) -> None:
        """Forget all faults, or one."""
        self._perform(requests.clear_faults(fault_id))

    def list(self) -> Listed:
        """The faults in order, each with `hits`: how often it happened."""
        return self._perform(requests.faults())


class AsyncFaults(AsyncPart):
    """`Faults`, awaited."""

    async def add(self, match: Mapping[str, str | int] | None = None, **asked: Unpack[Asked]) -> Fault:
        """As `Faults.add`."""
        return await self._perform(requests.add_fault(match, dict(asked)))

    async def clear(self, fault_id: str | None = None) -> None:
        """As `Faults.clear`."""
        await self._perform(requests.clear_faults(fault_id))

    async def list(self) -> Listed:
        """As `Faults.list`."""
        return await self._perform(requests.faults())
