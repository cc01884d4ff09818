"""The life of a workspace on the clock (contract §6, §13)."""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING, Any

import pytest

from emulator.domain.servers import SimulatedTool
from emulator.domain.tools import McpTool, ToolSet
from emulator.runtime.simulated import SimulatedServer

if TYPE_CHECKING:
    from tests.support import Api

IDLE = 300
LIFE = 7200


@pytest.fixture(autouse=True)
def _agent(api: Api) -> None:
    """An agent that asks when told to, and is done at once otherwise."""

    @api.emulator.agent
    async def agent(turn: Any) -> None:
        match turn.message:
            case "ask":
                await turn.say(await turn.ask("Which?"))
            case "wait":
                await turn.wait(10_000)
            case _:
                await turn.say("done")


def state(api: Api, session_id: str) -> str:
    found: str = api.get(f"/v1/sessions/{session_id}").json["environment"]["state"]
    return found


def sandbox(api: Api, session_id: str) -> list[tuple[str, str]]:
    """What the events tell of the workspace."""
    events = api.events(session_id)
    return [(event["type"], event["payload"]["state"]) for event in events if event["type"].startswith("sandbox.")]


CREATED, PAUSED, RESUMED = (
    ("sandbox.created", "running"),
    ("sandbox.paused", "paused"),
    ("sandbox.resumed", "running"),
)


@pytest.mark.behaviour("workspace.unknown", "workspace.start")
def test_only_a_message_starts_the_workspace(api: Api) -> None:
    session_id = api.session()
    api.send(session_id, {"type": "input.context", "content": "a"})
    api.send(session_id, {"type": "input.cancel"})
    api.put(f"/v1/sessions/{session_id}/tools", {"tools": []})
    api.patch(f"/v1/sessions/{session_id}", {"title": "a"})
    api.emulator.clock.advance(LIFE)
    assert (state(api, session_id), sandbox(api, session_id)) == ("unknown", [])
    api.say(session_id, "go")
    assert (state(api, session_id), sandbox(api, session_id)) == ("running", [CREATED])


@pytest.mark.behaviour("workspace.start")
def test_an_opening_input_starts_the_workspace(api: Api) -> None:
    answer = api.post("/v1/sessions", {"input": "go"})
    assert answer.json["environment"]["state"] == "running"
    types = [event["type"] for event in api.events(answer.json["id"])]
    assert types[:3] == ["user.message", "sandbox.created", "turn.started"]


@pytest.mark.behaviour("workspace.started-once")
def test_a_running_workspace_is_not_started_again(api: Api) -> None:
    session_id = api.session({"input": "go"})
    for _ in range(2):
        api.emulator.clock.advance(IDLE - 1)
        api.say(session_id, "go")
    assert sandbox(api, session_id) == [CREATED]


@pytest.mark.behaviour("workspace.pause")
def test_five_idle_minutes_pause_the_workspace(api: Api) -> None:
    session_id = api.session({"input": "go"})
    api.emulator.clock.advance(IDLE - 0.001)
    assert state(api, session_id) == "running"
    api.emulator.clock.advance(0.001)
    assert (state(api, session_id), sandbox(api, session_id)) == ("paused", [CREATED, PAUSED])
    assert api.get(f"/v1/sessions/{session_id}").json["status"] == "idle"


@pytest.mark.behaviour("workspace.idle-again")
def test_the_five_minutes_count_from_the_last_turn(api: Api) -> None:
    session_id = api.session({"input": "go"})
    api.emulator.clock.advance(200)
    api.say(session_id, "go")
    api.emulator.clock.advance(200)
    assert state(api, session_id) == "running"
    api.emulator.clock.advance(100)
    assert state(api, session_id) == "paused"


@pytest.mark.behaviour("workspace.busy")
@pytest.mark.parametrize("text", ["ask", "wait"])
def test_an_open_turn_keeps_the_workspace_running(api: Api, text: str) -> None:
    session_id = api.session({"input": "go"})
    api.say(session_id, text)
    api.emulator.clock.advance(LIFE - 1)
    assert (state(api, session_id), sandbox(api, session_id)) == ("running", [CREATED])


@pytest.mark.behaviour("workspace.busy")
def test_the_five_minutes_begin_when_the_queue_is_done(api: Api) -> None:
    session_id = api.session({"input": "ask"})
    api.say(session_id, "ask")
    api.emulator.answer("a")
    api.emulator.clock.advance(IDLE)
    assert state(api, session_id) == "running"
    api.emulator.answer("b")
    api.emulator.clock.advance(IDLE - 1)
    assert state(api, session_id) == "running"
    api.emulator.clock.advance(1)
    assert state(api, session_id) == "paused"


