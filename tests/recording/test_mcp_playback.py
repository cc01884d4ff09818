"""Calls of MCP tools are played back as they went: what they took, where they never ended, what each of them gave."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.recording.recorded import Recorded
from tests.support import Api

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from pathlib import Path

    from emulator import Emulator, Turn

    Agent = Callable[[Turn], Coroutine[Any, Any, None]]

SERVERS: Final = {
    "mcp": {"docs": {"tools": {"search": {"text": "found", "read_only": True}, "look": {"text": "a page"}}}}
}
DOCS: Final = [{"type": "mcp", "name": "docs", "url": "https://docs.test/mcp"}]
SLOW: Final = {"fault": "slow", "seconds": 30}


async def one_by_one(turn: Turn) -> None:
    for tool in ("look", "search", "search", "look"):
        await turn.say((await turn.mcp("docs", tool, {"q": tool})).text)


async def side_by_side(turn: Turn) -> None:
    await turn.together(turn.mcp("docs", "search"), turn.approve("bash", {"command": "make"}), turn.mcp("docs", "look"))
    await turn.say("Both.")


def played(emulator: Emulator, api: Api, mode: str, advances: tuple[float, ...]) -> list[dict[str, Any]]:
    """What a session shows in which every approval is given, and which is stopped where it does not end by itself."""
    session = api.session({"agent": {"tools": DOCS, "approval_mode": mode}, "input": "go"})
    for _ in range(4):
        for seconds in advances:
            emulator.clock.advance(seconds)
        for action in api.actions(session):
            api.send(session, {"type": "input.approval", "call_id": action["call_id"], "approved": True})
    if api.turns(session)[0]["status"] == "working":
        api.send(session, {"type": "input.cancel"})
    return emulator.events(session)


@pytest.mark.parametrize("mode", ["auto", "per_step", "read_only"])
@pytest.mark.parametrize(
    ("agent", "calls", "advances"),
    [
        pytest.param(one_by_one, ["ok", SLOW], (10, 25), id="slow"),
        pytest.param(one_by_one, ["ok", "time_out"], (60,), id="time out"),
        pytest.param(one_by_one, ["ok", "ok", "hang"], (5,), id="hang"),
        pytest.param(one_by_one, ["ok", "ok", "hang"], (7300,), id="hang until the workspace is reclaimed"),
        pytest.param(one_by_one, ["ok", {**SLOW, "seconds": 500}], (5,), id="stopped while it was slow"),
        pytest.param(one_by_one, ["ok", "drop", {"fault": "error", "text": "no"}], (), id="other results"),
        pytest.param(side_by_side, [SLOW, {**SLOW, "seconds": 0.5}], (10, 25), id="side by side"),
    ],
)
def test_calls_are_played_back_as_they_went(
    gobare: Emulator, tmp_path: Path, agent: Agent, calls: list[Any], advances: tuple[float, ...], mode: str
) -> None:
    gobare.load(SERVERS)
    gobare.agent(agent)
    gobare.mcp.calls("docs", calls)
    with Recorded(gobare, tmp_path / "calls.jsonl") as recorder:
        told = played(gobare, recorder.api, mode, advances)
    gobare.reset()
    gobare.load(tmp_path / "calls.jsonl", mode="strict")
    assert played(gobare, Api(gobare), mode, advances) == told
    assert gobare.report()["recording"] == []
    gobare.reset()
