"""Sessions: how they are made, read and removed (contract §6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.contract.calls import GONE_WITH_A_SESSION, Known, call, place

if TYPE_CHECKING:
    from tests.support import Api

EPOCH = 1_767_225_600_000
FUNCTION = {"type": "function", "name": "f"}
DOWN = {"agent": {"tools": [{"type": "mcp", "name": "docs", "url": "http://docs", "required": True}]}, "input": "hi"}
CANNOT_START = (
    "This session cannot start: required MCP server(s) failed to initialise — docs: fetch failed. That server is "
    "configured with `required: true`, so the session refuses to run without it — fix the server, or set "
    "`required: false` to let the agent continue with fewer tools."
)


@pytest.mark.behaviour("sessions.create", "sessions.source", "sessions.title", "sessions.model-default")
def test_an_empty_body_makes_a_session_of_defaults(api: Api) -> None:
    answer = api.post("/v1/sessions", {})
    session = answer.json
    assert answer.status == 201
    assert session["agent"].pop("model_credential_id").startswith("cred_")
    assert session.pop("created_by_token").startswith("tok_")
    assert session == {
        "object": "session",
        "id": session["id"],
        "title": None,
        "status": "idle",
        "created_at": EPOCH,
        "updated_at": EPOCH,
        "source": "api",
        "parent_session_id": None,
        "metadata": {},
        "agent": {
            "id": None,
            "model": "MiniMax-M3",
            "approval_mode": "auto",
            "instructions": None,
            "permission_rules": [],
        },
        "environment": {"type": "sandbox", "state": "unknown", "workspace_directory": "/workspace", "repo": None},
        "preview": {"url": None, "port": None, "published_url": None},
        "required_actions": [],
    }


@pytest.mark.behaviour("sessions.create-everything", "sessions.metadata", "sessions.read")
def test_what_is_sent_is_read_back(api: Api) -> None:
    parent = api.session()
    metadata = {"job": "8842", "empty": "", "ü": "a:b", "z": "1", "a": "2"}
    rules = [
        {"decision": "deny", "path": "/etc"},
        {"decision": "ask"},
        {"tool": "b*", "decision": "allow", "command": ""},
    ]
    body = {
        "agent": {
            "model": "MiniMax-M3",
            "instructions": "Be brief.\n",
            "approval_mode": "per_step",
            "permission_rules": rules,
            "tools": [FUNCTION],
            "text": {"verbosity": "low"},
        },
        "environment": {"repo": "acme/app", "profiles": []},
        "metadata": metadata,
        "title": "Nightly",
        "parent_session_id": parent,
    }
    created = api.post("/v1/sessions", body).json
    read = api.get(f"/v1/sessions/{created['id']}").json
    assert read["agent"].pop("tools") == [FUNCTION]
    assert read == created
    assert read["agent"]["instructions"] == "Be brief.\n"
    assert read["agent"]["approval_mode"] == "per_step"
    assert read["agent"]["permission_rules"] == rules
    assert read["environment"]["repo"] == {"full_name": "acme/app", "branch": None, "clone_error": None}
    assert (read["metadata"], list(read["metadata"])) == (metadata, list(metadata))
    assert (read["title"], read["parent_session_id"]) == ("Nightly", parent)


@pytest.mark.behaviour("sessions.metadata")
def test_a_metadata_key_is_not_empty(api: Api) -> None:
    answer = api.post("/v1/sessions", {"metadata": {"": "x"}})
    assert (answer.status, answer.code) == (400, "invalid_request")
    assert "`metadata`" in answer.message


@pytest.mark.behaviour("sessions.tools-single-read")
def test_only_the_single_read_has_the_tools(api: Api) -> None:
    created = api.post("/v1/sessions", {"agent": {"tools": [FUNCTION]}}).json
    patched = api.patch(f"/v1/sessions/{created['id']}", {"title": "a"}).json
    listed = api.get("/v1/sessions").json["data"][0]
    for session in (created, patched, listed):
        assert "tools" not in session["agent"]
    assert api.get(f"/v1/sessions/{created['id']}").json["agent"]["tools"] == [FUNCTION]


@pytest.mark.behaviour("sessions.title")
def test_a_title_is_not_made_of_the_first_message(api: Api) -> None:
    session_id = api.session({"input": "Write a report"})
    assert api.get(f"/v1/sessions/{session_id}").json["title"] is None


@pytest.mark.behaviour("sessions.updated-at")
def test_a_change_moves_updated_at_and_a_read_does_not(api: Api) -> None:
    session_id = api.session()
    moved = [EPOCH]
    for change in ("patch", "read", "message", "tools", "context"):
        api.emulator.clock.advance(10)
        match change:
            case "patch":
                api.patch(f"/v1/sessions/{session_id}", {"title": "a"})
            case "message":
                api.say(session_id, "hello")
            case "tools":
                api.put(f"/v1/sessions/{session_id}/tools", {"tools": []})
            case "context":
                api.send(session_id, {"type": "input.context", "content": "a"})
            case _:
                api.get(f"/v1/sessions/{session_id}/items")
        session = api.get(f"/v1/sessions/{session_id}").json
        assert session["created_at"] == EPOCH
        moved.append(session["updated_at"])
    assert moved[1] == moved[2] == EPOCH + 10_000
    assert moved[2] < moved[3] < moved[4] < moved[5]


@pytest.mark.behaviour("sessions.status")
def test_a_failed_session_takes_input(api: Api) -> None:
    @api.emulator.agent
    async def agent(turn: Any) -> None:
        if turn.message == "fail":
            await turn.fail("provider_error", "the model provider returned 502")
        await turn.say("fine")

    session_id = api.session({"input": "fail"})
    assert api.get(f"/v1/sessions/{session_id}").json["status"] == "failed"
    assert api.say(session_id, "again").status == 202
    assert api.get(f"/v1/sessions/{session_id}").json["status"] == "idle"
    assert [turn["status"] for turn in api.turns(session_id)] == ["failed", "completed"]


@pytest.mark.behaviour("sessions.input")
@pytest.mark.parametrize(
    "sent",
    ["Hello.", [{"type": "input_text", "text": "Hel"}, {"type": "input_text", "text": "lo."}]],
    ids=["text", "parts"],
)
def test_an_opening_input_is_the_first_message(api: Api, sent: Any) -> None:
    answer = api.post("/v1/sessions", {"input": sent})
    assert (answer.status, answer.json["status"]) == (201, "idle")
    assert api.items(answer.json["id"])[0]["content"] == "Hello."
    assert [turn["status"] for turn in api.turns(answer.json["id"])] == ["completed"]


@pytest.mark.behaviour("sessions.input-refused")
@pytest.mark.parametrize(
    "sent", ["", " \n", [], [{"type": "input_text", "text": ""}], [{"type": "image", "text": "a"}]]
)
def test_an_empty_opening_input_leaves_no_session(api: Api, sent: Any) -> None:
    answer = api.post("/v1/sessions", {"input": sent})
    assert (answer.status, answer.code) == (400, "invalid_request")
    assert "`input" in answer.message
    assert api.get("/v1/sessions").json["data"] == []


@pytest.mark.behaviour("sessions.input-refused")
@pytest.mark.gobare(session_limit=1)
def test_a_refused_opening_input_leaves_no_session_and_its_place_is_free(api: Api) -> None:
    api.emulator.mcp.down("docs")
    answer = api.post("/v1/sessions", DOWN)
    assert (answer.status, answer.code, answer.message) == (400, "invalid_request", CANNOT_START)
    assert api.get("/v1/sessions").json["data"] == []
    assert api.emulator.events() == []
    api.emulator.mcp.up("docs")
    assert api.post("/v1/sessions", DOWN).status == 201


@pytest.mark.behaviour("sessions.input-orphan")
@pytest.mark.gobare(session_limit=1, orphan_sessions=True)
def test_a_session_that_could_not_be_removed_is_named(api: Api) -> None:
    api.emulator.mcp.down("docs")
    answer = api.post("/v1/sessions", DOWN)
    [left] = api.get("/v1/sessions").json["data"]
    assert (answer.status, answer.code) == (400, "invalid_request")
    assert answer.message == (
        f"{CANNOT_START} We also could not remove the session we had created for it, so {left['id']} still exists "
        "and still holds one of this organization's session slots — delete it with DELETE "
        f"/v1/sessions/{left['id']}."
    )
    assert left["status"] == "failed"
    assert api.post("/v1/sessions", {}).code == "project_limit_exceeded"
    assert api.delete(f"/v1/sessions/{left['id']}").status == 200


@pytest.mark.behaviour("sessions.visible", "sessions.visible-status")
@pytest.mark.gobare(pace="realistic")
def test_the_turn_is_listed_before_it_has_begun(api: Api) -> None:
    created = api.post("/v1/sessions", {"input": "one"}).json
    [first] = api.turns(created["id"])
    assert created["status"] == "working"
    assert (first["status"], first["started_at"], first["artifacts"]) == ("working", None, None)
    assert api.say(created["id"], "two").json["queue_position"] == 1
    newest = api.get(f"/v1/sessions/{created['id']}/turns?limit=1").json["data"][0]
    assert newest["id"] != first["id"]
    assert (newest["status"], newest["started_at"]) == ("working", None)
    assert api.get(f"/v1/sessions/{created['id']}").json["status"] == "working"
    api.delete(f"/v1/sessions/{created['id']}")


@pytest.mark.behaviour("sessions.visible", "sessions.visible-status")
def test_the_outcome_of_a_message_is_there_with_its_reply(api: Api) -> None:
    @api.emulator.agent
    async def agent(turn: Any) -> None:
        if turn.message == "ask":
            await turn.ask("Which?")

    session_id = api.session()
    api.say(session_id, "done")
    assert api.get(f"/v1/sessions/{session_id}").json["status"] == "idle"
    api.say(session_id, "ask")
    assert api.get(f"/v1/sessions/{session_id}").json["status"] == "requires_action"
    api.say(session_id, "wait behind it")
    newest = api.get(f"/v1/sessions/{session_id}/turns?limit=1").json["data"][0]
    assert (newest["status"], newest["started_at"]) == ("working", None)
    assert api.get(f"/v1/sessions/{session_id}").json["status"] == "requires_action"


@pytest.mark.behaviour("sessions.parent")
def test_a_session_remembers_a_parent_that_is_gone(api: Api) -> None:
    parent = api.session()
    child = api.session({"parent_session_id": parent})
    api.delete(f"/v1/sessions/{parent}")
    assert api.get(f"/v1/sessions/{child}").json["parent_session_id"] == parent


@pytest.mark.behaviour("sessions.parent-unknown")
def test_an_unknown_parent_is_not_found(api: Api) -> None:
    answer = api.post("/v1/sessions", {"parent_session_id": "nobody"})
    assert (answer.status, answer.code, answer.message) == (404, "not_found", "No session 'nobody'.")
    assert api.get("/v1/sessions").json["data"] == []


@pytest.mark.behaviour("sessions.delete")
@pytest.mark.parametrize("known", GONE_WITH_A_SESSION, ids=str)
def test_nothing_under_a_deleted_session_is_found(api: Api, known: Known) -> None:
    where = place(api)
    api.delete(f"/v1/sessions/{where.session_id}")
    answer = call(api, known, where)
    assert (answer.status, answer.code) == (404, "not_found")
    assert answer.message == f"No session '{where.session_id}'."


@pytest.mark.behaviour("sessions.delete-twice")
def test_deleting_again_is_not_found(api: Api) -> None:
    session_id = api.session()
    assert api.delete(f"/v1/sessions/{session_id}").status == 200
    assert api.delete(f"/v1/sessions/{session_id}").code == "not_found"


@pytest.mark.behaviour("sessions.delete-running")
def test_deleting_stops_the_agent(api: Api) -> None:
    stopped: list[str] = []

    @api.emulator.agent
    async def agent(turn: Any) -> None:
        try:
            await turn.call("f")
        finally:
            stopped.append(turn.message)

    session_id = api.session({"agent": {"tools": [FUNCTION]}, "input": "one"})
    api.say(session_id, "two")
    assert api.delete(f"/v1/sessions/{session_id}").status == 200
    api.emulator.settle()
    report = api.emulator.report()
    assert stopped == ["one"]
    assert (report["running_turns"], report["unanswered_actions"], report["script_errors"]) == ([], [], [])
    assert api.emulator.events() == []


@pytest.mark.behaviour("sessions.delete-list")
def test_a_deleted_session_is_in_no_list(api: Api) -> None:
    first, second, third = (api.session() for _ in range(3))
    api.delete(f"/v1/sessions/{second}")
    assert [session["id"] for session in api.get("/v1/sessions").json["data"]] == [third, first]
