"""Webhooks: who is told of what, and how a delivery gets from owed to delivered or given up on (contract §11).

Law: a delivery's state changes through the table below and nowhere else. Its body is made once; what is
signed is the exact bytes sent, with the time of the attempt in front.
"""

from __future__ import annotations

import hmac
import re
from dataclasses import dataclass, field
from hashlib import sha256
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias
from urllib.parse import urlsplit

from emulator.domain.transitions import step
from emulator.redaction import Secret, address
from emulator.refusals import Refusal, invalid, not_found

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from emulator.ids import Ids

TYPES: Final = (
    "session.created",
    "session.action_required",
    "session.working",
    "session.idle",
    "session.failed",
    "turn.completed",
    "turn.failed",
)
# Seconds between one failed attempt and the next.
RETRY_SECONDS: Final = (60, 300, 1800, 7200, 21_600)
PUBLICATION_SECONDS: Final = 30

_NAME: Final = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*\.?")

DeliveryState: TypeAlias = Literal["pending", "delivered", "dead", "held", "dropped", "cancelled"]
Does: TypeAlias = Literal[
    "duplicate",
    "delay",
    "drop",
    "reorder",
    "early",
    "wrong_secret",
    "old_timestamp",
    "corrupt",
    "extra_data",
    "no_turn_id",
]

# Whatever is no longer owed can be sent once more on request; what comes of that takes nothing back.
DELIVERY: Final[Mapping[tuple[str, str], DeliveryState]] = {
    ("pending", "deliver"): "delivered",
    ("pending", "fail"): "pending",
    ("pending", "give_up"): "dead",
    ("pending", "hold"): "held",
    ("pending", "drop"): "dropped",
    ("pending", "cancel"): "cancelled",
    ("delivered", "deliver"): "delivered",
    ("delivered", "fail"): "delivered",
    ("dead", "deliver"): "delivered",
    ("dead", "fail"): "dead",
    ("held", "deliver"): "delivered",
    ("held", "fail"): "held",
    ("dropped", "deliver"): "delivered",
    ("dropped", "fail"): "dropped",
    ("cancelled", "fail"): "cancelled",
    ("cancelled", "deliver"): "delivered",
}


@dataclass(slots=True)
class Subscription:
    """An address and what it is told of; no `events` means all. `failed_at` is that of the last one given up on."""

    id: str
    organization: str
    url: str
    events: tuple[str, ...]
    secret: Secret
    created_at: int
    active: bool = True
    deleted: bool = False
    pending: int = 0
    dead: int = 0
    last_error: str | None = None
    last_failed_at: int | None = None
    request_id: str | None = None
    made: int = 0

    @property
    def kinds(self) -> frozenset[str]:
        """The types it gets."""
        return frozenset(self.events or TYPES)

    def wants(self, event_type: str) -> bool:
        """Whether it gets that type."""
        return not self.events or event_type in self.events


@dataclass(slots=True)
class Attempt:
    """One try at sending: when, on the emulator's clock, and the status or the error it ended with."""

    at: int
    status: int | None = None
    error: str | None = None

    @property
    def succeeded(self) -> bool:
        return self.status is not None and 200 <= self.status < 300


@dataclass(slots=True)
class Misstep:
    """How the next `times` deliveries go wrong; of one type, or of any. `seconds` of a delay, `data` that is added."""

    do: Does
    type: str | None = None
    times: int = 1
    seconds: float | None = None
    data: dict[str, Any] | None = None


@dataclass(slots=True, eq=False)
class Delivery:
    """One event owed to one subscription. `tries` counts the attempts of the schedule, not those on request."""

    id: str
    subscription: Subscription
    session_id: str
    type: str
    created_at: int
    body: bytes
    misstep: Misstep | None = None
    state: DeliveryState = "pending"
    tries: int = 0
    attempts: list[Attempt] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.subscription.pending += 1

    def step(self, command: str) -> None:
        """Move the state; the health of the subscription follows. Raises `IllegalTransition`."""
        after = step(DELIVERY, self.state, command)
        self.subscription.pending += (after == "pending") - (self.state == "pending")
        self.subscription.dead += (after == "dead") - (self.state == "dead")
        self.state = after

    @property
    def error(self) -> str | None:
        """Why the latest attempt that has ended failed, if it did: a status, or what went wrong."""
        ended = [attempt for attempt in self.attempts if attempt.status or attempt.error]
        if not ended or ended[-1].succeeded:
            return None
        return ended[-1].error or f"status {ended[-1].status}"

    def fail(self, now: int) -> int | None:
        """The schedule's attempt has failed. Gives the seconds to the next, or `None` where it was the last."""
        if self.tries <= len(RETRY_SECONDS):
            self.step("fail")
            return RETRY_SECONDS[self.tries - 1]
        self.step("give_up")
        subscription = self.subscription
        subscription.active = False
        subscription.last_error = self.error
        subscription.last_failed_at = now
        return None


