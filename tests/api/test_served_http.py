"""Served MCP servers on the wire: the protocol, its refusals, and what is scripted to go wrong, to any client."""

from __future__ import annotations

import http.client
import json
from typing import TYPE_CHECKING

import pytest

from tests.mcp_client import McpClient

if TYPE_CHECKING:
    from collections.abc import Iterator

    from emulator import Emulator
    from emulator.client.served import ServedServer

SEARCH = {"description": "Looks pages up.", "read_only": True, "text": "3 pages found"}
# No ids of JSON-RPC as MCP has it; JSON has no way to give the first one back.
AT_ODDS = (b"1e999", b"1.5", b"true", b"null", b"{}", b"[1]")
WRITE = {"input_schema": {"type": "object", "required": ["page"]}, "structured": {"written": 1}, "is_error": True}
BLOCKS = [{"type": "text", "text": "one"}, {"type": "image", "data": "aGk=", "mimeType": "image/png"}]


@pytest.fixture
def docs(gobare: Emulator) -> ServedServer:
    """A served server with tools."""
    return gobare.mcp.serve("docs", {"search": SEARCH, "write": WRITE, "look": {"content": BLOCKS}})


@pytest.fixture
def client(docs: ServedServer) -> Iterator[McpClient]:
    """A client of it that has a session."""
    with McpClient(docs.url) as client:
        assert client.initialize().status == 200
        yield client


# The protocol


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
def test_a_client_gets_the_revision_it_asks_for(docs: ServedServer, version: str) -> None:
    with McpClient(docs.url) as client:
        told = client.initialize(version).json["result"]
        assert (told["protocolVersion"], told["capabilities"]) == (version, {"tools": {"listChanged": True}})
        assert told["serverInfo"]["name"] == "docs"
        assert len(client.tools()) == 3


def test_a_client_of_an_unknown_revision_is_offered_the_newest_that_has_sessions(docs: ServedServer) -> None:
    with McpClient(docs.url) as client:
        assert client.initialize("1999-01-01").json["result"]["protocolVersion"] == "2025-11-25"


def test_tools_are_listed_as_they_are_described(client: McpClient) -> None:
    search, write, look = client.tools()
    anything = {"type": "object"}
    assert search == {
        "name": "search",
        "description": "Looks pages up.",
        "inputSchema": anything,
        "annotations": {"readOnlyHint": True},
    }
    assert write == {"name": "write", "inputSchema": WRITE["input_schema"], "annotations": {"readOnlyHint": False}}
    assert look["name"] == "look"


def test_tools_answer_as_they_are_described(client: McpClient) -> None:
    assert client.call("search") == {"content": [{"type": "text", "text": "3 pages found"}], "isError": False}
    written = {"content": [{"type": "text", "text": '{"written": 1}'}], "structuredContent": {"written": 1}}
    assert client.call("write", page=1) == written | {"isError": True}
    assert client.call("look")["content"] == BLOCKS
    assert client.call("gone")["code"] == -32602


def test_what_is_no_business_of_a_server_of_tools_is_an_error(client: McpClient) -> None:
    assert client.ask("ping").json["result"] == {}
    assert client.ask("prompts/list").json["error"]["code"] == -32601


def test_the_revision_without_sessions_is_spoken_as_well(docs: ServedServer) -> None:
    with McpClient(docs.url) as client:
        told = client.ask_statelessly("server/discover").json["result"]
        assert told["supportedVersions"][0] == "2026-07-28"
        assert (told["resultType"], told["ttlMs"], told["cacheScope"]) == ("complete", 0, "private")
        listed = client.ask_statelessly("tools/list").json["result"]
        assert ([tool["name"] for tool in listed["tools"]], listed["ttlMs"]) == (["search", "write", "look"], 0)
        called = client.ask_statelessly("tools/call", {"name": "search", "arguments": {}}, mcp_name="search")
        assert (called.json["result"]["resultType"], called.json["result"]["isError"]) == ("complete", False)
        assert client.ask_statelessly("ping").status == 404
        assert client.ask_statelessly("tools/list", mcp_method="tools/call").json["error"]["code"] == -32020
        assert client.ask("tools/list", mcp_protocol_version="2026-07-28").json["error"]["code"] == -32602


