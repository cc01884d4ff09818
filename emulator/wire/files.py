"""Files of a workspace (contract §10)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from emulator.wire.common import Maybe, Request, Response, Withheld

if TYPE_CHECKING:
    from pydantic.config import JsonDict


_BASE64: JsonDict = {
    "contentEncoding": "base64",
    "pattern": "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$",
}


class SeedFile(Request):
    """A file to be put into the workspace."""

    type: Maybe[Literal["inline"]] = None
    path: str = Field(min_length=1, description="Relative to /workspace, or absolute below it.")
    data: Withheld = Field(description="Base64, of 5 MiB at most once decoded.", json_schema_extra=_BASE64)


class FilesRequest(Request):
    """Files to write now, over what is there; 10 MiB at most in all once decoded."""

    files: list[SeedFile] = Field(min_length=1, max_length=50)


class WrittenFile(Response):
    """A file that was written."""

    object: Literal["workspace_file"]
    path: str = Field(description="Relative to the workspace.")
    size_bytes: int


class WorkspaceFileList(Response):
    """What was written, in the order it was sent."""

    object: Literal["list"]
    data: list[WrittenFile]


class WorkspaceFile(Response):
    """A file or a directory of a snapshot."""

    object: Literal["workspace_file"]
    path: str = Field(description="Relative to the workspace.")
    type: Literal["file", "directory"]
    size_bytes: int | None = Field(description="null for a directory.")
    readable: bool = Field(description="False for a directory, and for a file that is withheld.")


class WorkspaceFileTree(Response):
    """The workspace as it was when its last snapshot was taken."""

    object: Literal["list"]
    data: list[WorkspaceFile]
    captured_at: int | None = Field(description="Unix milliseconds; null where there is no snapshot yet.")
    state: Literal["ready", "missing"] = Field(description="`missing`: no snapshot yet, which is not an empty one.")
    truncated: bool = Field(description="Whether there were more files than a snapshot takes.")


class WorkspaceFileContent(Response):
    """What is in a file of the last snapshot."""

    object: Literal["workspace_file.content"]
    path: str = Field(description="Relative to the workspace.")
    captured_at: int = Field(description="Unix milliseconds.")
    content: str
    encoding: Literal["utf8", "base64"]
    truncated: bool = Field(description="Whether the text was cut; bytes never are.")
