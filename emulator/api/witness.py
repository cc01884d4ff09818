"""The witness: what of a request and its answer the rules of good use look at.

Law: it runs once the answer is out. It passes on ids, times and digests, and nothing of what was said.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from emulator import render
from emulator.api.call import Reply, Stream
from emulator.domain.findings.record import NO_FACTS, Exchange, Facts
from emulator.domain.findings.view import ARTIFACTS, EVENTS, ITEMS, SESSION, SESSIONS, TOOLS, TURN, TURNS
from emulator.domain.findings.writes import is_exception
from emulator.refusals import Refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from emulator.api.call import Call
    from emulator.api.operation import Operation
    from emulator.domain.session import Session
    from emulator.runtime.journal import Entry
    from emulator.runtime.watcher import Watcher


def note(watcher: Watcher, entry: Entry, operation: Operation, call: Call) -> None:
    """Have the watcher know of a request that was answered. Who asked is known."""
    token = call.maybe_token
    if token is None or not entry.status:
        return
    outcome = call.outcome
    if isinstance(outcome, Stream):
        _opened(watcher, outcome, call)
        return
    seconds, now = watcher.moment()
    arrived = (seconds - (entry.duration_ms or 0) / 1000, entry.at)
    refused = outcome if isinstance(outcome, Refusal) else None
    key = call.headers.get(b"idempotency-key") if operation.writes else None
    place = f"{entry.path}?{entry.query}" if entry.query else entry.path
    watcher.asked(
        Exchange(
            token.organization,
            token.id,
            entry.request_id,
            operation.verb,
            operation.path,
            place,
            call.path.get("session_id") or _made(operation, outcome),
            entry.status,
            entry.code,
            arrived,
            (seconds, now),
            None if refused is None else refused.retry_after,
            call.digest if key is None else _meaning(call),
            None if key is None else hash(key),
            _facts(watcher, operation, call, entry),
        )
    )


def _opened(watcher: Watcher, stream: Stream, call: Call) -> None:
    cursor = "last_event_id" in call.query or b"last-event-id" in call.headers
    root = call.query.get("root")
    members = None if root is None else frozenset(session.id for session in call.organization.tree(root))
    watcher.opened(stream.reader, members, cursor=cursor)


def _made(operation: Operation, outcome: Any) -> str | None:
    """The session a request created."""
    if operation.creates_session and isinstance(outcome, Reply):
        made: str = outcome.content["id"]
        return made
    return None


def _meaning(call: Call) -> int:
    """What tells a body from another that says something else, in whatever order it says it."""
    if isinstance(call.sent, dict) and call.digest and len(call.headers.get(b"content-length", b"")) < 6:
        return hash(render.encode(_ordered(call.sent)))
    return call.digest


def _ordered(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _ordered(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return [_ordered(entry) for entry in value]
    return value


def _facts(watcher: Watcher, operation: Operation, call: Call, entry: Entry) -> Facts:
    outcome = call.outcome
    if isinstance(outcome, Refusal):
        return _refused(operation, call, outcome)
    read = _READ.get((operation.verb, operation.path))
    if read is None or not isinstance(outcome, Reply):
        return NO_FACTS
    facts = Facts()
    read(facts, call, outcome.content)
    if facts.differs and call.maybe_token is not None:
        watcher.replaced.add(call.path["session_id"])
    return facts


def _refused(operation: Operation, call: Call, refused: Refusal) -> Facts:
    if refused.code != "invalid_request":
        return NO_FACTS
    if "`redacted` names what a read held back" in refused.message:
        return Facts(read_back=True)
    if operation.path == EVENTS and call.body is not None:
        event = call.body.events[0]
        session = call.organization.find(call.path["session_id"])
        if event.type == "input.tool_result" and session is not None:
            action = session.actions.get(event.call_id)
            if action is not None and action.type != "function_call":
                return Facts(wrong_answer=True, turn_id=event.turn_id, call_id=event.call_id)
    return NO_FACTS


# What there is to see, by operation


def _session(facts: Facts, call: Call, content: dict[str, Any]) -> None:
    facts.calls = {content["id"]: _calls(content)}


def _sessions(facts: Facts, call: Call, content: dict[str, Any]) -> None:
    facts.calls = {session["id"]: _calls(session) for session in content["data"] if session["required_actions"]}


def _calls(session: dict[str, Any]) -> frozenset[str]:
    return frozenset(action["call_id"] for action in session["required_actions"])


def _created(facts: Facts, call: Call, content: dict[str, Any]) -> None:
    # What it waits for is not counted as seen: but for the pace of tests, the answer is out before the agent asks.
    if call.body.input is not None:
        facts.labelled = bool(call.body.metadata)
        facts.event = "input.message"
        session = call.organization.find(content["id"])
        facts.turn_id = None if session is None else _turn_of(session, call)


def _turns(facts: Facts, call: Call, content: dict[str, Any]) -> None:
    facts.turns = tuple((turn["id"], turn["status"]) for turn in content["data"])


def _turn(facts: Facts, call: Call, content: dict[str, Any]) -> None:
    facts.turns = ((content["id"], content["status"]),)


def _items(facts: Facts, call: Call, content: dict[str, Any]) -> None:
    times = []
    for item in content["data"]:
        at = item["created_at"]
        times.append(at)
        by_agent = item["type"] != "context" and item.get("role") != "user"
        if by_agent and at > facts.agent_at:
            facts.agent_at = at
        if item.get("role") == "assistant" and at > facts.answer_at:
            facts.answer_at = at
    if times:
        facts.items = (min(times), max(times))


def _artifacts(facts: Facts, call: Call, content: dict[str, Any]) -> None:
    facts.artifacts = frozenset(artifact["turn_id"] for artifact in content["data"])
    session = call.organization.find(call.path["session_id"])
    if content["data"] or session is None or call.world.settings.publication == "fails":
        return
    wanted = call.query.get("turn_id")
    facts.unpublished = tuple(
        turn.id for turn in session.turns if turn.artifacts == "pending" and turn.leaving and wanted in (None, turn.id)
    )


def _input(facts: Facts, call: Call, content: dict[str, Any]) -> None:
    event = call.body.events[0]
    facts.event = event.type
    facts.outcome = content.get("outcome")
    facts.call_id = getattr(event, "call_id", None)
    session = call.organization.find(call.path["session_id"])
    if event.type == "input.message":
        facts.turn_id = None if session is None else _turn_of(session, call)
    elif event.type == "input.tool_result":
        facts.turn_id = event.turn_id
        if facts.outcome == "not_delivered" and session is not None:
            facts.lost = session.actions[event.call_id].state == "lost"
        facts.exception = facts.outcome == "accepted" and event.error is not None and is_exception(event.error)


def _turn_of(session: Session, call: Call) -> str | None:
    """The turn of the message a request brought."""
    return next((turn.id for turn in reversed(session.turns) if turn.request_id == call.request_id), None)


def _replaced(facts: Facts, call: Call, content: dict[str, Any]) -> None:
    session = call.organization.find(call.path["session_id"])
    if session is None or session.workspace.state not in ("running", "paused") or session.workspace.tools is None:
        return
    settings = call.world.settings
    before, now = session.workspace.tools, session.agent.tools
    facts.differs = before != now
    facts.gained = now.names(settings.disabled_tools) - before.names(settings.disabled_tools)
    facts.waits = settings.tools_reach == "next_workspace" and facts.differs


_READ: Final[Mapping[tuple[str, str], Callable[[Facts, Call, Any], None]]] = {
    ("POST", SESSIONS): _created,
    ("GET", SESSIONS): _sessions,
    ("GET", SESSION): _session,
    ("PATCH", SESSION): _session,
    ("GET", TURNS): _turns,
    ("GET", TURN): _turn,
    ("GET", ITEMS): _items,
    ("GET", ARTIFACTS): _artifacts,
    ("POST", EVENTS): _input,
    ("PUT", TOOLS): _replaced,
}
