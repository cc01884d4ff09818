"""What turns published (contract §10)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from emulator import render
from emulator.api.call import Download, Reply
from emulator.domain.artifacts import archive
from emulator.domain.files import names
from emulator.domain.pages import cut_by_id
from emulator.refusals import not_found

if TYPE_CHECKING:
    from emulator.api.call import Call
    from emulator.domain.artifacts import Artifact


async def list_artifacts(call: Call) -> Reply:
    """A page of a session's artifacts, of one turn where that is asked for."""
    artifacts = _of_turn(call, call.query.get("turn_id"))
    return Reply(render.page(cut_by_id(artifacts, **call.paging), render.artifact))


async def get_artifact(call: Call) -> Reply:
    """Read what is known of one artifact."""
    return Reply(render.artifact(_artifact(call)))


async def delete_artifact(call: Call) -> Reply:
    """Delete an artifact and its stored copy."""
    artifact = _artifact(call)
    call.organization.delete_artifact(artifact)
    return Reply(render.deleted("artifact", artifact.id))


async def get_artifact_content(call: Call) -> Download:
    """Download an artifact's bytes, as its own type."""
    artifact = _artifact(call)
    if names(call.world.settings.lost_artifacts, artifact.path):
        raise not_found(
            f"The stored copy of artifact {artifact.id} is gone. Have the agent write {artifact.path} again."
        )
    return Download(artifact.content_type, artifact.content.size, artifact.content.chunks())


async def get_archive(call: Call) -> Download:
    """Download a session's artifacts as one tar, or those of one turn."""
    turn_id = call.query.get("turn_id")
    tar = archive(_of_turn(call, turn_id), call.world.settings.lost_artifacts, by_turn=turn_id is None)
    return Download("application/x-tar", tar.size, tar.chunks())


def _artifact(call: Call) -> Artifact:
    return call.organization.artifact(call.path["session_id"], call.path["artifact_id"])


def _of_turn(call: Call, turn_id: str | None) -> list[Artifact]:
    session = call.session
    if turn_id is None:
        return list(session.artifacts)
    if session.turn(turn_id) is None:
        raise not_found(f"No turn {turn_id!r} in this session.")
    return [artifact for artifact in session.artifacts if artifact.turn_id == turn_id]
