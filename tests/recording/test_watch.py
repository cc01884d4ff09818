"""What the recorder reads by itself, and what it says it could not read."""

from __future__ import annotations

import json
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from emulator import Emulator
from emulator.recording import watch
from tests.recording.recorded import Recorded
from tests.recording.upstream import Answer, Request, Scripted
from tests.support import WAIT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SESSION = "98e997bb-d64f-4e4e-9391-24b87f74fd04"


def writes(emulator: Emulator) -> None:
    @emulator.agent
    async def agent(turn: Any) -> None:
        await turn.write("outputs/report.md", "# Report")
        await turn.write("notes.md", "a note")
        await turn.say("done")


def notes(recorder: Recorded) -> list[tuple[str, str]]:
    return [(line["what"], line["why"]) for line in recorder.lines() if line.get("note") == "incomplete"]


def test_a_client_that_only_writes_leaves_a_whole_recording(gobare: Emulator, tmp_path: Path) -> None:
    writes(gobare)
    with Recorded(gobare, tmp_path / "it.jsonl") as recorder:
        session = recorder.api.session({"input": "go"})
        recorder.api.delete(f"/v1/sessions/{session}")
    lines = recorder.lines()
    assert [line["event"] for line in lines if "event" in line] == [
        "user.message",
        "sandbox.created",
        "turn.started",
        "file.changed",
        "file.changed",
        "agent.message",
        "turn.ended",
        "artifact.created",
    ]
    contents = {line.get("path") or line["file"]: line["text"] for line in lines if "text" in line}
    assert contents == {"/workspace/outputs/report.md": "# Report", "/workspace/notes.md": "a note"}
    assert notes(recorder) == []
    assert recorder.server.incomplete() == []


def test_a_token_that_may_not_read_is_followed_by_what_its_client_sees_and_that_is_said(
    gobare: Emulator, tmp_path: Path
) -> None:
    writes(gobare)
    token = gobare.tokens.mint(scopes=["sessions:write"]).token
    with Recorded(gobare, tmp_path / "it.jsonl") as recorder:
        session = recorder.api.post("/v1/sessions", {"input": "go"}, token=token)
        assert session.status == 201
    assert token not in recorder.path.read_text()
    assert notes(recorder)[0] == (
        "the events the client does not read itself",
        "its stream was refused with status 403",
    )


def test_without_the_scope_for_artifacts_their_sizes_are_kept(gobare: Emulator, tmp_path: Path) -> None:
    writes(gobare)
    token = gobare.tokens.mint(scopes=["sessions:read", "sessions:write"]).token
    with Recorded(gobare, tmp_path / "it.jsonl") as recorder:
        recorder.api.post("/v1/sessions", {"input": "go"}, token=token)
    assert ("GET /v1/sessions/…/artifacts", "refused with status 403") in notes(recorder)
    gobare.reset()
    gobare.load(recorder.path)


def test_what_is_too_large_is_kept_as_its_size_and_played_with_it(gobare: Emulator, tmp_path: Path) -> None:
    @gobare.agent
    async def agent(turn: Any) -> None:
        await turn.write("outputs/large.bin", "x" * 5000)

    with Recorded(gobare, tmp_path / "it.jsonl", {"ceiling": 4096}) as recorder:
        recorder.api.session({"input": "go"})
    (line,) = (line for line in recorder.lines() if "artifact" in line)
    assert (line["size"], "text" in line) == (5000, False)
    told = gobare.events()
    gobare.reset()
    gobare.load(recorder.path)
    with Recorded(gobare, tmp_path / "again.jsonl") as again:
        again.api.session({"input": "go"})
    assert gobare.events() == told


def test_a_stream_that_broke_off_is_taken_up_where_it_was(gobare: Emulator, tmp_path: Path) -> None:
    """No event is lost, and none is there twice."""

    def event(seq: int) -> bytes:
        data = {"object": "event", "type": "user.message", "session_id": SESSION, "seq": seq, "created_at": seq}
        return b"data: %b\n\n" % json.dumps({**data, "payload": {"text": str(seq)}}).encode()

    streams: list[str | None] = []

    def frames(cursor: str | None) -> Iterator[bytes]:
        if cursor is None:
            yield event(1) + event(2)[:20]
        else:
            yield from (event(seq) for seq in range(int(cursor) + 1, 4))

    def answer(request: Request) -> Answer:
        if request.target.startswith("/v1/events"):
            streams.append(request.header.get("last-event-id"))
            return 200, {"content-type": "text/event-stream"}, frames(streams[-1])
        body = {"object": "session", "id": SESSION, "data": []}
        return 201 if request.verb == "POST" else 200, {"content-type": "application/json"}, json.dumps(body).encode()

    with Scripted(answer) as upstream, Recorded(gobare, tmp_path / "it.jsonl", upstream=upstream.url) as recorder:
        recorder.api.session()
        while len(streams) < 3:
            recorder.api.get("/v1/health")
    assert streams[:3] == [None, "1", "3"]
    assert [line["payload"]["text"] for line in recorder.events("user.message")] == ["1", "2", "3"]


@pytest.mark.parametrize("stuck", ["/v1/events", "/turns"])
def test_an_upstream_that_answers_nothing_any_more_is_waited_for_once(
    gobare: Emulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stuck: str
) -> None:
    """Neither each request waits for the events to be open, nor each session for its end."""
    monkeypatch.setattr(watch, "_OPEN_SECONDS", 0.5)
    monkeypatch.setattr(watch, "_CATCH_UP_SECONDS", 0.5)
    over = threading.Event()
    created: list[str] = []

    def stream() -> Iterator[bytes]:
        yield b":\n\n"
        over.wait(WAIT)

    def answer(request: Request) -> Answer:
        if stuck in request.target:
            over.wait(WAIT)
        if request.target.startswith("/v1/events"):
            return 200, {"content-type": "text/event-stream"}, stream()
        created.append(f"session-number-{len(created)}")
        body = {"object": "session", "id": created[-1]}
        return 201, {"content-type": "application/json"}, json.dumps(body).encode()

    with Scripted(answer) as upstream:
        started = time.monotonic()
        with Recorded(gobare, tmp_path / "it.jsonl", upstream=upstream.url) as recorder:
            for _ in range(12):
                recorder.api.session()
        # Twelve times half a second, if each waited.
        assert time.monotonic() - started < 4
        over.set()
    lacks = recorder.server.incomplete()
    if stuck == "/turns":
        assert len(lacks) == 12
    else:
        assert lacks == [("the events the client does not read itself", "its stream was never opened")]
