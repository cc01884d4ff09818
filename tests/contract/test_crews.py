"""Crews: several sessions working on one thing, as a tree of ordinary sessions (contract §6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.contract.steps import function, said

if TYPE_CHECKING:
    from emulator import Turn
    from tests.support import Api


def chain(api: Api, length: int) -> list[str]:
    """Sessions each below the one before."""
    sessions = [api.session()]
    while len(sessions) < length:
        sessions.append(api.session({"parent_session_id": sessions[-1]}))
    return sessions


def listed(api: Api, root: str) -> list[str]:
    page = api.get(f"/v1/sessions?root={root}&order=asc&limit=100").json
    return [session["id"] for session in page["data"]]


def streamed(api: Api, root: str) -> list[str]:
    """The sessions whose context events a root's stream replays."""
    last = api.emulator.events()[-1]["seq"]
    with api.stream(f"/v1/events?root={root}&last_event_id=0") as frames:
        seen: list[tuple[int, str]] = []
        while not seen or seen[-1][0] != last:
            frame = frames.event()
            assert frame is not None
            seen.append((frame.data["seq"], frame.data["session_id"]))
    return [session for _, session in seen]


def note(api: Api, session_id: str) -> None:
    api.send(session_id, {"type": "input.context", "content": "noted"})


@pytest.mark.behaviour("crews.tree", "crews.depth")
def test_a_crew_is_seen_sixteen_levels_deep_from_its_root(api: Api) -> None:
    crew = chain(api, 17)
    for session_id in crew[1:]:
        note(api, session_id)
    note(api, crew[0])
    assert listed(api, crew[0]) == crew[:16]
    assert streamed(api, crew[0]) == [*crew[1:16], crew[0]]
    assert api.get(f"/v1/sessions/{crew[0]}/usage?root={crew[0]}").json["sessions"] == 16
    assert api.get(f"/v1/sessions/{crew[16]}").json["parent_session_id"] == crew[15]
    assert listed(api, crew[1]) == crew[1:]
    assert api.get(f"/v1/sessions/{crew[1]}/usage?root={crew[1]}").json["sessions"] == 16


@pytest.mark.behaviour("crews.start-clean")
def test_a_member_begins_clean_and_a_fork_does_not(api: Api) -> None:
    root = api.session({"input": "Write /workspace/a.txt", "agent": {"instructions": "Research."}})
    member = api.session({"parent_session_id": root})
    fork = api.post(f"/v1/sessions/{root}/fork").json["id"]
    assert api.items(member) == []
    assert api.items(fork) != []
    shown = api.get(f"/v1/sessions/{member}").json
    assert (shown["agent"]["instructions"], shown["agent"]["tools"], shown["title"]) == (None, [], None)
    assert listed(api, root) == [root, member, fork]


@pytest.mark.behaviour("crews.slots")
@pytest.mark.gobare(session_limit=3)
def test_each_member_takes_a_slot(api: Api) -> None:
    crew = chain(api, 3)
    assert api.post("/v1/sessions", {"parent_session_id": crew[0]}).code == "project_limit_exceeded"
    assert api.post(f"/v1/sessions/{crew[0]}/fork").code == "project_limit_exceeded"


@pytest.mark.behaviour("crews.deleted-root")
def test_a_crew_goes_on_without_its_root(api: Api) -> None:
    root, worker = chain(api, 2)
    api.delete(f"/v1/sessions/{root}")
    for path in (f"/v1/sessions?root={root}", f"/v1/events?root={root}", f"/v1/sessions/{root}/usage?root={root}"):
        answer = api.get(path)
        assert (answer.status, answer.code) == (404, "not_found")
        assert root in answer.message
    assert api.get(f"/v1/sessions/{worker}").json["parent_session_id"] == root
    assert listed(api, worker) == [worker]
    assert api.say(worker, "go on").status == 202
    assert api.post("/v1/sessions", {"parent_session_id": root}).code == "not_found"


@pytest.mark.behaviour("crews.deleted-middle")
def test_what_hangs_below_a_deleted_member_is_a_tree_of_its_own(api: Api) -> None:
    root, middle, leaf, below = chain(api, 4)
    api.delete(f"/v1/sessions/{middle}")
    assert listed(api, root) == [root]
    assert listed(api, leaf) == [leaf, below]
    for session_id in (leaf, below, root):
        note(api, session_id)
    assert streamed(api, root) == [root]


@pytest.mark.behaviour("crews.subagent")
def test_no_turn_has_a_subagent(api: Api) -> None:
    crew = chain(api, 2)
    for session_id in crew:
        api.say(session_id, "go")
        assert [turn["subagent_id"] for turn in api.turns(session_id)] == [None]


@pytest.mark.behaviour("crews.handoff")
def test_one_member_hands_work_to_another(api: Api) -> None:
    @api.emulator.agent
    async def agent(turn: Turn) -> None:
        if turn.session.title == "researcher":
            result = await turn.call("message_teammate", to="coder", text="Build it.")
            await turn.say(f"It is {result.output}.")
        else:
            await turn.say(f"I will: {turn.message}")

    tools = {"tools": [function("message_teammate")]}
    root = api.session({"title": "researcher", "agent": tools})
    crew = {"coder": api.session({"title": "coder", "parent_session_id": root, "agent": tools})}
    with api.stream(f"/v1/events?root={root}") as frames:
        api.say(root, "Start.")
        asked = frames.until("tool.required")[-1].data
        assert asked["session_id"] == root
        [action] = api.actions(root)
        api.answer(root, action, "delivered")
        api.say(crew[action["arguments"]["to"]], action["arguments"]["text"])
        heard = [frame.payload["text"] for _ in range(2) for frame in frames.until("agent.message")[-1:]]
    assert heard == ["It is delivered.", "I will: Build it."]
    assert said(api, root) == ["It is delivered."]
