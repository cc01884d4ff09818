"""A control call: one request to /_emulator as its handler sees it, from HTTP or from this process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from emulator.refusals import Refusal, not_found

if TYPE_CHECKING:
    from emulator.domain.session import Session
    from emulator.domain.world import Organization, World
    from emulator.redaction import Secret
    from emulator.runtime.deployment import Deployment


class Host(Protocol):
    """Whoever owns the socket. `deployment` is another one after `reset`."""

    deployment: Deployment
    control_token: Secret | None
    url: str

    async def reset(self) -> None:
        """Put a new deployment in place, as it was at the start."""


@dataclass(slots=True)
class Call:
    """A request whose path, query and body have been checked. `body` is the parsed request shape."""

    host: Host
    deployment: Deployment
    request_id: str
    path: dict[str, str]
    query: dict[str, Any]
    body: Any = None

    @property
    def world(self) -> World:
        return self.deployment.world

    def session(self, session_id: str) -> tuple[Organization, Session]:
        """A session, whoever's it is. Raises 404."""
        found = self.world.find_session(session_id)
        if found is None:
            raise not_found(f"No session {session_id!r}.")
        return found


def conflict(message: str) -> Refusal:
    """The refusal of what the present state does not allow: 409 `conflict`."""
    return Refusal("conflict", message)
