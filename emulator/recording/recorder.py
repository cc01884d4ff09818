"""The recorder: what is kept of the traffic it is told of.

Law: everything that reaches the file goes through `clean`, which leaves neither a secret nor an id in it.
It sends nothing and reads no clock but through what it is given; where the events come from is not its
business, only that each is kept once.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, unquote

from emulator import __version__
from emulator.api.operations import OPERATIONS
from emulator.api.routes import Routes
from emulator.api.shapes import shape_of
from emulator.clock import monotonic, real_now
from emulator.recording.document import VERSION, content_fields
from emulator.recording.references import References, holds_an_id
from emulator.refusals import Refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from emulator.api.operations import Operation
    from emulator.api.shapes import Shape
    from emulator.recording.document import Writer
    from emulator.recording.secrets import Secrets

# Frames of sessions the client has not been told of yet.
_WAITING: Final = 20_000
# An API whose events are dated this far from now does not run on real time.
_OFF: Final = 86_400_000
_KEPT_HEADERS: Final = ("content-type", "idempotency-key", "last-event-id")
_KEPT_ANSWERS: Final = ("retry-after", "allow", "content-type")
_JSON: Final = "application/json"
_DELTAS: Final = ("agent.text", "agent.thinking")
# These come while the agent speaks and do not interrupt it: a secret it tells would be cut in two.
_OF_THE_CLIENT: Final = ("user.", "message.")
_TIMES: Final = frozenset(
    ("created_at", "updated_at", "started_at", "completed_at", "expires_at", "captured_at", "as_of", "last_failed_at")
)
# Smaller numbers are no Unix milliseconds of any API's lifetime.
_LEAST_TIME: Final = 1_000_000_000_000

Place = tuple[str, ...]


@dataclass(slots=True)
class Exchange:
    """A request on its way. `operation` is `None` for a path or a verb the API does not have."""

    entry: dict[str, Any]
    operation: Operation | None
    values: dict[str, str]
    noun: str
    reads: bool = field(default=True)

    @property
    def session_id(self) -> str | None:
        """The session the path names, as it was sent."""
        return self.values.get("session_id")

    def names(self, path: str) -> bool:
        """Whether this is the operation of that path of the table."""
        return self.operation is not None and self.operation.path == path


class Recorder:
    """Keeps a recording.

    `free` are paths of body fields that strict playback does not compare; with `match` `labels` sessions are known
    by their title and metadata when it is played.
    """

    def __init__(self, writer: Writer, secrets: Secrets, free: Sequence[str] = (), match: str | None = None) -> None:
        self._writer = writer
        self.secrets = secrets
        self.references = References()
        self._routes = Routes(OPERATIONS)
        self._started = monotonic()
        self._arrived = 0
        # Sessions the client works with, by id; others of its organization are not recorded.
        self.sessions: dict[str, str] = {}
        self._waiting: deque[dict[str, Any]] = deque(maxlen=_WAITING)
        self._seen: set[tuple[str, int]] = set()
        self._deltas: dict[str, tuple[str, str]] = {}
        self._first: int | None = None
        self._contents: set[str] = set()
        self.missing: list[tuple[str, str]] = []
        # Sessions that were deleted: nothing more can be read of them.
        self.deleted: set[str] = set()
        # Told of each event that was kept, as it came.
        self.listeners: list[Callable[[dict[str, Any]], None]] = []
        header = {"recording": VERSION, "emulator": __version__, "free": list(free)}
        self._writer.write({**header, **({} if match is None else {"match": match})})

    # Exchanges

    def begin(self, verb: str, raw_path: str, query: str, headers: Mapping[str, str]) -> Exchange:
        """A request has arrived; its body follows by `sent`."""
        self._arrived += 1
        operation, values = self._find(verb, raw_path)
        for name, value in values.items():
            self.references.learn_field(name, value)
        nouns = [part for part in (operation.path if operation else "").split("/")[2:] if not part.startswith("{")]
        noun = nouns[-1] if nouns else "request"
        authorization = headers.get("authorization", "")
        if authorization:
            self.secrets.field(authorization, ("token",))
        entry: dict[str, Any] = {"at": self._at(), "n": self._arrived, "verb": self._text(verb, (noun, "verb"))}
        entry["path"] = "/".join(self._text(unquote(part), (noun, "path")) for part in raw_path.split("/"))
        if query:
            entry["query"] = self._query(query, noun)
        if kept := self._headers(headers, _KEPT_HEADERS, noun):
            entry["headers"] = kept
        return Exchange(entry, operation, values, noun, verb in ("GET", "HEAD"))

    def sent(self, exchange: Exchange, body: bytes | None, size: int) -> None:
        """The body of a request; `None` where it was too large to be kept."""
        if size:
            shape = None
            if exchange.operation is not None and exchange.operation.request is not None:
                shape = shape_of(exchange.operation.request.model)
            exchange.entry |= self._content("body", body, size, (exchange.noun,), shape, answer=False)

    def answered(
        self, exchange: Exchange, status: int, headers: Mapping[str, str], body: bytes | None, size: int, **more: Any
    ) -> None:
        """The answer to a request. `more` are further facts of it."""
        entry = exchange.entry
        entry["status"] = status
        content: dict[str, Any] = {}
        if exchange.names("/v1/sessions/{session_id}/artifacts/{artifact_id}/content") and status == 200:
            content = {"answer_bytes": size}
            if body is not None:
                self.artifact(exchange.values["artifact_id"], exchange.values["session_id"], body, size)
        elif exchange.operation is not None and exchange.operation.media == "application/x-tar" and status == 200:
            content = {"answer_bytes": size}
        elif exchange.names("/v1/openapi.json"):
            # A document of its own, the same for everybody.
            content = {"answer_bytes": size}
        elif size:
            content = self._content("answer", body, size, (exchange.noun, "answer"), None, answer=True)
        answer_headers = self._headers(headers, _KEPT_ANSWERS, exchange.noun)
        if answer_headers.get("content-type") == _JSON:
            del answer_headers["content-type"]
        if answer_headers:
            entry["answer_headers"] = answer_headers
        # The session is known from here on: what was seen of it before belongs in front of this.
        self._meet(exchange, status, body)
        self._writer.write(entry | content | more)

    def note(self, kind: str, **facts: Any) -> None:
        """Say something about the recording itself."""
        self._writer.write({"at": self._at(), "note": kind, **self.clean(facts, ("note",))})

    def incomplete(self, what: str, why: str) -> None:
        """Say that something could not be recorded."""
        self.missing.append((what, why))
        self.note("incomplete", what=what, why=why)

    def end(self) -> None:
        """The recording is over."""
        for session_id in list(self._deltas):
            self._flush_deltas(session_id)
        for name, place in self.secrets.suspected.items():
            self._writer.write({"at": self._at(), "note": "suspected", "name": name, "place": place})
        self._writer.write({"at": self._at(), "end": "stopped"})
        self._writer.close()

    # Events, turns and contents

    def frame(self, data: dict[str, Any]) -> None:
        """An event of a stream. One that was seen before is passed over."""
        session_id, kind = data.get("session_id"), data.get("type")
        if not isinstance(session_id, str) or not isinstance(kind, str) or not isinstance(data.get("payload"), dict):
            return
        if session_id not in self.sessions:
            self._waiting.append(data)
            return
        seq = data.get("seq")
        if isinstance(seq, int):
            if (session_id, seq) in self._seen:
                return
            self._seen.add((session_id, seq))
            if kind == "agent.message" and self._deltas.get(session_id, ("", ""))[0] == "agent.text":
                # The message has the whole of what its deltas showed.
                del self._deltas[session_id]
            if not kind.startswith(_OF_THE_CLIENT):
                self._flush_deltas(session_id)
            self._event(session_id, kind, data["payload"], data.get("created_at"))
            for listener in self.listeners:
                listener(data)
        elif kind in _DELTAS:
            known, text = self._deltas.get(session_id, (kind, ""))
            if known != kind:
                self._flush_deltas(session_id)
                text = ""
            self._deltas[session_id] = (kind, text + str(data["payload"].get("delta", "")))

    def turn(self, session_id: str, turn: Mapping[str, Any]) -> None:
        """A turn, as it is read once it has settled and published."""
        kept = {name: turn.get(name) for name in ("status", "error", "artifacts", "artifacts_skipped")}
        self._put({"turn": turn.get("id"), "session": session_id, **kept}, ("turn",))

    def artifact(
        self,
        artifact_id: str,
        session_id: str,
        data: bytes | None,
        size: int,
        path: str | None = None,
        turn_id: str | None = None,
    ) -> None:
        """The content of an artifact, once; `None` where it is too large or could not be had."""
        if artifact_id in self._contents:
            return
        self._contents.add(artifact_id)
        self.references.learn(artifact_id, "artifact")
        entry = {"artifact": artifact_id, "session": session_id, "turn": turn_id, "path": path or "", "size": size}
        self._put(entry, ("artifact",), data)

    def file(self, session_id: str, turn_id: str, path: str, data: bytes | None, size: int | None) -> None:
        """The content of a file a turn wrote."""
        self._put({"file": path, "session": session_id, "turn": turn_id, "size": size}, ("file",), data)

    def has(self, artifact_id: str) -> bool:
        """Whether the content of an artifact is in the recording."""
        return artifact_id in self._contents

    # Cleaning

    def clean(self, value: Any, place: Place, shape: Shape | None = None, key: str = "") -> Any:
        """A JSON value without secrets and ids. `shape` says which of its fields hold secrets."""
        match value:
            case str():
                if shape is not None and shape.secret and place[-1] != "args":
                    return self.secrets.field(value, place)
                return self._text(value, place, key)
            case list():
                entries = None if shape is None else shape.entries
                return [self.clean(entry, self._within(place, entry, n), entries, key) for n, entry in enumerate(value)]
            case dict():
                if shape is not None:
                    shape = shape.of(value)
                return {
                    self._text(name, place): self._field(value, name, entry, place, shape)
                    for name, entry in value.items()
                }
            case int() if key in _TIMES and value >= _LEAST_TIME:
                return value - self._base(value)
        return value

    def _base(self, time: int) -> int:
        """The first time the API told: the others are relative to it."""
        if self._first is None:
            self._first = time
            if abs(time - real_now()) > _OFF:
                self._writer.write({"at": self._at(), "note": "clock", "clock": "virtual"})
        return self._first

    def _field(self, owner: dict[str, Any], name: str, value: Any, place: Place, shape: Shape | None) -> Any:
        within = None if shape is None else shape.within(name)
        at = (*place, name)
        if isinstance(value, str):
            encoded = (name == "data" and "path" in owner) or (name == "content" and owner.get("encoding") == "base64")
            if encoded and (data := _decoded(value)) is not None:
                cleaned = self.secrets.data(data, (*place, str(owner.get("path", name))))
                return value if cleaned == data else base64.b64encode(cleaned).decode("ascii")
            if name == "secret" and str(owner.get("object", "")).startswith("webhook"):
                return self.secrets.field(value, ("webhook", "secret"))
        if isinstance(value, dict) and shape is not None and within is not None and within.secret:
            # Values of a mapping of secrets.
            return {self._text(key, at): self.clean(entry, (*at, key), within) for key, entry in value.items()}
        # Only where the API itself says when something was: no field of a tool's arguments is one of these.
        timed = "object" in owner or "call_id" in owner
        return self.clean(value, at, within, name if timed or isinstance(value, str) else "")

    def _text(self, text: str, place: Place, key: str = "") -> str:
        if holds_an_id(key) and text in self.references.known:
            return self.references.known[text]
        return self.secrets.text(self.references.text(text), place, key)

    def _within(self, place: Place, entry: Any, n: int) -> Place:
        name = entry.get("name") if isinstance(entry, dict) else None
        return (*place, name if isinstance(name, str) and 0 < len(name) <= 24 else str(n))

    def _content(
        self, name: str, body: bytes | None, size: int, place: Place, shape: Shape | None, *, answer: bool
    ) -> dict[str, Any]:
        if body is None:
            return {f"{name}_bytes": size}
        try:
            value = json.loads(body)
        except (ValueError, RecursionError):
            cleaned = self.secrets.data(body, place)
            kept = content_fields(cleaned)
            return {f"{name}_{kind}": self.references.text(text) for kind, text in kept.items()}
        self.references.learn_in(value, answer=answer)
        return {name: self.clean(value, place, shape)}

    def _headers(self, headers: Mapping[str, str], kept: Sequence[str], noun: str) -> dict[str, str]:
        found: dict[str, str] = {}
        for name in kept:
            value = headers.get(name)
            if value is None:
                continue
            if name == "idempotency-key":
                found[name] = self.references.learn(value, "key") or ""
            else:
                found[name] = self._text(value, (noun, name))
        return found

    def _query(self, query: str, noun: str) -> dict[str, str]:
        found: dict[str, str] = {}
        for name, value in parse_qsl(query, keep_blank_values=True):
            self.references.learn_field(name, value)
            found[self._text(name, (noun, "query"))] = self._text(value, (noun, name), name)
        return found

    # Inside

    def _find(self, verb: str, raw_path: str) -> tuple[Operation | None, dict[str, str]]:
        try:
            return self._routes.find(verb, raw_path.encode("latin-1", "replace"))
        except Refusal:
            return None, {}

    def _at(self) -> int:
        return round((monotonic() - self._started) * 1000)

    def _meet(self, exchange: Exchange, status: int, body: bytes | None) -> None:
        """Take note of the session a successful exchange was about, and of what was seen of it before."""
        if status >= 300:
            return
        if exchange.names("/v1/sessions/{session_id}") and exchange.entry["verb"] == "DELETE":
            self.deleted.add(exchange.values["session_id"])
        found = [exchange.session_id]
        if exchange.names("/v1/sessions/{session_id}/fork") or (
            exchange.names("/v1/sessions") and not exchange.reads and body is not None
        ):
            value = json.loads(body or b"{}")
            found.append(value.get("id") if isinstance(value, dict) else None)
        for session_id in found:
            if isinstance(session_id, str) and session_id not in self.sessions:
                self.sessions[session_id] = self.references.learn(session_id, "session") or ""
                waiting = list(self._waiting)
                self._waiting.clear()
                for data in waiting:
                    self.frame(data)

    def _event(self, session_id: str, kind: str, payload: dict[str, Any], created_at: Any) -> None:
        if kind == "artifact.created":
            self.references.learn(payload.get("id"), "artifact")
        entry: dict[str, Any] = {"event": kind, "session": session_id}
        if isinstance(created_at, int):
            entry["time"] = created_at - self._base(created_at)
        self._put({**entry, "payload": payload}, ("event", kind))

    def _flush_deltas(self, session_id: str) -> None:
        kind, text = self._deltas.pop(session_id, ("", ""))
        if text:
            self._put({"event": kind, "session": session_id, "payload": {"text": text}}, ("event", kind))

    def _put(self, entry: dict[str, Any], place: Place, data: bytes | None = None) -> None:
        self.references.learn_in({"session_id": entry.get("session"), "turn_id": entry.get("turn")}, answer=True)
        self.references.learn_in(entry.get("payload"), answer=True)
        kept = {"at": self._at()} | {name: self._clean_entry(name, value, place) for name, value in entry.items()}
        if data is not None:
            kept |= content_fields(self.secrets.data(data, (*place, str(entry.get("path") or entry.get("file")))))
        self._writer.write(kept)

    def _clean_entry(self, name: str, value: Any, place: Place) -> Any:
        return self.clean(value, place if name == "payload" else (*place, name))


def _decoded(text: str) -> bytes | None:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
