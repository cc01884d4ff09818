"""Servers: the tools of a simulated MCP server, as somebody describes them (contract §5).

Law: what was written of a tool is read into its normal form here and nowhere else.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

# The content blocks of MCP, by type, and the texts that each must have.
_BLOCKS: Final = {
    "text": ("text",),
    "image": ("data", "mimeType"),
    "audio": ("data", "mimeType"),
    "resource_link": ("uri", "name"),
    "resource": ("uri",),
}


class Unusable(ValueError):
    """What was written of a server does not go together. `where` is the place of the bad key, `text` what is wrong."""

    def __init__(self, where: tuple[str | int, ...], text: str) -> None:
        super().__init__(text)
        self.where = where
        self.text = text

    def under(self, *where: str | int) -> Unusable:
        """The same, seen from outside of `where`."""
        return Unusable((*where, *self.where), self.text)


@dataclass(frozen=True, slots=True)
class SimulatedTool:
    """A tool of a simulated MCP server, and the one result it gives whatever it is called with.

    `content` are MCP content blocks, whichever of the three was written: `text` is one block of them,
    and `structured` alone has its JSON as a text beside it.
    """

    description: str = ""
    read_only: bool = False
    text: str | None = None
    content: list[dict[str, Any]] = field(default_factory=list)
    structured: dict[str, Any] | None = None
    is_error: bool = False
    input_schema: dict[str, Any] = field(default_factory=lambda: {"type": "object"})


def tools_of(written: Mapping[str, Mapping[str, Any]]) -> dict[str, SimulatedTool]:
    """Tools by name as they are written in a scenario, their types already right. Raises `Unusable`."""
    return {name: _tool(name, tool) for name, tool in written.items()}


def _tool(name: str, written: Mapping[str, Any]) -> SimulatedTool:
    text, blocks = written.get("text"), written.get("content")
    if text is not None and blocks is not None:
        raise Unusable((name,), "has both `text` and `content`; write one of them")
    content: list[dict[str, Any]] = [_block((name, "content", n), block) for n, block in enumerate(blocks or ())]
    said = text
    if text is None and blocks is None and "structured" in written:
        # What MCP asks of servers, for clients that read text only.
        said = json.dumps(written["structured"], ensure_ascii=False)
    if said is not None:
        content = [{"type": "text", "text": said}]
    schema = {"type": "object", **written.get("input_schema", {})}
    if schema["type"] != "object":
        raise Unusable((name, "input_schema", "type"), "must be object: MCP has no tool with other arguments")
    return SimulatedTool(**{**written, "content": content, "input_schema": schema})


def _block(where: tuple[str | int, ...], written: Mapping[str, Any]) -> dict[str, Any]:
    """A content block, if it is one of MCP. Raises `Unusable`."""
    kind = written.get("type")
    if not isinstance(kind, str) or kind not in _BLOCKS:
        raise Unusable((*where, "type"), f"must be one of {', '.join(_BLOCKS)}")
    inner = written.get("resource") if kind == "resource" else written
    where = (*where, "resource") if kind == "resource" else where
    if not isinstance(inner, dict):
        raise Unusable(where, "must be an object")
    for key in _BLOCKS[kind]:
        if not isinstance(inner.get(key), str):
            raise Unusable((*where, key), f"must be a text: a block of type {kind} has it")
    if kind == "resource" and not any(isinstance(inner.get(key), str) for key in ("text", "blob")):
        raise Unusable(where, "must have `text` or `blob`")
    return dict(written)
