"""Served MCP servers: what is said of one, and what it was sent. Control routes only.

Law: here are the values that a test wants to see, credentials included: they are in no repr.
"""

from __future__ import annotations

from typing import Any

from pydantic import Field

from emulator.wire.common import Milliseconds, Response
from emulator.wire.servers import McpServer


class ServedPlan(McpServer):
    """What a served server does from now on, on the wire. What is not sent stays as it was."""


class Serving(Response):
    """A server that is served, or was until now."""

    server: str
    url: str = Field(description="Where MCP clients reach it.")
    tools: list[str] = Field(description="The tools it offers.")


class ServedRequest(Response):
    """One request to a served server, as it came in."""

    at: Milliseconds
    method: str
    path: str = Field(description="As it was sent, without its query.")
    query: str = Field(repr=False)
    headers: dict[str, str] = Field(repr=False, description="By lower-case name, with their values.")
    body: Any = Field(repr=False, description="The JSON of the body, the text of one that is none, or null.")


class ServedCall(Response):
    """One call of a tool, whether or not the server has it."""

    at: Milliseconds
    tool: str
    arguments: Any = Field(repr=False)


class ServedRequests(Response):
    """The latest requests, oldest first."""

    data: list[ServedRequest]
    dropped: int = Field(description="How many older ones no longer fit.")


class ServedCalls(Response):
    """The latest calls, oldest first."""

    data: list[ServedCall]
    dropped: int = Field(description="How many older ones no longer fit.")


class Served(Serving):
    """A server that is served, and what it was sent."""

    requests: ServedRequests
    calls: ServedCalls
