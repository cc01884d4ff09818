"""Environment profiles: read only here (contract §12)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from emulator import render
from emulator.api.call import Reply
from emulator.api.sessions import paging
from emulator.domain.pages import cut

if TYPE_CHECKING:
    from emulator.api.call import Call


async def list_profiles(call: Call) -> Reply:
    """A page of the organization's environment profiles, newest first."""
    profiles = call.organization.profiles.listed
    numbers = {profile.id: n for n, profile in enumerate(profiles)}
    page = cut(profiles, numbers.get, lambda profile: profile.id, **paging(call.query))
    return Reply(render.page(page, render.environment_profile))
