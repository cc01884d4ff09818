"""The handle, in its two spellings and over its two transports."""

from __future__ import annotations

import http.server
import inspect
import json
import pickle
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import anyio
import pytest

from emulator import AsyncEmulator, AsyncEmulatorClient, ControlError, Emulator, EmulatorClient
from emulator.client import AsyncHandle, Handle, Transcript
from tests.support import Api

if TYPE_CHECKING:
    from collections.abc import Iterator

FIXTURES = Path(__file__).parent.parent / "fixtures"
LOOKUP = {"type": "function", "name": "lookup"}
SCENARIO = {"agent": [{"otherwise": [{"say": "hello"}]}]}


@pytest.fixture
def client(gobare: Emulator) -> Iterator[EmulatorClient]:
    """The test's emulator over HTTP."""
    with EmulatorClient(gobare.url) as client:
        yield client


@pytest.fixture(params=["in-process", "http"])
def handle(request: pytest.FixtureRequest, gobare: Emulator) -> Iterator[Handle]:
    """The test's emulator by either transport."""
    if request.param == "in-process":
        yield gobare
        return
    with EmulatorClient(gobare.url) as client:
        yield client


# Both transports


def test_a_conversation_is_scripted_and_read_back(handle: Handle, api: Api) -> None:
    steps: list[dict[str, Any]] = [
        {"think": "Hm."},
        {"call": {"function": "lookup", "arguments": {"id": "A-1"}, "as": "found"}},
        {"approve": {"tool": "bash", "args": {"command": "./deploy"}, "as": "ok"}},
        {"ask": {"question": "Which region?", "options": ["eu", "us"], "as": "region"}},
        {"use": {"tool": "bash", "args": {"command": "./deploy"}, "summary": "done\nwell", "exit_code": 0}},
        {"write": {"path": "/workspace/outputs/a.md", "content": "x"}},
        {"say": "{{ found.output }}, {{ ok }}, {{ region }}"},
    ]
    assert handle.load({"agent": [{"otherwise": steps}]})["agent"][0]["otherwise"] == steps
    handle.mcp.down("docs", reason="no route")
    docs = {"type": "mcp", "name": "docs", "url": "http://docs.test/mcp"}
    session_id = api.session({"input": "deploy A-1", "agent": {"tools": [LOOKUP, docs]}})
    call = api.actions(session_id)[0]
    api.answer(session_id, call, "42")
    approval = api.actions(session_id)[0]["call_id"]
    assert handle.approve() == approval
    question = api.actions(session_id)[0]["call_id"]
    assert handle.answer("eu", question) == question
    transcript = handle.transcript(session_id)
    assert transcript.session_id == session_id
    assert transcript.items == api.items(session_id)
    assert transcript.last_message == "42, true, eu"
    lines = str(transcript).splitlines()
    assert [line.strip() for line in lines] == [
        "+0.000 s  user      deploy A-1",
        "+0.002 s  sandbox   docs is unavailable: no route",
        f'+0.004 s  agent     calls lookup(id="A-1")  [{call["call_id"]}]',
        f"+0.005 s  client    lookup succeeded  [{call['call_id']}]",
        f'+0.006 s  agent     asks leave for bash(command="./deploy")  [{approval}]',
        "+0.007 s  verdict   approved",
        "+0.008 s  agent     asks: Which region? [eu, us]",
        "+0.009 s  person    eu",
        '+0.010 s  agent     uses bash(command="./deploy")',
        "+0.011 s  sandbox   bash done (exit 0): done",
        "well",
        "+0.012 s  agent     writes /workspace/outputs/a.md",
        "+0.013 s  agent     42, true, eu",
        "+0.014 s  turn      ends",
        "+0.015 s  sandbox   publishes /workspace/outputs/a.md",
    ]
    assert repr(transcript) == str(transcript)


def test_what_was_not_answered_or_failed_reads_in_the_timeline(handle: Handle, api: Api) -> None:
    handle.load(
        {
            "agent": [
                {
                    "otherwise": [
                        {"call": {"function": "lookup", "arguments": {"long": "x" * 200}}},
                        {"approve": {"tool": "bash"}},
                        {"delete": "/workspace/outputs/none.md"},
                    ]
                }
            ]
        }
    )
    session_id = api.session({"agent": {"tools": [{**LOOKUP, "timeout_seconds": 1}]}})
    assert handle.transcript().last_message is None
    assert str(handle.transcript()) == f"(nothing in session {session_id})"
    api.send(session_id, {"type": "input.context", "content": "it is Monday"})
    api.say(session_id, "go")
    handle.clock.advance(1)
    api.send(session_id, {"type": "input.cancel"})
    text = str(handle.transcript())
    assert "context   it is Monday" in text
    assert "…)" in text
    assert "lookup did not succeed" in text
    assert "verdict   not approved: " in text


