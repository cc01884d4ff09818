"""Scenario: the shape of a scenario file, and its published JSON Schema. Its steps and servers have their own.

Law: shapes only. Nothing here reads a file, renders a template or plays a step; what cannot be said as
a shape (a regular expression that compiles) is checked where files are loaded.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

from pydantic import ConfigDict, Discriminator, Field, Tag, model_validator
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from emulator.wire.faults import FaultRequest
from emulator.wire.servers import McpServer
from emulator.wire.shape import Maybe, Name, Shape, Text, not_empty
from emulator.wire.steps import REQUIRED as REQUIRED
from emulator.wire.steps import Step

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


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


class ScenarioFile(Shape):
    """A scenario: what the agent behind the emulated API does, the MCP servers it meets, and requests that go
    wrong."""

    scenario: Maybe[Text] = Field(default=None, description="Its name, for reports.")
    description: Maybe[str] = Field(default=None, description="What it is for. Not used.")
    mcp: dict[Name, McpServer] = Field(default_factory=dict, description="Simulated MCP servers by name.")
    faults: list[FaultRequest] = Field(
        default_factory=list, description="HTTP faults, from the moment it is loaded; a request meets the first due."
    )
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
