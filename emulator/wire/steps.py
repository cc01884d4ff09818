"""Steps: the shapes of a scenario file's steps, verb by verb.

Law: shapes only. Nothing here reads a file, renders a template or plays a step; what cannot be said as
a shape (a name that was bound) is checked where files are loaded.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, ConfigDict, Discriminator, Field, JsonValue, Tag, model_validator

from emulator.wire.shape import Maybe, Object, Shape, Text, not_empty

# Marks the parts of an error's location that name a member of a union rather than a key of the file.
TAG: Final = "\0"
# What a step may have beside its verb.
REQUIRED: Final = "required"


def _port_alone(value: Any) -> Any:
    return {"port": value} if isinstance(value, int) and not isinstance(value, bool) else value


def _path_alone(value: Any) -> Any:
    return {"path": value} if isinstance(value, str) else value


Port = Annotated[int, Field(ge=1, le=65535)]


class Stepping(Shape):
    """The base of every step: beside its verb it may be `required`."""

    required: bool = Field(default=False, description="Whether a run that does not reach this step fails.")


class CallExpectation(Shape):
    """What the answer to a call must be like. All that are given must hold; a miss is reported and ends nothing."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1})

    success: Maybe[bool] = Field(default=None, description="Whether it succeeds.")
    output: JsonValue = Field(
        default=None, description="The whole output as JSON, or its text; strings may be templates."
    )
    schema_: Maybe[Object | bool] = Field(
        default=None, alias="schema", description="A JSON Schema that the output, read as JSON, fits."
    )
    matches: Maybe[Text] = Field(default=None, description="A Python regular expression found in the output's text.")
    error: Maybe[Text] = Field(default=None, description="A Python regular expression found in the error.")

    @model_validator(mode="after")
    def _one(self) -> CallExpectation:
        return not_empty(self)


class AskExpectation(Shape):
    """What the answer to a question must be like."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1})

    answer: Maybe[str] = Field(default=None, description="The answer, to the letter; may be a template.")
    matches: Maybe[Text] = Field(default=None, description="A Python regular expression found in the answer.")

    @model_validator(mode="after")
    def _one(self) -> AskExpectation:
        return not_empty(self)


class ApproveExpectation(Shape):
    """What must be decided."""

    approved: bool = Field(description="The decision.")


class CallArguments(Shape):
    """Call a function the session declares, and wait for the program that owns it to answer."""

    function: Text = Field(description="The function's name.")
    arguments: Object = Field(default_factory=dict, description="What it is called with; strings may be templates.")
    as_: Maybe[str] = Field(
        default=None,
        alias="as",
        description="Name of the result: `success`, `output` (parsed when it is JSON), `text`, `error`.",
    )
    lose: bool = Field(default=False, description="Park a call whose answer the sandbox no longer takes.")
    expires: bool = Field(default=False, description="Have its time run out at once.")
    expect: Maybe[CallExpectation] = Field(default=None, description="What the answer must be like.")


class AskArguments(Shape):
    """Put a question to a person, and wait for the answer."""

    question: Text = Field(description="The question.")
    options: Maybe[list[Text]] = Field(default=None, description="Answers to choose from.")
    allow_freeform: bool = Field(default=True, description="Whether an answer outside the options is welcome.")
    as_: Maybe[str] = Field(default=None, alias="as", description="Name of the answer, a text.")
    console: Maybe[Text] = Field(default=None, description="What somebody at the console answers at once.")
    expect: Maybe[AskExpectation] = Field(default=None, description="What the answer must be like.")


class ApproveArguments(Shape):
    """Ask for leave to use a tool, unless the session's mode or rules decide it."""

    tool: Text = Field(description="The tool's name.")
    args: Object = Field(default_factory=dict, description="What the tool would be used with.")
    sensitive: bool = Field(default=False, description="Whether the request is marked as sensitive.")
    as_: Maybe[str] = Field(default=None, alias="as", description="Name of the decision, true or false.")
    console: Maybe[bool] = Field(default=None, description="What somebody at the console decides at once.")
    refused: Maybe[Literal["approval_timeout", "credential_inspection_denied"]] = Field(
        default=None, description="Why the platform refuses it at once."
    )
    expect: Maybe[ApproveExpectation] = Field(default=None, description="What must be decided.")


