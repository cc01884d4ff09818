"""The report: what is left over, and nothing that must not be told."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from emulator import Emulator
from tests.support import Api

if TYPE_CHECKING:
    from emulator.runtime.turn import Turn

LOOKUP = {"type": "function", "name": "lookup"}
EMPTY: dict[str, Any] = {
    "verdict": {"strict": False, "failed": [], "left": []},
    "answers": [],
    "failed_expectations": [],
    "unused_rules": [],
    "unanswered_actions": [],
    "unreached_steps": [],
    "unmatched_messages": [],
    "undeleted": {"sessions": [], "agents": [], "webhooks": [], "previews": [], "artifacts": []},
    "open_streams": [],
    "running_turns": [],
    "undelivered_webhooks": [],
    "unused_faults": [],
    "unused_outages": [],
    "agent_not_at_rest": [],
    "script_errors": [],
    "findings": [],
    "recording": [],
}


def test_nothing_is_left_over_where_nothing_was_done(gobare: Emulator) -> None:
    assert gobare.report() == EMPTY


def test_an_outage_that_was_counted_out_and_never_met_is_told(gobare: Emulator, api: Api) -> None:
    docs = {"type": "mcp", "name": "docs", "url": "http://docs.test/mcp"}
    gobare.mcp.down("docs", times=3)
    gobare.mcp.calls("docs", ["ok", "drop"])
    # Down for good, and a script whose rest does no harm: neither need be met.
    gobare.mcp.down("notes")
    gobare.mcp.script("wiki", ["up", {"state": "up"}])
    gobare.mcp.script("runbook", ["down", "up", {"tools": {}}, {"fault": "slow", "seconds": 1}])
    for _ in range(2):
        api.session({"input": "go", "agent": {"tools": [docs, docs | {"name": "runbook"}]}})

    report = gobare.report()

    assert report["unused_outages"] == [
        {"server": "docs", "connects": 1, "calls": 1},
        {"server": "runbook", "connects": 2, "calls": 0},
    ]
    assert [line["text"] for line in report["verdict"]["left"] if line["kind"] == "unused_outages"] == [
        'the MCP server "docs" was to fail for 1 connect and 1 call more',
        'the MCP server "runbook" was to fail for 2 connects more',
    ]
    gobare.mcp.up("docs")
    assert [entry["connects"] for entry in gobare.report()["unused_outages"]] == [0, 2]


def test_nothing_is_left_over_by_a_program_that_cleans_up(gobare: Emulator, api: Api) -> None:
    @gobare.agent
    async def agent(turn: Turn) -> None:
        await turn.call("lookup")
        await turn.write("/workspace/outputs/report.md", "# Report")

    session_id = api.session({"input": "go", "agent": {"tools": [LOOKUP]}})
    api.answer(session_id, api.actions(session_id)[0])
    api.delete(f"/v1/sessions/{session_id}")
    report = gobare.report()
    assert [answer["outcome"] for answer in report["answers"]] == ["answered"]
    assert report == EMPTY | {"answers": report["answers"]}
    gobare.assert_clean()


def test_calls_nobody_answered_and_the_turns_behind_them(gobare: Emulator, api: Api) -> None:
    @gobare.agent
    async def agent(turn: Turn) -> None:
        await turn.together(turn.call("lookup"), turn.ask("Which region?"))

    session_id = api.session({"input": "go", "agent": {"tools": [LOOKUP]}})
    api.say(session_id, "and then")
    created, said = (entry.request_id for entry in gobare.requests)
    report = gobare.report()
    first, second = api.turns(session_id)
    call, question = api.actions(session_id)
    assert report["unanswered_actions"] == [
        {
            "session_id": session_id,
            "turn_id": first["id"],
            "call_id": action["call_id"],
            "type": action["type"],
            "name": action["name"],
            "request_id": created,
        }
        for action in (call, question)
    ]
    assert report["running_turns"] == [
        {"session_id": session_id, "turn_id": first["id"], "number": 1, "state": "waiting", "request_id": created},
        {"session_id": session_id, "turn_id": second["id"], "number": 2, "state": "queued", "request_id": said},
    ]
    assert gobare.report() == report


def test_a_lost_call_is_still_unanswered(gobare: Emulator, api: Api) -> None:
    gobare.load({"agent": [{"otherwise": [{"call": {"function": "lookup"}}]}]})
    session_id = api.session({"input": "go", "agent": {"tools": [LOOKUP]}})
    lost = gobare.lose_calls(session_id)
    assert [action["call_id"] for action in gobare.report()["unanswered_actions"]] == lost


def test_steps_no_turn_has_begun(gobare: Emulator, api: Api) -> None:
    ask = {"when": {"message": {"contains": "deploy"}}, "do": [{"ask": {"question": "Where?"}}, {"say": "Done."}]}
    gobare.load({"scenario": "ops", "agent": [ask, {"otherwise": [{"say": "No."}]}]})
    unreached = [
        {"scenario": "ops", "step": f"agent[0].do[{n}]", "verb": verb, "required": False}
        for n, verb in enumerate(("ask", "say"))
    ]
    other = {"scenario": "ops", "step": "agent[1].otherwise[0]", "verb": "say", "required": False}
    assert gobare.report()["unreached_steps"] == [*unreached, other]
    session_id = api.session({"input": "hello"})
    assert gobare.report()["unreached_steps"] == unreached
    api.say(session_id, "deploy")
    assert gobare.report()["unreached_steps"] == unreached[1:]
    gobare.answer("eu")
    assert gobare.report()["unreached_steps"] == []


def test_messages_no_rule_was_meant_for(gobare: Emulator, api: Api) -> None:
    gobare.load({"agent": [{"when": {"message": {"contains": "order"}}, "do": [{"say": "x"}]}]})
    session_id = api.session({"input": "weather, with gbr_pat_12345"})
    assert gobare.report()["unmatched_messages"] == [
        {
            "session_id": session_id,
            "turn_id": api.turns(session_id)[0]["id"],
            "message": "weather, with [withheld]",
            "request_id": gobare.requests[0].request_id,
            "rules": [
                {
                    "rule": "scenario 'scenario', agent[0]",
                    "reason": 'message.contains: wanted "order", was "weather, with [withheld]"',
                    "used_up": False,
                    "times": None,
                    "used": 0,
                    "failed": [
                        {"condition": "message.contains", "wanted": "order", "actual": "weather, with [withheld]"}
                    ],
                }
            ],
        }
    ]


def test_what_was_made_and_not_deleted(gobare: Emulator, api: Api) -> None:
    @gobare.agent
    async def agent(turn: Turn) -> None:
        await turn.write("/workspace/outputs/report.md", "# Report")

    other = gobare.tokens.mint(organization="acme")
    first = api.session({"title": "one", "input": "go"})
    second = api.session(token=other.token)
    (artifact,) = gobare.socket.deployment.world.organization("default").session(first).artifacts
    undeleted = gobare.report()["undeleted"]
    ids = [entry.request_id for entry in gobare.requests]
    assert undeleted["sessions"] == [
        {"id": first, "title": "one", "organization": "default", "request_id": ids[0], "forked_from": None},
        {"id": second, "title": None, "organization": "acme", "request_id": ids[1], "forked_from": None},
    ]
    assert undeleted["artifacts"] == [{"id": artifact.id, "session_id": first, "path": "/workspace/outputs/report.md"}]


def test_an_address_that_is_still_published(gobare: Emulator, api: Api) -> None:
    session_id = api.session()
    session = gobare.socket.deployment.world.organization("default").session(session_id)
    session.preview.published_url = "https://s-1.gobare.dev"
    previews = gobare.report()["undeleted"]["previews"]
    assert previews == [{"session_id": session_id, "url": "https://s-1.gobare.dev"}]


def test_streams_that_are_still_read(gobare: Emulator) -> None:
    api = Api(gobare, "in-process")
    session_id = api.session()
    token_id = api.get(f"/v1/sessions/{session_id}").json["created_by_token"]
    with api.stream("/v1/events"), api.stream(f"/v1/sessions/{session_id}/events"):
        ids = [entry.request_id for entry in gobare.requests]
        assert gobare.report()["open_streams"] == [
            {"organization": "default", "session_id": session_id, "token_id": token_id, "request_id": ids[-1]},
            {"organization": "default", "session_id": None, "token_id": token_id, "request_id": ids[-2]},
        ]
    assert gobare.report()["open_streams"] == []


def test_replies_that_did_not_wait_for_the_agent(gobare: Emulator, api: Api) -> None:
    gobare.settings.update(rest_seconds=0.05)
    go = asyncio.Event()

    @gobare.agent
    async def agent(turn: Turn) -> None:
        await go.wait()

    answer = api.post("/v1/sessions", {"input": "go"})
    session_id = answer.json["id"]
    turn_id = api.turns(session_id)[0]["id"]
    report = gobare.report()
    assert report["agent_not_at_rest"] == [
        {"session_id": session_id, "turn_id": turn_id, "request_id": answer.headers["x-request-id"]}
    ]
    running = {"session_id": session_id, "turn_id": turn_id, "number": 1, "state": "running"}
    assert report["running_turns"] == [running | {"request_id": answer.headers["x-request-id"]}]
    gobare.loop.loop.call_soon_threadsafe(go.set)
    assert gobare.settle()


def test_errors_of_scripts_without_the_tokens_in_them() -> None:
    # Not the fixture's: that one fails the test.
    with Emulator() as gobare:

        @gobare.agent
        async def agent(turn: Turn) -> None:
            raise RuntimeError("could not use gbr_pat_12345")

        session_id = Api(gobare).session({"input": "go"})
        (error,) = gobare.report()["script_errors"]
    assert error["session_id"] == session_id
    assert error["message"] == "RuntimeError: could not use [withheld]"
    assert error["where"].startswith("test_report.py:")


def test_an_agent_that_held_the_loop_is_a_script_error() -> None:
    with Emulator() as gobare:
        gobare.socket.deployment.engine.blocked.append("The agent blocks the event loop: sleep('gbr_pat_12345')")
        (error,) = gobare.report()["script_errors"]
    assert error == {
        "session_id": None,
        "turn_id": None,
        "request_id": None,
        "where": "the event loop",
        "message": "The agent blocks the event loop: sleep('[withheld]')",
    }


@pytest.mark.parametrize("where", ["title", "input"])
def test_no_token_of_a_program_is_reported(where: str, gobare: Emulator, api: Api) -> None:
    gobare.load({"agent": [{"otherwise": [{"ask": {"question": "{{ message }}"}}]}]})
    api.session({"input": "go", where: "use gbr_pat_12345"})
    assert "gbr_pat_12345" not in json.dumps(gobare.report())
