"""The points at which an explored run differs from an ordinary one.

Law: an ordinary run has none of this: what is asked at each point is whether there is anything at all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from emulator.domain.world import Organization
    from emulator.runtime.feed import Reader


class Exploring(Protocol):
    """What is different in an explored run of one deployment."""

    async def before(self, organization: Organization, verb: str, path: str, sent: Any, *, stream: bool) -> int:
        """A request has passed every gate and is carried out when this returns. Gives the number to end it by."""
        ...

    def after(self, number: int) -> None:
        """The request has been answered."""
        ...

    def answer(self, content: Any) -> Any:
        """A JSON answer as it is to be sent."""
        ...

    def stream(self, reader: Reader, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """The bytes of an event stream as they are to be sent."""
        ...
