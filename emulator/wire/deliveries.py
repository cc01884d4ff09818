"""Deliveries: what webhooks were sent, and how the next of them are to go wrong. Control routes only."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field

from emulator.wire.common import Maybe, Milliseconds, Request, Response
from emulator.wire.webhooks import EventType

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


class Misstep(Request):
    """How the next deliveries go wrong. Where a receiver refuses what it got, the retry is as it should be."""

    do: Does = Field(
        description="duplicate: sent twice. delay: `seconds` later. drop: never sent. reorder: after the next one of "
        "its subscription. early: before the reply to the request that caused it. wrong_secret: signed with another "
        "one. old_timestamp: ten minutes old. corrupt: the body is changed after it was signed. extra_data: `data` is "
        "added to that of the event. no_turn_id: the `turn_id` is null."
    )
    type: Maybe[EventType] = Field(default=None, description="Only deliveries of this type; any when absent.")
    times: Annotated[int, Field(ge=1, le=1_000_000)] = Field(default=1, description="How many of them.")
    seconds: Maybe[Annotated[float, Field(ge=0, le=10**9)]] = Field(
        default=None, description="With delay, and only then: on the emulator's clock."
    )
    data: Maybe[Annotated[dict[str, Any], Field(min_length=1)]] = Field(
        default=None, description="With extra_data, and only then."
    )


class MisstepsRequest(Request):
    """What goes wrong from now on, in place of what was scripted before. A delivery takes the first that suits it."""

    script: Annotated[list[Misstep], Field(max_length=1000)]


class Missteps(Response):
    """What is still to go wrong, in order."""

    script: list[dict[str, Any]]


class DeliveryAttempt(Response):
    """One try at sending a delivery."""

    at: Milliseconds
    status: int | None = Field(description="What the receiver answered; null when it did not, or not yet.")
    error: str | None = Field(description="Why there is no answer.")


class Delivery(Response):
    """One event for one subscription, and what became of it."""

    id: str
    webhook_id: str
    organization: str
    session_id: str
    type: EventType
    url: str = Field(description="The address without its query.")
    state: DeliveryState = Field(
        description="held: not sent, as the address is not on this machine. dropped: by the script. cancelled: its "
        "subscription was deleted, or the session never opened."
    )
    created_at: Milliseconds
    attempts: list[DeliveryAttempt]
    body: dict[str, Any] = Field(description="What is sent, as JSON.")


class Deliveries(Response):
    """The latest deliveries, oldest first."""

    data: list[Delivery]
    dropped: int = Field(description="How many older ones no longer fit.")


class UndeliveredWebhook(Response):
    """A delivery that has not arrived: it is still owed, was given up on, or is held."""

    id: str
    webhook_id: str
    session_id: str
    type: EventType
    url: str
    state: Literal["pending", "dead", "held"]
    attempts: int
    last_error: str | None


class UndeletedWebhook(Response):
    """A subscription that is still there."""

    id: str
    url: str
    organization: str
    request_id: str | None = Field(description="The request it was made by.")
