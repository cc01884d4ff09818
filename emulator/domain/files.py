"""Files: a session's workspace in memory, and what is published out of it.

Law: every path is resolved before it is used and never leaves /workspace. What is new or changed
under /workspace/outputs since the last publication is published when a turn settles (contract §10).
"""

from __future__ import annotations

import binascii
from base64 import b64decode
from dataclasses import dataclass, field
from posixpath import normpath, splitext
from typing import TYPE_CHECKING, Final

from emulator.domain.limits import ARTIFACT_BYTES, ARTIFACTS_BYTES, FILE_BYTES, FILES_BYTES
from emulator.refusals import invalid

if TYPE_CHECKING:
    from collections.abc import Iterable

ROOT: Final = "/workspace"
OUTPUTS: Final = "/workspace/outputs/"

# Python knows no type for some of these on a machine without a mime.types file.
_TYPES: Final = {
    ".md": "text/markdown",
    ".txt": "text/plain",
    ".log": "text/plain",
    ".csv": "text/csv",
    ".tsv": "text/tab-separated-values",
    ".json": "application/json",
    ".jsonl": "application/x-ndjson",
    ".yaml": "application/yaml",
    ".yml": "application/yaml",
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".xml": "application/xml",
    ".pdf": "application/pdf",
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".svg": "image/svg+xml",
    ".webp": "image/webp",
    ".zip": "application/zip",
    ".tar": "application/x-tar",
    ".gz": "application/gzip",
}


class OutsideWorkspace(ValueError):
    """A path that does not stay inside /workspace. The message says where it leads."""


@dataclass(frozen=True, slots=True)
class Artifact:
    """A published file. Its bytes are shared with the workspace, not copied."""

    id: str
    turn_id: str
    path: str
    content: bytes
    content_type: str
    created_at: int


@dataclass(slots=True)
class Files:
    """The files of one workspace, by absolute path."""

    _content: dict[str, bytes] = field(default_factory=dict)
    _unpublished: dict[str, None] = field(default_factory=dict)

    def write(self, path: str, content: bytes) -> tuple[str, str]:
        """Store a file. Gives its absolute path and `created` or `modified`."""
        absolute = resolve(path)
        kind = "modified" if absolute in self._content else "created"
        self._content[absolute] = content
        if absolute.startswith(OUTPUTS):
            self._unpublished[absolute] = None
        return absolute, kind

    def delete(self, path: str) -> str:
        """Remove a file and give its absolute path. Raises `FileNotFoundError`."""
        absolute = resolve(path)
        if absolute not in self._content:
            raise FileNotFoundError(f"{absolute} does not exist in the workspace")
        del self._content[absolute]
        self._unpublished.pop(absolute, None)
        return absolute

    def take_unpublished(self) -> tuple[list[tuple[str, bytes]], list[dict[str, str]]]:
        """What is to be published now, and what is skipped with the reason; both are then forgotten."""
        publish: list[tuple[str, bytes]] = []
        skipped: list[dict[str, str]] = []
        total = 0
        for path in self._unpublished:
            content = self._content[path]
            relative = path.removeprefix(f"{ROOT}/")
            if len(content) > ARTIFACT_BYTES:
                skipped.append({"path": relative, "reason": f"larger than {ARTIFACT_BYTES} bytes"})
            elif total + len(content) > ARTIFACTS_BYTES:
                skipped.append(
                    {"path": relative, "reason": f"the turn's files are larger than {ARTIFACTS_BYTES} bytes"}
                )
            else:
                total += len(content)
                publish.append((path, content))
        self._unpublished.clear()
        return publish, skipped

    def clear(self) -> None:
        """Lose everything, as when the workspace is reclaimed."""
        self._content.clear()
        self._unpublished.clear()


def resolve(path: str) -> str:
    """The absolute path inside /workspace that `path` names. Raises `OutsideWorkspace`."""
    if not path or "\0" in path:
        raise OutsideWorkspace("a path must not be empty or hold a NUL character")
    absolute = normpath(path if path.startswith("/") else f"{ROOT}/{path}")
    # normpath keeps a leading double slash, which names the same file.
    absolute = "/" + absolute.lstrip("/")
    if not absolute.startswith(f"{ROOT}/"):
        raise OutsideWorkspace(f"it resolves to {absolute}, which is not inside {ROOT}")
    return absolute


def content_type(path: str) -> str:
    """The type an artifact is served with, from its path."""
    return _TYPES.get(splitext(path)[1].lower(), "application/octet-stream")


def decoded(sent: Iterable[tuple[str, str]], prefix: str) -> list[tuple[str, bytes]]:
    """Files as they are sent, (path, base64), as (absolute path, content).

    `prefix` is where the list stands in the request. Raises 400 for a path that leaves the workspace,
    data that is not strict base64, and what is too large, decoded (contract §10).
    """
    files: list[tuple[str, bytes]] = []
    total = 0
    for n, (path, data) in enumerate(sent):
        try:
            absolute = resolve(path)
        except OutsideWorkspace as outside:
            raise invalid(f"`{prefix}[{n}].path` must stay inside {ROOT}: {outside}.") from None
        try:
            content = b64decode(data, validate=True)
        except (binascii.Error, ValueError):
            raise invalid(f"`{prefix}[{n}].data` is not valid base64.") from None
        total += len(content)
        if len(content) > FILE_BYTES:
            raise invalid(f"`{prefix}[{n}].data` takes at most {FILE_BYTES} bytes decoded; {len(content)} were sent.")
        if total > FILES_BYTES:
            raise invalid(f"`{prefix}` takes at most {FILES_BYTES} bytes decoded in all; {total} were sent by [{n}].")
        files.append((absolute, content))
    return files
