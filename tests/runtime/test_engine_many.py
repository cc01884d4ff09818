"""The engine with many at once: sessions, threads, scripts, seeds, and agents that hold the loop."""

from __future__ import annotations

import asyncio
import http.client
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from emulator import Emulator, embedded
from emulator.loops import EmulatorStuck
from emulator.runtime.simulated import SimulatedServer
from tests.support import WAIT, Api

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from emulator import Turn

LOOKUP = {"type": "function", "name": "lookup_order"}
TOOLS = {"agent": {"tools": [LOOKUP]}}
SESSIONS = 50


def in_threads(count: int, do: Callable[[int], None]) -> None:
    """Do something from many threads at the same moment."""
    barrier = threading.Barrier(count)
    errors: list[BaseException] = []

    def run(n: int) -> None:
        try:
            barrier.wait(WAIT)
            do(n)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(n,)) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(3 * WAIT)
    assert errors == []


@pytest.mark.gobare(session_limit=SESSIONS)
def test_fifty_parked_sessions_are_answered_from_fifty_threads(gobare: Emulator) -> None:
    @gobare.agent
    async def agent(turn: Turn) -> None:
        first, second = await turn.together(turn.call("lookup_order", n=1), turn.call("lookup_order", n=2))
        await turn.say(f"{turn.message}: {first.output} {second.output}")

    api = Api(gobare)
    sessions = [api.session(TOOLS) for _ in range(SESSIONS)]
    for n, session in enumerate(sessions):
        api.say(session, f"Message {n}")
    actions = [api.actions(session) for session in sessions]
    outcomes: dict[tuple[str, str], list[str]] = {}

    def answer(n: int) -> None:
        # Every call is answered by two threads; no thread answers two calls of one session in a row.
        for place, shift in ((0, 0), (1, 7), (1, 0), (0, 7)):
            at = (n + shift) % SESSIONS
            action = actions[at][place]
            reply = api.answer(sessions[at], action, f"{at}.{place}")
            assert reply.status == 202, reply.raw
            outcomes.setdefault((sessions[at], action["call_id"]), []).append(reply.json["outcome"])

    in_threads(SESSIONS, answer)
    assert len(outcomes) == 2 * SESSIONS
    for told in outcomes.values():
        assert sorted(told) == ["accepted", "already_resolved"]
    for n, session in enumerate(sessions):
        assert gobare.transcript(session).last_message == f"Message {n}: {n}.0 {n}.1"
        (turn,) = api.turns(session)
        assert turn["status"] == "completed"
    assert [entry.status for entry in gobare.requests if entry.status >= 500] == []


def test_sessions_do_not_mix_their_state(gobare: Emulator) -> None:
    @gobare.agent
    async def agent(turn: Turn) -> None:
        seen = turn.state.setdefault("seen", [])
        seen.append(turn.message)
        await turn.call("lookup_order")
        await turn.say(f"{turn.session.title} {turn.number}: {seen}")

    api = Api(gobare)
    sessions = {name: api.session({"title": name, **TOOLS}) for name in ("a", "b", "c")}
    for n in (1, 2):
        for name, session in sessions.items():
            api.say(session, f"{name}{n}")
        for session in reversed(sessions.values()):
            api.answer(session, api.actions(session)[0])
    for name, session in sessions.items():
        said = [item["content"] for item in api.items(session) if item.get("role") == "assistant"]
        assert said == [f"{name} 1: ['{name}1']", f"{name} 2: ['{name}1', '{name}2']"]


