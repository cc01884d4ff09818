"""Serving MCP servers: the handle in all its spellings, what is kept of requests, and where none of it shows."""

from __future__ import annotations

import asyncio
import gc
from typing import TYPE_CHECKING, Any

import pytest

from emulator import AsyncEmulatorClient, ControlError, Emulator, EmulatorClient
from tests.mcp_client import McpClient

if TYPE_CHECKING:
    from tests.support import Api

TOOLS = {"search": {"read_only": True, "text": "3 pages found"}}
KEY = "Bearer only-the-test-may-see-this"


def test_a_test_sees_what_arrived_and_that_nothing_else_did(gobare: Emulator) -> None:
    docs = gobare.mcp.serve("docs", TOOLS)
    with McpClient(docs.url, authorization=KEY, X_Team="blüe".encode().decode("latin-1")) as client:
        client.initialize()
        client.call("search", q="deploy")
    first, *_, last = docs.requests
    assert (first.method, first.path, first.query, first.at) == ("POST", "/_mcp/docs", "", gobare.clock.now())
    assert (first.headers["authorization"], first.headers["x-team"]) == (KEY, "blüe")
    assert {name for name in first.headers if name.startswith("x-")} == {"x-team"}
    assert last.body["params"] == {"name": "search", "arguments": {"q": "deploy"}}
    assert [(call.tool, call.arguments) for call in docs.calls] == [("search", {"q": "deploy"})]


def test_what_is_no_json_and_what_is_in_a_query_is_kept_too(gobare: Emulator, api: Api) -> None:
    docs = gobare.mcp.serve("docs")
    api.request("POST", "/_mcp/docs?key=1", raw=b"hello")
    (request,) = docs.requests
    assert (request.query, request.body) == ("key=1", "hello")


def test_what_a_scenario_describes_is_served_as_it_is_until_other_tools_are_offered(gobare: Emulator, api: Api) -> None:
    gobare.load({"mcp": {"docs": {"tools": TOOLS}}})
    docs = gobare.mcp.serve("docs")
    with McpClient(docs.url) as client:
        client.initialize()
        assert [tool["name"] for tool in client.tools()] == list(TOOLS)
        gobare.mcp.serve("docs", {"write": {}})
        assert [tool["name"] for tool in client.tools()] == ["write"]
        gobare.mcp.serve("docs")
        assert [tool["name"] for tool in client.tools()] == ["write"]
    assert api.request("PUT", "/_emulator/mcp/blog/served").json["tools"] == []


def test_other_processes_and_awaited_handles_serve_as_well(gobare: Emulator) -> None:
    with EmulatorClient(gobare.url) as client:
        docs = client.mcp.serve("docs", TOOLS)
        with McpClient(docs.url, authorization=KEY) as mcp:
            mcp.initialize()
        assert docs.requests[0].headers["authorization"] == KEY

    async def awaited() -> None:
        async with AsyncEmulatorClient(gobare.url) as client:
            docs = await client.mcp.serve("docs", {})
            await docs.offer(TOOLS)
            await docs.script(["refuse"], ["error"])
            assert (await docs.requests())[0].headers["authorization"] == KEY
            assert await docs.calls() == []
            await docs.stop()
            assert repr(docs) == f"<AsyncServedServer docs {docs.url}>"

    asyncio.run(awaited())


