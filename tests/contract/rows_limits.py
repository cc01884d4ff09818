"""Rates and the number of sessions (contract §6, §13)."""

from __future__ import annotations

from typing import Final

from tests.contract.manifest import Row

_SOURCE: Final = "contract §13"

ROWS: Final = (
    Row("limits.sessions-rate", _SOURCE, "A token creates 10 sessions a minute, at once if it likes."),
    Row("limits.general-rate", _SOURCE, "A token makes 120 other calls a minute, at once if it likes."),
    Row("limits.refill", _SOURCE, "What was spent comes back continuously, up to the full allowance."),
    Row("limits.not-charged", _SOURCE, "A call refused for the rate costs nothing."),
    Row("limits.refusal", _SOURCE, "A call past the rate is a 429 with the computed wait and the budget headers."),
    Row("limits.per-token", _SOURCE, "Every token has its own budgets."),
    Row("limits.apart", _SOURCE, "The two buckets do not touch each other."),
    Row("limits.streams", _SOURCE, "Opening a stream is a call of the general bucket."),
    Row(
        "limits.off",
        _SOURCE,
        "Unless asked to, the emulator counts and shows but does not refuse.",
        "Tests would otherwise fail for their speed; the setting rates=published turns refusing on.",
    ),
    Row("limits.sessions", "contract §6", "An organization has 25 sessions; the next is project_limit_exceeded."),
    Row(
        "limits.sessions-no-retry",
        "contract §6",
        "project_limit_exceeded says nothing of waiting and names the DELETE.",
    ),
    Row("limits.sessions-freed", "contract §6", "A delete frees the slot."),
    Row("limits.sessions-per-organization", "contract §6", "Organizations do not share their slots."),
    Row("limits.sessions-any-state", "contract §6", "A paused, reclaimed or failed session holds its slot."),
)
