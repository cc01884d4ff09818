"""What scripts expect of answers: a miss is kept with where, what and who, and ends nothing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from emulator import Emulator, ScenarioError
from emulator.runtime.run import ScriptError
from emulator.runtime.scenario_file import load
from tests.support import Api

if TYPE_CHECKING:
    from emulator.runtime.turn import Turn

LOOKUP = {"type": "function", "name": "lookup"}


def scenario(*steps: dict[str, Any]) -> dict[str, Any]:
    return {"scenario": "orders", "agent": [{"otherwise": [*steps, {"say": "and on"}]}]}


def opened(api: Api) -> str:
    return api.session({"input": "go", "agent": {"tools": [LOOKUP]}})


@pytest.fixture
def outside() -> Emulator:
    """An emulator that is not the fixture's: that one fails the test for what is provoked here."""
    return Emulator()


def test_an_answer_that_is_not_as_a_step_expects_is_told_and_the_agent_goes_on(outside: Emulator) -> None:
    with outside as gobare:
        api = Api(gobare)
        gobare.load(scenario({"call": {"function": "lookup", "expect": {"output": {"status": "shipped", "n": 1}}}}))
        session_id = opened(api)
        (action,) = api.actions(session_id)
        answered = api.answer(session_id, action, json.dumps({"status": "lost", "n": 1}))
        (missed,) = gobare.report()["failed_expectations"]
        assert missed == {
            "session_id": session_id,
            "turn_id": action["turn_id"],
            "call_id": action["call_id"],
            "type": "function_call",
            "name": "lookup",
            "scenario": "orders",
            "where": "agent[0].otherwise[0]",
            "answered_by": "api",
            "request_id": answered.headers["x-request-id"],
            "at": missed["at"],
            "differences": [{"path": "output.status", "check": "equals", "expected": "shipped", "actual": "lost"}],
        }
        assert gobare.transcript().last_message == "and on"
        assert api.turns(session_id)[0]["status"] == "completed"
        api.delete(f"/v1/sessions/{session_id}")
        assert gobare.report()["failed_expectations"] == [missed]
        with pytest.raises(AssertionError, match=r'output\.status: expected "shipped", was "lost"'):
            gobare.assert_clean()


def test_what_is_as_expected_is_not_told(gobare: Emulator, api: Api) -> None:
    gobare.load(
        scenario(
            {
                "call": {
                    "function": "lookup",
                    "as": "order",
                    "expect": {
                        "success": True,
                        "output": {"id": "{{ message }}"},
                        "schema": {"type": "object", "required": ["id"]},
                        "matches": "g.",
                    },
                }
            },
            {"ask": {"question": "Where?", "expect": {"answer": "{{ order.output.id }}", "matches": "^g"}}},
            {"approve": {"tool": "bash", "expect": {"approved": True}}},
        )
    )
    session_id = opened(api)
    api.answer(session_id, api.actions(session_id)[0], '{"id": "go"}')
    gobare.answer("go")
    gobare.approve()
    assert gobare.report()["failed_expectations"] == []
    assert gobare.transcript().last_message == "and on"


def test_every_kind_of_answer_can_be_wrong(outside: Emulator) -> None:
    with outside as gobare:
        api = Api(gobare)
        call = {"function": "lookup", "expect": {"schema": {"type": "object"}}}
        gobare.load(
            scenario(
                {"together": [{"call": call}, {"ask": {"question": "Where?", "expect": {"matches": "^e"}}}]},
                {"approve": {"tool": "bash", "expect": {"approved": True}}},
                {"call": {"function": "lookup", "expect": {"error": "closed"}}},
            )
        )
        session_id = opened(api)
        api.answer(session_id, api.actions(session_id)[0], "[]")
        gobare.answer("us")
        gobare.approve(approved=False)
        api.answer(session_id, api.actions(session_id)[0], "ok")
        told = {
            (missed["where"], missed["type"], missed["answered_by"]): [
                (found["path"], found["check"]) for found in missed["differences"]
            ]
            for missed in gobare.report()["failed_expectations"]
        }
        assert told == {
            ("agent[0].otherwise[0].together[0]", "function_call", "api"): [("output", "schema")],
            ("agent[0].otherwise[0].together[1]", "question", "console"): [("answer", "matches")],
            ("agent[0].otherwise[1]", "approval", "console"): [("approved", "equals")],
            ("agent[0].otherwise[2]", "function_call", "api"): [("success", "equals"), ("error", "matches")],
        }


