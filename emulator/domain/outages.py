"""Outages: what goes wrong between an agent and an MCP server, connect by connect and call by call (contract §5).

Law: what was written of a server, in a scenario file, over the control route or with the handle, is read
into its normal form here and nowhere else. Nothing here waits, counts or connects.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypeVar

from emulator.domain.servers import Unusable, tools_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from emulator.domain.servers import SimulatedTool

ConnectFault: TypeAlias = Literal["refuse", "time_out", "hang", "unauthorized", "wrong_protocol", "slow"]
CallFault: TypeAlias = Literal[
    "drop", "error", "malformed", "slow", "time_out", "hang", "unauthorized", "wrong_protocol", "refuse"
]

_Written = TypeVar("_Written")
_Read = TypeVar("_Read")

# How long a connect, and a call, may take.
CONNECT_SECONDS: Final = 10
CALL_SECONDS: Final = 60

FETCH_FAILED: Final = "fetch failed"
DID_NOT_ANSWER: Final = f"the server did not answer within {CONNECT_SECONDS}s"
ANSWERED: Final = "the server answered {status}"
NOT_MCP: Final = "the server does not speak MCP"
CALL_DID_NOT_ANSWER: Final = f"the server did not answer within {CALL_SECONDS}s"
LOST: Final = "the connection was lost during the call"
MALFORMED: Final = "the server sent a result that is not one of MCP"
GONE: Final = "the server has this tool no more"

_UNAUTHORIZED: Final = ANSWERED.format(status=401)


@dataclass(frozen=True, slots=True)
class ConnectEntry:
    """How one connect goes: as it should, or with a fault. `seconds` belong to `slow`.

    `tools` is what the server offers from this connect on, in place of what it did.
    """

    fault: ConnectFault | None = None
    reason: str | None = None
    seconds: float = 0.0
    tools: Mapping[str, SimulatedTool] | None = None

    @property
    def takes(self) -> float:
        """Seconds of the clock; nobody waits longer than ten for a server."""
        return CONNECT_SECONDS if self.fault in ("time_out", "hang") else min(self.seconds, CONNECT_SECONDS)

    @property
    def failure(self) -> str | None:
        """Why it fails, as the client is told; `None` when it works."""
        match self.fault:
            case None:
                return None
            case "slow" if self.seconds < CONNECT_SECONDS:
                return None
            case "refuse":
                return self.reason or FETCH_FAILED
            case "unauthorized":
                return self.reason or _UNAUTHORIZED
            case "wrong_protocol":
                return self.reason or NOT_MCP
            case _:
                return self.reason or DID_NOT_ANSWER


@dataclass(frozen=True, slots=True)
class CallEntry:
    """How one call of a tool goes: of any tool, or of `tool`. `seconds` belong to `slow`, `text` to `error`.

    `tools` is what the server offers to the calls after it.
    """

    fault: CallFault | None = None
    tool: str | None = None
    seconds: float = 0.0
    text: str | None = None
    tools: Mapping[str, SimulatedTool] | None = None

    @property
    def takes(self) -> float | None:
        """Seconds of the clock; `None` for one that never ends."""
        if self.fault == "hang":
            return None
        return CALL_SECONDS if self.fault == "time_out" else self.seconds

    @property
    def failure(self) -> str | None:
        """What went wrong; `None` where the server's own result comes."""
        match self.fault:
            case None | "slow":
                return None
            case "error":
                return self.text or "the tool failed"
            case "drop":
                return LOST
            case "malformed":
                return MALFORMED
            case "unauthorized":
                return _UNAUTHORIZED
            case "wrong_protocol":
                return NOT_MCP
            case "refuse":
                return FETCH_FAILED
            case _:
                return CALL_DID_NOT_ANSWER


@dataclass(frozen=True, slots=True)
class ServerPlan:
    """What was said of a server. `None` says nothing: what holds of it already stays.

    `standing` is how every connect goes, or the next `times` of them, `connects` how each of the next ones does;
    it is one of the two. `calls` is how each of the next calls goes. `tools` is what the server offers.
    """

    standing: ConnectEntry | None = None
    times: int | None = None
    connects: tuple[ConnectEntry, ...] | None = None
    calls: tuple[CallEntry, ...] | None = None
    tools: Mapping[str, SimulatedTool] | None = None

    @property
    def scripts(self) -> bool:
        """Whether it says how connects or calls go."""
        return any(part is not None for part in (self.standing, self.connects, self.calls))


_STANDING: Final = ("state", "fault", "reason", "seconds", "times")


def plan_of(written: Mapping[str, Any]) -> ServerPlan:
    """A plan as it is written, its types already right: `state reason times fault seconds script calls tools`.

    Raises `Unusable` for what does not go together.
    """
    standing, connects = None, None
    said = [key for key in _STANDING if key in written]
    if "script" in written:
        if said:
            raise Unusable((said[0],), "stands beside `script`, which says how each connect goes; choose one of them")
        connects = tuple(_under(("script", n), _connect, entry) for n, entry in enumerate(written["script"]))
    elif said:
        standing = _connect({key: written[key] for key in said})
        if standing.fault is None and "times" in written:
            raise Unusable(("times",), _OF_A_FAULT)
    calls = None
    if "calls" in written:
        calls = tuple(_under(("calls", n), _call, entry) for n, entry in enumerate(written["calls"]))
    return ServerPlan(standing, written.get("times"), connects, calls, _tools(written))


_OF_A_FAULT: Final = "goes with `state: down` or a `fault`"


def _connect(written: Mapping[str, Any]) -> ConnectEntry:
    if not written:
        raise Unusable((), "is empty; it needs a `state`, a `fault` or `tools`")
    fault, reason = written.get("fault"), written.get("reason")
    if written.get("state") == "up" and fault is not None:
        raise Unusable(("fault",), "stands beside `state: up`; leave one of them out")
    if written.get("state") == "down":
        fault = fault or "refuse"
    seconds = _seconds(written, fault)
    if fault == "refuse" and reason == DID_NOT_ANSWER:
        # Said in words, and no less true.
        fault = "time_out"
    entry = ConnectEntry(fault, reason, seconds, _tools(written))
    if reason is not None and entry.failure is None:
        raise Unusable(("reason",), f"{_OF_A_FAULT} that fails the connect")
    return entry


def _call(written: Mapping[str, Any]) -> CallEntry:
    if not written:
        raise Unusable((), "is empty; it needs a `fault` or `tools`")
    fault = written.get("fault")
    if fault == "ok":
        fault = None
    if "text" in written and fault != "error":
        raise Unusable(("text",), "goes with the fault `error`: it is what the tool answers")
    return CallEntry(fault, written.get("tool"), _seconds(written, fault), written.get("text"), _tools(written))


def _seconds(written: Mapping[str, Any], fault: str | None) -> float:
    if (fault == "slow") == ("seconds" in written):
        return float(written.get("seconds", 0))
    if fault == "slow":
        raise Unusable(("seconds",), "is missing: with the fault `slow` it says how long it takes")
    raise Unusable(("seconds",), "goes with the fault `slow`: it is how long it takes")


def _tools(written: Mapping[str, Any]) -> dict[str, SimulatedTool] | None:
    return _under(("tools",), tools_of, written["tools"]) if "tools" in written else None


def _under(where: tuple[str | int, ...], read: Callable[[_Written], _Read], written: _Written) -> _Read:
    try:
        return read(written)
    except Unusable as unusable:
        raise unusable.under(*where) from None
