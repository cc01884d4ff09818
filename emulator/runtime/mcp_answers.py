"""What a served MCP server says: a message of the Model Context Protocol in, the answer to it out.

Law: pure. It knows the messages and nothing of how they travel; a description answers here as it does
where it is simulated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from emulator import __version__

if TYPE_CHECKING:
    from collections.abc import Mapping

    from emulator.domain.servers import SimulatedTool

HANDSHAKE: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""The revisions of the protocol that begin with `initialize`, oldest first."""
STATELESS: Final = "2026-07-28"
"""The revision in which every request stands for itself."""

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
HEADER_MISMATCH: Final = -32020
UNSUPPORTED_VERSION: Final = -32022

TOOLS_CHANGED: Final = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
# What a list says of how long it may be kept, in the stateless revision.
_STALE: Final = {"ttlMs": 0, "cacheScope": "private"}


def answer(name: str, tools: Mapping[str, SimulatedTool], message: Mapping[str, Any], *, stateless: bool) -> Any:
    """The answer of the server `name` to a request: a result, or an error for what it does not know."""
    params = params_of(message)
    info = {"name": name, "version": __version__}
    match message["method"]:
        case "initialize" if not stateless:
            asked = params.get("protocolVersion")
            version = asked if asked in HANDSHAKE else HANDSHAKE[-1]
            told = {"protocolVersion": version, "capabilities": {"tools": {"listChanged": True}}, "serverInfo": info}
            return result(message, told)
        case "server/discover" if stateless:
            told = {"supportedVersions": [STATELESS, *reversed(HANDSHAKE)], "capabilities": {"tools": {}}, **_STALE}
            return result(message, told | {"_meta": {"io.modelcontextprotocol/serverInfo": info}}, stateless=True)
        case "ping" if not stateless:
            return result(message, {})
        case "tools/list":
            listed = {"tools": [_listed(name, tool) for name, tool in tools.items()]}
            return result(message, listed | (_STALE if stateless else {}), stateless=stateless)
        case "tools/call":
            called = params.get("name")
            if not isinstance(called, str) or called not in tools:
                return error(message, INVALID_PARAMS, "There is no such tool. tools/list has them.")
            return result(message, _given(tools[called]), stateless=stateless)
        case _:
            return error(message, METHOD_NOT_FOUND, "This server has tools and nothing else.")


def params_of(message: Mapping[str, Any]) -> dict[str, Any]:
    """What a request is about; nothing where it has no object there."""
    params = message.get("params")
    return params if isinstance(params, dict) else {}


def result(message: Mapping[str, Any], content: dict[str, Any], *, stateless: bool = False) -> dict[str, Any]:
    """The answer to a request that could be answered."""
    complete = {"resultType": "complete"} if stateless else {}
    return {"jsonrpc": "2.0", "id": message["id"], "result": content | complete}


def failed(text: str) -> dict[str, Any]:
    """The result of a tool that failed."""
    return {"content": [{"type": "text", "text": text}], "isError": True}


def error(message: Mapping[str, Any] | None, code: int, text: str, data: Any = None) -> dict[str, Any]:
    """The answer to a request that could not be, or, with no message, to what was none."""
    told = {"code": code, "message": text} | ({} if data is None else {"data": data})
    return {"jsonrpc": "2.0", "id": None if message is None else message.get("id"), "error": told}


def _listed(name: str, tool: SimulatedTool) -> dict[str, Any]:
    described = {"description": tool.description} if tool.description else {}
    annotations = {"annotations": {"readOnlyHint": tool.read_only}}
    return {"name": name, **described, "inputSchema": tool.input_schema, **annotations}


def _given(tool: SimulatedTool) -> dict[str, Any]:
    structured = {} if tool.structured is None else {"structuredContent": tool.structured}
    return {"content": tool.content, **structured, "isError": tool.is_error}
