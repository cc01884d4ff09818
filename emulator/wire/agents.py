"""Saved agents, and their older name, environment templates (contract §12)."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import ConfigDict, Field

from emulator.wire.common import Deleted, Maybe, Milliseconds, Page, Request, Response
from emulator.wire.sessions import Instructions
from emulator.wire.tools import Text, Tool, ToolRead

_EACH_SESSION = "An agent does not carry it: its sessions start in the mode auto without rules. Send `agent.{}` with "


class AgentCreateRequest(Request):
    """An agent to save; one of the same name is replaced whole. At least one field beside the name."""

    model_config = ConfigDict(
        json_schema_extra={
            "anyOf": [
                {"required": ["model"]},
                {"required": ["model_credential_id"]},
                {"required": ["instructions"], "properties": {"instructions": {"minLength": 1}}},
                {"required": ["tools"]},
                {"required": ["text"], "properties": {"text": {"type": "object"}}},
            ]
        }
    )

    elsewhere: ClassVar[dict[str, str]] = {
        name: _EACH_SESSION.format(name) + "each POST /v1/sessions." for name in ("approval_mode", "permission_rules")
    }

    name: str = Field(
        min_length=1,
        max_length=64,
        description="a–z 0–9 . - _, put into lower case.",
        json_schema_extra={"pattern": "^[A-Za-z0-9._-]+$"},
    )
    model: Maybe[str] = Field(default=None, min_length=1, description="Must be what the connection runs.")
    model_credential_id: Maybe[str] = Field(default=None, description="The connection; the default one when absent.")
    instructions: Maybe[Instructions] = Field(default=None)
    tools: Maybe[list[Tool]] = Field(default=None, max_length=32)
    text: Text | None = None


class Agent(Response):
    """A saved configuration that sessions start from."""

    object: Literal["agent"]
    id: str
    name: str
    model: str | None
    model_credential_id: str | None = Field(description="null is the default connection.")
    instructions: str | None
    tools: list[ToolRead]
    text: dict[str, Any] | None
    created_at: Milliseconds


class AgentList(Page[Agent]):
    """A page of agents."""


class AgentDeleted(Deleted):
    """An agent is gone; sessions made from it are as they were."""

    object: Literal["agent.deleted"]


class EnvironmentTemplate(Response):
    """An agent under its older name, without what that did not have."""

    object: Literal["environment_template"]
    id: str
    name: str
    tools: list[ToolRead]
    text: dict[str, Any] | None
    created_at: Milliseconds


class EnvironmentTemplateList(Page[EnvironmentTemplate]):
    """A page of environment templates."""


class EnvironmentTemplateDeleted(Deleted):
    """An environment template is gone, and with it the agent it was."""

    object: Literal["environment_template.deleted"]
