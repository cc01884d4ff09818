"""HTTP faults: having requests go wrong, and what became of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from emulator.refusals import invalid, not_found

if TYPE_CHECKING:
    from emulator.control.call import Call
    from emulator.wire import faults as wire


async def get_faults(call: Call) -> Any:
    """The faults, in the order they were added, with how often each has happened. A reset forgets them."""
    return {"faults": [fault.as_json() for fault in call.deployment.faults]}


async def post_fault(call: Call) -> Any:
    """Have requests to /v1 go wrong from the next one on. A request meets the first fault that is due."""
    body: wire.FaultRequest = call.body
    match, asked = body.given()
    token = match.get("token")
    if token is not None and "gbr_pat_" not in token and not call.world.access.knows(token):
        raise invalid("`match.token` must be the id of a token, and there is none with this id.")
    return call.deployment.faults.add(match, **asked).as_json()


async def delete_faults(call: Call) -> Any:
    """Forget all faults. What they are in the middle of goes on."""
    call.deployment.faults.remove(lambda fault: True)
    return {"faults": []}


async def delete_fault(call: Call) -> Any:
    """Forget one fault. Gives what became of it."""
    fault_id = call.path["fault_id"]
    fault = next((fault for fault in call.deployment.faults if fault.id == fault_id), None)
    if fault is None:
        raise not_found(f"No fault {fault_id!r}.")
    call.deployment.faults.remove(lambda one: one is fault)
    return fault.as_json()
