"""The future: what a later version of the API may add, which a tolerant client does not mind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pydantic_core import from_json, to_json

from emulator.exploration.part import Part, Variant

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from emulator.domain.event_log import Event
    from emulator.domain.world import Organization
    from emulator.runtime.deployment import Deployment
    from emulator.runtime.feed import Reader

EVENT: Final = "future.event"
ITEM: Final = "future_item"
FIELD: Final = "future_field"
_VALUE: Final = {"added": ["by", "future_proof"]}

# Under these names stands what a user sent, which the API adds nothing to; or a whole document.
_OF_USERS: Final = frozenset(
    ("metadata", "arguments", "args", "parameters", "schema", "env_refs", "permission_rules", "data_schema", "openapi")
)
_ABOUT: Final = {
    "events": "event streams carry an event type that is not known today",
    "fields": "every object of answers, events and webhooks has a field that is not known today",
    "items": "lists of items have an item of a type that is not known today",
}


class Future(Part):
    """A variant is what is added: `events`, `fields` or `items`."""

    def __init__(self, deployment: Deployment, variant: str) -> None:
        super().__init__(deployment, variant)
        self._adding = False
        if variant == "fields":
            deployment.deliveries.widened = self._webhook

    def variants(self) -> Sequence[Variant]:
        return [Variant(f"future_proof:{name}", about) for name, about in _ABOUT.items()]

    def happened(self, organization: Organization, events: Sequence[Event]) -> None:
        """Record an event of an unknown type behind what has been recorded."""
        if self.variant != "events" or self._adding:
            return
        session_id = events[-1].session_id
        if organization.find(session_id) is None:
            return
        self._adding = True
        try:
            organization.log.append(session_id, EVENT, {FIELD: _VALUE})
            self.deployment.feed.pump(organization)
        finally:
            self._adding = False

    def answer(self, content: Any) -> Any:
        if self.variant == "fields":
            self.reached = True
            return widened(content)
        if self.variant == "items" and _is_items(content):
            self.reached = True
            first = content["data"][0]
            item = {
                **{name: first[name] for name in ("object", "session_id", "created_at")},
                "id": "item_0000000000000000",
                "type": ITEM,
                "detail": {"event": EVENT, FIELD: _VALUE},
            }
            # In front: the id of the last one is a cursor, and this one is none.
            return {**content, "data": [item, *content["data"]]}
        return content

    def stream(self, reader: Reader, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        if self.variant == "events":
            return self._with_events(reader, chunks)
        return self._with_fields(chunks) if self.variant == "fields" else chunks

    async def _with_events(self, reader: Reader, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """A transient event of an unknown type in front; recorded ones are on the log."""
        async for chunk in chunks:
            yield chunk
            if chunk.startswith(b"retry:"):
                self.reached = True
                head = {"object": "event", "type": EVENT, "internal_type": EVENT, "session_id": reader.key[1]}
                rest = {"seq": None, "created_at": self.deployment.world.now(), "payload": {FIELD: _VALUE}}
                yield b"event: %b\ndata: %b\n\n" % (EVENT.encode(), to_json({**head, **rest}))

    async def _with_fields(self, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for chunk in chunks:
            self.reached = True
            yield b"".join(_wider(frame) + b"\n\n" for frame in chunk.split(b"\n\n")[:-1])

    @staticmethod
    def _webhook(body: bytes) -> bytes:
        return to_json(widened(from_json(body)))


def widened(content: Any) -> Any:
    """A JSON value with a field more in every object that is the API's own."""
    if isinstance(content, dict):
        kept = {name: value if name in _OF_USERS else widened(value) for name, value in content.items()}
        return kept if "openapi" in content else {**kept, FIELD: _VALUE}
    return [widened(entry) for entry in content] if isinstance(content, list) else content


def _wider(frame: bytes) -> bytes:
    head, data, body = frame.partition(b"\ndata: ")
    return head + data + to_json(widened(from_json(body))) if data else frame


def _is_items(content: Any) -> bool:
    if not isinstance(content, dict) or content.get("object") != "list" or not content.get("data"):
        return False
    first = content["data"][0]
    return isinstance(first, dict) and first.get("object") == "item"
