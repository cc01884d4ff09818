"""A part of a plan: what one mode does in one run.

Law: with an empty variant a part changes nothing that a client could tell and notes what there is to try;
with one it does that and nothing else, so that the variant alone brings the same run about again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from emulator.domain.event_log import Event
    from emulator.domain.world import Organization
    from emulator.runtime.deployment import Deployment
    from emulator.runtime.feed import Reader


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to run a test again: what the setting `explore` is given for it, and what happens then."""

    explore: str
    about: str


@dataclass(frozen=True, slots=True)
class Sent:
    """A request that is about to be carried out. `body` is its JSON; `number` counts them."""

    number: int
    organization: Organization
    verb: str
    path: str
    body: Any


class Part:
    """Does nothing. `reached` tells whether what the variant is about came to pass."""

    def __init__(self, deployment: Deployment, variant: str) -> None:
        self.deployment = deployment
        self.variant = variant
        self.reached = False

    def variants(self) -> Sequence[Variant]:
        """What the run so far can be explored with."""
        return ()

    async def before(self, sent: Sent) -> None:
        """Just before a request is carried out."""

    def after(self, number: int) -> None:
        """Just after it was answered."""

    def happened(self, organization: Organization, events: Sequence[Event]) -> None:
        """Events were recorded."""

    def answer(self, content: Any) -> Any:
        """A JSON answer as it is to be sent."""
        return content

    def stream(self, reader: Reader, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """The bytes of an event stream as they are to be sent. A chunk is one frame or more, all of them whole."""
        return chunks
