"""The default agent: what answers when nothing was scripted.

Law: deterministic. What it does follows from the message and from what the session declares, so that
the API's own examples run unchanged and two runs of a program meet the same agent.
"""

from __future__ import annotations

import json
import re
from posixpath import splitext
from typing import TYPE_CHECKING, Any, Final

from emulator.runtime.example import example

if TYPE_CHECKING:
    from collections.abc import Mapping

    from emulator.runtime.player import CallOutcome, Verbs

QUOTED: Final = 200
FILES: Final = 20
_PATH_LENGTH: Final = 1024

_PATH: Final = re.compile(r"(?<![\w./~-])/workspace/outputs/[^\s\"'`<>()\[\]{}|\\\x00-\x1f\x7f]+")
_AFTER_A_PATH: Final = ".,;:!?*_~…”’»"
_PREVIEW_CALL: Final = re.compile(r"\bpreview\s*\(\s*(?:port\s*[=:]\s*)?(\d{1,5})\s*\)", re.IGNORECASE)
_PREVIEW: Final = re.compile(r"\bpreview\b", re.IGNORECASE)
_PORT: Final = re.compile(r"\bport\b[\s:=`]*(\d{1,5})\b", re.IGNORECASE)


async def default_agent(turn: Verbs) -> None:
    """Answer a message: call each declared function once, write the files it names, preview, reply."""
    done: list[str] = []
    for tool in turn.session.tools:
        if tool.get("type") == "function":
            name = str(tool["name"])
            arguments = example(tool.get("parameters") or {"type": "object"})
            result = await turn.call_with(name, arguments if isinstance(arguments, dict) else {})
            done.append(_outcome(name, result))
    for path in paths_in(turn.message):
        written = await turn.write(path, content_of(path, turn.message, turn.session.text))
        done.append(f"I wrote {path}." if written else f"I was not allowed to write {path}.")
    if (port := port_in(turn.message)) is not None:
        await turn.preview(port)
        done.append(f"The preview is on port {port}.")
    await turn.say(_reply(turn, done))


def paths_in(message: str) -> list[str]:
    """The files under /workspace/outputs that a message names, each once, in order.

    Punctuation that ends a sentence is not part of a path; a path with `..` and a directory are left out.
    """
    found: dict[str, None] = {}
    for written in _PATH.findall(message):
        path = written.rstrip(_AFTER_A_PATH)
        segments = path.split("/")
        if segments[-1] in ("", ".") or ".." in segments or len(path) > _PATH_LENGTH or path == "/workspace/outputs":
            continue
        found[path] = None
    return list(found)[:FILES]


def port_in(message: str) -> int | None:
    """The port a message asks a preview for: `preview(3000)`, or a preview and a `port 3000`."""
    match = _PREVIEW_CALL.search(message)
    if match is None and _PREVIEW.search(message):
        match = _PORT.search(message)
    port = int(match[1]) if match is not None else 0
    return port if 1 <= port <= 65535 else None


def content_of(path: str, message: str, text: Mapping[str, Any] | None) -> str:
    """What is written to a file, by the ending of its name. Conforms to the session's schema in `.json`."""
    quote = _quoted(message)
    match splitext(path)[1].lower():
        case ".json":
            schema = _schema(text)
            return _json({"message": quote} if schema is None else example(schema)) + "\n"
        case ".jsonl" | ".ndjson":
            return json.dumps({"message": quote}, ensure_ascii=False) + "\n"
        case ".md" | ".markdown":
            return f"# Report\n\n{quote}\n"
        case ".csv":
            cell = quote.replace('"', '""')
            return f'name,value\nmessage,"{cell}"\n'
        case ".html" | ".htm":
            body = quote.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
            return f"<!doctype html>\n<title>Report</title>\n<p>{body}</p>\n"
        case ".yaml" | ".yml":
            # JSON's strings are YAML's as well.
            return f"message: {json.dumps(quote, ensure_ascii=False)}\n"
    return f"{quote}\n"


def _reply(turn: Verbs, done: list[str]) -> str:
    schema = _schema(turn.session.text)
    if schema is not None:
        return _json(example(schema))
    return " ".join([f"You said: “{_quoted(turn.message)}”.", *done])


def _outcome(name: str, result: CallOutcome) -> str:
    if result.success:
        return f"{name} answered: {_quoted(result.output or 'nothing')}."
    return f"{name} failed: {_quoted(result.error or 'no reason was given')}."


def _schema(text: Mapping[str, Any] | None) -> Any:
    """The schema a session asks its answers to follow, if it does."""
    wanted = (text or {}).get("format")
    if isinstance(wanted, dict) and wanted.get("type") == "json_schema":
        return wanted.get("schema")
    return None


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


def _quoted(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= QUOTED else line[: QUOTED - 1] + "…"
