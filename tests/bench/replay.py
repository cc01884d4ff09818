"""A replay of 50,000 events to one reader, beside sse-starlette, and what others wait meanwhile."""

from __future__ import annotations

import json
import subprocess
import sys
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from tests.bench.harness import ROOT, Child, Connection, Line, alternate, bare, milliseconds, now, request
from tests.bench.replay_peer import EVENTS

if TYPE_CHECKING:
    from collections.abc import Iterator

_REPLAYS: Final = 40


def measure() -> Iterator[Line]:
    """Seconds from the request to the last event, then the slowest of another client's reads."""
    with Child([sys.executable, "-m", "tests.bench.replay_server"]) as ours, bare("replay_peer") as plain:
        path = _fill(ours)
        mine, peer = alternate(
            35,
            7,
            lambda: median(_replay(ours, f"{path}/events") for _ in range(5)),
            lambda: _replay(plain, "/events"),
        )
        yield Line(
            "sse-starlette / replay of 50,000",
            median(peer) / median(mine),
            50,
            "at least",
            f"{milliseconds(mine)} (the median of five, each turn) beside {milliseconds(peer)}, {len(mine)} turns",
        )
        idle = _probed(ours, path, 0)
        busy = _probed(ours, path, _REPLAYS)
    yield Line(
        "slowest GET during replays",
        busy["slowest"],
        20,
        "at most",
        f"of {busy['count']} in {_REPLAYS} replays (median {busy['median']:.2f} ms); "
        f"with no replay {idle['slowest']:.1f} ms of {idle['count']}",
        unit="ms",
    )


def _fill(ours: Child) -> str:
    """Have the agent put 50,000 events on the log. Gives the path of the session they are in."""
    with Connection(ours.port) as client:
        created = json.loads(client.ask(request("POST", "/v1/sessions", b"{}"))[1])
        path = f"/v1/sessions/{created['id']}"
        told = {"events": [{"type": "input.message", "content": "Fill the log."}]}
        status, answer = client.ask(request("POST", f"{path}/events", json.dumps(told).encode()))
        assert status == 202, answer
        turns = json.loads(client.ask(request("GET", f"{path}/turns"))[1])["data"]
        assert turns[0]["status"] == "completed", turns
    return path


def _replay(child: Child, path: str) -> float:
    """Read everything from the first event to the last."""
    last, buffer, tail = b"id: %d" % EVENTS, bytearray(1 << 20), b""
    view = memoryview(buffer)
    with Connection(child.port) as client:
        began = now()
        client.socket.sendall(request("GET", path).replace(b"accept: */*", b"last-event-id: 0"))
        size = 0
        while True:
            read = client.socket.recv_into(view)
            if not read:
                raise ConnectionError(f"the stream ended after {size} bytes")
            size += read
            tail = tail[-512:] + bytes(view[max(0, read - 512) : read])
            at = tail.rfind(last)
            if at >= 0 and (b"\n\n" in tail[at:] or b"\r\n\r\n" in tail[at:]):
                return now() - began


def _probed(ours: Child, path: str, replays: int) -> dict[str, Any]:
    """What another process's reads took, while there were so many replays; for none, a second."""
    command = [sys.executable, "-m", "tests.bench.probe", str(ours.port), path]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as probe:
        assert probe.stdin is not None
        assert probe.stdout is not None
        probe.stdout.readline()
        until = now() + 1
        for _ in range(replays):
            _replay(ours, f"{path}/events")
        while not replays and now() < until:
            subprocess.run(["sleep", "0.1"], check=True)
        probe.stdin.close()
        found: dict[str, Any] = json.loads(probe.stdout.readline())
    return found
