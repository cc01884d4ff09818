"""The outage matrix: every way an MCP server can go wrong, and its outcome, whatever is behind the name.

Data only, and the kinds of server it is held against. An outcome is that of the contract (§5), and the
same for every kind; `test_mcp_matrix.py` plays it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tests.contract.tool_doors import SERVER

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.support import Api

TIMED_OUT: Final = "the server did not answer within 10s"
TOOLS: Final[dict[str, Any]] = {
    "search": {"text": "3 pages found", "read_only": True},
    "fetch": {"text": "page 12"},
}
FOUND: Final = "3 pages found"


@dataclass(frozen=True)
class ConnectCase:
    """A connect as it is scripted. `reason` is why it fails, `None` where it works; `seconds` pass on the clock."""

    entry: Any
    reason: str | None
    seconds: float = 0


@dataclass(frozen=True)
class CallCase:
    """A call as it is scripted. `text` is its error, `None` where the result is the tool's own.

    `seconds` pass on the clock before it; `None` is for ever.
    """

    entry: Any
    text: str | None
    seconds: float | None = 0


CONNECTS: Final[Mapping[str, ConnectCase]] = {
    "up": ConnectCase("up", None),
    "down": ConnectCase("down", "fetch failed"),
    "down for a reason": ConnectCase({"state": "down", "reason": "no route"}, "no route"),
    "refuse": ConnectCase("refuse", "fetch failed"),
    "time_out": ConnectCase("time_out", TIMED_OUT, 10),
    "time_out in words": ConnectCase({"state": "down", "reason": TIMED_OUT}, TIMED_OUT, 10),
    "hang": ConnectCase("hang", TIMED_OUT, 10),
    "unauthorized": ConnectCase("unauthorized", "the server answered 401"),
    "forbidden": ConnectCase({"fault": "unauthorized", "reason": "the server answered 403"}, "the server answered 403"),
    "wrong_protocol": ConnectCase("wrong_protocol", "the server does not speak MCP"),
    "slow": ConnectCase({"fault": "slow", "seconds": 9.5}, None, 9.5),
    "too slow": ConnectCase({"fault": "slow", "seconds": 30}, TIMED_OUT, 10),
}
CALLS: Final[Mapping[str, CallCase]] = {
    "ok": CallCase("ok", None),
    "drop": CallCase("drop", "docs: the connection was lost during the call"),
    "error": CallCase({"fault": "error", "text": "no such page"}, "no such page"),
    "malformed": CallCase("malformed", "docs: the server sent a result that is not one of MCP"),
    "slow": CallCase({"fault": "slow", "seconds": 25}, None, 25),
    "time_out": CallCase("time_out", "docs: the server did not answer within 60s", 60),
    "hang": CallCase("hang", None, None),
    "unauthorized": CallCase("unauthorized", "docs: the server answered 401"),
    "wrong_protocol": CallCase("wrong_protocol", "docs: the server does not speak MCP"),
    "refuse": CallCase("refuse", "docs: fetch failed"),
}


def simulated(api: Api) -> dict[str, Any]:
    """A server that the scenario simulates."""
    api.emulator.load({"mcp": {"docs": {"tools": TOOLS}}})
    return dict(SERVER)


# What puts a server called docs, with those tools, in place, and gives the entry that declares it.
KINDS: Final[Mapping[str, Callable[[Api], dict[str, Any]]]] = {"simulated": simulated}
