"""What a configuration leaves the agent, and when a change of it reaches the agent (contract §5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from emulator import ScriptError
from tests.contract.tool_doors import BUILT_INS, FUNCTION, SERVER, Door, at_both_doors, put, read

if TYPE_CHECKING:
    from tests.support import Api

SEARCH: Final = {"type": "web_search"}
FETCH: Final = {"type": "web_fetch"}
BROWSE: Final = {"type": "browse"}
LATER: Final = {"type": "function", "name": "look_again"}

# The deployment has these two switched off.
off = pytest.mark.gobare(disabled_tools=["web_search", "browse"])
ALLOWED: Final = ["web_fetch", "image_search", "browser_act", "screenshot"]


def built_ins(api: Api, session_id: str) -> list[str]:
    """The built-ins a session's agent has."""
    names: list[str] = api.emulator.effective_tools(session_id)["built_ins"]
    return names


@pytest.mark.behaviour("tools.built-ins.named-narrow")
@at_both_doors
def test_naming_built_ins_leaves_exactly_those(api: Api, door: Door) -> None:
    session_id = door.configured(api, tools=[FETCH, FUNCTION, SEARCH])["session_id"]

    assert api.emulator.effective_tools(session_id) == {
        "configured": True,
        "built_ins": ["web_search", "web_fetch"],
        "functions": ["lookup_order"],
        "servers": [],
    }


@pytest.mark.behaviour("tools.built-ins.none-named")
@at_both_doors
def test_naming_none_leaves_the_deployments_allowance(api: Api, door: Door) -> None:
    session_id = door.configured(api, tools=[FUNCTION, SERVER])["session_id"]

    assert built_ins(api, session_id) == list(BUILT_INS)
    assert api.emulator.effective_tools(session_id)["servers"] == ["docs"]


@off
@pytest.mark.behaviour("tools.built-ins.none-named", "tools.built-ins.switched-off")
@at_both_doors
def test_the_allowance_is_less_what_the_deployment_switched_off(api: Api, door: Door) -> None:
    assert built_ins(api, door.configured(api, tools=[FUNCTION])["session_id"]) == ALLOWED
    assert built_ins(api, api.session()) == ALLOWED


@pytest.mark.behaviour("tools.built-ins.empty-list")
@at_both_doors
def test_an_empty_list_leaves_none(api: Api, door: Door) -> None:
    configuration = door.configured(api, tools=[])

    assert configuration["tools"] == []
    effective = api.emulator.effective_tools(configuration["session_id"])
    assert effective == {"configured": True, "built_ins": [], "functions": [], "servers": []}


@off
@pytest.mark.behaviour("tools.built-ins.switched-off")
@at_both_doors
def test_a_built_in_that_is_switched_off_does_not_come_back_by_being_named(api: Api, door: Door) -> None:
    answer = door.send(api, tools=[SEARCH, FUNCTION, FETCH, BROWSE])
    assert answer.status in (200, 201)
    session_id = answer.json["session_id" if answer.status == 200 else "id"]

    assert read(api, session_id)["tools"] == [FUNCTION, FETCH]
    assert api.get(f"/v1/sessions/{session_id}").json["agent"]["tools"] == [FUNCTION, FETCH]
    assert built_ins(api, session_id) == ["web_fetch"]


@off
@pytest.mark.behaviour("tools.built-ins.switched-off")
def test_the_answer_of_a_put_shows_the_intersection_too(api: Api) -> None:
    assert put(api, api.session(), SEARCH, FETCH).json["tools"] == [FETCH]


@off
@pytest.mark.behaviour("tools.built-ins.switched-off")
@at_both_doors
def test_naming_only_what_is_switched_off_leaves_none(api: Api, door: Door) -> None:
    configuration = door.configured(api, tools=[SEARCH, BROWSE])

    assert configuration["tools"] == []
    assert built_ins(api, configuration["session_id"]) == []