@pytest.mark.behaviour("workspace.idle-after-refusal")
def test_a_queued_message_that_cannot_start_leaves_the_workspace_idle(api: Api) -> None:
    session_id = api.session({"input": "ask"})
    docs = {"type": "mcp", "name": "docs", "url": "http://docs.example.com", "required": True}
    api.put(f"/v1/sessions/{session_id}/tools", {"tools": [docs]})
    api.emulator.mcp.down("docs")
    api.say(session_id, "go")
    api.emulator.answer("a")
    assert [turn["status"] for turn in api.turns(session_id)] == ["completed", "failed"]
    assert state(api, session_id) == "running"
    api.emulator.clock.advance(IDLE)
    assert state(api, session_id) == "paused"


@pytest.mark.behaviour("workspace.resume")
def test_a_message_wakes_a_paused_workspace(api: Api) -> None:
    session_id = api.session({"input": "go"})
    api.emulator.clock.advance(IDLE)
    assert api.say(session_id, "go").status == 202
    assert (state(api, session_id), sandbox(api, session_id)) == ("running", [CREATED, PAUSED, RESUMED])
    assert [turn["status"] for turn in api.turns(session_id)] == ["completed", "completed"]
    api.emulator.clock.advance(IDLE)
    assert state(api, session_id) == "paused"


@pytest.mark.behaviour("workspace.sleeps-on")
def test_what_the_agent_need_not_act_on_wakes_nothing(api: Api) -> None:
    session_id = api.session({"input": "go"})
    api.emulator.clock.advance(IDLE)
    answers = [
        api.get(f"/v1/sessions/{session_id}/items"),
        api.patch(f"/v1/sessions/{session_id}", {"title": "a"}),
        api.put(f"/v1/sessions/{session_id}/tools", {"tools": []}),
        api.send(session_id, {"type": "input.cancel"}),
        api.send(session_id, {"type": "input.steer", "content": "a"}),
        api.say(session_id, ""),
        api.send(session_id, {"type": "input.context", "content": "a"}),
    ]
    assert [answer.status for answer in answers] == [200, 200, 200, 202, 409, 400, 202]
    assert answers[-1].json["delivered"] is False
    assert (state(api, session_id), sandbox(api, session_id)) == ("paused", [CREATED, PAUSED])


@pytest.mark.behaviour("workspace.reclaim")
def test_two_hours_after_its_start_the_workspace_is_reclaimed(api: Api) -> None:
    session_id = api.session({"input": "ask"})
    started = next(event["created_at"] for event in api.events(session_id) if event["type"] == "sandbox.created")
    api.emulator.clock.advance((started + LIFE * 1000 - 1 - api.emulator.clock.now()) / 1000)
    assert state(api, session_id) == "running"
    api.emulator.clock.advance(0.001)
    assert state(api, session_id) == "destroyed"


@pytest.mark.behaviour("workspace.reclaim-turn", "workspace.reclaim-code")
@pytest.mark.parametrize("text", ["ask", "wait"])
def test_a_turn_open_on_a_reclaimed_workspace_fails(api: Api, text: str) -> None:
    session_id = api.session({"input": text})
    api.emulator.clock.advance(LIFE)
    session = api.get(f"/v1/sessions/{session_id}").json
    assert (session["status"], session["required_actions"]) == ("failed", [])
    assert session["environment"]["state"] == "destroyed"
    [turn] = api.turns(session_id)
    assert (turn["status"], turn["error"]["code"]) == ("failed", "sandbox_unavailable")
    assert turn["completed_at"] is not None
    last = api.items(session_id)[-1]
    assert (last["type"], last["detail"]["message"]) == ("error", turn["error"]["message"])
    assert api.emulator.report()["running_turns"] == []


@pytest.mark.behaviour("workspace.reclaim-queue", "workspace.recover")
def test_a_queued_message_gets_a_workspace_of_its_own(api: Api) -> None:
    session_id = api.session({"input": "ask"})
    api.say(session_id, "go")
    api.emulator.clock.advance(LIFE)
    assert [turn["status"] for turn in api.turns(session_id)] == ["failed", "completed"]
    assert (state(api, session_id), sandbox(api, session_id)) == ("running", [CREATED, CREATED])


