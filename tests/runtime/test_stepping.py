"""Stepping: what the tasks of a turn are doing, told from outside, and whose an error is that nobody waits for."""

from __future__ import annotations

import asyncio
import gc
import threading
from typing import TYPE_CHECKING, Any

import pytest

from emulator import Emulator
from emulator.runtime.stepping import Holder, Step, Steps, current_steps, exception_handler, task_factory
from tests.support import WAIT, Api

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from emulator import Turn

    Play = Callable[[Turn], Coroutine[Any, Any, None]]

TOOLS = {"agent": {"tools": [{"type": "function", "name": "lookup_order"}]}}


# At rest, whatever the script is made of


async def waits_for(turn: Turn) -> None:
    await asyncio.wait_for(turn.call("lookup_order"), 3600)


async def times_out_at_last(turn: Turn) -> None:
    async with asyncio.timeout(3600):
        await turn.call("lookup_order")


async def shields(turn: Turn) -> None:
    await asyncio.shield(turn.call("lookup_order"))


async def takes_them_as_they_come(turn: Turn) -> None:
    for result in asyncio.as_completed([turn.call("lookup_order"), asyncio.sleep(0)]):
        await result


async def waits_for_the_first(turn: Turn) -> None:
    tasks = [asyncio.create_task(turn.call("lookup_order")), asyncio.create_task(asyncio.sleep(3600))]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)


async def passes_it_through_a_queue(turn: Turn) -> None:
    results: asyncio.Queue[object] = asyncio.Queue(1)

    async def work() -> None:
        for _ in range(3):
            await results.put(None)
        await results.put(await turn.call("lookup_order"))

    async with asyncio.TaskGroup() as group:
        group.create_task(work())
        while await results.get() is None:
            pass


async def takes_turns_under_a_lock(turn: Turn) -> None:
    lock = asyncio.Lock()

    async def locked() -> None:
        async with lock:
            await turn.call("lookup_order")

    first = asyncio.create_task(locked())
    second = asyncio.create_task(locked())
    await first
    second.cancel()
    await asyncio.gather(second, return_exceptions=True)


async def gathers_what_fails_too(turn: Turn) -> None:
    async def fails() -> None:
        raise ValueError("never mind")

    await asyncio.gather(turn.call("lookup_order"), fails(), return_exceptions=True)


async def hands_a_future_on(turn: Turn) -> None:
    handed: asyncio.Future[object] = asyncio.get_running_loop().create_future()

    async def work() -> None:
        handed.set_result(await turn.call("lookup_order"))

    task = asyncio.create_task(work())
    await handed
    await task


@pytest.mark.parametrize(
    "play",
    [
        waits_for,
        times_out_at_last,
        shields,
        takes_them_as_they_come,
        waits_for_the_first,
        passes_it_through_a_queue,
        takes_turns_under_a_lock,
        gathers_what_fails_too,
        hands_a_future_on,
    ],
)
def test_the_reply_comes_when_the_script_waits_for_somebody_outside(play: Play) -> None:
    with Emulator() as emulator:
        emulator.agent(play)
        api = Api(emulator)
        session = api.session(TOOLS)
        api.say(session, "Go.")
        (action,) = api.actions(session)
        assert api.answer(session, action).json["outcome"] == "accepted"
        assert [turn["status"] for turn in api.turns(session)] == ["completed"]
        report = emulator.report()
        assert (report["agent_not_at_rest"], report["script_errors"]) == ([], [])


def test_a_wait_that_times_out_goes_on_without_an_answer() -> None:
    async def agent(turn: Turn) -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(turn.call("lookup_order"), 0.01)
        went_on.set()

    went_on = threading.Event()
    with Emulator() as emulator:
        emulator.agent(agent)
        api = Api(emulator)
        session = api.session(TOOLS)
        api.say(session, "Go.")
        assert went_on.wait(WAIT)
        assert emulator.settle(timeout=WAIT)
        assert (api.turns(session)[0]["status"], api.actions(session)) == ("completed", [])


# Errors nobody waits for


async def collected() -> None:
    """Let go of what only refers to itself, on the loop it belongs to."""
    gc.collect()


async def breaks() -> None:
    raise ValueError("nobody looked")


