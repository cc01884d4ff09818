"""The control routes: what is sent to /_emulator and what it answers.

Law: shapes only, shared by the routes and by whoever calls them. A token's text is never part of how
a shape prints.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from emulator.wire.common import Maybe, Milliseconds, Request, Response
from emulator.wire.events import EventStream
from emulator.wire.servers import CallFault, ConnectFault, McpServer, State
from emulator.wire.sessions import Item

Name = Annotated[str, Field(min_length=1, max_length=64)]
ActionType = Literal["function_call", "approval", "question"]


class Alive(Response):
    """The emulator answers, and so does its /v1."""

    status: Literal["ok"]
    version: str = Field(description="The version of the emulator.")


class Done(Response):
    """It was done."""

    status: Literal["ok"]


class ScenarioDocument(Request):
    """A scenario, as its file has it."""

    model_config = ConfigDict(extra="allow")


class PlayedDocument(Request):
    """What is to be played: a scenario, as its file has it, or a recording, its lines after the first as `entries`."""

    model_config = ConfigDict(extra="allow")


class ServerRequest(McpServer):
    """What happens to a server from now on. What is not sent stays as it was."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1})


class NextCall(Response):
    """How a call of a tool goes."""

    fault: CallFault
    tool: str | None = Field(description="The tool it waits for; null for the next call of any.")
    seconds: float | None = Field(description="How long it takes on the clock; null for ever.")
    text: str | None = Field(description="The text of its result; null for the server's own.")


class Server(Response):
    """What the next connect to a server, and the next call of its tools, meet."""

    state: State = Field(description="Whether the next connect succeeds.")
    reason: str | None = Field(description="Why it fails; null when it does not.")
    times: int | None = Field(description="How many more connects go like this; null when that is not limited.")
    fault: ConnectFault | None = Field(description="What goes wrong with it; null when nothing does.")
    seconds: float = Field(description="How long it takes on the clock.")
    connects: int = Field(description="How many connects the rest of the script is for.")
    calls: list[NextCall] = Field(description="How the next calls go, in order; every other one as it should.")
    tools: list[str] | None = Field(description="What is offered in place of the server's own; null for those.")


class Servers(Response):
    """The servers that something was scripted for, by name. Every other one is as its description says."""

    servers: dict[str, Server]


class Now(Response):
    """What the emulator's clock says."""

    now: Milliseconds


class Advance(Request):
    """How far to move the clock."""

    seconds: float = Field(ge=0, le=10**9, description="What falls due on the way happens, in order.")


class TokenRequest(Request):
    """A token to make."""

    scopes: Maybe[list[str]] = Field(default=None, description="All but `cli` when absent.")
    organization: Maybe[Name] = Field(default=None, description="Whose it is; `default` when absent.")
    expires_in: Maybe[Annotated[float, Field(ge=0, le=10**9)]] = Field(
        default=None, description="Seconds of the emulator's clock; for good when absent."
    )


class MintedToken(Response):
    """A new token. Its text is told here only."""

    id: str
    token: str = Field(repr=False, description="What goes into the Authorization header.")
    scopes: list[str]
    organization: str
    expires_at: int | None = Field(description="Unix milliseconds; null for one that does not expire.")


class RevokedToken(Response):
    """A token that is refused from now on."""

    id: str
    revoked: Literal[True]


class SettingsDocument(Response):
    """Every setting by name."""

    model_config = ConfigDict(extra="allow")


class SettingsChange(Request):
    """The settings to change, by name. The others stay."""

    model_config = ConfigDict(extra="allow")


class ExplorationVariant(Response):
    """One way to run a test again."""

    explore: str = Field(description="What the setting `explore` is given for it.")
    about: str = Field(description="What happens then.")


class Exploration(Response):
    """What is explored with, and what there is to try."""

    explore: list[str] = Field(description="The setting `explore`.")
    reached: bool = Field(description="Whether what its variants are about has come to pass.")
    variants: list[ExplorationVariant] = Field(
        description="Of each mode that is named without a variant: what the run so far can be explored with."
    )


class RequestEntry(Response):
    """A request to /v1 as the journal keeps it: no secrets, and of what the API does not know the size only."""

    method: str
    path: str
    query: dict[str, str]
    status: int = Field(description="0 where a fault kept any answer from the client.")
    code: str | None = Field(description="The code of the refusal, if it was refused.")
    message: str | None = Field(description="Its message.")
    request_id: str
    at: Milliseconds
    token_id: str | None
    duration_ms: float | None = Field(description="Real milliseconds; null while it is under way.")
    body: Any = None
    fault: str | None = Field(default=None, description="The id of the fault it met; null when all went well.")


class Requests(Response):
    """The latest requests, oldest first."""

    data: list[RequestEntry]
    dropped: int = Field(description="How many older ones no longer fit.")


class Events(Response):
    """Persisted events, oldest first."""

    data: list[EventStream]


class TranscriptRead(Response):
    """Every item of one session, oldest first."""

    session_id: str | None = Field(description="null when there is no session.")
    data: list[Item]
    events: list[dict[str, Any]] = Field(description="Everything that was recorded of it, items or not.")


class SettleRequest(Request):
    """How long to wait."""

    timeout: Maybe[Annotated[float, Field(ge=0, le=120)]] = Field(
        default=None, description="Real seconds; the setting `rest_seconds` when absent."
    )


class AtRest(Response):
    """Whether no agent can go on without somebody outside, and no webhook delivery is due."""

    at_rest: bool


class Decision(Request):
    """What the person at the console says: exactly one of these, `code` aside."""

    approved: Maybe[bool] = Field(default=None, description="The decision about an approval.")
    code: Maybe[Literal["approval_timeout", "credential_inspection_denied"]] = Field(
        default=None, description="With `approved: false`: not the person refused but the platform, for this reason."
    )
    answer: Maybe[Annotated[str, Field(min_length=1)]] = Field(default=None, description="The answer to a question.")


class CallDecision(Decision):
    """What becomes of one call: exactly one of these."""

    lose: Maybe[bool] = Field(
        default=None, description="true: have the sandbox forget a function call; its answer is then not delivered."
    )


class DecidedCall(Response):
    """What became of a call."""

    call_id: str
    session_id: str
    turn_id: str
    type: ActionType
    outcome: Literal["accepted", "lost"]


class LostCalls(Response):
    """The calls the sandbox has forgotten, oldest first."""

    lost: list[str]


class EffectiveTools(Response):
    """What the agent of a session can reach, which a read of its tools does not tell.

    Whether it may is up to the mode and the rules, act by act.
    """

    configured: bool = Field(description="Whether the tools were ever set; an empty list counts.")
    built_ins: list[str]
    functions: list[str]
    servers: list[str]


class TimelineEntry(Response):
    """One thing that happened: a request of a client, or a persisted event. The other of the two is null."""

    at: Milliseconds
    session_id: str | None
    request: RequestEntry | None
    event: dict[str, Any] | None


class TimelineRead(Response):
    """Requests and events interleaved, oldest first."""

    session_id: str | None = Field(description="Whose, if only one session's was asked for.")
    data: list[TimelineEntry]
