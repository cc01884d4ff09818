"""Tools: what a session's agent can reach outside its workspace, and the rules a set keeps.

Law: a set is replaced whole or not at all; `check` raises before anything changes. Secrets of an
MCP server live here as `Secret` and leave by no other way than the connection that needs them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from urllib.parse import urlsplit

from emulator.domain.limits import NAME, TOOLS
from emulator.refusals import invalid

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from emulator.redaction import Secret

BUILT_INS: Final = ("web_search", "web_fetch", "image_search", "browse", "browser_act", "screenshot")
TYPES: Final = ("function", "mcp", *BUILT_INS)


@dataclass(frozen=True, slots=True)
class FunctionTool:
    """A function the client answers. A field that was not sent is `None`."""

    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None
    timeout_seconds: int | None = None


@dataclass(frozen=True, slots=True)
class McpTool:
    """An MCP server the sandbox connects to, by `url` or by `command`."""

    name: str
    url: str | None = None
    authorization: Secret | None = None
    headers: Mapping[str, Secret] | None = None
    command: str | None = None
    args: Sequence[str] | None = None
    env_refs: Mapping[str, str] | Sequence[str] | None = None
    allowed_tools: Sequence[str] | None = None
    required: bool | None = None

    def allows(self, tool: str) -> bool:
        """Whether the agent may see this tool of the server."""
        return self.allowed_tools is None or tool in self.allowed_tools

    def withheld(self) -> list[str]:
        """The names of what a read keeps back, as sent (contract §5)."""
        names = ["authorization"] if self.authorization is not None else []
        return names + [f"headers.{name}" for name in self.headers or ()]


@dataclass(frozen=True, slots=True)
class BuiltIn:
    """One of the sandbox's own tools, named by its type."""

    type: str


Tool: TypeAlias = FunctionTool | McpTool | BuiltIn


@dataclass(frozen=True, slots=True)
class ToolSet:
    """A session's whole tool configuration. `tools` is `None` when it was never configured."""

    tools: tuple[Tool, ...] | None = None
    text: dict[str, Any] | None = None

    def listed(self, disabled: Iterable[str]) -> list[Tool]:
        """What a read shows: the declared entries, less the built-ins this deployment switched off."""
        return [tool for tool in self.tools or () if not (isinstance(tool, BuiltIn) and tool.type in set(disabled))]

    def built_ins(self, disabled: Iterable[str]) -> list[str]:
        """The built-ins the agent has: the named ones, else the deployment's allowance; none for `[]`."""
        off = set(disabled)
        named = [tool.type for tool in self.tools or () if isinstance(tool, BuiltIn)]
        if self.tools is not None and (named or not self.tools):
            return [name for name in BUILT_INS if name in named and name not in off]
        return [name for name in BUILT_INS if name not in off]

    def function(self, name: str) -> FunctionTool | None:
        """The declared function of that name."""
        return next((tool for tool in self.tools or () if isinstance(tool, FunctionTool) and tool.name == name), None)

    def servers(self) -> list[McpTool]:
        """The declared MCP servers, in order."""
        return [tool for tool in self.tools or () if isinstance(tool, McpTool)]

    def names(self, disabled: Iterable[str]) -> frozenset[str]:
        """Every name the agent knows a tool, a server or a function by."""
        declared = {tool.name for tool in self.tools or () if not isinstance(tool, BuiltIn)}
        return frozenset(declared | set(self.built_ins(disabled)))


@dataclass(slots=True)
class _Names:
    seen: dict[str, str] = field(default_factory=dict)

    def add(self, name: str, path: str) -> None:
        if name in self.seen:
            raise invalid(
                f"`{path}.name` is {name!r}, which `{self.seen[name]}.name` already is. "
                "Names are unique across functions and MCP servers."
            )
        self.seen[name] = path


def check(tools: Sequence[Tool], prefix: str) -> tuple[Tool, ...]:
    """`tools` as a valid set, repeated built-ins collapsed to one.

    `prefix` is the path of the list in the request (`tools`, `agent.tools`). Raises 400
    `invalid_request` for a set that breaks a rule between or inside entries (contract §5).
    """
    if len(tools) > TOOLS:
        raise invalid(f"`{prefix}` has {len(tools)} entries; at most {TOOLS} are accepted.")
    names = _Names()
    kept: list[Tool] = []
    built_ins: set[str] = set()
    for n, tool in enumerate(tools):
        path = f"{prefix}[{n}]"
        if isinstance(tool, BuiltIn):
            if tool.type not in built_ins:
                built_ins.add(tool.type)
                kept.append(tool)
            continue
        if not 1 <= len(tool.name) <= NAME:
            raise invalid(f"`{path}.name` must be 1 to {NAME} characters; {len(tool.name)} were sent.")
        if isinstance(tool, McpTool):
            _check_transport(tool, path)
        names.add(tool.name, path)
        kept.append(tool)
    return tuple(kept)


# A field that serves one transport only is refused beside the other, never carried along unused.
_URL_ONLY: Final = ("authorization", "headers")
_COMMAND_ONLY: Final = ("args", "env_refs")


def _check_transport(tool: McpTool, path: str) -> None:
    if (tool.url is None) == (tool.command is None):
        which = "neither was sent" if tool.url is None else "both were sent"
        raise invalid(f"`{path}` takes exactly one of `url` and `command`; {which}.")
    other, with_ = (_COMMAND_ONLY, "command") if tool.command is None else (_URL_ONLY, "url")
    for name in other:
        if getattr(tool, name) is not None:
            raise invalid(f"`{path}.{name}` goes with `{with_}`, which this entry does not have.")
    if tool.url is not None and not is_address(tool.url):
        raise invalid(f"`{path}.url` does not parse: an http or https address with a host is accepted.")
    if tool.command is not None and not tool.command.strip():
        raise invalid(f"`{path}.command` must not be empty.")


def is_address(url: str) -> bool:
    """Whether this parses as an http or https address with a host."""
    if " " in url or not url.isprintable():
        return False
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        return False
