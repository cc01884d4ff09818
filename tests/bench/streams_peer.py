"""The plainest fan-out: a queue for each subscriber, and a streaming response that empties it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.requests import Request

_QUEUES: set[asyncio.Queue[bytes]] = set()


def frame(seq: int) -> bytes:
    """An event as the emulator sends one, of the same size."""
    return (
        f"id: {seq}\nevent: agent.message\n"
        'data: {"object":"event","type":"agent.message","internal_type":"agent.message",'
        f'"session_id":"3f9c1d52-8a44-4b0e-9d7a-5f6f0b1c2d3e","seq":{seq},"created_at":{1_767_225_600_000 + seq},'
        f'"payload":{{"text":"This is what the agent says for the {seq}th time."}}}}\n\n'
    ).encode()


async def events(request: Request) -> StreamingResponse:
    """Whatever is published from now on."""
    queue: asyncio.Queue[bytes] = asyncio.Queue()
    _QUEUES.add(queue)

    async def each() -> AsyncIterator[bytes]:
        yield b": open\n\n"
        try:
            while True:
                yield await queue.get()
        finally:
            _QUEUES.discard(queue)

    return StreamingResponse(each(), media_type="text/event-stream")


async def publish(request: Request) -> Response:
    """Publish so many events, each made once."""
    for seq in range(1, int(request.query_params["count"]) + 1):
        made = frame(seq)
        for queue in _QUEUES:
            queue.put_nowait(made)
    return Response(b"{}", media_type="application/json")


app = Starlette(routes=[Route("/events", events), Route("/publish", publish, methods=["POST"])])
