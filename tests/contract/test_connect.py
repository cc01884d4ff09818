"""MCP servers that are really connected to (contract §5): by `url` on loopback, by `command` as a process."""

from __future__ import annotations

import json
import os
import socket
from typing import TYPE_CHECKING, Any, Final

import pytest

from emulator import ScriptError
from tests.contract.tool_doors import put
from tests.crashes import PEER, entry, gone, running
from tests.mcp_web import SECRET, Web, at, connected, session

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Api


def calls(api: Api, session_id: str, *tools: str, **arguments: Any) -> list[Any]:
    """The results of calling these tools in one turn."""
    results: list[Any] = []

    @api.emulator.agent
    async def agent(turn: Any) -> None:
        for tool in tools:
            try:
                results.append(await turn.mcp("docs", tool, arguments))
            except ScriptError as refused:
                results.append(str(refused))

    assert api.say(session_id, "call them").status == 202
    assert [turn["status"] for turn in api.turns(session_id)][-1] == "completed"
    return results


def reason(api: Api, session_id: str) -> str:
    """Why the server of a session is unreachable."""
    api.say(session_id, "hello")
    (event,) = [event for event in api.events(session_id) if event["type"] == "mcp.unavailable"]
    told: str = event["payload"]["reason"]
    return told


@connected
@pytest.mark.behaviour("connect.url", "connect.url.authorization", "connect.handshake", "connect.once")
@pytest.mark.parametrize("path", ["mcp", "sse"])
def test_a_server_is_connected_to_once_with_its_credential_and_headers(api: Api, web: Web, path: str) -> None:
    tool = at(f"{web.url}/{path}", authorization=f"Token {SECRET}", headers={"x-api-key": "kéy"})
    session_id = session(api, tool)

    (first,) = calls(api, session_id, "read", q="deploy")
    (second,) = calls(api, session_id, "write")

    assert json.loads(first.text) == {"q": "deploy"}
    assert (first.structured, first.is_error) == ({"tool": "read"}, False)
    assert second.structured == {"tool": "write"}
    assert web.methods() == ["initialize", "notifications/initialized", "tools/list", "tools/call", "tools/call"]
    for one in web.received:
        assert one.headers["authorization"] == f"Token {SECRET}"
        assert one.headers["x-api-key"].encode("latin-1").decode() == "kéy"
        assert "cookie" not in one.headers
        assert SECRET not in json.dumps(one.body)


@connected
@pytest.mark.behaviour("connect.url", "connect.ends")
def test_a_session_that_is_deleted_takes_its_leave(api: Api, web: Web) -> None:
    session_id = session(api, at(f"{web.url}/mcp", authorization=SECRET))
    calls(api, session_id, "read")
    api.delete(f"/v1/sessions/{session_id}")
    goodbye = web.received[-1]
    assert (goodbye.method, goodbye.headers["mcp-session-id"]) == ("DELETE", "of-a-client")


@connected
@pytest.mark.behaviour("connect.url.redirects")
def test_a_redirect_to_another_host_is_not_followed(api: Api, web: Web) -> None:
    assert reason(api, session(api, at(f"{web.url}/redirect", authorization=SECRET))) == "the server answered 307"
    assert {one.path for one in web.received} == {"/redirect"}


@connected
@pytest.mark.behaviour("connect.url.proxies")
def test_proxies_of_the_environment_are_not_used(api: Api, web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert not calls(api, session(api, at(f"{web.url}/mcp")), "read")[0].is_error


@connected
@pytest.mark.behaviour("connect.reasons")
@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("401", "the server answered 401"),
        ("403", "the server answered 403"),
        ("404", "the server answered 404"),
        ("500", "the server answered 500"),
        ("reset", "fetch failed"),
        ("half", "fetch failed"),
        ("html", "the server does not speak MCP"),
        ("json", "the server does not speak MCP"),
        ("nothing", "the server does not speak MCP"),
        ("old", "the server does not speak MCP"),
    ],
)
def test_a_server_that_does_not_answer_as_one_is_unreachable(api: Api, web: Web, path: str, told: str) -> None:
    assert reason(api, session(api, at(f"{web.url}/{path}", authorization=SECRET))) == told


@connected
@pytest.mark.behaviour("connect.reasons")
def test_a_port_that_nobody_listens_on_is_fetch_failed(api: Api) -> None:
    with socket.create_server(("127.0.0.1", 0)) as bound:
        port = bound.getsockname()[1]
    entries = [at(f"http://127.0.0.1:{port}/mcp"), at(f"https://127.0.0.1:{port}/mcp", name="tls", required=True)]
    answer = api.say(session(api, *entries), "hello")
    assert "servers) failed to initialise — tls: fetch failed. That" in answer.message.replace("(s)", "s)")


