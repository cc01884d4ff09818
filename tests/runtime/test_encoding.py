"""What JSON cannot carry, said by a script: it is the script's error, and nothing else is broken by it."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from emulator import Emulator
from tests.support import Api

if TYPE_CHECKING:
    from emulator import Turn

FUNCTION = {"agent": {"tools": [{"type": "function", "name": "f"}]}}
BAD = "bad \ud800 text"


def test_an_error_with_a_lone_surrogate_settles_its_turn_and_is_read_and_reported() -> None:
    async def agent(turn: Turn) -> None:
        raise ValueError(BAD)

    with Emulator() as emulator:
        emulator.agent(agent)
        api = Api(emulator)
        session = api.session()
        api.say(session, "Go.")
        assert [event["type"] for event in api.events(session)][-1] == "turn.ended"
        assert api.get(f"/v1/sessions/{session}/turns").status == 200
        assert len(emulator.report()["script_errors"]) == 1


def test_a_failure_with_a_lone_surrogate_is_read() -> None:
    async def agent(turn: Turn) -> None:
        await turn.fail("provider_error", BAD)

    with Emulator() as emulator:
        emulator.agent(agent)
        api = Api(emulator)
        session = api.session()
        api.say(session, "Go.")
        assert api.get(f"/v1/sessions/{session}/turns").status == 200


def test_a_verb_that_raised_has_changed_nothing() -> None:
    async def agent(turn: Turn) -> None:
        with contextlib.suppress(Exception):
            await turn.call("f", value=object())
        with contextlib.suppress(Exception):
            await turn.ask(BAD)
        await turn.ask("Sure?")

    with Emulator() as emulator:
        emulator.agent(agent)
        api = Api(emulator)
        session = api.session(FUNCTION)
        api.say(session, "Go.")
        answer = api.get(f"/v1/sessions/{session}")
        assert answer.status == 200
        assert [action["name"] for action in answer.json["required_actions"]] == ["Sure?"]
        seqs = [event["seq"] for event in api.events(session)]
        assert seqs == list(range(1, len(seqs) + 1))
