"""Previews: put what an agent serves at a public address, and answer whoever opens it.

Law: an address answers on the emulator itself, to anybody, with what the script serves. A published
workspace pauses like any other and is woken by its visitors; it is not reclaimed (contract §12).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from emulator.domain.previews import Holder, page_at
from emulator.refusals import Refusal, not_found

if TYPE_CHECKING:
    from emulator.domain.previews import Page
    from emulator.domain.session import Session
    from emulator.domain.world import Organization, World
    from emulator.runtime.feed import Feed
    from emulator.runtime.workspaces import Workspaces

PREFIX: Final = "_preview"
"""The first segment of every public address's path."""


class Previews:
    """The public addresses of one world."""

    def __init__(self, world: World, workspaces: Workspaces, feed: Feed) -> None:
        self._world = world
        self._workspaces = workspaces
        self._feed = feed

    def publish(self, organization: Organization, session: Session, subdomain: str) -> bool:
        """Put a session's preview at an address. Whether it is there only now.

        Raises 409 `conflict`: published at another, nothing served yet, taken, or not to be prepared.
        """
        preview, addresses = session.preview, self._world.addresses
        if preview.subdomain == subdomain:
            return False
        if preview.subdomain is not None:
            raise Refusal(
                "conflict",
                f"This session's preview is already published, at {preview.published_url} (`subdomain` "
                f"{preview.subdomain!r}). Unpublish it first with DELETE /v1/sessions/{session.id}/preview; whoever "
                "has the old address would be stranded otherwise.",
            )
        if preview.port is None:
            raise Refusal(
                "conflict",
                "This session has no preview yet: nothing is served on a port. Ask the agent to serve something and to "
                "call preview(port), then publish it.",
            )
        addresses.take(subdomain, Holder(organization.id, session.id))
        if self._world.settings.preview_publish == "fails":
            addresses.free(subdomain)
            raise Refusal(
                "conflict",
                "This preview could not be prepared: its workspace could not be archived, so the address might not "
                "come back after a pause. Nothing was published.",
            )
        preview.subdomain, preview.published_url = subdomain, self._address(subdomain)
        self._workspaces.keep(session)
        session.touch(self._world.now())
        return True

    def unpublish(self, session: Session) -> None:
        """Take a session's address away, if it has one."""
        preview = session.preview
        if preview.subdomain is not None:
            self._world.addresses.free(preview.subdomain)
            preview.subdomain = preview.published_url = None
            self._workspaces.release(session)
            session.touch(self._world.now())

    def open(self, subdomain: str, path: str) -> Page:
        """What somebody sees who opens an address; a paused workspace is woken for it. Raises 404."""
        holder = self._world.addresses.holder(subdomain)
        if holder is None:
            raise not_found(f"Nothing is published at {subdomain!r}.")
        organization = self._world.organization(holder.organization)
        session = organization.session(holder.session_id)
        self._workspaces.visited(session)
        self._feed.pump(organization)
        port = session.preview.port
        page = None if port is None else page_at(session.preview.body, port, path)
        if page is None:
            raise not_found(f"Nothing is served at {path} of {subdomain!r}.")
        return page

    def _address(self, subdomain: str) -> str:
        base = self._world.settings.public_url or self._world.url
        return f"{base.rstrip('/')}/{PREFIX}/{subdomain}"
