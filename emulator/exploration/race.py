"""Races: somebody or something else was first when the client answers; requests in flight swap places."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice, takewhile
from typing import TYPE_CHECKING, Any, Final

from emulator.exploration.part import Part, Variant
from emulator.render import encode
from emulator.runtime.run import CallResult

if TYPE_CHECKING:
    from collections.abc import Sequence

    from emulator.domain.action import Action
    from emulator.domain.event_log import Event
    from emulator.domain.session import Session
    from emulator.domain.world import Organization
    from emulator.exploration.part import Sent
    from emulator.runtime.deployment import Deployment

# A client that does not wait for an answer before it sends its next request is found out by answers that
# take this long; one that does wait never has two requests under way.
_HOLD_SECONDS: Final = 0.005
# How long the first of two requests waits for the second, which the client may not send this time.
_PATIENCE_SECONDS: Final = 1.0

_EVENTS: Final = re.compile(r"/v1/sessions/([^/]+)/events")
_ASKING: Final = ("tool.required", "approval.requested", "question.asked")
_ANSWERS: Final = ("input.tool_result", "input.approval", "input.question_answer")

# What may come of the answer to each type of action, and how that is said.
_OUTCOMES: Final = {
    "function_call": ("accepted", "already_resolved", "not_delivered", "deadline", "cancelled"),
    "approval": ("accepted", "already_resolved", "deadline", "cancelled"),
    "question": ("accepted", "already_resolved", "cancelled"),
}
_SAID: Final = {
    "accepted": "it is accepted",
    "already_resolved": "somebody has answered it just before",
    "not_delivered": "the sandbox has just forgotten the call",
    "deadline": "its time has just run out",
    "cancelled": "the turn has just been cancelled",
}
_NAMED: Final = {"function_call": "the function call", "approval": "the approval of", "question": "the question"}


@dataclass(slots=True)
class _Flight:
    """A request under way: where it began and ended in the order of both."""

    identity: str
    shown: str
    writes: bool
    began: int
    ended: int | None = None

    def together(self, other: _Flight) -> bool:
        """Whether another, which began later, did so while this one was under way."""
        return self.ended is None or other.began < self.ended


class Race(Part):
    """A variant is `<n>:<outcome>`, of the answer to the n-th call, approval or question of the run; or
    `order:<a>-<b>`, where the request `a` is carried out before `b`, both named by what they are."""

    def __init__(self, deployment: Deployment, variant: str) -> None:
        super().__init__(deployment, variant)
        number, _, self._outcome = variant.partition(":")
        self._answer = int(number) if number.isdigit() else None
        self._sooner, _, self._later = self._outcome.partition("-") if number == "order" else ("", "", "")
        self._numbers: dict[str, int] = {}
        self._answered: dict[int, Action] = {}
        self._flights: dict[int, _Flight] = {}
        self._ticks = 0
        self._seen: dict[str, int] = {}
        self._sooner_over = asyncio.Event()

    def variants(self) -> Sequence[Variant]:
        found = []
        for number, action in sorted(self._answered.items()):
            for outcome in _OUTCOMES[action.type]:
                if outcome != "deadline" or action.type == "approval" or action.expires_at is not None:
                    about = f"as {_NAMED[action.type]} {action.name!r} is answered, {_SAID[outcome]}"
                    found.append(Variant(f"race:{number}:{outcome}", about))
        flights = list(self._flights.values())
        for n, one in enumerate(flights):
            # In the order they began: one that began after the end of another ends the search.
            for other in takewhile(one.together, islice(flights, n + 1, None)):
                if one.writes or other.writes:
                    about = f"{other.shown} is carried out before {one.shown}, which was sent at the same time"
                    found.append(Variant(f"race:order:{other.identity}-{one.identity}", about))
        return found

    def happened(self, organization: Organization, events: Sequence[Event]) -> None:
        for event in events:
            if event.type in _ASKING:
                call_id = organization.log.payload(event)["toolCallId"]
                self._numbers.setdefault(f"{event.session_id} {call_id}", len(self._numbers) + 1)

    async def before(self, sent: Sent) -> None:
        if not self.variant:
            self._flights[sent.number] = _Flight(
                self._identity(sent), _shown(sent), sent.verb != "GET", began=self._tick()
            )
            await self.deployment.clock.pause(_HOLD_SECONDS)
        elif self._sooner:
            await self._wait(sent)
        found = self._asked(sent)
        if found is None:
            return
        session, action, number = found
        if not self.variant:
            self._answered.setdefault(number, action)
        elif number == self._answer and not self.reached:
            self.reached = self._force(sent, session, action)

    def after(self, number: int) -> None:
        flight = self._flights.pop(number, None) if self.variant else self._flights.get(number)
        if flight is None:
            return
        flight.ended = self._tick()
        if flight.identity == self._sooner:
            self._sooner_over.set()

    def _tick(self) -> int:
        self._ticks += 1
        return self._ticks

    def _identity(self, sent: Sent) -> str:
        """What names a request in every run: its content, and the how-manieth of its like it is."""
        content = _digest(b"\0".join((sent.verb.encode(), sent.path.encode(), encode(_plain(sent.body)))))
        nth = self._seen[content] = self._seen.get(content, 0) + 1
        return _digest(f"{content} {nth}".encode())

    async def _wait(self, sent: Sent) -> None:
        """Have the one of the two requests that is to be the later wait for the other."""
        identity = self._identity(sent)
        self._flights[sent.number] = _Flight(identity, "", False, began=self._tick())
        if identity != self._later:
            return
        if not self._sooner_over.is_set():
            patience = asyncio.ensure_future(self.deployment.clock.pause(_PATIENCE_SECONDS))
            over = asyncio.ensure_future(self._sooner_over.wait())
            try:
                await asyncio.wait((patience, over), return_when=asyncio.FIRST_COMPLETED)
            finally:
                patience.cancel()
                over.cancel()
        self.reached = self._sooner_over.is_set()

    def _asked(self, sent: Sent) -> tuple[Session, Action, int] | None:
        """The open action a request answers, and its number."""
        place = _EVENTS.fullmatch(sent.path)
        event = _event(sent)
        if place is None or event.get("type") not in _ANSWERS:
            return None
        session = sent.organization.find(place[1])
        action = None if session is None else session.actions.get(str(event.get("call_id")))
        if session is None or action is None or action.state != "open" or action.lost:
            return None
        number = self._numbers.get(f"{session.id} {action.call_id}")
        return None if number is None else (session, action, number)

    def _force(self, sent: Sent, session: Session, action: Action) -> bool:
        """Have come of the answer what the variant says. Whether that can come of it."""
        engine, organization = self.deployment.engine, sent.organization
        match self._outcome:
            case "already_resolved":
                self._answer_first(sent, session, action)
            case "not_delivered" if action.type == "function_call":
                engine.actions.lose(action)
            case "cancelled":
                engine.cancel(organization, session)
            case "deadline" if action.type == "approval":
                engine.actions.approval(organization, session, action.call_id, False, "approval_timeout")
            case "deadline" if action.expires_at is not None:
                clock = self.deployment.clock
                clock.jump(max(0, action.expires_at - clock.now()) / 1000)
                engine.actions.expire(session, action)
            case outcome:
                return outcome == "accepted"
        return True

    def _answer_first(self, sent: Sent, session: Session, action: Action) -> None:
        """Another answers: a call as this client does, an approval and a question otherwise if possible."""
        actions, event = self.deployment.engine.actions, _event(sent)
        match action.type:
            case "function_call":
                result = CallResult(event.get("success") is True, _text(event, "output"), _text(event, "error"))
                actions.tool_result(sent.organization, session, action.turn_id, action.call_id, result)
            case "approval":
                approved = event.get("approved") is not True
                actions.approval(sent.organization, session, action.call_id, approved)
            case "question":
                mine = str(event.get("answer"))
                labels = [option["label"] for option in action.arguments.get("options") or ()]
                other = next((label for label in labels if label != mine), mine)
                actions.question_answer(sent.organization, session, action.call_id, other)


def _digest(content: bytes) -> str:
    return blake2b(content, digest_size=4).hexdigest()


def _event(sent: Sent) -> dict[str, Any]:
    events = sent.body.get("events") if isinstance(sent.body, dict) else None
    first = events[0] if isinstance(events, list) and events else None
    return first if isinstance(first, dict) else {}


def _text(event: dict[str, Any], name: str) -> str | None:
    value = event.get(name)
    return value if isinstance(value, str) else None


def _shown(sent: Sent) -> str:
    kind = _event(sent).get("type")
    return f"{sent.verb} {sent.path}" + (f" ({kind})" if isinstance(kind, str) else "")


def _plain(body: Any) -> Any:
    """A body whose keys stand in one order."""
    if isinstance(body, dict):
        return {key: _plain(body[key]) for key in sorted(body)}
    if isinstance(body, list):
        return [_plain(entry) for entry in body]
    return None if isinstance(body, bytes) else body
