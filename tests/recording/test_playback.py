"""A recording is taken by every door a scenario is taken by, and a stranger's test needs nothing but the fixture."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from emulator import AsyncEmulator, ControlError, Emulator, EmulatorClient, ScenarioError
from emulator.recording import load
from emulator.recording.document import recording_of
from emulator.recording.steps import scenario_of
from emulator.scenario_source import read
from tests import inner
from tests.recording.recorded import Recorded
from tests.support import Api
from tests.test_pytest_plugin import CALL

if TYPE_CHECKING:
    from pathlib import Path

pytest_plugins = ("pytester",)

LOOKUP = {"type": "function", "name": "lookup_order"}


def client(api: Api, output: str = '{"status": "shipped"}') -> None:
    session = api.session({"agent": {"tools": [LOOKUP]}, "input": "Where is my order?"})
    api.answer(session, api.actions(session)[0], output)


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An order that is looked up."""
    path = tmp_path_factory.mktemp("recording") / "order.jsonl"
    with Emulator() as emulator:

        @emulator.agent
        async def agent(turn: Any) -> None:
            await turn.think("The function knows, says the agent, and so it is asked.")
            order = await turn.call("lookup_order", order_id="A-1")
            await turn.think("So that is that.")
            await turn.say(f"It is {order.json()['status']}.")

        with Recorded(emulator, path) as recorder:
            client(recorder.api)
    return path


def test_it_is_played_from_the_start_of_an_emulator_and_after_a_reset(recording: Path) -> None:
    with Emulator(scenario=recording, mode="strict") as emulator:
        for _ in range(2):
            client(Api(emulator))
            assert emulator.transcript().last_message == "It is shipped."
            assert emulator.report()["recording"] == []
            emulator.reset()


def test_it_is_played_from_another_process_s_handle(recording: Path, gobare: Emulator) -> None:
    with EmulatorClient(gobare.url) as handle:
        taken = handle.load(recording, mode="strict")
        assert taken["agent"][0]["when"] == {"session": 1, "turn": 1}
        client(Api(gobare), '{"status": "lost"}')
        assert [found["kind"] for found in handle.report()["recording"]] == ["different"]
    gobare.reset()


async def _awaited(recording: Path) -> None:
    async with AsyncEmulator() as emulator:
        await emulator.load(recording, mode="script")


def test_it_is_loaded_by_the_awaitable_handle(recording: Path) -> None:
    import asyncio

    asyncio.run(_awaited(recording))


def test_it_is_put_as_json_by_whoever_has_no_python(recording: Path, gobare: Emulator) -> None:
    header, *entries = (json.loads(line) for line in recording.read_text().splitlines())
    body = {**header, "entries": entries}
    assert Api(gobare).put("/_emulator/scenario", body).status == 200
    refused = Api(gobare).put("/_emulator/scenario", {**body, "mode": "loosely"})
    assert refused.status == 400
    assert "script or strict" in refused.json["error"]["message"]
    refused = Api(gobare).put("/_emulator/scenario", {**body, "recording": 2})
    assert "this emulator reads version 1" in refused.json["error"]["message"]


def test_a_mode_is_for_recordings(gobare: Emulator) -> None:
    with pytest.raises(ControlError, match="mode"):
        gobare.load({"agent": []}, mode="strict")
    with pytest.raises(ScenarioError, match="no recording"):
        load({"agent": []}, "strict")


def test_what_the_agent_thought_is_shown_again(recording: Path, gobare: Emulator) -> None:
    gobare.load(recording)
    api = Api(gobare)
    session = api.session({"agent": {"tools": [LOOKUP]}})
    with api.stream(f"/v1/sessions/{session}/events") as frames:
        api.say(session, "Where is my order?")
        api.answer(session, api.actions(session)[0], '{"status": "lost"}')
        seen = frames.until("turn.ended")
    thought = "".join(frame.data["payload"]["delta"] for frame in seen if frame.type == "agent.thinking")
    assert thought == "The function knows, says the agent, and so it is asked.So that is that."


def test_a_message_beyond_the_recording_is_unmatched_and_says_so(recording: Path, gobare: Emulator) -> None:
    gobare.load(recording)
    client(Api(gobare))
    api = Api(gobare)
    session = api.session({"input": "another session"})
    assert api.turns(session)[0]["status"] == "failed"
    assert len(gobare.report()["unmatched_messages"]) == 1
    gobare.reset()


