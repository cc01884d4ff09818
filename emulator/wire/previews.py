"""Published previews (contract §12)."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from emulator.wire.common import Deleted, Maybe, Request, Response


class PreviewPublishRequest(Request):
    """Where to publish what the agent serves."""

    subdomain: Maybe[str] = Field(
        default=None,
        description="2 to 63 of a to z, 0 to 9 and -; made from the session's id when absent.",
        json_schema_extra={"pattern": "^[a-z0-9][a-z0-9-]{0,61}[a-z0-9]$"},
    )


class Preview(Response):
    """A published preview."""

    object: Literal["preview"]
    subdomain: str
    url: str = Field(description="The public address; anybody may open it.")
    published_url: str = Field(description="The same address.")
    port: int | None


class PreviewDeleted(Deleted):
    """A session's public address is gone. `id` is the session's."""

    object: Literal["preview.deleted"]
