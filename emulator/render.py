"""Render: the one door out. Domain objects become the API's JSON here, and refusals its envelope.

Law: whatever a client reads has passed through this module, so redaction happens here and nowhere
is forgotten (contract §1, §2, §5).
"""

from __future__ import annotations

from base64 import b64encode
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from pydantic_core import from_json, to_json

from emulator.domain.files import relative
from emulator.domain.tools import BuiltIn, FunctionTool, McpTool
from emulator.redaction import scrub

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from emulator.domain.action import Action
    from emulator.domain.artifacts import Artifact
    from emulator.domain.catalogue import Connector, EnvironmentProfile, SavedAgent
    from emulator.domain.connections import ModelConnection
    from emulator.domain.files import Blob
    from emulator.domain.notices import Notice
    from emulator.domain.pages import Page, T
    from emulator.domain.session import Session, Turn
    from emulator.domain.snapshots import Content, Snapshot
    from emulator.domain.tools import Tool, ToolSet
    from emulator.domain.usage import Usage
    from emulator.domain.webhooks import Misstep, Subscription
    from emulator.refusals import Refusal


def encode(value: Any) -> bytes:
    """A JSON value as compact UTF-8."""
    return to_json(value)


def decode(body: bytes) -> Any:
    """JSON bytes as a value. Raises `ValueError`, also for NaN, lone surrogates and absurd nesting."""
    return from_json(body, allow_inf_nan=False, cache_strings="keys")


class FrameCodec:
    """Events as server-sent frames, byte for byte as streams send them (contract §9)."""

    def encode(
        self, event_type: str, session_id: str, seq: int | None, created_at: int, payload: dict[str, Any]
    ) -> bytes:
        data = to_json(
            {
                "object": "event",
                "type": event_type,
                "internal_type": event_type,
                "session_id": session_id,
                "seq": seq,
                "created_at": created_at,
                "payload": payload,
            }
        )
        if seq is None:
            return b"event: %b\ndata: %b\n\n" % (event_type.encode(), data)
        return b"id: %d\nevent: %b\ndata: %b\n\n" % (seq, event_type.encode(), data)

    def payload(self, frame: bytes) -> dict[str, Any]:
        payload: dict[str, Any] = self.event(frame)["payload"]
        return payload

    @staticmethod
    def event(frame: bytes) -> dict[str, Any]:
        """The JSON object of a frame."""
        event: dict[str, Any] = from_json(frame[frame.index(b"\ndata: ") + 7 : -2])
        return event


def replay_truncated(from_seq: int, limit: int, session_id: str | None, now: int) -> bytes:
    """The frame that says a replay was cut short (contract §9)."""
    note = (
        f"More than {limit} events were waiting. Live frames follow from here; "
        f"reconnect with last_event_id={from_seq} to collect the rest first."
    )
    told = {"from_seq": from_seq, "note": note}
    name = "gobare.replay_truncated"
    head = {"object": "event", "type": name, "internal_type": name, "session_id": session_id, "seq": None}
    data = to_json({**head, "created_at": now, **told, "payload": told})
    return b"event: %b\ndata: %b\n\n" % (name.encode(), data)


def refusal(refused: Refusal, request_id: str) -> dict[str, Any]:
    """The envelope of a refusal; nothing stands beside `error` (contract §2)."""
    return {"error": {"code": refused.code, "message": scrub(refused.message), "request_id": request_id}}


def refusal_headers(refused: Refusal) -> list[tuple[bytes, bytes]]:
    """The headers a refusal brings along: its own, and the wait where waiting helps (contract §2)."""
    headers = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in refused.headers.items()]
    if refused.retry_after is not None:
        headers.append((b"retry-after", b"%d" % refused.retry_after))
    return headers


_FIELDS: Final[Mapping[type[Tool], tuple[str, ...]]] = {
    FunctionTool: ("name", "description", "parameters", "timeout_seconds"),
    McpTool: ("name", "url", "command", "args", "env_refs", "allowed_tools", "required"),
}


def tool(entry: Tool) -> dict[str, Any]:
    """One tool as it is read back: as sent, less its secrets, which `redacted` names."""
    if isinstance(entry, BuiltIn):
        return {"type": entry.type}
    shown: dict[str, Any] = {"type": "function" if isinstance(entry, FunctionTool) else "mcp"}
    for name in _FIELDS[type(entry)]:
        value = getattr(entry, name)
        if value is not None:
            shown[name] = value
    if isinstance(entry, McpTool) and (withheld := entry.withheld()):
        shown["redacted"] = withheld
    return shown


