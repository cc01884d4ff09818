"""Modes and rules decide about each thing an agent does: it is done, asked about, or refused (contract §6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from emulator.runtime.run import ScriptError
from tests.contract.steps import types

if TYPE_CHECKING:
    from emulator import Turn
    from tests.support import Api

SERVERS: Final = {
    "mcp": {"runbook": {"tools": {"restart": {"text": "restarted"}, "search": {"read_only": True, "text": "found"}}}}
}
TOOLS: Final = [{"type": "mcp", "name": "runbook", "url": "http://runbook"}]
SEED: Final = {"path": "old.txt", "data": "b2xk"}

# Each thing an agent may do: the tool's name, and whether it only reads.
ACTS: Final = {
    "bash": False,
    "read": True,
    "mcp_runbook_restart": False,
    "mcp_runbook_search": True,
    "write": False,
    "delete": False,
}


async def act(turn: Turn, tool: str) -> bool:
    """Have the agent do one of them. Whether it was done."""
    match tool:
        case "bash":
            return await turn.use("bash", {"command": "make"})
        case "read":
            return await turn.use("read", {"path": "notes.md"})
        case "write":
            return await turn.write("outputs/new.txt", "new")
        case "delete":
            return await turn.delete("old.txt")
    return not (await turn.mcp("runbook", tool.removeprefix("mcp_runbook_"))).is_error


def session_of(api: Api, **agent: Any) -> str:
    """A session whose workspace has a file to delete."""
    return api.session({"agent": {"tools": TOOLS, **agent}, "environment": {"files": [SEED]}})


def answer(api: Api, session: str, *, approved: bool) -> dict[str, Any]:
    """Decide the one approval a session waits for, and give it."""
    (action,) = api.actions(session)
    assert action["type"] == "approval"
    api.send(session, {"type": "input.approval", "call_id": action["call_id"], "approved": approved})
    return action


def decided(mode: str, rule: str | None, *, reads: bool) -> str:
    """What becomes of an act."""
    if rule is not None:
        return {"allow": "done", "deny": "denied_by_rule", "ask": "asked"}[rule]
    if mode in ("read_only", "plan"):
        return "done" if reads else "denied_read_only"
    return "asked" if mode == "per_step" else "done"


@pytest.mark.behaviour("permissions.acts", "permissions.refused", "permissions.asked", "permissions.read-only-tools")
@pytest.mark.behaviour("permissions.per-step", "permissions.plan", "permissions.sensitive")
@pytest.mark.gobare(scenario={**SERVERS, "agent": []})
@pytest.mark.parametrize("mode", ["auto", "per_step", "read_only", "plan"])
@pytest.mark.parametrize("rule", [None, "allow", "deny", "ask"])
@pytest.mark.parametrize("approved", [True, False])
def test_mode_and_rule_decide_about_each_act(api: Api, mode: str, rule: str | None, approved: bool) -> None:
    done: dict[str, bool] = {}

    @api.emulator.agent
    async def agent(turn: Turn) -> None:
        for tool in ACTS:
            done[tool] = await act(turn, tool)
        await turn.say("That is all.")

    rules = [] if rule is None else [{"decision": rule, "tool": tool} for tool in ACTS]
    session = session_of(api, approval_mode=mode, permission_rules=rules)
    api.say(session, "go")
    becomes = {tool: decided(mode, rule, reads=reads) for tool, reads in ACTS.items()}
    for tool in [tool for tool, found in becomes.items() if found == "asked"]:
        assert answer(api, session, approved=approved)["name"] == tool
    assert done == {tool: found == "done" or (found == "asked" and approved) for tool, found in becomes.items()}

    events = api.events(session)
    refused = [
        event["payload"] for event in events if event["type"] == "approval.resolved" and "code" in event["payload"]
    ]
    assert [(one["name"], one["code"], one["approved"]) for one in refused] == [
        (tool, found, False) for tool, found in becomes.items() if found.startswith("denied")
    ]
    assert all(one["name"] in one["reason"] for one in refused)
    asked = [event["payload"] for event in events if event["type"] == "approval.requested"]
    assert [(one["name"], one["sensitive"]) for one in asked] == [
        (tool, not ACTS[tool]) for tool, found in becomes.items() if found == "asked"
    ]
    used = [event["payload"]["toolName"] for event in events if event["type"] == "agent.tool_call"]
    assert used == [tool for tool, found in done.items() if found and tool not in ("write", "delete")]
    changed = [event["payload"]["kind"] for event in events if event["type"] == "file.changed"]
    assert changed == ["created"] * done["write"] + ["deleted"] * done["delete"]
    assert [turn["status"] for turn in api.turns(session)] == ["completed"]
    assert len(api.get(f"/v1/sessions/{session}/artifacts").json["data"]) == done["write"]


@pytest.mark.behaviour("permissions.refused")
def test_what_is_refused_leaves_one_event_and_no_file(api: Api) -> None:
    @api.emulator.agent
    async def agent(turn: Turn) -> None:
        await turn.write("outputs/a.txt", "a")

    session = api.session({"agent": {"approval_mode": "read_only"}, "input": "go"})
    events = api.events(session)
    assert types(events)[-3:] == ["turn.started", "approval.resolved", "turn.ended"]
    assert events[-2]["payload"] == {
        "toolCallId": events[-2]["payload"]["toolCallId"],
        "approved": False,
        "name": "write",
        "code": "denied_read_only",
        "reason": "This session is read-only, and write could change something.",
    }
    assert [item["type"] for item in api.items(session)] == ["message", "approval"]


@pytest.mark.behaviour("permissions.files")
@pytest.mark.parametrize(
    ("content", "shown"), [("text", {"content": "text"}), (b"bytes", {"content": "bytes"}), (b"\xff\xfe", {})]
)
def test_an_approval_of_a_write_shows_where_and_what(api: Api, content: str | bytes, shown: dict[str, str]) -> None:
    @api.emulator.agent
    async def agent(turn: Turn) -> None:
        await turn.write("src/../notes/a.txt", content)
        await turn.delete("./notes//a.txt")

    session = api.session({"agent": {"approval_mode": "per_step"}, "input": "go"})
    assert answer(api, session, approved=True)["arguments"] == {"path": "/workspace/notes/a.txt", **shown}
    action = answer(api, session, approved=True)
    assert (action["name"], action["arguments"]) == ("delete", {"path": "/workspace/notes/a.txt"})
    assert types(api.events(session)).count("file.changed") == 2


@pytest.mark.behaviour("permissions.path")
@pytest.mark.parametrize(
    "path", ["secrets/key", "a/../secrets/key", "/workspace//secrets/./key", "../workspace/secrets/key"]
)
@pytest.mark.parametrize("rule", ["secrets", "/workspace/secrets/*", "secrets/**"])
def test_no_spelling_writes_where_a_rule_denies_it(api: Api, path: str, rule: str) -> None:
    @api.emulator.agent
    async def agent(turn: Turn) -> None:
        assert not await turn.write(path, "mine")
        assert not await turn.use("read", {"path": path})
        assert await turn.write("Secrets/key", "mine")

    session = api.session({"agent": {"permission_rules": [{"decision": "deny", "path": rule}]}, "input": "go"})
    assert [turn["status"] for turn in api.turns(session)] == ["completed"]
    changed = [event["payload"]["path"] for event in api.events(session) if event["type"] == "file.changed"]
    assert changed == ["/workspace/Secrets/key"]


@pytest.mark.behaviour("permissions.path")
def test_what_a_script_could_not_do_it_may_still_be_refused(api: Api) -> None:
    @api.emulator.agent
    async def agent(turn: Turn) -> None:
        await turn.say(str([await turn.write("/etc/hosts", "x"), await turn.delete("/etc/nothing")]))
        with pytest.raises(ScriptError, match="could not write '/tmp/x': it resolves to /tmp/x"):
            await turn.write("/tmp/x", "x")

    rules = [{"decision": "deny", "path": "/etc"}, {"decision": "ask"}]
    session = api.session({"agent": {"permission_rules": rules}, "input": "go"})
    assert api.emulator.transcript(session).last_message == "[False, False]"
    assert "approval.requested" not in types(api.events(session))
    assert [turn["status"] for turn in api.turns(session)] == ["completed"]


@pytest.mark.behaviour("permissions.command", "permissions.domain")
@pytest.mark.parametrize(
    ("rule", "tool", "args"),
    [
        ({"command": "git push"}, "bash", {"command": "  git  push origin"}),
        ({"domain": "example.com"}, "web_fetch", {"url": "HTTPS://me@EXAMPLE.com.:443/a"}),
    ],
)
def test_no_spelling_dodges_a_rule_of_commands_or_domains(
    api: Api, rule: dict[str, str], tool: str, args: dict[str, str]
) -> None:
    @api.emulator.agent
    async def agent(turn: Turn) -> None:
        await turn.say(str(await turn.use(tool, args)))

    session = api.session({"agent": {"permission_rules": [{"decision": "deny", **rule}]}, "input": "go"})
    assert api.emulator.transcript(session).last_message == "False"


@pytest.mark.behaviour("permissions.once")
def test_what_was_approved_is_not_asked_about_again_and_once_only(api: Api) -> None:
    @api.emulator.agent
    async def agent(turn: Turn) -> None:
        make = {"command": "make", "timeout": 5}
        if await turn.approve("bash", make):
            await turn.use("bash", dict(reversed(make.items())))
        await turn.use("bash", make)
        await turn.use("bash", {"command": "make"})

    session = api.session({"agent": {"approval_mode": "per_step"}, "input": "go"})
    for _ in range(3):
        answer(api, session, approved=True)
    assert types(api.events(session)).count("agent.tool_call") == 3
    assert api.actions(session) == []


@pytest.mark.behaviour("permissions.once")
def test_what_was_not_approved_is_asked_about_again(api: Api) -> None:
    @api.emulator.agent
    async def agent(turn: Turn) -> None:
        await turn.approve("bash", {"command": "make"})
        await turn.use("bash", {"command": "make"})

    session = api.session({"agent": {"approval_mode": "per_step"}, "input": "go"})
    answer(api, session, approved=False)
    answer(api, session, approved=False)
    assert "agent.tool_call" not in types(api.events(session))


@pytest.mark.behaviour("permissions.once")
@pytest.mark.parametrize("tool", ["write", "edit"])
def test_a_file_that_a_tool_changed_is_asked_about_with_that_tool(api: Api, tool: str) -> None:
    @api.emulator.agent
    async def agent(turn: Turn) -> None:
        await turn.use(tool, {"path": "/workspace/outputs/a.md"})
        await turn.write("outputs/a.md", "# A")
        await turn.write("outputs/a.md", "# B")

    session = api.session({"agent": {"approval_mode": "per_step"}, "input": "go"})
    assert [answer(api, session, approved=True)["name"] for _ in range(2)] == [tool, "write"]
    assert types(api.events(session)).count("file.changed") == 2


@pytest.mark.behaviour("permissions.per-step")
def test_what_is_said_and_the_clients_functions_are_no_steps(api: Api) -> None:
    @api.emulator.agent
    async def agent(turn: Turn) -> None:
        await turn.say("I look.")
        await turn.todos([{"label": "look", "status": "done"}])
        await turn.call("lookup")

    agent_of = {"approval_mode": "per_step", "tools": [{"type": "function", "name": "lookup"}]}
    session = api.session({"agent": agent_of, "input": "go"})
    assert [action["type"] for action in api.actions(session)] == ["function_call"]


@pytest.mark.behaviour("sessions.patch-mode-next-turn", "sessions.patch-rules-next-turn")
def test_a_patch_reaches_the_acts_of_the_next_turn(api: Api) -> None:
    @api.emulator.agent
    async def agent(turn: Turn) -> None:
        await turn.ask("Now?")
        await turn.say(f"{await turn.write('a.txt', 'a')} {await turn.use('bash')}")

    session = api.session({"agent": {"approval_mode": "read_only"}, "input": "go"})
    rules = [{"decision": "deny", "tool": "bash"}]
    api.patch(f"/v1/sessions/{session}", {"agent": {"approval_mode": "auto", "permission_rules": rules}})
    api.emulator.answer("yes")
    assert api.emulator.transcript(session).last_message == "False False"
    api.say(session, "again")
    api.emulator.answer("yes")
    assert api.emulator.transcript(session).last_message == "True False"


@pytest.mark.behaviour("permissions.read-only-tools", "permissions.sensitive")
def test_a_tool_marked_read_only_only_reads_whichever_verb_names_it(api: Api) -> None:
    @api.emulator.agent
    async def agent(turn: Turn) -> None:
        done = [await turn.use(f"mcp_runbook_{tool}") for tool in ("search", "restart", "nothing")]
        done.append(await turn.approve("mcp_runbook_restart"))
        done.append(await turn.approve("mcp_runbook_search"))
        await turn.say(" ".join(map(str, done)))

    api.emulator.load(SERVERS)
    session = session_of(api, approval_mode="read_only")
    api.say(session, "go")
    assert answer(api, session, approved=True)["name"] == "mcp_runbook_search"
    assert api.emulator.transcript(session).last_message == "True False False False True"
    api.patch(f"/v1/sessions/{session}", {"agent": {"approval_mode": "per_step"}})
    api.say(session, "go on")
    asked = [event["payload"] for event in api.events(session) if event["type"] == "approval.requested"]
    assert (asked[-1]["name"], asked[-1]["sensitive"]) == ("mcp_runbook_search", False)


@pytest.mark.behaviour("permissions.asked")
def test_a_scenario_goes_on_by_what_was_done(api: Api) -> None:
    steps = [
        {"write": {"path": "a.txt", "content": "a", "as": "written"}},
        {"use": {"tool": "bash", "as": "ran"}},
        {"delete": {"path": "a.txt", "as": "gone"}},
        {"say": "{{ written }} {{ ran }} {{ gone }}: {{ 'done' if gone else 'not allowed' }}"},
    ]
    api.emulator.load({"scenario": "files", "agent": [{"otherwise": steps}]})
    session = api.session({"agent": {"permission_rules": [{"decision": "ask", "tool": "bash"}]}, "input": "go"})
    api.emulator.approve(approved=False)
    assert api.emulator.transcript(session).last_message == "true false true: done"


@pytest.mark.behaviour("permissions.asked")
def test_several_acts_are_asked_about_side_by_side(api: Api) -> None:
    @api.emulator.agent
    async def agent(turn: Turn) -> None:
        await turn.together(turn.write("a.txt", "a"), turn.write("b.txt", "b"), turn.use("read", {"path": "c"}))

    session = api.session({"agent": {"approval_mode": "per_step"}, "input": "go"})
    asked = api.actions(session)
    assert [action["name"] for action in asked] == ["write", "write", "read"]
    for action, approved in zip(reversed(asked), (True, False, True), strict=True):
        api.send(session, {"type": "input.approval", "call_id": action["call_id"], "approved": approved})
    events = api.events(session)
    assert [event["payload"]["path"] for event in events if event["type"] == "file.changed"] == ["/workspace/a.txt"]
    assert types(events).count("agent.tool_call") == 1


@pytest.mark.behaviour("permissions.asked")
def test_an_act_that_waits_ends_with_its_turn(api: Api) -> None:
    @api.emulator.agent
    async def agent(turn: Turn) -> None:
        await turn.write("outputs/a.txt", "a")

    session = api.session({"agent": {"approval_mode": "per_step"}, "input": "go"})
    api.send(session, {"type": "input.cancel"})
    resolved = [event["payload"] for event in api.events(session) if event["type"] == "approval.resolved"]
    assert [(one["name"], one["code"]) for one in resolved] == [("write", "aborted")]
    assert "file.changed" not in types(api.events(session))


@pytest.mark.behaviour("permissions.default-agent")
@pytest.mark.parametrize(
    ("mode", "said"),
    [("read_only", "I was not allowed to write"), ("plan", "I was not allowed to write"), ("auto", "I wrote")],
)
def test_the_agent_nobody_scripted_is_held_to_the_mode(api: Api, mode: str, said: str) -> None:
    session = api.session({"agent": {"approval_mode": mode}, "input": "Write /workspace/outputs/a.md"})
    assert f"{said} /workspace/outputs/a.md." in str(api.emulator.transcript(session).last_message)
    assert ("file.changed" in types(api.events(session))) is (mode == "auto")


@pytest.mark.behaviour("permissions.default-agent")
def test_the_agent_nobody_scripted_asks_step_by_step(api: Api) -> None:
    body = {
        "agent": {"approval_mode": "per_step"},
        "input": "Write /workspace/outputs/a.md and /workspace/outputs/b.md",
    }
    session = api.session(body)
    answer(api, session, approved=True)
    answer(api, session, approved=False)
    said = str(api.emulator.transcript(session).last_message)
    assert "I wrote /workspace/outputs/a.md. I was not allowed to write /workspace/outputs/b.md." in said
