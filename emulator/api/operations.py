"""The operation table: what the API can do, each operation declared once.

Routing, scope checks, refusals of unknown parameters, `Allow`, the OpenAPI document, the journal's
allowlist and the contract tests all follow from it (contract §4).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from emulator.api import events, health, sessions, tools
from emulator.api.parse import Parameter
from emulator.refusals import CATALOGUE
from emulator.wire import Named

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from emulator.api.call import Call, Download, Reply, Stream


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One operation. `scopes`: any of them will do; `narrow` names the one that must be there once
    the body is known. `instead` refuses verbs of the same path with words of their own. `also` is a second
    status of success. `codes` are those of its refusals that no gate gives (`codes_of` has all of them).
    `media` is what it answers with; the response is JSON unless it says otherwise."""

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
    query: tuple[Parameter, ...] = ()
    public: bool = False
    stream: bool = False
    creates_session: bool = False
    instead: Mapping[str, str] = field(default_factory=dict)

    @property
    def writes(self) -> bool:
        """Whether it can change something, and so takes an idempotency key."""
        return self.verb != "GET"

    @property
    def refusals(self) -> tuple[str, ...]:
        """The codes of every refusal it can give: what its gates refuse, and what is its own (contract §2)."""
        found = ["invalid_request", "internal_error"]
        if not self.public:
            found += ["authentication_error", "rate_limit_exceeded"]
        if self.scopes:
            found.append("permission_denied")
        if "{" in self.path:
            found.append("not_found")
        if self.writes:
            found += ["conflict", "sandbox_unavailable"]
        return tuple(code for code in CATALOGUE if code in (*found, *self.codes))


LIMIT: Final = Parameter("limit", "limit", "How many to return; 20 when absent.")
ORDER: Final = Parameter("order", "order", "By time of creation; newest first when absent.")
AFTER: Final = Parameter("after", "text", "The `last_id` of the page before.")
PAGING: Final = (LIMIT, ORDER, AFTER)
CURSOR: Final = Parameter(
    "last_event_id", "cursor", "Replay what was kept after this event first. The header `Last-Event-ID` does the same."
)
ROOT: Final = Parameter("root", "text", "Only this session and what was created below it, 16 levels deep.")

_SESSION: Final = "/v1/sessions/{session_id}"
_READ: Final = ("sessions:read",)
_WRITE: Final = ("sessions:write",)

# Paths of the API that a client may rightly ask for and that are not served yet: said so, not taken for a slip.
NOT_YET: Final = (
    *(f"{_SESSION}/{rest}" for rest in ("fork", "preview", "usage", "files", "files/content", "files/refresh")),
    *(f"{_SESSION}/artifacts{rest}" for rest in ("", "/archive", "/{artifact_id}", "/{artifact_id}/content")),
    *(f"/v1/{name}{rest}" for name in ("agents", "environment-templates", "webhooks") for rest in ("", "/{id}")),
    *(f"/v1/{name}" for name in ("environment-profiles", "model-connectors", "model-credentials")),
    "/v1/model-credentials/{credential_id}",
)

OPERATIONS: Final[tuple[Operation, ...]] = (
    Operation(
        verb="GET",
        path="/v1/health",
        summary="Check the access token",
        handler=health.get_health,
        response=Named("common.Health"),
    ),
    Operation(
        verb="GET",
        path="/v1/openapi.json",
        summary="Retrieve this document",
        handler=health.get_openapi,
        response=Named("common.OpenApiDocument"),
        public=True,
    ),
    Operation(
        verb="GET",
        path="/v1/sessions",
        summary="List sessions",
        handler=sessions.list_sessions,
        response=Named("sessions.SessionList"),
        scopes=_READ,
        query=(
            *PAGING,
            Parameter(
                "status", "choice", "Only sessions that read so now.", ("idle", "working", "requires_action", "failed")
            ),
            Parameter("source", "choice", "Only sessions created through this door.", ("api", "console")),
            Parameter("created_by_token", "text", "Only sessions this token created; `me` is the one that asks."),
            Parameter("metadata", "pair", "Only sessions with this label, as key:value."),
            ROOT,
        ),
        codes=("not_found",),
    ),
    Operation(
        verb="POST",
        path="/v1/sessions",
        summary="Create a session",
        handler=sessions.create_session,
        request=Named("sessions.SessionCreateRequest"),
        response=Named("sessions.Session"),
        status=201,
        codes=("not_found", "project_limit_exceeded"),
        scopes=_WRITE,
        creates_session=True,
    ),
    Operation(
        verb="GET",
        path=_SESSION,
        summary="Retrieve a session",
        handler=sessions.get_session,
        response=Named("sessions.Session"),
        scopes=_READ,
    ),
    Operation(
        verb="PATCH",
        path=_SESSION,
        summary="Update a session",
        handler=sessions.patch_session,
        request=Named("sessions.SessionPatchRequest"),
        response=Named("sessions.Session"),
        scopes=_WRITE,
    ),
    Operation(
        verb="DELETE",
        path=_SESSION,
        summary="Delete a session",
        handler=sessions.delete_session,
        response=Named("sessions.SessionDeleted"),
        scopes=_WRITE,
    ),
    Operation(
        verb="GET",
        path=f"{_SESSION}/turns",
        summary="List turns",
        handler=sessions.list_turns,
        response=Named("sessions.TurnList"),
        scopes=_READ,
        query=PAGING,
    ),
    Operation(
        verb="GET",
        path=f"{_SESSION}/turns/{{turn_id}}",
        summary="Retrieve a turn",
        handler=sessions.get_turn,
        response=Named("sessions.Turn"),
        scopes=_READ,
    ),
    Operation(
        verb="GET",
        path=f"{_SESSION}/items",
        summary="List items",
        handler=sessions.list_items,
        response=Named("sessions.ItemList"),
        scopes=_READ,
        query=PAGING,
    ),
    Operation(
        verb="PUT",
        path=f"{_SESSION}/tools",
        summary="Replace a session's tools",
        handler=tools.put_tools,
        request=Named("tools.ToolsRequest"),
        response=Named("tools.ToolConfig"),
        scopes=_WRITE,
        instead={"POST": "The tool set is replaced, not appended to: send the whole of it with PUT."},
    ),
    Operation(
        verb="GET",
        path=f"{_SESSION}/tools",
        summary="Read a session's tools",
        handler=tools.get_tools,
        response=Named("tools.ToolConfig"),
        scopes=_READ,
    ),
    Operation(
        verb="GET",
        path=f"{_SESSION}/events",
        summary="Stream a session's events",
        handler=events.stream_session,
        response=Named("events.EventStream"),
        scopes=_READ,
        query=(CURSOR,),
        media="text/event-stream",
        stream=True,
    ),
    Operation(
        verb="POST",
        path=f"{_SESSION}/events",
        summary="Send input to a session",
        handler=events.post_events,
        request=Named("events.EventsRequest"),
        response=Named("events.InputAccepted"),
        status=202,
        codes=("queue_full", "workspace_recovery_failed"),
        scopes=("sessions:write", "tools:respond"),
        narrow=events.scope_of,
    ),
    Operation(
        verb="GET",
        path="/v1/events",
        summary="Stream every session's events",
        handler=events.stream_organization,
        response=Named("events.EventStream"),
        scopes=_READ,
        query=(CURSOR, ROOT),
        codes=("not_found",),
        media="text/event-stream",
        stream=True,
    ),
)
