"""Items (contract §8): what is in a transcript, and what each entry says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from unittest.mock import ANY

import pytest

from tests.contract.steps import function, parked, replying, session_with

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from emulator import Turn
    from tests.support import Api

    Verb = Callable[[Turn], Awaitable[object]]

DOCS = {"type": "mcp", "name": "docs", "url": "https://mcp.example.com/mcp"}


def after(api: Api, verb: Verb, *tools: dict[str, Any], **agent: Any) -> list[dict[str, Any]]:
    """The items of a session whose agent did one thing, less the message that set it going."""

    async def play(turn: Turn) -> None:
        await verb(turn)

    api.emulator.agent(play)
    session = session_with(api, *tools, **agent)
    api.say(session, "Go.")
    for action in api.actions(session):
        api.send(session, replying(action))
    return api.items(session)[1:]


def told(items: list[dict[str, Any]]) -> list[tuple[str, dict[str, Any]]]:
    """The type and detail of items; none of them is a message."""
    for item in items:
        assert "role" not in item
        assert "content" not in item
    return [(item["type"], item["detail"]) for item in items]


@pytest.mark.behaviour("items.shape", "items.message", "items.detail")
def test_messages_have_a_role_and_their_text(api: Api) -> None:
    @api.emulator.agent
    async def agent(turn: Turn) -> None:
        await turn.say("It is shipped.")

    session = api.session()
    api.say(session, "Where is my order?")
    asked, answered = api.items(session)
    assert asked == {
        "object": "item",
        "id": asked["id"],
        "session_id": session,
        "type": "message",
        "created_at": asked["created_at"],
        "role": "user",
        "content": "Where is my order?",
        "detail": {"event": "user.message", "text": "Where is my order?"},
    }
    assert answered == {
        "object": "item",
        "id": answered["id"],
        "session_id": session,
        "type": "message",
        "created_at": answered["created_at"],
        "role": "assistant",
        "content": "It is shipped.",
        "detail": {"event": "agent.message", "text": "It is shipped."},
    }
    assert asked["id"] != answered["id"]


@pytest.mark.behaviour("items.shape", "items.tool-call", "items.role-on-messages-only")
def test_a_tool_call_and_its_result_are_two_items(api: Api) -> None:
    args = {"path": "/workspace/outputs/report.md"}
    items = after(api, lambda turn: turn.use("write", args, "Successfully wrote 5 bytes"))
    assert told(items) == [
        ("tool_call", {"event": "agent.tool_call", "toolCallId": ANY, "toolName": "write", "args": args}),
        (
            "tool_call",
            {
                "event": "agent.tool_result",
                "toolCallId": items[0]["detail"]["toolCallId"],
                "toolName": "write",
                "isError": False,
                "cancelled": False,
                "summary": "Successfully wrote 5 bytes",
            },
        ),
    ]
    assert set(items[0]) == {"object", "id", "session_id", "type", "created_at", "detail"}


@pytest.mark.behaviour("items.command")
@pytest.mark.parametrize(("is_error", "exit_code", "shown"), [(False, None, 0), (True, None, 1), (True, 127, 127)])
def test_the_result_of_a_command_has_its_exit_code(api: Api, is_error: bool, exit_code: int | None, shown: int) -> None:
    items = after(api, lambda turn: turn.use("bash", {"command": "ls"}, "a b", is_error=is_error, exit_code=exit_code))
    assert told(items) == [
        (
            "tool_call",
            {"event": "agent.tool_call", "toolCallId": ANY, "toolName": "bash", "args": {"command": "ls"}},
        ),
        (
            "command_execution",
            {
                "event": "agent.tool_result",
                "toolCallId": items[0]["detail"]["toolCallId"],
                "toolName": "bash",
                "isError": is_error,
                "cancelled": False,
                "summary": "a b",
                "exitCode": shown,
            },
        ),
    ]


@pytest.mark.behaviour("items.file-change")
def test_a_file_is_created_then_modified_then_deleted(api: Api) -> None:
    async def verb(turn: Turn) -> None:
        await turn.write("src/export.ts", "1")
        await turn.write("/workspace/src/export.ts", "2")
        await turn.delete("/workspace/src/export.ts")

    path = "/workspace/src/export.ts"
    assert told(after(api, verb)) == [
        ("file_change", {"event": f"file.{kind}", "path": path, "changeType": kind, "kind": kind})
        for kind in ("created", "modified", "deleted")
    ]


@pytest.mark.behaviour("items.host-function")
def test_a_host_function_makes_two_tool_calls(api: Api) -> None:
    items = after(api, lambda turn: turn.call("lookup_order", order_id="A-4471"), function())
    call_id = items[0]["detail"]["toolCallId"]
    assert told(items) == [
        (
            "tool_call",
            {
                "event": "tool.required",
                "toolCallId": call_id,
                "name": "lookup_order",
                "arguments": {"order_id": "A-4471"},
            },
        ),
        (
            "tool_call",
            {"event": "tool.resolved", "toolCallId": call_id, "name": "lookup_order", "success": True},
        ),
    ]


@pytest.mark.behaviour("items.approval")
def test_an_approval_makes_an_item_when_asked_and_when_resolved(api: Api) -> None:
    items = after(api, lambda turn: turn.approve("bash", {"command": "./deploy"}, sensitive=True))
    call_id = items[0]["detail"]["toolCallId"]
    assert told(items) == [
        (
            "approval",
            {
                "event": "approval.requested",
                "toolCallId": call_id,
                "name": "bash",
                "args": {"command": "./deploy"},
                "sensitive": True,
            },
        ),
        ("approval", {"event": "approval.resolved", "toolCallId": call_id, "approved": True}),
    ]


@pytest.mark.behaviour("items.question")
def test_a_question_makes_an_item_when_asked_and_when_answered(api: Api) -> None:
    items = after(api, lambda turn: turn.ask("Which region?", ["eu", "us"]))
    call_id = items[0]["detail"]["toolCallId"]
    assert told(items) == [
        (
            "question",
            {
                "event": "question.asked",
                "toolCallId": call_id,
                "question": "Which region?",
                "options": ["eu", "us"],
                "allowFreeform": True,
            },
        ),
        ("question", {"event": "question.answered", "toolCallId": call_id, "answer": "eu"}),
    ]


@pytest.mark.behaviour("items.context")
def test_context_is_an_item(api: Api) -> None:
    session = api.session()
    api.send(session, {"type": "input.context", "content": "The rollback is merged."})
    assert told(api.items(session)) == [("context", {"event": "user.context", "text": "The rollback is merged."})]


@pytest.mark.behaviour("items.error")
def test_an_error_is_an_item(api: Api) -> None:
    assert told(after(api, lambda turn: turn.fail("provider_error", "the model provider returned 502"))) == [
        ("error", {"event": "agent.error", "message": "the model provider returned 502"})
    ]


@pytest.mark.behaviour("items.mcp-unavailable")
@pytest.mark.parametrize("reason", ["fetch failed", "the server did not answer within 10s"])
def test_a_skipped_server_is_an_item(api: Api, reason: str) -> None:
    api.emulator.mcp.down("docs", reason)
    session = session_with(api, DOCS)
    api.say(session, "Go.")
    item = api.items(session)[1]
    assert item == {
        "object": "item",
        "id": item["id"],
        "session_id": session,
        "type": "mcp_unavailable",
        "created_at": item["created_at"],
        "server": "docs",
        "reason": reason,
        "detail": {"event": "mcp.unavailable", "server": "docs", "name": "docs", "reason": reason},
    }


@pytest.mark.behaviour("items.from-these-events", "items.detail", "items.created-at", "items.role-on-messages-only")
def test_items_come_from_these_events_and_from_no_other(api: Api) -> None:
    @api.emulator.agent
    async def agent(turn: Turn) -> None:
        if turn.number > 1:
            await turn.fail("provider_error", "gone")
        await turn.think("Hm.")
        await turn.say("On it.")
        await turn.use("bash", {"command": "ls"})
        await turn.write("/workspace/outputs/report.md", "# Report")
        await turn.todos([{"label": "Deploy", "status": "done"}])
        await turn.compact(182_000, 41_000)
        await turn.preview(3000)
        await turn.together(turn.call("lookup_order"), turn.approve("bash"), turn.ask("Sure?"))

    api.emulator.mcp.down("docs")
    session = session_with(api, function(), DOCS)
    api.say(session, "Go.")
    api.say(session, "Then this.")
    api.send(session, {"type": "input.context", "content": "By the way."})
    for action in api.actions(session):
        api.send(session, replying(action))
    api.emulator.clock.advance(301)

    events = api.events(session)
    no_items = {
        "message.queued",
        "message.dequeued",
        "turn.started",
        "turn.ended",
        "agent.compaction",
        "agent.todos",
        "sandbox.created",
        "sandbox.paused",
        "preview.ready",
        "artifact.created",
    }
    assert no_items <= {event["type"] for event in events}
    shown = [event for event in events if event["type"] not in no_items]
    items = api.items(session)
    names = ["file.created" if event["type"] == "file.changed" else event["type"] for event in shown]
    assert [item["detail"] for item in items] == [
        {"event": name, **event["payload"]} for name, event in zip(names, shown, strict=True)
    ]
    assert [item["created_at"] for item in items] == [event["created_at"] for event in shown]
    assert [item["type"] for item in items] == [
        "message",
        "mcp_unavailable",
        "message",
        "tool_call",
        "command_execution",
        "file_change",
        "tool_call",
        "approval",
        "question",
        "tool_call",
        "approval",
        "question",
        "context",
        "message",
        "error",
    ]
    assert {item["type"] for item in items if "role" in item or "content" in item} == {"message"}


@pytest.mark.behaviour("items.order")
def test_items_keep_their_place_and_id_however_often_they_are_read(api: Api) -> None:
    session, action = parked(api)
    first = api.items(session)
    assert api.items(session) == first
    api.answer(session, action)
    later = api.items(session)
    assert later[: len(first)] == first
    assert len({item["id"] for item in later}) == len(later) == 4
    newest_first = api.get(f"/v1/sessions/{session}/items").json["data"]
    assert newest_first == later[::-1]


@pytest.mark.behaviour("items.order")
def test_item_ids_of_two_sessions_never_meet(api: Api) -> None:
    one, two = api.session(), api.session()
    api.say(one, "Hello")
    api.say(two, "Hello")
    assert not {item["id"] for item in api.items(one)} & {item["id"] for item in api.items(two)}
    for session in (one, two):
        assert {item["session_id"] for item in api.items(session)} == {session}