def test_a_decision_that_nobody_was_asked_for_is_looked_at_too(outside: Emulator) -> None:
    with outside as gobare:
        api = Api(gobare)
        gobare.load(scenario({"approve": {"tool": "bash", "expect": {"approved": True}}}))
        rule = {"tool": "bash", "decision": "deny"}
        answer = api.post("/v1/sessions", {"input": "go", "agent": {"permission_rules": [rule]}})
        assert answer.status == 201, answer.raw
        (missed,) = gobare.report()["failed_expectations"]
        assert (missed["call_id"], missed["answered_by"], missed["request_id"]) == (None, None, None)


def test_a_call_nobody_answers_in_time_is_not_the_success_that_was_expected(outside: Emulator) -> None:
    with outside as gobare:
        api = Api(gobare)
        gobare.load(scenario({"call": {"function": "lookup", "expect": {"output": 1}}}))
        tool = {**LOOKUP, "timeout_seconds": 30}
        api.session({"input": "go", "agent": {"tools": [tool]}})
        gobare.clock.advance(31)
        (missed,) = gobare.report()["failed_expectations"]
        assert [found["path"] for found in missed["differences"]] == ["success", "error"]
        assert missed["answered_by"] is None
        assert "nobody answered" in gobare.report()["verdict"]["failed"][0]["text"]


def test_a_python_agent_says_it_of_the_result_and_learns_whether_it_is_so(outside: Emulator) -> None:
    with outside as gobare:
        api = Api(gobare)
        learned = []

        @gobare.agent
        async def agent(turn: Turn) -> None:
            order = await turn.call("lookup")
            learned.append(order.expect(success=True, output={"id": 1}))
            learned.append(order.expect(output={"id": 2}))
            await turn.ask("Where?", expect={"answer": "eu"})
            await turn.approve("bash", expect={"approved": True})

        session_id = opened(api)
        api.answer(session_id, api.actions(session_id)[0], '{"id": 1}')
        gobare.answer("us")
        gobare.approve(approved=False)
        assert learned == [True, False]
        missed = gobare.report()["failed_expectations"]
        assert [entry["type"] for entry in missed] == ["function_call", "question", "approval"]
        assert all(entry["where"].startswith("test_expected.py:") for entry in missed)
        assert all(entry["where"].endswith(" in agent") for entry in missed)
        assert {entry["scenario"] for entry in missed} == {None}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"anwser": "eu"}, "'anwser' is nothing to expect here. Accepted: answer, matches. Did you mean `answer`?"),
        ({"answer": 1}, "the expected `answer` is text, which 1 is not"),
        ({"matches": "("}, "the expected `matches` is not a regular expression"),
        ({}, "nothing is expected"),
    ],
)
def test_an_expectation_that_says_nothing_is_the_scripts_error(
    given: dict[str, Any], said: str, outside: Emulator
) -> None:
    with outside as gobare:

        @gobare.agent
        async def agent(turn: Turn) -> None:
            await turn.ask("Where?", expect=given)

        Api(gobare).session({"input": "go"})
        with pytest.raises(ScriptError) as raised:
            gobare.raise_script_errors()
    assert said in str(raised.value)