def tools(tool_set: ToolSet, disabled: Iterable[str]) -> list[dict[str, Any]]:
    """A session's tools as they are read back."""
    return [tool(entry) for entry in tool_set.listed(disabled)]


def session_tools(session: Session, disabled: Iterable[str]) -> dict[str, Any]:
    """The `session.tools` object (contract §5)."""
    return {
        "object": "session.tools",
        "session_id": session.id,
        "tools": tools(session.agent.tools, disabled),
        "text": session.agent.tools.text,
    }


def session(shown: Session, *, disabled: Iterable[str] | None = None) -> dict[str, Any]:
    """The `session` object. `agent.tools` only when `disabled` is given: the single read (contract §5)."""
    agent: dict[str, Any] = {
        "id": shown.agent.id,
        "model": shown.agent.model,
        "model_credential_id": shown.agent.model_credential_id,
        "approval_mode": shown.agent.approval_mode,
        "instructions": shown.agent.instructions,
        "permission_rules": shown.agent.permission_rules,
    }
    if disabled is not None:
        agent["tools"] = tools(shown.agent.tools, disabled)
    return {
        "object": "session",
        "id": shown.id,
        "title": shown.title,
        "status": shown.status,
        "created_at": shown.created_at,
        "updated_at": shown.updated_at,
        "source": shown.source,
        "created_by_token": shown.created_by_token,
        "parent_session_id": shown.parent_session_id,
        "metadata": shown.metadata,
        "agent": agent,
        "environment": {
            "type": "sandbox",
            "state": shown.workspace.state,
            "workspace_directory": "/workspace",
            "repo": shown.workspace.repo,
        },
        "preview": {
            "url": shown.preview.url,
            "port": shown.preview.port,
            "published_url": shown.preview.published_url,
        },
        "required_actions": [required_action(action) for action in shown.required_actions()],
    }


def fork(shown: Session, *, forked_from: str, workspace_copied: bool) -> dict[str, Any]:
    """What a fork answers: the new session, and where it comes from (contract §6)."""
    return {**session(shown), "forked_from": forked_from, "workspace_copied": workspace_copied}


def usage(of: Session, used: Usage, *, scope: str) -> dict[str, Any]:
    """The `session.usage` object (contract §6)."""
    return {
        "object": "session.usage",
        "session_id": of.id,
        "scope": scope,
        "sessions": used.sessions,
        "as_of": used.as_of,
        "sandbox_seconds": used.sandbox_seconds,
        "chargeable_seconds": used.chargeable_seconds,
        "needs_review_intervals": used.needs_review,
        "intervals": used.intervals,
    }


def preview(of: Session) -> dict[str, Any]:
    """The `preview` object of a published preview (contract §12)."""
    shown = of.preview
    return {
        "object": "preview",
        "subdomain": shown.subdomain,
        "url": shown.published_url,
        "published_url": shown.published_url,
        "port": shown.port,
    }


def required_action(action: Action) -> dict[str, Any]:
    """One entry of `required_actions` (contract §8)."""
    return {
        "type": action.type,
        "turn_id": action.turn_id,
        "call_id": action.call_id,
        "name": action.name,
        "arguments": action.arguments,
        "created_at": action.created_at,
        "expires_at": action.expires_at,
    }


def turn(shown: Turn) -> dict[str, Any]:
    """The `turn` object (contract §8)."""
    return {
        "object": "turn",
        "id": shown.id,
        "session_id": shown.session_id,
        "status": shown.status,
        "created_at": shown.created_at,
        "started_at": shown.started_at,
        "completed_at": shown.completed_at,
        "artifacts": shown.artifacts,
        "artifacts_skipped": shown.artifacts_skipped,
        "subagent_id": None,
        "error": shown.error,
    }


def agent(shown: SavedAgent, disabled: Iterable[str]) -> dict[str, Any]:
    """The `agent` object (contract §12)."""
    return {
        "object": "agent",
        "id": shown.id,
        "name": shown.name,
        "model": shown.model,
        "model_credential_id": shown.model_credential_id,
        "instructions": shown.instructions,
        "tools": tools(shown.tools, disabled),
        "text": shown.tools.text,
        "created_at": shown.created_at,
    }


