"""Input to a session, and the event streams (contract §7, §9)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from emulator.api.call import Reply, Stream
from emulator.api.parse import cursor
from emulator.api.sessions import content_text
from emulator.domain.action import Answerer
from emulator.refusals import Refusal, invalid
from emulator.runtime.run import CallResult

if TYPE_CHECKING:
    from collections.abc import Callable

    from emulator.api.call import Call
    from emulator.wire import events as wire


def scope_of(body: dict[str, Any]) -> str | None:
    """The scope an event needs, once its type is known: answering a call is a scope of its own."""
    events = body.get("events")
    if not isinstance(events, list) or not events or not isinstance(events[0], dict):
        return None
    match events[0].get("type"):
        case "input.tool_result":
            return "tools:respond"
        case str():
            return "sessions:write"
        case _:
            return None


async def post_events(call: Call) -> Reply:
    """Send one event to a session."""
    event: wire.InputEvent = call.body.events[0]
    engine, organization = call.deployment.engine, call.organization
    accepted: dict[str, Any] = {}
    by = Answerer("api", call.token.id, call.request_id)
    match event.type:
        case "input.message":
            text = content_text(event.content, "events[0].content")
            session = call.session
            position = await engine.message(organization, session, text, call.request_id)
            accepted = {"queued": position is not None, "queue_position": position}
        case "input.context":
            text = content_text(event.content, "events[0].content")
            session = call.session
            accepted = {"delivered": engine.context(organization, session, text)}
        case "input.tool_result":
            result = _result(event)
            session = call.session
            accepted = {
                "outcome": engine.actions.tool_result(organization, session, event.turn_id, event.call_id, result, by)
            }
        case "input.approval":
            session = call.session
            accepted = {"outcome": engine.actions.approval(organization, session, event.call_id, event.approved, by=by)}
        case "input.question_answer":
            if not event.answer.strip():
                raise invalid("`events[0].answer` must not be empty.")
            session = call.session
            accepted = {
                "outcome": engine.actions.question_answer(organization, session, event.call_id, event.answer, by)
            }
        case "input.steer":
            text = content_text(event.content, "events[0].content")
            session = call.session
            engine.steer(session, text)
        case "input.cancel":
            session = call.session
            engine.cancel(organization, session)
    await engine.reply_when_ready(session, call.request_id)
    return Reply({"object": "input.accepted", "session_id": session.id, "type": event.type, **accepted})


async def stream_session(call: Call) -> Stream:
    """Follow one session."""
    return _open(call, call.session.id, None)


async def stream_organization(call: Call) -> Stream:
    """Follow every session of the organization, or one tree of them; later members join."""
    organization = call.organization
    root = call.query.get("root")
    if root is None:
        return _open(call, None, None)
    organization.session(root)
    known: dict[str, bool] = {}

    def member(session_id: str) -> bool:
        # Decided when a session is first seen: its end must not turn its last frames away.
        if session_id not in known:
            known[session_id] = organization.in_tree(session_id, root)
        return known[session_id]

    return _open(call, None, member)


def _open(call: Call, session_id: str | None, member: Callable[[str], bool] | None) -> Stream:
    header = call.headers.get(b"last-event-id")
    at = call.query.get("last_event_id")
    if header is not None:
        at = cursor(header.decode("latin-1"), "The header `Last-Event-ID`")
    feed, settings, organization = call.deployment.feed, call.world.settings, call.organization
    open_streams = feed.readers(organization.id)
    own = sum(reader.token_id == call.token.id for reader in open_streams)
    for count, ceiling, whose in (
        (own, settings.streams_per_token, "this token"),
        (len(open_streams), settings.streams_per_organization, "this organization"),
    ):
        if count >= ceiling:
            raise Refusal(
                "rate_limit_exceeded",
                f"{ceiling} event streams of {whose} are open, and that is the most. Close one first.",
                retry_after=5,
            )
    return Stream(
        feed.open(
            organization, session_id, token_id=call.token.id, request_id=call.request_id, cursor=at, member=member
        )
    )


def _result(event: wire.InputToolResult) -> CallResult:
    wanted, other = ("output", "error") if event.success else ("error", "output")
    if getattr(event, other) is not None:
        raise invalid(f"`events[0].{other}` does not go with `success: {str(event.success).lower()}`; send `{wanted}`.")
    if getattr(event, wanted) is None:
        raise invalid(f"`events[0].{wanted}` is required with `success: {str(event.success).lower()}`, as a string.")
    return CallResult(event.success, event.output, event.error)
