"""The shape of a scenario file, and the JSON Schema published for it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator
from pydantic import ValidationError

from emulator.wire.scenario import ScenarioFile, scenario_schema
from emulator.wire.steps import PARALLEL, VERBS

FIXTURES = Path(__file__).parents[2] / "fixtures"
STEPS: list[dict[str, Any]] = [
    {"say": "Hello"},
    {"think": "Hm"},
    {"call": {"function": "f"}},
    {"call": {"function": "f", "arguments": {"function": "g", "n": [1, None]}, "as": "r", "lose": True}},
    {"ask": {"question": "Which?", "options": ["a"], "allow_freeform": False, "as": "answer"}},
    {"approve": {"tool": "bash", "args": {"command": "ls"}, "sensitive": True, "as": "ok"}},
    {"use": {"tool": "bash", "args": {}, "summary": "s", "is_error": True, "exit_code": 2}},
    {"mcp": {"server": "docs", "tool": "search", "arguments": {"q": "x"}, "as": "found"}},
    {"write": {"path": "/workspace/outputs/a.md", "content": ""}},
    {"write": {"path": "/workspace/outputs/a.bin", "content": "x", "size": 209_715_201}},
    {"delete": "a.md"},
    {"delete": {"path": "a.md"}},
    {"todos": [{"label": "x", "status": "done"}]},
    {"todos": []},
    {"compact": {"before": 182000, "after": 41000}},
    {"preview": 3000},
    {"preview": {"port": 3000, "body": "<h1>Hi</h1>"}},
    {"together": [{"call": {"function": "a"}}, {"wait": 1}]},
    {"wait": 0},
    {"wait": 2.5},
    {"fail": {"code": "provider_error", "message": "502"}},
]
BAD_STEPS: list[Any] = [
    "say",
    {},
    {"say": "x", "think": "y"},
    {"shout": "x"},
    {"say": ""},
    {"say": 5},
    {"say": None},
    {"call": {}},
    {"call": {"function": "f", "args": {}}},
    {"call": {"function": "f", "as": None}},
    {"call": {"function": "f", "lose": "yes"}},
    {"ask": {"question": "?", "options": "a"}},
    {"use": {"tool": "bash", "exit_code": 1.5}},
    {"use": {"tool": "bash", "as": 1}},
    {"delete": {"path": ""}},
    {"todos": [{"label": "x"}]},
    {"preview": 0},
    {"preview": 65536},
    {"preview": True},
    {"preview": "3000"},
    {"together": []},
    {"together": [{"say": "x"}]},
    {"together": [{"together": [{"wait": 1}]}]},
    {"wait": -1},
    {"wait": "5"},
    {"wait": True},
]
SERVERS: list[dict[str, Any]] = [
    {},
    {"state": "down", "reason": "gone", "times": 2},
    {"fault": "slow", "seconds": 2.5},
    {"script": ["up", "down", "refuse", {"state": "down"}, {"fault": "hang", "tools": {"a": {"text": "x"}}}]},
    {"calls": ["ok", "drop", {"fault": "error", "tool": "a", "text": "no"}, {"tools": {}}], "tools": {"a": {}}},
]
BAD_DOCUMENTS: list[Any] = [
    {"agents": []},
    {"scenario": ""},
    {"agent": {}},
    {"agent": [{"when": {"turn": 1}}]},
    {"agent": [{"do": [{"say": "x"}]}]},
    {"agent": [{"when": {}, "do": [{"say": "x"}]}]},
    {"agent": [{"when": {"message": {}}, "do": [{"say": "x"}]}]},
    {"agent": [{"when": {"message": "order"}, "do": [{"say": "x"}]}]},
    {"agent": [{"when": {"title": None}, "do": [{"say": "x"}]}]},
    {"agent": [{"when": {"turn": 0}, "do": [{"say": "x"}]}]},
    {"agent": [{"when": {"metadata": {"run": 7}}, "do": [{"say": "x"}]}]},
    {"agent": [{"when": {"turn": 1}, "do": []}]},
    {"agent": [{"otherwise": [{"say": "x"}], "when": {"turn": 1}}]},
    {"mcp": {"docs": {"state": "offline"}}},
    {"mcp": {"docs": {"state": "down", "times": 0}}},
    {"mcp": {"docs": {"script": []}}},
    {"mcp": {"docs": {"script": ["drop"]}}},
    {"mcp": {"docs": {"script": [{"fault": "up"}]}}},
    {"mcp": {"docs": {"fault": "drop"}}},
    {"mcp": {"docs": {"fault": "slow", "seconds": -1}}},
    {"mcp": {"docs": {"calls": []}}},
    {"mcp": {"docs": {"calls": ["up"]}}},
    {"mcp": {"docs": {"calls": [{"fault": "drop", "tool": ""}]}}},
    {"mcp": {"docs": {"calls": [{"tools": {"search": {"reply": "x"}}}]}}},
    {"mcp": {"": {}}},
    {"mcp": {"docs": {"tools": {"search": {"reply": "x"}}}}},
]


def of(step: Any) -> dict[str, Any]:
    return {"agent": [{"otherwise": [step]}]}


@pytest.fixture(scope="module")
def validator() -> Draft202012Validator:
    return Draft202012Validator(scenario_schema())


def test_the_published_schema_is_a_valid_schema() -> None:
    schema = scenario_schema()
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    Draft202012Validator.check_schema(schema)
    json.dumps(schema, allow_nan=False)


def test_every_object_of_the_schema_is_closed_and_everything_is_described() -> None:
    for name, part in [("file", scenario_schema()), *scenario_schema()["$defs"].items()]:
        if part.get("type") == "object":
            assert part["additionalProperties"] is False, name
            assert part["description"], name


@pytest.mark.parametrize("step", STEPS, ids=json.dumps)
def test_every_verb_is_accepted_by_the_shape_and_by_the_schema(step: Any, validator: Draft202012Validator) -> None:
    ScenarioFile.model_validate(of(step))
    validator.validate(of(step))


@pytest.mark.parametrize("step", BAD_STEPS, ids=json.dumps)
def test_a_bad_step_is_refused_by_the_shape_and_by_the_schema(step: Any, validator: Draft202012Validator) -> None:
    with pytest.raises(ValidationError):
        ScenarioFile.model_validate(of(step))
    assert not validator.is_valid(of(step))


@pytest.mark.parametrize("document", BAD_DOCUMENTS, ids=json.dumps)
def test_a_bad_document_is_refused_by_the_shape_and_by_the_schema(
    document: Any, validator: Draft202012Validator
) -> None:
    with pytest.raises(ValidationError):
        ScenarioFile.model_validate(document)
    assert not validator.is_valid(document)


@pytest.mark.parametrize("server", SERVERS, ids=json.dumps)
def test_what_is_said_of_a_server_is_accepted_by_the_shape_and_by_the_schema(
    server: Any, validator: Draft202012Validator
) -> None:
    ScenarioFile.model_validate({"mcp": {"docs": server}})
    validator.validate({"mcp": {"docs": server}})


@pytest.mark.parametrize("path", sorted(FIXTURES.glob("*.yaml")) + sorted(FIXTURES.glob("flaky_docs.json")), ids=str)
def test_the_shipped_scenarios_follow_the_published_schema(path: Path, validator: Draft202012Validator) -> None:
    validator.validate(yaml.safe_load(path.read_text(encoding="utf-8")))


def test_an_empty_document_is_a_scenario_that_does_nothing() -> None:
    assert ScenarioFile.model_validate({}).agent == []


def test_the_verbs_are_those_of_the_steps() -> None:
    written = {next(iter(step)) for step in STEPS}
    assert written == set(VERBS)
    assert set(PARALLEL) < set(VERBS)