class UseArguments(Shape):
    """Use one of the sandbox's own tools, if the session lets the agent: its call and, at once, its result."""

    tool: Text = Field(description="The tool's name, such as `bash`.")
    args: Object = Field(default_factory=dict, description="What it is used with.")
    summary: str = Field(default="", description="The result in a line.")
    is_error: bool = Field(default=False, description="Whether it failed.")
    exit_code: Maybe[int] = Field(default=None, description="The exit status of a command.")
    as_: Maybe[str] = Field(default=None, alias="as", description="Name of whether it was done, true or false.")


class McpArguments(Shape):
    """Call a tool of an MCP server of the session, through its outages and the session's rules."""

    server: Text = Field(description="The server's name, as the session declares it.")
    tool: Text = Field(description="The tool's own name.")
    arguments: Object = Field(default_factory=dict, description="What it is called with.")
    as_: Maybe[str] = Field(
        default=None, alias="as", description="Name of the result: `text`, `content`, `structured`, `is_error`."
    )


class WriteArguments(Shape):
    """Write a file of the workspace, if the session lets the agent."""

    path: Text = Field(description="Where; absolute under /workspace, or relative to it.")
    content: str = Field(description="The whole text of the file.")
    encoding: Literal["utf8", "base64"] = Field(default="utf8", description="How the content is written here.")
    size: Maybe[Annotated[int, Field(ge=0, le=10**12)]] = Field(
        default=None,
        description="How many bytes the file has; those beyond its text read as zeros and take no memory.",
    )
    as_: Maybe[str] = Field(default=None, alias="as", description="Name of whether it was done, true or false.")


class DeleteArguments(Shape):
    """Delete a file of the workspace, if the session lets the agent."""

    path: Text = Field(description="The file.")
    as_: Maybe[str] = Field(default=None, alias="as", description="Name of whether it was done, true or false.")


class Todo(Shape):
    """An entry of the agent's list of things to do."""

    label: Text = Field(description="What is to be done.")
    status: Text = Field(description="How far it is, such as `pending` or `done`.")


class CompactArguments(Shape):
    """Say that the conversation was summarised to make room."""

    before: Annotated[int, Field(ge=0)] = Field(description="Its size in tokens until now.")
    after: Annotated[int, Field(ge=0)] = Field(description="Its size from now on.")


def _body_kind(value: Any) -> str:
    return "\0pages" if isinstance(value, Mapping) else "\0text"


PreviewBody = Annotated[
    Annotated[str, Tag("\0text")] | Annotated[dict[Text, str], Tag("\0pages")],
    Discriminator(_body_kind),
]


class PreviewArguments(Shape):
    """Offer a page served from the workspace."""

    port: Port = Field(description="The port it is served on.")
    body: Maybe[PreviewBody] = Field(
        default=None, description="What is served once it is published: a text, or an object of texts by path."
    )


class FailArguments(Shape):
    """End the turn as failed. Nothing can follow."""

    code: Text = Field(description="The code of the turn's error, such as `provider_error`.")
    message: Text = Field(description="What went wrong, for a person.")


class SayStep(Stepping):
    """The agent says something: a message of the conversation."""

    say: Text = Field(description="The text; may be a template.")


class ThinkStep(Stepping):
    """The agent thinks aloud. Seen live only."""

    think: Text = Field(description="The text; may be a template.")


class CallStep(Stepping):
    """A call of a host function."""

    call: CallArguments


class AskStep(Stepping):
    """A question."""

    ask: AskArguments


