"""What happened: the journal, the events, a transcript, the report, and the document of these routes."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any

from emulator.control.report import report
from emulator.control.timeline import timeline
from emulator.render import FrameCodec

if TYPE_CHECKING:
    from emulator.control.call import Call


async def get_requests(call: Call) -> Any:
    """The requests to /v1 that the journal keeps, without secrets. Requests to these routes are not kept."""
    journal = call.deployment.journal
    return {"data": [entry.as_json() for entry in journal], "dropped": journal.dropped}


async def get_events(call: Call) -> Any:
    """Every persisted event, of all organizations or of one session. A deleted session's are gone."""
    session_id = call.query.get("session_id")
    if session_id is not None:
        organization, _ = call.session(session_id)
        return {"data": [FrameCodec.event(event.frame) for event in organization.log.of(session_id)]}
    events = [
        FrameCodec.event(event.frame)
        for organization in call.world.organizations()
        for event in organization.log.of(None)
        if event.frame
    ]
    # Each organization counts for itself; across them the clock tells the order.
    return {"data": sorted(events, key=itemgetter("created_at"))}


async def get_transcript(call: Call) -> Any:
    """Every item of a session; of the one created last when none is named."""
    session_id = call.query.get("session_id")
    if session_id is None:
        # Time stands still while nothing happens: of two made at one moment the later in the list is the later.
        newest_first = reversed(list(call.world.sessions()))
        latest = max(newest_first, key=lambda session: session.created_at, default=None)
        if latest is None:
            return {"session_id": None, "data": [], "events": []}
        session_id = latest.id
    organization, session = call.session(session_id)
    transcript = organization.transcript(session)
    return {
        "session_id": session.id,
        "data": [transcript.item(position) for position in range(len(transcript.refresh()))],
        "events": [FrameCodec.event(event.frame) for event in organization.log.of(session_id)],
    }


async def get_timeline(call: Call) -> Any:
    """Requests and events as they happened, of everybody or of one session; of deleted ones, the latest events."""
    session_id = call.query.get("session_id")
    found = timeline(call.deployment, session_id)
    if session_id is not None and not any(entry["event"] for entry in found):
        call.session(session_id)
    return {"session_id": session_id, "data": found}


async def get_report(call: Call) -> Any:
    """What is left over: unanswered calls, steps never reached, what was not deleted, script errors and the like."""
    return report(call.deployment)


async def get_openapi(call: Call) -> Any:
    """The document of the control routes."""
    from emulator.control.document import document

    return document()