def test_credentials_show_nowhere_but_where_they_were_asked_for(
    gobare: Emulator, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(0)
    docs = gobare.mcp.serve("docs", TOOLS)
    with McpClient(docs.url + "?key=only-the-test-may-see-this", authorization=KEY) as client:
        client.initialize()
        client.call("search", key="only-the-test-may-see-this")
        client.send("POST", b"only-the-test-may-see-this")
    session = gobare.settings.get()
    told: list[Any] = [docs.requests, docs.calls, docs, gobare.requests, gobare.events(), gobare.report(), session]
    told += [gobare.timeline(), caplog.text, capfd.readouterr()]
    assert "only-the-test-may-see-this" not in f"{told!r}{gobare.timeline()}"
    assert docs.requests[0].headers["authorization"] == KEY


def test_served_servers_are_no_part_of_the_journal(gobare: Emulator) -> None:
    docs = gobare.mcp.serve("docs", TOOLS)
    with McpClient(docs.url) as client:
        client.initialize()
    assert gobare.requests == []


def test_what_was_scripted_and_never_came_is_reported(gobare: Emulator) -> None:
    docs = gobare.mcp.serve("docs", TOOLS)
    docs.script(["up", "refuse", "hang"], ["drop"])
    with McpClient(docs.url) as client:
        client.initialize()
    assert gobare.report()["unused_outages"] == [{"server": "docs", "connects": 2, "calls": 1}]


def test_what_is_kept_is_bounded(gobare: Emulator) -> None:
    docs = gobare.mcp.serve("docs", TOOLS)
    with McpClient(docs.url) as client:
        client.initialize()
        for _ in range(3):
            client.send("POST", b'"' + b"x" * 3_000_000 + b'"')
    # Two of them are as many bytes as are kept.
    assert [len(str(request.body)) for request in docs.requests] == [3_000_000] * 2
    assert docs.requests.dropped == 3


def test_serving_again_puts_other_tools_in_place(gobare: Emulator) -> None:
    docs = gobare.mcp.serve("docs", TOOLS)
    with McpClient(docs.url) as client:
        client.initialize()
        again = gobare.mcp.serve("docs", {"write": {}})
        assert (again.url, [tool["name"] for tool in client.tools()]) == (docs.url, ["write"])
        assert len(again.requests) == 3


def test_a_name_may_be_anything_a_declared_server_may_be_called(gobare: Emulator) -> None:
    docs = gobare.mcp.serve("my docs/é", TOOLS)
    assert docs.url == f"{gobare.url}/_mcp/my%20docs%2F%C3%A9"
    with McpClient(docs.url) as client:
        assert client.initialize().json["result"]["serverInfo"]["name"] == "my docs/é"
    with pytest.raises(ControlError, match="at most 64 characters; 65"):
        gobare.mcp.serve("x" * 65)
    with pytest.raises(ControlError, match="must not be empty"):
        gobare.mcp.serve("")


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ({"tool": {}}, "tools"),
        ({"tools": {"search": {"readonly": True}}}, "tools.search.readonly"),
        ({"tools": {"search": {"text": "a", "content": []}}}, "has both `text` and `content`"),
        ({"tools": {"search": {"input_schema": {"type": "array"}}}}, "`tools.search.input_schema.type` must be object"),
        (
            {"tools": {"search": {"content": [{"type": "text", "text": "a"}, {}]}}},
            "`tools.search.content[1].type` must",
        ),
        (
            {"tools": {"search": {"content": [{"type": ["text"]}]}}},
            "one of text, image, audio, resource_link, resource",
        ),
        ({"tools": {"search": {"content": [{"type": "text", "text": 5}]}}}, "`tools.search.content[0].text` must be a"),
        (
            {"tools": {"search": {"content": [{"type": "image", "data": "aGk="}]}}},
            "content[0].mimeType` must be a text",
        ),
        ({"tools": {"search": {"content": [{"type": "resource"}]}}}, "content[0].resource` must be an object"),
        (
            {"tools": {"search": {"content": [{"type": "resource", "resource": {}}]}}},
            "content[0].resource.uri` must be",
        ),
        (
            {"tools": {"search": {"content": [{"type": "resource", "resource": {"uri": "docs:1"}}]}}},
            "content[0].resource` must have `text` or `blob`",
        ),
        ({"script": ["refused"]}, "script[0]"),
        ({"state": "down", "reason": "closed"}, "`reason` is not for a server that is served"),
        ({"script": ["up", {"state": "down", "reason": "closed"}]}, "`script[1].reason` is not for"),
        ({"calls": [{"fault": "slow"}]}, "`calls[0].seconds` is missing"),
    ],
)
def test_what_cannot_be_served_is_refused_and_changes_nothing(
    gobare: Emulator, api: Api, body: dict[str, Any], problem: str
) -> None:
    docs = gobare.mcp.serve("docs", TOOLS)
    answer = api.request("PUT", "/_emulator/mcp/docs/served", body)
    assert (answer.status, answer.code) == (400, "invalid_request")
    assert problem in answer.message
    with McpClient(docs.url) as client:
        client.initialize()
        assert [tool["name"] for tool in client.tools()] == ["search"]


