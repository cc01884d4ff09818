"""A session's tools: replaced whole, read back without their secrets (contract §5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from emulator import render
from emulator.api.call import Reply
from emulator.domain.tools import BuiltIn, FunctionTool, McpTool, ToolSet, check
from emulator.redaction import Secret
from emulator.refusals import invalid

if TYPE_CHECKING:
    from emulator.api.call import Call
    from emulator.domain.tools import Tool
    from emulator.wire import tools as wire


async def put_tools(call: Call) -> Reply:
    """Replace a session's tools; a refused call changes nothing."""
    body: wire.ToolsRequest = call.body
    if not body.model_fields_set:
        raise invalid("Send `tools`, `text` or both; the half that is absent goes back to unconfigured.")
    tools = tool_set(body.tools, body.text, "tools")
    session = call.session
    call.deployment.engine.replace_tools(call.organization, session, tools)
    return Reply(render.session_tools(session, call.world.settings.disabled_tools))


async def get_tools(call: Call) -> Reply:
    """Read a session's tools back."""
    return Reply(render.session_tools(call.session, call.world.settings.disabled_tools))


def tool_set(tools: list[wire.Tool] | None, text: wire.Text | None, prefix: str) -> ToolSet:
    """A configuration as it was sent, checked. `prefix` is where the list stands in the request."""
    entries = None if tools is None else check([_tool(entry) for entry in tools], prefix)
    shown = None if text is None else text.model_dump(by_alias=True, exclude_unset=True)
    return ToolSet(entries, shown)


def _tool(sent: Any) -> Tool:
    match sent.type:
        case "function":
            return FunctionTool(sent.name, sent.description, sent.parameters, sent.timeout_seconds)
        case "mcp":
            return McpTool(
                name=sent.name,
                url=sent.url,
                authorization=None if sent.authorization is None else Secret(sent.authorization),
                headers=None if sent.headers is None else {name: Secret(v) for name, v in sent.headers.items()},
                command=sent.command,
                args=sent.args,
                env_refs=sent.env_refs,
                allowed_tools=sent.allowed_tools,
                required=sent.required,
            )
        case built_in:
            return BuiltIn(built_in)
