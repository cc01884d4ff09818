"""What a token is good for, and the document of this API (contract §4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from emulator.api.call import Reply
from emulator.domain.access import DEFAULT_SCOPES, SCOPES

if TYPE_CHECKING:
    from emulator.api.call import Call


async def get_health(call: Call) -> Reply:
    """Tell a token's scopes; every valid token may ask."""
    token = call.token
    usable = not token.cli_only
    return Reply(
        {
            "object": "health",
            "status": "ok",
            "version": "v1",
            "scopes": [scope for scope in SCOPES if scope in token.scopes],
            "usable": usable,
            "missing_scopes": [] if usable else list(DEFAULT_SCOPES),
        }
    )


async def get_openapi(call: Call) -> Reply:
    """The OpenAPI document, made from the operation table."""
    from emulator.api.openapi import document

    return Reply(document())
