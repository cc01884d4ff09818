"""The catalogue: each rule by its id, with what its finding says and where the README explains it.

Law: a message says what went wrong, why that matters and what to do; it holds no value of any request.
"""

from __future__ import annotations

from typing import Final

MESSAGES: Final[dict[str, str]] = {
    "project-limit-retried": (
        "The same write was sent again after `project_limit_exceeded` without anything having been deleted. Waiting "
        "frees no place; delete a session you are done with, then send it again."
    ),
    "retry-too-soon": (
        "A call was repeated before the seconds its refusal gave in `Retry-After` had passed. The API says there when "
        "it can succeed; sooner only spends requests. Wait that long."
    ),
    "previous-answer-taken": (
        "After a message was taken, only what an earlier turn had left was read, and the new turn's answer never was. "
        "Wait until the turn of that message has settled, then read its items."
    ),
    "subscribed-late": (
        "An event stream was opened without a cursor after the turn had begun, and what the agent did before that "
        "was never read. Such a stream shows only what comes next: open it before sending, or pass "
        "`last_event_id`."
    ),
    "resumed-without-cursor": (
        "A stream that had ended during a turn was opened again without a cursor, and the events in between were never "
        "read. Send the last `id:` you saw as `Last-Event-ID`, and everything after it is replayed."
    ),
    "polled-turn-only": (
        "The turn was read again and again while its session waited for an answer, which nothing the client read told "
        "it. A waiting turn reads `working`; what it waits for is in the session's `required_actions`."
    ),
    "answered-with-tool-result": (
        "An approval or a question was answered with `input.tool_result`, which was refused, so the turn still waited. "
        "Look at the action's `type`: approvals take `input.approval`, questions `input.question_answer`."
    ),
    "waited-after-not-delivered": (
        "An answer came back `not_delivered`, and the client went on waiting for the turn. The sandbox no longer holds "
        "that call, so the turn does not go on from it: send a new message, or cancel."
    ),
    "empty-artifacts-taken": (
        "The artifacts were listed while the turn's were still `pending`, the list was empty, and it was taken for "
        "the result although the turn had left files. Read the turn until `artifacts` is no longer `pending`."
    ),
    "written-twice": (
        "The same write was sent twice without an idempotency key, and so it happened twice. Send one "
        "`Idempotency-Key` for each thing to be done, the same one with every try."
    ),
    "key-reused": (
        "An idempotency key was sent again with another body. The answer was the first one's, and the second body was "
        "not acted on: use a new key for a new request."
    ),
    "exception-in-error": (
        "A tool call's `error` was the text of an exception or a stack trace. The agent reads it and acts on it: say "
        "in a sentence what did not work and what to try instead, and keep the trace in your log."
    ),
    "read-back-sent": (
        "Tools were sent as a read had shown them, with `redacted`, and were refused. A read holds secrets back: keep "
        "the configuration yourself and send it with its secrets."
    ),
    "mcp-outage-unread": (
        "An optional MCP server was down when the workspace came up, so the agent worked without its tools, and the "
        "client read nothing of it. Look for `mcp.unavailable` on the stream or `mcp_unavailable` among the items, "
        "or set `required: true`."
    ),
    "tools-not-reached": (
        "Tools were replaced while the workspace ran, and the client counted on the running agent having them in its "
        "next turn. The newest documentation has them arrive with the next workspace only: put them in "
        "place before the first message, or open a new session."
    ),
    "scopes-unused": (
        "A token was minted with scopes it never used. Whoever gets hold of it can do all it allows: mint it with "
        "those it needs."
    ),
}


def link(finding_id: str) -> str:
    """Where the README says more."""
    return f"README.md#finding-{finding_id}"