@pytest.mark.behaviour("workspace.paused-time")
def test_time_paused_does_not_count(api: Api) -> None:
    session_id = api.session({"input": "go"})
    api.emulator.clock.advance(IDLE)
    api.emulator.clock.advance(10 * LIFE)
    assert state(api, session_id) == "paused"
    api.say(session_id, "ask")
    api.emulator.clock.advance(LIFE - IDLE - 1)
    assert state(api, session_id) == "running"
    api.emulator.clock.advance(1)
    assert state(api, session_id) == "destroyed"


@pytest.mark.behaviour("workspace.recover")
def test_a_message_builds_a_reclaimed_workspace_again(api: Api) -> None:
    session_id = api.session({"input": "ask"})
    api.emulator.clock.advance(LIFE)
    assert api.say(session_id, "ask").status == 202
    assert (state(api, session_id), sandbox(api, session_id)) == ("running", [CREATED, CREATED])
    api.emulator.clock.advance(LIFE - 1)
    assert state(api, session_id) == "running"
    api.emulator.clock.advance(1)
    assert state(api, session_id) == "destroyed"


@pytest.mark.behaviour("workspace.recovery-failed", "workspace.recovery-retried")
@pytest.mark.gobare(workspace_recovery="fails")
def test_a_workspace_that_cannot_be_built_again_refuses_the_input(api: Api) -> None:
    session_id = api.session({"input": "ask"})
    api.emulator.clock.advance(LIFE)
    for _ in range(2):
        answer = api.say(session_id, "go")
        assert (answer.status, answer.code) == (500, "workspace_recovery_failed")
        assert "retry-after" not in answer.headers
        last = api.events(session_id)[-1]
        assert last["type"] == "workspace.recovery_failed"
        assert last["payload"] == {"message": "no snapshot was available for this workspace"}
        assert state(api, session_id) == "recovery_failed"
    assert len(api.turns(session_id)) == 1
    api.emulator.settings.update(workspace_recovery="works")
    assert api.say(session_id, "go").status == 202
    assert state(api, session_id) == "running"


@pytest.mark.behaviour("workspace.recovery-failed")
@pytest.mark.gobare(workspace_recovery="fails")
def test_a_first_start_is_no_recovery(api: Api) -> None:
    session_id = api.session({"input": "go"})
    api.emulator.clock.advance(IDLE)
    assert api.say(session_id, "go").status == 202
    assert sandbox(api, session_id) == [CREATED, PAUSED, RESUMED]


@pytest.mark.behaviour("workspace.deleted")
def test_nothing_falls_due_for_a_deleted_session(api: Api) -> None:
    gone, kept = api.session({"input": "go"}), api.session({"input": "go"})
    api.delete(f"/v1/sessions/{gone}")
    api.emulator.clock.advance(2 * LIFE)
    assert {event["session_id"] for event in api.emulator.events()} == {kept}
    assert api.emulator.report()["script_errors"] == []


@pytest.mark.behaviour("workspace.each-its-own")
def test_each_workspace_has_its_own_time(api: Api) -> None:
    first = api.session({"input": "go"})
    api.emulator.clock.advance(IDLE / 2)
    second = api.session({"input": "go"})
    api.emulator.clock.advance(IDLE / 2)
    assert (state(api, first), state(api, second)) == ("paused", "running")
    api.emulator.clock.advance(IDLE / 2)
    assert (state(api, first), state(api, second)) == ("paused", "paused")


@pytest.mark.behaviour("workspace.cycle", "workspace.recover")
@pytest.mark.gobare(repositories=[{"full_name": "acme/site", "files": {"README.md": "# Site"}}])
def test_the_whole_life_of_a_workspace(api: Api) -> None:
    seed = {"path": "seed.txt", "data": b64encode(b"seeded").decode()}
    session_id = api.session({"environment": {"repo": "acme/site", "files": [seed]}})

    def files() -> dict[str, str]:
        tree = api.get(f"/v1/sessions/{session_id}/files").json["data"]
        return {
            entry["path"]: api.get(f"/v1/sessions/{session_id}/files/content?path={entry['path']}").json["content"]
            for entry in tree
        }

    def write(path: str) -> None:
        body = {"files": [{"path": path, "data": b64encode(b"live").decode()}]}
        assert api.post(f"/v1/sessions/{session_id}/files", body).status == 200
        api.post(f"/v1/sessions/{session_id}/files/refresh")

    assert api.get(f"/v1/sessions/{session_id}/files").json["state"] == "missing"
    api.say(session_id, "go")
    write("live.txt")
    write("seed.txt")
    written = {"README.md": "# Site", "live.txt": "live", "seed.txt": "live"}
    assert files() == written
    api.emulator.clock.advance(IDLE)
    assert (state(api, session_id), files()) == ("paused", written)
    api.say(session_id, "ask")
    assert (state(api, session_id), files()) == ("running", written)
    api.emulator.clock.advance(LIFE)
    assert state(api, session_id) == "destroyed"
    assert [turn["status"] for turn in api.turns(session_id)] == ["completed", "failed"]
    api.say(session_id, "go")
    assert (state(api, session_id), files()) == ("running", {"README.md": "# Site", "seed.txt": "seeded"})
    assert sandbox(api, session_id) == [CREATED, PAUSED, RESUMED, CREATED]


