"""The port to an MCP server, whoever is behind it.

Law: the agent knows this port and nothing of what fills it: a server simulated by a scenario, a
real connection, or either of them behind a scripted outage.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, Protocol

DID_NOT_ANSWER: Final = "the server did not answer within 10s"
FETCH_FAILED: Final = "fetch failed"
CONNECT_SECONDS: Final = 10


class ServerUnreachable(Exception):
    """A server that could not be connected to. `reason` is what the client is told (contract §5)."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class ServerTool:
    """A tool as a server lists it."""

    name: str
    description: str = ""
    read_only: bool = False
    input_schema: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What calling a tool gave. `text` is the text of `content`, joined by newlines."""

    content: list[dict[str, Any]] = field(default_factory=list)
    structured: Any = None
    is_error: bool = False

    @property
    def text(self) -> str:
        return "\n".join(block["text"] for block in self.content if block.get("type") == "text")

    @classmethod
    def of(cls, text: str, *, is_error: bool = False) -> ToolResult:
        """A result of one text."""
        return cls([{"type": "text", "text": text}], is_error=is_error)


class ToolServer(Protocol):
    """An MCP server as the sandbox sees it."""

    async def connect(self) -> None:
        """Connect. Raises `ServerUnreachable`."""
        ...

    async def tools(self) -> list[ServerTool]:
        """What the server offers."""
        ...

    async def call(self, tool: str, arguments: dict[str, Any]) -> ToolResult:
        """Call a tool the server offers."""
        ...

    async def close(self) -> None:
        """Let go of the connection."""
        ...
