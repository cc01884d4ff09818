"""What runs in a session and where: models, instructions, modes, rules, repositories (contract §6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.support import Api

TWO = [
    {"label": "MiniMax", "connector": "minimax", "model": "MiniMax-M3"},
    {"label": "Claude", "connector": "anthropic", "model": "claude-sonnet-4-6"},
]
RUNBOOK = {
    "agent": [{"otherwise": [{"mcp": {"server": "runbook", "tool": "restart"}}]}],
    "mcp": {"runbook": {"tools": {"restart": {"text": "restarted"}, "search": {"read_only": True, "text": "found"}}}},
}


def refused(api: Api, body: dict[str, Any], status: int, code: str) -> str:
    """The message of a create that is refused and leaves nothing behind."""
    answer = api.post("/v1/sessions", body)
    assert (answer.status, answer.code) == (status, code)
    assert api.get("/v1/sessions").json["data"] == []
    return answer.message


def verdict(api: Api, agent_config: dict[str, Any], tool: str, args: dict[str, Any]) -> str:
    """What becomes of an act that wants approval: `asked`, `allowed`, or the code of its refusal."""

    @api.emulator.agent
    async def agent(turn: Any) -> None:
        await turn.say("allowed" if await turn.approve(tool, args) else "refused")

    session_id = api.session({"agent": agent_config, "input": "go"})
    events = api.events(session_id)
    if api.actions(session_id):
        assert events[-1]["type"] == "approval.requested"
        return "asked"
    [resolved] = [event["payload"] for event in events if event["type"] == "approval.resolved"] or [None]
    said = api.emulator.transcript(session_id).last_message
    if resolved is None:
        assert said == "allowed"
        return said
    assert said == "refused"
    assert (resolved["approved"], resolved["name"]) == (False, tool)
    assert resolved["reason"]
    assert "approval.requested" not in [event["type"] for event in events]
    return str(resolved["code"])


@pytest.mark.behaviour("sessions.model-default")
@pytest.mark.gobare(connections=TWO)
def test_the_default_connection_runs_when_none_is_named(api: Api) -> None:
    connections = api.emulator.socket.deployment.world.organization("default").connections.listed
    for agent in ({}, {"model": "MiniMax-M3"}, {"model_credential_id": connections[0].id}):
        session = api.post("/v1/sessions", {"agent": agent}).json
        assert (session["agent"]["model"], session["agent"]["model_credential_id"]) == ("MiniMax-M3", connections[0].id)
    other = api.post("/v1/sessions", {"agent": {"model_credential_id": connections[1].id}}).json
    assert other["agent"]["model"] == "claude-sonnet-4-6"


@pytest.mark.behaviour("sessions.model-wrong")
@pytest.mark.gobare(connections=TWO)
@pytest.mark.parametrize("model", ["claude-sonnet-4-6", "minimax-m3", ""])
def test_a_model_the_connection_does_not_run_is_refused(api: Api, model: str) -> None:
    message = refused(api, {"agent": {"model": model}}, 400, "invalid_request")
    assert message.startswith(f"This organization's selected connection runs MiniMax-M3, not {model}")
    assert "`agent.model_credential_id`" in message


@pytest.mark.behaviour("sessions.model-unknown")
@pytest.mark.parametrize("agent", [{}, {"model": "MiniMax-M3"}])
def test_an_unknown_connection_is_refused(api: Api, agent: dict[str, Any]) -> None:
    body = {"agent": {**agent, "model_credential_id": "cred_nowhere"}}
    message = refused(api, body, 400, "invalid_request")
    assert message.startswith("This organization has no model connection with id cred_nowhere")
    assert "GET /v1/model-credentials" in message


@pytest.mark.behaviour("sessions.model-none")
@pytest.mark.gobare(connections=[])
@pytest.mark.parametrize("agent", [{}, {"model": "MiniMax-M3"}, {"model_credential_id": "cred_nowhere"}])
def test_an_organization_with_nothing_connected_is_told_so(api: Api, agent: dict[str, Any]) -> None:
    message = refused(api, {"agent": agent}, 400, "invalid_request")
    assert message.startswith("This organization has no model connected")


@pytest.mark.behaviour("sessions.agent-unknown")
@pytest.mark.parametrize("body", [{"agent": {"id": "nobody"}}, {"environment": {"template_id": "nobody"}}])
def test_an_unknown_saved_agent_is_not_found(api: Api, body: dict[str, Any]) -> None:
    assert "'nobody'" in refused(api, body, 404, "not_found")


@pytest.mark.behaviour("sessions.instructions")
@pytest.mark.parametrize("sent", [None, ""])
def test_no_instructions_are_null(api: Api, sent: str | None) -> None:
    assert api.post("/v1/sessions", {"agent": {"instructions": sent}}).json["agent"]["instructions"] is None


@pytest.mark.behaviour("sessions.approval-mode")
@pytest.mark.parametrize("mode", ["auto", "per_step", "read_only", "plan"])
def test_a_mode_is_read_back(api: Api, mode: str) -> None:
    assert api.post("/v1/sessions", {"agent": {"approval_mode": mode}}).json["agent"]["approval_mode"] == mode


@pytest.mark.behaviour("sessions.approval-mode")
@pytest.mark.parametrize("mode", ["never", "AUTO", ""])
def test_another_mode_is_told_the_four(api: Api, mode: str) -> None:
    message = refused(api, {"agent": {"approval_mode": mode}}, 400, "invalid_request")
    assert "`agent.approval_mode` must be one of auto, per_step, read_only, plan" in message


@pytest.mark.behaviour("sessions.permission-rules")
@pytest.mark.parametrize("rule", [{}, {"tool": "bash"}, {"decision": "maybe"}, {"decision": None}])
def test_a_rule_without_a_decision_is_told_the_three(api: Api, rule: dict[str, Any]) -> None:
    body = {"agent": {"permission_rules": [{"decision": "ask"}, rule]}}
    message = refused(api, body, 400, "invalid_request")
    assert "`agent.permission_rules[1].decision`" in message
    assert "allow, deny, ask" in message


@pytest.mark.behaviour("sessions.rule-decides")
@pytest.mark.parametrize(("decision", "becomes"), [("allow", "allowed"), ("ask", "asked"), ("deny", "denied_by_rule")])
def test_a_rule_decides(api: Api, decision: str, becomes: str) -> None:
    assert verdict(api, {"permission_rules": [{"decision": decision}]}, "bash", {"command": "ls"}) == becomes


@pytest.mark.behaviour("sessions.rule-fields")
@pytest.mark.parametrize(
    ("rule", "tool", "args", "matches"),
    [
        ({"tool": "bash"}, "bash", {}, True),
        ({"tool": "bash"}, "bash2", {}, False),
        ({"tool": "mcp_runbook_*"}, "mcp_runbook_restart", {}, True),
        ({"tool": "mcp_runbook_*"}, "mcp_docs_restart", {}, False),
        ({"path": "/etc"}, "write", {"path": "/etc/hosts"}, True),
        ({"path": "/etc"}, "write", {"path": "/etcetera"}, False),
        ({"path": "/etc"}, "bash", {"command": "cat /etc/hosts"}, False),
        ({"command": "git push"}, "bash", {"command": "git push --force"}, True),
        ({"command": "git push"}, "bash", {"command": "git pull"}, False),
        ({"domain": "api.acme.com"}, "web_fetch", {"url": "https://api.acme.com/v2?x=1"}, True),
        ({"domain": "api.acme.com"}, "web_fetch", {"url": "https://acme.com/api.acme.com"}, False),
        ({"tool": "bash", "command": "rm *"}, "bash", {"command": "rm -rf x"}, True),
        ({"tool": "bash", "command": "rm *"}, "bash", {"command": "ls"}, False),
        ({"tool": "write", "path": "/etc"}, "read", {"path": "/etc/hosts"}, False),
        ({}, "anything", {}, True),
    ],
)
def test_a_rule_is_about_what_matches_all_its_fields(
    api: Api, rule: dict[str, str], tool: str, args: dict[str, str], matches: bool
) -> None:
    becomes = verdict(api, {"permission_rules": [{"decision": "deny", **rule}]}, tool, args)
    assert becomes == ("denied_by_rule" if matches else "asked")


@pytest.mark.behaviour("sessions.rule-first")
@pytest.mark.parametrize(
    ("decisions", "becomes"),
    [(["allow", "deny"], "allowed"), (["deny", "allow"], "denied_by_rule"), (["ask", "deny", "allow"], "asked")],
)
def test_the_first_rule_that_matches_decides(api: Api, decisions: list[str], becomes: str) -> None:
    rules = [{"decision": "deny", "tool": "other"}, *({"decision": decision, "tool": "b*"} for decision in decisions)]
    assert verdict(api, {"permission_rules": rules}, "bash", {}) == becomes


@pytest.mark.behaviour("sessions.read-only", "permissions.plan")
@pytest.mark.parametrize("mode", ["read_only", "plan"])
def test_where_nothing_may_change_what_wants_approval_is_refused(api: Api, mode: str) -> None:
    assert verdict(api, {"approval_mode": mode}, "bash", {}) == "denied_read_only"


@pytest.mark.behaviour("sessions.read-only", "sessions.approval-mode")
@pytest.mark.parametrize("mode", ["auto", "per_step"])
def test_the_modes_in_which_it_may_act_ask(api: Api, mode: str) -> None:
    assert verdict(api, {"approval_mode": mode}, "bash", {}) == "asked"


@pytest.mark.behaviour("sessions.rule-beats-mode")
@pytest.mark.parametrize(
    ("mode", "decision", "becomes"),
    [
        ("read_only", "allow", "allowed"),
        ("read_only", "ask", "asked"),
        ("read_only", "deny", "denied_by_rule"),
        ("auto", "deny", "denied_by_rule"),
        ("per_step", "allow", "allowed"),
    ],
)
def test_a_rule_beats_the_mode(api: Api, mode: str, decision: str, becomes: str) -> None:
    config = {"approval_mode": mode, "permission_rules": [{"decision": decision}]}
    assert verdict(api, config, "bash", {}) == becomes


@pytest.mark.behaviour("sessions.rule-mcp")
@pytest.mark.gobare(scenario=RUNBOOK)
@pytest.mark.parametrize(
    ("config", "code"),
    [
        ({}, None),
        ({"approval_mode": "read_only"}, "denied_read_only"),
        ({"permission_rules": [{"decision": "deny", "tool": "mcp_runbook_*"}]}, "denied_by_rule"),
        (
            {"approval_mode": "read_only", "permission_rules": [{"decision": "allow", "tool": "mcp_runbook_*"}]},
            None,
        ),
    ],
)
def test_rules_and_read_only_hold_for_mcp_tools(api: Api, config: dict[str, Any], code: str | None) -> None:
    tools = [{"type": "mcp", "name": "runbook", "url": "http://runbook"}]
    session_id = api.session({"agent": {"tools": tools, **config}, "input": "go"})
    events = {event["type"]: event["payload"] for event in api.events(session_id)}
    if code is None:
        assert events["agent.tool_result"]["summary"] == "restarted"
        assert "approval.resolved" not in events
    else:
        resolved = events["approval.resolved"]
        assert (resolved["approved"], resolved["code"]) == (False, code)
        assert resolved["name"] == "mcp_runbook_restart"
        assert "restarted" not in str(events)


@pytest.mark.behaviour("sessions.mcp-asks")
@pytest.mark.gobare(scenario=RUNBOOK)
@pytest.mark.parametrize(
    "config",
    [{"approval_mode": "per_step"}, {"permission_rules": [{"decision": "ask", "tool": "mcp_runbook_restart"}]}],
)
@pytest.mark.parametrize("approved", [True, False])
def test_an_mcp_tool_waits_for_approval(api: Api, config: dict[str, Any], approved: bool) -> None:
    tools = [{"type": "mcp", "name": "runbook", "url": "http://runbook"}]
    session_id = api.session({"agent": {"tools": tools, **config}, "input": "go"})
    [action] = api.actions(session_id)
    assert (action["type"], action["name"]) == ("approval", "mcp_runbook_restart")
    assert "restarted" not in str(api.events(session_id))
    api.send(session_id, {"type": "input.approval", "call_id": action["call_id"], "approved": approved})
    assert api.actions(session_id) == []
    assert ("restarted" in str(api.events(session_id))) is approved


@pytest.mark.behaviour("sessions.rule-mcp")
def test_read_only_lets_a_read_only_mcp_tool_be_used(api: Api) -> None:
    api.emulator.load({**RUNBOOK, "agent": [{"otherwise": [{"mcp": {"server": "runbook", "tool": "search"}}]}]})
    tools = [{"type": "mcp", "name": "runbook", "url": "http://runbook"}]
    session_id = api.session({"agent": {"tools": tools, "approval_mode": "read_only"}, "input": "go"})
    events = {event["type"]: event["payload"] for event in api.events(session_id)}
    assert events["agent.tool_result"]["summary"] == "found"
    assert "approval.resolved" not in events


@pytest.mark.behaviour("sessions.repo")
def test_the_branch_is_reported_once_the_workspace_is_up(api: Api) -> None:
    session = api.post("/v1/sessions", {"environment": {"repo": "acme/app.js"}}).json
    assert session["environment"]["repo"] == {"full_name": "acme/app.js", "branch": None, "clone_error": None}
    api.say(session["id"], "hello")
    read = api.get(f"/v1/sessions/{session['id']}").json
    assert read["environment"]["repo"] == {"full_name": "acme/app.js", "branch": "main", "clone_error": None}


@pytest.mark.behaviour("sessions.repo-url")
@pytest.mark.parametrize(
    "repo",
    [
        "https://github.com/acme/app",
        "https://github.com/acme/app.git",
        "https://github.com/acme/app/",
        "https://github.com/acme/app/tree/main/src",
        "https://github.com/acme/app?tab=readme",
        "http://token@github.com/acme/app",
        "git@github.com:acme/app.git",
        "ssh://git@github.com/acme/app.git",
        "github.com/acme/app",
    ],
)
def test_an_address_is_told_as_owner_and_name(api: Api, repo: str) -> None:
    message = refused(api, {"environment": {"repo": repo}}, 400, "invalid_request")
    assert "`environment.repo`" in message
    assert "`acme/app`" in message


@pytest.mark.behaviour("sessions.repo-url")
@pytest.mark.parametrize(
    "repo",
    [
        *("", "acme", "/", "acme/", "/app", "acme app/x", "https://github.com", "https://github.com/acme"),
        *("../..", "acme/..", "./app", "https://github.com/../.."),
    ],
)
def test_what_is_no_repository_is_refused(api: Api, repo: str) -> None:
    message = refused(api, {"environment": {"repo": repo}}, 400, "invalid_request")
    assert "`environment.repo`" in message
    assert "owner/name" in message


@pytest.mark.behaviour("sessions.repo-github")
@pytest.mark.gobare(github=False)
def test_without_github_a_repository_is_refused(api: Api) -> None:
    message = refused(api, {"environment": {"repo": "acme/app"}}, 400, "invalid_request")
    assert "GitHub" in message
    assert "Settings" in message
    assert api.post("/v1/sessions", {"environment": {}}).status == 201


@pytest.mark.behaviour("sessions.branch")
def test_a_branch_is_not_chosen(api: Api) -> None:
    body = {"environment": {"repo": "acme/app", "branch": "main"}}
    message = refused(api, body, 400, "invalid_request")
    assert "`environment.branch`" in message
    assert "`environment.repo.branch`" in message


@pytest.mark.behaviour("sessions.profiles")
def test_an_unknown_profile_is_not_found(api: Api) -> None:
    assert "'envg_nowhere'" in refused(api, {"environment": {"profiles": ["envg_nowhere"]}}, 404, "not_found")
    assert api.post("/v1/sessions", {"environment": {"profiles": []}}).status == 201
