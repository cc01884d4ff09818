"""Tools as they are sent and as they are read back (contract §5)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Discriminator, Field, Tag

from emulator.wire.common import ADDRESS, NOT_BLANK, Maybe, Request, Response, Withheld


class FunctionTool(Request):
    """A function your own process runs when the agent calls it."""

    type: Literal["function"]
    name: str = Field(min_length=1, max_length=64, description="Unique among functions and MCP servers.")
    description: Maybe[str] = Field(default=None, description="What the agent is told the function does.")
    parameters: Maybe[dict[str, Any]] = Field(default=None, description="A JSON Schema of the arguments, kept as sent.")
    timeout_seconds: Maybe[int] = Field(
        default=None, ge=1, le=7200, description="How long a call waits for its answer; for ever when absent."
    )


def _env_refs_kind(value: Any) -> str | None:
    return "map" if isinstance(value, dict) else "names" if isinstance(value, list) else None


EnvRefs = Annotated[
    Annotated[dict[str, str], Tag("map")] | Annotated[list[str], Tag("names")],
    Discriminator(_env_refs_kind),
]


class McpTool(Request):
    """An MCP server the sandbox connects to: exactly one of `url` and `command`."""

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [
                {"required": ["url"], "properties": {"command": False, "args": False, "env_refs": False}},
                {"required": ["command"], "properties": {"url": False, "authorization": False, "headers": False}},
            ]
        }
    )

    type: Literal["mcp"]
    name: str = Field(min_length=1, max_length=64, description="What the agent sees this server called.")
    url: Maybe[str] = Field(default=None, description="An endpoint over streamable HTTP.", json_schema_extra=ADDRESS)
    authorization: Maybe[Withheld] = Field(default=None, description="Sent on connect; never read back.")
    headers: Maybe[dict[str, Withheld]] = Field(default=None, description="Sent on connect; values never read back.")
    command: Maybe[str] = Field(
        default=None, description="A process started in the sandbox, spoken to over stdio.", json_schema_extra=NOT_BLANK
    )
    args: Maybe[list[str]] = Field(default=None, description="Arguments of the command.")
    env_refs: Maybe[EnvRefs] = Field(
        default=None, description="Names of profile variables the command is given; names only, never values."
    )
    allowed_tools: Maybe[list[str]] = Field(default=None, description="Narrows the server to these tools.")
    required: Maybe[bool] = Field(default=None, description="Whether the session refuses to run without it.")


class WebSearch(Request):
    """Search the web."""

    type: Literal["web_search"]


class WebFetch(Request):
    """Read one page."""

    type: Literal["web_fetch"]


class ImageSearch(Request):
    """Search for images."""

    type: Literal["image_search"]


class Browse(Request):
    """Open a page in a browser."""

    type: Literal["browse"]


class BrowserAct(Request):
    """Act in that browser."""

    type: Literal["browser_act"]


class Screenshot(Request):
    """Capture what that browser shows."""

    type: Literal["screenshot"]


Tool = Annotated[
    FunctionTool | McpTool | WebSearch | WebFetch | ImageSearch | Browse | BrowserAct | Screenshot,
    Field(discriminator="type"),
]


class TextFormat(Request):
    """The document the model is asked to answer with."""

    type: Literal["json_schema"]
    schema_: dict[str, Any] = Field(alias="schema", description="The JSON Schema asked for; it is not enforced.")


class Text(Request):
    """What is asked of the model's own words."""

    verbosity: Maybe[Literal["low", "medium", "high"]] = Field(default=None)
    format: Maybe[TextFormat] = Field(default=None)


class ToolsRequest(Request):
    """A whole tool configuration; it replaces the one before."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1})

    tools: Maybe[list[Tool]] = Field(default=None, max_length=32, description="An empty list leaves no way out.")
    text: Text | None = Field(default=None)


class FunctionToolRead(Response):
    """A function as it is read back."""

    type: Literal["function"]
    name: str
    description: Maybe[str] = None
    parameters: Maybe[dict[str, Any]] = None
    timeout_seconds: Maybe[int] = None


class McpToolRead(Response):
    """An MCP server as it is read back."""

    type: Literal["mcp"]
    name: str
    url: Maybe[str] = None
    command: Maybe[str] = None
    args: Maybe[list[str]] = None
    env_refs: Maybe[dict[str, str] | list[str]] = None
    allowed_tools: Maybe[list[str]] = None
    required: Maybe[bool] = None
    redacted: Maybe[list[str]] = Field(default=None, min_length=1, description="The names of what was held back.")


class BuiltInRead(Response):
    """A built-in as it is read back."""

    type: Literal["web_search", "web_fetch", "image_search", "browse", "browser_act", "screenshot"]


ToolRead = Annotated[FunctionToolRead | McpToolRead | BuiltInRead, Field(discriminator="type")]


class ToolConfig(Response):
    """A session's tools, less their secrets."""

    object: Literal["session.tools"]
    session_id: str
    tools: list[ToolRead]
    text: dict[str, Any] | None
