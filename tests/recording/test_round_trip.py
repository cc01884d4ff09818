"""A recording holds everything that happened, and played back to the same client it happens again."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from emulator import Emulator
from tests.recording.every_feature import script, walk
from tests.recording.recorded import Recorded
from tests.support import Api

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any], list[str]]:
    """The recording of everything, and what the recorded emulator had to tell at the end."""
    path = tmp_path_factory.mktemp("recording") / "everything.jsonl"
    with Emulator() as emulator:
        script(emulator)
        with Recorded(emulator, path) as recorder:
            sessions = walk(recorder.api, emulator)
        assert emulator.report()["script_errors"] == []
        return path, _told(emulator), sessions


def _told(emulator: Emulator) -> dict[str, Any]:
    """Everything persisted, and what is read of each session."""
    api = Api(emulator)
    sessions = api.get("/v1/sessions?limit=100&order=asc").json["data"]
    return {
        "events": emulator.events(),
        "sessions": [api.get(f"/v1/sessions/{session['id']}").json for session in sessions],
        "items": [api.items(session["id"]) for session in sessions],
        "turns": [api.turns(session["id"]) for session in sessions],
        "artifacts": [api.get(f"/v1/sessions/{session['id']}/artifacts?limit=100").json for session in sessions],
    }


def test_played_back_to_the_same_client_everything_is_the_same_to_the_byte(
    recorded: tuple[Path, dict[str, Any], list[str]], gobare: Emulator
) -> None:
    path, told, sessions = recorded
    gobare.load(path, mode="strict")
    assert walk(Api(gobare), gobare) == sessions
    again = _told(gobare)
    for kind, found in told.items():
        assert again[kind] == found, kind
    assert gobare.report()["recording"] == []
    assert gobare.report()["script_errors"] == []
    assert gobare.report()["unreached_steps"] == []


def test_a_recording_of_its_playback_is_the_same_recording(
    recorded: tuple[Path, dict[str, Any], list[str]], gobare: Emulator, tmp_path: Path
) -> None:
    path, *_ = recorded
    gobare.load(path)
    with Recorded(gobare, tmp_path / "again.jsonl") as recorder:
        walk(recorder.api, gobare)
    assert _lines(recorder.path) == _lines(path)


def _lines(path: Path) -> list[dict[str, Any]]:
    """The lines of a recording, but for when on the real clock each was seen and where its emulator was."""
    text = re.sub(r"http://127\.0\.0\.1:\d{4,5}/_preview", "/_preview", path.read_text())
    return [{name: value for name, value in json.loads(line).items() if name != "at"} for line in text.splitlines()]
