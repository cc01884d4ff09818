"""Injected faults: what of the contract holds when a request goes wrong (contract §2, §13)."""

from __future__ import annotations

from typing import Final

from tests.contract.manifest import Row

ROWS: Final = (
    Row(
        "faults.first",
        "contract §2",
        "An injected fault comes before every check of a request: its path, its token, its budget and its key.",
        "What breaks in front of the API or within it does so whatever was sent. So every request can be made to fail, "
        "one that would replay an answer included.",
    ),
    Row("faults.codes", "contract §2", "An injected error has the status and the headers of its code."),
    Row(
        "faults.everywhere",
        "contract §2",
        "Every operation declares internal_error, sandbox_error, sandbox_unavailable and directory_unavailable.",
        "They are of the platform, and any call may meet them. The API's own document has these codes, and declares "
        "no status 503 at calls such as GET /v1/sessions.",
    ),
    Row("faults.budget", "contract §13", "A request that a fault refuses is not charged, and tells its budget."),
    Row("faults.no-effect", "contract §13", "A write that a fault refuses has no effect and keeps no key."),
    Row(
        "faults.lost", "contract §13", "A write whose answer is lost has taken effect, and its key replays the answer."
    ),
    Row(
        "faults.twice",
        "contract §13",
        "A write that a proxy sends twice is carried out once with a key, and twice without one.",
    ),
)