def test_without_a_session_the_transcript_is_empty(handle: Handle) -> None:
    transcript = handle.transcript()
    assert (transcript.session_id, transcript.items, transcript.last_message) == (None, [], None)
    assert str(transcript) == "(no session)"


def test_an_item_of_a_kind_to_come_still_prints() -> None:
    event = {"type": "agent.novelty", "created_at": 5, "payload": {"text": "new"}}
    assert '+0.000 s  agent.novelty  {"text": "new"}' in str(Transcript("s", [], [event]))


def test_the_clock_and_the_settings(handle: Handle) -> None:
    now = handle.clock.now()
    assert handle.clock.advance(1.5) == now + 1500
    assert handle.settings.get()["queue_limit"] == 5
    assert handle.settings.update(queue_limit=1, disabled_tools=["browse"])["queue_limit"] == 1
    assert handle.settings.get()["disabled_tools"] == ["browse"]
    handle.reset()
    assert handle.settings.get()["queue_limit"] == 5
    assert handle.clock.now() == now


def test_a_tokens_text_is_given_and_does_not_print(handle: Handle, api: Api) -> None:
    minted = handle.tokens.mint(scopes=("sessions:read",), organization="acme", expires_in=60)
    assert minted.expires_at == handle.clock.now() + 60_000
    assert (minted.scopes, minted.organization) == (["sessions:read"], "acme")
    assert minted.token not in repr(minted)
    assert minted.token not in str(minted)
    assert api.get("/v1/sessions", token=minted.token).status == 200
    handle.tokens.revoke(minted.id)
    assert api.get("/v1/sessions", token=minted.token).status == 401


def test_servers_go_down_and_come_up(handle: Handle, api: Api) -> None:
    docs = {"type": "mcp", "name": "docs", "url": "http://docs.test/mcp", "required": True}
    session_id = api.session({"agent": {"tools": [docs]}})
    handle.mcp.down("docs", times=2)
    assert api.say(session_id, "hi").status == 400
    handle.mcp.up("docs")
    assert api.say(session_id, "hi").status == 202
    handle.mcp.script("docs", ["down", {"state": "down", "reason": "slow"}, "up"])
    session_id = api.session({"agent": {"tools": [docs]}})
    assert "docs: fetch failed" in api.say(session_id, "hi").message
    assert "docs: slow" in api.say(session_id, "hi").message
    assert api.say(session_id, "hi").status == 202
    handle.mcp.down("docs", fault="slow", seconds=12, times=1)
    session_id = api.session({"agent": {"tools": [docs]}})
    assert "docs: the server did not answer within 10s" in api.say(session_id, "hi").message


def test_calls_of_a_server_are_scripted(handle: Handle, api: Api) -> None:
    steps: list[dict[str, Any]] = [
        {"mcp": {"server": "docs", "tool": "search", "as": name}} for name in ("first", "second", "third")
    ]
    steps += [{"say": "{{ first.text }} | {{ second.text }} | {{ third.text }}"}]
    handle.load({"mcp": {"docs": {"tools": {"search": {"text": "found"}}}}, "agent": [{"otherwise": steps}]})
    handle.mcp.calls("docs", ("ok", {"fault": "error", "text": "no"}, "drop"))
    docs = {"type": "mcp", "name": "docs", "url": "http://docs.test/mcp"}
    api.session({"input": "go", "agent": {"tools": [docs]}})
    assert handle.transcript().last_message == "found | no | docs: the connection was lost during the call"


def test_the_journal_reads_as_objects(handle: Handle, api: Api) -> None:
    assert handle.requests == []
    api.session({"title": "one"})
    api.get("/v1/sessions/none")
    first, second = handle.requests
    assert (first.method, first.path, first.status, first.body) == ("POST", "/v1/sessions", 201, {"title": "one"})
    assert (second.status, second.code, second.query, second.body) == (404, "not_found", {}, None)
    assert second.token_id == first.token_id
    assert second.duration_ms is not None
    assert second.at == handle.clock.now()
    assert handle.requests.dropped == 0
    handle.settings.update(journal_limit=1)
    api.get("/v1/sessions")
    assert handle.requests.dropped == 2


