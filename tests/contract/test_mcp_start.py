"""MCP servers coming up with the workspace: optional ones that are skipped, and when they are tried (contract §5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.contract.tool_doors import FUNCTION, PROCESS, SERVER, put

if TYPE_CHECKING:
    from tests.support import Api

TIMED_OUT: Final = "the server did not answer within 10s"
OPTIONAL: Final = [SERVER, SERVER | {"required": False}, PROCESS | {"name": "docs"}]


def types(api: Api, session_id: str) -> list[str]:
    """The types of a session's persisted events."""
    return [event["type"] for event in api.events(session_id)]


def unavailable(api: Api, session_id: str) -> list[str]:
    """The servers a session was told are unavailable, in order."""
    return [event["payload"]["server"] for event in api.events(session_id) if event["type"] == "mcp.unavailable"]


@pytest.mark.behaviour("mcp.optional.skipped", "mcp.optional.before-the-turn", "mcp.reason.default")
@pytest.mark.parametrize("entry", OPTIONAL, ids=["absent", "false", "command"])
def test_an_optional_server_that_is_down_is_skipped_and_the_turn_runs(api: Api, entry: dict[str, Any]) -> None:
    session_id = api.session({"agent": {"tools": [entry]}})
    api.emulator.mcp.down("docs")

    answer = api.say(session_id, "hello")

    assert answer.status == 202
    assert types(api, session_id) == [
        "user.message",
        "sandbox.created",
        "mcp.unavailable",
        "turn.started",
        "agent.message",
        "turn.ended",
    ]
    assert [turn["status"] for turn in api.turns(session_id)] == ["completed"]
    assert api.get(f"/v1/sessions/{session_id}").json["status"] == "idle"


@pytest.mark.behaviour("mcp.optional.event", "mcp.reason.default")
def test_the_event_has_server_name_and_reason(api: Api) -> None:
    session_id = api.session({"agent": {"tools": [SERVER]}})
    api.emulator.mcp.down("docs")

    api.say(session_id, "hello")

    (event,) = [event for event in api.events(session_id) if event["type"] == "mcp.unavailable"]
    assert event["payload"] == {"server": "docs", "name": "docs", "reason": "fetch failed"}
    assert event["session_id"] == session_id
    assert isinstance(event["seq"], int)


@pytest.mark.behaviour("mcp.optional.event")
def test_the_event_is_on_the_stream_with_its_cursor(api: Api) -> None:
    session_id = api.session({"agent": {"tools": [SERVER]}})
    api.emulator.mcp.down("docs")

    with api.stream(f"/v1/sessions/{session_id}/events") as frames:
        api.say(session_id, "hello")
        frame = frames.until("mcp.unavailable")[-1]

    assert frame.payload == {"server": "docs", "name": "docs", "reason": "fetch failed"}
    assert frame.id == frame.data["seq"]


@pytest.mark.behaviour("mcp.optional.item")
def test_the_item_has_both_at_its_top_and_in_its_detail(api: Api) -> None:
    session_id = api.session({"agent": {"tools": [SERVER]}})
    api.emulator.mcp.down("docs", reason=TIMED_OUT)

    api.say(session_id, "hello")

    items = api.items(session_id)
    assert [item["type"] for item in items] == ["message", "mcp_unavailable", "message"]
    assert items[1] == {
        "object": "item",
        "id": items[1]["id"],
        "session_id": session_id,
        "type": "mcp_unavailable",
        "created_at": items[1]["created_at"],
        "server": "docs",
        "reason": TIMED_OUT,
        "detail": {"event": "mcp.unavailable", "server": "docs", "name": "docs", "reason": TIMED_OUT},
    }


@pytest.mark.behaviour("mcp.optional.several")
def test_several_servers_that_are_down_are_told_of_in_declared_order(api: Api) -> None:
    names = ["zeta", "alpha", "up", "mid"]
    session_id = api.session({"agent": {"tools": [SERVER | {"name": name} for name in names]}})
    api.emulator.mcp.down("alpha", reason="one")
    api.emulator.mcp.down("mid", reason="two")
    api.emulator.mcp.down("zeta", reason="three")

    api.say(session_id, "hello")

    told = [event["payload"] for event in api.events(session_id) if event["type"] == "mcp.unavailable"]
    assert [(payload["server"], payload["reason"]) for payload in told] == [
        ("zeta", "three"),
        ("alpha", "one"),
        ("mid", "two"),
    ]
    assert [item["server"] for item in api.items(session_id) if item["type"] == "mcp_unavailable"] == [
        "zeta",
        "alpha",
        "mid",
    ]


