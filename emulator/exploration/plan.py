"""The plan: what an emulator does in an explored run, as the setting `explore` says.

Law: it lives in the emulator, not in a client, so that it makes no difference what language and process
the client is. A deployment has one at most; without the setting it has none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from emulator.exploration.future import Future
from emulator.exploration.part import Part, Sent, Variant
from emulator.exploration.race import Race
from emulator.exploration.resume import Resume
from emulator.refusals import Refusal

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from emulator.domain.world import Organization
    from emulator.runtime.deployment import Deployment
    from emulator.runtime.feed import Reader

_PARTS: Final[Mapping[str, type[Part]]] = {"resume_everywhere": Resume, "race": Race, "future_proof": Future}


def install(deployment: Deployment) -> None:
    """Have a deployment do what its setting `explore` says, from now on."""
    present = deployment.exploring
    if isinstance(present, Plan):
        present.remove()
    if deployment.world.settings.explore:
        deployment.exploring = Plan(deployment, deployment.world.settings.explore)


class Plan:
    """The parts of a plan, asked one after the other."""

    def __init__(self, deployment: Deployment, explore: Sequence[str]) -> None:
        self.explore = tuple(explore)
        self.over = False
        self._deployment = deployment
        self._numbers = 0
        self._parts: list[Part] = []
        for entry in explore:
            mode, _, variant = entry.partition(":")
            self._parts.append(_PARTS[mode](deployment, variant))
        self._cursors = {
            organization.id: organization.log.last_seq for organization in deployment.world.organizations()
        }
        deployment.feed.listeners.append(self._recorded)

    def remove(self) -> None:
        """Have the deployment do as ever again."""
        self._deployment.feed.listeners.remove(self._recorded)
        self._deployment.deliveries.widened = None
        self._deployment.exploring = None

    @property
    def reached(self) -> bool:
        """Whether all that was to happen has come to pass."""
        return all(part.reached for part in self._parts if part.variant)

    def variants(self) -> list[Variant]:
        """What the run so far can be explored with, by the modes that were named without a variant."""
        return [variant for part in self._parts if not part.variant for variant in part.variants()]

    def give_up(self) -> None:
        """End every stream and refuse everything from now on: the client does not come to an end by itself."""
        self.over = True
        self._deployment.feed.end()

    async def before(self, organization: Organization, verb: str, path: str, sent: Any, *, stream: bool) -> int:
        if self.over:
            raise Refusal("internal_error", "This explored run has taken too long, so nothing is served any more.")
        self._numbers += 1
        number = self._numbers
        if not stream:
            for part in self._parts:
                await part.before(Sent(number, organization, verb, path, sent))
        return number

    def after(self, number: int) -> None:
        for part in self._parts:
            part.after(number)

    def answer(self, content: Any) -> Any:
        for part in self._parts:
            content = part.answer(content)
        return content

    def stream(self, reader: Reader, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        for part in self._parts:
            chunks = part.stream(reader, chunks)
        return chunks

    def _recorded(self, organization: Organization) -> None:
        log = organization.log
        cursor = self._cursors.get(organization.id, 0)
        if cursor == log.last_seq:
            return
        self._cursors[organization.id] = log.last_seq
        events = [event for event in log.of(None)[log.after(cursor, None) :] if event.frame]
        if events:
            for part in self._parts:
                part.happened(organization, events)