@pytest.mark.parametrize(
    ("step", "said"),
    [
        ({"call": {"function": "f", "expect": {}}}, "call.expect is empty and would always hold. Accepted: success, "),
        (
            {"call": {"function": "f", "expect": {"ouput": 1}}},
            "call.expect.ouput is not a key here. Accepted: success, output, schema, matches, error. Did you mean",
        ),
        ({"call": {"function": "f", "expect": {"matches": "("}}}, "call.expect.matches is not a regular expression"),
        ({"call": {"function": "f", "expect": {"error": "(a+)+"}}}, "call.expect.error repeats a repetition"),
        ({"ask": {"question": "?", "expect": {"approved": True}}}, "ask.expect.approved is not a key here. Accepted: "),
        ({"approve": {"tool": "t", "expect": {}}}, "approve.expect.approved is missing"),
        ({"ask": {"question": "?", "expect": {"answer": "{{ ordr }}"}}}, "ask.expect.answer uses `ordr`"),
        ({"say": "x", "required": "yes"}, "required must be true or false, not text"),
        ({"required": True}, "has no verb"),
        ({"say": "x", "think": "y", "required": True}, "has 2 keys (say, think)"),
    ],
)
def test_a_scenario_that_expects_what_cannot_be_is_refused(step: dict[str, Any], said: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        load({"agent": [{"otherwise": [step]}]})
    assert f"agent[0].otherwise[0]{'' if said.startswith('has') else '.'}" in str(refused.value)
    assert said in str(refused.value)


@pytest.mark.parametrize("times", [0, -1, "2", True])
def test_times_is_a_number_of_messages(times: Any) -> None:
    with pytest.raises(ScenarioError, match=r"agent\[0\]\.times"):
        load({"agent": [{"times": times, "otherwise": [{"say": "x"}]}]})


def test_a_rule_answers_as_many_messages_as_it_says_and_its_disuse_is_told(gobare: Emulator, api: Api) -> None:
    say = {"otherwise": [{"say": "rest"}]}
    gobare.load({"scenario": "s", "agent": [{"when": {"turn": 1}, "times": 2, "do": [{"say": "first"}]}, say]})
    assert gobare.report()["unused_rules"] == [{"rule": "scenario 's', agent[0]", "times": 2, "used": 0}]
    said = []
    for _ in range(3):
        api.session({"input": "go"})
        said.append(gobare.transcript().last_message)
    assert said == ["first", "first", "rest"]
    assert gobare.report()["unused_rules"] == []
    gobare.reset()
    assert gobare.report()["unused_rules"] == []


def test_python_agents_are_used_up_in_the_order_they_were_written(gobare: Emulator, api: Api) -> None:
    @gobare.agent(times=1)
    async def first(turn: Turn) -> None:
        await turn.say("first")

    @gobare.agent(times=1, when={"message": {"contains": "go"}})
    async def second(turn: Turn) -> None:
        await turn.say("second")

    said = []
    for _ in range(3):
        session_id = api.session({"input": "go"})
        said.append(gobare.transcript().last_message)
    assert said == ["first", "second", None]
    (unmatched,) = gobare.report()["unmatched_messages"]
    assert [(miss["rule"], miss["reason"], miss["used_up"]) for miss in unmatched["rules"]] == [
        ("agent first", "used up after 1", True),
        ("agent second", "used up after 1", True),
    ]
    (error,) = (item for item in api.items(session_id) if item["type"] == "error")
    assert error["detail"]["message"] == (
        "No rule of the script answers this message. agent first: used up after 1. agent second: used up after 1."
    )
    with pytest.raises(ValueError, match="at least 1"):
        gobare.agent(times=0)


def test_a_step_that_must_be_reached_fails_where_it_is_not(outside: Emulator) -> None:
    with outside as gobare:
        gobare.load(
            {"scenario": "s", "agent": [{"otherwise": [{"ask": {"question": "?"}}, {"say": "x", "required": True}]}]}
        )
        api = Api(gobare)
        api.session({"input": "go"})
        assert [line["text"] for line in gobare.report()["verdict"]["failed"]] == [
            "scenario 's', agent[0].otherwise[1] (say) must be reached, and was not"
        ]
        gobare.settings.update(strict=True)
        told = [line["kind"] for line in gobare.report()["verdict"]["failed"]]
        assert told.count("required_steps") == 1
        assert "unreached_steps" not in told
        gobare.settings.update(strict=False)
        gobare.answer("x")
        assert gobare.report()["verdict"]["failed"] == []
