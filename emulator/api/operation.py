"""An operation: what the API can do with one verb on one path, and what all of them share.

Law: everything that is known of an operation is in its row; routing, gates, the OpenAPI document and the
journal read it there (contract §4).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from emulator.api.parse import Parameter
from emulator.refusals import CATALOGUE

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from emulator.api.call import Call, Download, Reply, Stream
    from emulator.wire import Named


# What any request may meet, whatever it is for. Nothing here gives them but a fault that was scripted, one of our own,
# and a reset while the request was on its way.
_PLATFORM: Final = ("internal_error", "sandbox_error", "sandbox_unavailable", "directory_unavailable")


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One operation. `scopes`: any of them will do; `narrow` names the one that must be there once
    the body is known. `instead` refuses verbs of the same path with words of their own. `also` is a second
    status of success. `codes` are those of its refusals that no gate gives (`refusals` has all of them).
    `media` is what it answers with; the response is JSON unless it says otherwise. `body_limit` names the
    setting that is the ceiling of its body.
    `optional`: no body is an empty one."""

    verb: str
    path: str
    summary: str
    handler: Callable[[Call], Awaitable[Reply | Download | Stream]]
    response: Named
    status: int = 200
    also: int | None = None
    codes: tuple[str, ...] = ()
    media: str = "application/json"
    scopes: tuple[str, ...] = ()
    narrow: Callable[[dict[str, Any]], str | None] | None = None
    request: Named | None = None
    optional: bool = False
    query: tuple[Parameter, ...] = ()
    public: bool = False
    stream: bool = False
    creates_session: bool = False
    body_limit: str = "body_limit"
    deprecated: bool = False
    instead: Mapping[str, str] = field(default_factory=dict)

    @property
    def writes(self) -> bool:
        """Whether it can change something, and so takes an idempotency key."""
        return self.verb != "GET"

    @property
    def refusals(self) -> tuple[str, ...]:
        """The codes of every refusal it can give: what its gates refuse, what is its own, and those of a platform
        that fails (contract §2)."""
        found = ["invalid_request", *_PLATFORM]
        if not self.public:
            found += ["authentication_error", "rate_limit_exceeded"]
        if self.scopes:
            found.append("permission_denied")
        if "{" in self.path:
            found.append("not_found")
        if self.writes:
            found.append("conflict")
        return tuple(code for code in CATALOGUE if code in (*found, *self.codes))


LIMIT: Final = Parameter("limit", "limit", "How many to return; 20 when absent.")
ORDER: Final = Parameter("order", "order", "By time of creation; newest first when absent.")
AFTER: Final = Parameter("after", "text", "The `last_id` of the page before.")
PAGING: Final = (LIMIT, ORDER, AFTER)
CURSOR: Final = Parameter(
    "last_event_id", "cursor", "Replay what was kept after this event first. The header `Last-Event-ID` does the same."
)
ROOT: Final = Parameter("root", "text", "Only this session and what was created below it, 16 levels deep.")

TURN: Final = Parameter("turn_id", "text", "Only what this turn published.")

SESSION: Final = "/v1/sessions/{session_id}"
READ: Final = ("sessions:read",)
WRITE: Final = ("sessions:write",)
READ_ARTIFACTS: Final = ("artifacts:read",)
