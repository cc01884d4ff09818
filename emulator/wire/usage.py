"""What sessions used (contract §6)."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from emulator.wire.common import Milliseconds, Response


class SessionUsage(Response):
    """The sandbox time of a session, or of everything below it. No number of these is a bill."""

    object: Literal["session.usage"]
    session_id: str
    scope: Literal["session", "tree"]
    sessions: int = Field(description="How many sessions were added up.")
    as_of: Milliseconds
    sandbox_seconds: int = Field(description="All that can be accounted for, a running sandbox up to `as_of`.")
    chargeable_seconds: int = Field(description="The reconciled part of it.")
    needs_review_intervals: int = Field(description="Intervals nobody can account for: a count, not seconds.")
    intervals: int = Field(description="How many intervals were counted.")
