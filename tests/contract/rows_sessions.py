"""Sessions: what they are, how they are made, changed, listed and removed (contract §6)."""

from __future__ import annotations

from typing import Final

from tests.contract.manifest import Row

_SOURCE: Final = "contract §6"

ROWS: Final = (
    Row("sessions.create", _SOURCE, "An empty body makes a session with every field of the shape at its default."),
    Row("sessions.create-everything", _SOURCE, "What is sent on create is read back as it was sent."),
    Row("sessions.read", _SOURCE, "A read shows what create showed, and the tools."),
    Row("sessions.tools-single-read", _SOURCE, "agent.tools is on the single read and on no other reply."),
    Row("sessions.title", _SOURCE, "A title is never made up: it is null until somebody sets it."),
    Row("sessions.metadata", _SOURCE, "Metadata comes back unchanged; a key is never empty."),
    Row("sessions.updated-at", _SOURCE, "updated_at moves with every change, created_at never."),
    Row("sessions.source", _SOURCE, "A session made over the API has the source api."),
    Row("sessions.status", _SOURCE, "The status tells the last turn's outcome; a failed session takes input."),
    Row(
        "sessions.instructions", _SOURCE, "Instructions are cleared by null and by an empty text, on create and patch."
    ),
    Row("sessions.approval-mode", _SOURCE, "The approval mode is auto, per_step, read_only or plan; auto by default."),
    Row("sessions.permission-rules", _SOURCE, "Every permission rule needs a decision: allow, deny or ask."),
    Row("sessions.input", _SOURCE, "An opening input, text or parts, is the first message."),
    Row(
        "sessions.input-refused", _SOURCE, "If the opening input is refused, no session remains and its place is free."
    ),
    Row(
        "sessions.input-orphan",
        _SOURCE,
        "If the session of a refused input could not be removed, the refusal names it, and it is there.",
        "Scripted by the setting orphan_sessions.",
    ),
    Row(
        "sessions.visible",
        _SOURCE,
        "The turn a message leads to is in the list before its reply is, working, and not started while it waits.",
        "One page says that there is no turn yet (FIDELITY); the programs read the list right after the reply.",
    ),
    Row(
        "sessions.visible-status", _SOURCE, "The status is at least working before the reply to create or to a message."
    ),
    Row(
        "sessions.model-default", _SOURCE, "Without a model or a connection the organization's default connection runs."
    ),
    Row("sessions.model-wrong", _SOURCE, "A model the chosen connection does not run is refused in the known words."),
    Row("sessions.model-unknown", _SOURCE, "An unknown connection id is refused in the known words."),
    Row("sessions.model-none", _SOURCE, "An organization with nothing connected is told so in the known words."),
    Row("sessions.agent-unknown", _SOURCE, "An unknown saved agent is not found, under either of its names."),
    Row("sessions.repo", _SOURCE, "A repository is owner/name; its branch is null until the workspace has cloned it."),
    Row("sessions.repo-url", _SOURCE, "An address instead of owner/name is refused, and the message shows owner/name."),
    Row("sessions.repo-github", _SOURCE, "Without GitHub connected a repository is refused and no session is made."),
    Row("sessions.branch", _SOURCE, "environment.branch is refused: the branch is reported, not chosen."),
    Row("sessions.profiles", _SOURCE, "An unknown profile is not found; an empty list binds nothing."),
    Row("sessions.parent", _SOURCE, "A session remembers its parent, also after the parent was deleted."),
    Row(
        "sessions.parent-unknown",
        _SOURCE,
        "An unknown parent is not found.",
        "The sources do not say; a tree that hangs nowhere helps nobody.",
    ),
    Row("sessions.patch", _SOURCE, "Title, metadata and the agent's fields are changed one by one, the rest stays."),
    Row("sessions.patch-clear", _SOURCE, "null clears title and metadata; an empty list clears the rules."),
    Row("sessions.patch-replace", _SOURCE, "Metadata and permission rules are replaced whole."),
    Row("sessions.patch-nothing", _SOURCE, "A patch of nothing is refused and names what can be changed."),
    Row("sessions.patch-model", _SOURCE, "Model and connection are changed together, to one that runs the model."),
    Row("sessions.patch-atomic", _SOURCE, "A refused patch changes nothing."),
    Row(
        "sessions.patch-mode-next-turn",
        _SOURCE,
        "A changed approval mode applies from the next turn, not in the running.",
    ),
    Row(
        "sessions.patch-rules-next-turn",
        _SOURCE,
        "Changed rules apply from the next turn as well.",
        "The sources say so of the mode; the two decide together.",
    ),
    Row("sessions.rule-decides", _SOURCE, "A rule lets the agent act, makes it ask, or refuses it."),
    Row(
        "sessions.rule-fields",
        _SOURCE,
        "A rule is about the acts that match all of its tool, path, command and domain.",
    ),
    Row(
        "sessions.rule-first",
        _SOURCE,
        "The first rule that matches decides.",
        "The sources give rules an order and no precedence.",
    ),
    Row(
        "sessions.rule-beats-mode",
        _SOURCE,
        "A rule beats the mode, in both directions.",
        "From the pages; the contract lists the two side by side.",
    ),
    Row("sessions.read-only", _SOURCE, "In read_only mode an act that wants approval is refused as denied_read_only."),
    Row(
        "sessions.rule-mcp",
        _SOURCE,
        "Rules and read_only hold for MCP tools by their name mcp_<server>_<tool>.",
        "From the pages: read_only refuses tools their server does not mark read-only, and a rule may allow them.",
    ),
    Row(
        "sessions.mcp-asks",
        _SOURCE,
        "A rule that asks, or the mode per_step, has an MCP tool wait for approval; unapproved it is not called.",
        "The pages define neither for MCP tools; each step is what per_step asks about.",
    ),
    Row("sessions.list-order", _SOURCE, "Sessions are listed newest first, or oldest first when asked."),
    Row("sessions.list-entries", _SOURCE, "A listed session carries what it waits for."),
    Row("sessions.list-status", _SOURCE, "A list is narrowed to a status."),
    Row("sessions.list-source", _SOURCE, "A list is narrowed to a source, api or console."),
    Row("sessions.list-token", _SOURCE, "A list is narrowed to the token that created, me being the one that asks."),
    Row(
        "sessions.list-metadata",
        _SOURCE,
        "A list is narrowed to a label key:value.",
        "The first colon splits, so that values may have colons.",
    ),
    Row("sessions.list-filters", _SOURCE, "Several filters all hold, and pages are cut from what they leave."),
    Row("sessions.root", _SOURCE, "root lists the root itself and everything below it, and of a leaf the leaf."),
    Row(
        "sessions.root-depth",
        _SOURCE,
        "A tree is read 16 levels deep; deeper sessions are made but not listed.",
        "The root counts as the first level.",
    ),
    Row("sessions.root-unknown", _SOURCE, "An unknown root is not found, and named."),
    Row("sessions.delete", _SOURCE, "A deleted session and everything under it is not found."),
    Row("sessions.delete-twice", _SOURCE, "Deleting again is a 404."),
    Row("sessions.delete-running", _SOURCE, "Deleting ends a running turn without a trace and stops its agent."),
    Row("sessions.delete-list", _SOURCE, "A deleted session is in no list, and the others stay."),
)
