"""The agent that answers when nothing was scripted."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from emulator.runtime.default_agent import content_of, default_agent, paths_in, port_in
from emulator.runtime.run import CallResult
from tests.runtime.recording_turn import RecordedSession, RecordingTurn

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"status": {"enum": ["ok", "bad"]}, "count": {"type": "integer", "minimum": 3}},
    "required": ["status", "count"],
    "additionalProperties": False,
}
TEXT = {"format": {"type": "json_schema", "schema": SCHEMA}}
LOOKUP = {
    "type": "function",
    "name": "lookup_order",
    "parameters": {"type": "object", "properties": {"order_id": {"type": "string"}}, "required": ["order_id"]},
}


def answered(message: str, **session: Any) -> RecordingTurn:
    turn = RecordingTurn(message=message, session=RecordedSession(**session))
    asyncio.run(default_agent(turn))
    return turn


def test_a_message_is_quoted_in_one_reply() -> None:
    turn = answered("Hello there")
    assert turn.done == [("say", "You said: “Hello there”.")]


def test_two_runs_answer_alike() -> None:
    message = "Write /workspace/outputs/a.json and preview(3000)"
    assert answered(message, tools=[LOOKUP]).done == answered(message, tools=[LOOKUP]).done


def test_a_long_message_is_quoted_in_part() -> None:
    assert len(answered("word " * 10_000).did("say")[0][0]) < 300


def test_each_declared_function_is_called_once_with_arguments_of_its_schema() -> None:
    tools = [LOOKUP, {"type": "mcp", "name": "docs"}, {"type": "web_search"}, {"type": "function", "name": "bare"}]
    turn = answered("Hello", tools=tools)
    assert turn.did("call") == [("lookup_order", {"order_id": "example"}, False), ("bare", {}, False)]
    assert "lookup_order answered: {" in turn.did("say")[0][0]


@pytest.mark.parametrize("parameters", [{"type": "array"}, {"type": "banana"}, {"$ref": "#"}, {"type": "string"}])
def test_a_function_with_nonsense_for_parameters_is_called_with_an_object(parameters: dict[str, Any]) -> None:
    turn = answered("Hello", tools=[{"type": "function", "name": "odd", "parameters": parameters}])
    assert turn.did("call") == [("odd", {}, False)]


def test_a_function_that_failed_is_told() -> None:
    turn = RecordingTurn(
        session=RecordedSession(tools=[LOOKUP]), replies=deque([CallResult(False, None, "no such order")])
    )
    asyncio.run(default_agent(turn))
    assert "lookup_order failed: no such order." in turn.did("say")[0][0]


@pytest.mark.parametrize(
    ("message", "paths"),
    [
        ("Write /workspace/outputs/report.md about this repo.", ["/workspace/outputs/report.md"]),
        ("Write /workspace/outputs/report.md.", ["/workspace/outputs/report.md"]),
        ("(see /workspace/outputs/a.txt), then `/workspace/outputs/b.csv`!", None),
        ('"/workspace/outputs/a.json"; **/workspace/outputs/dir/b.md**?', None),
        ("/workspace/outputs/a.md /workspace/outputs/a.md", ["/workspace/outputs/a.md"]),
        ("/workspace/outputs/../secret and /workspace/outputs/a/../b.md", []),
        ("/workspace/outputs/ and /workspace/outputs and /workspace/outputs/dir/", []),
        ("https://host/workspace/outputs/a.md ../workspace/outputs/b.md", []),
        ("/workspace/outputs/v1.2/notes…", ["/workspace/outputs/v1.2/notes"]),
        ("nothing", []),
    ],
)
def test_the_paths_a_message_names_are_found_without_the_punctuation(message: str, paths: list[str] | None) -> None:
    if paths is None:
        assert len(paths_in(message)) == 2
        assert all(path[-1].isalpha() for path in paths_in(message))
    else:
        assert paths_in(message) == paths


def test_a_message_that_names_very_many_paths_gets_some_of_them() -> None:
    assert len(paths_in(" ".join(f"/workspace/outputs/{n}.md" for n in range(500)))) == 20


def test_files_are_written_before_the_reply_that_names_them() -> None:
    turn = answered("Write /workspace/outputs/report.md and /workspace/outputs/data.json, please")
    assert [entry[0] for entry in turn.done] == ["write", "write", "say"]
    assert turn.done[0][1] == "/workspace/outputs/report.md"
    assert turn.done[0][2].startswith("# ")
    json.loads(turn.done[1][2])
    assert "I wrote /workspace/outputs/report.md. I wrote /workspace/outputs/data.json." in turn.did("say")[0][0]


@pytest.mark.parametrize("ending", ["json", "jsonl", "md", "txt", "csv", "html", "yaml", "bin", ""])
def test_the_content_of_a_file_follows_its_ending(ending: str) -> None:
    content = content_of(f"/workspace/outputs/a.{ending}", 'say "hi" <b>\n&', None)
    assert content.endswith("\n")
    if ending.startswith("json"):
        assert json.loads(content) == {"message": 'say "hi" <b> &'}
    if ending == "csv":
        assert content == 'name,value\nmessage,"say ""hi"" <b> &"\n'
    if ending == "html":
        assert "&lt;b&gt; &amp;" in content


def test_json_conforms_to_the_schema_the_session_asks_for() -> None:
    turn = answered("Write /workspace/outputs/a.json", text=TEXT)
    for text in (turn.did("write")[0][1], turn.did("say")[0][0]):
        Draft202012Validator(SCHEMA).validate(json.loads(text))


@pytest.mark.parametrize("text", [None, {}, {"verbosity": "low"}, {"format": {"type": "json_schema"}}])
def test_without_a_schema_the_reply_is_prose(text: Any) -> None:
    assert answered("Hello", text=text).did("say") == [("You said: “Hello”.",)]


@pytest.mark.parametrize(
    ("message", "port"),
    [
        ("Serve it and call preview(3000).", 3000),
        ("call preview( port=8080 )", 8080),
        ("Start a server on port 3000 and give me a preview", 3000),
        ("a preview, port: 5173", 5173),
        ("call `preview` with port `4000`", 4000),
        ("preview(0)", None),
        ("preview(99999)", None),
        ("listen on port 3000", None),
        ("a preview of 3000 words", None),
        ("", None),
    ],
)
def test_a_preview_is_asked_for_by_its_port(message: str, port: int | None) -> None:
    assert port_in(message) == port
    assert answered(message).did("preview") == ([(port, None)] if port else [])
