"""Environment profiles: read only here (contract §12)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from emulator import render
from emulator.api.call import Reply
from emulator.domain.pages import cut_by_id

if TYPE_CHECKING:
    from emulator.api.call import Call


async def list_profiles(call: Call) -> Reply:
    """A page of the organization's environment profiles, newest first."""
    return Reply(render.page(cut_by_id(call.organization.profiles.listed, **call.paging), render.environment_profile))
