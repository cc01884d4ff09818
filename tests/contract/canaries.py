"""Canaries: unique secrets, and a look at every place one could come out of.

`Watch` is a client that keeps every answer. `check` reads all an emulator tells by any way it has, and
fails naming the place if a canary is there. A `mark` is no secret: it must be found, or the places are
not really read.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.support import Api

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest

    from emulator import Emulator
    from tests.support import Answer, Kind


class Watch(Api):
    """A client of one emulator that remembers the secrets it made and the answers it got."""

    def __init__(
        self,
        emulator: Emulator,
        kind: Kind,
        caplog: pytest.LogCaptureFixture,
        capfd: pytest.CaptureFixture[str],
    ) -> None:
        super().__init__(emulator, kind)
        self.answers: list[tuple[str, Answer]] = []
        self._caplog = caplog
        self._capfd = capfd
        self._secrets: list[str] = []
        self._marks: list[str] = []
        caplog.set_level(0)

    def secret(self) -> str:
        """A new secret."""
        self._secrets.append(f"canary{len(self._secrets):04}x")
        return self._secrets[-1]

    def token(self) -> str:
        """A new secret in the shape of an access token."""
        return f"gbr_pat_{self.secret()}"

    def remember(self, *secrets: str) -> None:
        """Look for these as well, however they are written."""
        self._secrets += [secret.lower() for secret in secrets]

    def mark(self) -> str:
        """A new text that is no secret."""
        self._marks.append(f"marker{len(self._marks):04}x")
        return self._marks[-1]

    def request(self, method: str, path: str, body: Any = None, **options: Any) -> Answer:
        answer = super().request(method, path, body, **options)
        self.answers.append((f"the answer to {method} {path[:40]}", answer))
        return answer

    def check(self) -> None:
        """No secret is anywhere; every mark is somewhere."""
        assert self._secrets, "there is nothing to look for"
        places = [(place, text.lower()) for place, text in self.places()]
        for place, text in places:
            for secret in self._secrets:
                assert secret not in text, f"{place} shows a secret: {around(text, secret)}"
        for mark in self._marks:
            assert any(mark in text for place, text in places if place == "the journal"), f"{mark} is not read back"

    def places(self) -> Iterator[tuple[str, str]]:
        """Everything that can be read of the emulator, each with where it was read."""
        emulator = self.emulator
        for place, answer in self.answers:
            yield place, f"{answer.headers} {answer.raw.decode('utf-8', 'replace')}"
        journal = emulator.requests
        yield "the journal", json.dumps([entry.model_dump() for entry in journal])
        yield "the journal's repr", repr(journal)
        yield "the events", json.dumps(emulator.events())
        yield "the report", json.dumps(emulator.report())
        yield "the settings", json.dumps(emulator.settings.get())
        for session in self.get("/v1/sessions?limit=100").json["data"]:
            yield from self._of_session(session["id"])
        yield "the list of sessions", json.dumps(session_list(self))
        yield "the control routes", self._control()
        for handle in (emulator, emulator.aio, emulator.mcp, emulator.clock, emulator.tokens, emulator.settings):
            yield f"the repr of {type(handle).__name__}", f"{handle!r} {handle}"
        for inside in (emulator.socket, emulator.socket.deployment, emulator.socket.deployment.world):
            yield f"the repr of {type(inside).__name__}", repr(inside)
        yield "the script errors", json.dumps([fault.as_json() for fault in emulator.script_errors])
        yield "the log", "\n".join(f"{record.getMessage()} {record.exc_text}" for record in self._caplog.records)
        out, err = self._capfd.readouterr()
        yield "what was printed", out + err

    def _of_session(self, session_id: str) -> Iterator[tuple[str, str]]:
        path = f"/v1/sessions/{session_id}"
        for part in ("", "/tools", "/items?limit=100", "/turns?limit=100"):
            yield f"GET {path}{part}", self.get(f"{path}{part}").raw.decode()
        yield "the transcript", f"{self.emulator.transcript(session_id)} {self.emulator.transcript(session_id).items}"
        yield "the effective tools", json.dumps(self.emulator.effective_tools(session_id))
        _, found = self.emulator.socket.deployment.world.find_session(session_id) or (None, None)
        assert found is not None
        yield "the repr of the session's tools", f"{found.agent!r} {found.agent.tools}"
        if self.emulator.events(session_id):
            with self.stream(f"{path}/events?last_event_id=0") as frames:
                count = len(self.emulator.events(session_id))
                while sum(frame.id is not None for frame in frames.seen) < count:
                    assert frames.event() is not None
                yield "the stream", "\n".join(frame.text for frame in frames.seen)

    def _control(self) -> str:
        answers = [
            Api.request(self, "GET", f"/_emulator/{path}").raw.decode()
            for path in ("requests", "events", "report", "settings", "mcp", "health", "clock", "openapi.json")
        ]
        return "\n".join(answers)


def session_list(api: Api) -> Any:
    """The sessions as they are listed."""
    return api.get("/v1/sessions?limit=100").json


def around(text: str, secret: str) -> str:
    """A secret with what stands around it."""
    at = text.index(secret)
    return text[max(0, at - 120) : at + 60]
