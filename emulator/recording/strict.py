"""Strict playback: the client's writes are held against the recorded ones, in order for each session.

Law: reads do not count, nor do values of idempotency keys, fields that are free, requests that were sent
again because they did not get through, and which id something has. Everything else does, field by field.
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from emulator.api.operations import OPERATIONS
from emulator.api.routes import Routes
from emulator.api.shapes import kept, shape_of
from emulator.differences import Difference, difference_line, differences, path_text
from emulator.recording.references import REFERENCE
from emulator.recording.secrets import PLACEHOLDER
from emulator.refusals import Refusal

if TYPE_CHECKING:
    from emulator.api.operations import Operation
    from emulator.api.shapes import Shape
    from emulator.domain.session import Session
    from emulator.recording.document import Recording
    from emulator.runtime.playback import Written

# Refusals that have a client send the same again: how often it must is not its contract.
_AGAIN: Final = (429, 500, 502, 503)
_READS: Final = ("GET", "HEAD")
_SESSION: Final = re.compile(r"/v1/sessions/([^/]+)")
_PART: Final = re.compile(rf"{REFERENCE.pattern}|{PLACEHOLDER.pattern}")
_ASKS: Final = ("tool.required", "approval.requested", "question.asked")
# How far ahead a recorded write is looked for when another one came.
_AHEAD: Final = 5


@dataclass(frozen=True, slots=True)
class Expected:
    """A recorded write."""

    line: int
    verb: str
    path: str
    body: Any
    has_body: bool
    answer: Any
    shape: Shape | None


class Strict:
    """The writes of one recording, as a client makes them again."""

    def __init__(self, recording: Recording, name: str = "the recording") -> None:
        self._name = name
        self._free = [_pattern(path) for path in recording.free]
        # By the session a write is to, as a reference; `None` for those to no session.
        self._expected: dict[str | None, deque[Expected]] = {}
        self._ids: dict[str, str] = {}
        self._findings: list[dict[str, Any]] = []
        self._keys: set[tuple[str, str, str]] = set()
        self._turns, self._calls = _ordinals(recording)
        seen: set[tuple[str, str, str]] = set()
        routes = Routes(OPERATIONS)
        for entry in recording.exchanges():
            if entry["verb"] in _READS or entry["status"] in _AGAIN or entry.get("cut"):
                continue
            key = (entry.get("headers") or {}).get("idempotency-key")
            if key is not None:
                if (entry["verb"], entry["path"], key) in seen:
                    continue
                seen.add((entry["verb"], entry["path"], key))
            match = _SESSION.match(entry["path"])
            expected = Expected(
                entry["line"],
                entry["verb"],
                entry["path"],
                entry.get("body"),
                "body" in entry,
                entry.get("answer"),
                _shape(routes, entry["verb"], entry["path"]),
            )
            self._expected.setdefault(match[1] if match else None, deque()).append(expected)

    def wrote(self, written: Written) -> None:
        """Take a write, and note where it is not the one that was recorded at its place."""
        if written.status in _AGAIN or not written.path.startswith("/v1/"):
            return
        if written.key is not None:
            key = (written.verb, written.path, written.key)
            if key in self._keys:
                return
            self._keys.add(key)
        match = _SESSION.match(written.path)
        session_id = match[1] if match else None
        group = None if session_id is None else self._reference(session_id)
        queue = self._expected.get(group, deque()) if session_id is None or group is not None else deque()
        same = [n for n, one in enumerate(islice(queue, _AHEAD)) if self._same_place(one, written)]
        if not same:
            self._unexpected(written, session_id, queue)
            return
        place = same[0]
        if session_id is None:
            # Sessions are made in whatever order: what fits is the one that was meant.
            fitting = next((n for n in same if not self._differences(queue[n], written, None)), None)
            if fitting is not None:
                expected = queue[fitting]
                del queue[fitting]
                self._compare(expected, written, None)
                return
        for _ in range(place):
            self._missing(queue.popleft(), self._findings)
        self._compare(queue.popleft(), written, session_id)

    def findings(self) -> list[dict[str, Any]]:
        """Every difference, and the writes that have not come."""
        found = list(self._findings)
        for queue in self._expected.values():
            for expected in queue:
                self._missing(expected, found)
        return found

    # Inside

    def _compare(self, expected: Expected, written: Written, session_id: str | None) -> None:
        session = None
        if written.organization is not None and session_id is not None:
            session = written.organization.find(session_id)
        if found := self._differences(expected, written, session, bind=True):
            self._different(expected, written, session_id, found)
        if isinstance(expected.answer, dict) and isinstance(written.answer, dict):
            # Whatever was made has its id from here on.
            self._bind(expected.answer.get("id"), written.answer.get("id"))

    def _differences(
        self, expected: Expected, written: Written, session: Session | None, *, bind: bool = False
    ) -> list[Difference]:
        """Where a body is not the recorded one. With `bind`, ids seen for the first time are kept."""
        if not expected.has_body and written.body is None:
            return []
        before = dict(self._ids)
        recorded = self._resolved(expected.body, written.body, session)
        if not bind:
            self._ids = before
        return [one for one in differences(recorded, written.body) if not self._is_free(one)]

    def _same_place(self, expected: Expected, written: Written) -> bool:
        if expected.verb != written.verb:
            return False
        recorded, sent = expected.path.split("/"), written.path.split("/")
        return len(recorded) == len(sent) and all(
            one == other or (REFERENCE.fullmatch(one) is not None and self._ids.get(one, other) == other)
            for one, other in zip(recorded, sent, strict=True)
        )

    def _resolved(self, recorded: Any, sent: Any, session: Session | None) -> Any:
        """What was recorded, with what the client sent where the two agree but for ids and secrets."""
        match recorded:
            case dict():
                given = sent if isinstance(sent, dict) else {}
                return {name: self._resolved(value, given.get(name), session) for name, value in recorded.items()}
            case list():
                given_list = sent if isinstance(sent, list) else []
                return [
                    self._resolved(value, given_list[n] if n < len(given_list) else None, session)
                    for n, value in enumerate(recorded)
                ]
            case str() if _PART.search(recorded):
                return self._resolved_text(recorded, sent, session)
        return recorded

    def _resolved_text(self, recorded: str, sent: Any, session: Session | None) -> str:
        if isinstance(sent, str) and sent == recorded:
            return sent
        pattern, parts, at = "", [], 0
        for match in _PART.finditer(recorded):
            pattern += re.escape(recorded[at : match.start()]) + "(.+)"
            parts.append(match[0])
            at = match.end()
        found = re.fullmatch(pattern + re.escape(recorded[at:]), sent, re.DOTALL) if isinstance(sent, str) else None
        for n, part in enumerate(parts):
            known = self._ids.get(part) or self._by_order(part, session)
            if known is not None:
                recorded = recorded.replace(part, known)
            elif found is not None:
                # Which secret it is does not count, and none is kept.
                if REFERENCE.fullmatch(part):
                    self._bind(part, found[n + 1])
                recorded = recorded.replace(part, found[n + 1])
        return recorded

    def _by_order(self, reference: str, session: Session | None) -> str | None:
        """The id of the turn or the call that stands where the recorded one stood in its session."""
        if session is None:
            return None
        if (number := self._turns.get(reference)) is not None and number < len(session.turns):
            return session.turns[number].id
        calls = list(session.actions)
        if (number := self._calls.get(reference)) is not None and number < len(calls):
            return calls[number]
        return None

    def _bind(self, reference: Any, actual: Any) -> None:
        if isinstance(reference, str) and isinstance(actual, str) and _PART.fullmatch(reference):
            self._ids.setdefault(reference, actual)

    def _reference(self, actual: str) -> str | None:
        return next((reference for reference, known in self._ids.items() if known == actual), None)

    def _is_free(self, found: Difference) -> bool:
        text = path_text(found.path)
        return any(pattern.match(text) for pattern in self._free)

    def _different(self, expected: Expected, written: Written, session_id: str | None, found: list[Difference]) -> None:
        # As the journal shows it: what was sent may be a secret.
        shown = kept(expected.shape, written.body)
        told = [
            replace(one, actual=_at(shown, one.path)).as_json() if one.actual is not None else one.as_json()
            for one in found
        ]
        head = f"{self._name}, line {expected.line}, {_shown(expected)}: the client sent something else"
        lines = [head, *(f"      {difference_line(one)}" for one in told)]
        self._findings.append(
            {
                "kind": "different",
                "line": expected.line,
                "session_id": session_id,
                "verb": written.verb,
                "path": written.path,
                "request_id": written.request_id,
                "differences": told,
                "message": "\n".join(lines),
            }
        )

    def _unexpected(self, written: Written, session_id: str | None, queue: deque[Expected]) -> None:
        next_one = f"The next one recorded is {_shown(queue[0])} (line {queue[0].line})" if queue else "None is left"
        where = "" if session_id is None else " for this session"
        what = f"{written.verb} {written.path}"
        self._findings.append(
            {
                "kind": "unexpected",
                "line": queue[0].line if queue else None,
                "session_id": session_id,
                "verb": written.verb,
                "path": written.path,
                "request_id": written.request_id,
                "differences": [],
                "message": f"{self._name}: the client sent {what}, which was not recorded{where}. {next_one}.",
            }
        )

    def _missing(self, expected: Expected, into: list[dict[str, Any]]) -> None:
        into.append(
            {
                "kind": "missing",
                "line": expected.line,
                "session_id": None,
                "verb": expected.verb,
                "path": expected.path,
                "request_id": None,
                "differences": [],
                "message": f"{self._name}, line {expected.line}, {_shown(expected)}: the client did not send it",
            }
        )


def _at(value: Any, path: tuple[str | int, ...]) -> Any:
    """What is at a place of a body, as far as it is shown."""
    for part in path:
        match value:
            case dict() if part in value:
                value = value[part]
            case list() if isinstance(part, int) and part < len(value):
                value = value[part]
            case _:
                return value
    return value


def _shown(expected: Expected) -> str:
    """A recorded write in a few words."""
    events = expected.body.get("events") if isinstance(expected.body, dict) else None
    first = events[0] if isinstance(events, list) and events and isinstance(events[0], dict) else {}
    kind = f" ({first['type']})" if "type" in first else ""
    return f"{expected.verb} {expected.path}{kind}"


def _shape(routes: Routes[Operation], verb: str, path: str) -> Shape | None:
    """The shape of what is sent there."""
    try:
        operation, _ = routes.find(verb, quote(path).encode())
    except Refusal:
        return None
    return None if operation.request is None else shape_of(operation.request.model)


def _pattern(path: str) -> re.Pattern[str]:
    """A path whose `*` stands for any one name or number; what is inside a free field is free."""
    return re.compile(re.escape(path).replace(r"\*", r"[^.\[\]]+") + r"(?![^.\[])")


def _ordinals(recording: Recording) -> tuple[dict[str, int], dict[str, int]]:
    """For each recorded turn and each call that waited, its place in its session, from 0."""
    turns: dict[str, int] = {}
    calls: dict[str, int] = {}
    counted: dict[tuple[str, str], int] = {}

    def place(session: str, kind: str) -> int:
        counted[session, kind] = counted.get((session, kind), -1) + 1
        return counted[session, kind]

    for event in recording.of("event"):
        payload, session = event["payload"], event["session"]
        if event["event"] == "turn.started":
            turns[str(payload.get("turnId"))] = place(session, "turn")
        elif event["event"] in _ASKS:
            calls[str(payload.get("toolCallId"))] = place(session, "call")
    return turns, calls
