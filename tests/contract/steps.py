"""Steps that tests of input, turns and streams share: sessions with tools, parked turns, bounded waits."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pytest

    from emulator import Turn
    from tests.support import Api

T = TypeVar("T")

WAIT: Final = 10.0
EPOCH: Final = 1_767_225_600_000  # where virtual time starts


def function(name: str = "lookup_order", **fields: Any) -> dict[str, Any]:
    """A function tool."""
    return {"type": "function", "name": name, **fields}


def session_with(api: Api, *tools: dict[str, Any], **agent: Any) -> str:
    """A session that declares these tools."""
    return api.session({"agent": {"tools": list(tools), **agent}})


async def looks_up(turn: Turn) -> None:
    """An agent that parks on one function call and tells what came of it."""
    result = await turn.call("lookup_order", order_id="A-4471")
    await turn.say(f"output={result.output} error={result.error}")


def parked(api: Api, **fields: Any) -> tuple[str, dict[str, Any]]:
    """A session parked on the call of `looks_up`, and the call. `fields` go into the function tool."""
    api.emulator.agent(looks_up)
    session = session_with(api, function(**fields))
    assert api.say(session, "Where is my order?").status == 202
    (action,) = api.actions(session)
    return session, action


def parked_on(api: Api, kind: str) -> tuple[str, dict[str, Any]]:
    """A session parked on one action of a type, and the action."""

    async def agent(turn: Turn) -> None:
        match kind:
            case "function_call":
                await turn.call("lookup_order", order_id="A-4471")
            case "approval":
                await turn.approve("bash", {"command": "./deploy"}, sensitive=True)
            case _:
                await turn.ask("Which region?", ["eu", "us"])
        await turn.say("Thanks.")

    api.emulator.agent(agent)
    session = session_with(api, function())
    assert api.say(session, "Go.").status == 202
    (action,) = api.actions(session)
    assert action["type"] == kind
    return session, action


def replying(action: dict[str, Any], **instead: Any) -> dict[str, Any]:
    """The event that answers an action with success."""
    match action["type"]:
        case "function_call":
            event = {
                "type": "input.tool_result",
                "turn_id": action["turn_id"],
                "call_id": action["call_id"],
                "success": True,
                "output": "shipped",
            }
        case "approval":
            event = {"type": "input.approval", "call_id": action["call_id"], "approved": True}
        case _:
            event = {"type": "input.question_answer", "call_id": action["call_id"], "answer": "eu"}
    return {**event, **instead}


def status(api: Api, session: str) -> str:
    """What a session reads as."""
    found: str = api.get(f"/v1/sessions/{session}").json["status"]
    return found


def types(events: Sequence[dict[str, Any]]) -> list[str]:
    """The types of some events."""
    return [event["type"] for event in events]


def payloads(api: Api, session: str, event_type: str) -> list[dict[str, Any]]:
    """The payloads of a session's persisted events of one type."""
    return [event["payload"] for event in api.events(session) if event["type"] == event_type]


def said(api: Api, session: str) -> list[str]:
    """What the agent said, oldest first."""
    return [payload["text"] for payload in payloads(api, session, "agent.message")]


def advance_to(api: Api, when: int) -> None:
    """Move the clock to a time, in Unix milliseconds."""
    clock = api.emulator.clock
    clock.advance((when - clock.now()) / 1000)


def at_once(count: int, do: Callable[[int], T]) -> list[T]:
    """Do something from many threads at the same moment; what each gave, in order."""
    barrier = threading.Barrier(count)
    results: dict[int, T] = {}
    errors: list[BaseException] = []

    def run(n: int) -> None:
        try:
            barrier.wait(WAIT)
            results[n] = do(n)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(n,)) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT)
        assert not thread.is_alive(), "a thread hangs"
    if errors:
        raise errors[0]
    return [results[n] for n in range(count)]


def until(holds: Callable[[], bool], what: str) -> None:
    """Come back once something holds, which takes at most `WAIT` seconds."""
    end = time.monotonic() + WAIT
    while not holds():
        assert time.monotonic() < end, f"never: {what}"


def hold(api: Api, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Hold what the realistic pace spreads out: the start of turns, deltas, publication. Gives what lets go."""
    gate = asyncio.Event()

    async def pause(seconds: float) -> None:
        await gate.wait()

    monkeypatch.setattr(api.emulator.socket.deployment.clock, "pause", pause)

    def let_go() -> None:
        api.emulator.loop.loop.call_soon_threadsafe(gate.set)

    return let_go
