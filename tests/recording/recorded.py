"""A recorder between a client and an emulator, both in this process and over sockets."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from emulator.recording.server import RecordingServer
from emulator.server import bind
from tests.support import Api

if TYPE_CHECKING:
    from pathlib import Path

    from emulator import Emulator


@dataclass(slots=True)
class Address:
    """What a client of the recorder is told: where it is, and the token."""

    url: str
    token: str


@dataclass(slots=True)
class Recorded:
    """Records while it is entered. `api` is a client that goes through the recorder."""

    emulator: Emulator
    path: Path
    options: dict[str, Any] = field(default_factory=dict)
    upstream: str | None = None
    server: RecordingServer = field(init=False)
    api: Api = field(init=False)

    def __enter__(self) -> Recorded:
        bound = bind("127.0.0.1", 0)
        self.server = RecordingServer(bound, self.upstream or self.emulator.url, self.path, **self.options)
        self.emulator.run(self.server.start())
        self.api = Api(cast("Emulator", Address(self.server.url, self.emulator.token)))
        return self

    def __exit__(self, *exc: object) -> None:
        self.emulator.run(self.server.stop())

    def lines(self) -> list[dict[str, Any]]:
        """The lines of the recording so far."""
        return [json.loads(line) for line in self.path.read_text().splitlines()]

    def events(self, kind: str) -> list[dict[str, Any]]:
        """The recorded events of a type."""
        return [line for line in self.lines() if line.get("event") == kind]
