"""Rows of contract §9: the event streams."""

from __future__ import annotations

from typing import Final

from tests.contract.manifest import Row

ROWS: Final = (
    # Frames
    Row("events.frame", "contract §9", "A frame is id, event and one data line, byte for byte, and a blank line."),
    Row("events.data", "contract §9", "`data` has object, type, internal_type, session_id, seq, created_at, payload."),
    Row("events.one-line", "contract §9", "Whatever a text holds, its frame has LF ends only and one data line."),
    Row("events.transient-frame", "contract §9", "A transient frame has no id line and a null seq."),
    Row("events.content-type", "contract §1", "A stream is text/event-stream, with the headers of every response."),
    Row(
        "events.retry",
        "contract §9",
        "A stream opens with `retry: 2000`; the delay is a setting.",
        "Another page says eight seconds: the events page's number is the default, the setting gives the other.",
    ),
    Row("events.ping", "contract §9", "A quiet stream sends the comment `: ping`, every 15 seconds unless set."),
    Row("events.seq", "contract §9", "`seq` is one increasing sequence per organization, over all its sessions."),
    # Types
    Row("events.types", "contract §9", "Every persisted event has the payload the contract gives."),
    Row("events.file-kind", "contract §9", "file.changed has `changeType` and `kind` with one value."),
    Row("events.sandbox", "contract §9", "sandbox.created, paused and resumed carry the state."),
    Row("events.recovery-failed", "contract §9", "A workspace that cannot be rebuilt makes workspace.recovery_failed."),
    Row("events.artifact", "contract §9", "artifact.created has id, path, size_bytes and turn_id."),
    Row("events.mcp-unavailable", "contract §9", "mcp.unavailable has server, name and reason."),
    Row(
        "events.platform-refusal-scripted",
        "contract §9",
        "The codes approval_timeout and credential_inspection_denied come when scripted, and the agent is refused.",
        "Nothing here would time an approval out or look for credentials; the control route's `code` says so.",
    ),
    Row(
        "events.platform-refusal",
        "contract §9",
        "A refusal by the platform is approval.resolved with name, code and, as reason, the sentence for the agent.",
        "The contract decides that the sentence is the payload's `reason`.",
    ),
    Row("events.text", "contract §9", "agent.text deltas make up the agent.message that follows."),
    Row("events.thinking", "contract §9", "agent.thinking deltas make up the thought, and are kept nowhere."),
    Row("events.transient-live", "contract §9", "Transient frames are not replayed and move no cursor."),
    Row("events.first-turn", "contract §9", "A first turn's events come in the contract's order."),
    Row("events.visible", "contract §8", "Whoever reads the session on seeing tool.required finds the action there."),
    # Cursors
    Row("events.no-cursor", "contract §9", "Without a cursor a stream has live frames only."),
    Row("events.cursor", "contract §9", "A cursor, as header or parameter, replays every persisted event after it."),
    Row("events.cursor-zero", "contract §9", "Cursor 0 replays everything."),
    Row(
        "events.cursor-both",
        "contract §9",
        "The header wins over the parameter.",
        "A browser that reconnects sends the header with the address it was opened with: the header is newer.",
    ),
    Row(
        "events.cursor-refused", "contract §9", "A negative or non-integer cursor is refused, before the stream opens."
    ),
    Row("events.cursor-ahead", "contract §9", "A cursor past the newest event replays nothing; live frames follow."),
    Row("events.seam", "contract §9", "Between replay and live frames nothing is missing and nothing comes twice."),
    Row("events.long-replay", "contract §9", "A replay of thousands of events is complete and in order."),
    Row("events.truncated", "contract §9", "Past the replay ceiling the replay stops with gobare.replay_truncated."),
    Row(
        "events.truncated-shape",
        "contract §9",
        "gobare.replay_truncated has from_seq and note at the top level and in `payload`, and a null seq.",
        "The events page shows them at the top level, the OpenAPI document in the payload: both.",
    ),
    Row("events.truncated-resumes", "contract §9", "Reconnecting with from_seq collects the rest."),
    Row("events.truncated-live", "contract §9", "After a truncated replay live frames follow."),
    Row("events.replay-limit", "contract §9", "Up to the ceiling, 50,000 by default, a replay is whole."),
    # Streams
    Row("streams.token-ceiling", "contract §9", "A sixth stream of a token is refused before it opens, as JSON."),
    Row("streams.organization-ceiling", "contract §9", "An organization has at most 20 streams over all its tokens."),
    Row("streams.slot-freed", "contract §9", "A stream's slot is free when its connection ends."),
    Row("streams.slot-kept", "contract §9", "A refused stream takes no slot, and the others go on."),
    Row("streams.settings", "contract §9", "Both ceilings are settings."),
    Row("streams.not-found", "contract §9", "A stream of a session that does not exist is not_found, as JSON."),
    Row("streams.session", "contract §9", "A session's stream has its events and no other session's."),
    Row("streams.organization", "contract §4", "The organization's stream has every session's, new ones included."),
    Row("streams.isolation", "contract §2", "No stream shows anything of another organization."),
    Row("streams.root", "contract §9", "`root` narrows to a session and its tree, in replay and live."),
    Row("streams.root-joins", "contract §9", "Sessions created later below the root join its stream."),
    Row("streams.root-slot", "contract §9", "A stream with `root` is one slot, however many sessions are in it."),
    Row("streams.root-unknown", "contract §6", "A root that is unknown or foreign is not_found, naming the id."),
    Row("streams.root-leaf", "contract §6", "A leaf as root gives its own events."),
    Row(
        "streams.end-on-delete",
        "contract §9",
        "A session's stream ends when the session is deleted, after what was not read yet.",
        "No source says; a stream that never says anything again would look like a hang.",
    ),
    Row("streams.organization-outlives", "contract §9", "The organization's stream goes on when a session is deleted."),
    Row(
        "streams.too-slow",
        "contract §9",
        "A stream that is more than 8 MiB behind is closed without an end.",
        "The connection breaks off, so that a client cannot take it for the end of a session.",
    ),
)
