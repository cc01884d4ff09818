"""The port to an MCP server, whoever is behind it.

Law: the agent knows this port and nothing of what fills it: a server simulated by a scenario, a
real connection, or either of them behind a scripted outage.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol


class ServerUnreachable(Exception):
    """A server that could not be connected to. `reason` is what the client is told (contract §5)."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class NoSuchTool(Exception):
    """A call of a tool the server has never offered since it was connected to. `offered` are those it does."""

    def __init__(self, offered: list[str]) -> None:
        super().__init__(f"it has: {', '.join(offered) or 'none'}")


@dataclass(frozen=True, slots=True)
class ServerTool:
    """A tool as a server lists it."""

    name: str
    description: str = ""
    read_only: bool = False
    input_schema: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What calling a tool gave. `text` is the text of `content`, joined by newlines.

    `seconds` is what the call takes on the emulator's clock, beside the real time it took; `None` is for ever.
    """

    content: list[dict[str, Any]] = field(default_factory=list)
    structured: Any = None
    is_error: bool = False
    seconds: float | None = 0.0

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
        """Call a tool. What goes wrong with the server is an error result. May raise `NoSuchTool`."""
        ...

    async def close(self) -> None:
        """Let go of the connection."""
        ...