class Webhooks:
    """The subscriptions of one organization, oldest first."""

    def __init__(self, organization_id: str, ids: Ids) -> None:
        self.subscriptions: list[Subscription] = []
        self._organization = organization_id
        self._ids = ids
        self._made = 0

    def subscribe(self, url: str, events: Sequence[str], now: int, request_id: str | None = None) -> Subscription:
        """A new subscription. Raises 409 where the same address is told of the same already."""
        kinds = tuple(dict.fromkeys(events))
        wanted = frozenset(kinds or TYPES)
        for other in self.subscriptions:
            if other.url == url and other.kinds == wanted:
                raise Refusal(
                    "conflict",
                    f"This organization already subscribes {address(url)} to exactly these events, as {other.id}. "
                    "Delete it first if you want a new secret, or subscribe a different address — a second identical "
                    "subscription would deliver everything twice.",
                )
        self._made += 1
        webhook_id = self._ids.derive("whsub", self._organization, self._made)
        secret = Secret(self._ids.derive("whsec", self._organization, self._made, length=32))
        made = Subscription(webhook_id, self._organization, url, kinds, secret, now, request_id=request_id)
        self.subscriptions.append(made)
        return made

    def position(self, webhook_id: str) -> int | None:
        """Where a subscription stands, or `None`."""
        return next((n for n, entry in enumerate(self.subscriptions) if entry.id == webhook_id), None)

    def remove(self, webhook_id: str) -> Subscription:
        """Forget a subscription. Raises 404 in the same words whether it never was or is another's."""
        place = self.position(webhook_id)
        if place is None:
            raise not_found(f"No webhook {webhook_id!r}.")
        removed = self.subscriptions.pop(place)
        removed.deleted = True
        return removed


def check_url(url: str, hosts: Collection[str]) -> None:
    """Raise 400 for an address that no delivery goes to. `hosts` may have plain http beside those of this machine."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        host = None
    if not host or not _is_host(host) or any(character <= " " or character == "\x7f" for character in url):
        raise invalid("`url` must be an absolute https address with a host, such as https://you.example.com/hooks.")
    if parts.scheme not in ("https", "http"):
        raise invalid("`url` must be an https address; another scheme was sent.")
    if parts.username is not None or parts.password is not None:
        raise invalid("`url` must not have a user name or a password in it: a delivery proves itself by its signature.")
    if parts.scheme == "http" and not reachable(url, hosts):
        raise invalid(
            "`url` must be an https address; plain http is accepted for this machine only (localhost, 127.0.0.1, "
            "[::1]) and for the hosts that the emulator's setting `webhook_hosts` names."
        )


def reachable(url: str, hosts: Collection[str]) -> bool:
    """Whether deliveries to an address are sent: it is on this machine, or a host that was named; `*` is any."""
    host = urlsplit(url).hostname or ""
    return "*" in hosts or _loopback(host) or host in {name.lower() for name in hosts}


def signature(secret: Secret, timestamp: str, body: bytes) -> str:
    """What `x-gobare-signature` says: bare lowercase hex over the time and the raw body (contract §11)."""
    return hmac.new(secret.reveal().encode(), timestamp.encode() + b"." + body, sha256).hexdigest()


def _is_host(host: str) -> bool:
    """Whether it is an address or a name that could be looked up, an internationalised one included."""
    if ":" in host:
        return True
    try:
        return _NAME.fullmatch(host.encode("idna").decode()) is not None
    except UnicodeError:
        return False


def _loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