@pytest.mark.behaviour("mcp.optional.once-a-start", "mcp.start.once")
def test_a_skipped_server_is_told_of_once_and_not_with_every_message(api: Api) -> None:
    session_id = api.session({"agent": {"tools": [SERVER]}})
    api.emulator.mcp.down("docs")

    for text in ("one", "two", "three"):
        api.say(session_id, text)

    assert unavailable(api, session_id) == ["docs"]


@pytest.mark.behaviour("mcp.optional.once-a-start")
def test_each_session_is_told_for_itself(api: Api) -> None:
    sessions = [api.session({"agent": {"tools": [SERVER]}}) for _ in range(2)]
    api.emulator.mcp.down("docs")

    for session_id in sessions:
        api.say(session_id, "hello")

    assert [unavailable(api, session_id) for session_id in sessions] == [["docs"], ["docs"]]


@pytest.mark.behaviour("mcp.optional.called")
def test_a_tool_of_a_skipped_server_fails_with_the_reason(api: Api) -> None:
    results: list[Any] = []

    @api.emulator.agent
    async def agent(turn: Any) -> None:
        results.append(await turn.mcp("docs", "search", {"q": "x"}))

    session_id = api.session({"agent": {"tools": [SERVER]}})
    api.emulator.mcp.down("docs", reason=TIMED_OUT)
    api.say(session_id, "hello")

    assert [result.is_error for result in results] == [True]
    assert TIMED_OUT in results[0].text
    (outcome,) = [event["payload"] for event in api.events(session_id) if event["type"] == "agent.tool_result"]
    assert (outcome["toolName"], outcome["isError"]) == ("mcp_docs_search", True)
    assert [turn["status"] for turn in api.turns(session_id)] == ["completed"]


# When they are tried


@pytest.mark.behaviour("mcp.start.on-first-need")
def test_nothing_is_connected_to_before_a_call_needs_the_workspace(api: Api) -> None:
    api.emulator.mcp.down("docs", reason=TIMED_OUT, times=1)
    before = api.emulator.clock.now()

    session_id = api.session({"agent": {"tools": [SERVER]}})
    put(api, session_id, SERVER, FUNCTION)
    put(api, session_id, SERVER)
    for path in ("", "/tools", "/items", "/turns"):
        assert api.get(f"/v1/sessions/{session_id}{path}").status == 200
    assert api.patch(f"/v1/sessions/{session_id}", {"title": "x"}).status == 200
    assert api.send(session_id, {"type": "input.cancel"}).status == 202
    assert api.send(session_id, {"type": "input.context", "content": "x"}).json["delivered"] is False

    # A connect would have used up the one outage, and ten seconds of the clock.
    assert api.emulator.clock.now() - before < 1000
    assert types(api, session_id) == ["user.context"]
    assert api.get(f"/v1/sessions/{session_id}").json["environment"]["state"] == "unknown"
    api.say(session_id, "hello")
    assert unavailable(api, session_id) == ["docs"]
    assert api.emulator.clock.now() - before > 10_000


@pytest.mark.behaviour("mcp.start.on-first-need")
def test_an_opening_input_needs_the_workspace(api: Api) -> None:
    api.emulator.mcp.down("docs")

    session_id = api.session({"agent": {"tools": [SERVER]}, "input": "hello"})

    assert unavailable(api, session_id) == ["docs"]


@pytest.mark.behaviour("mcp.start.once")
def test_a_server_that_goes_down_later_is_not_noticed_by_a_running_workspace(api: Api) -> None:
    session_id = api.session({"agent": {"tools": [SERVER | {"required": True}]}})
    api.say(session_id, "one")
    api.emulator.mcp.down("docs")

    assert api.say(session_id, "two").status == 202
    assert [turn["status"] for turn in api.turns(session_id)] == ["completed", "completed"]
    assert unavailable(api, session_id) == []


@pytest.mark.behaviour("mcp.start.once")
def test_a_workspace_that_is_woken_connects_to_no_server(api: Api) -> None:
    session_id = api.session({"agent": {"tools": [SERVER]}})
    api.say(session_id, "one")
    api.emulator.mcp.down("docs")

    api.emulator.clock.advance(301)
    api.say(session_id, "two")

    assert types(api, session_id).count("sandbox.resumed") == 1
    assert unavailable(api, session_id) == []