class ApproveStep(Stepping):
    """A request for approval."""

    approve: ApproveArguments


class UseStep(Stepping):
    """A use of a sandbox tool."""

    use: UseArguments


class McpStep(Stepping):
    """A call of an MCP tool."""

    mcp: McpArguments


class WriteStep(Stepping):
    """A file written."""

    write: WriteArguments


class DeleteStep(Stepping):
    """A file deleted: its path alone, or an object with it."""

    delete: Annotated[DeleteArguments, BeforeValidator(_path_alone, json_schema_input_type=Text | DeleteArguments)]


class TodosStep(Stepping):
    """The agent's list of things to do, all of it."""

    todos: list[Todo]


class CompactStep(Stepping):
    """A compaction."""

    compact: CompactArguments


class PreviewStep(Stepping):
    """A preview: its port alone, or an object with it."""

    preview: Annotated[PreviewArguments, BeforeValidator(_port_alone, json_schema_input_type=Port | PreviewArguments)]


class WaitStep(Stepping):
    """A pause on the emulator's clock."""

    wait: Annotated[float, Field(ge=0, le=10**9, allow_inf_nan=False)] = Field(description="Its length in seconds.")


class FailStep(Stepping):
    """The turn fails."""

    fail: FailArguments


def _verb(value: Any) -> str | None:
    keys = [key for key in value if key != REQUIRED] if isinstance(value, Mapping) else []
    return f"{TAG}{keys[0]}" if len(keys) == 1 else None


PARALLEL: Final = ("call", "ask", "approve", "use", "mcp", "write", "delete", "preview", "wait")

ParallelStep = Annotated[
    Annotated[CallStep, Tag("\0call")]
    | Annotated[AskStep, Tag("\0ask")]
    | Annotated[ApproveStep, Tag("\0approve")]
    | Annotated[UseStep, Tag("\0use")]
    | Annotated[McpStep, Tag("\0mcp")]
    | Annotated[WriteStep, Tag("\0write")]
    | Annotated[DeleteStep, Tag("\0delete")]
    | Annotated[PreviewStep, Tag("\0preview")]
    | Annotated[WaitStep, Tag("\0wait")],
    Discriminator(_verb),
]


class TogetherStep(Stepping):
    """Several verbs at once; the step ends when all of them have."""

    together: Annotated[list[ParallelStep], Field(min_length=1)]


Step = Annotated[
    Annotated[SayStep, Tag("\0say")]
    | Annotated[ThinkStep, Tag("\0think")]
    | Annotated[CallStep, Tag("\0call")]
    | Annotated[AskStep, Tag("\0ask")]
    | Annotated[ApproveStep, Tag("\0approve")]
    | Annotated[UseStep, Tag("\0use")]
    | Annotated[McpStep, Tag("\0mcp")]
    | Annotated[WriteStep, Tag("\0write")]
    | Annotated[DeleteStep, Tag("\0delete")]
    | Annotated[TodosStep, Tag("\0todos")]
    | Annotated[CompactStep, Tag("\0compact")]
    | Annotated[PreviewStep, Tag("\0preview")]
    | Annotated[TogetherStep, Tag("\0together")]
    | Annotated[WaitStep, Tag("\0wait")]
    | Annotated[FailStep, Tag("\0fail")],
    Discriminator(_verb),
]

# Verb -> the shape of its arguments, or None where they are a bare value.
VERBS: Final[Mapping[str, type[Shape] | None]] = {
    "say": None,
    "think": None,
    "call": CallArguments,
    "ask": AskArguments,
    "approve": ApproveArguments,
    "use": UseArguments,
    "mcp": McpArguments,
    "write": WriteArguments,
    "delete": DeleteArguments,
    "todos": None,
    "compact": CompactArguments,
    "preview": PreviewArguments,
    "together": None,
    "wait": None,
    "fail": FailArguments,
}