def test_the_error_of_a_task_nobody_awaited_is_the_scripts() -> None:
    async def agent(turn: Turn) -> None:
        task = asyncio.create_task(breaks())
        await asyncio.sleep(0)
        del task
        gc.collect()
        await turn.ask("Sure?")

    with Emulator() as emulator:
        emulator.agent(agent)
        api = Api(emulator)
        session = api.session()
        api.say(session, "Go.")
        (turn,) = api.turns(session)
        assert (turn["status"], turn["error"]["code"]) == ("failed", "internal_error")
        (error,) = emulator.report()["script_errors"]
        assert (error["session_id"], error["turn_id"]) == (session, turn["id"])
        assert error["message"] == "ValueError: nobody looked"
        assert error["where"].endswith(" in breaks")


def test_the_error_of_a_task_nobody_awaited_is_known_at_once() -> None:
    async def agent(turn: Turn) -> None:
        task = asyncio.create_task(breaks())
        await asyncio.sleep(0)
        del task
        await turn.ask("Sure?")

    gc.disable()
    try:
        with Emulator() as emulator:
            emulator.agent(agent)
            api = Api(emulator)
            api.say(api.session(), "Go.")
            known = emulator.report()["script_errors"]
            emulator.run(collected())
            assert len(known) == 1
    finally:
        gc.enable()


def test_an_error_that_another_thread_comes_upon_ends_the_turn_on_its_loop() -> None:
    async def agent(turn: Turn) -> None:
        if turn.number == 1:
            task = asyncio.create_task(breaks())
            await asyncio.sleep(0)
            knot: list[object] = [task]
            knot.append(knot)
            task.add_done_callback(lambda _, knot=knot: None)  # type: ignore[misc]
            del task, knot
            await turn.ask("Sure?")

    gc.disable()
    try:
        with Emulator() as emulator:
            emulator.agent(agent)
            api = Api(emulator)
            session = api.session()
            api.say(session, "Go.")
            api.say(session, "Go on.")
            gc.collect()
            assert emulator.settle(timeout=WAIT)
            assert sorted(turn["status"] for turn in api.turns(session)) == ["completed", "failed"]
    finally:
        gc.enable()


def test_a_script_whose_task_broke_is_unwound() -> None:
    unwound: list[str] = []

    async def agent(turn: Turn) -> None:
        async def breaks() -> None:
            await asyncio.sleep(0)
            raise ValueError("nobody looked")

        task = asyncio.create_task(breaks())
        del task
        try:
            await turn.ask("Sure?")
        finally:
            unwound.append(turn.message)

    with Emulator() as emulator:
        emulator.agent(agent)
        api = Api(emulator)
        session = api.session()
        api.say(session, "Go.")
        emulator.run(collected())
        assert api.turns(session)[0]["status"] == "failed"
        emulator.settle(timeout=WAIT)
        assert unwound == ["Go."]


def test_the_error_of_a_task_of_a_finished_turn_changes_the_turn_no_more() -> None:
    async def agent(turn: Turn) -> None:
        async def breaks() -> None:
            try:
                await asyncio.sleep(3600)
            finally:
                raise ValueError("on the way out")

        turn.state["kept"] = asyncio.create_task(breaks())
        await asyncio.sleep(0)

    with Emulator() as emulator:
        emulator.agent(agent)
        api = Api(emulator)
        session = api.session()
        api.say(session, "Go.")

        emulator.socket.deployment.engine.states.clear()
        emulator.run(collected())
        (error,) = emulator.report()["script_errors"]
        assert error["message"] == "ValueError: on the way out"
        assert api.turns(session)[0]["status"] == "completed"


def test_an_error_outside_of_any_turn_is_the_loops_to_tell() -> None:
    told: list[dict[str, Any]] = []

    class Loop(asyncio.SelectorEventLoop):
        def default_exception_handler(self, context: dict[str, Any]) -> None:
            told.append(context)

    async def main() -> None:
        task = asyncio.create_task(breaks())
        await asyncio.sleep(0)
        del task
        gc.collect()

    with asyncio.Runner(loop_factory=made(Loop)) as runner:
        runner.run(main())
        exception_handler(runner.get_loop(), {"message": "something else"})
    assert [str(context.get("exception", context["message"])) for context in told] == [
        "nobody looked",
        "something else",
    ]


# The parts


