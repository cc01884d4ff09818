"""What nobody of the client answered: played back from an API on real time, the turn goes on by itself."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from emulator.recording.document import recording_of
from emulator.recording.steps import scenario_of
from emulator.scenario_source import read
from tests.recording.recorded import Recorded
from tests.support import Api

if TYPE_CHECKING:
    from pathlib import Path

    from emulator import Emulator, Turn

TOOL = {"type": "function", "name": "lookup_order", "timeout_seconds": 30}


async def agent(turn: Turn) -> None:
    order = await turn.call("lookup_order")
    region = await turn.ask("Which region?")
    first, second = await turn.approve("bash"), await turn.approve("bash")
    await turn.say(f"{order.success} {region} {first} {second}")


def client(api: Api, emulator: Emulator | None) -> str:
    """Only starts the turn; with an emulator, its console and its clock do the rest."""
    session = api.session({"agent": {"tools": [TOOL]}})
    api.say(session, "go")
    if emulator is not None:
        emulator.clock.advance(31)
        emulator.answer("eu")
        emulator.approve()
        emulator.approve(approved=False, code="approval_timeout")
        emulator.settle()
    return session


def test_calls_that_expired_and_a_console_s_decisions_are_played_by_the_script(
    gobare: Emulator, tmp_path: Path
) -> None:
    path = tmp_path / "console.jsonl"
    gobare.agent(agent)
    with Recorded(gobare, path) as recorder:
        client(recorder.api, gobare)
    told = [(event["type"], event["payload"]) for event in gobare.events()]
    # As an API on real time would have been recorded.
    lines = [line for line in path.read_text().splitlines() if json.loads(line).get("clock") != "virtual"]
    path.write_text("\n".join(lines) + "\n")
    gobare.reset()
    gobare.load(path)
    client(Api(gobare), None)
    assert [(event["type"], event["payload"]) for event in gobare.events()] == told


def test_on_a_virtual_clock_whoever_moved_it_does_so_again(gobare: Emulator, tmp_path: Path) -> None:
    path = tmp_path / "console.jsonl"
    gobare.agent(agent)
    with Recorded(gobare, path) as recorder:
        client(recorder.api, gobare)
    told = gobare.events()
    gobare.reset()
    gobare.load(path)
    client(Api(gobare), gobare)
    assert gobare.events() == told
    origin, document = read(path)
    steps: list[dict[str, Any]] = scenario_of(recording_of(document, origin))["agent"][0]["do"]
    assert "console" not in json.dumps(steps)


async def acts(turn: Turn) -> None:
    done = [await turn.use("bash", {"command": "make"}), await turn.write("outputs/a.txt", "a")]
    done += await turn.together(turn.write("b.txt", "b"), turn.use("read", {"path": "a.txt"}))
    await turn.say(str(done))


def test_acts_that_the_console_approved_are_played_with_its_decision(gobare: Emulator, tmp_path: Path) -> None:
    path = tmp_path / "console.jsonl"

    def started(api: Api) -> None:
        session = api.session({"agent": {"approval_mode": "per_step"}})
        api.say(session, "go")

    gobare.agent(acts)
    with Recorded(gobare, path) as recorder:
        started(recorder.api)
        gobare.approve()
        gobare.approve(approved=False)
        one, other = recorder.api.get("/v1/sessions").json["data"][0]["required_actions"]
        gobare.approve(one["call_id"])
        gobare.approve(other["call_id"])
        gobare.settle()
    told = [(event["type"], event["payload"]) for event in gobare.events()]
    assert told[-2][1] == {"text": "[True, False, True, True]"}
    lines = [line for line in path.read_text().splitlines() if json.loads(line).get("clock") != "virtual"]
    path.write_text("\n".join(lines) + "\n")
    gobare.reset()
    gobare.load(path)
    started(Api(gobare))
    again = [(event["type"], event["payload"]) for event in gobare.events()]
    assert sorted(map(str, again)) == sorted(map(str, told))
