"""Servers: the shapes of what is said of an MCP server, in a scenario file and over the control route.

Law: shapes only. What goes together with what is checked where it is read into a plan.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Final, Literal, get_args

from pydantic import BeforeValidator, Field, JsonValue
from pydantic_core import PydanticKnownError

from emulator.wire.shape import Maybe, Name, Object, Shape, Text

State = Literal["up", "down"]
ConnectFault = Literal["refuse", "time_out", "hang", "unauthorized", "wrong_protocol", "slow"]
CallFault = Literal[
    "ok", "drop", "error", "malformed", "slow", "time_out", "hang", "unauthorized", "wrong_protocol", "refuse"
]
Seconds = Annotated[float, Field(ge=0, le=10**9, allow_inf_nan=False)]

_CONNECTS: Final = (*get_args(State), *get_args(ConnectFault))


def _any_object() -> dict[str, JsonValue]:
    return {"type": "object"}


def _alone(value: str, accepted: tuple[str, ...], key: str) -> dict[str, str]:
    """A word in place of an object: what it stands for."""
    if value not in accepted:
        *others, last = (f"'{word}'" for word in accepted)
        raise PydanticKnownError("literal_error", {"expected": f"{', '.join(others)} or {last}"})
    return {key: value}


def _connect_alone(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    return _alone(value, _CONNECTS, "state" if value in get_args(State) else "fault")


def _call_alone(value: Any) -> Any:
    return _alone(value, get_args(CallFault), "fault") if isinstance(value, str) else value


class McpTool(Shape):
    """A tool of a simulated server, and the result it gives to every call."""

    description: str = Field(default="", description="What the agent is told of it.")
    read_only: bool = Field(default=False, description="Whether it is announced as changing nothing.")
    text: Maybe[str] = Field(default=None, description="The result as one text.")
    content: Maybe[list[Object]] = Field(default=None, description="The result as MCP content blocks; not with `text`.")
    structured: Maybe[Object] = Field(default=None, description="The structured result, alone or beside the others.")
    is_error: bool = Field(default=False, description="Whether the result is a failure.")
    input_schema: Object = Field(default_factory=_any_object, description="The JSON Schema of its arguments.")


class Connect(Shape):
    """How one connect to the server ends: a word of `state` or `fault` alone, or an object."""

    instead: ClassVar[str] = "What goes wrong with calls of its tools goes under `calls`."
    elsewhere: ClassVar[dict[str, str]] = {"fault": instead}

    state: Maybe[State] = Field(default=None, description="Whether it succeeds.")
    fault: Maybe[ConnectFault] = Field(default=None, description="What goes wrong.")
    reason: Maybe[Text] = Field(default=None, description="Why it fails, in other words than the fault's own.")
    seconds: Maybe[Seconds] = Field(default=None, description="With `slow`: how long it takes; from ten on it fails.")
    tools: Maybe[dict[Name, McpTool]] = Field(default=None, description="What the server offers from then on.")


class ToolCall(Shape):
    """How one call of a tool ends: a fault's name alone, or an object."""

    instead: ClassVar[str] = "What goes wrong with connects goes under `script`."
    elsewhere: ClassVar[dict[str, str]] = {"fault": instead}

    fault: Maybe[CallFault] = Field(default=None, description="What goes wrong; nothing when absent.")
    tool: Maybe[Text] = Field(default=None, description="The tool it waits for; the next call of any when absent.")
    seconds: Maybe[Seconds] = Field(default=None, description="With `slow`: how long it takes.")
    text: Maybe[Text] = Field(default=None, description="With `error`: what the tool answers.")
    tools: Maybe[dict[Name, McpTool]] = Field(default=None, description="What the server offers to the calls after it.")


AnyConnect = Annotated[Connect, BeforeValidator(_connect_alone, json_schema_input_type=State | ConnectFault | Connect)]
AnyCall = Annotated[ToolCall, BeforeValidator(_call_alone, json_schema_input_type=CallFault | ToolCall)]


class McpServer(Shape):
    """An MCP server: how connects and calls go, and the tools it has where it is simulated."""

    elsewhere: ClassVar[dict[str, str]] = Connect.elsewhere

    state: Maybe[State] = Field(default=None, description="Whether it can be reached; it can, unless said otherwise.")
    reason: Maybe[Text] = Field(default=None, description="Why it cannot, in other words than the fault's own.")
    times: Maybe[Annotated[int, Field(ge=1)]] = Field(
        default=None, description="With `down` or a `fault`: how many connects meet it; then it is up. Else, all."
    )
    fault: Maybe[ConnectFault] = Field(default=None, description="What goes wrong with connects; not with `up`.")
    seconds: Maybe[Seconds] = Field(default=None, description="With `slow`: how long a connect takes.")
    script: Maybe[Annotated[list[AnyConnect], Field(min_length=1)]] = Field(
        default=None, description="How the next connects end, one entry each; then it is up. Not with the keys above."
    )
    calls: Maybe[Annotated[list[AnyCall], Field(min_length=1)]] = Field(
        default=None, description="How the next calls end: each takes the first entry that suits it."
    )
    tools: Maybe[dict[Name, McpTool]] = Field(default=None, description="Its tools by name.")

    def written(self) -> dict[str, Any]:
        """What was written, as plain data."""
        return self.model_dump(exclude_unset=True)
