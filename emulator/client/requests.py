"""The operations of a handle, each described once: what is sent, and what is made of the answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from urllib.parse import quote

from emulator import scenario_source
from emulator.client.timeline import Timeline
from emulator.client.transcript import Transcript

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable
    from typing import Self

    from emulator.refusals import Refusal
    from emulator.wire import control as wire
    from emulator.wire import deliveries as deliveries_wire
    from emulator.wire import faults as faults_wire
    from emulator.wire import served as served_wire

T = TypeVar("T")


class ControlError(Exception):
    """The emulator refused what a handle asked for.

    `code` and `status` are as in the API's refusals; `message` says what to fix.
    """

    def __init__(self, code: str, message: str, status: int) -> None:
        super().__init__(code, message, status)
        self.code = code
        self.message = message
        self.status = status

    def __str__(self) -> str:
        return f"{self.message} ({self.code})"


class Records(list[T]):
    """What is kept of something, oldest first. `dropped` counts the older ones that no longer fit."""

    dropped: int = 0

    @classmethod
    def of(cls, make: Callable[[Any], T], answer: Any) -> Self:
        """The entries of an answer, each as `make` makes it."""
        found = cls(map(make, answer["data"]))
        found.dropped = answer["dropped"]
        return found


class Requests(Records["wire.RequestEntry"]):
    """The journal, oldest first. `dropped` counts the older requests that no longer fit."""


@dataclass(frozen=True, slots=True)
class Request(Generic[T]):
    """One operation to carry out: how it is sent, and what is made of its answer.

    `subject` goes in front of the message of a refusal.
    """

    verb: str
    path: str
    parse: Callable[[Any], T]
    body: dict[str, Any] | None = None
    subject: str = ""

    def refused(self, error: Refusal | ControlError) -> ControlError:
        """A refusal as the caller of a handle sees it."""
        message = f"{self.subject}: {error.message}" if self.subject else error.message
        return ControlError(error.code, message, error.status)


def _same(answer: Any) -> Any:
    return answer


def _nothing(answer: Any) -> None:
    return None


def _path(*segments: str, **query: str | None) -> str:
    path = "/_emulator/" + "/".join(quote(segment, safe="") for segment in segments)
    given = [f"{name}={quote(value, safe='')}" for name, value in query.items() if value is not None]
    return f"{path}?{'&'.join(given)}" if given else path


def _given(**fields: Any) -> dict[str, Any]:
    """The fields that are not left out."""
    return {name: value for name, value in fields.items() if value is not None}


def load(source: str | os.PathLike[str] | Mapping[str, Any], mode: str | None) -> Request[dict[str, Any]]:
    try:
        name, document = scenario_source.read(source)
    except scenario_source.ScenarioError as error:
        raise ControlError("invalid_request", str(error), 400) from None
    return Request("PUT", _path("scenario"), _same, {**document, **_given(mode=mode)}, subject=name or "")


def _server(name: str) -> str:
    if not name:
        raise ControlError("invalid_request", "The name of an MCP server must not be empty.", 400)
    return _path("mcp", name)


def server_down(
    server: str, reason: str | None, times: int | None, fault: str | None, seconds: float | None
) -> Request[None]:
    said = {"state": "down"} if fault is None else {"fault": fault}
    given = _given(reason=reason, times=times, seconds=seconds)
    return Request("PUT", _server(server), _nothing, {**said, **given})


def server_up(server: str) -> Request[None]:
    return Request("PUT", _server(server), _nothing, {"state": "up"})


def server_script(server: str, connects: Iterable[str | Mapping[str, Any]]) -> Request[None]:
    return Request("PUT", _server(server), _nothing, {"script": _entries(connects)})


def server_calls(server: str, calls: Iterable[str | Mapping[str, Any]]) -> Request[None]:
    return Request("PUT", _server(server), _nothing, {"calls": _entries(calls)})


def _entries(entries: Iterable[str | Mapping[str, Any]]) -> Any:
    # A word alone is no list of its letters. What else is wrong, the emulator says.
    if isinstance(entries, str):
        return entries
    if isinstance(entries, Mapping):
        return dict(entries)
    return [dict(entry) if isinstance(entry, Mapping) else entry for entry in entries]


@dataclass(frozen=True, slots=True)
class Served:
    """What a served server was sent."""

    requests: Records[served_wire.ServedRequest]
    calls: Records[served_wire.ServedCall]


def serve(server: str, tools: Mapping[str, Any] | None) -> Request[str]:
    return Request("PUT", _served(server), lambda answer: str(answer["url"]), _given(tools=_tools(tools)))


def change_tools(server: str, tools: Mapping[str, Any]) -> Request[None]:
    return change_served(server, tools=_tools(tools))


def _tools(tools: Any) -> Any:
    # What is no mapping goes as it is: the emulator says what it wants.
    return dict(tools) if isinstance(tools, Mapping) else tools


def change_served(server: str, **said: Any) -> Request[None]:
    return Request("PUT", _served(server), _nothing, _given(**said))


def script_served(
    server: str,
    connects: Iterable[str | Mapping[str, Any]] | None,
    calls: Iterable[str | Mapping[str, Any]] | None,
) -> Request[None]:
    said = {"script": None if connects is None else _entries(connects)}
    return change_served(server, **said, calls=None if calls is None else _entries(calls))


def stop_serving(server: str) -> Request[None]:
    return Request("DELETE", _served(server), _nothing)


def served(server: str) -> Request[Served]:
    def parse(answer: Any) -> Served:
        from emulator.wire import served as wire

        return Served(
            Records.of(lambda entry: wire.ServedRequest.model_construct(**entry), answer["requests"]),
            Records.of(lambda entry: wire.ServedCall.model_construct(**entry), answer["calls"]),
        )

    return Request("GET", _served(server), parse)


def _served(server: str) -> str:
    return f"{_server(server)}/served"


def approve(call_id: str | None, approved: bool, code: str | None) -> Request[str]:
    return decide(call_id, _given(approved=approved, code=code))


def decide(call_id: str | None, decision: dict[str, Any]) -> Request[str]:
    path = _path("actions") if call_id is None else _path("actions", call_id)
    return Request("POST", path, lambda answer: str(answer["call_id"]), decision)


def lose_calls(session_id: str) -> Request[list[str]]:
    return Request("POST", _path("sessions", session_id, "lose"), lambda answer: list(answer["lost"]))


def effective_tools(session_id: str) -> Request[dict[str, Any]]:
    return Request("GET", _path("sessions", session_id, "tools"), _same)


def now() -> Request[int]:
    return Request("GET", _path("clock"), lambda answer: int(answer["now"]))


def advance(seconds: float) -> Request[int]:
    return Request("POST", _path("clock", "advance"), lambda answer: int(answer["now"]), {"seconds": seconds})


def _minted(answer: Any) -> wire.MintedToken:
    from emulator.wire import control as wire

    return wire.MintedToken.model_construct(**answer)


def mint(scopes: Iterable[str] | None, organization: str | None, expires_in: float | None) -> Request[wire.MintedToken]:
    # Text is sent as it is, and refused as what it is: no list.
    listed = scopes if scopes is None or isinstance(scopes, str) else list(scopes)
    body = _given(scopes=listed, organization=organization, expires_in=expires_in)
    # Not validated: an emulator of another version may tell more.
    return Request("POST", _path("tokens"), _minted, body)


def revoke(token_id: str) -> Request[None]:
    return Request("DELETE", _path("tokens", token_id), _nothing)


def get_settings() -> Request[dict[str, Any]]:
    return Request("GET", _path("settings"), _same)


def update_settings(values: dict[str, Any]) -> Request[dict[str, Any]]:
    return Request("PATCH", _path("settings"), _same, json.loads(json.dumps(values, allow_nan=False)))


def exploration() -> Request[dict[str, Any]]:
    return Request("GET", _path("exploration"), _same)


def requests() -> Request[Requests]:
    def parse(answer: Any) -> Requests:
        from emulator.wire import control as wire

        return Requests.of(lambda entry: wire.RequestEntry.model_construct(**entry), answer)

    return Request("GET", _path("requests"), parse)


def events(session_id: str | None) -> Request[list[dict[str, Any]]]:
    return Request("GET", _path("events", session_id=session_id), lambda answer: list(answer["data"]))


def transcript(session_id: str | None) -> Request[Transcript]:
    path = _path("transcript", session_id=session_id)
    return Request("GET", path, lambda answer: Transcript(answer["session_id"], answer["data"], answer["events"]))


def timeline(session_id: str | None) -> Request[Timeline]:
    return Request("GET", _path("timeline", session_id=session_id), lambda answer: Timeline(answer["data"]))


def settle(timeout: float) -> Request[bool]:
    return Request("POST", _path("settle"), lambda answer: bool(answer["at_rest"]), {"timeout": timeout})


class Deliveries(Records["deliveries_wire.Delivery"]):
    """The webhook deliveries, oldest first. `dropped` counts the older ones that no longer fit."""


def _delivery(answer: Any) -> deliveries_wire.Delivery:
    from emulator.wire import deliveries as wire

    attempts = [wire.DeliveryAttempt.model_construct(**attempt) for attempt in answer["attempts"]]
    return wire.Delivery.model_construct(**{**answer, "attempts": attempts})


def deliveries() -> Request[Deliveries]:
    return Request("GET", _path("webhooks", "deliveries"), lambda answer: Deliveries.of(_delivery, answer))


def redeliver(delivery_id: str) -> Request[deliveries_wire.Delivery]:
    return Request("POST", _path("webhooks", "deliveries", delivery_id, "redeliver"), _delivery)


def scripted_webhooks() -> Request[list[dict[str, Any]]]:
    return Request("GET", _path("webhooks", "script"), lambda answer: list(answer["script"]))


def script_webhooks(entries: Iterable[Mapping[str, Any]]) -> Request[None]:
    script = [dict(entry) for entry in entries]
    return Request("PUT", _path("webhooks", "script"), _nothing, {"script": script})


def clear_webhooks() -> Request[None]:
    return Request("DELETE", _path("webhooks", "script"), _nothing)


def _fault(answer: Any) -> faults_wire.Fault:
    from emulator.wire import faults as wire

    return wire.Fault.model_construct(**answer)


def add_fault(match: Mapping[str, Any] | None, asked: dict[str, Any]) -> Request[faults_wire.Fault]:
    return Request("POST", _path("faults"), _fault, _given(match=match, **asked))


def faults() -> Request[list[faults_wire.Fault]]:
    return Request("GET", _path("faults"), lambda answer: [_fault(entry) for entry in answer["faults"]])


def clear_faults(fault_id: str | None) -> Request[None]:
    return Request("DELETE", _path("faults") if fault_id is None else _path("faults", fault_id), _nothing)


def report() -> Request[dict[str, Any]]:
    return Request("GET", _path("report"), _same)


def reset() -> Request[None]:
    return Request("POST", _path("reset"), _nothing)
