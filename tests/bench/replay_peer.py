"""The same events through sse-starlette, each made JSON as it is sent."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.applications import Starlette
from starlette.routing import Route

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.requests import Request

EVENTS: Final = 50_000


async def events(request: Request) -> EventSourceResponse:
    """Every event, from the first."""

    async def each() -> AsyncIterator[ServerSentEvent]:
        for seq in range(1, EVENTS + 1):
            event = {
                "object": "event",
                "type": "agent.message",
                "internal_type": "agent.message",
                "session_id": "3f9c1d52-8a44-4b0e-9d7a-5f6f0b1c2d3e",
                "seq": seq,
                "created_at": 1_767_225_600_000 + seq,
                "payload": {"text": f"This is what the agent says for the {seq}th time."},
            }
            yield ServerSentEvent(data=json.dumps(event), event="agent.message", id=str(seq))

    return EventSourceResponse(each())


app = Starlette(routes=[Route("/events", events)])
