"""A simulated MCP server: the tools and canned results a scenario describes, without a network."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from emulator.runtime.tool_server import ServerTool, ToolResult

if TYPE_CHECKING:
    from emulator.domain.scenario import SimulatedDescription


class SimulatedServer:
    """A `ToolServer` that answers from a description. One nobody described has no tools."""

    def __init__(self, description: SimulatedDescription | None) -> None:
        self._tools = {} if description is None else description.tools

    async def connect(self) -> None:
        """Always works: what fails is an outage around it."""

    async def tools(self) -> list[ServerTool]:
        return [
            ServerTool(name, tool.description, tool.read_only, tool.input_schema) for name, tool in self._tools.items()
        ]

    async def call(self, tool: str, arguments: dict[str, Any]) -> ToolResult:
        described = self._tools[tool]
        return ToolResult([dict(block) for block in described.content], described.structured, described.is_error)

    async def close(self) -> None:
        """Nothing is held."""
