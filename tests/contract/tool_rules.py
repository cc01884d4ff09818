"""The rules of a tool configuration, written a second time (contract §5).

The property tests hold the emulator to these: it takes what they take and refuses what they refuse.
They come from the contract, share nothing with the emulator, and say only yes or no.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

from tests.contract.tool_doors import BUILT_INS

# The addresses the strategies make, and what may or may not parse: these rules leave that to the table of
# addresses in `test_tools_values`. Whatever else stands in an address's place does not parse.
ADDRESS: Final = re.compile(r"https?://(?:[a-z0-9-]+(?:\.[a-z0-9-]+)*|\[::1\])(?::[1-9]\d{0,3})?(?:/[a-z0-9/_.-]*)?")
_PERHAPS: Final = re.compile(r"https?:", re.IGNORECASE)

# How deep is absurd. Nothing that is sent comes near it from either side.
NESTING: Final = 200


class NotJson(Exception):
    """Bytes that are no JSON the API takes."""


def parsed(raw: bytes) -> Any:
    """The JSON value of a body. Raises `NotJson`."""

    def not_a_number(text: str) -> Any:
        raise ValueError(text)

    try:
        value = json.loads(raw.decode(), parse_constant=not_a_number)
        # A lone surrogate is no text, and an infinity no number.
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError):
        raise NotJson from None
    if _depth(value) > NESTING:
        raise NotJson
    return value


def doubtful(value: Any) -> bool:
    """Whether somewhere in a value there is an address these rules have no opinion of."""
    if isinstance(value, dict):
        url = value.get("url")
        return (isinstance(url, str) and bool(_PERHAPS.match(url)) and not _is_address(url)) or any(
            map(doubtful, value.values())
        )
    return isinstance(value, list) and any(map(doubtful, value))


def _depth(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inner is None else 1 + max(map(_depth, inner), default=0)


def takes_put(body: Any) -> bool:
    """Whether `PUT …/tools` takes a body."""
    return isinstance(body, dict) and bool(body) and takes_configuration(body)


def takes_create(body: Any) -> bool:
    """Whether `POST /v1/sessions` takes a body that has nothing but an agent's tools and text."""
    if not isinstance(body, dict) or not set(body) <= {"agent"}:
        return False
    agent = body.get("agent", {})
    return isinstance(agent, dict) and takes_configuration(agent)


def takes_configuration(halves: dict[str, Any]) -> bool:
    """Whether `tools` and `text`, where they are there, are taken."""
    if not set(halves) <= {"tools", "text"}:
        return False
    if "tools" in halves and not _takes_tools(halves["tools"]):
        return False
    return halves.get("text") is None or _takes_text(halves["text"])


def shown(tools: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What is read back of a valid set."""
    entries: list[dict[str, Any]] = []
    for tool in tools:
        entry = {key: value for key, value in tool.items() if key not in ("authorization", "headers")}
        withheld = ["authorization"] if "authorization" in tool else []
        withheld += [f"headers.{name}" for name in tool.get("headers", {})]
        if withheld:
            entry["redacted"] = sorted(withheld)
        if entry not in entries or entry["type"] not in BUILT_INS:
            entries.append(entry)
    return entries


def _takes_tools(tools: Any) -> bool:
    if not isinstance(tools, list) or len(tools) > 32 or not all(map(_takes_entry, tools)):
        return False
    names = [tool["name"] for tool in tools if tool["type"] in ("function", "mcp")]
    return len(names) == len(set(names))


def _takes_entry(tool: Any) -> bool:
    if not isinstance(tool, dict) or not isinstance(tool.get("type"), str):
        return False
    match tool["type"]:
        case "function":
            return _takes_function(tool)
        case "mcp":
            return _takes_server(tool)
        case kind:
            return kind in BUILT_INS and set(tool) == {"type"}


def _takes_name(tool: dict[str, Any]) -> bool:
    name = tool.get("name")
    return isinstance(name, str) and 1 <= len(name) <= 64


def _takes_function(tool: dict[str, Any]) -> bool:
    seconds = tool.get("timeout_seconds", 1)
    return (
        set(tool) <= {"type", "name", "description", "parameters", "timeout_seconds"}
        and _takes_name(tool)
        and isinstance(tool.get("description", ""), str)
        and isinstance(tool.get("parameters", {}), dict)
        and type(seconds) is int
        and 1 <= seconds <= 7200
    )


def _takes_server(tool: dict[str, Any]) -> bool:
    own = {"authorization", "headers"} if "url" in tool else {"args", "env_refs"}
    refs = tool.get("env_refs", [])
    return (
        ("url" in tool) != ("command" in tool)
        and set(tool) <= {"type", "name", "url", "command", "allowed_tools", "required"} | own
        and _takes_name(tool)
        and (_is_address(tool["url"]) if "url" in tool else _is_command(tool["command"]))
        and isinstance(tool.get("authorization", ""), str)
        and isinstance(tool.get("headers", {}), dict)
        and _are_strings(list(tool.get("headers", {}).values()))
        and _are_strings(tool.get("args", []))
        and _are_strings(list(refs.values()) if isinstance(refs, dict) else refs)
        and _are_strings(tool.get("allowed_tools", []))
        and isinstance(tool.get("required", False), bool)
    )


def _is_address(url: Any) -> bool:
    return isinstance(url, str) and ADDRESS.fullmatch(url) is not None


def _is_command(command: Any) -> bool:
    return isinstance(command, str) and bool(command.strip())


def _are_strings(values: Any) -> bool:
    return isinstance(values, list) and all(isinstance(value, str) for value in values)


def _takes_text(text: Any) -> bool:
    if not isinstance(text, dict) or not set(text) <= {"verbosity", "format"}:
        return False
    if "verbosity" in text and text["verbosity"] not in ("low", "medium", "high"):
        return False
    if "format" not in text:
        return True
    form = text["format"]
    return (
        isinstance(form, dict)
        and set(form) == {"type", "schema"}
        and form["type"] == "json_schema"
        and isinstance(form["schema"], dict)
    )
