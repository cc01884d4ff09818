"""The timeline: what clients sent and what the agent did, in the order it happened.

Law: a reader of the journal and of the event log, which have no secrets in them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from emulator.redaction import scrub_value
from emulator.render import FrameCodec

if TYPE_CHECKING:
    from emulator.domain.event_log import Event
    from emulator.runtime.deployment import Deployment


def timeline(deployment: Deployment, session_id: str | None) -> list[dict[str, Any]]:
    """Requests and persisted events interleaved, of everybody or of one session, oldest first."""
    world = deployment.world
    made: dict[str, str] = {}
    events: list[dict[str, Any]] = []
    # Of sessions that were deleted, the latest events are told as well: most tests end by deleting.
    for organization in world.organizations():
        for session in organization.sessions:
            if session.request_id is not None:
                made[session.request_id] = session.id
        events += [
            {"at": event.created_at, "session_id": event.session_id, "request": None, "event": event.frame}
            for event in sorted([*organization.log.of(session_id), *organization.log.forgotten], key=_seq)
            if event.frame and session_id in (None, event.session_id)
        ]
    requests = [
        {"at": entry.at, "session_id": about, "request": entry.as_json(), "event": None}
        for entry in deployment.journal
        for about in (_session_of(entry.path) or made.get(entry.request_id),)
        if session_id is None or about == session_id
    ]
    # On virtual time a request comes after the event that moved the clock to its moment; on real time both fall into
    # one millisecond where the event follows from the request.
    first, second = (events, requests) if world.settings.clock == "virtual" else (requests, events)
    ordered = sorted([*first, *second], key=lambda entry: entry["at"])
    for entry in ordered:
        if entry["event"] is not None:
            # A client's own words may have a token in them.
            entry["event"] = scrub_value(FrameCodec.event(entry["event"]))
    return ordered


def _seq(event: Event) -> int:
    return event.seq


def _session_of(path: str) -> str | None:
    """The session a path of the API is about."""
    parts = path.split("/")
    return parts[3] if len(parts) > 3 and parts[2] == "sessions" else None
