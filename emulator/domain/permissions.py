"""Permissions: whether the agent may act, must ask, or is refused.

Law: a rule beats the mode in both directions; the first rule that matches decides (contract §6). What a
path, a command or an address means is compared, never how it is spelled.
"""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final, Literal
from urllib.parse import unquote

from emulator.domain.files import spelled_out

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MODES: Final = ("auto", "per_step", "read_only", "plan")
DECISIONS: Final = ("allow", "deny", "ask")

# The sandbox's own tools that change nothing, neither in the workspace nor on the pages they look at.
READING: Final = frozenset(
    ("read", "grep", "find", "ls", "web_search", "web_fetch", "image_search", "browse", "screenshot")
)
# Those that change the file at their `path`.
_CHANGING: Final = ("write", "edit", "delete")
_CHANGES_NOTHING: Final = {
    "read_only": "This session is read-only, and {} could change something.",
    "plan": "This session makes a plan and does not carry it out, and {} could change something.",
}
_SCHEME: Final = re.compile(r"(?:[a-z][a-z0-9+.-]*:(?=/)|(?:https?|wss?|ftp):(?!\d+(?:[/?#]|$)))?/*", re.IGNORECASE)
_DEEP: Final = re.compile(r"(?:/\*\*)+/")
_DEEPEST: Final = re.compile(r"(?:/\*\*)+$")


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

    `read_only`: the tool is said to change nothing, as the sandbox's own of `READING` are known to.
    `asks`: the agent asks of its own accord.
    """
    for rule in rules:
        if _matches(rule, tool, args):
            if rule["decision"] == "deny":
                return Verdict("deny", "denied_by_rule", f"A permission rule of this session denies {tool}.")
            return Verdict(rule["decision"])
    if mode in _CHANGES_NOTHING and not read_only and tool not in READING:
        return Verdict("deny", "denied_read_only", _CHANGES_NOTHING[mode].format(tool))
    return Verdict("ask" if asks or mode == "per_step" else "allow")


def act_of(tool: str, args: Mapping[str, Any]) -> tuple[str, Any]:
    """What an act is, the same for two that are one: a change of a file is about where that is."""
    path = args.get("path")
    return tool, spelled_out(path) if tool in _CHANGING and isinstance(path, str) else args


def _matches(rule: Mapping[str, Any], tool: str, args: Mapping[str, Any]) -> bool:
    if "tool" in rule and not fnmatchcase(tool, rule["tool"]):
        return False
    if "command" in rule and not _begins(_argument(args, "command"), rule["command"]):
        return False
    if "path" in rule and not _inside(_argument(args, "path"), rule["path"]):
        return False
    return "domain" not in rule or _of_domain(_argument(args, "url"), rule["domain"])


def _argument(args: Mapping[str, Any], name: str) -> str:
    value = args.get(name)
    return "" if value is None else str(value)


def _begins(command: str, pattern: str) -> bool:
    """Whether a command is what a glob says, or begins with those words. Blanks count as one."""
    command, pattern = " ".join(command.split()), " ".join(pattern.split())
    return bool(command) and (fnmatchcase(command, pattern) or command.startswith(f"{pattern} ") or command == pattern)


def _inside(path: str, pattern: str) -> bool:
    """Whether a path is the file or in the folder that a glob means. `*` stands for folders as well."""
    if not path:
        return False
    path = spelled_out(path)
    # One that begins with `*` means files anywhere, not only those of the workspace.
    pattern = f"/{pattern}" if pattern.startswith("**/") else pattern
    pattern = pattern if pattern.startswith("*") else spelled_out(pattern)
    # What is in a folder is the folder's, here as without the stars.
    folder = _DEEPEST.sub("", pattern).rstrip("/")
    return path == folder or path.startswith(f"{folder}/") or _glob(path, folder) or _glob(path, f"{folder}/*")


def _glob(path: str, pattern: str) -> bool:
    # With every slash doubled, `/**/` can stand for the two slashes of one, where there is no folder between.
    return fnmatchcase(path.replace("/", "//"), "/*/".join(part.replace("/", "//") for part in _DEEP.split(pattern)))


def _of_domain(url: str, pattern: str) -> bool:
    """Whether an address is at the host that a glob means."""
    host = _host(url)
    wanted = _host(pattern) if "://" in pattern else _name(pattern.strip())
    return bool(host) and fnmatchcase(host, wanted)


def _host(url: str) -> str:
    """The host that a browser would go to, in one spelling; empty where there is none."""
    text = re.sub(r"[\t\r\n]", "", url.strip()).replace("\\", "/")
    authority = re.split(r"[/?#]", _SCHEME.sub("", text, count=1), maxsplit=1)[0]
    return _name(unquote(authority.rpartition("@")[2]))


def _name(host: str) -> str:
    """A host without its port, as the name service has it: no capitals, no dot at the end, all of it ASCII."""
    if host.startswith("[") and ":" in host:
        host = host[1:].rpartition("]")[0]
    elif host.count(":") == 1:
        host = host.partition(":")[0]
    with contextlib.suppress(UnicodeError):
        host = host.encode("idna").decode("ascii")
    return host.lower().rstrip(".")
