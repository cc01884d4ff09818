"""The recording of the demonstration that ships as an example: played to the same client, and made anew."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from emulator.cli import main
from emulator.demo import Walk, main_job

if TYPE_CHECKING:
    from emulator import Emulator

DEMO = Path(__file__).parent.parent.parent / "fixtures" / "demo.jsonl"


@pytest.mark.gobare(scenario=DEMO, mode="strict")
def test_it_is_played_to_the_client_it_was_recorded_of(gobare: Emulator, capsys: pytest.CaptureFixture[str]) -> None:
    main_job(Walk(gobare.url, gobare.token))
    assert "“It is shipped.”" in capsys.readouterr().out
    assert gobare.report()["recording"] == []
    assert gobare.report()["unreached_steps"] == []


def _lines(path: Path) -> list[str]:
    """The lines without their times, in an order of their own: two connections race for theirs."""
    lines: list[dict[str, Any]] = [json.loads(line) for line in path.read_text().splitlines()]
    return sorted(json.dumps({key: value for key, value in line.items() if key != "at"}) for line in lines)


def test_recording_it_again_gives_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "demo.jsonl"
    assert main(["demo", "--record", str(path)]) == 0
    assert _lines(path) == _lines(DEMO)
