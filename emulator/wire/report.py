"""The report: what is left over at the end of a test, who answered what, and what was not as expected.

Law: shapes only.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from emulator.wire.common import Milliseconds, Response
from emulator.wire.control import ActionType
from emulator.wire.deliveries import UndeletedWebhook, UndeliveredWebhook
from emulator.wire.faults import Fault

RequestId = Annotated[str | None, Field(description="The request it began with; null where none did.")]


class OpenCall(Response):
    """A call nobody has answered."""

    session_id: str
    turn_id: str
    call_id: str
    type: ActionType
    name: str
    request_id: RequestId


class UnreachedStep(Response):
    """A step of the scenario that no turn has begun."""

    scenario: str
    step: str = Field(description="Its path in the file.")
    verb: str
    required: bool = Field(description="Whether it must be reached.")


class UnusedRule(Response):
    """A rule that answered fewer messages than its `times`."""

    rule: str
    times: int
    used: int


class UnusedOutage(Response):
    """A server of which fewer connects or calls were made than were scripted to go wrong."""

    server: str
    connects: int = Field(description="How many of `times` or `script` are left.")
    calls: int = Field(description="How many of `calls` are left.")


class FailedCondition(Response):
    """A part of a rule's condition that a message did not meet."""

    condition: str = Field(description="Its place, such as `message.contains`.")
    wanted: Any
    actual: Any


class RuleMiss(Response):
    """Why one rule did not answer a message."""

    rule: str
    reason: str = Field(description="All of it in a line.")
    used_up: bool = Field(description="Whether it had answered as many as its `times`.")
    times: int | None
    used: int
    failed: list[FailedCondition] = Field(description="The parts of its condition that the message does not meet.")


class UnmatchedMessage(Response):
    """A message that no rule of the script answered."""

    session_id: str
    turn_id: str
    message: str
    request_id: RequestId
    rules: list[RuleMiss] = Field(description="Every rule, in the order they were asked.")


class UndeletedSession(Response):
    """A session that is still there."""

    id: str
    title: str | None
    organization: str
    request_id: RequestId
    forked_from: str | None = Field(description="The session it is a fork of; null for any other.")


class UndeletedAgent(Response):
    """A saved agent that is still there."""

    id: str
    name: str
    organization: str
    request_id: RequestId


class UndeletedPreview(Response):
    """An address that is still published."""

    session_id: str
    url: str


class UndeletedArtifact(Response):
    """A published file of a session that is still there."""

    id: str
    session_id: str
    path: str


class Undeleted(Response):
    """What was made and not deleted."""

    sessions: list[UndeletedSession]
    agents: list[UndeletedAgent]
    webhooks: list[UndeletedWebhook]
    previews: list[UndeletedPreview]
    artifacts: list[UndeletedArtifact]


class OpenStream(Response):
    """An event stream that is still read."""

    organization: str
    session_id: str | None = Field(description="null for one of the whole organization.")
    token_id: str
    request_id: RequestId


class RunningTurn(Response):
    """A turn that has not settled."""

    session_id: str
    turn_id: str
    number: int
    state: Literal["queued", "running", "waiting"] = Field(description="`waiting` is for somebody outside.")
    request_id: RequestId


class NotAtRest(Response):
    """A reply that went out although the agent was still at it."""

    session_id: str
    turn_id: str | None
    request_id: RequestId


class ScriptFailure(Response):
    """An error of a script, or an agent that held the event loop."""

    session_id: str | None
    turn_id: str | None
    where: str
    message: str
    request_id: RequestId


AnsweredBy = Literal["api", "console"]


class AnswerAttempt(Response):
    """An answer that was given."""

    by: AnsweredBy
    token_id: str | None
    request_id: RequestId
    outcome: Literal["accepted", "already_resolved", "not_delivered", "no_longer_pending"]
    at: Milliseconds


class AnsweredAction(Response):
    """A required action: how it ended, and who answered it when."""

    session_id: str
    turn_id: str
    call_id: str
    type: ActionType
    name: str
    asked_at: Milliseconds
    outcome: Literal["open", "answered", "expired", "withdrawn", "lost", "dropped"]
    at: Milliseconds | None = Field(description="When it ended; null while it is open.")
    answered_by: AnsweredBy | None = Field(description="null unless an answer was accepted.")
    token_id: str | None
    request_id: RequestId
    attempts: list[AnswerAttempt] = Field(description="Every answer, those that came too late included.")


class ExpectedDifference(Response):
    """One place where an answer is not what the script expects."""

    path: str
    check: Literal["equals", "missing", "unexpected", "matches", "schema"]
    expected: Any
    actual: Any


class FailedExpectation(Response):
    """An answer that was not what the script expects."""

    session_id: str
    turn_id: str
    call_id: str | None = Field(description="null where a rule or the mode decided and nobody was asked.")
    type: ActionType
    name: str
    scenario: str | None = Field(description="null for a Python agent.")
    where: str = Field(description="The path of the step, or the place in the Python agent.")
    answered_by: AnsweredBy | None
    request_id: RequestId
    at: Milliseconds
    differences: list[ExpectedDifference]


class FieldDifference(Response):
    """A field of a write that is not as it was recorded."""

    path: str
    check: Literal["equals", "missing", "unexpected"]
    expected: Any
    actual: Any


class RecordingDifference(Response):
    """Where the client's writes are not those of the recording that is played strictly."""

    kind: Literal["different", "unexpected", "missing"]
    line: int | None = Field(description="The line of the recording; null where none is left.")
    session_id: str | None = Field(description="null for a write that belongs to no session.")
    verb: str
    path: str
    request_id: RequestId
    differences: list[FieldDifference]
    message: str


class VerdictLine(Response):
    """Something that failed or was left over, for a person to read."""

    kind: str = Field(description="What it is about: a list of the report, or `required_steps`.")
    text: str


class Verdict(Response):
    """The report as lines to read."""

    strict: bool = Field(description="Whether what was left over has failed.")
    failed: list[VerdictLine] = Field(description="A test that ends with any of these has failed.")
    left: list[VerdictLine] = Field(description="What was left over, where that is no failure.")


class Evidence(Response):
    """What a finding is told by."""

    request_ids: list[str] = Field(description="The requests it was seen in, at most some of them.")
    session_id: str | None
    turn_id: str | None
    call_id: str | None
    token_id: str | None
    server: str | None
    scopes: list[str]


class Finding(Response):
    """A rule of good use of the API that a client broke."""

    id: str
    message: str = Field(description="What went wrong, why it matters and what to do.")
    evidence: Evidence
    link: str = Field(description="Where the README says more.")


class Report(Response):
    """What is left over at the end of a test."""

    verdict: Verdict
    answers: list[AnsweredAction]
    failed_expectations: list[FailedExpectation]
    unused_rules: list[UnusedRule]
    unanswered_actions: list[OpenCall]
    unreached_steps: list[UnreachedStep]
    unmatched_messages: list[UnmatchedMessage]
    undeleted: Undeleted
    open_streams: list[OpenStream]
    running_turns: list[RunningTurn]
    undelivered_webhooks: list[UndeliveredWebhook]
    unused_faults: list[Fault]
    unused_outages: list[UnusedOutage]
    agent_not_at_rest: list[NotAtRest]
    script_errors: list[ScriptFailure]
    recording: list[RecordingDifference]
    findings: list[Finding]