def made(kind: type[asyncio.AbstractEventLoop] = asyncio.SelectorEventLoop) -> Callable[[], asyncio.AbstractEventLoop]:
    """A factory of loops that count steps."""

    def make() -> asyncio.AbstractEventLoop:
        loop = kind()
        loop.set_task_factory(task_factory)
        loop.set_exception_handler(exception_handler)
        return loop

    return make


def stepped(test: Callable[[Steps], Coroutine[Any, Any, None]]) -> Steps:
    """Run a coroutine beside the steps it is given."""
    lost: list[BaseException] = []
    steps = Steps("turn 1", Holder(), blocked=lambda stack: None, lost=lost.append)
    with asyncio.Runner(loop_factory=made()) as runner:
        runner.run(asyncio.wait_for(test(steps), WAIT))
    assert lost == []
    return steps


def test_tasks_made_inside_are_counted_and_others_are_not() -> None:
    async def main(steps: Steps) -> None:
        inside: list[Steps | None] = []

        async def script() -> None:
            inside.append(current_steps())
            inner = asyncio.create_task(asyncio.sleep(3600), name="inner")
            await inner

        outside = asyncio.create_task(asyncio.sleep(3600))
        task = steps.start(script())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert inside == [steps]
        assert current_steps() is None
        assert {one.get_name() for one in steps.tasks()} == {"turn 1", "inner"}
        steps.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        assert (steps.tasks(), steps.runnable, outside.done()) == ([], False, False)
        outside.cancel()

    stepped(main)


def test_a_turn_can_run_until_every_task_of_it_waits() -> None:
    async def main(steps: Steps) -> None:
        gate: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        async def script() -> None:
            await asyncio.sleep(0)
            await gate

        task = steps.start(script())
        seen = [steps.runnable]
        for _ in range(3):
            await asyncio.sleep(0)
            seen.append(steps.runnable)
        gate.set_result(None)
        seen.append(steps.runnable)
        await task
        seen.append(steps.runnable)
        assert seen == [True, True, False, False, True, False]

    stepped(main)


def test_what_is_parked_is_counted_until_it_is_done() -> None:
    async def main(steps: Steps) -> None:
        first, second = (asyncio.get_running_loop().create_future() for _ in range(2))
        seen = [steps.parked]
        steps.park(first)
        steps.park(second)
        seen.append(steps.parked)
        first.set_result(None)
        seen.append(steps.parked)
        second.cancel()
        seen.append(steps.parked)
        assert seen == [False, True, True, False]

    stepped(main)


def test_whoever_watches_is_woken_by_a_step_and_by_an_answer() -> None:
    async def main(steps: Steps) -> None:
        gate: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        steps.park(gate)
        moved = steps.moved()
        assert steps.moved() is moved
        gate.set_result(None)
        await moved
        again = steps.moved()
        assert again is not moved
        await steps.start(asyncio.sleep(0))
        assert again.done()

    stepped(main)


def test_the_holder_knows_who_runs_while_it_runs() -> None:
    async def main(steps: Steps) -> None:
        seen: list[Steps | None] = [steps.holder.steps]

        async def script() -> None:
            seen.append(steps.holder.steps)
            await asyncio.sleep(0)
            raise ValueError("over")

        task = steps.start(script())
        await asyncio.wait([task])
        assert isinstance(task.exception(), ValueError)
        assert [*seen, steps.holder.steps] == [None, steps, None]
        assert steps.holder.since > 0

    stepped(main)


def test_one_that_cancels_all_is_not_cancelled_itself() -> None:
    async def main(steps: Steps) -> None:
        async def script() -> None:
            other = asyncio.create_task(asyncio.sleep(3600))
            await asyncio.sleep(0)
            steps.cancel()
            await asyncio.wait([other])
            assert other.cancelled()

        await steps.start(script())

    stepped(main)


def test_a_step_is_a_coroutine_that_can_be_closed_and_awaited() -> None:
    async def main(steps: Steps) -> None:
        closed: list[str] = []

        async def gives(value: int) -> int:
            try:
                await asyncio.sleep(0)
            finally:
                closed.append(f"end of {value}")
            return value

        step = Step(gives(1), steps)
        step.send(None)
        assert steps.tasks() == []
        assert steps.runnable
        step.close()
        assert (closed, steps.runnable) == (["end of 1"], False)
        assert await Step(gives(2), steps) == 2

    stepped(main)
