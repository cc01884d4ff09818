"""Artifacts: what turns left behind (contract §10)."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from emulator.wire.common import Bytes, Deleted, Milliseconds, Page, Response


class Artifact(Response):
    """A file that was published when a turn settled."""

    object: Literal["artifact"]
    id: str
    session_id: str
    turn_id: str
    path: str = Field(description="Where it was in the workspace, absolute.")
    size_bytes: int
    content_type: str = Field(description="By the ending of its name; application/octet-stream where that tells none.")
    created_at: Milliseconds


class ArtifactList(Page[Artifact]):
    """A page of artifacts."""


class ArtifactDeleted(Deleted):
    """An artifact and its stored copy are gone."""

    object: Literal["artifact.deleted"]


class ArtifactContent(Bytes):
    """The bytes of an artifact, of the artifact's own type."""


class ArtifactArchive(Bytes):
    """A tar of artifacts; with `gobare-omitted.txt` at its end where some of them could not be had."""
