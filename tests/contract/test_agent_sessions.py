"""Sessions made from a saved agent: a copy of it, with what is sent beside it put over it (contract §12)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.contract.calls import mint

if TYPE_CHECKING:
    from tests.support import Answer, Api

TWO = [
    {"label": "MiniMax", "connector": "minimax", "model": "MiniMax-M3"},
    {"label": "Claude", "connector": "anthropic", "model": "claude-sonnet-4-6"},
]
FUNCTION = {"type": "function", "name": "lookup_order"}
OTHER = {"type": "function", "name": "refund"}
BOT: dict[str, Any] = {
    "name": "bot",
    "model": "MiniMax-M3",
    "instructions": "You answer support tickets.",
    "tools": [FUNCTION],
    "text": {"verbosity": "low"},
}


@pytest.fixture
def bot(api: Api) -> str:
    """The id of a saved agent with everything."""
    agent_id: str = api.post("/v1/agents", BOT).json["id"]
    return agent_id


def made(api: Api, **agent: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """What runs in a new session of the agent, and its tool configuration."""
    answer = api.post("/v1/sessions", {"agent": {"id": "bot", **agent}})
    assert answer.status == 201, answer.raw
    session_id = answer.json["id"]
    tools = api.get(f"/v1/sessions/{session_id}/tools").json
    return answer.json["agent"], {"tools": tools["tools"], "text": tools["text"]}


def refused(answer: Answer, status: int = 400, code: str = "invalid_request") -> str:
    assert (answer.status, answer.code) == (status, code)
    return answer.message


def credentials(api: Api) -> list[str]:
    """The ids of the connections, oldest first."""
    return [entry["id"] for entry in api.get("/v1/model-credentials").json["data"]][::-1]


@pytest.mark.behaviour("agents.session", "agents.session-mode")
def test_a_session_has_the_agents_configuration(api: Api, bot: str) -> None:
    for name in (bot, "bot"):
        agent, tools = made(api, id=name)
        assert agent == {
            "id": bot,
            "model": "MiniMax-M3",
            "model_credential_id": credentials(api)[0],
            "approval_mode": "auto",
            "instructions": BOT["instructions"],
            "permission_rules": [],
        }
        assert tools == {"tools": [FUNCTION], "text": {"verbosity": "low"}}


@pytest.mark.behaviour("agents.session")
def test_an_id_comes_before_a_name(api: Api, bot: str) -> None:
    other = api.post("/v1/agents", {"name": bot, "instructions": "Named like the other's id."}).json["id"]
    assert made(api, id=bot)[0]["id"] == bot
    assert made(api, id=other)[0]["id"] == other


@pytest.mark.behaviour("agents.session")
def test_an_agent_without_tools_leaves_the_deployments(api: Api) -> None:
    api.post("/v1/agents", {"name": "bot", "instructions": "a"})
    sessions = [api.session({"agent": {"id": "bot"}})]
    api.post("/v1/agents", {"name": "bot", "tools": []})
    sessions.append(api.session({"agent": {"id": "bot"}}))
    told = [api.emulator.effective_tools(session_id) for session_id in sessions]
    assert [effective["configured"] for effective in told] == [False, True]
    assert [bool(effective["built_ins"]) for effective in told] == [True, False]


@pytest.mark.behaviour("agents.session")
def test_the_agents_tools_are_the_turns(api: Api, bot: str) -> None:
    @api.emulator.agent
    async def agent(turn: Any) -> None:
        await turn.call("lookup_order", id=7)

    session_id = api.session({"agent": {"id": bot}, "input": "go"})
    assert [action["name"] for action in api.actions(session_id)] == ["lookup_order"]


@pytest.mark.behaviour("agents.session-copy")
def test_a_replaced_agent_does_not_reach_its_sessions(api: Api, bot: str) -> None:
    session_id = api.session({"agent": {"id": bot}})
    before = api.get(f"/v1/sessions/{session_id}").json
    api.post("/v1/agents", {"name": "bot", "instructions": "New.", "tools": []})
    assert api.get(f"/v1/sessions/{session_id}").json == before
    assert made(api)[0]["instructions"] == "New."


@pytest.mark.behaviour("agents.session-copy")
def test_a_changed_session_does_not_reach_its_agent(api: Api, bot: str) -> None:
    before = api.get(f"/v1/agents/{bot}").json
    session_id = api.session({"agent": {"id": bot}})
    api.patch(f"/v1/sessions/{session_id}", {"agent": {"instructions": "New."}})
    api.put(f"/v1/sessions/{session_id}/tools", {"tools": [OTHER]})
    assert api.get(f"/v1/agents/{bot}").json == before
    assert api.get(f"/v1/sessions/{session_id}").json["agent"]["id"] == bot


@pytest.mark.behaviour("agents.session-mode")
@pytest.mark.usefixtures("bot")
def test_mode_and_rules_are_the_sessions_own(api: Api) -> None:
    rules = [{"decision": "deny", "tool": "bash"}]
    agent, tools = made(api, approval_mode="read_only", permission_rules=rules)
    assert (agent["approval_mode"], agent["permission_rules"]) == ("read_only", rules)
    assert (agent["instructions"], tools["tools"]) == (BOT["instructions"], [FUNCTION])


@pytest.mark.behaviour("agents.session-per-field", "agents.session-pair")
@pytest.mark.gobare(connections=TWO)
@pytest.mark.usefixtures("bot")
def test_model_connection_and_instructions_override_one_by_one(api: Api) -> None:
    first, second = credentials(api)
    agent, tools = made(api, instructions="Be brief.")
    assert (agent["instructions"], agent["model"]) == ("Be brief.", "MiniMax-M3")
    agent, tools = made(api, model="claude-sonnet-4-6", model_credential_id=second)
    assert (agent["model"], agent["model_credential_id"]) == ("claude-sonnet-4-6", second)
    assert (agent["instructions"], tools["text"]) == (BOT["instructions"], BOT["text"])
    assert made(api, model_credential_id=first)[0]["model_credential_id"] == first
    api.post("/v1/agents", {"name": "bot", "model_credential_id": second})
    assert made(api)[0]["model"] == "claude-sonnet-4-6"
    assert made(api, model_credential_id=first)[0]["model"] == "MiniMax-M3"
    assert made(api, model="claude-sonnet-4-6")[0]["model_credential_id"] == second


@pytest.mark.behaviour("agents.session-pair")
@pytest.mark.gobare(connections=TWO)
@pytest.mark.usefixtures("bot")
def test_half_an_override_that_does_not_fit_the_other_half_is_refused(api: Api) -> None:
    _, second = credentials(api)
    answer = api.post("/v1/sessions", {"agent": {"id": "bot", "model_credential_id": second}})
    assert "connection runs claude-sonnet-4-6, not MiniMax-M3" in refused(answer)
    api.post("/v1/agents", {"name": "bot", "model_credential_id": second})
    answer = api.post("/v1/sessions", {"agent": {"id": "bot", "model": "MiniMax-M3"}})
    assert "connection runs claude-sonnet-4-6, not MiniMax-M3" in refused(answer)
    assert api.get("/v1/sessions").json["data"] == []


@pytest.mark.behaviour("agents.session-clear")
@pytest.mark.usefixtures("bot")
def test_no_instructions_clear_the_agents(api: Api) -> None:
    for sent in (None, ""):
        agent, tools = made(api, instructions=sent)
        assert (agent["instructions"], tools["tools"]) == (None, [FUNCTION])


@pytest.mark.behaviour("agents.session-whole", "agents.session-text")
@pytest.mark.usefixtures("bot")
def test_tools_and_text_are_replaced_whole_and_one_each(api: Api) -> None:
    inline: list[dict[str, Any]] = [
        {"tools": [OTHER]},
        {"tools": []},
        {"text": {}},
        {"text": None},
        {"text": {"format": {"type": "json_schema", "schema": {}}}},
        {"tools": [OTHER], "text": None},
    ]
    for sent in inline:
        assert made(api, **sent)[1] == {"tools": BOT["tools"], "text": BOT["text"], **sent}


@pytest.mark.behaviour("agents.session-connection-gone")
@pytest.mark.gobare(connections=TWO)
def test_an_agent_whose_connection_is_gone_starts_nothing_until_it_names_another(api: Api) -> None:
    first, second = credentials(api)
    agent = api.post("/v1/agents", {"name": "bot", "model_credential_id": second}).json
    api.delete(f"/v1/model-credentials/{second}")
    assert api.get(f"/v1/agents/{agent['id']}").json == agent
    message = refused(api.post("/v1/sessions", {"agent": {"id": "bot"}}))
    assert message.startswith(f"This organization has no model connection with id {second}")
    assert made(api, model_credential_id=first)[0]["model"] == "MiniMax-M3"


@pytest.mark.behaviour("agents.session-template", "agents.session-both")
def test_a_template_id_names_an_agent_too(api: Api, bot: str) -> None:
    for template in (bot, "bot"):
        session = api.post("/v1/sessions", {"environment": {"template_id": template}}).json
        assert (session["agent"]["id"], session["agent"]["instructions"]) == (bot, BOT["instructions"])
        both = {"agent": {"id": bot, "instructions": "New."}, "environment": {"template_id": template}}
        session = api.post("/v1/sessions", both).json
        assert (session["agent"]["id"], session["agent"]["instructions"]) == (bot, "New.")
    inline = {"agent": {"instructions": None}, "environment": {"template_id": "bot"}}
    assert api.post("/v1/sessions", inline).json["agent"] == {
        **session["agent"],
        "instructions": None,
    }


@pytest.mark.behaviour("agents.session-both")
@pytest.mark.usefixtures("bot")
def test_two_different_agents_are_refused(api: Api) -> None:
    api.post("/v1/agents", {"name": "other", "tools": []})
    answer = api.post("/v1/sessions", {"agent": {"id": "bot"}, "environment": {"template_id": "other"}})
    message = refused(answer)
    assert "`agent.id`" in message
    assert "`environment.template_id`" in message
    assert api.get("/v1/sessions").json["data"] == []


@pytest.mark.behaviour("agents.unknown")
@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("agent.id", lambda name: {"agent": {"id": name}}),
        ("environment.template_id", lambda name: {"environment": {"template_id": name}}),
    ],
)
def test_no_session_is_made_from_anothers_agent(api: Api, path: str, body: Any) -> None:
    theirs = api.post("/v1/agents", BOT, token=mint(api, organization="other")).json["id"]
    messages = set()
    for name in (theirs, "bot", "agt_0000000000000000", "nobody", ""):
        message = refused(api.post("/v1/sessions", body(name)), 404, "not_found")
        assert f"`{path}`" in message
        messages.add(message.replace(repr(name), "it"))
    assert len(messages) == 1
    assert api.get("/v1/sessions").json["data"] == []
