"""Served MCP servers and a client that others wrote: that of the MCP SDK, in every way it can connect."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import httpx2
import pytest

if TYPE_CHECKING:
    from emulator import Emulator

KEY = "Bearer of-the-session"


@pytest.mark.parametrize("mode", ["legacy", "auto", "2026-07-28"])
def test_the_sdk_lists_and_calls_and_its_headers_arrive(gobare: Emulator, mode: str) -> None:
    from mcp.client import Client
    from mcp.client.streamable_http import streamable_http_client

    docs = gobare.mcp.serve("docs", {"search": {"read_only": True, "text": "3 pages found"}})

    async def use() -> None:
        async with httpx2.AsyncClient(headers={"authorization": KEY}) as http:
            streams = streamable_http_client(docs.url, http_client=http)
            async with asyncio.timeout(10), Client(streams, mode=mode) as client:
                (tool,) = (await client.list_tools()).tools
                assert tool.annotations is not None
                assert (tool.name, tool.annotations.read_only_hint) == ("search", True)
                result = await client.call_tool("search", {"q": "deploy"})
                assert (result.is_error, result.content[0].type) == (False, "text")

    asyncio.run(use())
    assert {request.headers["authorization"] for request in docs.requests} == {KEY}
    assert [(call.tool, call.arguments) for call in docs.calls] == [("search", {"q": "deploy"})]
