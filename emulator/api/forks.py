"""Forks: a new session that begins where another one is (contract §6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from emulator import render
from emulator.api.call import Reply
from emulator.runtime.forks import fork

if TYPE_CHECKING:
    from emulator.api.call import Call


async def fork_session(call: Call) -> Reply:
    """Fork a session; it is left as it was."""
    source = call.session
    made, copied = fork(
        call.deployment.engine, call.organization, source, token_id=call.token.id, request_id=call.request_id
    )
    return Reply(render.fork(made, forked_from=source.id, workspace_copied=copied))
