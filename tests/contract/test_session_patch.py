"""Changing a session (contract §6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.support import Api

TWO = [
    {"label": "MiniMax", "connector": "minimax", "model": "MiniMax-M3"},
    {"label": "Claude", "connector": "anthropic", "model": "claude-sonnet-4-6"},
]
FULL = {
    "title": "old",
    "metadata": {"a": "1", "b": "2"},
    "agent": {
        "instructions": "Be brief.",
        "approval_mode": "plan",
        "permission_rules": [{"decision": "deny", "tool": "bash"}],
    },
}


def read(api: Api, session_id: str) -> dict[str, Any]:
    session: dict[str, Any] = api.get(f"/v1/sessions/{session_id}").json
    del session["updated_at"], session["agent"]["tools"]
    return session


def connections(api: Api) -> list[str]:
    """The ids of the organization's connections, the default first."""
    world = api.emulator.socket.deployment.world
    return [connection.id for connection in world.organization("default").connections.listed]


@pytest.mark.behaviour("sessions.patch")
@pytest.mark.parametrize(
    ("place", "field", "value"),
    [
        (None, "title", "new"),
        (None, "metadata", {"c": "3"}),
        ("agent", "instructions", "Take your time."),
        ("agent", "approval_mode", "read_only"),
        ("agent", "permission_rules", [{"decision": "ask"}]),
    ],
)
def test_one_field_changes_and_the_rest_stays(api: Api, place: str | None, field: str, value: Any) -> None:
    session_id = api.session(FULL)
    expected = read(api, session_id)
    (expected if place is None else expected[place])[field] = value
    answer = api.patch(f"/v1/sessions/{session_id}", {field: value} if place is None else {place: {field: value}})
    assert answer.status == 200
    assert read(api, session_id) == expected
    assert answer.json == {**expected, "updated_at": answer.json["updated_at"]}


@pytest.mark.behaviour("sessions.patch")
def test_everything_changes_at_once(api: Api) -> None:
    session_id = api.session()
    session = api.patch(f"/v1/sessions/{session_id}", FULL).json
    assert (session["title"], session["metadata"]) == ("old", {"a": "1", "b": "2"})
    assert session["agent"] == {**session["agent"], **FULL["agent"]}  # type: ignore[dict-item]


@pytest.mark.behaviour("sessions.patch")
def test_a_session_is_changed_in_the_middle_of_a_turn(api: Api) -> None:
    @api.emulator.agent
    async def agent(turn: Any) -> None:
        await turn.ask("Which?")

    session_id = api.session({"input": "go"})
    answer = api.patch(f"/v1/sessions/{session_id}", {"title": "new", "agent": {"instructions": "Stop."}})
    assert (answer.status, answer.json["status"]) == (200, "requires_action")
    assert (answer.json["title"], answer.json["agent"]["instructions"]) == ("new", "Stop.")
    assert len(answer.json["required_actions"]) == 1


@pytest.mark.behaviour("sessions.patch-clear", "sessions.instructions")
@pytest.mark.parametrize(
    ("place", "field", "sent", "cleared"),
    [
        (None, "title", None, None),
        (None, "metadata", None, {}),
        (None, "metadata", {}, {}),
        ("agent", "instructions", None, None),
        ("agent", "instructions", "", None),
        ("agent", "permission_rules", [], []),
    ],
)
def test_a_field_is_cleared(api: Api, place: str | None, field: str, sent: Any, cleared: Any) -> None:
    session_id = api.session(FULL)
    body = {field: sent} if place is None else {place: {field: sent}}
    session = api.patch(f"/v1/sessions/{session_id}", body).json
    assert (session if place is None else session[place])[field] == cleared


@pytest.mark.behaviour("sessions.patch-replace")
def test_metadata_and_rules_are_replaced_whole(api: Api) -> None:
    session_id = api.session(FULL)
    rules = [{"decision": "allow", "domain": "api.acme.com"}, {"decision": "ask"}]
    body = {"metadata": {"b": "3"}, "agent": {"permission_rules": rules}}
    session = api.patch(f"/v1/sessions/{session_id}", body).json
    assert session["metadata"] == {"b": "3"}
    assert session["agent"]["permission_rules"] == rules


@pytest.mark.behaviour("sessions.patch-nothing")
@pytest.mark.parametrize("body", [{}, {"agent": {}}])
def test_a_patch_of_nothing_names_what_can_be_changed(api: Api, body: dict[str, Any]) -> None:
    answer = api.patch(f"/v1/sessions/{api.session()}", body)
    assert (answer.status, answer.code) == (400, "invalid_request")
    for name in ("title", "metadata", "agent.instructions", "agent.approval_mode", "agent.permission_rules"):
        assert f"`{name}`" in answer.message


@pytest.mark.behaviour("sessions.patch-nothing")
@pytest.mark.parametrize(
    "field", ["id", "tools", "text", "status", "input", "environment", "parent_session_id", "source"]
)
def test_what_cannot_be_changed_is_refused(api: Api, field: str) -> None:
    session_id = api.session()
    before = read(api, session_id)
    for body in ({field: {}, "title": "new"}, {"agent": {field: []}, "title": "new"}):
        answer = api.patch(f"/v1/sessions/{session_id}", body)
        assert (answer.status, answer.code) == (400, "invalid_request")
        assert f"{field}`" in answer.message
    assert read(api, session_id) == before