@off
@pytest.mark.behaviour("tools.built-ins.switched-off", "tools.built-ins.agent-held-to-it")
def test_an_agent_cannot_use_a_built_in_that_is_switched_off(api: Api) -> None:
    assert uses(api, api.session({"agent": {"tools": [SEARCH, FETCH]}})) == ["web_fetch"]


@pytest.mark.behaviour("tools.built-ins.agent-held-to-it", "tools.built-ins.named-narrow")
def test_an_agent_can_use_the_built_ins_that_were_named(api: Api) -> None:
    session_id = api.session({"agent": {"tools": [BROWSE, SEARCH]}})

    assert uses(api, session_id) == ["web_search", "browse"]
    used = [event["payload"]["toolName"] for event in api.events(session_id) if event["type"] == "agent.tool_call"]
    assert used == ["web_search", "browse"]


@pytest.mark.behaviour("tools.built-ins.agent-held-to-it", "tools.built-ins.empty-list", "tools.built-ins.none-named")
@pytest.mark.parametrize(
    ("agent", "expected"),
    [({"tools": []}, []), ({"tools": [FUNCTION]}, list(BUILT_INS)), ({}, list(BUILT_INS))],
    ids=["empty-list", "none-named", "never-configured"],
)
def test_an_agent_has_what_the_configuration_leaves(api: Api, agent: dict[str, Any], expected: list[str]) -> None:
    assert uses(api, api.session({"agent": agent})) == expected


@pytest.mark.behaviour("tools.built-ins.agent-held-to-it")
def test_what_is_inside_the_workspace_is_not_configured_here(api: Api) -> None:
    @api.emulator.agent
    async def agent(turn: Any) -> None:
        for tool in ("bash", "read", "write"):
            await turn.use(tool, {}, summary="done")

    session_id = api.session({"agent": {"tools": []}})
    api.say(session_id, "go")

    assert [turn["status"] for turn in api.turns(session_id)] == ["completed"]


def uses(api: Api, session_id: str) -> list[str]:
    """The built-ins the agent of a session could use in a turn."""
    used: list[str] = []

    @api.emulator.agent
    async def agent(turn: Any) -> None:
        for name in BUILT_INS:
            try:
                await turn.use(name, {}, summary="done")
            except ScriptError as refused:
                assert name in str(refused)  # noqa: PT017
            else:
                used.append(name)

    api.say(session_id, "use everything")
    assert [turn["status"] for turn in api.turns(session_id)] == ["completed"]
    return used


# When a change reaches the agent


def declared(api: Api) -> list[list[str]]:
    """What the agent finds declared, turn by turn. A message that says `wait` keeps its turn on a question."""
    found: list[list[str]] = []

    @api.emulator.agent
    async def agent(turn: Any) -> None:
        found.append([tool["name"] for tool in turn.session.tools])
        if turn.message == "wait":
            await turn.ask("Go on?")
            found.append([tool["name"] for tool in turn.session.tools])
            for name in ("lookup_order", "look_again"):
                if name in found[-1]:
                    await turn.call(name)

    return found


@pytest.mark.behaviour("tools.reach.next-turn")
def test_a_put_reaches_the_agent_with_its_next_turn(api: Api) -> None:
    found = declared(api)
    session_id = api.session({"agent": {"tools": [FUNCTION]}})
    api.say(session_id, "one")

    put(api, session_id, LATER)
    api.say(session_id, "two")

    assert found == [["lookup_order"], ["look_again"]]


@pytest.mark.behaviour("tools.reach.next-turn")
def test_a_turn_that_runs_keeps_what_it_began_with(api: Api) -> None:
    found = declared(api)
    session_id = api.session({"agent": {"tools": [FUNCTION]}})
    api.say(session_id, "wait")

    put(api, session_id, LATER)
    api.emulator.answer("yes")

    assert found == [["lookup_order"], ["lookup_order"]]
    assert [action["name"] for action in api.actions(session_id)] == ["lookup_order"]
    assert [tool["name"] for tool in read(api, session_id)["tools"]] == ["look_again"]


