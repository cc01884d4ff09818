"""Playing the steps of a scenario."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any

import pytest

from emulator.runtime.player import Player, ScenarioStepError, Verbs
from emulator.runtime.run import CallResult, Failed, ScriptError, TurnOver
from emulator.runtime.scenario_file import LoadedScenario, load
from emulator.runtime.tool_server import ToolResult
from tests.runtime.recording_turn import RecordingTurn


def loaded(*steps: Any) -> LoadedScenario:
    return load({"scenario": "test", "agent": [{"otherwise": list(steps)}]})


def play(turn: RecordingTurn, *steps: Any) -> LoadedScenario:
    scenario = loaded(*steps)
    asyncio.run(scenario.players[0](turn))
    return scenario


def said(template: str, *before: Any, turn: RecordingTurn | None = None) -> str:
    turn = turn or RecordingTurn()
    play(turn, *before, {"say": template})
    return str(turn.did("say")[-1][0])


def test_a_recording_turn_has_the_verbs_a_player_needs() -> None:
    turn: Verbs = RecordingTurn()
    assert turn.number == 1


def test_every_verb_is_played_with_its_arguments_and_defaults() -> None:
    turn = RecordingTurn()
    play(
        turn,
        {"say": "Hello"},
        {"think": "Hm"},
        {"call": {"function": "f"}},
        {"call": {"function": "f", "arguments": {"function": "g", "lose": 1}, "lose": True}},
        {"ask": {"question": "Which?"}},
        {"ask": {"question": "Which?", "options": ["a", "b"], "allow_freeform": False}},
        {"approve": {"tool": "bash"}},
        {"approve": {"tool": "bash", "args": {"command": "ls"}, "sensitive": True}},
        {"use": {"tool": "bash"}},
        {"use": {"tool": "bash", "args": {"command": "ls"}, "summary": "no", "is_error": True, "exit_code": 2}},
        {"mcp": {"server": "docs", "tool": "search"}},
        {"write": {"path": "a.md", "content": "x\n"}},
        {"write": {"path": "a.bin", "content": "", "size": 209_715_201}},
        {"delete": "a.md"},
        {"delete": {"path": "b.md"}},
        {"todos": [{"label": "x", "status": "done"}]},
        {"compact": {"before": 9, "after": 3}},
        {"preview": 3000},
        {"preview": {"port": 8080, "body": "<p>"}},
        {"preview": {"port": 8081, "body": {"/a": "{{ message }}"}}},
        {"wait": 5},
    )
    assert turn.done == [
        ("say", "Hello"),
        ("think", "Hm"),
        ("call", "f", {}, False),
        ("call", "f", {"function": "g", "lose": 1}, True),
        ("ask", "Which?", None, True),
        ("ask", "Which?", ["a", "b"], False),
        ("approve", "bash", {}, False),
        ("approve", "bash", {"command": "ls"}, True),
        ("use", "bash", {}, "", False, None),
        ("use", "bash", {"command": "ls"}, "no", True, 2),
        ("mcp", "docs", "search", {}),
        ("write", "a.md", "x\n"),
        ("write", "a.bin", "", 209_715_201),
        ("delete", "a.md"),
        ("delete", "b.md"),
        ("todos", [{"label": "x", "status": "done"}]),
        ("compact", 9, 3),
        ("preview", 3000, None),
        ("preview", 8080, "<p>"),
        ("preview", 8081, {"/a": turn.message}),
        ("wait", 5),
    ]


CALL = {"call": {"function": "lookup", "as": "order"}}


def test_the_output_of_a_call_is_read_when_it_is_json() -> None:
    assert said("It is {{ order.output.status }}.", CALL) == "It is shipped."
    assert said("{{ order.text }}", CALL) == '{"status": "shipped"}'


@pytest.mark.parametrize("output", ["plain words", "{broken", "NaN", "[" * 5000])
def test_the_output_of_a_call_stays_text_when_it_is_not_json(output: str) -> None:
    turn = RecordingTurn(replies=deque([CallResult(True, output)]))
    assert said("{{ order.output }}", CALL, turn=turn) == output


def test_a_call_that_failed_can_be_told_from_one_that_did_not() -> None:
    turn = RecordingTurn(replies=deque([CallResult(False, None, "no such order")]))
    assert said("{% if order.success %}yes{% else %}{{ order.error }}{% endif %}", CALL, turn=turn) == "no such order"


def test_a_key_of_a_result_wins_over_a_method_of_that_name() -> None:
    turn = RecordingTurn(replies=deque([CallResult(True, '{"items": [1, 2], "count": 2}')]))
    assert said("{{ order.output.items|join('+') }}={{ order.output.count }}", CALL, turn=turn) == "1+2=2"


def test_the_results_of_the_other_verbs_are_bound_as_well() -> None:
    turn = RecordingTurn(replies=deque([False, "us", ToolResult([{"type": "text", "text": "none"}], {"n": 0}, True)]))
    text = said(
        "{{ ok }} {{ region }} {{ found.text }} {{ found.structured.n }} {{ found.is_error }} "
        "{{ found.content[0].type }}"
        "{% for n in range(2) %}{{ loop.index }}{% endfor %}",
        {"approve": {"tool": "bash", "as": "ok"}},
        {"ask": {"question": "?", "as": "region"}},
        {"mcp": {"server": "docs", "tool": "search", "as": "found"}},
        turn=turn,
    )
    assert text == "false us none 0 true text12"


def test_templates_see_the_turn_its_session_and_its_state() -> None:
    turn = RecordingTurn(message="hi", number=3, state={"seen": 2}, steers=["faster"])
    template = "{{ message }} {{ turn.number }} {{ turn.steers[0] }} {{ session.metadata.tenant }} {{ state.seen }}"
    assert said(template, turn=turn) == "hi 3 faster acme 2"


def test_a_lone_expression_in_arguments_keeps_its_type() -> None:
    turn = RecordingTurn(replies=deque([CallResult(True, '{"n": 5, "ok": true, "list": [1, {"a": null}]}')]))
    arguments = {
        "n": "{{ order.output.n }}",
        "ok": "{{ order.output.ok }}",
        "nested": [{"list": "{{ order.output.list }}"}],
        "text": "{{ order.output.n }} pieces",
        "plain": "{ not a template }",
        "number": 7,
    }
    play(turn, CALL, {"call": {"function": "f", "arguments": arguments}})
    assert turn.did("call")[1][1] == {
        "n": 5,
        "ok": True,
        "nested": [{"list": [1, {"a": None}]}],
        "text": "5 pieces",
        "plain": "{ not a template }",
        "number": 7,
    }


def test_a_lone_expression_in_a_text_is_text() -> None:
    turn = RecordingTurn(replies=deque([CallResult(True, '{"n": 5, "list": [1, null]}')]))
    play(turn, CALL, {"say": "{{ order.output.n }}"}, {"write": {"path": "a.json", "content": "{{ order.output }}\n"}})
    assert turn.did("say") == [("5",)]
    assert turn.did("write") == [("a.json", '{"n": 5, "list": [1, null]}\n')]


def test_keys_are_not_templates() -> None:
    turn = RecordingTurn()
    play(turn, {"call": {"function": "f", "arguments": {"{{ message }}": "x"}}})
    assert turn.did("call")[0][1] == {"{{ message }}": "x"}


def test_a_server_and_an_option_may_be_templates() -> None:
    turn = RecordingTurn(message="docs")
    play(
        turn,
        {"mcp": {"server": "{{ message }}", "tool": "s"}},
        {"ask": {"question": "?", "options": ["{{ turn.number }}", "none"]}},
    )
    assert turn.did("mcp")[0][0] == "docs"
    assert turn.did("ask")[0][1] == ["1", "none"]


def test_steps_together_are_done_at_once_and_bind_their_results() -> None:
    turn = RecordingTurn(replies=deque([CallResult(True, '"first"'), CallResult(True, '"second"')]))
    both = {"together": [{"call": {"function": "a", "as": "x"}}, {"call": {"function": "b", "as": "y"}}]}
    assert said("{{ x.output }} {{ y.output }}", both, turn=turn) == "first second"
    assert turn.done[0] == ("together", 2)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("{{ [3, 1, 2]|sort|join('-') }}", "1-2-3"),
        ("{{ [{'a': 1}, {'a': 2}]|join(',', 'a') }}", "1,2"),
        ("{{ 'a-b'|replace('-', '+') }}", "a+b"),
        ("{{ message|upper ~ 1 ~ true }}", "HI1true"),
        ("{{ 'a' + 'b' * 2 }}", "abb"),
        ("{{ 7 % 4 + 2 ** 3 }}", 11),
        ("{{ 2.456|round(2) }}", 2.46),
        ("{{ [1, 2]|sum }}", 3),
        ("{{ {'a': [1]}|tojson }}", '{"a": [1]}'),
        ("{{ {'a': 'ü'}|tojson(indent=1) }}", '{\n "a": "ü"\n}'),
        ("{{ range(1, 7, 2) }}", [1, 3, 5]),
        ("{{ {'a': 1}.items() }}", [["a", 1]]),
        ("{{ [1, 2]|map('string') }}", ["1", "2"]),
        ("{{ nothing|default('none') if false else none }}", None),
        ("{{ message.split('') if false else message.strip() }}", "hi"),
        ("{{ 1 }}{{ 2 }}", "12"),
        ("{{ message }}\n", "hi\n"),
        ("{% raw %}{{ x }}{% endraw %}", "{{ x }}"),
        ("{% set a = 5 %}{{ a }}", "5"),
    ],
)
def test_templates_compute(expression: str, value: Any) -> None:
    turn = RecordingTurn(message="hi")
    expression = expression.replace("nothing|default('none')", "state.nothing|default('none')")
    play(turn, {"call": {"function": "f", "arguments": {"x": expression}}})
    assert turn.did("call")[0][1] == {"x": value}


def test_nothing_is_remembered_from_one_turn_to_the_next() -> None:
    scenario = loaded(CALL, {"say": "{{ order.output.status }}"})
    first, second = RecordingTurn(), RecordingTurn(replies=deque([CallResult(True, '{"status": "lost"}')]))

    async def both() -> None:
        await asyncio.gather(scenario.players[0](first), scenario.players[0](second))

    asyncio.run(both())
    assert first.did("say") == [("shipped",)]
    assert second.did("say") == [("lost",)]


ATTACKS = [
    "{{ ''.__class__ }}",
    "{{ ''['__class__'] }}",
    "{{ [[1]]|map(attribute='__class__')|list }}",
    "{{ message.format(1) }}",
    "{{ state.update({'a': 1}) }}",
    "{{ range(10**9) }}",
    "{% for a in range(10**9) %}x{% endfor %}",
    "{% for a in range(5000) %}{% for b in range(5000) %}{% endfor %}{% endfor %}",
    "{{ 'a' * 10**9 }}",
    "{% for a in range(1000) %}{{ message * 10000 }}{% endfor %}",
    "{{ range(1000)|map('replace', '0', message * 50000)|list }}",
    "{{ 10 ** 9999 }}",
    "{{ '%1000000000d' % 1 }}",
    "{{ 1.5|round(10**9, ) }}{{ 'a'.center(10**9) }}",
    "{{ 1 / 0 }}",
    "{{ session.nope.nope }}",
    "{{ self.__init__ }}",
    "{{ turn.say('x') }}",
    "{{ 2 ** 4000 * 2 ** 4000 }}",
    "{{ [1]|tojson(indent=9999999) }}",
    "{{ message + state.nope }}",
]


@pytest.mark.parametrize("template", ATTACKS)
def test_a_template_that_reaches_out_or_does_too_much_is_an_error_of_its_step(template: str) -> None:
    turn = RecordingTurn()
    with pytest.raises(ScenarioStepError) as caught:
        play(turn, {"say": "Hello"}, {"say": template})
    assert caught.value.step == "agent[0].otherwise[1]"
    assert "scenario 'test', agent[0].otherwise[1]: " in str(caught.value)
    assert turn.did("say") == [("Hello",)]
    assert turn.state == {}


@pytest.mark.parametrize("expression", ["{{ 1e308 * 10 }}", "{{ {1: 2} }}", "{{ session.get }}", "{{ state.nope }}"])
def test_an_expression_that_is_not_json_is_not_passed_on(expression: str) -> None:
    turn = RecordingTurn()
    with pytest.raises(ScenarioStepError):
        play(turn, {"call": {"function": "f", "arguments": {"x": expression}}})
    assert turn.done == []


def test_what_a_template_passes_on_is_a_copy() -> None:
    turn = RecordingTurn(state={"list": [1]})
    play(turn, {"call": {"function": "f", "arguments": {"x": "{{ state.list }}"}}})
    turn.did("call")[0][1]["x"].append(2)
    assert turn.state == {"list": [1]}


def test_a_verb_that_refuses_is_an_error_of_its_step() -> None:
    turn = RecordingTurn(replies=deque([ScriptError("not declared")]))
    with pytest.raises(ScenarioStepError, match=r"agent\[0\]\.otherwise\[0\]: not declared") as caught:
        play(turn, CALL)
    assert isinstance(caught.value.__cause__, ScriptError)


def test_a_verb_that_refuses_inside_together_names_the_inner_step() -> None:
    turn = RecordingTurn(replies=deque([ScriptError("not declared")]))
    with pytest.raises(ScenarioStepError) as caught:
        play(turn, {"together": [{"call": {"function": "a"}}]})
    assert caught.value.step == "agent[0].otherwise[0].together[0]"


@pytest.mark.parametrize("end", [TurnOver("over"), asyncio.CancelledError(), KeyboardInterrupt()])
def test_what_ends_a_turn_passes_through_as_it_is(end: BaseException) -> None:
    turn = RecordingTurn(replies=deque([end]))
    player = Player("test", loaded(CALL, {"say": "x"}).players[0].steps)

    async def ends() -> BaseException | None:
        try:
            await player(turn)
        except BaseException as error:
            return error
        return None

    assert asyncio.run(ends()) is end
    assert turn.did("say") == []


def test_fail_ends_the_play() -> None:
    turn = RecordingTurn()
    with pytest.raises(Failed) as caught:
        play(turn, {"fail": {"code": "provider_error", "message": "{{ turn.number }} 502"}})
    assert (caught.value.code, caught.value.message) == ("provider_error", "1 502")


def test_the_steps_that_were_not_reached_are_known() -> None:
    scenario = loaded(
        {"say": "a"}, CALL, {"together": [{"wait": 1}, {"call": {"function": "b"}}]}, {"say": "{{ order.output.x }}"}
    )
    turn = RecordingTurn(replies=deque([ScriptError("no")]))
    with pytest.raises(ScenarioStepError):
        asyncio.run(scenario.players[0](turn))
    assert scenario.unreached() == [
        {"scenario": "test", "step": "agent[0].otherwise[2]", "verb": "together", "required": False},
        {"scenario": "test", "step": "agent[0].otherwise[2].together[0]", "verb": "wait", "required": False},
        {"scenario": "test", "step": "agent[0].otherwise[2].together[1]", "verb": "call", "required": False},
        {"scenario": "test", "step": "agent[0].otherwise[3]", "verb": "say", "required": False},
    ]
    assert scenario.fresh().unreached()[0]["step"] == "agent[0].otherwise[0]"


def test_a_play_from_beginning_to_end_reaches_every_step() -> None:
    scenario = play(RecordingTurn(), CALL, {"together": [{"wait": 1}, {"wait": 2}]}, {"say": "x"})
    assert scenario.unreached() == []
