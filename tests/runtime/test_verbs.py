"""What verbs take: a value of another type is the script's error, and nothing of it reaches a client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from emulator import Emulator, ScriptError
from tests.support import Api

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from emulator import Turn

    Use = Callable[[Any], Awaitable[object]]

FUNCTION = {"agent": {"tools": [{"type": "function", "name": "f"}]}}


@pytest.mark.parametrize(
    ("use", "said"),
    [
        (lambda turn: turn.say(5), "say: `text` is text, which 5 is not"),
        (lambda turn: turn.say("bad \ud800"), "say: `text` has half a surrogate pair"),
        (lambda turn: turn.think(None), "think: `text` is text"),
        (lambda turn: turn.call("f", x=float("nan")), "call: `arguments` has nan, which JSON does not have"),
        (lambda turn: turn.call("f", x=object()), "call: `arguments` has <object"),
        (lambda turn: turn.call_with("f", {1: 2}), "call: `arguments` has a key that is not text: 1"),
        (lambda turn: turn.ask(5), "ask: `question` is text"),
        (lambda turn: turn.ask("?", options="ab"), "ask: `options` is a list of texts"),
        (lambda turn: turn.ask("?", allow_freeform=1), "ask: `allow_freeform` is true or false"),
        (lambda turn: turn.approve(5), "approve: `tool` is text"),
        (lambda turn: turn.use("bash", args=[1]), "use: `args` is an object"),
        (lambda turn: turn.use("bash", exit_code="1"), "use: `exit_code` is an integer"),
        (lambda turn: turn.use("bash", exit_code=True), "use: `exit_code` is an integer"),
        (lambda turn: turn.mcp(1, "t"), "mcp: `server` is text"),
        (lambda turn: turn.write("a", 5), "write: `content` is text"),
        (lambda turn: turn.write(5, "a"), "write: `path` is text"),
        (lambda turn: turn.write("a", "a", "1"), "write: `size` is an integer"),
        (lambda turn: turn.write("a", "four", 3), "write: `size` is a number from 4 to 1e+12, which 3 is not"),
        (lambda turn: turn.write("a/", "a"), "the agent could not write 'a/': /workspace/a is a directory"),
        (lambda turn: turn.delete(5), "delete: `path` is text"),
        (lambda turn: turn.todos([{"lab": "x"}]), "todos: each of `items` has `label` and `status`, not lab"),
        (lambda turn: turn.todos([{"label": 1, "status": "x"}]), "todos: `label` is text"),
        (lambda turn: turn.compact("a", 1), "compact: `before` is an integer"),
        (lambda turn: turn.preview("x"), "preview: `port` is an integer"),
        (lambda turn: turn.preview(-1), "preview: `port` is a number from 1 to 65535"),
        (lambda turn: turn.preview(3000, 5), "preview: `body` is text, which 5 is not"),
        (lambda turn: turn.preview(3000, {"/a": 5}), "preview: `body[/a]` is text, which 5 is not"),
        (lambda turn: turn.wait("x"), "wait: `seconds` is a number"),
        (lambda turn: turn.wait(float("nan")), "wait: `seconds` is a number"),
        (lambda turn: turn.fail("provider_error", 5), "fail: `message` is text"),
        (lambda turn: turn.fail("nope", "x"), "'nope' is not an error code"),
    ],
)
def test_a_wrong_value_is_a_script_error_and_shows_nothing(use: Use, said: str) -> None:
    with Emulator() as gobare:
        api = Api(gobare)
        raised: list[Exception] = []

        @gobare.agent
        async def agent(turn: Turn) -> None:
            try:
                await use(turn)
            except ScriptError as error:
                raised.append(error)
            await turn.call("f")

        session = api.session({**FUNCTION, "input": "Go."})
        assert [str(error).startswith(said) for error in raised] == [True], raised
        seen = [event["type"] for event in api.events(session)]
        assert seen == ["user.message", "sandbox.created", "turn.started", "tool.required"]
        assert [event["seq"] for event in api.events(session)] == [1, 2, 3, 4]
        assert api.get("/v1/sessions").status == 200


def test_a_script_error_is_logged_where_it_can_be_seen(caplog: pytest.LogCaptureFixture) -> None:
    with Emulator() as gobare:

        @gobare.agent
        async def agent(turn: Turn) -> None:
            raise LookupError("gone")

        session = Api(gobare).session({"input": "Go."})
        with pytest.raises(LookupError, match="gone"):
            gobare.raise_script_errors()
    (record,) = caplog.records
    assert record.getMessage().startswith(f"script error in session {session}, at test_verbs.py:")


def test_nothing_is_raised_where_no_script_failed(gobare: Emulator) -> None:
    gobare.raise_script_errors()


def test_one_restless_agent_costs_an_advance_its_bound_once(gobare: Emulator, api: Api) -> None:
    import asyncio
    import time

    gobare.settings.update(rest_seconds=0.6)
    go = asyncio.Event()

    @gobare.agent
    async def agent(turn: Turn) -> None:
        if turn.message == "restless":
            await go.wait()
        else:
            await turn.wait(60)

    for n in range(4):
        api.session({"input": f"{n}"})
    api.session({"input": "restless"})
    started = time.monotonic()
    gobare.clock.advance(61)
    assert time.monotonic() - started < 2.2
    assert len(gobare.report()["agent_not_at_rest"]) <= 2
    gobare.loop.loop.call_soon_threadsafe(go.set)
    assert gobare.settle()
