"""Rows of contract §7 and §8: what a session waits for, and the answers."""

from __future__ import annotations

from typing import Final

from tests.contract.manifest import Row

ROWS: Final = (
    Row("actions.function-call", "contract §8", "A function call shows as a required action with name and arguments."),
    Row("actions.question", "contract §8", "A question's name is its text, its arguments the options as labels."),
    Row("actions.question-event", "contract §9", "The event of a question has its options as strings."),
    Row("actions.approval", "contract §8", "An approval's name is the tool, its arguments the tool's."),
    Row(
        "actions.status",
        "contract §8",
        "A session reads requires_action exactly while something is required.",
    ),
    Row("actions.same-call-id", "contract §8", "The event's toolCallId is the action's call_id."),
    Row("actions.created-at", "contract §8", "An action's created_at is the time of the event that asked."),
    Row("actions.turn-works-on", "contract §8", "A parked turn is still `working`."),
    Row("actions.several", "contract §8", "Several verbs park side by side, listed in the order they asked."),
    Row("actions.any-order", "contract §8", "Actions side by side are answered in any order, each on its own."),
    Row("actions.resumes", "contract §8", "The turn goes on, in the same turn, once all it waits for is answered."),
    Row("answers.accepted", "contract §7", "An answer that is delivered is `accepted`, in a reply of exact shape."),
    Row("answers.output", "contract §7", "The agent gets the output of a success, byte for byte."),
    Row("answers.error", "contract §7", "The agent gets the error of a failure, and no output."),
    Row("answers.resolved", "contract §9", "An accepted answer shows as tool.resolved with name and success."),
    Row("answers.tool-result-fields", "contract §7", "turn_id, call_id and success are required and of their types."),
    Row("answers.output-is-a-string", "contract §7", "An `output` that is not a string is refused."),
    Row(
        "answers.output-or-error",
        "contract §7",
        "Success takes `output` and no `error`; failure takes `error` and no `output`.",
        "The pages say `error` stands in place of `output`; both at once contradict `success`.",
    ),
    Row(
        "answers.unknown-pair", "contract §7", "An unknown pair is not_found, in words that begin `No pending action`."
    ),
    Row("answers.already-resolved", "contract §7", "A second answer is already_resolved and is discarded."),
    Row("answers.race", "contract §7", "Of many answers at the same moment exactly one is accepted."),
    Row("answers.wrong-event", "contract §7", "An answer of the wrong type is refused, and names the right event."),
    Row("answers.wrong-event-open", "contract §7", "An answer of the wrong type leaves the action open."),
    Row(
        "answers.wrong-event-words",
        "contract §2",
        "A tool result for another action says it is `not a function call`, in the words clients match.",
    ),
    Row("answers.approval", "contract §7", "An approval takes a boolean and the agent gets it."),
    Row("answers.approval-fields", "contract §7", "An approval needs call_id and a boolean `approved`."),
    Row("answers.question", "contract §7", "A question takes a non-empty answer and the agent gets it as written."),
    Row("answers.question-fields", "contract §7", "A question's answer needs call_id and a non-empty string."),
    Row(
        "answers.decision-outcome",
        "contract §7",
        "A delivered decision or answer is `accepted`.",
        "The outcome enum of the OpenAPI document was written for tool results only.",
    ),
    Row("answers.no-longer-pending", "contract §7", "A decision or answer nobody waits for is no_longer_pending."),
    Row("answers.first-decision-stands", "contract §7", "A second decision, whatever it says, changes nothing."),
    Row("lost.not-delivered", "contract §7", "The answer to a call the sandbox does not hold is not_delivered."),
    Row("lost.action-closes", "contract §7", "A lost call closes: the session reads working and requires nothing."),
    Row("lost.turn-stays", "contract §7", "The turn does not resume from a lost call; it still runs."),
    Row("lost.second-answer", "contract §7", "A second answer to a lost call is already_resolved."),
    Row("lost.side-by-side", "contract §7", "One lost call closes alone; the others are still waited for."),
    Row(
        "lost.silent",
        "contract §9",
        "A lost call's answer makes no tool.resolved event.",
        "Nothing was resolved for the agent; no source describes an event.",
    ),
    Row(
        "lost.ends-with-workspace", "contract §7", "A turn stuck on a lost call fails with its workspace, at two hours."
    ),
    Row(
        "lost.deadline",
        "contract §8",
        "The deadline of a lost call closes it, and the turn does not resume from it.",
        "The call fails when its time is over; the sandbox that would tell the agent does not hold it any more.",
    ),
    Row(
        "deadline.none", "contract §8", "Without timeout_seconds a call has no deadline; nor have approvals, questions."
    ),
    Row("deadline.expires-at", "contract §8", "`expires_at` is the time of asking plus timeout_seconds."),
    Row(
        "deadline.passes", "contract §8", "Past its deadline a call fails, the agent is told, and the turn carries on."
    ),
    Row("deadline.exact", "contract §8", "A call can be answered until its deadline, and not after."),
    Row(
        "deadline.late-answer",
        "contract §8",
        "A late answer is not_delivered and changes nothing, as often as it is sent.",
        "Pages say both not_found and not_delivered for a late answer; the contract decides for not_delivered.",
    ),
    Row("deadline.several", "contract §8", "Deadlines side by side pass in order, each at its own time."),
    Row("deadline.answered-in-time", "contract §8", "The deadline of an answered call means nothing any more."),
)
