"""One publisher and 200 open streams, beside a queue for each subscriber under the same server."""

from __future__ import annotations

import json
import selectors
import sys
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Final

from tests.bench.harness import Child, Connection, Line, alternate, bare, now, request

if TYPE_CHECKING:
    from collections.abc import Iterator

_STREAMS: Final = 200
_SAID: Final = 200
# Each thing said is three deltas and a message; a turn has its own message, beginning and end besides.
_EVENTS: Final = _SAID * 4 + 3
_STALLED: Final = 20
# What one stream may have unread before it is closed, and what the sockets between may hold besides.
_UNREAD: Final = 8 * 1024 * 1024


class Side:
    """A server with its readers open. A call publishes a burst and gives the seconds until everybody has it."""

    def __init__(self, child: Child, path: str, publish: bytes, last: bytes, streams: int = _STREAMS) -> None:
        self.child = child
        self._publish = publish
        self._last = last
        self._selector = selectors.DefaultSelector()
        self._readers = [Connection(child.port) for _ in range(streams)]
        self._control = Connection(child.port)
        for reader in self._readers:
            reader.socket.sendall(request("GET", path))
            assert b" 200 " in reader.socket.recv(4096)
            reader.socket.setblocking(False)
            self._selector.register(reader.socket, selectors.EVENT_READ)
        self._buffer = bytearray(1 << 18)

    def __call__(self) -> float:
        missing = {reader.socket.fileno(): b"" for reader in self._readers}
        view = memoryview(self._buffer)
        began = now()
        self._control.socket.sendall(self._publish)
        while missing:
            for key, _ in self._selector.select(30):
                read = key.fileobj.recv_into(view)  # type: ignore[union-attr]
                assert read, "a stream ended"
                if key.fd in missing:
                    missing[key.fd] = missing[key.fd][-64:] + bytes(view[max(0, read - 512) : read])
                    if self._last in missing[key.fd]:
                        del missing[key.fd]
        took = now() - began
        status, answer = self._control.answer()
        assert status in (200, 202), answer
        return took


def measure() -> Iterator[Line]:
    """Events delivered a second by both, what stalled readers cost the others, and what they cost in memory."""
    with Child([sys.executable, "-m", "tests.bench.scale_server"]) as ours, bare("streams_peer") as plain:
        # A turn's end is the last thing its readers get.
        mine = Side(ours, *_session(ours), last=b"event: turn.ended")
        peer = Side(plain, "/events", request("POST", f"/publish?count={_EVENTS}", b"{}"), b"id: %d\n" % _EVENTS)
        for side in (mine, peer):
            side()
        took, plainly = alternate(20, 25, mine, peer)
        rates = [_STREAMS * _EVENTS / median(times) for times in (took, plainly)]
        yield Line(
            f"{_STREAMS} streams / a queue for each",
            rates[0] / rates[1],
            2,
            "at least",
            f"{rates[0]:.0f} beside {rates[1]:.0f} events delivered a second",
        )
    yield from _stalled()


def _stalled() -> Iterator[Line]:
    command = [sys.executable, "-m", "tests.bench.scale_server"]
    with Child(command) as busy, Child(command) as free:
        path, publish = _session(busy)
        stalled = [Connection(busy.port) for _ in range(_STALLED)]
        for reader in stalled:
            reader.socket.sendall(request("GET", path))
        sides = [
            Side(busy, path, publish, b"event: turn.ended", 50),
            Side(free, *_session(free), b"event: turn.ended", 50),
        ]
        for side in sides:
            side()
        before = _resident(busy)
        slowed, usual = alternate(30, 120, *sides)
        grown = _resident(busy) - before
        kept = len(slowed) * (_SAID + 3)
        yield Line(
            f"others beside {_STALLED} stalled readers",
            median(slowed) / median(usual),
            1.2,
            "at most",
            f"{median(slowed) * 1000:.1f} ms a burst of {_EVENTS} to 50 beside {median(usual) * 1000:.1f} ms",
        )
        yield Line(
            "memory beside stalled readers",
            grown / 1e6,
            (_STALLED * _UNREAD + kept * 800) / 1e6,
            "at most",
            f"after {kept} events kept, {_STALLED} readers that never read",
            unit="MB",
        )


def _session(child: Child) -> tuple[str, bytes]:
    """The stream of a new session, and the request that has its agent talk."""
    with Connection(child.port) as client:
        created = json.loads(client.ask(request("POST", "/v1/sessions", b"{}"))[1])
    path = f"/v1/sessions/{created['id']}/events"
    told = {"events": [{"type": "input.message", "content": str(_SAID)}]}
    return path, request("POST", path, json.dumps(told).encode())


def _resident(child: Child) -> int:
    return int(Path(f"/proc/{child.pid}/statm").read_text().split()[1]) * 4096
