"""Rows of contract §7: what can be sent to a session, and what becomes of it."""

from __future__ import annotations

from typing import Final

from tests.contract.manifest import Row

ROWS: Final = (
    Row("input.one-event", "contract §7", "A request holds exactly one event; none, two or no list is refused."),
    Row("input.unknown-type", "contract §7", "An unknown event type is refused, with the seven there are."),
    Row("input.unknown-field", "contract §7", "A field an event type does not know is refused by its full path."),
    Row("input.refused-changes-nothing", "contract §7", "A refused event leaves no turn, item or event behind."),
    Row("input.no-session", "contract §7", "Input to a session that does not exist is not_found, whatever its type."),
    Row("input.reply", "contract §7", "The reply is 202 input.accepted with the session, the type and nothing else."),
    Row("input.no-turn-id", "contract §7", "The reply to a message names no turn."),
    Row("input.content-text", "contract §7", "Content is a non-empty string or a list of input_text parts."),
    Row(
        "input.content-parts",
        "contract §7",
        "The texts of several parts make one message.",
        "They are joined without anything in between: no source says how, and nothing is added to what was sent.",
    ),
    Row(
        "input.content-blank",
        "contract §7",
        "Content of white space alone is refused as empty.",
        "The contract says `non-empty`; a blank message cannot be meant, and being strict shows the mistake.",
    ),
    Row("input.message-idle", "contract §7", "A message to an idle session is not queued and has no position."),
    Row(
        "input.message-visible",
        "contract §6",
        "When the reply to a message is there, so is its turn, `working`, and the session is not idle.",
    ),
    Row("input.message-queued", "contract §7", "A message behind a running turn is queued, with its place from 1."),
    Row("input.message-parked", "contract §7", "A parked turn is running: a message waits behind it."),
    Row("input.queue-order", "contract §7", "Queued messages run one after another, in the order they came."),
    Row("input.queue-full", "contract §7", "The sixth waiting message is refused with queue_full and Retry-After."),
    Row("input.queue-frees", "contract §7", "A place in the queue is free again once its message has started."),
    Row("input.queue-limit", "contract §7", "How many may wait is a setting, 5 by default."),
    Row("input.queue-race", "contract §7", "Messages sent at the same moment get different places and none is lost."),
    Row(
        "input.queue-events",
        "contract §9",
        "Waiting shows as message.queued with text and position, starting as message.dequeued with the text.",
        "`message.dequeued` carries no position: the OpenAPI example has none.",
    ),
    Row(
        "input.queue-user-message",
        "contract §9",
        "The user.message event and item of a queued message appear when its turn starts, not while it waits.",
        "No source says when; the transcript is then in the order the agent met things.",
    ),
    Row("input.context-no-turn", "contract §7", "Context runs no turn and wakes no sandbox."),
    Row("input.context-shown", "contract §7", "Context makes a user.context event and a context item."),
    Row(
        "input.context-delivered",
        "contract §7",
        "`delivered` is true whenever the sandbox is up, and false before its start and while it is paused.",
        "One page says a running agent took it there and then; the contract decides for the sandbox.",
    ),
    Row("input.context-deferred", "contract §7", "Context sent while a turn runs lands after it, in the order sent."),
    Row(
        "input.context-before-queue",
        "contract §7",
        "Context sent behind a running turn lands before the queued turn that follows.",
        "It lands after the turn it was sent in, and the next turn is built with it.",
    ),
    Row("input.steer", "contract §7", "A steer reaches the running turn and does not end what it waits for."),
    Row(
        "input.steer-silent",
        "contract §7",
        "A steer makes no event and no item.",
        "No event of its own is documented, so none is emitted.",
    ),
    Row("input.steer-conflict", "contract §7", "A steer with no turn running is refused with conflict."),
    Row(
        "input.steer-between",
        "contract §7",
        "Between two queued turns, while the next one's servers are connected to, a steer reaches that one.",
        "The sources refuse a steer when no turn runs; here one is about to, and its message was taken long ago.",
    ),
    Row("input.cancel-never-refused", "contract §7", "Cancel is accepted with nothing to cancel, and does nothing."),
    Row(
        "input.cancel-unbegun",
        "contract §7",
        "A turn that is cancelled before it has begun shows turn.started, then turn.ended.",
        "The sources do not say. A reader that waits for turn.ended must not hang, and one that pairs the two must not "
        "meet an end without a beginning.",
    ),
    Row("input.cancel-settles", "contract §7", "Cancel settles the turn as cancelled, with no error."),
    Row(
        "input.cancel-status",
        "contract §7",
        "A session whose turn was cancelled reads idle.",
        "`failed` is the outcome of a failed turn; the webhook of a cancel is session.idle.",
    ),
    Row("input.cancel-drops-actions", "contract §7", "Cancel drops the open actions; nothing is waited for any more."),
    Row(
        "input.cancel-late-answers",
        "contract §7",
        "An answer to a call dropped by cancel is not_found; to an approval or question, no_longer_pending.",
        "The pages call the pair unknown once the turn has moved on.",
    ),
    Row(
        "input.cancel-aborts-approval",
        "contract §9",
        "An approval dropped by cancel is resolved by the platform with the code `aborted`.",
        "The code exists in the vocabulary, and nothing else would use it.",
    ),
    Row("input.cancel-keeps", "contract §7", "Cancel keeps the items and publishes what is under outputs."),
    Row(
        "input.cancel-queue",
        "contract §7",
        "After a cancel the queue goes on with the next message.",
        "No source says; a queued message was accepted, so it runs.",
    ),
    Row("input.cancel-once", "contract §7", "Only the running turn is cancelled, not the ones that wait."),
    Row("input.cancel-race", "contract §7", "An answer and a cancel at the same moment settle the turn once."),
)
