"""Artifacts: files that a turn left to be kept, and the archive of them (contract §10).

Law: an artifact never changes and shares its bytes with the workspace it came from. An archive is made while
it is sent.
"""

from __future__ import annotations

from dataclasses import dataclass
from posixpath import splitext
from tarfile import BLOCKSIZE, PAX_FORMAT, TarInfo
from typing import TYPE_CHECKING, Final

from emulator.domain.files import Blob, names, relative

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

OMITTED: Final = "gobare-omitted.txt"

# Python knows no type for some of these on a machine without a mime.types file.
_TYPES: Final = {
    ".md": "text/markdown",
    ".txt": "text/plain",
    ".log": "text/plain",
    ".patch": "text/x-diff",
    ".diff": "text/x-diff",
    ".csv": "text/csv",
    ".tsv": "text/tab-separated-values",
    ".json": "application/json",
    ".jsonl": "application/x-ndjson",
    ".yaml": "application/yaml",
    ".yml": "application/yaml",
    ".html": "text/html",
    ".htm": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".mjs": "text/javascript",
    ".xml": "application/xml",
    ".pdf": "application/pdf",
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".svg": "image/svg+xml",
    ".webp": "image/webp",
    ".mp3": "audio/mpeg",
    ".wav": "audio/wav",
    ".mp4": "video/mp4",
    ".webm": "video/webm",
    ".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    ".pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    ".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    ".zip": "application/zip",
    ".tar": "application/x-tar",
    ".gz": "application/gzip",
}
_END: Final = bytes(2 * BLOCKSIZE)


@dataclass(frozen=True, slots=True)
class Artifact:
    """A published file. `path` is absolute in its workspace."""

    id: str
    session_id: str
    turn_id: str
    path: str
    content: Blob
    content_type: str
    created_at: int


@dataclass(frozen=True, slots=True)
class Archive:
    """A tar to be sent: how many bytes it has in all, and the way to make them."""

    size: int
    _members: tuple[tuple[bytes, Blob], ...]

    def chunks(self) -> Iterator[bytes]:
        """The tar, a piece at a time."""
        for header, content in self._members:
            yield header
            yield from content.chunks()
            if padding := -content.size % BLOCKSIZE:
                yield bytes(padding)
        yield _END


def content_type(path: str) -> str:
    """The type an artifact is served with, from its path."""
    return _TYPES.get(splitext(path)[1].lower(), "application/octet-stream")


def archive(artifacts: Iterable[Artifact], lost: Collection[str], *, by_turn: bool) -> Archive:
    """A tar of artifacts, each under its path in the workspace, behind the id of its turn where `by_turn`.

    Those whose path is among `lost` have no stored copy any more: they are left out, and a last entry
    names them.
    """
    members: list[tuple[bytes, Blob]] = []
    omitted: list[str] = []
    last = 0
    for artifact in artifacts:
        name = relative(artifact.path)
        if by_turn:
            name = f"{artifact.turn_id}/{name}"
        last = max(last, artifact.created_at)
        if names(lost, artifact.path):
            omitted.append(name)
        else:
            members.append((_header(name, artifact.content.size, artifact.created_at), artifact.content))
    if omitted:
        told = Blob.of("".join(f"{name}\n" for name in omitted).encode())
        members.append((_header(OMITTED, told.size, last), told))
    size = sum(len(header) + content.size + -content.size % BLOCKSIZE for header, content in members)
    return Archive(size + len(_END), tuple(members))


def _header(name: str, size: int, milliseconds: int) -> bytes:
    """The header of a member; a name that is long or not ASCII gets one of the extended kind before it."""
    info = TarInfo(name)
    info.size = size
    info.mode = 0o644
    info.mtime = milliseconds // 1000
    return info.tobuf(PAX_FORMAT, "utf-8", "strict")