def test_the_rest_of_the_names(handle: Handle, api: Api) -> None:
    handle.load({"agent": [{"otherwise": [{"call": {"function": "lookup"}}]}]})
    session_id = api.session({"input": "go", "agent": {"tools": [LOOKUP]}})
    assert handle.settle(timeout=1) is True
    assert handle.effective_tools(session_id)["functions"] == ["lookup"]
    assert handle.lose_calls(session_id) == [api.actions(session_id)[0]["call_id"]]
    assert [event["type"] for event in handle.events(session_id)] == [event["type"] for event in handle.events()]
    assert handle.report()["unanswered_actions"] != []
    assert handle.token == "gbr_pat_emulator"
    assert api.emulator.url == handle.url


def test_a_refusal_is_raised_as_one_kind_of_error(handle: Handle) -> None:
    with pytest.raises(ControlError) as caught:
        handle.approve("call_x/?#")
    error = caught.value
    assert (error.code, error.status) == ("not_found", 404)
    assert error.message == "No call 'call_x/?#'. Nothing is waited for."
    assert str(error) == f"{error.message} (not_found)"
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    with pytest.raises(ControlError, match="Did you mean `pace`"):
        handle.settings.update(paec="instant")
    with pytest.raises(ControlError, match="sessions:read"):
        handle.tokens.mint(scopes=["all"])


# Scenarios of files


@pytest.mark.parametrize("name", sorted(path.name for path in FIXTURES.iterdir() if path.suffix in (".yaml", ".json")))
def test_a_file_is_read_as_the_command_line_reads_it(name: str, handle: Handle) -> None:
    from emulator.runtime.scenario_file import load

    assert handle.load(FIXTURES / name) == load(FIXTURES / name).document


