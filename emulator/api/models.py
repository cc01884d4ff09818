"""Model connectors and the organization's model credentials (contract §12)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from emulator import render
from emulator.api.call import Reply
from emulator.domain.catalogue import CONNECTORS
from emulator.domain.connections import Wanted
from emulator.domain.pages import cut_by_id
from emulator.redaction import Secret

if TYPE_CHECKING:
    from emulator.api.call import Call
    from emulator.wire import models as wire


async def list_connectors(call: Call) -> Reply:
    """The model providers that can be connected. Needs no token."""
    return Reply({"object": "list", "data": [render.model_connector(connector) for connector in CONNECTORS]})


async def create_credential(call: Call) -> Reply:
    """Connect a model, its key tried first; one that is connected already is answered as it is."""
    body: wire.ModelCredentialCreateRequest = call.body
    connections = call.organization.connections
    wanted = Wanted(
        Secret(body.key),
        body.provider,
        body.model,
        None if body.base_url is None else Secret(body.base_url),
        body.label,
        bool(body.default),
    )
    connection, new = connections.connect(wanted, call.world.settings.provider_answers)
    shown = render.model_credential(connection, is_default=connection == connections.default, created=True)
    return Reply(shown, None if new else 200)


async def list_credentials(call: Call) -> Reply:
    """A page of the organization's model connections, newest first."""
    connections = call.organization.connections
    page = cut_by_id(connections.listed, **call.paging)
    default = connections.default
    return Reply(render.page(page, lambda each: render.model_credential(each, is_default=each == default)))


async def delete_credential(call: Call) -> Reply:
    """Forget a model connection; its sessions are moved to another."""
    credential_id = call.path["credential_id"]
    organization = call.organization
    moved, heir = organization.connections.disconnect(credential_id, organization.sessions, call.world.now())
    told = {"sessions_moved": moved, "moved_to": None if heir is None else heir.id}
    return Reply(render.deleted("model_credential", credential_id) | told)
