"""Webhook subscriptions (contract §11)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from emulator import render
from emulator.api.call import Reply
from emulator.api.sessions import paging
from emulator.domain.pages import cut
from emulator.domain.webhooks import check_url

if TYPE_CHECKING:
    from emulator.api.call import Call
    from emulator.wire import webhooks as wire


async def create_webhook(call: Call) -> Reply:
    """Subscribe an address. The only answer that has the secret."""
    body: wire.WebhookCreateRequest = call.body
    check_url(body.url, call.world.settings.webhook_hosts)
    organization = call.organization
    # What happened before is not told to who subscribes now.
    call.deployment.deliveries.pump(organization)
    made = organization.webhooks.subscribe(body.url, body.events or (), call.world.now(), call.request_id)
    return Reply(render.webhook(made, created=True))


async def list_webhooks(call: Call) -> Reply:
    """A page of the organization's subscriptions."""
    webhooks = call.organization.webhooks
    page = cut(webhooks.subscriptions, webhooks.position, lambda entry: entry.id, **paging(call.query))
    return Reply(render.page(page, render.webhook))


async def delete_webhook(call: Call) -> Reply:
    """Forget a subscription and what it is still owed."""
    removed = call.organization.webhooks.remove(call.path["webhook_id"])
    call.deployment.deliveries.unsubscribed(removed)
    return Reply(render.deleted("webhook", removed.id))