@pytest.mark.gobare(mcp="connect", mcp_seconds=0.05)
@pytest.mark.behaviour("connect.timeout")
@pytest.mark.parametrize("method", ["initialize", "tools/list"])
def test_a_server_that_hangs_is_left_and_the_clock_moves(api: Api, web: Web, method: str) -> None:
    web.hangs.add(method)
    session_id = session(api, at(f"{web.url}/mcp"))
    before = api.emulator.clock.now()
    assert reason(api, session_id) == "the server did not answer within 0.05s"
    assert 50 <= api.emulator.clock.now() - before < 100


@connected
@pytest.mark.behaviour("connect.calls", "connect.once")
def test_what_goes_wrong_in_a_call_is_an_error_result_and_the_next_call_works(api: Api, web: Web) -> None:
    session_id = session(api, at(f"{web.url}/mcp"))
    results = calls(api, session_id, "cut", "status", "malformed", "read")
    assert [(result.is_error, result.text) for result in results] == [
        (True, "docs: the connection was lost during the call"),
        (True, "docs: the server answered 503"),
        (True, "docs: the server sent a result that is not one of MCP"),
        (False, "{}"),
    ]
    told = [event["payload"] for event in api.events(session_id) if event["type"] == "agent.tool_result"]
    assert [entry["isError"] for entry in told] == [True, True, True, False]


@connected
@pytest.mark.behaviour("connect.calls")
def test_a_turn_that_is_cancelled_leaves_its_call_and_the_connection_goes_on(api: Api, web: Web) -> None:
    api.emulator.settings.update(rest_seconds=0.05)
    session_id = session(api, at(f"{web.url}/mcp"))

    @api.emulator.agent
    async def agent(turn: Any) -> None:
        await turn.mcp("docs", "hang")

    api.say(session_id, "hang")
    assert web.asked.wait(10)
    api.send(session_id, {"type": "input.cancel"})
    assert [turn["status"] for turn in api.turns(session_id)] == ["cancelled"]
    api.emulator.settings.update(rest_seconds=5)
    assert not calls(api, session_id, "read")[0].is_error
    assert web.methods()[2:] == ["tools/list", "tools/call", "notifications/cancelled", "tools/call"]


@connected
@pytest.mark.behaviour("connect.calls")
def test_a_connection_that_breaks_in_a_call_stays_broken(api: Api, web: Web) -> None:
    results = calls(api, session(api, at(f"{web.url}/mcp")), "gzip", "read")
    lost = (True, "docs: the connection was lost during the call")
    assert [(result.is_error, result.text) for result in results] == [lost, lost]


