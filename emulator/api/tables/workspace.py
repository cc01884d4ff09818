"""What can be done with a session's workspace: its files, what turns publish, and its preview."""

from __future__ import annotations

from typing import Final

from emulator.api import artifacts, files, previews
from emulator.api.operation import PAGING, READ, READ_ARTIFACTS, SESSION, TURN, WRITE, Operation
from emulator.api.parse import Parameter
from emulator.wire import Named

OPERATIONS: Final = (
    Operation(
        verb="POST",
        path=f"{SESSION}/preview",
        summary="Publish a preview",
        handler=previews.publish_preview,
        request=Named("previews.PreviewPublishRequest"),
        optional=True,
        response=Named("previews.Preview"),
        status=201,
        also=200,
        scopes=WRITE,
    ),
    Operation(
        verb="DELETE",
        path=f"{SESSION}/preview",
        summary="Unpublish a preview",
        handler=previews.unpublish_preview,
        response=Named("previews.PreviewDeleted"),
        scopes=WRITE,
    ),
    Operation(
        verb="POST",
        path=f"{SESSION}/files",
        summary="Write files into a workspace",
        handler=files.post_files,
        request=Named("files.FilesRequest"),
        response=Named("files.WorkspaceFileList"),
        codes=("workspace_recovery_failed",),
        scopes=WRITE,
        body_limit="files_body_limit",
    ),
    Operation(
        verb="GET",
        path=f"{SESSION}/files",
        summary="List a workspace's files",
        handler=files.list_files,
        response=Named("files.WorkspaceFileTree"),
        scopes=READ,
        query=(
            Parameter("refresh", "choice", "Take a snapshot first; needs the scope sessions:write as well.", ("1",)),
        ),
        codes=("workspace_recovery_failed",),
    ),
    Operation(
        verb="GET",
        path=f"{SESSION}/files/content",
        summary="Read a workspace's file",
        handler=files.get_file_content,
        response=Named("files.WorkspaceFileContent"),
        scopes=READ,
        query=(Parameter("path", "text", "Relative to /workspace, or absolute below it.", required=True),),
    ),
    Operation(
        verb="POST",
        path=f"{SESSION}/files/refresh",
        summary="Take a snapshot of a workspace",
        handler=files.refresh_files,
        response=Named("files.WorkspaceFileTree"),
        codes=("workspace_recovery_failed",),
        scopes=WRITE,
    ),
    Operation(
        verb="GET",
        path=f"{SESSION}/artifacts",
        summary="List artifacts",
        handler=artifacts.list_artifacts,
        response=Named("artifacts.ArtifactList"),
        scopes=READ_ARTIFACTS,
        query=(*PAGING, TURN),
    ),
    Operation(
        verb="GET",
        path=f"{SESSION}/artifacts/archive",
        summary="Download artifacts as a tar",
        handler=artifacts.get_archive,
        response=Named("artifacts.ArtifactArchive"),
        scopes=READ_ARTIFACTS,
        query=(TURN,),
        media="application/x-tar",
    ),
    Operation(
        verb="GET",
        path=f"{SESSION}/artifacts/{{artifact_id}}",
        summary="Retrieve an artifact",
        handler=artifacts.get_artifact,
        response=Named("artifacts.Artifact"),
        scopes=READ_ARTIFACTS,
    ),
    Operation(
        verb="DELETE",
        path=f"{SESSION}/artifacts/{{artifact_id}}",
        summary="Delete an artifact",
        handler=artifacts.delete_artifact,
        response=Named("artifacts.ArtifactDeleted"),
        scopes=WRITE,
    ),
    Operation(
        verb="GET",
        path=f"{SESSION}/artifacts/{{artifact_id}}/content",
        summary="Download an artifact",
        handler=artifacts.get_artifact_content,
        response=Named("artifacts.ArtifactContent"),
        scopes=READ_ARTIFACTS,
        media="*/*",
    ),
)