DOCS = {"type": "mcp", "name": "docs", "url": "https://docs.example.com"}
WIKI = {"type": "mcp", "name": "wiki", "url": "https://wiki.example.com"}


@pytest.fixture
def connections(api: Api, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is done to connections, as it is done."""
    done: list[str] = []

    def reach(session: Any, tool: Any) -> Any:
        class Server(SimulatedServer):
            async def connect(self) -> None:
                done.append(f"connect {tool.name}")

            async def close(self) -> None:
                done.append(f"close {tool.name}")

        return Server(None)

    monkeypatch.setattr(api.emulator.socket.deployment.engine.workspaces, "_reach", reach)
    return done


@pytest.mark.behaviour("workspace.connections")
def test_connections_are_closed_with_their_workspace_and_not_with_a_pause(api: Api, connections: list[str]) -> None:
    session_id = api.session({"input": "go", "agent": {"tools": [DOCS]}})
    api.emulator.clock.advance(IDLE)
    api.say(session_id, "ask")
    assert connections == ["connect docs"]
    api.emulator.clock.advance(LIFE)
    api.get("/v1/sessions")
    assert connections == ["connect docs", "close docs"]
    api.say(session_id, "go")
    api.delete(f"/v1/sessions/{session_id}")
    assert connections == ["connect docs", "close docs"] * 2


@pytest.mark.behaviour("workspace.connections", "workspace.reclaim")
def test_an_idle_workspace_is_reclaimed_with_its_connections(api: Api, connections: list[str]) -> None:
    session_id = api.session({"input": "ask", "agent": {"tools": [DOCS]}})
    api.emulator.clock.advance(LIFE - 10)
    api.emulator.answer("a")
    api.emulator.clock.advance(10)
    api.get("/v1/sessions")
    assert (state(api, session_id), connections) == ("destroyed", ["connect docs", "close docs"])
    assert [turn["status"] for turn in api.turns(session_id)] == ["completed"]


@pytest.mark.behaviour("workspace.connections")
def test_connections_are_closed_when_the_tools_are_replaced(api: Api, connections: list[str]) -> None:
    session_id = api.session({"input": "go", "agent": {"tools": [DOCS]}})
    api.put(f"/v1/sessions/{session_id}/tools", {"tools": [WIKI]})
    api.get("/v1/sessions")
    assert connections == ["connect docs", "close docs"]
    api.say(session_id, "ask")
    api.put(f"/v1/sessions/{session_id}/tools", {"tools": []})
    api.get("/v1/sessions")
    assert connections[2:] == ["connect wiki"]
    api.emulator.answer("a")
    api.get("/v1/sessions")
    assert connections[2:] == ["connect wiki", "close wiki"]


@pytest.mark.behaviour("workspace.replaced-while-connecting")
def test_tools_replaced_while_servers_connect_are_not_lost(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    done: list[str] = []

    @api.emulator.agent
    async def agent(turn: Any) -> None:
        seen.append([tool["name"] for tool in turn.session.tools])
        await turn.mcp("wiki", "search")

    engine = api.emulator.socket.deployment.engine
    session_id = api.session({"agent": {"tools": [DOCS]}})
    organization = engine.world.organization("default")
    session = organization.session(session_id)
    wiki = ToolSet((McpTool(name="wiki", url="https://wiki.example.com"),))

    def reach(_: Any, tool: Any) -> Any:
        class Server(SimulatedServer):
            async def connect(self) -> None:
                done.append(f"connect {tool.name}")
                if tool.name == "docs":
                    engine.replace_tools(organization, session, wiki)

            async def close(self) -> None:
                done.append(f"close {tool.name}")

        return Server({"search": SimulatedTool(content=[{"type": "text", "text": "found"}])})

    monkeypatch.setattr(engine.workspaces, "_reach", reach)
    api.say(session_id, "go")
    assert done == ["connect docs", "close docs", "connect wiki"]
    assert seen == [["wiki"]]
    assert [turn["status"] for turn in api.turns(session_id)] == ["completed"]
