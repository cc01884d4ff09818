"""Environment profiles: read only here (contract §12)."""

from __future__ import annotations

from typing import Literal

from emulator.wire.common import Page, Response


class EnvironmentProfile(Response):
    """A named group of variables. Neither names nor values of them are told."""

    object: Literal["environment_profile"]
    id: str
    name: str
    is_default: bool
    variable_count: int | None


class EnvironmentProfileList(Page[EnvironmentProfile]):
    """A page of environment profiles."""