def test_tools_that_are_a_list_are_refused_as_what_they_are(gobare: Emulator) -> None:
    listed: Any = ["search"]
    docs = gobare.mcp.serve("docs", TOOLS)
    for serve in (docs.offer, lambda tools: gobare.mcp.serve("docs", tools)):
        with pytest.raises(ControlError, match="`tools` must be an object; a list was sent"):
            serve(listed)


def test_one_that_is_not_served_has_nothing_to_read_or_stop(gobare: Emulator) -> None:
    docs = gobare.mcp.serve("docs", TOOLS)
    docs.stop()
    for gone in (docs.stop, lambda: docs.requests, lambda: docs.calls):
        with pytest.raises(ControlError, match="No MCP server 'docs' is served"):
            gone()
    with McpClient(docs.url) as client:
        assert client.initialize().status == 404


def test_a_reset_ends_them(gobare: Emulator) -> None:
    docs = gobare.mcp.serve("docs", TOOLS)
    with McpClient(docs.url) as client:
        client.initialize()
        stream = client.open()
        gobare.reset()
        assert stream.read() == b": listening\n\n"
        assert client.ask("tools/list").status == 404
    with pytest.raises(ControlError, match="is served"):
        _ = docs.requests


def test_two_emulators_serve_their_own() -> None:
    with Emulator() as one, Emulator() as two:
        docs, other = one.mcp.serve("docs", TOOLS), two.mcp.serve("docs", {"write": {}})
        with McpClient(docs.url) as client:
            client.initialize()
            assert [tool["name"] for tool in client.tools()] == ["search"]
        assert other.requests == []


def test_stopping_leaves_no_task_whoever_listens_or_waits() -> None:
    with Emulator() as emulator:
        docs = emulator.mcp.serve("docs", TOOLS)
        loop = emulator.loop
        with McpClient(docs.url) as client:
            client.initialize()
            stream = client.open()
            with McpClient(docs.url, **client.headers) as other:
                docs.script(calls=["hang"])
                assert other.hears_nothing(0.05)
                emulator.stop()
                assert other.was_reset()
            assert stream.read() == b": listening\n\n"
    left = loop.run(_tasks())
    assert left == []
    gc.collect()


async def _tasks() -> list[str]:
    return [repr(task) for task in asyncio.all_tasks() if task is not asyncio.current_task()]


def test_the_address_is_the_one_that_clients_are_told() -> None:
    with Emulator(public_url="http://emulator.test:80/base/") as emulator:
        docs = emulator.mcp.serve("docs", TOOLS)
        assert docs.url == "http://emulator.test:80/base/_mcp/docs"
        served = emulator.socket.deployment.served
        for url in (
            docs.url,
            f"{emulator.url}/_mcp/docs",
            f"{emulator.url.replace('127.0.0.1', 'localhost')}/_mcp/docs",
        ):
            assert served.local(url) == f"{emulator.url}/_mcp/docs"
        elsewhere = docs.url.replace("emulator.test", "example.com")
        for url in (
            elsewhere,
            "http://emulator.test/_mcp/docs",
            f"{emulator.url}/v1/sessions",
            "https://127.0.0.1/_mcp/docs",
        ):
            assert served.local(url) is None
