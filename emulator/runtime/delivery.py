"""Deliveries: what is owed to webhooks' receivers, sent when it is due and tried again when it failed.

Law: nothing goes out before the reply to the request that caused it has, and no reply waits for a delivery.
The deliveries of one subscription go out one after the other, those of different ones side by side. Deadlines
run on the emulator's clock; the time limit of an attempt and its timestamp are real (contract §11).
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextvars import Context
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from emulator import render
from emulator.clock import monotonic, real_now
from emulator.domain.notices import Notices
from emulator.domain.webhooks import PUBLICATION_SECONDS, Attempt, Delivery, reachable, signature
from emulator.redaction import Secret
from emulator.refusals import Refusal, not_found
from emulator.runtime.sender import Sender

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from emulator.clock import Clock, Timer
    from emulator.domain.notices import Notice
    from emulator.domain.session import Session, Turn
    from emulator.domain.webhooks import Misstep, Subscription
    from emulator.domain.world import Organization, World

# Attempts under way at once.
_AT_ONCE: Final = 16
# How far behind a scripted old timestamp is: receivers allow five minutes (contract §11).
_OLD_MS: Final = 600_000
_OTHER_SECRET: Final = Secret("whsec_of_somebody_else")


@dataclass(slots=True)
class _Lane:
    """What is due for one subscription, in order; `aside` is one that waits to be overtaken.

    What a reply waits for has a lane of its own: who handles the one before it may be waiting for that reply.
    """

    due: deque[Delivery] = field(default_factory=deque)
    aside: Delivery | None = None
    task: asyncio.Task[None] | None = None


@dataclass(slots=True)
class _Gate:
    """The writes of one organization that have no reply yet, by number, and what waits for their replies.

    `ahead` are deliveries a reply waits for, because a script wants them before it.
    """

    last: int = 0
    open: dict[int, None] = field(default_factory=dict)
    waiting: deque[tuple[int, Delivery]] = field(default_factory=deque)
    ahead: dict[Delivery, tuple[int, asyncio.Future[None]]] = field(default_factory=dict)


class Deliveries:
    """The webhook deliveries of one world, the latest of them kept for whoever asks."""

    def __init__(self, world: World, clock: Clock) -> None:
        self.script: list[Misstep] = []
        # What an explored run makes of a body.
        self.widened: Callable[[bytes], bytes] | None = None
        self.dropped = 0
        self._world = world
        self._clock = clock
        self._sender = Sender()
        self._notices = Notices()
        self._kept: deque[Delivery] = deque()
        self._lanes: dict[tuple[str, int], _Lane] = {}
        self._gates: dict[str, _Gate] = {}
        self._unpublished: dict[str, list[tuple[Delivery, Session, Turn]]] = {}
        self._timers: dict[Delivery, Timer] = {}
        self._slots = asyncio.Semaphore(_AT_ONCE)
        self._closed = False

    def __iter__(self) -> Iterator[Delivery]:
        """The deliveries that are kept, oldest first."""
        return iter(self._kept)

    # What there is to tell

    def pump(self, organization: Organization) -> None:
        """Owe what has happened since the last call to whoever subscribed to it."""
        if self._closed:
            return
        for notice in self._notices.read(organization):
            body = render.webhook_event(notice)
            for subscription in organization.webhooks.subscriptions:
                if subscription.wants(notice.type):
                    self._owe(subscription, notice, body)
        unpublished = self._unpublished.get(organization.id)
        if unpublished:
            for delivery, session, turn in list(unpublished):
                if turn.artifacts != "pending" or session.deleted:
                    self._published(organization.id, delivery)

    def withdraw(self, organization: Organization, session: Session) -> None:
        """Take back what waits for a reply about a session that was never opened after all."""
        gate = self._gates.get(organization.id, _Gate())
        for delivery in [*(delivery for _, delivery in gate.waiting), *self._timers]:
            if delivery.session_id == session.id:
                self._cancel(delivery)

    def unsubscribed(self, subscription: Subscription) -> None:
        """Cancel what a deleted subscription is still owed."""
        for delivery in self._owed(subscription):
            self._cancel(delivery)

    # Replies

    def begin(self, organization_id: str) -> int:
        """A write has come in: what it causes waits until `end`. Gives the number to end it by."""
        gate = self._gates.get(organization_id)
        if gate is None:
            gate = self._gates[organization_id] = _Gate()
        gate.last += 1
        gate.open[gate.last] = None
        return gate.last

    async def overtake(self, organization_id: str, number: int) -> None:
        """Before the reply to a write: wait for what a script has go out ahead of it."""
        gate = self._gates[organization_id]
        if gate.ahead:
            futures = [future for barrier, future in gate.ahead.values() if barrier >= number]
            if futures:
                await asyncio.wait(futures, timeout=self._world.settings.webhook_seconds)

    def end(self, organization_id: str, number: int) -> None:
        """The reply to a write is out."""
        gate = self._gates[organization_id]
        del gate.open[number]
        if gate.waiting:
            # Numbers rise, so the first that is open is the lowest.
            lowest = next(iter(gate.open), gate.last + 1)
            while gate.waiting and gate.waiting[0][0] < lowest:
                self._due(gate.waiting.popleft()[1])

    # Rest

    async def quiet(self, seconds: float) -> bool:
        """Wait until nothing is under way or due, at most real `seconds`. Whether that came."""
        until = monotonic() + seconds
        while tasks := [lane.task for lane in self._lanes.values() if lane.task is not None]:
            left = until - monotonic()
            if left <= 0:
                return False
            await asyncio.wait(tasks, timeout=left)
        return True

    @property
    def busy(self) -> bool:
        """Whether anything is under way or due."""
        return any(lane.task is not None for lane in self._lanes.values())

    async def redeliver(self, delivery_id: str) -> Delivery:
        """Send a delivery once more, now, and wait for what comes of it. Raises 404 and 409."""
        delivery = next((kept for kept in self._kept if kept.id == delivery_id), None)
        if delivery is None:
            raise not_found(f"No delivery {delivery_id!r} is kept.")
        if delivery.subscription.deleted:
            raise Refusal(
                "conflict", f"Webhook {delivery.subscription.id} was deleted, so nothing is sent to it any more."
            )
        if not self._reachable(delivery.subscription):
            raise Refusal(
                "conflict",
                "This delivery's address is not on this machine, so it is held. The setting `webhook_hosts` names the "
                "hosts that deliveries are sent to.",
            )
        succeeded = (await self._attempt(delivery, None)).succeeded
        if succeeded:
            self._stop_timer(delivery)
        if succeeded or delivery.state != "pending":
            delivery.step("deliver" if succeeded else "fail")
        return delivery

    async def close(self) -> None:
        """Stop sending; nothing is left running."""
        self._closed = True
        tasks = [lane.task for lane in self._lanes.values() if lane.task is not None]
        self._lanes.clear()
        for gate in self._gates.values():
            for _, future in gate.ahead.values():
                future.cancel()
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        await self._sender.close()

    # Inside

    def _owe(self, subscription: Subscription, notice: Notice, body: bytes) -> None:
        held = not self._reachable(subscription)
        misstep = None if held else self._take(notice.type)
        if misstep is not None and misstep.do in ("extra_data", "no_turn_id"):
            body = render.webhook_event(notice, misstep)
        if self.widened is not None:
            body = self.widened(body)
        subscription.made += 1
        delivery_id = self._world.ids.derive("whdel", subscription.id, subscription.made)
        delivery = Delivery(delivery_id, subscription, notice.session.id, notice.type, notice.created_at, body, misstep)
        self._keep(delivery)
        organization_id = subscription.organization
        if held:
            delivery.step("hold")
        elif misstep is not None and misstep.do == "drop":
            delivery.step("drop")
        elif notice.turn is not None and notice.turn.artifacts == "pending":
            waiting = (delivery, notice.session, notice.turn)
            self._unpublished.setdefault(organization_id, []).append(waiting)
            self._timers[delivery] = self._clock.call_in(
                PUBLICATION_SECONDS, lambda: self._published(organization_id, delivery)
            )
        else:
            self._ready(delivery)

    def _published(self, organization_id: str, delivery: Delivery) -> None:
        """What a turn left is published, or has been waited for long enough."""
        self._stop_timer(delivery)
        unpublished = self._unpublished[organization_id]
        unpublished[:] = [entry for entry in unpublished if entry[0] is not delivery]
        self._ready(delivery)

    def _ready(self, delivery: Delivery) -> None:
        """A delivery may go out as far as what it tells of is concerned."""
        gate = self._gates.get(delivery.subscription.organization)
        misstep = delivery.misstep
        if delivery.state != "pending":
            return
        if misstep is not None and misstep.do == "delay":
            self._timers[delivery] = self._clock.call_in(misstep.seconds or 0, lambda: self._due(delivery))
        elif gate is None or not gate.open:
            self._due(delivery)
        elif misstep is not None and misstep.do == "early":
            gate.ahead[delivery] = (gate.last, asyncio.get_running_loop().create_future())
            self._due(delivery)
        else:
            gate.waiting.append((gate.last, delivery))

    def _due(self, delivery: Delivery) -> None:
        """Put a delivery in its subscription's line, and see that somebody works on that."""
        self._timers.pop(delivery, None)
        if delivery.state != "pending" or self._closed:
            return
        gate = self._gates.get(delivery.subscription.organization)
        barrier = gate.ahead[delivery][0] if gate is not None and delivery in gate.ahead else 0
        key = (delivery.subscription.id, barrier)
        lane = self._lanes.setdefault(key, _Lane())
        misstep = delivery.misstep
        if misstep is not None and misstep.do == "reorder" and not delivery.attempts and lane.aside is None:
            lane.aside = delivery
            return
        lane.due.append(delivery)
        if lane.aside is not None and not delivery.attempts:
            lane.due.append(lane.aside)
            lane.aside = None
        if lane.task is None:
            # In a context of its own: made inside a turn, it would count, and end, with that turn's tasks.
            work = self._work(key, lane)
            lane.task = asyncio.get_running_loop().create_task(work, context=Context())

    async def _work(self, key: tuple[str, int], lane: _Lane) -> None:
        try:
            while lane.due:
                delivery = lane.due.popleft()
                if delivery.state == "pending":
                    async with self._slots:
                        await self._try(delivery)
                self._let_reply_go(delivery)
        finally:
            lane.task = None
            if lane.aside is None:
                self._lanes.pop(key, None)

    async def _try(self, delivery: Delivery) -> None:
        """Make the attempt that is due, and see to the next where it fails."""
        # Only the first goes wrong: what was meant to be refused arrives with the retry.
        misstep = None if delivery.tries else delivery.misstep
        succeeded = (await self._attempt(delivery, misstep)).succeeded
        if misstep is not None and misstep.do == "duplicate":
            succeeded = (await self._attempt(delivery, None)).succeeded or succeeded
        delivery.tries += 1
        if delivery.state != "pending":
            # Cancelled, or sent on request, meanwhile.
            return
        if succeeded:
            delivery.step("deliver")
        elif (seconds := delivery.fail(self._world.now())) is not None:
            self._timers[delivery] = self._clock.call_in(seconds, lambda: self._due(delivery))

    async def _attempt(self, delivery: Delivery, misstep: Misstep | None) -> Attempt:
        does = None if misstep is None else misstep.do
        secret = _OTHER_SECRET if does == "wrong_secret" else delivery.subscription.secret
        timestamp = str(real_now() - (_OLD_MS if does == "old_timestamp" else 0))
        headers = {
            "content-type": "application/json",
            "x-gobare-timestamp": timestamp,
            "x-gobare-signature": signature(secret, timestamp, delivery.body),
        }
        body = delivery.body[:-1] + b',"forged":true}' if does == "corrupt" else delivery.body
        attempt = Attempt(self._world.now())
        delivery.attempts.append(attempt)
        seconds = self._world.settings.webhook_seconds
        attempt.status, attempt.error = await self._sender.send(delivery.subscription.url, headers, body, seconds)
        return attempt

    def _let_reply_go(self, delivery: Delivery) -> None:
        gate = self._gates.get(delivery.subscription.organization)
        if gate is not None and delivery in gate.ahead:
            _, future = gate.ahead.pop(delivery)
            if not future.done():
                future.set_result(None)

    def _take(self, event_type: str) -> Misstep | None:
        """What the script has go wrong with the next delivery of a type."""
        for entry in self.script:
            if entry.type in (None, event_type):
                entry.times -= 1
                if not entry.times:
                    self.script.remove(entry)
                return entry
        return None

    def _keep(self, delivery: Delivery) -> None:
        self._kept.append(delivery)
        while len(self._kept) > self._world.settings.deliveries_limit:
            self._kept.popleft()
            self.dropped += 1

    def _owed(self, subscription: Subscription) -> list[Delivery]:
        """Everything pending of one subscription, wherever it waits."""
        lane = self._lanes.get((subscription.id, 0), _Lane())
        gate = self._gates.get(subscription.organization, _Gate())
        unpublished = self._unpublished.get(subscription.organization, ())
        found = [*lane.due, *(() if lane.aside is None else (lane.aside,)), *gate.ahead, *self._timers, *self._kept]
        found += [entry[1] for entry in gate.waiting] + [entry[0] for entry in unpublished]
        return [delivery for delivery in dict.fromkeys(found) if delivery.subscription is subscription]

    def _cancel(self, delivery: Delivery) -> None:
        self._stop_timer(delivery)
        if delivery.state == "pending":
            delivery.step("cancel")

    def _stop_timer(self, delivery: Delivery) -> None:
        timer = self._timers.pop(delivery, None)
        if timer is not None:
            timer.cancel()

    def _reachable(self, subscription: Subscription) -> bool:
        return reachable(subscription.url, self._world.settings.webhook_hosts)
