"""The events of contract §9, written out: what each carries, and whether it is kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


@dataclass(frozen=True)
class Known:
    """One type of event: the keys its payload has, those it may have, whether it has a seq."""

    keys: frozenset[str]
    may: frozenset[str] = frozenset()
    kept: bool = True


def _event(keys: str, may: str = "", *, kept: bool = True) -> Known:
    return Known(frozenset(keys.split()), frozenset(may.split()), kept)


EVENTS: Final[Mapping[str, Known]] = {
    "user.message": _event("text"),
    "user.context": _event("text"),
    "message.queued": _event("text position"),
    "message.dequeued": _event("text"),
    "turn.started": _event("turnId"),
    "turn.ended": _event("turnId"),
    "agent.message": _event("text"),
    "agent.tool_call": _event("toolCallId toolName args"),
    "agent.tool_result": _event("toolCallId toolName isError cancelled summary", "exitCode"),
    "agent.compaction": _event("before after"),
    "agent.error": _event("message", "origin"),
    "agent.todos": _event("items"),
    "file.changed": _event("path changeType kind", "diff toolCallId"),
    "approval.requested": _event("toolCallId name args sensitive"),
    "approval.resolved": _event("toolCallId approved", "name code reason"),
    "question.asked": _event("toolCallId question", "options allowFreeform"),
    "question.answered": _event("toolCallId answer"),
    "tool.required": _event("toolCallId name arguments"),
    "tool.resolved": _event("toolCallId name success"),
    "mcp.unavailable": _event("server name reason"),
    "sandbox.created": _event("state"),
    "sandbox.paused": _event("state"),
    "sandbox.resumed": _event("state"),
    "preview.ready": _event("port url"),
    "workspace.recovery_failed": _event("message"),
    "artifact.created": _event("id path size_bytes turn_id"),
    "agent.text": _event("delta", kept=False),
    "agent.thinking": _event("delta", kept=False),
    "gobare.replay_truncated": _event("from_seq note", kept=False),
}


def problems(event: Mapping[str, Any]) -> Iterator[str]:
    """What an event object has that its type does not, and the other way round."""
    kind: str = event["type"]
    known = EVENTS.get(kind)
    if known is None:
        yield f"the contract knows no event {kind}"
        return
    keys = set(event["payload"])
    if known.keys - keys:
        yield f"{kind} lacks {sorted(known.keys - keys)}"
    if keys - known.keys - known.may:
        yield f"{kind} does not have {sorted(keys - known.keys - known.may)}"
    if event["internal_type"] != kind:
        yield f"{kind} calls itself {event['internal_type']}"
    if (event["seq"] is not None) != known.kept:
        yield f"{kind} has the seq {event['seq']}"
