"""Usage: the sandbox time of a session or a tree (contract §6)."""

from __future__ import annotations

from typing import Final

from tests.contract.manifest import Row

_SOURCE: Final = "contract §6"

ROWS: Final = (
    Row("usage.shape", _SOURCE, "Usage has the fields of the newest document, intervals included."),
    Row("usage.nothing", _SOURCE, "A session whose workspace never ran used nothing."),
    Row("usage.running", _SOURCE, "A running sandbox counts up to as_of, which is now, idle or not."),
    Row("usage.paused", _SOURCE, "Time paused does not count; a resumed sandbox begins another interval."),
    Row("usage.reclaimed", _SOURCE, "A reclaimed workspace stops counting; a rebuilt one begins another interval."),
    Row("usage.woken", _SOURCE, "Any call that wakes the workspace has it count again."),
    Row(
        "usage.chargeable",
        _SOURCE,
        "An interval is chargeable an hour after it ended, and never while it goes on.",
        "The sources say that the reconciled part lags and read 0 for a session that had just finished. How long that "
        "is, the setting usage_reconciled_seconds says.",
    ),
    Row(
        "usage.needs-review",
        _SOURCE,
        "Intervals nobody can account for are counted, and give no seconds.",
        "Scripted by the setting usage_review_intervals, as nothing else makes them: the first so many finished ones "
        "of each session. They are among intervals.",
    ),
    Row(
        "usage.rounding",
        _SOURCE,
        "Milliseconds are added up over all intervals and then rounded down to whole seconds.",
        "The sources give whole seconds and no rounding.",
    ),
    Row("usage.tree", _SOURCE, "With root the whole tree is added up, forks and the root itself included."),
    Row("usage.tree-depth", _SOURCE, "A tree is added up 16 levels deep; the seventeenth does not count."),
    Row("usage.leaf", _SOURCE, "The tree of a leaf is the leaf, under the scope tree."),
    Row(
        "usage.deleted",
        _SOURCE,
        "A deleted session is not found, and counts in no tree; nor does what hangs below it.",
        "The sources do not say what a deleted member counts for; its record is gone with it.",
    ),
    Row("usage.root", _SOURCE, "root must be the session of the path; another is refused with 400."),
    Row("usage.query", _SOURCE, "Any other query parameter is refused."),
    Row("usage.reads", _SOURCE, "Reading usage changes nothing and wakes nothing."),
)