def test_plain_words_of_a_yaml_file_stay_text(handle: Handle, tmp_path: Path) -> None:
    path = tmp_path / "words.yaml"
    path.write_text(
        "agent:\n- otherwise:\n  - say: yes\n  - say: 2026-01-01\n  - ask: {question: on, allow_freeform: true}\n"
    )
    assert handle.load(str(path))["agent"][0]["otherwise"] == [
        {"say": "yes"},
        {"say": "2026-01-01"},
        {"ask": {"question": "on", "allow_freeform": True}},
    ]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("bad.yaml", "agent: [", "not YAML"),
        ("bad.json", "{", "Expecting property name"),
        ("bad.json", '{"agent": [{"otherwise": [{"wait": NaN}]}]}', "JSON"),
        ("wrong.yaml", "agents: []", "Did you mean `agent`"),
        ("list.json", "[]", "object"),
    ],
)
def test_a_bad_file_is_refused_by_its_name(name: str, text: str, message: str, handle: Handle, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(ControlError, match=message) as caught:
        handle.load(path)
    assert caught.value.message.startswith(f"{path}: ")


def test_a_file_that_is_not_there(handle: Handle, tmp_path: Path) -> None:
    with pytest.raises(ControlError, match=r"none\.yaml: .* no such file"):
        handle.load(tmp_path / "none.yaml")


def test_what_json_does_not_have_is_not_sent(handle: Handle) -> None:
    with pytest.raises(ControlError, match="which JSON does not have"):
        handle.load({"agent": [object()]})
    with pytest.raises(ValueError, match="JSON"):
        handle.settings.update(ping_seconds=float("inf"))


# Over HTTP


def test_a_client_in_another_process_needs_no_agent_of_its_own(client: EmulatorClient) -> None:
    with pytest.raises(TypeError, match="inside the emulator's process"):
        client.agent(lambda turn: None)
    with pytest.raises(TypeError, match="inside the emulator's process"):
        client.agent(when={"turn": 1})


def test_a_client_shows_its_address_and_no_token(gobare: Emulator) -> None:
    with EmulatorClient(f"{gobare.url}/", token="gbr_pat_mine", control_token="s3cret") as client:
        assert repr(client) == f"<EmulatorClient {gobare.url}>"
        assert client.token == "gbr_pat_mine"
        assert client.clock.now() == gobare.clock.now()
        assert "s3cret" not in repr(vars(client)) + repr(vars(client._http))


def test_a_control_token_is_sent() -> None:
    with Emulator(control_token="s3cret") as gobare:
        with EmulatorClient(gobare.url) as client, pytest.raises(ControlError, match="control token") as caught:
            client.report()
        assert caught.value.status == 401
        with EmulatorClient(gobare.url, control_token="s3cret") as client:
            assert client.report() == gobare.report()


def test_nobody_at_the_address_is_a_connection_error(gobare: Emulator) -> None:
    gobare.stop()
    with (
        EmulatorClient(gobare.url) as client,
        pytest.raises(ConnectionError, match=f"No emulator answers at {gobare.url}"),
    ):
        client.report()


class _Other(http.server.BaseHTTPRequestHandler):
    answers: ClassVar[dict[str, tuple[int, bytes]]] = {
        "/_emulator/report": (200, b"<html>"),
        "/_emulator/clock": (404, b'{"detail": "Not Found"}'),
        "/_emulator/requests": (
            200,
            json.dumps({"data": [{"method": "GET", "path": "/", "novelty": 1}], "dropped": 0, "more": 1}).encode(),
        ),
    }

    def do_GET(self) -> None:
        status, body = self.answers[self.path]
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None: ...


@pytest.fixture
def other() -> Iterator[str]:
    """The address of a server that is no emulator of this version."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Other) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_somebody_else_at_the_address_is_a_connection_error(other: str) -> None:
    with EmulatorClient(other) as client:
        for ask in (client.report, client.clock.now):
            with pytest.raises(ConnectionError, match="is no Gobare emulator"):
                ask()


def test_an_emulator_that_tells_more_is_understood(other: str) -> None:
    with EmulatorClient(other) as client:
        (entry,) = client.requests
    assert (entry.method, entry.path) == ("GET", "/")


def test_no_certificates_are_read_and_no_proxy_asked_for_a_plain_address(
    gobare: Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    import httpcore2

    def slow(**_: Any) -> Any:
        raise AssertionError("a TLS context takes 40 ms")

    monkeypatch.setattr(httpcore2, "default_ssl_context", slow)
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    with EmulatorClient(gobare.url) as client:
        assert client.clock.now() == gobare.clock.now()


# The awaitable spelling


def test_both_spellings_have_the_same_names() -> None:
    with Emulator() as gobare:
        awaitable = gobare.aio
        for plain, awaited in (
            (Handle, AsyncHandle),
            (type(gobare.mcp), type(awaitable.mcp)),
            (type(gobare.clock), type(awaitable.clock)),
            (type(gobare.tokens), type(awaitable.tokens)),
            (type(gobare.settings), type(awaitable.settings)),
        ):
            names = {name for name in dir(plain) if not name.startswith("_")}
            assert names == {name for name in dir(awaited) if not name.startswith("_")}
            for name in names:
                there, here = getattr(awaited, name), getattr(plain, name)
                assert inspect.iscoroutinefunction(there), name
                if not isinstance(here, property):
                    assert inspect.signature(here).parameters.keys() == inspect.signature(there).parameters.keys()
                    for parameter in inspect.signature(here).parameters.values():
                        assert parameter == inspect.signature(there).parameters[parameter.name]


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@pytest.mark.parametrize("over", ["in-process", "http"])
def test_every_name_is_awaited(backend: str, over: str) -> None:
    async def main() -> None:
        async with AsyncEmulator() as gobare:
            if over == "in-process":
                await every_name(gobare)
                return
            async with AsyncEmulatorClient(gobare.url) as client:
                assert repr(client) == f"<AsyncEmulatorClient {gobare.url}>"
                with pytest.raises(TypeError, match="inside the emulator's process"):
                    client.agent()
                await every_name(client)

    async def every_name(handle: AsyncHandle) -> None:
        await handle.load(SCENARIO)
        await handle.mcp.down("docs")
        await handle.mcp.up("docs")
        await handle.mcp.script("docs", ["down"])
        await handle.mcp.calls("docs", ["drop"])
        for refused in (
            handle.approve(),
            handle.answer("x"),
            handle.lose_calls("none"),
            handle.effective_tools("none"),
            handle.tokens.revoke("none"),
        ):
            with pytest.raises(ControlError):
                await refused
        assert await handle.clock.advance(1) == await handle.clock.now()
        assert (await handle.tokens.mint(organization="acme")).organization == "acme"
        assert await handle.settings.update(queue_limit=1) == await handle.settings.get()
        assert await handle.requests() == []
        assert await handle.events() == []
        assert (await handle.transcript()).items == []
        assert await handle.settle() is True
        assert (await handle.report())["unreached_steps"] != []
        await handle.reset()

    anyio.run(main, backend=backend)


def test_an_awaited_client_meets_nobody() -> None:
    with Emulator() as gobare:
        url = gobare.url

    async def main() -> None:
        async with AsyncEmulatorClient(url, control_token="s3cret") as client:
            with pytest.raises(ConnectionError, match="No emulator answers"):
                await client.report()

    anyio.run(main)
