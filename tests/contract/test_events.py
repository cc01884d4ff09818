"""Events (contract §9): what each type of event says, and in which order they come."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from unittest.mock import ANY

import pytest

from tests.contract.steps import function, parked, payloads, replying, session_with, types

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from emulator import Turn
    from tests.support import Api

    Play = Callable[[Turn], Coroutine[Any, Any, None]]

DOCS = {"type": "mcp", "name": "docs", "url": "https://mcp.example.com/mcp"}


def played(api: Api, play: Play, *tools: dict[str, Any], answers: int = 0, **agent: Any) -> str:
    """A session whose agent played, its actions answered with success so many times."""
    api.emulator.agent(play)
    session = session_with(api, *tools, **agent)
    assert api.say(session, "Go.").status == 202
    for _ in range(answers):
        api.send(session, replying(api.actions(session)[0]))
    return session


# Types


async def everything(turn: Turn) -> None:
    """Do most of what makes an event."""
    await turn.say("On it.")
    await turn.use("write", {"path": "/workspace/a"}, "Successfully wrote 5 bytes")
    await turn.use("bash", {"command": "ls"}, "a b", is_error=True, exit_code=2)
    await turn.compact(182_000, 41_000)
    await turn.todos([{"label": "Read the alert", "status": "done"}, {"label": "Write", "status": "pending"}])
    await turn.write("src/a.py", "1")
    await turn.write("/workspace/src/a.py", "2")
    await turn.delete("src/a.py")
    await turn.write("/workspace/outputs/report.md", "# Report")
    await turn.preview(3000)
    await turn.approve("bash", {"command": "systemctl restart export"}, sensitive=True)
    await turn.ask("Roll back or patch?", ["roll back", "patch"], allow_freeform=False)
    await turn.ask("Why?")
    await turn.call("lookup_order", order_id="A-4471")
    await turn.fail("provider_error", "the model provider returned 502")


def changed(path: str, kind: str) -> dict[str, str]:
    return {"path": f"/workspace/{path}", "changeType": kind, "kind": kind}


PAYLOADS: dict[str, list[dict[str, Any]]] = {
    "user.message": [{"text": "Go."}],
    "sandbox.created": [{"state": "running"}],
    "turn.started": [{"turnId": ANY}],
    "turn.ended": [{"turnId": ANY}],
    "agent.message": [{"text": "On it."}],
    "agent.tool_call": [
        {"toolCallId": ANY, "toolName": "write", "args": {"path": "/workspace/a"}},
        {"toolCallId": ANY, "toolName": "bash", "args": {"command": "ls"}},
    ],
    "agent.tool_result": [
        {
            "toolCallId": ANY,
            "toolName": "write",
            "isError": False,
            "cancelled": False,
            "summary": "Successfully wrote 5 bytes",
        },
        {"toolCallId": ANY, "toolName": "bash", "isError": True, "cancelled": False, "summary": "a b", "exitCode": 2},
    ],
    "agent.compaction": [{"before": 182_000, "after": 41_000}],
    "agent.todos": [
        {"items": [{"label": "Read the alert", "status": "done"}, {"label": "Write", "status": "pending"}]}
    ],
    "agent.error": [{"message": "the model provider returned 502"}],
    "file.changed": [
        changed("src/a.py", "created"),
        changed("src/a.py", "modified"),
        changed("src/a.py", "deleted"),
        changed("outputs/report.md", "created"),
    ],
    "preview.ready": [{"port": 3000, "url": ANY}],
    "approval.requested": [
        {"toolCallId": ANY, "name": "bash", "args": {"command": "systemctl restart export"}, "sensitive": True}
    ],
    "approval.resolved": [{"toolCallId": ANY, "approved": True}],
    "question.asked": [
        {
            "toolCallId": ANY,
            "question": "Roll back or patch?",
            "options": ["roll back", "patch"],
            "allowFreeform": False,
        },
        {"toolCallId": ANY, "question": "Why?", "allowFreeform": True},
    ],
    "question.answered": [{"toolCallId": ANY, "answer": "eu"}, {"toolCallId": ANY, "answer": "eu"}],
    "tool.required": [{"toolCallId": ANY, "name": "lookup_order", "arguments": {"order_id": "A-4471"}}],
    "tool.resolved": [{"toolCallId": ANY, "name": "lookup_order", "success": True}],
    "artifact.created": [{"id": ANY, "path": "/workspace/outputs/report.md", "size_bytes": 8, "turn_id": ANY}],
}


@pytest.mark.behaviour("events.types", "events.file-kind", "events.artifact", "events.sandbox")
@pytest.mark.parametrize("event_type", list(PAYLOADS))
def test_an_event_says_exactly_this(api: Api, event_type: str) -> None:
    session = played(api, everything, function(), answers=4)
    assert payloads(api, session, event_type) == PAYLOADS[event_type]


@pytest.mark.behaviour("events.types")
def test_ids_in_events_lead_to_what_they_name(api: Api) -> None:
    session = played(api, everything, function(), answers=4)
    (turn,) = api.turns(session)
    by_call: dict[str, list[str]] = {}
    for event in api.events(session):
        payload = event["payload"]
        if "toolCallId" in payload:
            assert re.fullmatch(r"call_[0-9a-f]{8}", payload["toolCallId"])
            by_call.setdefault(payload["toolCallId"], []).append(event["type"])
        assert payload.get("turnId", turn["id"]) == turn["id"]
        assert payload.get("turn_id", turn["id"]) == turn["id"]
    assert list(by_call.values()) == [
        ["agent.tool_call", "agent.tool_result"],
        ["agent.tool_call", "agent.tool_result"],
        ["approval.requested", "approval.resolved"],
        ["question.asked", "question.answered"],
        ["question.asked", "question.answered"],
        ["tool.required", "tool.resolved"],
    ]
    (ready,) = payloads(api, session, "preview.ready")
    shown = api.get(f"/v1/sessions/{session}").json["preview"]
    assert (shown["url"], shown["port"]) == (ready["url"], 3000)
    assert re.fullmatch(r"https://p-[0-9a-f]{12}\.gobare\.dev", ready["url"])
    (artifact,) = payloads(api, session, "artifact.created")
    assert re.fullmatch(r"art_[0-9a-f]{16}", artifact["id"])


@pytest.mark.behaviour("events.types")
def test_every_persisted_event_reads_alike_on_the_stream_and_by_its_type(api: Api) -> None:
    session = played(api, everything, function(), answers=4)
    last = len(api.events(session))
    with api.stream(f"/v1/sessions/{session}/events?last_event_id=0") as frames:
        streamed = [frame.data for frame in (frames.event() for _ in range(last)) if frame is not None]
    assert streamed == api.events(session)
    assert [data["type"] for data in streamed] == [data["internal_type"] for data in streamed]
    assert {data["object"] for data in streamed} == {"event"}


@pytest.mark.behaviour("events.types")
def test_queue_and_context_events_say_exactly_this(api: Api) -> None:
    session, action = parked(api)
    api.say(session, "Also check the retry queue.")
    api.send(session, {"type": "input.context", "content": "The rollback is merged."})
    api.answer(session, action)
    assert payloads(api, session, "message.queued") == [{"text": "Also check the retry queue.", "position": 1}]
    assert payloads(api, session, "message.dequeued") == [{"text": "Also check the retry queue."}]
    assert payloads(api, session, "user.context") == [{"text": "The rollback is merged."}]


@pytest.mark.behaviour("events.sandbox")
def test_a_sandbox_is_paused_when_idle_and_resumed_by_the_next_message(api: Api) -> None:
    session = api.session()
    api.say(session, "Hello")
    api.emulator.clock.advance(299)
    assert "sandbox.paused" not in types(api.events(session))
    api.emulator.clock.advance(1)
    assert payloads(api, session, "sandbox.paused") == [{"state": "paused"}]
    api.say(session, "Again")
    assert payloads(api, session, "sandbox.resumed") == [{"state": "running"}]
    assert payloads(api, session, "sandbox.created") == [{"state": "running"}]
    assert types(api.events(session))[5:9] == ["sandbox.paused", "user.message", "sandbox.resumed", "turn.started"]


@pytest.mark.behaviour("events.recovery-failed")
@pytest.mark.gobare(workspace_recovery="fails")
def test_a_workspace_that_cannot_be_rebuilt_says_so(api: Api) -> None:
    session, _ = parked(api)
    api.emulator.clock.advance(7200)
    answer = api.say(session, "Again")
    assert (answer.status, answer.code) == (500, "workspace_recovery_failed")
    assert payloads(api, session, "workspace.recovery_failed") == [
        {"message": "no snapshot was available for this workspace"}
    ]
    assert api.get(f"/v1/sessions/{session}").json["environment"]["state"] == "recovery_failed"


@pytest.mark.behaviour("events.mcp-unavailable", "events.first-turn")
def test_a_skipped_server_shows_before_the_turn_starts(api: Api) -> None:
    api.emulator.mcp.down("docs", "the server did not answer within 10s")
    session = session_with(api, DOCS)
    api.say(session, "Hello")
    assert payloads(api, session, "mcp.unavailable") == [
        {"server": "docs", "name": "docs", "reason": "the server did not answer within 10s"}
    ]
    assert types(api.events(session))[:4] == ["user.message", "sandbox.created", "mcp.unavailable", "turn.started"]


@pytest.mark.behaviour("events.platform-refusal")
@pytest.mark.parametrize(
    ("agent", "code"),
    [
        ({"approval_mode": "read_only"}, "denied_read_only"),
        ({"permission_rules": [{"decision": "deny", "tool": "bash"}]}, "denied_by_rule"),
    ],
)
def test_a_refusal_by_the_platform_says_who_why_and_in_which_words(api: Api, agent: dict[str, Any], code: str) -> None:
    got: list[bool] = []

    async def play(turn: Turn) -> None:
        got.append(await turn.approve("bash", {"command": "./deploy"}))

    session = played(api, play, **agent)
    assert got == [False]
    (resolved,) = payloads(api, session, "approval.resolved")
    assert resolved == {"toolCallId": ANY, "approved": False, "name": "bash", "code": code, "reason": ANY}
    assert re.fullmatch(r"[A-Z].*bash.*\.", resolved["reason"])
    assert "approval.requested" not in types(api.events(session))


@pytest.mark.behaviour("events.first-turn")
def test_the_events_of_a_first_turn_come_in_this_order(api: Api) -> None:
    async def play(turn: Turn) -> None:
        await turn.write("/workspace/outputs/a.md", "a")
        await turn.write("/workspace/outputs/b.md", "b")
        await turn.say("Done.")

    api.emulator.agent(play)
    session = api.session()
    with api.stream(f"/v1/sessions/{session}/events") as frames:
        api.say(session, "Go.")
        seen = [frame.type for frame in (frames.event() for _ in range(10)) if frame is not None]
    assert seen == [
        "user.message",
        "sandbox.created",
        "turn.started",
        "file.changed",
        "file.changed",
        "agent.text",
        "agent.message",
        "turn.ended",
        "artifact.created",
        "artifact.created",
    ]


@pytest.mark.behaviour("events.visible")
def test_whoever_reads_the_session_on_seeing_the_event_finds_the_action(api: Api) -> None:
    async def play(turn: Turn) -> None:
        for _ in range(10):
            await turn.call("lookup_order")

    api.emulator.agent(play)
    session = session_with(api, function())
    with api.stream(f"/v1/sessions/{session}/events") as frames:
        api.say(session, "Go.")
        for _ in range(10):
            asked = frames.until("tool.required")[-1]
            (action,) = api.actions(session)
            assert action["call_id"] == asked.payload["toolCallId"]
            api.answer(session, action)


@pytest.mark.behaviour("events.platform-refusal-scripted")
@pytest.mark.parametrize("code", ["approval_timeout", "credential_inspection_denied"])
def test_a_scripted_refusal_by_the_platform_is_told_and_the_agent_refused(api: Api, code: str) -> None:
    @api.emulator.agent
    async def agent(turn: Turn) -> None:
        approved = await turn.approve("bash", {"command": "env"})
        await turn.say(str(approved))

    session = api.session()
    api.say(session, "Go.")
    call_id = api.emulator.approve(approved=False, code=code)
    resolved = next(event for event in api.events(session) if event["type"] == "approval.resolved")["payload"]
    reason = resolved.pop("reason")
    assert "bash" in reason
    assert resolved == {"toolCallId": call_id, "approved": False, "name": "bash", "code": code}
    assert api.emulator.transcript(session).last_message == "False"
