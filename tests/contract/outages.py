"""The outage matrix: every way an MCP server can go wrong, and its outcome, whatever is behind the name.

Data only, and the kinds of server it is held against. An outcome is that of the contract (§5), and the
same for every kind; `test_mcp_matrix.py` plays it.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from emulator import Emulator
from tests.contract.tool_doors import SERVER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tests.support import Api

TIMED_OUT: Final = "the server did not answer within 10s"
LOST: Final = "docs: the connection was lost during the call"
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

    @property
    def worded(self) -> bool:
        """Whether it says in words of its own why it fails."""
        return isinstance(self.entry, dict) and "reason" in self.entry


@dataclass(frozen=True)
class CallCase:
    """A call as it is scripted. `text` is its error, `None` where the result is the tool's own.

    `seconds` pass on the clock before it; `None` is for ever. `on_the_wire` is the error where that is another: a
    connection that is there can be broken off, and not be refused.
    """

    entry: Any
    text: str | None
    seconds: float | None = 0
    on_the_wire: str | None = None


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
    "drop": CallCase("drop", LOST),
    "error": CallCase({"fault": "error", "text": "no such page"}, "no such page"),
    "malformed": CallCase("malformed", "docs: the server sent a result that is not one of MCP"),
    "slow": CallCase({"fault": "slow", "seconds": 25}, None, 25),
    "time_out": CallCase("time_out", "docs: the server did not answer within 60s", 60),
    "hang": CallCase("hang", None, None),
    "unauthorized": CallCase("unauthorized", "docs: the server answered 401"),
    "wrong_protocol": CallCase("wrong_protocol", "docs: the server does not speak MCP"),
    "refuse": CallCase("refuse", "docs: fetch failed", on_the_wire=LOST),
}


@dataclass(frozen=True)
class Server:
    """A server called docs, with those tools, that is there: the entry that declares it, and how it is scripted.

    What is done `on_the_wire` has no words of its own: whoever connects finds them.
    """

    entry: Mapping[str, Any]
    connects: Callable[[list[Any]], None]
    calls: Callable[[list[Any]], None]
    on_the_wire: bool = False


def _behind(api: Api, entry: Mapping[str, Any]) -> Server:
    """A server with its outages in front of it."""
    mcp = api.emulator.mcp
    return Server(entry, lambda entries: mcp.script("docs", entries), lambda entries: mcp.calls("docs", entries))


@contextmanager
def simulated(api: Api) -> Iterator[Server]:
    """A server that the scenario simulates."""
    api.emulator.load({"mcp": {"docs": {"tools": TOOLS}}})
    yield _behind(api, SERVER)


@contextmanager
def served(api: Api) -> Iterator[Server]:
    """A server that this emulator serves, and that misbehaves by itself, on the wire."""
    docs = api.emulator.mcp.serve("docs", TOOLS)
    entry = SERVER | {"url": docs.url}
    yield Server(entry, docs.script, lambda entries: docs.script(calls=entries), on_the_wire=True)


@contextmanager
def strange(api: Api) -> Iterator[Server]:
    """A server of somebody else, as far as this emulator knows, with its outages in front of it."""
    with Emulator() as other:
        api.emulator.settings.update(mcp="connect")
        yield _behind(api, SERVER | {"url": other.mcp.serve("docs", TOOLS).url})


KINDS: Final[Mapping[str, Callable[[Api], AbstractContextManager[Server]]]] = {
    "simulated": simulated,
    "served": served,
    "real": strange,
}