@pytest.mark.behaviour("tools.reach.next-turn")
def test_a_put_before_the_first_turn_reaches_it(api: Api) -> None:
    found = declared(api)
    session_id = api.session({"agent": {"tools": [FUNCTION]}})

    put(api, session_id, LATER)
    api.say(session_id, "one")

    assert found == [["look_again"]]


@pytest.mark.behaviour("tools.reach.next-turn")
def test_a_change_of_built_ins_reaches_the_next_turn(api: Api) -> None:
    session_id = api.session({"agent": {"tools": []}})
    assert uses(api, session_id) == []

    put(api, session_id, BROWSE)

    assert built_ins(api, session_id) == ["browse"]
    used: list[str] = []

    @api.emulator.agent
    async def agent(turn: Any) -> None:
        await turn.use("browse", {}, summary="done")
        used.append("browse")

    api.say(session_id, "again")
    assert used == ["browse"]


next_workspace = pytest.mark.gobare(tools_reach="next_workspace")


@next_workspace
@pytest.mark.behaviour("tools.reach.next-workspace")
def test_a_put_reads_back_at_once_and_leaves_the_running_workspace_alone(api: Api) -> None:
    found = declared(api)
    session_id = api.session({"agent": {"tools": [FUNCTION]}})
    api.say(session_id, "one")

    answer = put(api, session_id, LATER)
    api.say(session_id, "two")

    assert answer.json["tools"] == [LATER]
    assert read(api, session_id)["tools"] == [LATER]
    assert found == [["lookup_order"], ["lookup_order"]]
    assert api.emulator.effective_tools(session_id)["functions"] == ["lookup_order"]


@next_workspace
@pytest.mark.behaviour("tools.reach.next-workspace")
def test_a_put_before_there_is_a_workspace_reaches_the_first_turn(api: Api) -> None:
    found = declared(api)
    session_id = api.session({"agent": {"tools": [FUNCTION]}})

    put(api, session_id, LATER)
    api.say(session_id, "one")

    assert found == [["look_again"]]


@next_workspace
@pytest.mark.behaviour("tools.reach.next-workspace")
def test_a_workspace_that_was_paused_and_woken_is_not_a_new_one(api: Api) -> None:
    found = declared(api)
    session_id = api.session({"agent": {"tools": [FUNCTION]}})
    api.say(session_id, "one")
    put(api, session_id, LATER)

    api.emulator.clock.advance(301)
    assert api.get(f"/v1/sessions/{session_id}").json["environment"]["state"] == "paused"
    api.say(session_id, "two")

    assert found == [["lookup_order"], ["lookup_order"]]


@next_workspace
@pytest.mark.behaviour("tools.reach.next-workspace")
def test_a_workspace_that_was_reclaimed_and_built_again_has_what_was_put(api: Api) -> None:
    found = declared(api)
    session_id = api.session({"agent": {"tools": [FUNCTION]}})
    api.say(session_id, "wait")
    put(api, session_id, LATER)

    api.emulator.clock.advance(7201)
    assert api.get(f"/v1/sessions/{session_id}").json["environment"]["state"] == "destroyed"
    api.say(session_id, "two")

    assert found == [["lookup_order"], ["look_again"]]
    assert api.emulator.effective_tools(session_id)["functions"] == ["look_again"]


@next_workspace
@pytest.mark.behaviour("tools.reach.next-workspace")
def test_a_put_does_not_start_the_servers_of_a_running_workspace(api: Api) -> None:
    declared(api)
    session_id = api.session()
    api.say(session_id, "one")
    api.emulator.mcp.down("docs")

    put(api, session_id, SERVER | {"required": True})

    assert api.say(session_id, "two").status == 202
    assert [turn["status"] for turn in api.turns(session_id)] == ["completed", "completed"]
