"""The operation table: what the API can do, each operation declared once.

Routing, scope checks, refusals of unknown parameters, `Allow`, the OpenAPI document, the journal's
allowlist and the contract tests all follow from it (contract §4).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from emulator.api import (
    agents,
    artifacts,
    events,
    files,
    forks,
    health,
    models,
    previews,
    profiles,
    sessions,
    tools,
    usage,
    webhooks,
)
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

TURN: Final = Parameter("turn_id", "text", "Only what this turn published.")

_SESSION: Final = "/v1/sessions/{session_id}"
_READ: Final = ("sessions:read",)
_WRITE: Final = ("sessions:write",)
_ARTIFACTS: Final = ("artifacts:read",)

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
        body_limit="create_body_limit",
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
        verb="POST",
        path=f"{_SESSION}/fork",
        summary="Fork a session",
        handler=forks.fork_session,
        response=Named("sessions.Fork"),
        status=201,
        codes=("project_limit_exceeded",),
        scopes=_WRITE,
    ),
    Operation(
        verb="GET",
        path=f"{_SESSION}/usage",
        summary="Read what a session used",
        handler=usage.get_usage,
        response=Named("usage.SessionUsage"),
        scopes=_READ,
        query=(Parameter("root", "text", "The session of the path, to add up its whole tree."),),
    ),
    Operation(
        verb="POST",
        path=f"{_SESSION}/preview",
        summary="Publish a preview",
        handler=previews.publish_preview,
        request=Named("previews.PreviewPublishRequest"),
        optional=True,
        response=Named("previews.Preview"),
        status=201,
        also=200,
        scopes=_WRITE,
    ),
    Operation(
        verb="DELETE",
        path=f"{_SESSION}/preview",
        summary="Unpublish a preview",
        handler=previews.unpublish_preview,
        response=Named("previews.PreviewDeleted"),
        scopes=_WRITE,
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
    Operation(
        verb="POST",
        path="/v1/agents",
        summary="Save an agent",
        handler=agents.create_agent,
        request=Named("agents.AgentCreateRequest"),
        response=Named("agents.Agent"),
        status=201,
        scopes=_WRITE,
    ),
    Operation(
        verb="GET",
        path="/v1/agents",
        summary="List agents",
        handler=agents.list_agents,
        response=Named("agents.AgentList"),
        scopes=_READ,
        query=(LIMIT, AFTER),
    ),
    Operation(
        verb="GET",
        path="/v1/agents/{agent_id}",
        summary="Retrieve an agent",
        handler=agents.get_agent,
        response=Named("agents.Agent"),
        scopes=_READ,
    ),
    Operation(
        verb="DELETE",
        path="/v1/agents/{agent_id}",
        summary="Delete an agent",
        handler=agents.delete_agent,
        response=Named("agents.AgentDeleted"),
        scopes=_WRITE,
    ),
    Operation(
        verb="POST",
        path="/v1/environment-templates",
        summary="Save an environment template",
        handler=agents.create_template,
        request=Named("agents.AgentCreateRequest"),
        response=Named("agents.EnvironmentTemplate"),
        status=201,
        scopes=_WRITE,
        deprecated=True,
    ),
    Operation(
        verb="GET",
        path="/v1/environment-templates",
        summary="List environment templates",
        handler=agents.list_templates,
        response=Named("agents.EnvironmentTemplateList"),
        scopes=_READ,
        query=(LIMIT, AFTER),
        deprecated=True,
    ),
    Operation(
        verb="GET",
        path="/v1/environment-templates/{template_id}",
        summary="Retrieve an environment template",
        handler=agents.get_template,
        response=Named("agents.EnvironmentTemplate"),
        scopes=_READ,
        deprecated=True,
    ),
    Operation(
        verb="DELETE",
        path="/v1/environment-templates/{template_id}",
        summary="Delete an environment template",
        handler=agents.delete_template,
        response=Named("agents.EnvironmentTemplateDeleted"),
        scopes=_WRITE,
        deprecated=True,
    ),
    Operation(
        verb="GET",
        path="/v1/environment-profiles",
        summary="List environment profiles",
        handler=profiles.list_profiles,
        response=Named("profiles.EnvironmentProfileList"),
        scopes=_READ,
        query=(LIMIT, AFTER),
    ),
    Operation(
        verb="GET",
        path="/v1/model-connectors",
        summary="List model connectors",
        handler=models.list_connectors,
        response=Named("models.ModelConnectorCatalog"),
        public=True,
    ),
    Operation(
        verb="POST",
        path="/v1/model-credentials",
        summary="Connect a model",
        handler=models.create_credential,
        request=Named("models.ModelCredentialCreateRequest"),
        response=Named("models.ModelCredential"),
        status=201,
        also=200,
        codes=("provider_error",),
        scopes=("credentials:write",),
    ),
    Operation(
        verb="GET",
        path="/v1/model-credentials",
        summary="List model credentials",
        handler=models.list_credentials,
        response=Named("models.ModelCredentialList"),
        scopes=_READ,
        query=(LIMIT, AFTER),
    ),
    Operation(
        verb="DELETE",
        path="/v1/model-credentials/{credential_id}",
        summary="Disconnect a model",
        handler=models.delete_credential,
        response=Named("models.ModelCredentialDeleted"),
        scopes=("credentials:write",),
    ),
    Operation(
        verb="POST",
        path=f"{_SESSION}/files",
        summary="Write files into a workspace",
        handler=files.post_files,
        request=Named("files.FilesRequest"),
        response=Named("files.WorkspaceFileList"),
        codes=("workspace_recovery_failed",),
        scopes=_WRITE,
        body_limit="files_body_limit",
    ),
    Operation(
        verb="GET",
        path=f"{_SESSION}/files",
        summary="List a workspace's files",
        handler=files.list_files,
        response=Named("files.WorkspaceFileTree"),
        scopes=_READ,
        query=(
            Parameter(
                "refresh", "choice", "Take a snapshot first; needs the scope sessions:write as well.", ("1",)
            ),
        ),
        codes=("workspace_recovery_failed", "sandbox_unavailable"),
    ),
    Operation(
        verb="GET",
        path=f"{_SESSION}/files/content",
        summary="Read a workspace's file",
        handler=files.get_file_content,
        response=Named("files.WorkspaceFileContent"),
        scopes=_READ,
        query=(Parameter("path", "text", "Relative to /workspace, or absolute below it.", required=True),),
    ),
    Operation(
        verb="POST",
        path=f"{_SESSION}/files/refresh",
        summary="Take a snapshot of a workspace",
        handler=files.refresh_files,
        response=Named("files.WorkspaceFileTree"),
        codes=("workspace_recovery_failed",),
        scopes=_WRITE,
    ),
    Operation(
        verb="GET",
        path=f"{_SESSION}/artifacts",
        summary="List artifacts",
        handler=artifacts.list_artifacts,
        response=Named("artifacts.ArtifactList"),
        scopes=_ARTIFACTS,
        query=(*PAGING, TURN),
    ),
    Operation(
        verb="GET",
        path=f"{_SESSION}/artifacts/archive",
        summary="Download artifacts as a tar",
        handler=artifacts.get_archive,
        response=Named("artifacts.ArtifactArchive"),
        scopes=_ARTIFACTS,
        query=(TURN,),
        media="application/x-tar",
    ),
    Operation(
        verb="GET",
        path=f"{_SESSION}/artifacts/{{artifact_id}}",
        summary="Retrieve an artifact",
        handler=artifacts.get_artifact,
        response=Named("artifacts.Artifact"),
        scopes=_ARTIFACTS,
    ),
    Operation(
        verb="DELETE",
        path=f"{_SESSION}/artifacts/{{artifact_id}}",
        summary="Delete an artifact",
        handler=artifacts.delete_artifact,
        response=Named("artifacts.ArtifactDeleted"),
        scopes=_WRITE,
    ),
    Operation(
        verb="GET",
        path=f"{_SESSION}/artifacts/{{artifact_id}}/content",
        summary="Download an artifact",
        handler=artifacts.get_artifact_content,
        response=Named("artifacts.ArtifactContent"),
        scopes=_ARTIFACTS,
        media="*/*",
    ),
    Operation(
        verb="POST",
        path="/v1/webhooks",
        summary="Create a webhook subscription",
        handler=webhooks.create_webhook,
        request=Named("webhooks.WebhookCreateRequest"),
        response=Named("webhooks.WebhookSubscriptionCreated"),
        status=201,
        scopes=_WRITE,
    ),
    Operation(
        verb="GET",
        path="/v1/webhooks",
        summary="List webhook subscriptions",
        handler=webhooks.list_webhooks,
        response=Named("webhooks.WebhookSubscriptionList"),
        scopes=_READ,
        query=(LIMIT, AFTER),
    ),
    Operation(
        verb="DELETE",
        path="/v1/webhooks/{webhook_id}",
        summary="Delete a webhook subscription",
        handler=webhooks.delete_webhook,
        response=Named("webhooks.WebhookDeleted"),
        scopes=_WRITE,
    ),
)
