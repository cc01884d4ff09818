"""What sessions used (contract §6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from emulator import render
from emulator.api.call import Reply
from emulator.domain.usage import usage
from emulator.refusals import invalid

if TYPE_CHECKING:
    from emulator.api.call import Call


async def get_usage(call: Call) -> Reply:
    """Add up the sandbox time of one session, or with `root` of its whole tree."""
    root = call.query.get("root")
    if root is not None and root != call.path["session_id"]:
        raise invalid(
            f"`root` says whether to add up a tree, not which: on this path it is {call.path['session_id']!r} or left "
            f"out, not {root!r}."
        )
    session, world = call.session, call.world
    sessions = [session] if root is None else call.organization.tree(session.id)
    used = usage(
        [member.workspace.meter for member in sessions],
        world.now(),
        reconciled_after=world.settings.usage_reconciled_seconds,
        in_review=world.settings.usage_review_intervals,
    )
    return Reply(render.usage(session, used, scope="session" if root is None else "tree"))