@pytest.mark.behaviour("sessions.patch-model")
@pytest.mark.gobare(connections=TWO)
def test_model_and_connection_change_together(api: Api) -> None:
    session_id = api.session()
    first, second = connections(api)
    moved = {"model": "claude-sonnet-4-6", "model_credential_id": second}
    session = api.patch(f"/v1/sessions/{session_id}", {"agent": moved}).json
    assert session["agent"] == {**session["agent"], **moved}
    back = {"model": "MiniMax-M3", "model_credential_id": first}
    session = api.patch(f"/v1/sessions/{session_id}", {"agent": back}).json
    assert session["agent"] == {**session["agent"], **back}


@pytest.mark.behaviour("sessions.patch-model")
@pytest.mark.gobare(connections=TWO)
def test_one_of_model_and_connection_is_not_enough(api: Api) -> None:
    session_id = api.session()
    before = read(api, session_id)
    for agent in ({"model": "MiniMax-M3"}, {"model_credential_id": connections(api)[0]}):
        answer = api.patch(f"/v1/sessions/{session_id}", {"title": "new", "agent": agent})
        assert (answer.status, answer.code) == (400, "invalid_request")
        assert "`agent.model`" in answer.message
        assert "`agent.model_credential_id`" in answer.message
    assert read(api, session_id) == before


@pytest.mark.behaviour("sessions.patch-model", "sessions.patch-atomic")
@pytest.mark.gobare(connections=TWO)
@pytest.mark.parametrize(
    ("model", "which", "says"),
    [
        ("MiniMax-M3", 1, "This organization's selected connection runs claude-sonnet-4-6, not MiniMax-M3"),
        ("gpt-9", 0, "This organization's selected connection runs MiniMax-M3, not gpt-9"),
        ("MiniMax-M3", None, "This organization has no model connection with id cred_nowhere"),
    ],
)
def test_a_connection_that_does_not_run_the_model_moves_nothing(
    api: Api, model: str, which: int | None, says: str
) -> None:
    session_id = api.session()
    before = read(api, session_id)
    chosen = "cred_nowhere" if which is None else connections(api)[which]
    agent = {"model": model, "model_credential_id": chosen, "instructions": "new"}
    answer = api.patch(f"/v1/sessions/{session_id}", {"title": "new", "metadata": {"a": "b"}, "agent": agent})
    assert (answer.status, answer.code) == (400, "invalid_request")
    assert says in answer.message
    assert read(api, session_id) == before


@pytest.mark.behaviour("sessions.patch-atomic")
@pytest.mark.parametrize(
    "wrong",
    [
        {"agent": {"approval_mode": "off"}},
        {"agent": {"permission_rules": [{"decision": "allow"}, {}]}},
        {"metadata": {"a": 1}},
        {"nothing": 1},
    ],
)
def test_a_refused_patch_changes_nothing(api: Api, wrong: dict[str, Any]) -> None:
    session_id = api.session(FULL)
    before = api.get(f"/v1/sessions/{session_id}").json
    api.emulator.clock.advance(1)
    assert api.patch(f"/v1/sessions/{session_id}", {"title": "new", **wrong}).status == 400
    assert api.get(f"/v1/sessions/{session_id}").json == before


@pytest.mark.behaviour("sessions.patch-mode-next-turn")
def test_a_changed_mode_waits_for_the_next_turn(api: Api) -> None:
    @api.emulator.agent
    async def agent(turn: Any) -> None:
        if turn.number == 1:
            await turn.ask("Ready?")
        await turn.say(str(await turn.approve("bash", {"command": "ls"})))

    session_id = api.session({"input": "one"})
    api.patch(f"/v1/sessions/{session_id}", {"agent": {"approval_mode": "read_only"}})
    api.emulator.answer("yes")
    assert [action["type"] for action in api.actions(session_id)] == ["approval"]
    api.emulator.approve()
    assert api.emulator.transcript(session_id).last_message == "True"
    api.say(session_id, "two")
    assert api.actions(session_id) == []
    assert api.emulator.transcript(session_id).last_message == "False"


@pytest.mark.behaviour("sessions.patch-rules-next-turn")
def test_changed_rules_wait_for_the_next_turn(api: Api) -> None:
    @api.emulator.agent
    async def agent(turn: Any) -> None:
        if turn.number == 1:
            await turn.ask("Ready?")
        await turn.say(str(await turn.approve("bash", {"command": "ls"})))

    session_id = api.session({"input": "one"})
    api.patch(f"/v1/sessions/{session_id}", {"agent": {"permission_rules": [{"decision": "allow"}]}})
    api.emulator.answer("yes")
    assert [action["type"] for action in api.actions(session_id)] == ["approval"]
    api.emulator.approve(approved=False)
    api.say(session_id, "two")
    assert api.actions(session_id) == []
    assert api.emulator.transcript(session_id).last_message == "True"
