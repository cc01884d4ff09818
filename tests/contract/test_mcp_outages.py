"""Scripted outages of MCP servers, and what they do to the clock (contract §5, §13)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.contract.tool_doors import SERVER, put

if TYPE_CHECKING:
    from tests.support import Api

TIMED_OUT: Final = "the server did not answer within 10s"
REQUIRED: Final = SERVER | {"required": True}


def connects(api: Api, count: int, name: str = "docs") -> list[str | None]:
    """How each of the next connects to a server ends: its reason, or `None` when it is up."""
    ends: list[str | None] = []
    for _ in range(count):
        session_id = api.session({"agent": {"tools": [SERVER | {"name": name}]}})
        api.say(session_id, "hello")
        told = [event["payload"] for event in api.events(session_id) if event["type"] == "mcp.unavailable"]
        ends.append(told[0]["reason"] if told else None)
    return ends


@pytest.mark.behaviour("mcp.outage.down-and-up", "mcp.reason.default")
def test_a_server_is_up_until_it_is_down_and_down_until_it_is_up(api: Api) -> None:
    assert connects(api, 1) == [None]
    api.emulator.mcp.down("docs")
    assert connects(api, 3) == ["fetch failed"] * 3
    api.emulator.mcp.down("docs", reason="other")
    assert connects(api, 2) == ["other"] * 2
    api.emulator.mcp.up("docs")
    assert connects(api, 2) == [None] * 2


@pytest.mark.behaviour("mcp.outage.times")
@pytest.mark.parametrize("times", [1, 2, 5])
def test_that_many_connects_fail_and_then_it_is_up(api: Api, times: int) -> None:
    api.emulator.mcp.down("docs", reason="busy", times=times)

    assert connects(api, times + 2) == ["busy"] * times + [None, None]


@pytest.mark.behaviour("mcp.outage.times")
def test_up_ends_an_outage_before_its_count(api: Api) -> None:
    api.emulator.mcp.down("docs", times=3)
    assert connects(api, 1) == ["fetch failed"]

    api.emulator.mcp.up("docs")

    assert connects(api, 1) == [None]


@pytest.mark.behaviour("mcp.outage.script")
def test_a_script_gives_each_connect_its_end_and_then_it_is_up(api: Api) -> None:
    api.emulator.mcp.script("docs", ["down", "up", {"state": "down", "reason": "slow"}, "down"])

    assert connects(api, 6) == ["fetch failed", None, "slow", "fetch failed", None, None]


@pytest.mark.behaviour("mcp.outage.script", "mcp.outage.down-and-up")
def test_a_later_word_about_a_server_takes_the_place_of_the_one_before(api: Api) -> None:
    api.emulator.mcp.script("docs", ["down", "down"])
    api.emulator.mcp.up("docs")
    assert connects(api, 1) == [None]

    api.emulator.mcp.down("docs")
    api.emulator.mcp.script("docs", ["up", "down"])
    assert connects(api, 3) == [None, "fetch failed", None]


@pytest.mark.behaviour("mcp.outage.by-name")
def test_an_outage_is_of_one_name_whoever_declares_it(api: Api) -> None:
    api.emulator.mcp.down("docs")

    assert connects(api, 2, "docs") == ["fetch failed"] * 2
    assert connects(api, 1, "Docs") == [None]
    assert connects(api, 1, "notes") == [None]
    other = api.emulator.tokens.mint(organization="other").token
    session_id = api.session({"agent": {"tools": [REQUIRED]}}, token=other)
    assert api.say(session_id, "hello", token=other).status == 400


@pytest.mark.behaviour("mcp.outage.by-name")
@pytest.mark.parametrize("name", ["a/b", "my server", "ü", "a%2Fb", "mcp", ".."], ids=ascii)
def test_a_server_of_any_name_can_be_down(api: Api, name: str) -> None:
    api.emulator.mcp.down(name)

    assert connects(api, 1, name) == ["fetch failed"]


@pytest.mark.behaviour("mcp.outage.scenario")
def test_the_outages_of_a_scenario_come_and_go_with_it(api: Api) -> None:
    api.emulator.load(
        {
            "mcp": {
                "docs": {"state": "down", "reason": TIMED_OUT},
                "notes": {"state": "down", "times": 1},
                "wiki": {"script": [{"state": "up"}, {"state": "down", "reason": "slow"}]},
                "runbook": {},
            }
        }
    )

    assert connects(api, 2, "docs") == [TIMED_OUT] * 2
    assert connects(api, 2, "notes") == ["fetch failed", None]
    assert connects(api, 3, "wiki") == [None, "slow", None]
    assert connects(api, 1, "runbook") == [None]
    api.emulator.load({})
    assert connects(api, 1, "docs") == [None]


@pytest.mark.behaviour("mcp.outage.scenario")
@pytest.mark.gobare(scenario={"mcp": {"docs": {"state": "down", "times": 1}}})
def test_a_scenario_at_the_start_brings_its_outages(api: Api) -> None:
    assert connects(api, 2) == ["fetch failed", None]


# Time


@pytest.mark.behaviour("mcp.timeout.jumps-the-clock", "mcp.reason.timeout")
def test_a_connect_that_times_out_takes_ten_seconds_of_the_clock(api: Api) -> None:
    api.emulator.mcp.down("docs", reason=TIMED_OUT)
    session_id = api.session({"agent": {"tools": [SERVER]}})
    before = api.emulator.clock.now()

    api.say(session_id, "hello")

    # Besides, each persisted event takes a millisecond.
    assert api.emulator.clock.now() - before == 10_000 + len(api.events(session_id))


@pytest.mark.behaviour("mcp.timeout.jumps-the-clock")
def test_several_that_time_out_take_ten_seconds_each(api: Api) -> None:
    tools = [REQUIRED | {"name": "a"}, SERVER | {"name": "b"}, SERVER | {"name": "c"}, SERVER | {"name": "d"}]
    for name in ("a", "b", "c"):
        api.emulator.mcp.down(name, reason=TIMED_OUT)
    session_id = api.session({"agent": {"tools": tools}})
    before = api.emulator.clock.now()

    assert api.say(session_id, "hello").status == 400

    assert api.emulator.clock.now() - before == 30_000 + len(api.events(session_id))


@pytest.mark.behaviour("mcp.timeout.jumps-the-clock")
@pytest.mark.parametrize("reason", [None, "the server did not answer within 9s"])
def test_a_connect_that_fails_otherwise_takes_none(api: Api, reason: str | None) -> None:
    api.emulator.mcp.down("docs", reason=reason)
    session_id = api.session({"agent": {"tools": [SERVER]}})
    before = api.emulator.clock.now()

    api.say(session_id, "hello")

    assert api.emulator.clock.now() - before == len(api.events(session_id))


@pytest.mark.behaviour("mcp.timeout.jumps-the-clock")
def test_a_timeout_shows_in_the_times_a_client_reads(api: Api) -> None:
    api.emulator.mcp.down("docs", reason=TIMED_OUT)
    session_id = api.session({"agent": {"tools": [SERVER]}})
    created_at = api.get(f"/v1/sessions/{session_id}").json["created_at"]

    api.say(session_id, "hello")

    (turn,) = api.turns(session_id)
    assert 10_000 <= turn["started_at"] - created_at < 10_100


@pytest.mark.behaviour("mcp.timeout.deadlines-follow")
def test_a_deadline_within_the_jump_is_met_right_after_it(api: Api) -> None:
    @api.emulator.agent
    async def agent(turn: Any) -> None:
        if turn.session.tools[0]["type"] == "function":
            result = await turn.call("lookup_order")
            await turn.say(f"{result.success}")

    waiting = api.session({"agent": {"tools": [{"type": "function", "name": "lookup_order", "timeout_seconds": 5}]}})
    api.say(waiting, "hello")
    assert len(api.actions(waiting)) == 1

    api.emulator.mcp.down("docs", reason=TIMED_OUT)
    other = api.session({"agent": {"tools": [SERVER]}})
    api.say(other, "hello")
    api.emulator.settle()

    assert api.actions(waiting) == []
    assert api.items(waiting)[-1]["content"] == "False"
    assert [turn["status"] for turn in api.turns(waiting)] == ["completed"]


@pytest.mark.behaviour("mcp.timeout.deadlines-follow")
def test_a_deadline_beyond_the_jump_is_not(api: Api) -> None:
    waiting = api.session({"agent": {"tools": [{"type": "function", "name": "lookup_order", "timeout_seconds": 11}]}})
    api.say(waiting, "hello")
    api.emulator.mcp.down("docs", reason=TIMED_OUT)

    api.say(api.session({"agent": {"tools": [SERVER]}}), "hello")
    api.emulator.settle()

    assert len(api.actions(waiting)) == 1


@pytest.mark.behaviour("mcp.timeout.jumps-the-clock")
def test_a_timeout_of_a_start_after_a_put_jumps_the_clock_too(api: Api) -> None:
    session_id = api.session()
    api.say(session_id, "one")
    api.emulator.mcp.down("docs", reason=TIMED_OUT, times=1)
    put(api, session_id, SERVER)
    before, events = api.emulator.clock.now(), len(api.events(session_id))

    api.say(session_id, "two")

    assert api.emulator.clock.now() - before == 10_000 + len(api.events(session_id)) - events
