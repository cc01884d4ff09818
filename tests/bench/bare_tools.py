"""A bare server of one path: reads give the emulator's own bytes, writes validate with its models.

The bytes come by `PUT /bytes` once, before anything is measured.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

from emulator.wire.tools import ToolsRequest

if TYPE_CHECKING:
    from starlette.requests import Request

_KEPT: Final = {"bytes": b"{}"}


async def read(request: Request) -> Response:
    """The kept bytes."""
    return Response(_KEPT["bytes"], media_type="application/json")


async def replace(request: Request) -> Response:
    """Validate the body, and give the kept bytes."""
    ToolsRequest.model_validate_json(await request.body())
    return Response(_KEPT["bytes"], media_type="application/json")


async def keep(request: Request) -> Response:
    """Keep the bytes to be given."""
    _KEPT["bytes"] = await request.body()
    return Response(b"")


app = Starlette(
    routes=[
        Route("/bytes", keep, methods=["PUT"]),
        Route("/v1/sessions/{session_id}/tools", read, methods=["GET"]),
        Route("/v1/sessions/{session_id}/tools", replace, methods=["PUT"]),
    ]
)
