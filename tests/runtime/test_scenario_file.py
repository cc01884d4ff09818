"""Loading scenario files, and how a bad one is refused."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from emulator.domain.outages import ConnectEntry
from emulator.domain.scenario import Facts, choose
from emulator.runtime.scenario_file import ScenarioError, condition, load, merge

FIXTURES = Path(__file__).parents[2] / "fixtures"


def step(*steps: Any) -> dict[str, Any]:
    return {"agent": [{"otherwise": list(steps)}]}


def refusal(source: Any) -> str:
    with pytest.raises(ScenarioError) as caught:
        load(source)
    return str(caught.value)


def written(folder: Path, text: str | bytes, name: str = "bad.yaml") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


@pytest.mark.parametrize("name", ["order_lookup.yaml", "release_gate.yaml", "flaky_docs.json"])
def test_the_shipped_scenarios_load(name: str) -> None:
    scenario = load(FIXTURES / name)
    assert scenario.rules
    assert scenario.mcp
    assert json.loads(json.dumps(scenario.document)) == scenario.document
    assert load(scenario.document).document == scenario.document


def test_a_rule_is_chosen_by_the_message_of_the_shipped_scenario() -> None:
    rules = load(str(FIXTURES / "order_lookup.yaml")).rules
    facts = Facts("Where is my ORDER?", tools=frozenset(("lookup_order",)))
    assert [rule.name for rule in (choose(rules, facts), choose(rules, Facts("hello"))) if rule is not None] == [
        "scenario 'order lookup', agent[0]",
        "scenario 'order lookup', agent[2]",
    ]


def test_simulated_servers_are_described() -> None:
    mcp = load(FIXTURES / "flaky_docs.json").mcp
    assert (mcp["docs"].standing, mcp["docs"].times) == (ConnectEntry("refuse", "fetch failed"), 2)
    assert mcp["docs"].tools is not None
    assert mcp["docs"].tools["search"].content == [{"type": "text", "text": "retries: see page 12"}]
    assert mcp["runbook"].connects == (
        ConnectEntry("time_out", "the server did not answer within 10s"),
        ConnectEntry("refuse"),
        ConnectEntry(),
    )


def test_a_structured_result_has_its_json_as_a_text_beside_it() -> None:
    tools = {"a": {"structured": {"n": 1}}, "b": {"structured": {"n": 1}, "text": "one"}, "c": {}}
    described = load({"mcp": {"docs": {"tools": tools}}}).mcp["docs"].tools
    assert described is not None
    assert [tool.content for tool in described.values()] == [
        [{"type": "text", "text": '{"n": 1}'}],
        [{"type": "text", "text": "one"}],
        [],
    ]


def test_a_mapping_is_copied() -> None:
    source = step({"say": "x"})
    scenario = load(source)
    source["agent"].clear()
    assert scenario.document == step({"say": "x"})


def test_a_scenario_is_called_by_its_name_else_by_its_file(tmp_path: Path) -> None:
    assert load(written(tmp_path, "agent: []", "night run.yml")).name == "night run"
    assert load({"scenario": "mine"}).name == "mine"
    assert load({}).name == "scenario"


def test_yaml_values_are_read_as_they_look(tmp_path: Path) -> None:
    text = "{a: yes, b: 2026-01-01, c: 12:30, d: 012, e: true, f: 1.5, g: ~, h: 1e3, i: -3, j: no, k: 0x10}"
    path = written(tmp_path, f"agent: [{{otherwise: [{{call: {{function: f, arguments: {text}}}}}]}}]")
    assert load(path).document["agent"][0]["otherwise"][0]["call"]["arguments"] == {
        "a": "yes",
        "b": "2026-01-01",
        "c": "12:30",
        "d": 12,
        "e": True,
        "f": 1.5,
        "g": None,
        "h": 1000.0,
        "i": -3,
        "j": "no",
        "k": "0x10",
    }


def test_anchors_and_merge_keys_work(tmp_path: Path) -> None:
    text = "mcp:\n  a: &a {state: down}\n  b: {<<: *a, reason: gone}\n"
    assert load(written(tmp_path, text)).document["mcp"]["b"] == {"state": "down", "reason": "gone"}


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (
            {"agent": [{"when": {"turn": 1}, "do": [{"call": {"functon": "x"}}]}]},
            "agent[0].do[0].call.functon is not a key here. Accepted: function, arguments, as, lose, expires, expect. "
            "Did you mean `function`?",
        ),
        (
            {"agents": []},
            "agents is not a key here. Accepted: scenario, description, mcp, faults, agent. Did you mean `agent",
        ),
        (step({"call": {}}), "agent[0].otherwise[0].call.function is missing. Accepted: function, arguments, as, "),
        ({"mcp": {"docs": {"script": [{"stat": "up"}]}}}, "mcp.docs.script[0].stat is not a key here. Accepted:"),
        ({"mcp": {"docs": {"tools": {"s": {"text": "x", "content": []}}}}}, "tools.s has both `text` and `content`"),
        ({"scenario": ""}, "scenario is empty; it needs a text"),
        ({"mcp": {"": {}}}, 'mcp[""] is empty; it needs a text'),
        ({"mcp": {"x" * 65: {}}}, f"mcp.{'x' * 65} is longer than 64 characters"),
        (step({"preview": 70000}), "agent[0].otherwise[0].preview.port is 70000; the most is 65535"),
        ({"agent": ["say"]}, "agent[0] must be an object, not text. Accepted: when, do, otherwise, times."),
        (step({"sya": "x"}), "agent[0].otherwise[0].sya is not a verb. Accepted: say, think, "),
        (step({"sya": "x"}), "Did you mean `say`?"),
        (step({"say": "x", "wait": 1}), "agent[0].otherwise[0] has 2 keys (say, wait), and a step is one verb."),
        (step({"call": None, "function": "x"}), "Indent the arguments below their verb."),
        (step("hello"), "agent[0].otherwise[0] must be a step, an object with one verb as its key, not text."),
        (step({}), "agent[0].otherwise[0] is an empty step."),
        (step({"say": 5}), "agent[0].otherwise[0].say must be text, not a number. Put it in quotes"),
        (step({"wait": -1}), "agent[0].otherwise[0].wait is -1; the least is 0"),
        (step({"preview": True}), "agent[0].otherwise[0].preview must be a port, or an object, not true."),
        (step({"write": {"path": "a", "content": "", "size": -1}}), "[0].write.size is -1; the least is 0"),
        (step({"write": {"path": "a", "content": "", "size": None}}), "[0].write.size has no value."),
        (step({"preview": 0}), "agent[0].otherwise[0].preview.port is 0; the least is 1"),
        (step({"preview": {"port": 1, "body": 5}}), "agent[0].otherwise[0].preview.body must be text, not a number"),
        (step({"preview": {"port": 1, "body": {"/": 5}}}), 'preview.body["/"] must be text, not a number'),
        (step({"preview": {"port": 1, "body": None}}), "preview.body has no value. Give it one or leave the key out"),
        (step({"ask": {"question": "?", "as": None}}), "agent[0].otherwise[0].ask.as has no value."),
        (step({"together": [{"say": "x"}]}), "agent[0].otherwise[0].together[0].say cannot be in `together`."),
        (step({"todos": [{"label": "x", "state": "y"}]}), "agent[0].otherwise[0].todos[0].state is not a key here."),
        (step({"fail": {"code": "provider_eror", "message": "x"}}), "Did you mean `provider_error`?"),
        (
            step({"fail": {"code": "conflict", "message": "x"}}, {"say": "x"}),
            "agent[0].otherwise[1] can never be reached: `fail` ends the turn before it",
        ),
        ({"agent": [{"do": [{"say": "x"}]}]}, "agent[0] has no `when`. A rule has `when` and `do`, or"),
        (
            {"agent": [{"otherwise": [{"say": "x"}], "do": []}]},
            "agent[0] has `do` beside `otherwise`. A rule has `when` and `do`, or",
        ),
        ({"agent": [{"when": {}, "do": [{"say": "x"}]}]}, "agent[0].when is empty and would always hold."),
        ({"agent": [{"when": {"message": "x"}, "do": [{"say": "x"}]}]}, "Accepted: contains, equals, matches."),
        (
            {"agent": [{"when": {"message": {"matches": "(a"}}, "do": [{"say": "x"}]}]},
            "agent[0].when.message.matches is not a regular expression: missing )",
        ),
        ({"agent": [{"when": {"turn": 1}, "do": []}]}, "agent[0].do is empty; it needs at least one entry"),
        ({"mcp": {"docs": {"state": "dwn"}}}, "mcp.docs.state must be 'up' or 'down', not 'dwn'. Did you mean `down`?"),
        ({"mcp": {"a b": {"tools": {"s": {"reply": 1}}}}}, 'mcp["a b"].tools.s.reply is not a key here.'),
        ({"mcp": {"docs": {"times": 2}}}, "mcp.docs.times goes with `state: down` or a `fault`"),
        ({"mcp": {"docs": {"state": "up", "reason": "x"}}}, "mcp.docs.reason goes with `state: down` or a `fault`"),
        ({"mcp": {"docs": {"state": "up", "fault": "hang"}}}, "mcp.docs.fault stands beside `state: up`"),
        ({"mcp": {"docs": {"state": "down", "script": ["up"]}}}, "mcp.docs.state stands beside `script`"),
        ({"mcp": {"docs": {"fault": "slow"}}}, "mcp.docs.seconds is missing: with the fault `slow`"),
        ({"mcp": {"docs": {"script": ["up", "slow"]}}}, "mcp.docs.script[1].seconds is missing"),
        ({"mcp": {"docs": {"script": ["dwn"]}}}, "mcp.docs.script[0] must be 'up', 'down', 'refuse', "),
        ({"mcp": {"docs": {"script": ["dwn"]}}}, "not 'dwn'. Did you mean `down`?"),
        ({"mcp": {"docs": {"script": [{"fault": "slow", "seconds": 2, "reason": "x"}]}}}, "script[0].reason goes with"),
        ({"mcp": {"docs": {"script": [{}]}}}, "mcp.docs.script[0] is empty; it needs a `state`, a `fault` or `tools`"),
        ({"mcp": {"docs": {"calls": [{}]}}}, "mcp.docs.calls[0] is empty; it needs a `fault` or `tools`"),
        ({"mcp": {"docs": {"calls": [{"falt": "drop"}]}}}, "calls[0].falt is not a key here. Accepted: fault, tool, "),
        ({"mcp": {"docs": {"calls": ["malformd"]}}}, "Did you mean `malformed`?"),
        (
            {"mcp": {"docs": {"calls": [{"fault": "drop", "seconds": 1}]}}},
            "calls[0].seconds goes with the fault `slow`",
        ),
        ({"mcp": {"docs": {"calls": [{"text": "x"}]}}}, "mcp.docs.calls[0].text goes with the fault `error`"),
        (
            {"mcp": {"docs": {"calls": [{"tools": {"s": {"text": "x", "content": []}}}]}}},
            "mcp.docs.calls[0].tools.s has both `text` and `content`; write one of them",
        ),
        ({"mcp": {"docs": {"calls": [{"tools": {"s": {"txt": "x"}}}]}}}, "calls[0].tools.s.txt is not a key here. Acc"),
        ({"mcp": {"x" * 65: {}}}, "is longer than 64 characters"),
        (step({"say": "{{ message"}), "agent[0].otherwise[0].say is not a template that can be rendered: unexpected"),
        (step({"say": "{% if x %}"}), "agent[0].otherwise[0].say is not a template that can be rendered:"),
        (step({"say": "{{ 1|rond }}"}), "there is no filter `rond`. Did you mean `round`?"),
        (step({"say": "{% macro f() %}{% endmacro %}"}), "`macro` is not offered"),
        (step({"say": "{% include 'x' %}"}), "`include` is not offered"),
        (
            step({"call": {"function": "f", "arguments": {"a": [{"b": "{{ x"}]}}}),
            "agent[0].otherwise[0].call.arguments.a[0].b is not a template",
        ),
        (
            step({"ask": {"question": "?", "as": "region"}}, {"say": "{{ regon }}"}),
            "agent[0].otherwise[1].say uses `regon`, which no step before it gives. "
            "Known: message, turn, session, state, region. Did you mean `region`?",
        ),
        (step({"say": "{{ a }}"}, {"ask": {"question": "?", "as": "a"}}), "agent[0].otherwise[0].say uses `a`"),
        (
            step({"together": [{"ask": {"question": "?", "as": "a"}}, {"ask": {"question": "{{ a }}"}}]}),
            "agent[0].otherwise[0].together[1].ask.question uses `a`",
        ),
        (step({"ask": {"question": "?", "as": "turn"}}), "agent[0].otherwise[0].ask.as is 'turn', which templates use"),
        (step({"ask": {"question": "?", "as": "a b"}}), "agent[0].otherwise[0].ask.as is 'a b'. A name is letters,"),
        (step({"ask": {"question": "?", "as": "if"}}), "agent[0].otherwise[0].ask.as is 'if'."),
        (
            step({"together": [{"ask": {"question": "?", "as": "a"}}, {"ask": {"question": "!", "as": "a"}}]}),
            "agent[0].otherwise[0].together[1].ask.as is 'a', which a step beside it gives as well",
        ),
        ({1: "x"}, 'the scenario has the key 1, which is a number. Keys are text: put it in quotes, "1"'),
        (step({"call": {"function": "f", "arguments": {"a": {1}}}}), ".call.arguments.a is a set, which JSON does not"),
        (step({"wait": float("inf")}), "agent[0].otherwise[0].wait is a number that is not finite"),
    ],
)
def test_a_bad_key_is_refused_with_its_path_and_what_is_accepted(document: Any, message: str) -> None:
    assert message in refusal(document)


def test_every_problem_is_named_and_a_misspelt_key_only_once() -> None:
    message = refusal(step({"call": {"functon": "x"}}, {"wait": "5"}, {"say": ""}))
    assert [line.split(" ")[2] for line in message.splitlines()[1:]] == [
        "agent[0].otherwise[0].call.functon",
        "agent[0].otherwise[1].wait",
        "agent[0].otherwise[2].say",
    ]
    assert message.startswith("3 problems")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.yaml", "a: [", "the scenario is not YAML: expected the node content"),
        ("a.yaml", "\t- a", "(line 1, column 1)"),
        ("a.yaml", "--- 1\n--- 2", "the scenario is not YAML: but found another document"),
        ("a.yaml", "a: !!python/object/apply:os.getpid []", "could not determine a constructor for the tag"),
        ("a.yaml", "agent: []\nmcp: {}\nagent: []", "agent is written twice (line 3). Keep one"),
        ("a.yaml", "mcp:\n  docs: {state: up, state: down}", "mcp.docs.state is written twice (line 2)"),
        ("a.yaml", "? [a]\n: b", "the scenario is not YAML: found unhashable key"),
        ("a.yaml", "1: 2", "the scenario has the key 1, which is a number"),
        ("a.yaml", "scenario: .inf", "scenario is a number that is not finite"),
        ("a.yaml", "a: \x00", "the scenario is not YAML"),
        ("a.yaml", "", "the scenario is empty. Its keys are scenario, description, mcp and agent"),
        ("a.yaml", "# nothing", "the scenario is empty."),
        ("a.yaml", "- agent", "the scenario is a list, and must be an object."),
        ("a.yaml", "[" * 500, "the scenario is not YAML"),
        ("a.yaml", "a: &a [*a]", "is nested more than 64 deep"),
        ("a.yaml", "a: " + "9" * 5000, "the scenario is not YAML"),
        ("a.json", '{"agent": [], "agent": []}', "agent is written twice. Keep one"),
        ("a.json", '{"a": NaN}', "a is a number that is not finite"),
        ("a.json", '{"a": 1e999}', "a is a number that is not finite"),
        ("a.json", "{", "the scenario is not JSON: "),
        ("a.json", "[" * 200_000, "the scenario is not JSON"),
        ("a.json", "", "the scenario is not JSON: Expecting value (line 1, column 1)"),
        ("a", "agent: []", "the scenario is not JSON"),
        ("a.yaml", b"\xff\xfeagent", "the scenario is not UTF-8 text (byte 0)"),
        ("a.json", b'{"a": "\xe9"}', "the scenario is not UTF-8 text (byte 7)"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_by_name(
    tmp_path: Path, name: str, text: str | bytes, message: str
) -> None:
    path = written(tmp_path, text, name)
    refused = refusal(path)
    assert refused.startswith(f"{path}: ")
    assert message in refused


def test_aliases_that_stand_for_a_huge_document_are_refused(tmp_path: Path) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    assert "is too large: over 200000 values" in refusal(written(tmp_path, "\n".join(lines)))


def test_a_file_that_is_not_there_or_is_no_file_is_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path / "none.yaml").endswith("none.yaml: the scenario is not there: no such file")
    assert refusal(tmp_path).endswith("the scenario is not in a file: this is a directory")
    assert "the scenario" in refusal("a\0b")
    assert "the scenario cannot be read" in refusal("x" * 5000)


@pytest.mark.skipif(sys.platform == "win32", reason="no named pipes there")
def test_a_pipe_is_refused_rather_than_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    assert "the scenario is not in a regular file" in refusal(tmp_path / "pipe.json")


def test_a_file_beyond_its_ceiling_is_refused(tmp_path: Path) -> None:
    assert "is too large" in refusal(written(tmp_path, b" " * (8 * 1024 * 1024 + 1)))


def test_a_byte_order_mark_is_no_mistake(tmp_path: Path) -> None:
    assert load(written(tmp_path, "\ufeff{}", "a.json")).document == {}


def test_scenarios_are_merged_in_order() -> None:
    one = load({"scenario": "one", "mcp": {"docs": {}}, **step({"say": "1"})})
    two = load({"scenario": "two", "mcp": {"runbook": {}}, **step({"say": "2"})})
    both = merge([one, two])
    assert [rule.name for rule in both.rules] == ["scenario 'one', agent[0]", "scenario 'two', agent[0]"]
    assert list(both.mcp) == ["docs", "runbook"]
    assert [(entry["scenario"], entry["step"]) for entry in both.unreached()] == [
        ("one", "agent[0].otherwise[0]"),
        ("two", "agent[0].otherwise[0]"),
    ]
    assert load(both.document).document == both.document
    assert len(both.fresh().players) == 2


def test_merging_one_or_none_is_that() -> None:
    one = load({"scenario": "one"})
    assert merge([one]) is one
    assert merge([]).rules == []
    assert load(merge([]).document).rules == []


def test_a_server_described_twice_is_refused() -> None:
    one, two = (load({"scenario": name, "mcp": {"docs": {}}}) for name in ("one", "two"))
    with pytest.raises(ScenarioError, match=r"mcp\.docs is described twice, in 'one' and in 'two'\. Keep one"):
        merge([one, two])


def test_a_python_agents_condition_follows_the_same_rules() -> None:
    assert condition({"message": {"contains": "order"}, "turn": 2}).failures(Facts("x", turn=2)) == [
        ("message.contains", "order", "x")
    ]
    for when, message in (
        ({"mesage": {}}, "when.mesage is not a key here. Accepted: message, turn, session, metadata, title, model,"),
        ({}, "when is empty and would always hold."),
        ({"message": {"matches": "["}}, "when.message.matches is not a regular expression"),
        ({"metadata": {"when": 1}}, "when.metadata.when must be text, not a number."),
        ({"turn": object()}, "when.turn is a object, which JSON does not have"),
    ):
        with pytest.raises(ScenarioError) as caught:
            condition(when)
        assert message in str(caught.value)


def test_jinja_and_yaml_are_imported_only_when_needed() -> None:
    import subprocess

    program = (
        "import sys\n"
        "from emulator.runtime.scenario_file import load\n"
        "load({'agent': [{'otherwise': [{'say': 'plain'}]}]})\n"
        "print(sorted({'jinja2', 'yaml'} & set(sys.modules)))\n"
        "load({'agent': [{'otherwise': [{'say': '{{ message }}'}]}]})\n"
        "print(sorted({'jinja2', 'yaml'} & set(sys.modules)))\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines() == ["[]", "['jinja2']"]


@pytest.mark.parametrize(
    ("pattern", "fine"), [("(a+)+$", False), ("(?:x*y*)*z", False), (r"order (\d+)", True), ("a+b+", True)]
)
def test_a_pattern_that_may_take_for_ever_is_refused(pattern: str, fine: bool) -> None:
    source = {"agent": [{"when": {"message": {"matches": pattern}}, "do": [{"say": "x"}]}]}
    if fine:
        assert load(source).rules
    else:
        with pytest.raises(ScenarioError, match="repeats a repetition"):
            load(source)