def test_sessions_are_known_by_their_labels_where_that_was_asked_for(gobare: Emulator, tmp_path: Path) -> None:
    @gobare.agent
    async def agent(turn: Any) -> None:
        await turn.say(f"for {turn.session.metadata['tenant']}")

    def start(api: Api, *tenants: str) -> list[str]:
        sessions = [api.session({"metadata": {"tenant": tenant}}) for tenant in tenants]
        for session in sessions:
            api.say(session, "hello")
        return [str(api.items(session)[-1]["content"]) for session in sessions]

    path = tmp_path / "tenants.jsonl"
    with Recorded(gobare, path, {"match": "labels"}) as recorder:
        start(recorder.api, "acme", "globex")
    gobare.reset()
    gobare.load(path)
    assert start(Api(gobare), "globex", "acme") == ["for globex", "for acme"]


STRANGER = """
import pytest

TOOL = {"type": "function", "name": "lookup_order"}

def product(api, status):
    session = call(api, "POST", "/v1/sessions", {"agent": {"tools": [TOOL]}, "input": "Where is my order?"})
    (action,) = call(api, "GET", f"/v1/sessions/{session['id']}")["required_actions"]
    answer = {"type": "input.tool_result", "turn_id": action["turn_id"], "call_id": action["call_id"]}
    answer |= {"success": True, "output": json.dumps({"status": status})}
    call(api, "POST", f"/v1/sessions/{session['id']}/events", {"events": [answer]})

@pytest.mark.gobare(scenario="order.jsonl")
def test_freely(gobare):
    product(gobare, "lost")
    assert gobare.transcript().last_message == "It is shipped."

@pytest.mark.gobare(scenario="order.jsonl", mode="strict")
def test_the_same(gobare):
    product(gobare, "shipped")

@pytest.mark.gobare(scenario="order.jsonl", mode="strict")
def test_another_answer(gobare):
    product(gobare, "lost")

def test_by_the_ini_file(gobare_session):
    product(gobare_session, "lost")
"""


def test_a_stranger_s_test_plays_it_and_a_changed_answer_fails_it_with_the_field(
    pytester: pytest.Pytester, recording: Path
) -> None:
    pytester.path.joinpath("order.jsonl").write_bytes(recording.read_bytes())
    pytester.makeini(
        "[pytest]\nasyncio_default_fixture_loop_scope = function\ngobare_scenario = order.jsonl\n"
        "gobare_settings =\n    mode=strict\n"
    )
    pytester.makepyfile(
        test_it=CALL + STRANGER.replace('scenario="order.jsonl")', 'scenario="order.jsonl", mode="script")')
    )
    result = pytester.runpytest_inprocess(*inner.HERE)
    result.assert_outcomes(passed=4, errors=2)
    result.stdout.fnmatch_lines(
        [
            "*order.jsonl, line *, POST /v1/sessions/<session 1>/events (input.tool_result): the client sent*",
            '*events?0?.output: expected "{\\"status\\": \\"shipped\\"}", was "{\\"status\\": \\"lost\\"}"*',
        ]
    )


def test_an_act_comes_after_its_approval_although_another_is_still_waited_for(gobare: Emulator, tmp_path: Path) -> None:
    async def gated(turn: Any, command: str) -> None:
        if await turn.approve("bash", {"command": command}):
            await turn.use("bash", {"command": command})

    async def agent(turn: Any) -> None:
        await turn.together(gated(turn, "make"), gated(turn, "make test"))

    def client(api: Api) -> list[str]:
        session = api.session({"input": "go"})
        for action in api.actions(session):
            api.send(session, {"type": "input.approval", "call_id": action["call_id"], "approved": True})
        shown = ("approval.requested", "approval.resolved", "agent.tool_call")
        return [event["type"] for event in gobare.events() if event["type"] in shown]

    gobare.agent(agent)
    with Recorded(gobare, tmp_path / "two.jsonl") as recorder:
        told = client(recorder.api)
    gobare.reset()
    gobare.load(tmp_path / "two.jsonl")
    again = client(Api(gobare))
    assert sorted(again) == sorted(told)
    assert again.index("agent.tool_call") > again.index("approval.resolved")


def test_an_approved_write_keeps_its_text_though_the_file_is_gone(gobare: Emulator, tmp_path: Path) -> None:
    @gobare.agent
    async def agent(turn: Any) -> None:
        await turn.write("draft.txt", "first")
        await turn.delete("draft.txt")

    with Recorded(gobare, tmp_path / "draft.jsonl") as recorder:
        recorder.api.session({"agent": {"approval_mode": "per_step"}, "input": "go"})
        gobare.approve()
        gobare.approve()
    origin, document = read(tmp_path / "draft.jsonl")
    (rule,) = scenario_of(recording_of(document, origin))["agent"]
    assert rule["do"] == [
        {"write": {"path": "/workspace/draft.txt", "content": "first"}},
        {"delete": "/workspace/draft.txt"},
    ]
