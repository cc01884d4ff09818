"""References: ids on the way into a recording, and what stands for them there.

Law: an id that was seen once has one reference, wherever it turns up afterwards; a reference is numbered
by when its id was first seen. Nothing here knows how ids are made: they are opaque, and learnt from the
fields they stand in (contract §1).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

KINDS: Final = (
    "session",
    "turn",
    "item",
    "call",
    "artifact",
    "webhook",
    "agent",
    "credential",
    "profile",
    "token",
    "request",
    "key",
)
REFERENCE: Final = re.compile(rf"<({'|'.join(KINDS)}) (\d+)>")

# The fields that hold an id, and whose it is.
_FIELDS: Final[Mapping[str, str]] = {
    "session_id": "session",
    "parent_session_id": "session",
    "forked_from": "session",
    "root": "session",
    "turn_id": "turn",
    "turnId": "turn",
    "call_id": "call",
    "toolCallId": "call",
    "artifact_id": "artifact",
    "webhook_id": "webhook",
    "agent_id": "agent",
    "credential_id": "credential",
    "model_credential_id": "credential",
    "moved_to": "credential",
    "created_by_token": "token",
    "request_id": "request",
}
# What the `id` of an object is, by the object's own `object`.
_OBJECTS: Final[Mapping[str, str]] = {
    "session": "session",
    "turn": "turn",
    "item": "item",
    "artifact": "artifact",
    "webhook.subscription": "webhook",
    "webhook": "webhook",
    "agent": "agent",
    "environment_template": "agent",
    "model_credential": "credential",
    "environment_profile": "profile",
    "preview": "session",
}
# Shorter ones are replaced where they are the whole value only.
_LEAST: Final = 8
_WORD: Final = re.compile(r"[A-Za-z0-9_\-]{8,}")
# What callers write instead of an id.
_NO_IDS: Final = frozenset(("", "me"))


def holds_an_id(field: str) -> bool:
    """Whether a field of that name holds an id."""
    return field in _FIELDS


class References:
    """The ids of one recording. `known` has the reference of each."""

    def __init__(self) -> None:
        self.known: dict[str, str] = {}
        self._count = dict.fromkeys(KINDS, 0)

    def learn(self, value: Any, kind: str) -> str | None:
        """The reference of an id of that kind, a new one if it is new; `None` for what is no id."""
        if not isinstance(value, str) or value in _NO_IDS:
            return None
        found = self.known.get(value)
        if found is None:
            self._count[kind] += 1
            found = self.known[value] = f"<{kind} {self._count[kind]}>"
        return found

    def learn_field(self, field: str, value: Any) -> str | None:
        """The reference of what a field of that name holds, if it holds an id."""
        kind = _FIELDS.get(field)
        return None if kind is None else self.learn(value, kind)

    def learn_in(self, value: Any, *, answer: bool, parent: str = "") -> None:
        """Take note of every id in a JSON value. What clients name by `id` may be a name as well: `answer` only."""
        if isinstance(value, list):
            for entry in value:
                self.learn_in(entry, answer=answer, parent=parent)
        elif isinstance(value, dict):
            kind = str(value.get("object", "")).removesuffix(".deleted")
            if answer and kind in _OBJECTS:
                self.learn(value.get("id"), _OBJECTS[kind])
            if answer and parent == "agent" and "object" not in value:
                self.learn(value.get("id"), "agent")
            for field, entry in value.items():
                if isinstance(entry, str):
                    self.learn_field(field, entry)
                else:
                    # What a function is called with, and what it is declared with, is not the API's.
                    if field not in ("arguments", "args", "parameters", "schema", "metadata"):
                        self.learn_in(entry, answer=answer, parent=field)

    def text(self, text: str) -> str:
        """A text with every known id in it replaced."""
        found = self.known.get(text)
        if found is not None:
            return found
        if len(text) < _LEAST or not self.known:
            return text
        return _WORD.sub(lambda match: self.known.get(match[0], match[0]), text)
