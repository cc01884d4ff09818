"""Webhook subscriptions (contract §11)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from emulator import render
from emulator.api.call import Reply
from emulator.domain.pages import cut_by_id
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
    return Reply(render.page(cut_by_id(call.organization.webhooks.subscriptions, **call.paging), render.webhook))


async def delete_webhook(call: Call) -> Reply:
    """Forget a subscription and what it is still owed."""
    removed = call.organization.webhooks.remove(call.path["webhook_id"])
    call.deployment.deliveries.unsubscribed(removed)
    return Reply(render.deleted("webhook", removed.id))