@pytest.mark.behaviour("mcp.start.again-with-a-new-workspace", "mcp.optional.once-a-start")
def test_a_workspace_that_is_built_again_connects_again(api: Api) -> None:
    @api.emulator.agent
    async def agent(turn: Any) -> None:
        if turn.message == "wait":
            await turn.ask("Go on?")

    session_id = api.session({"agent": {"tools": [SERVER]}})
    api.emulator.mcp.down("docs")
    api.say(session_id, "wait")
    api.emulator.clock.advance(7201)
    assert api.get(f"/v1/sessions/{session_id}").json["environment"]["state"] == "destroyed"

    api.say(session_id, "two")

    assert unavailable(api, session_id) == ["docs", "docs"]
    assert types(api, session_id).count("sandbox.created") == 2


@pytest.mark.behaviour("mcp.start.again-after-put")
def test_a_put_on_a_running_workspace_starts_its_servers_anew(api: Api) -> None:
    session_id = api.session({"agent": {"tools": [SERVER]}})
    api.say(session_id, "one")
    api.emulator.mcp.down("docs")

    put(api, session_id, SERVER)
    assert unavailable(api, session_id) == []
    api.say(session_id, "two")
    api.say(session_id, "three")

    assert unavailable(api, session_id) == ["docs"]
    assert types(api, session_id).count("sandbox.created") == 1
    assert types(api, session_id).index("mcp.unavailable") < _last(types(api, session_id), "turn.started")


@pytest.mark.behaviour("mcp.start.again-after-put")
def test_a_put_on_a_paused_workspace_starts_its_servers_when_it_wakes(api: Api) -> None:
    session_id = api.session({"agent": {"tools": [SERVER]}})
    api.say(session_id, "one")
    api.emulator.clock.advance(301)
    api.emulator.mcp.down("docs")

    put(api, session_id, SERVER)
    api.say(session_id, "two")

    assert unavailable(api, session_id) == ["docs"]
    assert types(api, session_id).index("sandbox.resumed") < types(api, session_id).index("mcp.unavailable")


@pytest.mark.behaviour("mcp.start.again-after-put", "mcp.optional.once-a-start")
def test_a_server_that_is_still_down_after_a_put_is_told_of_again(api: Api) -> None:
    session_id = api.session({"agent": {"tools": [SERVER]}})
    api.emulator.mcp.down("docs")
    api.say(session_id, "one")

    put(api, session_id, SERVER, FUNCTION | {"name": "unused"})
    api.emulator.load({"agent": [{"otherwise": [{"say": "hello"}]}]})
    api.say(session_id, "two")

    assert unavailable(api, session_id) == ["docs", "docs"]


@pytest.mark.behaviour("mcp.start.again-after-put")
def test_a_put_brings_a_server_back_that_had_to_be_skipped(api: Api) -> None:
    results: list[Any] = []

    @api.emulator.agent
    async def agent(turn: Any) -> None:
        results.append(await turn.mcp("docs", "search", {}))

    api.emulator.load({"mcp": {"docs": {"state": "down", "times": 1, "tools": {"search": {"text": "3 pages"}}}}})
    session_id = api.session({"agent": {"tools": [SERVER]}})
    api.say(session_id, "one")
    api.say(session_id, "two")

    put(api, session_id, SERVER)
    api.say(session_id, "three")

    assert [result.is_error for result in results] == [True, True, False]
    assert results[2].text == "3 pages"


@pytest.mark.behaviour("mcp.start.again-after-put", "mcp.required.refused")
def test_a_required_server_that_is_down_after_a_put_refuses_the_next_message(api: Api) -> None:
    session_id = api.session()
    api.say(session_id, "one")
    api.emulator.mcp.down("docs")

    put(api, session_id, SERVER | {"required": True})
    answer = api.say(session_id, "two")

    assert (answer.status, answer.code) == (400, "invalid_request")
    assert "docs: fetch failed" in answer.message
    assert len(api.turns(session_id)) == 1
    assert api.get(f"/v1/sessions/{session_id}").json["status"] == "failed"


def _last(names: list[str], name: str) -> int:
    return len(names) - 1 - names[::-1].index(name)
