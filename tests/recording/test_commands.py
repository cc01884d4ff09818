"""`record` and `scenario` as commands, and recordings of recorders that were cut off."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any, cast

import pytest

from emulator import Emulator, ScenarioError
from emulator.cli import main
from emulator.recording import load
from tests.recording.recorded import Address, Recorded
from tests.served import COMMAND, Served
from tests.support import Api

SUSPECT = "Zk3jQ9vX2mPl8RtY6wBn4HsD"
TOKEN = "gbr_pat_emulator"


class Recorder(Served):
    """A running `record`."""

    def __init__(self, upstream: str, out: Path, *arguments: str) -> None:
        command = (*COMMAND, "record", "--port", "0", "--upstream", upstream, "--out", str(out))
        super().__init__(*arguments, command=command)

    def __enter__(self) -> Recorder:
        super().__enter__()
        self.url = self.greeting[1].strip().removeprefix("export GOBARE_API=")
        self.api = Api(cast("Emulator", Address(self.url, TOKEN)))
        return self


def test_a_session_is_recorded_until_a_signal_and_played_to_another_emulator(gobare: Emulator, tmp_path: Path) -> None:
    out = tmp_path / "hello.jsonl"
    with Recorder(gobare.url, out) as recorder:
        assert recorder.greeting == [
            f"Recording {gobare.url} on {recorder.url} into {out}\n",
            f"export GOBARE_API={recorder.url}\n",
            "export GOBARE_TOKEN='<your own token>'\n",
        ]
        session = recorder.api.session({"input": "hello"})
        with recorder.api.stream(f"/v1/sessions/{session}/events?last_event_id=0") as frames:
            frames.until("turn.ended")
            # A stream that is open, and a connection that is idle, hold nothing up.
            assert recorder.stop(signal.SIGINT) == (0, "", "")
    said = gobare.transcript().last_message
    with Served("--scenario", str(out), "--mode", "strict", "--pace", "instant", "--clock", "virtual") as served:
        api = Api(cast("Emulator", Address(served.url, TOKEN)))
        session = api.session({"input": "hello there"})
        assert api.items(session)[-1]["content"] == said
        report = Api.get(api, "/_emulator/report").json
        assert [found["differences"][0]["path"] for found in report["recording"]] == ["input"]


def test_what_looks_like_a_secret_is_named_at_the_end(gobare: Emulator, tmp_path: Path) -> None:
    out = tmp_path / "secret.jsonl"
    with Recorder(gobare.url, out, "--secret", "nothing") as recorder:
        recorder.api.session({"title": f"it is {SUSPECT}"})
        status, printed, complained = recorder.stop()
    assert (status, printed) == (3, "")
    first, *_ = complained.splitlines()
    assert first == "gobare-emulator: warning: nothing was found under the name nothing."
    assert "  sessions_title  (sessions › title)\n" in complained
    assert SUSPECT not in complained + out.read_text()


def test_what_was_declared_is_no_longer_suspected(gobare: Emulator, tmp_path: Path) -> None:
    def record(**declared: tuple[str, ...]) -> tuple[dict[str, str], str]:
        with Recorded(gobare, tmp_path / "it.jsonl", declared) as recorder:
            recorder.api.session({"title": f"it is {SUSPECT}", "metadata": {"again": SUSPECT}})
        return recorder.server.secrets.suspected, recorder.path.read_text()

    suspected, text = record()
    assert list(suspected) == ["sessions_title"]
    assert SUSPECT not in text
    assert text.count("{{secret:sessions_title}}") == 4
    suspected, text = record(secret=("sessions_title",))
    assert suspected == {}
    assert SUSPECT not in text
    suspected, text = record(safe=("sessions_title",))
    assert suspected == {}
    assert "it is " + SUSPECT in text


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--upstream", "https://u:hunter2@api.test", "--out", "x.jsonl"), "without user"),
        (("--upstream", "ftp://api.test", "--out", "x.jsonl"), "http or https"),
        (("--upstream", "http://api.test", "--out", "x.yaml"), ".jsonl"),
        (("--upstream", "http://api.test", "--out", "/nowhere/x.jsonl", "--port", "0"), "cannot write"),
        (("--upstream", "http://api.test"), "--out"),
        (("--upstream", "http://api.test", "--out", "x.jsonl", "--safe", "a", "--secret", "a"), "both"),
    ],
)
def test_a_command_that_makes_no_sense_is_one_line(
    arguments: tuple[str, ...], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["record", *arguments]) == 2
    printed, complained = capsys.readouterr()
    assert printed == ""
    assert words in complained
    assert complained.count("\n") == 1
    assert "hunter2" not in complained


def test_a_recorder_that_is_killed_leaves_what_it_has_seen(gobare: Emulator, tmp_path: Path) -> None:
    out = tmp_path / "killed.jsonl"

    @gobare.agent
    async def agent(turn: Any) -> None:
        await turn.say("before")

    with Recorder(gobare.url, out) as recorder:
        recorder.api.session({"input": "hello"})
        for _ in range(1000):
            if '"turn.ended"' in out.read_text():
                break
            recorder.api.get("/v1/health")
        recorder.process.kill()
        recorder.process.wait()
    assert '"end"' not in out.read_text()
    gobare.reset()
    gobare.load(out)
    Api(gobare).session({"input": "hello"})
    assert gobare.transcript().last_message == "before"


def test_a_recording_can_be_loaded_up_to_wherever_it_was_cut(gobare: Emulator, tmp_path: Path) -> None:
    out = tmp_path / "whole.jsonl"
    with Recorded(gobare, out) as recorder:
        recorder.api.session({"input": "hello"})
    text = out.read_bytes()
    cut = tmp_path / "cut.jsonl"
    first = text.index(b"\n") + 1
    for end in range(first, len(text), 61):
        cut.write_bytes(text[:end])
        load(cut)
    cut.write_bytes(text.replace(b'"event"', b'"event', 1))
    with pytest.raises(ScenarioError, match=r"line \d+ is not JSON"):
        load(cut)
    cut.write_bytes(text[: first // 2])
    with pytest.raises(ScenarioError, match="header"):
        load(cut)


def test_a_recording_becomes_a_scenario_file_that_plays_the_same(
    gobare: Emulator, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tool = {"type": "function", "name": "lookup_order"}

    @gobare.agent
    async def agent(turn: Any) -> None:
        order = await turn.call("lookup_order", order_id="{{ A-1 }}", note="{% raw")
        await turn.say(f"{{{{ {order.output} }}}} {{# or so #}}")

    def client(api: Api) -> None:
        session = api.session({"agent": {"tools": [tool]}, "input": "Where is it?"})
        api.answer(session, api.actions(session)[0], "{{ here }}")

    out = tmp_path / "order.jsonl"
    with Recorded(gobare, out) as recorder:
        client(recorder.api)
    told = gobare.events()
    assert main(["scenario", str(out)]) == 0
    printed, complained = capsys.readouterr()
    assert "# Where is it?" in printed
    assert complained == ""
    scenario = tmp_path / "order.yaml"
    scenario.write_text(printed)
    assert main(["check", str(scenario), str(out)]) == 0
    gobare.reset()
    gobare.load(scenario)
    client(Api(gobare))
    assert gobare.events() == told


def test_what_is_no_recording_is_not_made_a_scenario_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scenario = tmp_path / "it.json"
    scenario.write_text(json.dumps({"agent": []}))
    assert main(["scenario", str(scenario)]) == 2
    printed, complained = capsys.readouterr()
    assert printed == ""
    assert "is no recording" in complained


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is full")
def test_a_disk_that_is_full_is_said_and_holds_nobody_up(gobare: Emulator, tmp_path: Path) -> None:
    out = tmp_path / "full.jsonl"
    out.symlink_to("/dev/full")
    with Recorder(gobare.url, out) as recorder:
        assert recorder.api.session({"input": "hello"})
        status, printed, errors = recorder.stop(signal.SIGINT)
    assert (status, printed) == (1, "")
    assert errors == (
        f"gobare-emulator: {out} could not be written to its end: No space left on device. "
        "What came before can be played.\n"
    )
