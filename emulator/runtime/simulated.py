"""A simulated MCP server: the tools and canned results somebody described, without a network."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from emulator.runtime.tool_server import ServerTool, ToolResult

if TYPE_CHECKING:
    from collections.abc import Mapping

    from emulator.domain.servers import SimulatedTool


class SimulatedServer:
    """A `ToolServer` that answers from a description. One nobody described has no tools."""

    def __init__(self, tools: Mapping[str, SimulatedTool] | None = None) -> None:
        self._tools = tools or {}
        self._listed = [listed(name, tool) for name, tool in self._tools.items()]

    async def connect(self) -> None:
        """Always works: what fails is an outage around it."""

    async def tools(self) -> list[ServerTool]:
        return self._listed

    async def call(self, tool: str, arguments: dict[str, Any]) -> ToolResult:
        return canned(self._tools[tool])

    async def close(self) -> None:
        """Nothing is held."""


def listed(name: str, tool: SimulatedTool) -> ServerTool:
    """A described tool as a server lists it."""
    return ServerTool(name, tool.description, tool.read_only, tool.input_schema)


def canned(tool: SimulatedTool) -> ToolResult:
    """The result a described tool gives."""
    return ToolResult([dict(block) for block in tool.content], tool.structured, tool.is_error)