@pytest.mark.parametrize(
    ("status", "code", "verb", "body", "headers"),
    [
        (406, -32600, "POST", b"{}", {"accept": "application/json"}),
        (415, -32600, "POST", b"{}", {"content_type": "text/plain"}),
        (400, -32700, "POST", b"{", {}),
        (400, -32700, "POST", b"", {}),
        (400, -32600, "POST", b"[]", {}),
        (400, -32600, "POST", b'{"method": "ping", "id": 1}', {}),
        *((400, -32600, "POST", b'{"jsonrpc": "2.0", "method": "ping", "id": %s}' % at, {}) for at in AT_ODDS),
        (400, -32022, "POST", b'{"jsonrpc": "2.0", "method": "ping", "id": 1}', {"mcp_protocol_version": "2031-01-01"}),
        (400, -32600, "POST", b'{"jsonrpc": "2.0", "method": "ping", "id": 1}', {"mcp_session_id": None}),
        (404, -32600, "POST", b'{"jsonrpc": "2.0", "method": "ping", "id": 1}', {"mcp_session_id": "mcp_other"}),
        (406, -32600, "GET", None, {"accept": "application/json"}),
        (400, -32600, "DELETE", None, {"mcp_session_id": None}),
        (405, -32600, "PUT", b"{}", {}),
    ],
)
def test_a_client_that_breaks_the_rules_of_the_transport_is_refused(
    client: McpClient, status: int, code: int, verb: str, body: bytes | None, headers: dict[str, str | None]
) -> None:
    answer = client.send(verb, body, **headers)
    assert (answer.status, answer.json["error"]["code"], answer.json["id"]) in (
        (status, code, None),
        (status, code, 1),
    )
    # The connection and the session are as they were.
    assert client.call("search")["isError"] is False


def test_a_huge_body_is_refused(client: McpClient) -> None:
    answer = client.send("POST", b" " * (4 * 1024 * 1024 + 1))
    assert (answer.status, answer.json["error"]["code"]) == (413, -32600)


def test_messages_that_need_no_answer_get_none(client: McpClient) -> None:
    for message in ({"method": "notifications/cancelled"}, {"id": 7, "result": {}}):
        answer = client.send("POST", json.dumps({"jsonrpc": "2.0", **message}).encode())
        assert (answer.status, answer.raw) == (202, b"")


def test_a_session_that_was_ended_is_open_no_more(client: McpClient) -> None:
    assert client.send("DELETE").status == 200
    assert client.ask("tools/list").status == 404


def test_only_what_is_served_is_there(docs: ServedServer) -> None:
    for path in ("", "/", "/other", "/docs/more", "/%ff"):
        with McpClient(docs.url.removesuffix("/docs") + path) as client:
            assert client.initialize().status == 404


def test_pages_and_names_that_are_not_let_in_are_not_let_in_here(client: McpClient) -> None:
    assert client.ask("ping", host="evil.example").status == 403
    assert client.ask("ping", origin="http://evil.example").status == 403


# Tools that come and go


def test_clients_that_listen_are_told_that_the_tools_have_changed(docs: ServedServer, client: McpClient) -> None:
    with McpClient(
        docs.url, **{name: value for name, value in client.headers.items() if name.startswith("mcp")}
    ) as other:
        stream = other.open()
        assert (stream.status, stream.headers["content-type"]) == (200, "text/event-stream")
        assert stream.readline() == b": listening\n"
        docs.offer({"read": {"text": "a page"}})
        assert [stream.readline() for _ in range(3)][1] == b"event: message\n"
        stream.close()
    assert [tool["name"] for tool in client.tools()] == ["read"]
    assert client.call("search")["code"] == -32602


def test_a_stream_ends_with_its_server(docs: ServedServer, client: McpClient) -> None:
    stream = client.open()
    docs.stop()
    assert stream.read() == b": listening\n\n"


