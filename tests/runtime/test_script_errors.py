"""Script errors: whatever goes wrong in an agent fails its turn loudly, says where, and never the server."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from emulator import Emulator, TurnOver
from emulator.runtime.run import ScriptError
from tests.support import Api

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from emulator import Turn

    Play = Callable[[Turn], Coroutine[Any, Any, None]]

LOOKUP = {"type": "function", "name": "lookup_order"}
DOCS = {"type": "mcp", "name": "docs", "url": "https://mcp.example.com/mcp", "allowed_tools": ["search"]}
TOOLS = {"agent": {"tools": [LOOKUP, DOCS, {"type": "web_fetch"}]}}


async def no_such_function(turn: Turn) -> None:
    await turn.call("cancel_order")


async def no_such_server(turn: Turn) -> None:
    await turn.mcp("wiki", "search")


async def not_allowed(turn: Turn) -> None:
    await turn.mcp("docs", "delete")


async def no_such_tool(turn: Turn) -> None:
    await turn.mcp("docs", "search")


async def no_built_in(turn: Turn) -> None:
    await turn.use("web_search")


async def outside(turn: Turn) -> None:
    await turn.write("../etc/passwd", "x")


async def nothing_to_delete(turn: Turn) -> None:
    await turn.delete("a.txt")


async def no_such_code(turn: Turn) -> None:
    await turn.fail("provider_eror", "gone")


@pytest.mark.parametrize(
    ("play", "named"),
    [
        (no_such_function, ["cancel_order", "lookup_order"]),
        (no_such_server, ["wiki"]),
        (not_allowed, ["delete", "docs", "allowed_tools"]),
        (no_such_tool, ["search", "docs"]),
        (no_built_in, ["web_search"]),
        (outside, ["../etc/passwd", "/etc/passwd"]),
        (nothing_to_delete, ["/workspace/a.txt"]),
        (no_such_code, ["provider_eror", "provider_error"]),
    ],
)
def test_what_the_api_does_not_allow_fails_the_turn_by_name(play: Play, named: list[str]) -> None:
    with Emulator() as gobare:
        api = Api(gobare)
        gobare.agent(play)
        session = api.session(TOOLS)
        assert api.say(session, "Go.").status == 202
        (fault,) = gobare.script_errors
        assert isinstance(fault.error, ScriptError)
        for name in named:
            assert name in fault.message
        (turn,) = api.turns(session)
        assert (fault.session_id, fault.turn_id) == (session, turn["id"])
        assert turn["status"] == "failed"
        assert turn["error"]["code"] == "internal_error"
        assert (
            f"test_script_errors.py:{play.__code__.co_firstlineno + 1} in {play.__name__}" in turn["error"]["message"]
        )
        assert api.items(session)[-1]["detail"] == {"event": "agent.error", "message": turn["error"]["message"]}
        assert gobare.report()["script_errors"] == [fault.as_json()]


def _raise(error: BaseException) -> Play:
    async def agent(turn: Turn) -> None:
        await turn.say("Let me see.")
        raise error

    return agent


@pytest.mark.parametrize(
    "error",
    [ValueError("boom"), KeyboardInterrupt("boom"), SystemExit("boom"), GeneratorExit("boom"), TurnOver("boom")],
)
def test_whatever_a_script_raises_fails_the_turn_and_not_the_server(error: BaseException) -> None:
    with Emulator() as gobare:
        api = Api(gobare)
        gobare.agent(_raise(error))
        session = api.session()
        assert api.say(session, "Go.").status == 202
        (fault,) = gobare.script_errors
        assert fault.error is error
        assert fault.message == f"{type(error).__name__}: boom"
        assert fault.where.startswith("test_script_errors.py:")
        assert fault.where.endswith(" in agent")
        assert api.turns(session)[0]["status"] == "failed"
        assert api.get(f"/v1/sessions/{session}").json["status"] == "failed"
        assert api.say(session, "Again.").status == 202
        assert len(gobare.script_errors) == 2


async def fails_the_test(turn: Turn) -> None:
    pytest.fail("not as expected")


async def fails_in_a_library(turn: Turn) -> None:
    json.loads("{")


async def fails_in_a_verb_s_result(turn: Turn) -> None:
    (await turn.call("lookup_order")).json()


async def fails_in_a_helper(turn: Turn) -> None:
    assert_shipped("lost")


def assert_shipped(status: str) -> None:
    assert status == "shipped"


@pytest.mark.parametrize(
    ("play", "where"),
    [
        (fails_the_test, "fails_the_test"),
        (fails_in_a_library, "fails_in_a_library"),
        (fails_in_a_verb_s_result, "fails_in_a_verb_s_result"),
        (fails_in_a_helper, "assert_shipped"),
    ],
)
def test_an_error_says_where_in_the_script_it_came_from(play: Play, where: str) -> None:
    with Emulator() as gobare:
        api = Api(gobare)
        gobare.agent(play)
        session = api.session(TOOLS)
        api.say(session, "Go.")
        for action in api.actions(session):
            api.answer(session, action, "no JSON")
        (fault,) = gobare.script_errors
        assert fault.where.startswith("test_script_errors.py:")
        assert fault.where.endswith(f" in {where}")
        assert fault.where in api.items(session)[-1]["detail"]["message"]


def test_an_error_in_one_of_several_verbs_unwinds_the_others() -> None:
    async def agent(turn: Turn) -> None:
        await turn.together(turn.call("lookup_order"), turn.ask("Sure?"), turn.call("cancel_order"))

    with Emulator() as gobare:
        api = Api(gobare)
        gobare.agent(agent)
        session = api.session(TOOLS)
        api.say(session, "Go.")
        assert "cancel_order" in gobare.script_errors[0].message
        assert (api.actions(session), api.turns(session)[0]["status"]) == ([], "failed")


def test_a_message_no_rule_matches_fails_its_turn_and_is_reported(gobare: Emulator) -> None:
    async def orders(turn: Turn) -> None:
        await turn.say("An order.")

    gobare.agent(when={"message": {"contains": "order"}})(orders)
    api = Api(gobare)
    session = api.session()
    api.say(session, "Hello")
    (turn,) = api.turns(session)
    assert (turn["status"], turn["error"]["code"]) == ("failed", "internal_error")
    (unmatched,) = gobare.report()["unmatched_messages"]
    assert (unmatched["session_id"], unmatched["turn_id"]) == (session, turn["id"])
    api.say(session, "My order")
    assert api.turns(session)[1]["status"] == "completed"


def test_an_agent_that_awaits_what_it_cancelled_has_failed() -> None:
    async def agent(turn: Turn) -> None:
        task = asyncio.ensure_future(turn.ask("Sure?"))
        await asyncio.sleep(0)
        task.cancel()
        await task

    with Emulator() as gobare:
        api = Api(gobare)
        gobare.agent(agent)
        session = api.session()
        api.say(session, "Go.")
        assert api.turns(session)[0]["status"] == "failed"
        assert len(gobare.script_errors) == 1


def test_an_agent_that_cancels_itself_has_failed() -> None:
    async def agent(turn: Turn) -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(0)

    with Emulator(rest_seconds=0.2) as gobare:
        api = Api(gobare)
        gobare.agent(agent)
        session = api.session()
        api.say(session, "Go.")
        assert api.turns(session)[0]["status"] == "failed"
        assert len(gobare.script_errors) == 1
        assert gobare.report()["agent_not_at_rest"] == []
