"""The transcript: a session's items, read from the event log.

Law: a reader with a cursor, nothing more; every item is made from one event and keeps its place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from emulator.domain.event_log import Event, EventLog
    from emulator.ids import Ids

# contract §8: these events make items, and no other does.
ITEM_TYPES: Final[Mapping[str, str]] = {
    "user.message": "message",
    "agent.message": "message",
    "user.context": "context",
    "agent.tool_call": "tool_call",
    "agent.tool_result": "tool_call",
    "tool.required": "tool_call",
    "tool.resolved": "tool_call",
    "file.changed": "file_change",
    "approval.requested": "approval",
    "approval.resolved": "approval",
    "question.asked": "question",
    "question.answered": "question",
    "mcp.unavailable": "mcp_unavailable",
    "agent.error": "error",
}


class Transcript:
    """The items of one session, oldest first. `refresh` reads on from where it stopped.

    `inherited` are the events whose items a fork begins with.
    """

    def __init__(self, session_id: str, log: EventLog, ids: Ids, inherited: Sequence[Event] = ()) -> None:
        self._session_id = session_id
        self._log = log
        self._ids = ids
        self._cursor = 0
        self._events: list[Event] = []
        self._item_ids: list[str] = []
        self._position: dict[str, int] = {}
        self._take(inherited)

    def refresh(self) -> list[str]:
        """The item ids, oldest first."""
        events = self._log.of(self._session_id)
        self._take(events[self._cursor :])
        self._cursor = len(events)
        return self._item_ids

    def events(self) -> Sequence[Event]:
        """The events the items are made from, oldest first, as of now."""
        self.refresh()
        return tuple(self._events)

    def _take(self, events: Sequence[Event]) -> None:
        for event in events:
            if event.type in ITEM_TYPES:
                item_id = self._ids.derive("item", self._session_id, len(self._item_ids) + 1)
                self._position[item_id] = len(self._item_ids)
                self._item_ids.append(item_id)
                self._events.append(event)

    def position(self, item_id: str) -> int | None:
        """Where an item stands, or `None`."""
        return self._position.get(item_id)

    def item(self, position: int) -> dict[str, Any]:
        """The item at a place, in the API's shape (contract §8)."""
        event = self._events[position]
        payload = self._log.payload(event)
        item: dict[str, Any] = {
            "object": "item",
            "id": self._item_ids[position],
            "session_id": self._session_id,
            "type": _type(event.type, payload),
            "created_at": event.created_at,
        }
        if item["type"] == "message":
            item["role"] = "user" if event.type == "user.message" else "assistant"
            item["content"] = payload["text"]
        if item["type"] == "mcp_unavailable":
            item["server"] = payload["server"]
            item["reason"] = payload["reason"]
        name = event.type
        if name == "file.changed":
            name = f"file.{payload['changeType']}"
        item["detail"] = {"event": name, **payload}
        return item


def _type(event_type: str, payload: dict[str, Any]) -> str:
    if event_type == "agent.tool_result" and payload["toolName"] == "bash":
        return "command_execution"
    return ITEM_TYPES[event_type]