def test_scripted_tools_appear_with_a_connect_and_vanish_with_a_call(docs: ServedServer, client: McpClient) -> None:
    docs.script([{"state": "up", "tools": {"read": {"text": "a page"}}}], [{"fault": "ok", "tools": {}}])
    assert len(client.tools()) == 3
    client.initialize()
    assert [tool["name"] for tool in client.tools()] == ["read"]
    assert client.call("read")["content"][0]["text"] == "a page"
    assert client.tools() == []


# What goes wrong on the wire


def test_a_connect_that_is_refused_is_reset(docs: ServedServer) -> None:
    docs.script(["refuse", "down", "up"])
    for _ in range(2):
        with McpClient(docs.url) as client, pytest.raises(ConnectionResetError):
            client.initialize()
    with McpClient(docs.url) as client:
        assert client.initialize().status == 200
    assert [request.body["method"] for request in docs.requests] == ["initialize"] * 3 + ["notifications/initialized"]


@pytest.mark.parametrize(
    ("fault", "status", "content_type"),
    [("unauthorized", 401, "application/json"), ("wrong_protocol", 200, "text/html; charset=utf-8")],
)
def test_an_answer_that_is_none_comes_to_connects_and_calls(
    docs: ServedServer, client: McpClient, fault: str, status: int, content_type: str
) -> None:
    docs.script([fault], [fault])
    for answer in (client.ask("initialize"), client.ask("tools/call", {"name": "search"})):
        assert (answer.status, answer.headers["content-type"]) == (status, content_type)
    assert client.initialize().status == 200
    assert client.call("search")["isError"] is False


def test_a_connect_that_begins_with_two_messages_is_one(docs: ServedServer) -> None:
    docs.script(["unauthorized"])
    with McpClient(docs.url, user_agent="new") as client, McpClient(docs.url, user_agent="old") as other:
        assert client.ask_statelessly("server/discover").status == 401
        assert other.initialize().status == 200
        assert client.initialize().status == 401
        assert client.initialize().status == 200


def test_a_message_of_another_revision_is_no_connect(docs: ServedServer, client: McpClient) -> None:
    docs.script(["unauthorized"])
    assert client.ask("server/discover").json["error"]["code"] == -32601
    assert client.ask_statelessly("initialize").status == 404
    assert client.initialize().status == 401


def test_a_client_that_was_reset_begins_anew(docs: ServedServer) -> None:
    docs.script(["refuse", "up", "unauthorized"])
    with McpClient(docs.url) as client, pytest.raises(ConnectionResetError):
        client.ask_statelessly("server/discover")
    with McpClient(docs.url) as client:
        assert [client.initialize().status for _ in range(2)] == [200, 401]


def test_a_call_that_is_dropped_is_cut_off_in_the_middle_of_its_answer(docs: ServedServer, client: McpClient) -> None:
    docs.script(calls=["drop"])
    with pytest.raises(http.client.IncompleteRead) as cut:
        client.ask("tools/call", {"name": "search"})
    assert cut.value.partial == b": working\n\n"
    client.close()
    assert client.call("search")["isError"] is False


def test_a_result_can_be_an_error_or_none_at_all(docs: ServedServer, client: McpClient) -> None:
    docs.script(calls=[{"fault": "error", "tool": "search", "text": "no such page"}, "malformed"])
    assert client.call("write")["content"] == "no blocks"
    assert client.call("search") == {"content": [{"type": "text", "text": "no such page"}], "isError": True}
    assert client.call("search")["isError"] is False


def test_a_slow_server_takes_real_time(docs: ServedServer, client: McpClient) -> None:
    docs.script([{"fault": "slow", "seconds": 0.05}], [{"fault": "slow", "seconds": 0.05}])
    assert client.initialize().status == 200
    assert client.call("search")["isError"] is False


@pytest.mark.parametrize("fault", ["time_out", "hang"])
def test_a_client_waits_for_an_answer_that_never_comes_until_the_server_is_gone(
    docs: ServedServer, client: McpClient, fault: str
) -> None:
    docs.script(calls=[fault])
    assert client.hears_nothing(0.05)
    docs.stop()
    assert client.was_reset()
