"""Webhooks: subscriptions, as they are made and read (contract §11)."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from emulator.wire.common import ADDRESS, Deleted, Maybe, Milliseconds, Page, Request, Response

EventType: TypeAlias = Literal[
    "session.created",
    "session.action_required",
    "session.working",
    "session.idle",
    "session.failed",
    "turn.completed",
    "turn.failed",
]
Events = Annotated[list[EventType], Field(description="What the address is told of; an empty list means everything.")]
Active = Annotated[bool, Field(description="False once a delivery has been given up on.")]


class WebhookCreateRequest(Request):
    """An address to be told of what happens."""

    url: str = Field(
        min_length=1,
        description="Where deliveries are sent: https, or http on this machine.",
        json_schema_extra=ADDRESS,
    )
    events: Maybe[Events] = Field(default=None, description="Everything when absent or empty.")


class WebhookSubscriptionCreated(Response):
    """A new subscription. Its secret is told here only."""

    object: Literal["webhook.subscription"]
    id: str
    url: str
    events: Events
    active: Active
    secret: str = Field(repr=False, description="The key of every delivery's signature.")


class WebhookDeliveryHealth(Response):
    """Whether an address receives what it is sent."""

    pending: int = Field(ge=0, description="Owed and not delivered yet, those that wait for a retry included.")
    dead: int = Field(ge=0, description="Given up on after six attempts.")
    last_error: str | None = Field(description="Why the latest of those failed: a status, or what went wrong.")
    last_failed_at: Milliseconds | None = Field(description="When it was given up on; null when none was.")


class WebhookSubscription(Response):
    """An address that is told of what happens."""

    object: Literal["webhook.subscription"]
    id: str
    url: str
    events: Events
    active: Active
    created_at: Milliseconds
    delivery: WebhookDeliveryHealth


class WebhookSubscriptionList(Page[WebhookSubscription]):
    """A page of subscriptions."""


class WebhookDeleted(Deleted):
    """The subscription is gone; what it was still owed is not sent."""

    object: Literal["webhook.deleted"]
