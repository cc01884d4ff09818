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

_ID_LENGTH: Final = 36
# How many turns back one may still be waiting for its files.
_RECENT: Final = 50


def note(watcher: Watcher, entry: Entry, operation: Operation, call: Call, *, lost: bool = False) -> None:
    """Have the watcher know of a request that was answered. Who asked is known.

    Of one whose answer was `lost`, only what it has done: its client knows nothing of it.
    """
    token = call.maybe_token
    if token is None or not entry.status or (lost and not (operation.writes and entry.status < 300)):
        return
    outcome = call.outcome
    if isinstance(outcome, Stream):
        _opened(watcher, outcome, call)
        return
    seconds, now = watcher.moment()
    arrived = (seconds - (entry.duration_ms or 0) / 1000, entry.at)
    refused = outcome if isinstance(outcome, Refusal) else None
    key = call.headers.get(b"idempotency-key") if operation.writes else None
    facts = _facts(watcher, operation, call)
    place = hash(f"{entry.path}?{entry.query}" if entry.query else entry.path)
    watcher.asked(
        Exchange(
            token.organization,
            token.id,
            entry.request_id,
            operation.verb,
            operation.path,
            place,
            _about(operation, call),
            entry.status,
            entry.code,
            arrived,
            (seconds, now),
            None if refused is None else refused.retry_after,
            call.digest if key is None else _meaning(call),
            None if key is None else hash(key),
            facts.unread() if lost else facts,
        )
    )


def _opened(watcher: Watcher, stream: Stream, call: Call) -> None:
    cursor = "last_event_id" in call.query or b"last-event-id" in call.headers
    root = call.query.get("root")
    members = None if root is None else frozenset(session.id for session in call.organization.tree(root))
    watcher.opened(stream.reader, members, cursor=cursor)


def _about(operation: Operation, call: Call) -> str | None:
    """The session a request is about, or made. One that cannot be there is none: its name may be of any length."""
    if operation.creates_session and isinstance(call.outcome, Reply):
        made: str = call.outcome.content["id"]
        return made
    session_id = call.path.get("session_id")
    return session_id if session_id is not None and len(session_id) <= _ID_LENGTH else None


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


def _facts(watcher: Watcher, operation: Operation, call: Call) -> Facts:
    outcome = call.outcome
    if isinstance(outcome, Refusal):
        return _refused(operation, call, outcome)
    read = _READ.get((operation.verb, operation.path))
    if read is None or not isinstance(outcome, Reply):
        return NO_FACTS
    facts = read(call, outcome.content)
    if facts.differs:
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


def _session(call: Call, content: dict[str, Any]) -> Facts:
    actions = content["required_actions"]
    return Facts(calls=tuple(action["call_id"] for action in actions)) if actions else NO_FACTS


def _sessions(call: Call, content: dict[str, Any]) -> Facts:
    return Facts(calls=tuple(a["call_id"] for session in content["data"] for a in session["required_actions"]))


def _created(call: Call, content: dict[str, Any]) -> Facts:
    # What it waits for is not counted as seen: but for the pace of tests, the answer is out before the agent asks.
    if call.body.input is None:
        return NO_FACTS
    turn_id = _turn_of(call.organization.find(content["id"]), call)
    return Facts(event="input.message", turn_id=turn_id, labelled=bool(call.body.metadata))


def _turns(call: Call, content: dict[str, Any]) -> Facts:
    shown = tuple((turn["id"], turn["status"]) for turn in content["data"])
    return Facts(turns=shown, paged="after" in call.query)


def _turn(call: Call, content: dict[str, Any]) -> Facts:
    return Facts(turns=((content["id"], content["status"]),))


def _items(call: Call, content: dict[str, Any]) -> Facts:
    data = content["data"]
    if not data:
        return NO_FACTS
    # A page is in order, one way or the other.
    first, last = data[0]["created_at"], data[-1]["created_at"]
    by_agent = [item for item in data if item["type"] != "context" and item.get("role") != "user"]
    return Facts(
        items=(min(first, last), max(first, last)),
        paged="after" in call.query,
        agent_at=max((item["created_at"] for item in by_agent), default=0),
        answer_at=max((item["created_at"] for item in by_agent if item["type"] == "message"), default=0),
    )


def _artifacts(call: Call, content: dict[str, Any]) -> Facts:
    if content["data"]:
        return Facts(artifacts=frozenset(artifact["turn_id"] for artifact in content["data"]))
    session = call.organization.find(call.path["session_id"])
    if session is None or call.world.settings.publication == "fails":
        return NO_FACTS
    wanted = call.query.get("turn_id")
    pending = [turn.id for turn in session.turns[-_RECENT:] if turn.artifacts == "pending" and turn.leaving]
    return Facts(unpublished=tuple(turn_id for turn_id in pending if wanted in (None, turn_id)))


def _input(call: Call, content: dict[str, Any]) -> Facts:
    event = call.body.events[0]
    session = call.organization.find(call.path["session_id"])
    if event.type == "input.message":
        return Facts(event=event.type, turn_id=_turn_of(session, call))
    if event.type != "input.tool_result":
        call_id = getattr(event, "call_id", None)
        known = session is not None and call_id in session.actions
        return Facts(event=event.type, call_id=call_id if known else None)
    outcome = content["outcome"]
    return Facts(
        event=event.type,
        turn_id=event.turn_id,
        call_id=event.call_id,
        lost=outcome == "not_delivered" and session is not None and session.actions[event.call_id].state == "lost",
        exception=outcome == "accepted" and event.error is not None and is_exception(event.error),
    )


def _turn_of(session: Session | None, call: Call) -> str | None:
    """The turn of the message a request brought."""
    turns = () if session is None else reversed(session.turns)
    return next((turn.id for turn in turns if turn.request_id == call.request_id), None)


def _replaced(call: Call, content: dict[str, Any]) -> Facts:
    session = call.organization.find(call.path["session_id"])
    if session is None or session.workspace.state not in ("running", "paused") or session.workspace.tools is None:
        return NO_FACTS
    settings = call.world.settings
    before, now = session.workspace.tools, session.agent.tools
    return Facts(
        differs=before != now,
        gained=now.names(settings.disabled_tools) - before.names(settings.disabled_tools),
        waits=before != now and settings.tools_reach == "next_workspace",
    )


_READ: Final[Mapping[tuple[str, str], Callable[[Call, Any], Facts]]] = {
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
