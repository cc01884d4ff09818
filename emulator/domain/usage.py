"""Usage: the time sandboxes ran, and how sure anybody is of it (contract §6).

Law: an interval is opened when a sandbox starts or resumes and closed when it pauses, is reclaimed or
goes with its session. Times are handed in, in Unix milliseconds; what is told is in whole seconds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(slots=True)
class Interval:
    """One stretch of running; `ended_at` is `None` while it goes on."""

    started_at: int
    ended_at: int | None = None


@dataclass(slots=True)
class Meter:
    """When one session's sandbox ran, oldest first."""

    intervals: list[Interval] = field(default_factory=list)

    @property
    def running(self) -> bool:
        """Whether an interval is open."""
        return bool(self.intervals) and self.intervals[-1].ended_at is None

    def begin(self, now: int) -> None:
        """The sandbox runs from now on."""
        if not self.running:
            self.intervals.append(Interval(now))

    def end(self, now: int) -> None:
        """The sandbox has stopped."""
        if self.running:
            self.intervals[-1].ended_at = now


@dataclass(frozen=True, slots=True)
class Usage:
    """What some sessions used up to `as_of`, in seconds; `needs_review` is a count of intervals."""

    sessions: int
    as_of: int
    sandbox_seconds: int
    chargeable_seconds: int
    needs_review: int
    intervals: int


def usage(meters: Iterable[Meter], as_of: int, *, reconciled_after: float = 0.0, in_review: int = 0) -> Usage:
    """Add up what some sessions used.

    An interval is chargeable once it has been over for `reconciled_after` seconds. The first `in_review` that are
    over, of each session, are those nobody can account for: they are counted and give no seconds. Milliseconds
    are added up before anything is rounded, and then down, so that the chargeable part is never the larger one.
    """
    counted = list(meters)
    sandbox = chargeable = needs_review = intervals = 0
    for meter in counted:
        left = in_review
        for interval in meter.intervals:
            intervals += 1
            over = interval.ended_at is not None
            if over and left > 0:
                left -= 1
                needs_review += 1
                continue
            end = as_of if interval.ended_at is None else interval.ended_at
            length = max(0, end - interval.started_at)
            sandbox += length
            if over and end + reconciled_after * 1000 <= as_of:
                chargeable += length
    return Usage(len(counted), as_of, sandbox // 1000, chargeable // 1000, needs_review, intervals)
