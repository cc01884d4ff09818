"""The files of a session's workspace (contract §10)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from emulator import render
from emulator.api.call import Reply
from emulator.domain import snapshots
from emulator.domain.files import decoded
from emulator.refusals import invalid

if TYPE_CHECKING:
    from collections.abc import Iterable

    from emulator.api.call import Call
    from emulator.domain.files import Blob
    from emulator.wire import files as wire


async def post_files(call: Call) -> Reply:
    """Write files into the workspace now, over what is there; it is woken for that, or started."""
    body: wire.FilesRequest = call.body
    sent = sent_files(body.files, "files")
    written = await call.deployment.engine.write_files(call.organization, call.session, sent)
    return Reply(render.written_files(written))


async def list_files(call: Call) -> Reply:
    """List the workspace as of its last snapshot, or of one taken now."""
    if "refresh" in call.query:
        call.token.require("sessions:write")
        return await refresh_files(call)
    return Reply(render.workspace_tree(call.session.workspace.snapshot))


async def refresh_files(call: Call) -> Reply:
    """Take a snapshot of the workspace, which is woken for that, or started; and list it."""
    snapshot = await call.deployment.engine.refresh_files(call.organization, call.session)
    return Reply(render.workspace_tree(snapshot))


async def get_file_content(call: Call) -> Reply:
    """Read a file as of the last snapshot: text, cut where it is too long, or base64."""
    if "path" not in call.query:
        raise invalid("`path` is required: the file to read, relative to /workspace or absolute below it.")
    return Reply(render.file_content(snapshots.read(call.session.workspace.snapshot, call.query["path"])))


def sent_files(files: Iterable[wire.SeedFile] | None, prefix: str) -> list[tuple[str, Blob]]:
    """Files as they were sent, checked, as (path, content). `prefix` is where the list stands in the request."""
    return decoded([(file.path, file.data) for file in files or ()], prefix)
