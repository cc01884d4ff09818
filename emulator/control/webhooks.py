"""Webhook deliveries: what was sent, sending it again, and having the next of them go wrong."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from emulator import render
from emulator.domain.webhooks import Misstep
from emulator.redaction import address
from emulator.refusals import invalid

if TYPE_CHECKING:
    from emulator.control.call import Call
    from emulator.domain.webhooks import Delivery
    from emulator.wire import deliveries as wire


async def get_deliveries(call: Call) -> Any:
    """The webhook deliveries that are kept, with every attempt; a delivery's body is what its receiver gets."""
    deliveries = call.deployment.deliveries
    return {"data": [_shown(delivery) for delivery in deliveries], "dropped": deliveries.dropped}


async def redeliver(call: Call) -> Any:
    """Send a delivery once more, now: the same body, with the time and the signature of this attempt."""
    return _shown(await call.deployment.deliveries.redeliver(call.path["delivery_id"]))


async def get_script(call: Call) -> Any:
    """What is still scripted to go wrong with deliveries."""
    return _script(call)


async def put_script(call: Call) -> Any:
    """Have the next deliveries go wrong, each as the first entry that suits it says."""
    body: wire.MisstepsRequest = call.body
    for n, entry in enumerate(body.script):
        for name, needed_by in (("seconds", "delay"), ("data", "extra_data")):
            given = getattr(entry, name) is not None
            if given != (entry.do == needed_by):
                verb = "takes no" if given else "needs"
                raise invalid(f"`script[{n}]`: {entry.do} {verb} `{name}`.")
    call.deployment.deliveries.script[:] = [Misstep(**entry.model_dump()) for entry in body.script]
    return _script(call)


async def delete_script(call: Call) -> Any:
    """Forget what was scripted for deliveries."""
    call.deployment.deliveries.script.clear()
    return _script(call)


def _script(call: Call) -> dict[str, Any]:
    entries = [asdict(entry) for entry in call.deployment.deliveries.script]
    return {"script": [{name: value for name, value in entry.items() if value is not None} for entry in entries]}


def _shown(delivery: Delivery) -> dict[str, Any]:
    return {
        "id": delivery.id,
        "webhook_id": delivery.subscription.id,
        "organization": delivery.subscription.organization,
        "session_id": delivery.session_id,
        "type": delivery.type,
        "url": address(delivery.subscription.url),
        "state": delivery.state,
        "created_at": delivery.created_at,
        "attempts": [asdict(attempt) for attempt in delivery.attempts],
        "body": render.decode(delivery.body),
    }
