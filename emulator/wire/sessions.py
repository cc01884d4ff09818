"""Sessions, turns and items (contract §6, §8)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import ConfigDict, Discriminator, Field, Tag

from emulator.wire.common import NOT_BLANK, Deleted, Maybe, Milliseconds, Page, Request, Response
from emulator.wire.files import SeedFile
from emulator.wire.tools import Text, Tool, ToolRead

if TYPE_CHECKING:
    from pydantic.config import JsonDict

Instructions = Annotated[str, Field(max_length=32_000)]
Metadata = Annotated[
    dict[Annotated[str, Field(min_length=1, max_length=64)], Annotated[str, Field(max_length=512)]],
    Field(max_length=16, description="Your own labels, returned unchanged."),
]
RuleField = Annotated[str, Field(max_length=500)]
ApprovalMode = Literal["auto", "per_step", "read_only", "plan"]
Status = Literal["idle", "working", "requires_action", "failed"]


class InputText(Request):
    """A part of a message."""

    type: Literal["input_text"]
    text: str


def _content_kind(value: Any) -> str | None:
    return "text" if isinstance(value, str) else "parts" if isinstance(value, list) else None


_SOMETHING: JsonDict = {"contains": {"required": ["text"], "properties": {"text": NOT_BLANK}}}
Content = Annotated[
    Annotated[str, Field(min_length=1, json_schema_extra=NOT_BLANK), Tag("text")]
    | Annotated[list[InputText], Field(min_length=1, json_schema_extra=_SOMETHING), Tag("parts")],
    Discriminator(_content_kind),
    Field(description="Text, or a list of parts whose texts are joined."),
]


class PermissionRule(Request):
    """What to decide about acts that match every given field."""

    decision: Literal["allow", "deny", "ask"]
    tool: Maybe[RuleField] = Field(default=None, description="A glob of tools, such as `mcp_docs_*`.")
    path: Maybe[RuleField] = Field(default=None, description="A file, a folder with all that is in it, or a glob.")
    command: Maybe[RuleField] = Field(default=None, description="A glob of commands, or the words they begin with.")
    domain: Maybe[RuleField] = Field(default=None, description="A host, or a glob of hosts.")


PermissionRules = Annotated[list[PermissionRule], Field(max_length=50)]


class AgentConfig(Request):
    """What runs, and how freely."""

    id: Maybe[str] = Field(default=None, description="A saved agent to start from.")
    model: Maybe[str] = Field(default=None, description="Must be what the connection runs.")
    model_credential_id: Maybe[str] = Field(default=None, description="The connection; the default one when absent.")
    instructions: Instructions | None = Field(default=None, description="null or an empty text clears.")
    approval_mode: Maybe[ApprovalMode] = None
    permission_rules: Maybe[PermissionRules] = None
    tools: Maybe[list[Tool]] = Field(default=None, max_length=32)
    text: Text | None = None


class EnvironmentConfig(Request):
    """The workspace a session starts with."""

    elsewhere: ClassVar[dict[str, str]] = {
        "branch": "The branch is not chosen: the clone reports it, as `environment.repo.branch` of a session."
    }

    template_id: Maybe[str] = Field(default=None, deprecated=True, description="The older name of `agent.id`.")
    profiles: Maybe[list[str]] = Field(default=None, description="Environment profiles; the default group when absent.")
    repo: Maybe[str] = Field(
        default=None,
        description="A repository to clone, as owner/name.",
        json_schema_extra={"pattern": r"^\.*[A-Za-z0-9_-][A-Za-z0-9._-]*/\.*[A-Za-z0-9_-][A-Za-z0-9._-]*$"},
    )
    files: Maybe[list[SeedFile]] = Field(default=None, max_length=50)


class SessionCreateRequest(Request):
    """A session to open; everything is optional."""

    agent: Maybe[AgentConfig] = None
    environment: Maybe[EnvironmentConfig] = None
    parent_session_id: Maybe[str] = None
    metadata: Maybe[Metadata] = None
    title: Maybe[str] = None
    input: Maybe[Content] = Field(default=None, description="A first message; if it is refused no session remains.")


class AgentPatch(Request):
    """Changes to what runs; the mode and rules apply from the next turn."""

    model_config = ConfigDict(
        json_schema_extra={
            "dependentRequired": {"model": ["model_credential_id"], "model_credential_id": ["model"]},
        }
    )

    model: Maybe[str] = None
    model_credential_id: Maybe[str] = None
    instructions: Instructions | None = None
    approval_mode: Maybe[ApprovalMode] = None
    permission_rules: Maybe[PermissionRules] = None


class SessionPatchRequest(Request):
    """Changes to a session: any of these, at least one."""

    model_config = ConfigDict(
        json_schema_extra={
            "anyOf": [
                {"required": ["title"]},
                {"required": ["metadata"]},
                {"required": ["agent"], "properties": {"agent": {"minProperties": 1}}},
            ]
        }
    )

    title: str | None = Field(default=None, description="null clears.")
    metadata: Metadata | None = Field(default=None, description="Replaces all of it; null clears.")
    agent: Maybe[AgentPatch] = None


class RequiredAction(Response):
    """Something the session waits for."""

    type: Literal["function_call", "approval", "question"]
    turn_id: str
    call_id: str
    name: str = Field(description="The function, the tool, or the question itself.")
    arguments: dict[str, Any]
    created_at: Milliseconds
    expires_at: int | None = Field(description="Unix milliseconds; null waits for ever.")


class SessionAgent(Response):
    """What runs in a session."""

    id: str | None
    model: str | None
    model_credential_id: str | None
    approval_mode: ApprovalMode | None
    instructions: str | None
    permission_rules: list[PermissionRule]
    tools: list[ToolRead] = Field(default=[], description="On the read of a single session only.")


class Repo(Response):
    """The repository bound to a session."""

    full_name: str
    branch: str | None = Field(description="Reported by the clone; null until the workspace is up.")
    clone_error: str | None


class SessionEnvironment(Response):
    """Where the agent works."""

    type: Literal["sandbox"]
    state: Literal["unknown", "running", "paused", "destroyed", "recovering", "recovery_failed"]
    workspace_directory: Literal["/workspace"]
    repo: Repo | None


class SessionPreview(Response):
    """Addresses of what the agent serves."""

    url: str | None
    port: int | None
    published_url: str | None


class Session(Response):
    """A conversation with an agent that has a workspace."""

    object: Literal["session"]
    id: str
    title: str | None
    status: Status = Field(description="`failed` is the outcome of the last turn; the session still takes input.")
    created_at: Milliseconds
    updated_at: Milliseconds
    source: Literal["api", "console", "cli"] | None
    created_by_token: str | None
    parent_session_id: str | None
    metadata: dict[str, str]
    agent: SessionAgent
    environment: SessionEnvironment
    preview: SessionPreview
    required_actions: list[RequiredAction]


class Fork(Session):
    """A session that begins where another one was."""

    forked_from: str = Field(description="The same value as `parent_session_id`.")
    workspace_copied: bool = Field(description="False for one that begins with an empty workspace.")


class SessionDeleted(Deleted):
    """A session is gone."""

    object: Literal["session.deleted"]


class TurnError(Response):
    """Why a turn failed."""

    code: str
    message: str


class SkippedArtifact(Response):
    """A file that was not published."""

    path: str
    reason: str


class Turn(Response):
    """One run of the agent."""

    object: Literal["turn"]
    id: str
    session_id: str
    status: Literal["working", "completed", "failed", "cancelled"] = Field(
        description="`working` until it settles, also while it waits for you; a settled turn never moves."
    )
    created_at: Milliseconds
    started_at: int | None
    completed_at: int | None
    artifacts: Literal["pending", "ready", "partial", "failed"] | None = Field(description="null until it settles.")
    artifacts_skipped: list[SkippedArtifact]
    subagent_id: None
    error: TurnError | None


class Item(Response):
    """One entry of the transcript."""

    object: Literal["item"]
    id: str
    session_id: str
    type: Literal[
        "message",
        "tool_call",
        "command_execution",
        "file_change",
        "approval",
        "question",
        "mcp_unavailable",
        "error",
        "context",
    ]
    created_at: Milliseconds
    role: Maybe[Literal["user", "assistant"]] = Field(default=None, description="On messages only.")
    content: Maybe[str] = Field(default=None, description="On messages only.")
    server: Maybe[str] = Field(default=None, description="On mcp_unavailable only.")
    reason: Maybe[str] = Field(default=None, description="On mcp_unavailable only.")
    detail: dict[str, Any] = Field(description="`event` names the event it was made from; the rest is its payload.")


class SessionList(Page[Session]):
    """A page of sessions."""


class TurnList(Page[Turn]):
    """A page of turns."""


class ItemList(Page[Item]):
    """A page of items."""
