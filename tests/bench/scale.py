"""Reads with 10,000 sessions and 1,000,000 events in memory beside the same reads with ten sessions."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Final

from tests.bench.harness import Child, Connection, Line, alternate, milliseconds, now, request

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_MANY: Final = 10_000
_FEW: Final = 10
# What a first turn records beside what its agent says, and what a later one does.
_FIRST: Final = 4
_LATER: Final = 3
_TEN_EVENTS: Final = 10 - _FIRST
_MORE: Final = 90 - _LATER
_SAID: Final = len(json.dumps({"text": "This is what the agent says for the 10th time."}))
_READS: Final = 200
_RESUMES: Final = 40


class World:
    """A server with so many sessions of a hundred events. `session_bytes`, `event_bytes`: what one of them took."""

    def __init__(self, child: Child, sessions: int) -> None:
        self.child = child
        self.client = Connection(child.port)
        self.ids: list[str] = []
        # What is imported and made with the first requests is no session's.
        first = self._post("/v1/sessions", {"input": "1"}, 201)
        self._post(f"/v1/sessions/{first['id']}/events", {"events": [{"type": "input.message", "content": "1"}]}, 202)
        self.client.ask(request("DELETE", f"/v1/sessions/{first['id']}"))
        before = self._resident()
        for n in range(sessions):
            body = {"input": str(_TEN_EVENTS), "metadata": {"tenant": "acme", "number": str(n // _FEW)}}
            self.ids.append(self._post("/v1/sessions", body, 201)["id"])
        between = self._resident()
        for session_id in self.ids:
            told = {"events": [{"type": "input.message", "content": str(_MORE)}]}
            self._post(f"/v1/sessions/{session_id}/events", told, 202)
        self.session_bytes = (between - before) / sessions
        self.event_bytes = (self._resident() - between) / (sessions * (_MORE + _LATER)) - _SAID
        # Those of the first one have had numbers too.
        self.events = sessions * 100 + _FIRST + _LATER + 2

    def reads(self, path: str) -> float:
        """Seconds of one read, the median of many."""
        raw = request("GET", path)
        took: list[float] = []
        for _ in range(_READS):
            began = now()
            status, body = self.client.ask(raw)
            took.append(now() - began)
            assert status == 200, body
        return median(took)

    def resumes(self, path: str, cursor: int) -> float:
        """Seconds from asking for a stream to the last event after a cursor, the median of many."""
        last = b"id: %d\n" % (cursor + 5)
        raw = request("GET", path).replace(b"accept: */*", b"last-event-id: %d" % cursor)
        took: list[float] = []
        for _ in range(_RESUMES):
            with Connection(self.child.port) as client:
                began = now()
                client.socket.sendall(raw)
                data = b""
                while last not in data:
                    part = client.socket.recv(65_536)
                    assert part, data
                    data += part
                took.append(now() - began)
        return median(took)

    def _post(self, path: str, body: object, wanted: int) -> dict[str, str]:
        status, answer = self.client.ask(request("POST", path, json.dumps(body).encode()))
        assert status == wanted, answer
        found: dict[str, str] = json.loads(answer)
        return found

    def _resident(self) -> int:
        pages = Path(f"/proc/{self.child.pid}/statm").read_text().split()[1]
        return int(pages) * 4096


def measure() -> Iterator[Line]:
    """What a read costs with many in memory / with few, then what one of them takes."""
    command = [sys.executable, "-m", "tests.bench.scale_server"]
    with Child(command) as large, Child(command) as small:
        many, few = World(large, _MANY), World(small, _FEW)
        for what, read in (
            ("one session", lambda world: world.reads(f"/v1/sessions/{world.ids[len(world.ids) // 2]}")),
            ("a page by status", lambda world: world.reads(f"/v1/sessions?status=idle&limit={_FEW}")),
            ("a page by metadata", lambda world: world.reads(f"/v1/sessions?metadata=tenant:acme&limit={_FEW}")),
            ("a page by a rare label", lambda world: world.reads("/v1/sessions?metadata=number:0&status=idle")),
            ("a resume of everything", lambda world: world.resumes("/v1/events", world.events - 5)),
            (
                "a resume of one session",
                lambda world: world.resumes(f"/v1/sessions/{world.ids[-1]}/events", world.events - 5),
            ),
        ):
            yield _compared(what, many, few, read)
        yield Line("an idle session of ten events", many.session_bytes / 1000, 10, "at most", f"of {_MANY}", unit="KB")
        yield Line(
            "a stored event beyond its payload",
            many.event_bytes,
            500,
            "at most",
            f"of {_MANY * (_MORE + _LATER)}",
            unit="bytes",
        )


def _compared(what: str, many: World, few: World, read: Callable[[World], float]) -> Line:
    large, small = alternate(8, 9, lambda: read(many), lambda: read(few))
    shown = f"{milliseconds(large)} beside {milliseconds(small)}"
    return Line(f"{what}, many / few", median(large) / median(small), 1.2, "at most", shown)
