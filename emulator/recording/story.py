"""The story: what a recording says of each session, put together from its requests and its events."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from emulator.domain.permissions import decide

if TYPE_CHECKING:
    from emulator.recording.document import Recording

# How a start without a required server is refused (contract §5), and the servers it names.
_REFUSED: Final = re.compile(r"This session cannot start: .*failed to initialise — (.+?)\. That server is configured")
_SESSION: Final = re.compile(r"/v1/sessions/(<session \d+>)(/.*)?")


@dataclass(slots=True)
class SessionStory:
    """One session: its reference, its number by creation, and its events in order."""

    ref: str
    number: int
    events: list[dict[str, Any]] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)
    # The mode and the rules each turn began with, and those of now.
    governed: list[tuple[str, list[dict[str, Any]]]] = field(default_factory=list)
    title: str | None = None
    metadata: dict[str, str] = field(default_factory=dict)
    mode: str = "auto"
    rules: list[dict[str, Any]] = field(default_factory=list)
    servers: list[str] = field(default_factory=list)
    connected: bool = False
    turns: int = 0
    # The servers that were missed at the start of each turn, and between two turns.
    missed: dict[int, dict[str, str]] = field(default_factory=dict)
    missed_between: dict[int, dict[str, str]] = field(default_factory=dict)

    def governed_by(self, number: int) -> tuple[str, list[dict[str, Any]]]:
        """The mode and the rules of a turn, by its number."""
        return self.governed[number - 1] if 0 < number <= len(self.governed) else (self.mode, self.rules)


class Story:
    """The sessions of a recording by number, and what else its parts say of each other."""

    def __init__(self, recording: Recording) -> None:
        self.sessions: list[SessionStory] = []
        self.servers: list[str] = []
        self.outages: dict[str, list[dict[str, str]]] = {}
        self.virtual = any(entry.get("clock") == "virtual" for entry in recording.of("note"))
        self.settled = {
            str(entry["turn"]): entry for entry in recording.entries if "turn" in entry and "status" in entry
        }
        # Sessions are known by title and metadata, where these are their own, rather than by number.
        self.by_labels = recording.header.get("match") == "labels"
        self.lost = _lost(recording)
        self.answered = _answered(recording)
        self._contents = _contents(recording)
        self._order = {entry["line"]: n for n, entry in enumerate(e for e in recording.of("event") if "time" in e)}
        self._by_ref: dict[str, SessionStory] = {}
        self._made = 0
        self._saved: dict[str, list[str]] = {}
        events: dict[str, list[dict[str, Any]]] = {}
        for entry in recording.of("event"):
            events.setdefault(entry["session"], []).append(entry)
        self._events = events
        for exchange in recording.exchanges():
            self._follow(exchange)

    def between(self, one: dict[str, Any], other: dict[str, Any]) -> int:
        """How many milliseconds the events from one to another take on a virtual clock: one each."""
        return self._order[other["line"]] - self._order[one["line"]]

    def content(self, session: str, turn: str, path: str) -> dict[str, Any] | None:
        """The entry with the content a turn left at a path."""
        return self._contents.get((session, turn, path))

    def skipped(self, turn: str, path: str) -> bool:
        """Whether a file was too large to be published."""
        skipped = self.settled.get(turn, {}).get("artifacts_skipped") or ()
        return any(path.endswith("/" + str(one.get("path"))) for one in skipped if isinstance(one, dict))

    def denied_args(self, session: SessionStory, number: int, tool: str, code: Any) -> dict[str, Any]:
        """What the agent may have wanted to use a tool with, for the session to deny it as it did."""
        candidates: list[dict[str, Any]] = [{}]
        mode, rules = session.governed_by(number)
        for rule in rules:
            given = {"command": rule.get("command"), "path": rule.get("path"), "url": rule.get("domain")}
            args = {name: value for name, value in given.items() if value is not None}
            if "url" in args:
                args["url"] = f"https://{args['url']}"
            candidates.append(args)
        for args in candidates:
            if decide(mode, rules, tool, args, asks=True).code == code:
                return args
        return {}

    # Inside

    def _follow(self, exchange: dict[str, Any]) -> None:
        verb, path, status = exchange["verb"], exchange["path"], exchange["status"]
        body = _object(exchange.get("body"))
        if verb == "POST" and path in ("/v1/agents", "/v1/environment-templates") and status < 300:
            saved = _object(exchange.get("answer"))
            self._saved[str(saved.get("name"))] = self._saved[str(saved.get("id"))] = self._declared(body)
        elif verb == "POST" and path == "/v1/sessions":
            self._created(exchange, body)
        elif (match := _SESSION.fullmatch(path)) is not None and (session := self._by_ref.get(match[1])) is not None:
            self._happened(session, verb, match[2] or "", status, body, exchange)

    def _created(self, exchange: dict[str, Any], body: dict[str, Any]) -> None:
        agent = _object(body.get("agent"))
        servers = self._declared(agent)
        if "tools" not in agent:
            servers = self._saved.get(str(agent.get("id") or _object(body.get("environment")).get("template_id")), [])
        if exchange["status"] == 201:
            session = self._add(_object(exchange.get("answer")), servers)
            session.mode, session.rules = agent.get("approval_mode") or "auto", agent.get("permission_rules") or []
            if body.get("input") is not None:
                self._turn(session, _text(body["input"]))
        elif (refused := _refused(exchange)) is not None:
            # It was made, could not start, and was destroyed again.
            self._made += 1
            self._connect(SessionStory("", self._made, servers=servers), refused)

    def _happened(
        self, session: SessionStory, verb: str, rest: str, status: int, body: dict[str, Any], exchange: dict[str, Any]
    ) -> None:
        refused = _refused(exchange)
        match verb, rest:
            case "POST", "/events":
                events = body.get("events")
                event = _object(events[0] if isinstance(events, list) and events else None)
                if event.get("type") == "input.message":
                    if status == 202:
                        self._turn(session, _text(event.get("content")))
                    elif refused is not None:
                        self._connect(session, refused)
            case "PUT", "/tools" if status == 200:
                session.servers, session.connected = self._declared(body), False
            case "POST", "/fork" if status == 201:
                fork = self._add(_object(exchange.get("answer")), session.servers)
                fork.mode, fork.rules = session.mode, session.rules
            case "PATCH", "" if status == 200:
                agent = _object(body.get("agent"))
                session.mode = agent.get("approval_mode") or session.mode
                session.rules = agent.get("permission_rules", session.rules) or []
            case ("POST", "/files" | "/files/refresh") | ("GET", "/files"):
                wakes = verb == "POST" or _object(exchange.get("query")).get("refresh") == "1"
                if wakes and refused is not None:
                    self._connect(session, refused)
                elif wakes and status < 300 and not session.connected:
                    self._connect(session, session.missed_between.pop(session.turns, {}))
                    session.connected = True

    def _add(self, made: dict[str, Any], servers: list[str]) -> SessionStory:
        self._made += 1
        session = SessionStory(str(made.get("id")), self._made, servers=servers)
        session.title, session.metadata = made.get("title"), _object(made.get("metadata"))
        self.sessions.append(session)
        self._by_ref[session.ref] = session
        session.events = self._events.get(session.ref, [])
        message, turn = 0, 0
        for event in session.events:
            match event["event"]:
                case "user.message":
                    message += 1
                case "turn.started":
                    turn = message
                case "mcp.unavailable":
                    payload = event["payload"]
                    missed = session.missed if message > turn else session.missed_between
                    server = str(payload.get("server") or payload.get("name"))
                    missed.setdefault(message, {})[server] = str(payload.get("reason"))
        return session

    def _turn(self, session: SessionStory, text: str) -> None:
        session.turns += 1
        session.messages.append(text)
        session.governed.append((session.mode, session.rules))
        missed = session.missed.get(session.turns, {})
        if missed or not session.connected:
            self._connect(session, missed)
        session.connected = True

    def _connect(self, session: SessionStory, missed: dict[str, str]) -> None:
        for server in session.servers:
            reason = missed.get(server)
            entry = {"state": "up"} if reason is None else {"state": "down", "reason": reason}
            self.outages.setdefault(server, []).append(entry)

    def _declared(self, agent: dict[str, Any]) -> list[str]:
        tools = agent.get("tools")
        names = [
            str(tool.get("name"))
            for tool in (tools if isinstance(tools, list) else ())
            if isinstance(tool, dict) and tool.get("type") == "mcp"
        ]
        self.servers += [name for name in names if name not in self.servers]
        return names


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "".join(str(_object(part).get("text", "")) for part in content)
    return str(content)


def _refused(exchange: dict[str, Any]) -> dict[str, str] | None:
    """The required servers that kept a session from starting, each with the reason."""
    if exchange["status"] != 400:
        return None
    message = _object(_object(exchange.get("answer")).get("error")).get("message")
    match = _REFUSED.search(message) if isinstance(message, str) else None
    if match is None:
        return None
    pairs = (part.partition(": ") for part in match[1].split("; "))
    return {server: reason for server, _, reason in pairs}


def _answered(recording: Recording) -> set[str]:
    """The calls the client answered."""
    found = set()
    for exchange in recording.exchanges():
        events = _object(exchange.get("body")).get("events")
        event = _object(events[0] if isinstance(events, list) and events else None)
        if "call_id" in event and exchange["status"] == 202:
            found.add(str(event["call_id"]))
    return found


def _lost(recording: Recording) -> set[str]:
    """The calls the sandbox had forgotten when their answer came, and that had not expired."""
    resolved = {e["payload"].get("toolCallId") for e in recording.of("event") if e["event"] == "tool.resolved"}
    found = set()
    for exchange in recording.exchanges():
        events = _object(exchange.get("body")).get("events")
        event = _object(events[0] if isinstance(events, list) and events else None)
        outcome = _object(exchange.get("answer")).get("outcome")
        if event.get("type") == "input.tool_result" and outcome == "not_delivered":
            found.add(str(event.get("call_id")))
    return found - resolved


def _contents(recording: Recording) -> dict[tuple[str, str, str], dict[str, Any]]:
    """The entries with contents, by session, turn and path."""
    published = {
        str(event["payload"].get("id")): (
            event["session"],
            event["payload"].get("turn_id"),
            event["payload"].get("path"),
        )
        for event in recording.of("event")
        if event["event"] == "artifact.created"
    }
    found: dict[tuple[str, str, str], dict[str, Any]] = {}
    for entry in recording.of("file"):
        if entry.get("size") is not None:
            found[entry["session"], str(entry.get("turn")), entry["file"]] = entry
    for entry in recording.of("artifact"):
        session, turn, path = published.get(entry["artifact"], (entry.get("session"), entry.get("turn"), entry["path"]))
        found[str(session), str(turn), str(path)] = entry
    return found