def test_messages_that_meet_while_servers_connect_begin_one_turn(
    gobare: Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = asyncio.Event()

    async def connect(self: SimulatedServer) -> None:
        await gate.wait()

    monkeypatch.setattr(SimulatedServer, "connect", connect)

    @gobare.agent
    async def agent(turn: Turn) -> None:
        await turn.ask(f"{turn.message}?")

    api = Api(gobare)
    docs = {"type": "mcp", "name": "docs", "url": "https://mcp.example.com/mcp"}
    session = api.session({"agent": {"tools": [docs]}})
    engine = gobare.socket.deployment.engine

    async def meet() -> list[int | None]:
        found = engine.world.find_session(session)
        assert found is not None
        tasks = [asyncio.ensure_future(engine.message(*found, text)) for text in ("first", "second")]
        for _ in range(10):
            await asyncio.sleep(0)
        gate.set()
        return await asyncio.gather(*tasks)

    assert gobare.run(meet()) == [None, 1]
    gobare.settle()
    assert [action["name"] for action in api.actions(session)] == ["first?"]
    assert [event["type"] for event in api.events(session)].count("sandbox.created") == 1


def test_the_reply_waits_for_the_queued_turn_whose_servers_connect(
    gobare: Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def connect(self: SimulatedServer) -> None:
        await asyncio.sleep(0.03)

    monkeypatch.setattr(SimulatedServer, "connect", connect)

    @gobare.agent
    async def agent(turn: Turn) -> None:
        await turn.ask(f"{turn.message}?")

    api = Api(gobare)
    session = api.session()
    api.say(session, "first")
    api.say(session, "second")
    api.put(f"/v1/sessions/{session}/tools", {"tools": [{"type": "mcp", "name": "docs", "command": "docs"}]})
    (first,) = api.actions(session)
    api.send(session, {"type": "input.question_answer", "call_id": first["call_id"], "answer": "yes"})
    assert [action["name"] for action in api.actions(session)] == ["second?"]


def test_two_emulators_never_meet() -> None:
    with Emulator() as one, Emulator() as two:

        @one.agent
        async def agent(turn: Turn) -> None:
            await turn.say("The first one.")

        for gobare, answer in ((one, "The first one."), (two, "You said: “Hello”.")):
            api = Api(gobare)
            session = api.session()
            api.say(session, "Hello")
            assert gobare.transcript(session).last_message == answer
            assert gobare.events()[0]["seq"] == 1


# Scripts


def scenario(name: str) -> dict[str, Any]:
    return {
        "scenario": name,
        "agent": [{"otherwise": [{"ask": {"question": f"{name}?", "as": "answer"}}, {"say": name + " {{ answer }}"}]}],
    }


def test_a_scenario_replaced_mid_turn_leaves_the_running_turn_its_script(gobare: Emulator) -> None:
    api = Api(gobare)
    gobare.load(scenario("old"))
    session = api.session()
    api.say(session, "Go.")
    gobare.load(scenario("new"))
    gobare.answer("one")
    assert gobare.transcript().last_message == "old one"
    api.say(session, "Go.")
    assert [action["name"] for action in api.actions(session)] == ["new?"]
    gobare.answer("two")
    assert gobare.transcript().last_message == "new two"


def test_an_agent_replaced_mid_turn_leaves_the_running_turn_its_script(gobare: Emulator) -> None:
    @gobare.agent
    async def old(turn: Turn) -> None:
        await turn.ask("Sure?")
        await turn.say("old")

    api = Api(gobare)
    session = api.session()
    api.say(session, "Go.")

    @gobare.agent
    async def new(turn: Turn) -> None:
        await turn.say("new")

    api.say(session, "waits")
    gobare.answer("yes")
    assert [item["content"] for item in api.items(session) if item.get("role") == "assistant"] == ["old", "new"]


# Pace


@pytest.mark.gobare(pace="realistic")
def test_a_realistic_turn_starts_a_quarter_of_a_second_after_the_reply(gobare: Emulator) -> None:
    api = Api(gobare)
    session = api.session({"input": "Write /workspace/outputs/report.md for me, please."})
    replied = time.monotonic()
    with api.stream(f"/v1/sessions/{session}/events") as frames:
        assert frames.until("turn.started")[0].type == "turn.started"
        assert time.monotonic() - replied >= 0.25
        seen = [frame.type for frame in frames.until("artifact.created")]
    assert seen[0] == "file.changed"
    assert seen.count("agent.text") > 1
    assert seen[-3:] == ["agent.message", "turn.ended", "artifact.created"]


# Ids


def ran(seed: int, *, polls: int = 0) -> list[dict[str, Any]]:
    """Everything that happened in a small program of three sessions, with a seed."""
    with Emulator(seed=seed) as gobare:
        api = Api(gobare)

        @gobare.agent
        async def agent(turn: Turn) -> None:
            await turn.together(turn.call("lookup_order"), turn.ask("Sure?"))
            await turn.use("bash", {"command": "ls"})
            await turn.write("/workspace/outputs/report.md", turn.message)
            await turn.preview(3000)

        for n in range(3):
            session = api.session(TOOLS)
            api.say(session, f"Message {n}")
            for _ in range(polls):
                api.get(f"/v1/sessions/{session}")
                api.get("/v1/sessions?limit=1")
                api.items(session)
                api.turns(session)
                api.get("/v1/sessions/none")
            api.answer(session, api.actions(session)[0])
            gobare.answer("yes")
        items = [item for session in gobare.report()["undeleted"]["sessions"] for item in api.items(session["id"])]
        return [*gobare.events(), *items]


def test_the_same_seed_gives_the_same_ids_and_times_however_often_somebody_polls() -> None:
    first = ran(7)
    assert ran(7) == first
    assert ran(7, polls=5) == first


def test_another_seed_gives_other_ids() -> None:
    def ids(entries: list[dict[str, Any]]) -> set[str]:
        found = {entry["session_id"] for entry in entries} | {entry["id"] for entry in entries if "id" in entry}
        told = [entry.get("payload", {}) for entry in entries]
        names = ("turnId", "toolCallId", "id", "url")
        return found | {payload[name] for payload in told for name in names if name in payload}

    one, two = ids(ran(1)), ids(ran(2))
    assert len(one) == len(two) > 20
    assert one & two == set()


# Agents that hold the loop


@pytest.fixture
def own_loop(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A background loop that nothing but this test uses."""
    monkeypatch.setattr(embedded, "_BACKGROUND", embedded._Background())
    yield
    loop = embedded._BACKGROUND.get()
    loop._watchdog.stop()
    loop.loop.call_soon_threadsafe(loop.loop.stop)
    loop._thread.join(WAIT)
    loop.loop.close()


async def spins(turn: Turn) -> None:
    while True:
        pass


async def sleeps(turn: Turn) -> None:
    time.sleep(3600)  # noqa: ASYNC251


@pytest.mark.usefixtures("own_loop")
def test_an_agent_in_a_busy_loop_is_named_and_interrupted() -> None:
    with Emulator() as gobare:
        api = Api(gobare)
        gobare.agent(spins)
        session = api.session()
        started = time.monotonic()
        assert api.say(session, "Go.").status == 202
        assert time.monotonic() - started < 5
        (stack,) = gobare.blocked
        assert session in stack
        assert "test_engine_many.py" in stack
        assert "in spins" in stack
        assert api.turns(session)[0]["status"] == "failed"
        assert "in spins" in gobare.report()["script_errors"][-1]["message"]
        gobare.agent(when={"turn": 2})(answers)
        api.say(session, "Still there?")
        assert gobare.transcript().last_message == "Yes."


async def answers(turn: Turn) -> None:
    await turn.say("Yes.")


@pytest.mark.usefixtures("own_loop")
def test_an_agent_that_cannot_be_interrupted_is_named_and_nobody_waits_for_it() -> None:
    with Emulator() as gobare:
        api = Api(gobare)
        gobare.agent(sleeps)
        session = api.session()
        started = time.monotonic()
        with pytest.raises((http.client.HTTPException, ConnectionError)):
            api.say(session, "Go.")
        assert time.monotonic() - started < 5
        (stack,) = gobare.blocked
        assert session in stack
        assert "in sleeps" in stack
        with pytest.raises(EmulatorStuck, match="in sleeps"):
            gobare.settle()
    # The next emulator has a loop of its own.
    with Emulator() as another:
        assert Api(another).session()
