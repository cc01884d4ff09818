"""Webhooks: subscriptions, what they are told of, how deliveries are signed, sent and tried again (contract §11)."""

from __future__ import annotations

from typing import Final

from tests.contract.manifest import Row

_S: Final = "contract §11"

ROWS: Final = (
    # Subscriptions
    Row("webhooks.create", _S, "A subscription is answered with its id, url, events, active and, this once, a secret."),
    Row("webhooks.secret-once", _S, "The secret, whsec_…, is in no other answer, in no journal, report or event."),
    Row(
        "webhooks.secret-replayed",
        _S,
        "The same idempotency key gets the same answer again, secret and all, and subscribes nothing.",
        "The idempotency page replays the stored answer; that is what saves a client whose first answer was lost.",
    ),
    Row("webhooks.https", _S, "An address that is not https, does not parse or has no host is refused."),
    Row(
        "webhooks.loopback",
        _S,
        "Plain http is accepted for this machine, and for hosts that the setting webhook_hosts names.",
        "The page knows https only; receivers under test listen on http on this machine.",
    ),
    Row(
        "webhooks.userinfo",
        _S,
        "An address with a user name or a password in it is refused.",
        "No page says; clients of the API's own platform cannot send to one, and secrets would be shown in lists.",
    ),
    Row("webhooks.unknown-event", _S, "An unknown event is refused by its place, with the list and what was meant."),
    Row("webhooks.all-events", _S, "No events, or an empty list, subscribes to all of them."),
    Row(
        "webhooks.repeated-event",
        _S,
        "An event named twice counts once, in the order they were sent.",
        "No page says; a set is what the events are compared as.",
    ),
    Row("webhooks.duplicate", _S, "The same address with exactly the same events is a conflict that names the first."),
    Row(
        "webhooks.duplicate-all",
        _S,
        "An empty list and a list of every type are the same events.",
        "The pages compare what is delivered: both would deliver everything twice.",
    ),
    Row(
        "webhooks.duplicate-query",
        _S,
        "The conflict shows the address without its query.",
        "The query of an address may have a secret in it, and refusals are kept in journals.",
    ),
    Row("webhooks.same-address", _S, "The same address with other events is another subscription."),
    Row("webhooks.list", _S, "A list has the time of creation and the health of deliveries, newest first, in pages."),
    Row("webhooks.delete", _S, "A deleted subscription is gone, and what it was still owed is not sent."),
    Row("webhooks.unknown", _S, "An unknown subscription and another organization's are 404 in the same words."),
    Row(
        "webhooks.organizations",
        _S,
        "An organization is told of its own sessions only, and sees its own subscriptions.",
    ),
    # What they are told of
    Row("webhooks.body", _S, "A delivery is object, type, created_at and data, which names the object and is not it."),
    Row("webhooks.created", _S, "Creating a session is told of, before anything that happens in it."),
    Row(
        "webhooks.created-fork",
        _S,
        "So is forking one.",
        "No page says; the fork is a session like any other.",
    ),
    Row(
        "webhooks.never-opened",
        _S,
        "Nothing is told of a session whose opening input was refused.",
        "The page on sessions says that no session remains; nobody could read what was named.",
    ),
    Row("webhooks.working", _S, "A turn that starts is told of as session.working; an answer that resumes it is not."),
    Row("webhooks.action-required", _S, "Each action is told of with its type, and can be read when it is."),
    Row(
        "webhooks.completed",
        _S,
        "A turn that completes is told of as session.idle, then turn.completed with its id.",
        "No page gives the order; turn.completed is the one that may have to wait.",
    ),
    Row(
        "webhooks.failed",
        _S,
        "A turn that fails is told of as session.failed, then turn.failed with its id; neither waits for publication.",
        "The page has only turn.completed wait for it.",
    ),
    Row(
        "webhooks.refused-start",
        _S,
        "A message refused for a required server is told of as session.failed alone.",
        "No turn opened, so there is none to tell of.",
    ),
    Row(
        "webhooks.cancelled",
        _S,
        "A cancelled turn is told of as session.idle alone.",
        "There is no type for it; the session is what changed.",
    ),
    Row(
        "webhooks.queue",
        _S,
        "With a message queued behind it a turn's end does not make the session idle or failed.",
        "The session works on; nobody could read it as quiet.",
    ),
    Row("webhooks.publication", _S, "turn.completed is sent once the turn's artifacts are published."),
    Row("webhooks.publication-late", _S, "After 30 seconds it is sent although they are not."),
    Row("webhooks.subscribed-later", _S, "What happened before a subscription was made is not told to it."),
    Row(
        "webhooks.deleted-session",
        _S,
        "What was owed when a session was deleted is still sent.",
        "No page says; it happened, and a receiver finds the session gone, as the guides have it expect.",
    ),
    Row(
        "webhooks.apart",
        _S,
        "Two events of one session and type never have the same created_at.",
        "Published receivers take session, type and created_at for the identity of an event; one ms is added.",
    ),
    # Deliveries
    Row(
        "webhooks.headers", _S, "A delivery is a POST with the content type, the time and the signature, nothing else."
    ),
    Row(
        "webhooks.signature",
        _S,
        "The signature is bare lowercase hex HMAC-SHA256 over the time, a dot and the raw body.",
    ),
    Row("webhooks.real-time", _S, "The time is that of the attempt, in real milliseconds whatever the clock says."),
    Row("webhooks.utf-8", _S, "A body is UTF-8 as it is, and its signature holds over those bytes."),
    Row("webhooks.after-the-reply", _S, "What a request caused is delivered after its reply."),
    Row("webhooks.no-waiting", _S, "No reply waits for a receiver."),
    Row("webhooks.reenter", _S, "A receiver may call the API before it answers."),
    Row(
        "webhooks.in-order",
        _S,
        "The deliveries of a subscription go out one after the other, in order; those of others beside them.",
        "The page promises no order; one that is the same each time is what tests need.",
    ),
    Row("webhooks.delivered", _S, "Any 2xx is a delivery."),
    Row(
        "webhooks.not-2xx",
        _S,
        "Any other status is a failure, a redirect too: it is not followed.",
        "The page says non-2xx; following would send what was signed for one address to another.",
    ),
    Row("webhooks.unreachable", _S, "No answer is a failure: a refused connection, or none in time."),
    Row("webhooks.retries", _S, "It is tried again after 1, 5, 30, 120 and 360 minutes, with the same body."),
    Row("webhooks.dead", _S, "After six attempts it is given up on, and the health says why and when."),
    Row(
        "webhooks.inactive",
        _S,
        "One delivery given up on makes the subscription inactive, for good; it is still told of what happens.",
        "The document says false once deliveries have been given up on, and that their number may keep climbing.",
    ),
    Row("webhooks.pending", _S, "What waits for a retry is pending."),
    Row(
        "webhooks.held",
        _S,
        "A delivery to another machine is held: it is on record, never sent, and neither pending nor dead.",
        "Nothing leaves this machine unless the setting webhook_hosts allows it.",
    ),
)
