"""Listening: what the HTTP servers of this package have in common about their connections."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from uvicorn.server import ServerState

# How long answers under way have to end, and then those that were cancelled, in seconds.
_SECONDS = 0.2


async def hang_up(state: ServerState) -> None:
    """Close every connection, kindly at first; no task is left."""
    for connection in list(state.connections):
        connection.shutdown()
    if state.tasks:
        await asyncio.wait(state.tasks, timeout=_SECONDS)
    for task in list(state.tasks):
        task.cancel()
    for connection in list(state.connections):
        connection.transport.abort()
    if state.tasks:
        await asyncio.wait(state.tasks, timeout=_SECONDS)