def environment_template(shown: SavedAgent, disabled: Iterable[str]) -> dict[str, Any]:
    """The `environment_template` object: an agent under its older name, with fewer fields."""
    known = agent(shown, disabled)
    return {
        "object": "environment_template",
        **{name: known[name] for name in ("id", "name", "tools", "text", "created_at")},
    }


def environment_profile(shown: EnvironmentProfile) -> dict[str, Any]:
    """The `environment_profile` object (contract §12)."""
    return {
        "object": "environment_profile",
        "id": shown.id,
        "name": shown.name,
        "is_default": shown.is_default,
        "variable_count": shown.variable_count,
    }


def model_connector(shown: Connector) -> dict[str, Any]:
    """The `model_connector` object (contract §12)."""
    return {"object": "model_connector", **asdict(shown)}


def model_credential(shown: ModelConnection, *, is_default: bool, created: bool = False) -> dict[str, Any]:
    """The `model_credential` object; `created`: as the answer to a create, which alone tells the key's end."""
    known = {
        "object": "model_credential",
        "id": shown.id,
        "label": shown.label,
        "connector": shown.connector,
        "model": shown.model,
        "is_default": is_default,
    }
    return known | ({"last4": shown.last4, "verified": True} if created else {})


def webhook(shown: Subscription, *, created: bool = False) -> dict[str, Any]:
    """The `webhook.subscription` object: with its secret once, with its health ever after (contract §11)."""
    head = {"object": "webhook.subscription", "id": shown.id, "url": shown.url, "events": list(shown.events)}
    if created:
        return {**head, "active": shown.active, "secret": shown.secret.reveal()}
    health = {
        "pending": shown.pending,
        "dead": shown.dead,
        "last_error": shown.last_error,
        "last_failed_at": shown.last_failed_at,
    }
    return {**head, "active": shown.active, "created_at": shown.created_at, "delivery": health}


def webhook_event(told: Notice, misstep: Misstep | None = None) -> bytes:
    """The body of a delivery. A misstep may add to its `data`, or leave out which turn it is (contract §11)."""
    data = {"session_id": told.session.id, **told.data}
    if misstep is not None:
        if misstep.do == "no_turn_id" and "turn_id" in data:
            data["turn_id"] = None
        data = {**(misstep.data or {}), **data}
    return to_json({"object": "event", "type": told.type, "created_at": told.created_at, "data": data})


def written_files(files: Iterable[tuple[str, Blob]]) -> dict[str, Any]:
    """What a file write answers, of files by absolute path (contract §10)."""
    return {
        "object": "list",
        "data": [
            {"object": "workspace_file", "path": relative(path), "size_bytes": content.size} for path, content in files
        ],
    }


def workspace_tree(snapshot: Snapshot | None) -> dict[str, Any]:
    """The listing of a workspace as of a snapshot (contract §10)."""
    if snapshot is None:
        return {"object": "list", "data": [], "captured_at": None, "state": "missing", "truncated": False}
    return {
        "object": "list",
        "data": [
            {
                "object": "workspace_file",
                "path": entry.path,
                "type": "directory" if entry.size is None else "file",
                "size_bytes": entry.size,
                "readable": entry.readable,
            }
            for entry in snapshot.entries()
        ],
        "captured_at": snapshot.captured_at,
        "state": "ready",
        "truncated": snapshot.truncated,
    }


def file_content(content: Content) -> dict[str, Any]:
    """The `workspace_file.content` object (contract §10)."""
    return {
        "object": "workspace_file.content",
        "path": content.path,
        "captured_at": content.captured_at,
        "content": b64encode(content.data).decode() if content.text is None else content.text,
        "encoding": "base64" if content.text is None else "utf8",
        "truncated": content.truncated,
    }


def artifact(shown: Artifact) -> dict[str, Any]:
    """The `artifact` object (contract §10)."""
    return {
        "object": "artifact",
        "id": shown.id,
        "session_id": shown.session_id,
        "turn_id": shown.turn_id,
        "path": shown.path,
        "size_bytes": shown.content.size,
        "content_type": shown.content_type,
        "created_at": shown.created_at,
    }


def page(cut: Page[T], render_one: Callable[[T], dict[str, Any]]) -> dict[str, Any]:
    """The `list` object (contract §13)."""
    return {
        "object": "list",
        "data": [render_one(entry) for entry in cut.data],
        "has_more": cut.has_more,
        "last_id": cut.last_id,
    }


def deleted(thing: str, deleted_id: str) -> dict[str, Any]:
    """What a delete answers."""
    return {"object": f"{thing}.deleted", "id": deleted_id, "deleted": True}
