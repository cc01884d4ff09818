"""The verdict and the timeline: what is told of a test at its end."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from emulator import Emulator
from tests.support import Api

if TYPE_CHECKING:
    from emulator.runtime.turn import Turn

LOOKUP = {"type": "function", "name": "lookup"}


def kinds(lines: list[dict[str, str]]) -> list[str]:
    return [line["kind"] for line in lines]


def test_what_was_left_over_is_no_failure_unless_it_is_strict(gobare: Emulator, api: Api) -> None:
    session_id = api.session({"input": "hello", "title": "one"})
    made = gobare.requests[0].request_id
    line = {"kind": "sessions", "text": f'session {session_id} ("one") was not deleted; request {made} made it'}
    assert gobare.report()["verdict"] == {"strict": False, "failed": [], "left": [line]}
    gobare.settings.update(strict=True)
    assert gobare.report()["verdict"] == {"strict": True, "failed": [line], "left": []}
    gobare.settings.update(strict=False)


def test_everything_that_can_be_left_over_is_told_by_its_kind(gobare: Emulator, api: Api) -> None:
    gobare.load(
        {
            "scenario": "s",
            "agent": [
                {"when": {"message": {"contains": "go"}}, "do": [{"call": {"function": "lookup"}}, {"say": "x"}]},
                {"when": {"message": {"contains": "bye"}}, "times": 2, "do": [{"preview": 3000}]},
            ],
        }
    )
    api.post("/v1/webhooks", {"url": "https://hooks.example.com/x?key=canary"})
    session_id = api.session({"input": "go", "agent": {"tools": [LOOKUP]}})
    api.say(session_id, "and then")
    other = api.session({"input": "bye"})
    fork = api.post(f"/v1/sessions/{other}/fork")
    assert fork.status == 201, fork.raw
    api.session({"input": "what?"})
    api.post("/v1/agents", {"name": "helper", "instructions": "Be brief."})
    preview = gobare.socket.deployment.world.organization("default").session(other).preview
    preview.published_url = "https://s-1.gobare.dev"
    with Api(gobare, "in-process").stream(f"/v1/sessions/{session_id}/events"):
        left = gobare.report()["verdict"]["left"]
    found = set(kinds(left))
    assert {
        "unmatched_messages",
        "unanswered_actions",
        "unreached_steps",
        "unused_rules",
        "running_turns",
        "open_streams",
        "sessions",
        "forks",
        "agents",
        "webhooks",
        "previews",
        "undelivered_webhooks",
    } <= found
    texts = "\n".join(line["text"] for line in left)
    assert f'nobody answered the call of "lookup" [{api.actions(session_id)[0]["call_id"]}]' in texts
    assert f"fork {fork.json['id']} of {other} was not deleted" in texts
    assert "scenario 's', agent[1] answered 1 of its 2 messages" in texts
    assert "scenario 's', agent[0].do[1] (say) was never reached" in texts
    assert 'agent[1]: message.contains: wanted "bye", was "what?"' in texts
    assert "is still queued" in texts
    assert f"turn.completed of session {other} did not reach https://hooks.example.com/x; the delivery " in texts
    assert "is still waiting for somebody outside" in texts
    assert "canary" not in texts


def test_who_answered_what_when_is_told_though_the_session_is_gone(gobare: Emulator, api: Api) -> None:
    @gobare.agent
    async def agent(turn: Turn) -> None:
        await turn.call("lookup")
        await turn.ask("Where?")

    session_id = api.session({"input": "go", "agent": {"tools": [LOOKUP]}})
    (call,) = api.actions(session_id)
    answered = api.answer(session_id, call)
    late = api.answer(session_id, call)
    gobare.answer("eu")
    api.delete(f"/v1/sessions/{session_id}")
    first, second = gobare.report()["answers"]
    by = {"by": "api", "token_id": gobare.requests[0].token_id}
    assert {name: first[name] for name in ("session_id", "call_id", "type", "name", "outcome", "answered_by")} == {
        "session_id": session_id,
        "call_id": call["call_id"],
        "type": "function_call",
        "name": "lookup",
        "outcome": "answered",
        "answered_by": "api",
    }
    assert (first["token_id"], first["request_id"]) == (by["token_id"], answered.headers["x-request-id"])
    assert first["asked_at"] < first["at"]
    keys = ("by", "token_id", "request_id", "outcome")
    assert [{key: tried[key] for key in keys} for tried in first["attempts"]] == [
        {**by, "request_id": answered.headers["x-request-id"], "outcome": "accepted"},
        {**by, "request_id": late.headers["x-request-id"], "outcome": "already_resolved"},
    ]
    assert (second["outcome"], second["answered_by"], second["request_id"]) == ("answered", "console", None)


def test_how_an_action_ended_that_nobody_answered(gobare: Emulator, api: Api) -> None:
    gobare.load({"agent": [{"otherwise": [{"call": {"function": "lookup"}}, {"ask": {"question": "Where?"}}]}]})
    session_id = api.session({"input": "go", "agent": {"tools": [{**LOOKUP, "timeout_seconds": 30}]}})
    (open_one,) = gobare.report()["answers"]
    assert (open_one["outcome"], open_one["at"]) == ("open", None)
    gobare.clock.advance(31)
    late = api.answer(session_id, {"turn_id": open_one["turn_id"], "call_id": open_one["call_id"]})
    assert late.json["outcome"] == "not_delivered"
    api.send(session_id, {"type": "input.cancel"})
    expired, dropped = gobare.report()["answers"]
    assert (expired["outcome"], expired["answered_by"]) == ("expired", None)
    assert [tried["outcome"] for tried in expired["attempts"]] == ["not_delivered"]
    assert (dropped["outcome"], dropped["answered_by"]) == ("dropped", None)
    assert dropped["at"] is not None
    other = api.session({"input": "go", "agent": {"tools": [LOOKUP]}})
    api.delete(f"/v1/sessions/{other}")
    assert gobare.report()["answers"][-1]["outcome"] == "dropped"


def test_an_answer_to_a_lost_call_is_told_as_not_delivered(gobare: Emulator, api: Api) -> None:
    gobare.load({"agent": [{"otherwise": [{"call": {"function": "lookup", "lose": True}}]}]})
    session_id = api.session({"input": "go", "agent": {"tools": [LOOKUP]}})
    api.answer(session_id, api.actions(session_id)[0])
    (answer,) = gobare.report()["answers"]
    assert (answer["outcome"], answer["answered_by"]) == ("lost", None)
    assert answer["at"] is not None
    assert [tried["outcome"] for tried in answer["attempts"]] == ["not_delivered"]


def test_an_action_the_agent_gave_up_is_withdrawn_for_good(gobare: Emulator, api: Api) -> None:
    @gobare.agent
    async def agent(turn: Turn) -> None:
        async def boom() -> None:
            await turn.wait(5)
            raise LookupError

        try:
            await turn.together(turn.ask("Where?"), boom())
        except LookupError:
            await turn.say("never mind")

    api.session({"input": "go"})
    gobare.clock.advance(6)
    (answer,) = gobare.report()["answers"]
    assert answer["outcome"] == "withdrawn"
    assert answer["at"] is not None


def test_requests_and_events_stand_in_the_order_they_happened(gobare: Emulator, api: Api) -> None:
    gobare.load({"agent": [{"otherwise": [{"call": {"function": "lookup"}}, {"say": "done"}]}]})
    session_id = api.session({"input": "go", "agent": {"tools": [LOOKUP]}})
    api.answer(session_id, api.actions(session_id)[0])
    other = api.session({"input": "else", "agent": {"tools": [LOOKUP]}})
    told = [
        entry["request"]["path"].split("/")[-1] if entry["request"] is not None else entry["event"]["type"]
        for entry in gobare.timeline(session_id)
    ]
    assert told == [
        "sessions",
        "user.message",
        "sandbox.created",
        "turn.started",
        "tool.required",
        session_id,
        "events",
        "tool.resolved",
        "agent.message",
        "turn.ended",
    ]
    whole = gobare.timeline()
    assert [entry["at"] for entry in whole] == sorted(entry["at"] for entry in whole)
    assert {entry["session_id"] for entry in whole} == {session_id, other}
    assert Api(gobare).get(f"/_emulator/timeline?session_id={session_id}", token=None).json["session_id"] == session_id
    assert api.get("/_emulator/timeline?session_id=nobody", token=None).code == "not_found"
    api.delete(f"/v1/sessions/{session_id}")
    # Nothing but the request that made it is told of less.
    gone = gobare.timeline(session_id)
    assert [entry["event"] for entry in gone if entry["event"]] == [e["event"] for e in whole if _of(e, session_id)]
    assert [entry["event"] for entry in gobare.timeline() if entry["event"]] == [
        e["event"] for e in whole if e["event"]
    ]
    assert all(event["session_id"] == other for event in gobare.events())


def _of(entry: dict[str, Any], session_id: str) -> bool:
    return entry["event"] is not None and entry["session_id"] == session_id


def test_no_secret_is_in_a_report_or_a_timeline() -> None:
    with Emulator() as gobare:
        api = Api(gobare)
        gobare.load(
            {
                "agent": [
                    {
                        "when": {"message": {"contains": "go"}, "metadata": {"api_key": "canary-m"}},
                        "do": [
                            {"call": {"function": "lookup", "expect": {"output": {"api_key": "canary-e", "n": 1}}}},
                            {"call": {"function": "lookup", "expect": {"matches": "^x"}}},
                            {"ask": {"question": "Where?", "expect": {"answer": "gbr_pat_canary-q"}}},
                        ],
                    }
                ]
            }
        )
        mcp = {"type": "mcp", "name": "docs", "url": "https://u:canary-u@x.example/mcp?k=canary-k"}
        secret: dict[str, Any] = {"authorization": "canary-a", "headers": {"x-key": "canary-h"}}
        created = api.post(
            "/v1/sessions",
            {"input": "go", "metadata": {"api_key": "canary-m"}, "agent": {"tools": [LOOKUP, {**mcp, **secret}]}},
        )
        assert created.status == 201, created.raw
        session_id = created.json["id"]
        for _ in range(2):
            api.answer(session_id, api.actions(session_id)[0], json.dumps({"api_key": "canary-o", "n": 2}))
        gobare.answer("gbr_pat_canary-w")
        api.session({"input": "gone, gbr_pat_canary-i", "metadata": {"api_key": "canary-n"}})
        report = gobare.report()
        assert len(report["failed_expectations"]) == 3
        assert len(report["unmatched_messages"]) == 1
        assert "canary" not in json.dumps(report)
        told = "\n".join(line for line in str(gobare.timeline()).splitlines() if "tool_result" not in line)
        for kind in ("canary-a", "canary-h", "canary-u", "canary-k", "canary-m", "canary-n", "gbr_pat"):
            assert kind not in told


@pytest.mark.parametrize("verb", ["PUT", "POST", "DELETE"])
def test_a_timeline_is_only_read(verb: str, api: Api) -> None:
    assert api.request(verb, "/_emulator/timeline", token=None).status == 405
