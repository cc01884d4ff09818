"""Input events, and the events of the streams (contract §7, §9)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from emulator.wire.common import NOT_BLANK, Maybe, Milliseconds, Request, Response
from emulator.wire.sessions import Content


class InputMessage(Request):
    """A message to the agent; it waits behind a running turn."""

    type: Literal["input.message"]
    content: Content


class InputContext(Request):
    """Something the agent should know; no turn runs for it."""

    type: Literal["input.context"]
    content: Content


class InputToolResult(Request):
    """The answer to a function call: `output` with success, `error` without."""

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [
                {"required": ["output"], "properties": {"success": {"const": True}, "error": False}},
                {"required": ["error"], "properties": {"success": {"const": False}, "output": False}},
            ]
        }
    )

    type: Literal["input.tool_result"]
    turn_id: str
    call_id: str
    success: bool
    output: Maybe[str] = Field(default=None, description="What the function gave, as text; with `success: true`.")
    error: Maybe[str] = Field(default=None, description="What the agent is told; with `success: false`.")


class InputApproval(Request):
    """The decision about an approval."""

    type: Literal["input.approval"]
    call_id: str
    approved: bool


class InputQuestionAnswer(Request):
    """The answer to a question."""

    type: Literal["input.question_answer"]
    call_id: str
    answer: str = Field(min_length=1, json_schema_extra=NOT_BLANK)


class InputSteer(Request):
    """A remark to the running turn."""

    type: Literal["input.steer"]
    content: Content


class InputCancel(Request):
    """Stop the running turn."""

    type: Literal["input.cancel"]


InputEvent = Annotated[
    InputMessage | InputContext | InputToolResult | InputApproval | InputQuestionAnswer | InputSteer | InputCancel,
    Field(discriminator="type"),
]


class EventsRequest(Request):
    """One event to send."""

    events: list[InputEvent] = Field(min_length=1, max_length=1)


class InputAccepted(Response):
    """What became of an event."""

    object: Literal["input.accepted"]
    session_id: str
    type: Literal[
        "input.message",
        "input.context",
        "input.tool_result",
        "input.approval",
        "input.question_answer",
        "input.steer",
        "input.cancel",
    ]
    outcome: Maybe[Literal["accepted", "already_resolved", "not_delivered", "no_longer_pending"]] = Field(
        default=None, description="What became of an answer."
    )
    queued: Maybe[bool] = Field(default=None, description="Whether a message waits behind a running turn.")
    queue_position: int | None = Field(default=None, description="Its place, from 1.")
    delivered: Maybe[bool] = Field(default=None, description="Whether the sandbox was up to take the context.")


class EventStream(Response):
    """The `data` of one frame."""

    object: Literal["event"]
    type: str
    internal_type: str
    session_id: str | None = Field(description="null on gobare.replay_truncated of a stream of several sessions.")
    seq: int | None = Field(description="The cursor; null on events that are not kept.")
    created_at: Milliseconds
    payload: dict[str, Any]
    from_seq: Maybe[int] = Field(default=None, description="On gobare.replay_truncated: where to resume.")
    note: Maybe[str] = Field(default=None, description="On gobare.replay_truncated: what to do.")
