"""The journal: the requests an emulator was sent, bounded and without secrets.

Law: what enters has been through the allowlist of its operation already; nothing here could leak
what was never put in.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator

# How many bodies are known again.
_BODIES: Final = 64
_UNKNOWN: Final = object()


@dataclass(slots=True)
class Entry:
    """One request. `duration_ms` is real milliseconds, `None` while it is under way. `fault` is the id of what it met;
    a `status` of 0: its client was sent no answer."""

    method: str
    path: str
    query: dict[str, str]
    status: int
    request_id: str
    at: int
    token_id: str | None = None
    code: str | None = None
    message: str | None = None
    duration_ms: float | None = None
    body: Any = None
    fault: str | None = None

    def as_json(self) -> dict[str, Any]:
        return {
            "method": self.method,
            "path": self.path,
            "query": self.query,
            "status": self.status,
            "code": self.code,
            "message": self.message,
            "request_id": self.request_id,
            "at": self.at,
            "token_id": self.token_id,
            "duration_ms": self.duration_ms,
            "body": self.body,
            "fault": self.fault,
        }


class Journal:
    """The latest requests, oldest first. `dropped` counts those that no longer fit."""

    def __init__(self) -> None:
        self._entries: deque[Entry] = deque()
        self._bodies: OrderedDict[Hashable, Any] = OrderedDict()
        self.dropped = 0

    def body(self, key: Hashable, keep: Callable[[], Any]) -> Any:
        """What is kept of a body: made by `keep`, or what was made of the same body a while ago.

        `key` tells bodies apart and holds nothing of them: clients send the same again and again.
        """
        kept = self._bodies.get(key, _UNKNOWN)
        if kept is _UNKNOWN:
            kept = self._bodies[key] = keep()
            if len(self._bodies) > _BODIES:
                self._bodies.popitem(last=False)
        return kept

    def add(self, entry: Entry, limit: int) -> None:
        """Keep a request, at most `limit` of them."""
        self._entries.append(entry)
        while len(self._entries) > limit:
            self._entries.popleft()
            self.dropped += 1

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries)
