"""Permissions: whether the agent may act, must ask, or is refused.

Law: a rule beats the mode in both directions; the first rule that matches decides (contract §6).
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final, Literal
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MODES: Final = ("auto", "per_step", "read_only", "plan")
DECISIONS: Final = ("allow", "deny", "ask")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is decided. A denial carries its code and the sentence the agent is given."""

    decision: Literal["allow", "ask", "deny"]
    code: str | None = None
    reason: str | None = None


def decide(
    mode: str,
    rules: Sequence[Mapping[str, Any]],
    tool: str,
    args: Mapping[str, Any],
    *,
    read_only: bool = False,
    asks: bool = False,
) -> Verdict:
    """The verdict on what the agent wants to do: `tool` with `args`.

    `read_only`: the tool is known to change nothing. `asks`: the agent asks of its own accord.
    """
    for rule in rules:
        if _matches(rule, tool, args):
            if rule["decision"] == "deny":
                return Verdict("deny", "denied_by_rule", f"A permission rule of this session denies {tool}.")
            return Verdict(rule["decision"])
    if mode == "read_only" and not read_only:
        return Verdict("deny", "denied_read_only", f"This session is read-only, and {tool} could change something.")
    return Verdict("ask" if asks or mode == "per_step" else "allow")


def _matches(rule: Mapping[str, Any], tool: str, args: Mapping[str, Any]) -> bool:
    if "tool" in rule and not fnmatchcase(tool, rule["tool"]):
        return False
    if "command" in rule and not _glob_or_prefix(str(args.get("command", "")), rule["command"]):
        return False
    if "path" in rule and not _inside(str(args.get("path", "")), rule["path"]):
        return False
    return "domain" not in rule or fnmatchcase(_host(str(args.get("url", ""))), rule["domain"])


def _glob_or_prefix(command: str, pattern: str) -> bool:
    return fnmatchcase(command, pattern) or command == pattern or command.startswith(f"{pattern} ")


def _inside(path: str, pattern: str) -> bool:
    return fnmatchcase(path, pattern) or path == pattern or path.startswith(f"{pattern.rstrip('/')}/")


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""
