"""A receiver of webhooks that does nothing but count, and tells when there have been so many."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

if TYPE_CHECKING:
    from starlette.requests import Request


class Count:
    """How many posts have come in."""

    def __init__(self) -> None:
        self.number = 0
        self.wanted = 0
        self.reached = asyncio.Event()

    async def post(self, request: Request) -> Response:
        await request.body()
        self.number += 1
        if self.number >= self.wanted:
            self.reached.set()
        return Response(b"")

    async def wait(self, request: Request) -> Response:
        """Answers once that many more have come in than at the last answer."""
        self.wanted = int(request.path_params["more"])
        if self.number < self.wanted:
            self.reached.clear()
            await self.reached.wait()
        self.number -= self.wanted
        return Response(b"")


_COUNT = Count()
app = Starlette(
    routes=[
        Route("/hooks/{n}", _COUNT.post, methods=["POST"]),
        Route("/wait/{more}", _COUNT.wait, methods=["GET"]),
    ]
)
