"""A call: one request as its handler sees it, and what a handler gives back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from emulator.domain.access import Token
    from emulator.domain.session import Session
    from emulator.domain.world import Organization, World
    from emulator.runtime.deployment import Deployment
    from emulator.runtime.feed import Reader


@dataclass(slots=True)
class Call:
    """A request that has passed every gate. `body` is the parsed request shape, if there is one.

    `sent` is the body before that: bytes, then JSON. It may hold secrets and is only for the journal to pick from.
    """

    deployment: Deployment
    request_id: str
    path: dict[str, str]
    query: dict[str, Any]
    headers: dict[bytes, bytes]
    body: Any = None
    sent: bytes | dict[str, Any] | None = field(default=None, repr=False)
    maybe_token: Token | None = None
    # What came of it, and what tells its body from another: for the findings.
    outcome: Any = None
    digest: int = 0

    @property
    def world(self) -> World:
        return self.deployment.world

    @property
    def token(self) -> Token:
        """Who asks. Only for operations that need a token."""
        assert self.maybe_token is not None
        return self.maybe_token

    @property
    def organization(self) -> Organization:
        """Whose data is asked for."""
        return self.world.organization(self.token.organization)

    @property
    def paging(self) -> dict[str, Any]:
        """What was asked of a page: `limit`, `order` and `after`, as far as they were sent (contract §13)."""
        return {name: self.query[name] for name in ("limit", "order", "after") if name in self.query}

    @property
    def session(self) -> Session:
        """The session the path names. Raises 404."""
        return self.organization.session(self.path["session_id"])


@dataclass(slots=True)
class Reply:
    """A JSON answer; `status` is the operation's own when it is `None`."""

    content: Any
    status: int | None = None
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)


@dataclass(slots=True)
class Download:
    """Bytes to send piece by piece; `size` is how many there are in all."""

    content_type: str
    size: int
    chunks: Iterable[bytes]
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)


@dataclass(slots=True)
class Stream:
    """An event stream to open."""

    reader: Reader
