"""The transcript of a session, as it is read in a test and printed when one fails."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class Transcript:
    """A session's items, oldest first, as the API shows them. Prints as a timeline.

    `session_id` is `None`, and there are no items, when there was no session to tell of.
    """

    def __init__(
        self, session_id: str | None, items: list[dict[str, Any]], events: list[dict[str, Any]] | None = None
    ) -> None:
        self.session_id = session_id
        self.items = items
        self._events = events or []

    @property
    def last_message(self) -> str | None:
        """What the agent said last; `None` when it has said nothing."""
        said = (item["content"] for item in reversed(self.items) if item.get("role") == "assistant")
        return next(said, None)

    def __str__(self) -> str:
        told = [(event["created_at"], *found) for event in self._events if (found := of_event(event)) is not None]
        if not told:
            return "(no session)" if self.session_id is None else f"(nothing in session {self.session_id})"
        return "\n".join(line((at - told[0][0]) / 1000, who, text) for at, who, text in told)

    __repr__ = __str__


def of_event(event: dict[str, Any]) -> tuple[str, str] | None:
    """Who did something, and what; `None` for what says nothing that the line before or after it does not."""
    if event["type"] in _UNTOLD:
        return None
    # One of a kind to come is shown as it is.
    who, tell = _TOLD.get(event["type"], (event["type"], _short))
    return who, str(tell(event["payload"]))


def line(seconds: float, who: str, text: str) -> str:
    """A line of a timeline."""
    return f"{seconds:+9.3f} s  {who:<8}  {text}".replace("\n", "\n" + " " * 23)


def _call(name: str, arguments: Any) -> str:
    given = ", ".join(f"{key}={_short(value)}" for key, value in arguments.items())
    return f"{name}({given})"


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else f"{text[:79]}…"


def _result(detail: dict[str, Any]) -> str:
    code = f" (exit {detail['exitCode']})" if "exitCode" in detail else ""
    return f"{detail['toolName']} {'failed' if detail['isError'] else 'done'}{code}: {detail.get('summary') or '–'}"


def _question(detail: dict[str, Any]) -> str:
    options = f" [{', '.join(detail['options'])}]" if detail.get("options") else ""
    return f"asks: {detail['question']}{options}"


def _decision(detail: dict[str, Any]) -> str:
    reason = f": {detail['reason']}" if detail.get("reason") else ""
    return f"{'approved' if detail['approved'] else 'not approved'}{reason}"


_UNTOLD: Final = frozenset(("sandbox.created", "turn.started", "message.dequeued"))
_CHANGES: Final = {"created": "writes", "modified": "changes", "deleted": "deletes"}

# What happened -> who did it, and how it reads.
_TOLD: Final[Mapping[str, tuple[str, Callable[[dict[str, Any]], Any]]]] = {
    "user.message": ("user", lambda detail: detail["text"]),
    "user.context": ("context", lambda detail: detail["text"]),
    "agent.message": ("agent", lambda detail: detail["text"]),
    "agent.tool_call": ("agent", lambda detail: f"uses {_call(detail['toolName'], detail['args'])}"),
    "agent.tool_result": ("sandbox", _result),
    "tool.required": (
        "agent",
        lambda detail: f"calls {_call(detail['name'], detail['arguments'])}  [{detail['toolCallId']}]",
    ),
    "tool.resolved": (
        "client",
        lambda detail: (
            f"{detail['name']} {'succeeded' if detail['success'] else 'did not succeed'}  [{detail['toolCallId']}]"
        ),
    ),
    "file.changed": ("agent", lambda detail: f"{_CHANGES[detail['changeType']]} {detail['path']}"),
    "agent.todos": (
        "agent",
        lambda detail: "todo: " + ", ".join(f"{item['label']} ({item['status']})" for item in detail["items"]),
    ),
    "agent.compaction": ("agent", lambda detail: f"compacts {detail['before']} tokens to {detail['after']}"),
    "preview.ready": ("sandbox", lambda detail: f"serves port {detail['port']} at {detail['url']}"),
    "message.queued": ("user", lambda detail: f"(waits, place {detail['position']}) {detail['text']}"),
    "sandbox.paused": ("sandbox", lambda detail: "is paused"),
    "sandbox.resumed": ("sandbox", lambda detail: "is resumed"),
    "artifact.created": ("sandbox", lambda detail: f"publishes {detail['path']}"),
    "turn.ended": ("turn", lambda detail: "ends"),
    "approval.requested": (
        "agent",
        lambda detail: f"asks leave for {_call(detail['name'], detail['args'])}  [{detail['toolCallId']}]",
    ),
    "approval.resolved": ("verdict", _decision),
    "question.asked": ("agent", _question),
    "question.answered": ("person", lambda detail: detail["answer"]),
    "mcp.unavailable": ("sandbox", lambda detail: f"{detail['server']} is unavailable: {detail['reason']}"),
    "agent.error": ("error", lambda detail: detail["message"]),
}
