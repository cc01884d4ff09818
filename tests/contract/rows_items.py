"""Rows of contract §8: the items of a transcript."""

from __future__ import annotations

from typing import Final

from tests.contract.manifest import Row

ROWS: Final = (
    Row("items.shape", "contract §8", "An item has object, id, session_id, type, created_at and detail."),
    Row("items.message", "contract §8", "A message has role and content: `user` for the user's, else `assistant`."),
    Row(
        "items.role-on-messages-only",
        "contract §8",
        "`role` and `content` are absent on every other item.",
        "The OpenAPI document says `empty`; absent is what the contract decides for.",
    ),
    Row("items.detail", "contract §8", "`detail` is on every item: the event's name and the event's payload."),
    Row("items.created-at", "contract §8", "An item has the time of the event it was made from."),
    Row("items.tool-call", "contract §8", "A tool call and its result are two tool_call items, told apart by event."),
    Row("items.command", "contract §8", "The result of a bash call is a command_execution with `exitCode`."),
    Row(
        "items.file-change",
        "contract §8",
        "A changed file is a file_change, its event file.created, modified, deleted.",
    ),
    Row(
        "items.host-function",
        "contract §8",
        "A host function's tool.required and tool.resolved are tool_call items.",
        "No source shows items for them; the contract decides they are in the transcript.",
    ),
    Row("items.approval", "contract §8", "An approval asked for and resolved makes an approval item each."),
    Row("items.question", "contract §8", "A question asked and answered makes a question item each."),
    Row("items.context", "contract §8", "Context makes a context item."),
    Row("items.error", "contract §8", "An error makes an error item with its message in `detail`."),
    Row(
        "items.mcp-unavailable",
        "contract §5",
        "A skipped server makes an mcp_unavailable item with server and reason, at top level and in `detail`.",
        "The tools page shows `server`, the OpenAPI examples `name`: both are in `detail`, `server` at top level.",
    ),
    Row("items.from-these-events", "contract §8", "Items come from the listed events and from no other."),
    Row("items.order", "contract §8", "Items are in the order of their events, and keep their ids."),
)
