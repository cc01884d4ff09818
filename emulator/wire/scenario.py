"""Scenario: the shape of a scenario file, and its published JSON Schema. Its steps are in `steps`.

Law: shapes only. Nothing here reads a file, renders a template or plays a step; what cannot be said as
a shape (a regular expression that compiles) is checked where files are loaded.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import ConfigDict, Discriminator, Field, JsonValue, Tag, model_validator
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import PydanticCustomError, core_schema

from emulator.wire.steps import REQUIRED as REQUIRED
from emulator.wire.steps import Maybe, Name, Object, Shape, Step, Text, not_empty

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


def _any_object() -> dict[str, JsonValue]:
    return {"type": "object"}


class MessageCondition(Shape):
    """What the message must be like. At least one; all that are given must hold."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1})

    contains: Maybe[Text] = Field(default=None, description="A piece of the message, upper and lower case alike.")
    equals: Maybe[str] = Field(default=None, description="The whole message, to the letter.")
    matches: Maybe[Text] = Field(default=None, description="A Python regular expression found anywhere in the message.")

    @model_validator(mode="after")
    def _one(self) -> MessageCondition:
        return not_empty(self)


class When(Shape):
    """When a rule applies. At least one key; all that are given must hold."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1})

    message: Maybe[MessageCondition] = Field(default=None, description="What the message must be like.")
    turn: Maybe[Annotated[int, Field(ge=1)]] = Field(
        default=None, description="The turn's number in its session; the first is 1."
    )
    session: Maybe[Annotated[int, Field(ge=1)]] = Field(
        default=None, description="The session's number in its organization by creation; the first is 1."
    )
    metadata: Maybe[dict[str, str]] = Field(
        default=None, description="Pairs the session's metadata must have; it may have more."
    )
    title: Maybe[str] = Field(default=None, description="The session's title, to the letter.")
    model: Maybe[str] = Field(default=None, description="The session's model.")
    tool: Maybe[Text] = Field(
        default=None, description="A function, an MCP server or a built-in that the session declares."
    )

    @model_validator(mode="after")
    def _one(self) -> When:
        return not_empty(self)


Times = Maybe[Annotated[int, Field(ge=1)]]


class WhenRule(Shape):
    """A script for the messages it is meant for."""

    when: When
    times: Times = Field(default=None, description="How many messages it answers; then it is used up. Else, all.")
    do: Annotated[list[Step], Field(min_length=1)] = Field(description="The steps, in order.")


class OtherwiseRule(Shape):
    """A script for the messages no other rule is meant for, wherever it stands in the list."""

    times: Times = Field(default=None, description="How many messages it answers; then it is used up. Else, all.")
    otherwise: Annotated[list[Step], Field(min_length=1)] = Field(description="The steps, in order.")


def _kind(value: Any) -> str:
    return "\0otherwise" if isinstance(value, Mapping) and "otherwise" in value else "\0when"


AgentRule = Annotated[
    Annotated[WhenRule, Tag("\0when")] | Annotated[OtherwiseRule, Tag("\0otherwise")], Discriminator(_kind)
]


class Connect(Shape):
    """How one connect to the server ends."""

    state: Literal["up", "down"] = Field(description="Whether it succeeds.")
    reason: Text = Field(default="fetch failed", description="Why it fails.")


class McpTool(Shape):
    """A tool of a simulated server, and the result it gives to every call."""

    description: str = Field(default="", description="What the agent is told of it.")
    read_only: bool = Field(default=False, description="Whether it is announced as changing nothing.")
    text: Maybe[str] = Field(default=None, description="The result as one text.")
    content: Maybe[list[Object]] = Field(default=None, description="The result as MCP content blocks; not with `text`.")
    structured: Maybe[Object] = Field(default=None, description="The structured result, alone or beside the others.")
    is_error: bool = Field(default=False, description="Whether the result is a failure.")
    input_schema: Object = Field(default_factory=_any_object, description="The JSON Schema of its arguments.")

    @model_validator(mode="after")
    def _one_result(self) -> McpTool:
        if self.text is not None and self.content is not None:
            raise PydanticCustomError("conflict", "has both `text` and `content`; write one of them")
        return self


class McpServer(Shape):
    """A simulated MCP server: whether it can be reached, and its tools."""

    state: Literal["up", "down"] = Field(default="up", description="Whether it can be reached.")
    reason: Text = Field(default="fetch failed", description="Why it cannot, as programs will read it.")
    times: Maybe[Annotated[int, Field(ge=1)]] = Field(
        default=None, description="With `down`: how many connects fail before it is up. Left out, all of them."
    )
    script: Maybe[Annotated[list[Connect], Field(min_length=1)]] = Field(
        default=None, description="How the first connects end, one entry each; then it is up. Not with `state`."
    )
    tools: dict[Name, McpTool] = Field(default_factory=dict, description="Its tools by name.")

    @model_validator(mode="after")
    def _down_for_a_reason(self) -> McpServer:
        written = [key for key in ("state", "reason", "times") if key in self.model_fields_set]
        if self.script is not None and written:
            raise PydanticCustomError("conflict", "has both `script` and `{key}`; choose", {"key": written[0]})
        if self.state == "up" and written not in ([], ["state"]):
            raise PydanticCustomError("conflict", "has `{key}`, which needs `state: down`", {"key": written[-1]})
        return self


class ScenarioFile(Shape):
    """A scenario: what the agent behind the emulated API does, and the MCP servers it meets."""

    scenario: Maybe[Text] = Field(default=None, description="Its name, for reports.")
    description: Maybe[str] = Field(default=None, description="What it is for. Not used.")
    mcp: dict[Name, McpServer] = Field(default_factory=dict, description="Simulated MCP servers by name.")
    agent: list[AgentRule] = Field(
        default_factory=list, description="Rules; the first whose `when` holds answers a message."
    )


class _Schema(GenerateJsonSchema):
    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        if schema.get("default", ...) is None:
            return self.generate_inner(schema["schema"])
        return super().default_schema(schema)


def scenario_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a scenario file, built afresh on every call."""
    return {"$schema": DIALECT, **ScenarioFile.model_json_schema(schema_generator=_Schema)}
