"""The engine and its scripted agents: when a turn is at rest, and how a cancel unwinds it."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import pytest

from emulator import Emulator, TurnOver
from tests.support import Api

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from emulator import Turn

    Verb = Callable[[Turn], Awaitable[object]]
    Play = Callable[[Turn], Coroutine[Any, Any, None]]

LOOKUP = {"type": "function", "name": "lookup_order"}
DOCS = {"type": "mcp", "name": "docs", "url": "https://mcp.example.com/mcp", "allowed_tools": ["search"]}
TOOLS = {"agent": {"tools": [LOOKUP, DOCS, {"type": "web_fetch"}]}}


def parks(api: Api, *sessions: str) -> list[list[str]]:
    """The names of what each session waits for."""
    return [[action["name"] for action in api.actions(session)] for session in sessions]


# At rest


async def gathers(turn: Turn) -> None:
    await asyncio.gather(turn.call("lookup_order"), turn.ask("Sure?"))


async def makes_tasks(turn: Turn) -> None:
    tasks = [asyncio.create_task(turn.call("lookup_order")), asyncio.create_task(turn.ask("Sure?"))]
    await asyncio.wait(tasks)


async def groups(turn: Turn) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(turn.call("lookup_order"))
        group.create_task(turn.ask("Sure?"))


async def nests(turn: Turn) -> None:
    async def inner() -> None:
        await asyncio.gather(asyncio.create_task(turn.call("lookup_order")), turn.ask("Sure?"))

    await asyncio.create_task(inner())


async def does_its_own_io_first(turn: Turn) -> None:
    await asyncio.sleep(0.03)
    await asyncio.to_thread(time.sleep, 0.01)
    await gathers(turn)


async def steps_often(turn: Turn) -> None:
    for _ in range(200):
        await asyncio.sleep(0)
    await gathers(turn)


@pytest.mark.parametrize("play", [gathers, makes_tasks, groups, nests, does_its_own_io_first, steps_often])
def test_the_reply_comes_when_everything_has_parked(gobare: Emulator, play: Play) -> None:
    api = Api(gobare)
    gobare.agent(play)
    session = api.session(TOOLS)
    api.say(session, "Go.")
    actions = api.actions(session)
    assert [action["name"] for action in actions] == ["lookup_order", "Sure?"]
    api.answer(session, actions[0])
    assert parks(api, session) == [["Sure?"]]
    gobare.answer("yes")
    assert api.turns(session)[0]["status"] == "completed"
    assert gobare.report()["agent_not_at_rest"] == []


def test_a_task_that_only_sleeps_does_not_hold_the_reply(gobare: Emulator) -> None:
    @gobare.agent
    async def agent(turn: Turn) -> None:
        sleeping = asyncio.create_task(asyncio.sleep(3600))
        await turn.ask("Sure?")
        sleeping.cancel()

    api = Api(gobare)
    started = time.monotonic()
    session = api.session()
    api.say(session, "Go.")
    assert time.monotonic() - started < 2
    assert parks(api, session) == [["Sure?"]]
    gobare.answer("yes")
    assert gobare.report()["agent_not_at_rest"] == []


def test_an_agent_that_does_not_come_to_rest_is_reported_and_the_reply_goes_out() -> None:
    async def agent(turn: Turn) -> None:
        await asyncio.Event().wait()

    with Emulator(rest_seconds=0.2) as gobare:
        api = Api(gobare)
        gobare.agent(agent)
        session = api.session()
        started = time.monotonic()
        reply = api.say(session, "Go.")
        assert reply.status == 202
        assert 0.2 <= time.monotonic() - started < 2
        (turn,) = api.turns(session)
        assert turn["status"] == "working"
        assert gobare.report()["agent_not_at_rest"] == [
            {"session_id": session, "turn_id": turn["id"], "request_id": reply.headers["x-request-id"]}
        ]
        assert gobare.settle(timeout=0.01) is False


def test_waiting_on_the_clock_is_rest(gobare: Emulator) -> None:
    @gobare.agent
    async def agent(turn: Turn) -> None:
        await turn.wait(30)
        await turn.say("Half past.")
        await turn.wait(30)

    api = Api(gobare)
    session = api.session()
    api.say(session, "Go.")
    assert api.get(f"/v1/sessions/{session}").json["status"] == "working"
    gobare.clock.advance(29)
    assert gobare.transcript(session).last_message is None
    gobare.clock.advance(2)
    assert gobare.transcript(session).last_message == "Half past."
    gobare.clock.advance(30)
    assert api.turns(session)[0]["status"] == "completed"


# Cancel


VERBS: dict[str, Verb] = {
    "say": lambda turn: turn.say("too late"),
    "think": lambda turn: turn.think("too late"),
    "call": lambda turn: turn.call("lookup_order"),
    "ask": lambda turn: turn.ask("too late?"),
    "approve": lambda turn: turn.approve("bash"),
    "use": lambda turn: turn.use("bash"),
    "mcp": lambda turn: turn.mcp("docs", "search"),
    "write": lambda turn: turn.write("a.txt", "too late"),
    "delete": lambda turn: turn.delete("kept.txt"),
    "todos": lambda turn: turn.todos([{"label": "too late", "status": "done"}]),
    "compact": lambda turn: turn.compact(2, 1),
    "preview": lambda turn: turn.preview(3000),
    "wait": lambda turn: turn.wait(1),
    "fail": lambda turn: turn.fail("internal_error", "too late"),
    "together": lambda turn: turn.together(turn.say("too late"), turn.ask("too late?")),
}


@pytest.mark.parametrize("verb", list(VERBS))
@pytest.mark.parametrize("ending", ["cancelled", "deleted"])
def test_a_verb_used_after_the_end_raises_and_shows_nothing(gobare: Emulator, verb: str, ending: str) -> None:
    raised: list[str] = []

    @gobare.agent
    async def agent(turn: Turn) -> None:
        await turn.write("kept.txt", "x")
        try:
            await turn.ask("Sure?")
        finally:
            raised.append("unwinding")
            try:
                await VERBS[verb](turn)
            except TurnOver:
                raised.append("TurnOver")

    api = Api(gobare)
    scenario_tools = {"docs": {"tools": {"search": {"text": "3 pages"}}}}
    gobare.load({"scenario": "docs", "mcp": scenario_tools, "agent": [{"otherwise": [{"say": "unused"}]}]})
    session = api.session(TOOLS)
    with api.stream("/v1/events") as frames:
        api.say(session, "Go.")
        if ending == "cancelled":
            api.send(session, {"type": "input.cancel"})
        else:
            api.delete(f"/v1/sessions/{session}")
        gobare.settle()
        assert raised == ["unwinding", "TurnOver"]
        other = api.session()
        api.send(other, {"type": "input.context", "content": "next"})
        seen = [frame.type for frame in frames.until("user.context")]
    assert seen == [
        "user.message",
        "sandbox.created",
        "turn.started",
        "file.changed",
        "question.asked",
        *(["turn.ended"] if ending == "cancelled" else []),
        "user.context",
    ]
    assert gobare.script_errors == []


def test_the_turn_is_settled_before_its_script_unwinds(gobare: Emulator) -> None:
    seen: list[tuple[str, list[Any]]] = []

    @gobare.agent
    async def agent(turn: Turn) -> None:
        try:
            await turn.call("lookup_order")
        except asyncio.CancelledError:
            found = gobare.socket.deployment.world.find_session(turn.session.id)
            assert found is not None
            seen.append((found[1].turns[0].status, found[1].required_actions()))
            raise

    api = Api(gobare)
    session = api.session(TOOLS)
    api.say(session, "Go.")
    api.send(session, {"type": "input.cancel"})
    gobare.settle()
    assert seen == [("cancelled", [])]


def test_an_agent_that_swallows_the_cancel_still_shows_nothing(gobare: Emulator) -> None:
    ended: list[str] = []

    @gobare.agent
    async def agent(turn: Turn) -> None:
        if turn.number == 2:
            await turn.say("Here again.")
            return
        while True:
            try:
                await turn.ask("Sure?")
            except asyncio.CancelledError:
                await asyncio.sleep(0)
            except TurnOver:
                ended.append("TurnOver")
                raise

    api = Api(gobare)
    session = api.session()
    api.say(session, "Go.")
    api.send(session, {"type": "input.cancel"})
    api.say(session, "Again.")
    assert ended == ["TurnOver"]
    types = [event["type"] for event in api.events(session)]
    assert types.count("question.asked") == 1
    assert [turn["status"] for turn in api.turns(session)] == ["cancelled", "completed"]


def test_what_a_script_leaves_running_ends_with_its_turn(gobare: Emulator) -> None:
    outcome: list[str] = []

    @gobare.agent
    async def agent(turn: Turn) -> None:
        async def late() -> None:
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                outcome.append("cancelled")
                raise

        turn.state["kept"] = asyncio.create_task(late())
        await asyncio.sleep(0)
        await turn.say("Done.")

    api = Api(gobare)
    session = api.session()
    api.say(session, "Go.")
    gobare.settle()
    assert outcome == ["cancelled"]
    assert [event["type"] for event in api.events(session)][-1] == "turn.ended"