@connected
@pytest.mark.behaviour("connect.calls.time")
def test_a_call_that_takes_too_long_is_an_error_result(api: Api, web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("emulator.runtime.connected.CALL_SECONDS", 0.05)
    (result,) = calls(api, session(api, at(f"{web.url}/mcp")), "hang")
    assert (result.is_error, result.text) == (True, "docs: the server did not answer within 0.05s")


@connected
@pytest.mark.behaviour("connect.tools")
def test_the_tools_of_all_pages_are_offered_and_anew_once_they_changed(api: Api) -> None:
    session_id = session(api, entry())
    read, grow, grown, gone = calls(api, session_id, "read", "grow", "grown", "gone", n=1)
    assert [result.text for result in (read, grow, grown)] == ['{"n": 1}'] * 3
    assert "which has no such tool (it has: read, write, variables, die, hang" in gone
    assert "grown)" in gone


@connected
@pytest.mark.behaviour("connect.tools")
def test_allowed_tools_and_read_only_hold_for_a_real_server(api: Api) -> None:
    session_id = session(api, entry(allowed_tools=["read", "write"]))
    assert "`allowed_tools` leaves out" in calls(api, session_id, "fail")[0]
    api.patch(f"/v1/sessions/{session_id}", {"agent": {"approval_mode": "read_only"}})
    read, write = calls(api, session_id, "read", "write")
    assert (read.is_error, write.is_error) == (False, True)
    (refused,) = [event["payload"] for event in api.events(session_id) if event["type"] == "approval.resolved"]
    assert (refused["name"], refused["code"]) == ("mcp_docs_write", "denied_read_only")


@connected
@pytest.mark.behaviour("connect.calls")
def test_a_process_that_ends_in_a_call_gives_an_error_result(api: Api) -> None:
    session_id = session(api, entry())
    results = calls(api, session_id, "fail", "malformed", "die", "read", status=7)
    assert [(result.is_error, result.text) for result in results] == [
        (True, '{"status": 7}'),
        (True, "docs: the server sent a result that is not one of MCP"),
        (True, "docs: the command ended with status 7"),
        (True, "docs: the command ended with status 7"),
    ]


@connected
@pytest.mark.behaviour("connect.calls")
@pytest.mark.parametrize("code", [-32000, -32602])
def test_an_error_of_the_protocol_is_told_with_its_code(api: Api, code: int) -> None:
    # The first is also what the SDK has for a connection that is lost.
    (result,) = calls(api, session(api, entry()), "read", code=code)
    assert (result.is_error, result.text) == (True, f"docs: MCP error {code}: not today")


@pytest.mark.behaviour("connect.command.allowed")
@pytest.mark.gobare(mcp="connect")
def test_no_process_is_started_unless_that_is_allowed(api: Api, tmp_path: Path) -> None:
    told = reason(api, session(api, entry(f"child={tmp_path / 'started'}")))
    assert told == "this emulator is not allowed to start processes (set allow_processes)"
    assert list(tmp_path.iterdir()) == []


PROFILES: Final = [
    {"name": "default", "is_default": True, "variables": {"NOTES_KEY": SECRET, "REGION": "eu"}},
    {"name": "other", "variables": {"REGION": "us"}},
]


@pytest.mark.gobare(mcp="connect", allow_processes=True, profiles=PROFILES)
@pytest.mark.behaviour("connect.command.variables")
def test_a_process_is_given_the_variables_of_the_sessions_profiles_that_are_named(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OF_THE_MACHINE", "not for servers")
    default, other = [entry["id"] for entry in api.get("/v1/environment-profiles").json["data"]][::-1]
    always = {"HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "LC_CTYPE"}
    for refs, environment, given in (
        ({"KEY": "NOTES_KEY"}, {}, {"KEY": SECRET}),
        (["REGION"], {}, {"REGION": "eu"}),
        (["REGION"], {"profiles": [default, other]}, {"REGION": "us"}),
        ([], {"profiles": []}, {}),
        (None, {}, {}),
    ):
        tool = entry() if refs is None else entry(env_refs=refs)
        (result,) = calls(api, session(api, tool, environment=environment), "variables")
        told = {name: value for name, value in result.structured.items() if name not in always}
        assert told.pop("GOBARE_MCP_SERVER").startswith(f"{os.getpid()}-")
        assert told == given
        assert result.structured["PATH"] == os.environ["PATH"]


@pytest.mark.gobare(mcp="connect", allow_processes=True, profiles=PROFILES)
@pytest.mark.behaviour("connect.command.missing")
def test_a_variable_that_no_profile_has_is_told(api: Api) -> None:
    told = reason(api, session(api, entry(env_refs={"KEY": "NOTES_KEY"}), environment={"profiles": []}))
    assert told == "`env_refs` names NOTES_KEY, which no profile of this session has"


@connected
@pytest.mark.behaviour("connect.command.reasons")
@pytest.mark.parametrize(
    ("command", "told"),
    [
        (entry("exit=3"), "the command ended with status 3"),
        (entry("die=initialize"), "the command ended with status 9"),
        (entry("die=tools/list", "garbage"), "the command ended with status 9"),
        (entry() | {"command": "no-such-command"}, "the command could not be started"),
        (entry() | {"command": str(PEER)}, "the command could not be started"),
        (entry() | {"command": "cat", "args": []}, "the server does not speak MCP"),
    ],
    ids=["exit", "initialize", "list", "unknown", "no program", "cat"],
)
def test_a_command_that_is_no_server_is_unreachable(
    api: Api, command: dict[str, Any], told: str, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(0):
        assert reason(api, session(api, command)) == told
    assert "secret on standard error" not in str(capfd.readouterr()) + caplog.text


@connected
@pytest.mark.behaviour("connect.ends")
@pytest.mark.parametrize("daemon", [[], ["daemon"]], ids=["", "daemon"])
@pytest.mark.parametrize("end", ["delete", "reclaim", "tools", "tools in a turn", "reset", "crash"])
def test_a_process_ends_with_what_it_is_for_and_all_it_started_with_it(
    api: Api, end: str, daemon: list[str], tmp_path: Path
) -> None:
    session_id = session(api, entry(f"child={tmp_path / 'pids'}", *daemon))
    calls(api, session_id, "read")
    pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    assert all(running(pid) for pid in pids)
    match end:
        case "delete":
            api.delete(f"/v1/sessions/{session_id}")
        case "reclaim":
            park(api, session_id)
            api.emulator.clock.advance(7200)
        case "tools":
            put(api, session_id)
        case "tools in a turn":
            assert put_in_a_turn(api, session_id) == "{}"
        case "reset":
            api.emulator.reset()
        case "crash":
            calls(api, session_id, "die")
    assert all(gone(pid) for pid in pids)


def park(api: Api, session_id: str) -> None:
    """Have a turn wait for an answer."""

    @api.emulator.agent
    async def agent(turn: Any) -> None:
        await turn.ask("Go on?")

    api.say(session_id, "ask")


def put_in_a_turn(api: Api, session_id: str) -> str:
    """What a call gives after the tools were replaced in its turn, which keeps those it began with."""
    results: list[Any] = []

    @api.emulator.agent
    async def agent(turn: Any) -> None:
        await turn.ask("Go on?")
        results.append(await turn.mcp("docs", "read"))

    api.say(session_id, "ask")
    put(api, session_id)
    api.emulator.answer("yes")
    assert api.emulator.settle()
    text: str = results[0].text
    return text
