"""Two hundred sessions with real MCP servers that crash at random moments: what is left, and how long stopping takes.

And what real connections cost: a start of a workspace with one, a call over it, beside a simulated one.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from emulator import Emulator
from tests.bench.harness import Line, now
from tests.crashes import crash, entry
from tests.support import Api

if TYPE_CHECKING:
    from collections.abc import Iterator

_SESSIONS: Final = 200
_SEED: Final = 1
_CALLS: Final = 300


def measure() -> Iterator[Line]:
    """One figure after the other."""
    with tempfile.TemporaryDirectory() as folder:
        left = crash(_SESSIONS, _SEED, Path(folder))
    detail = f"{left.started} servers, each with a process of its own, in {_SESSIONS} sessions"
    for what, found in (
        ("processes", left.processes),
        ("sockets and files", left.files),
        ("tasks", left.tasks),
        ("threads", left.threads),
        ("temporary files", left.temporary),
    ):
        yield Line(f"{what} left of crashed MCP servers", len(found), 0, "at most", detail, "")
    yield Line("stopping with all that is left alive of them", left.stopping, 1.0, "at most", detail, "s")
    start, call = _process()
    yield Line("a workspace's start with a real server", start * 1000, 250, "at most", "a process of 20 ms", "ms")
    yield Line("a call over its connection", call * 1000, 5, "at most", f"median of {_CALLS} in one turn", "ms")


def _process() -> tuple[float, float]:
    """Seconds that a first message takes with a server to start, less one without, and seconds of a call."""
    seconds: list[float] = []
    with Emulator(mcp="connect", allow_processes=True) as emulator:

        @emulator.agent
        async def agent(turn: Any) -> None:
            for _ in range(_CALLS if turn.message == "call" else 0):
                began = now()
                await turn.mcp("docs", "read", {"n": 1})
                seconds.append(now() - began)

        api = Api(emulator)
        with_one: list[float] = []
        without: list[float] = []
        for n in range(10):
            for times, tools in ((with_one, [entry()]), (without, [])):
                session = api.session({"agent": {"tools": tools}})
                began = now()
                api.say(session, "hello")
                # The first imports the SDK.
                times += [now() - began] if n else []
                if tools and n == 0:
                    api.say(session, "call")
    return median(with_one) - median(without), median(seconds)
