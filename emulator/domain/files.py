"""Files: a session's workspace in memory.

Law: every path is resolved before it is used and never leaves /workspace. A path is kept byte for byte as it
was sent, never normalised as text. What a file's declared size has beyond its bytes is zeros, made when they
are read and held nowhere (contract §10).
"""

from __future__ import annotations

import binascii
from base64 import b64decode
from dataclasses import dataclass, field
from posixpath import normpath
from typing import TYPE_CHECKING, Final

from emulator.domain.limits import (
    ARTIFACT_BYTES,
    ARTIFACTS_BYTES,
    FILE_BYTES,
    FILES_BYTES,
    NAME_BYTES,
    PATH_BYTES,
    PATH_NAMES,
)
from emulator.refusals import invalid

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

ROOT: Final = "/workspace"
OUTPUTS: Final = "/workspace/outputs/"

_CHUNK: Final = 256 * 1024
_ZEROS: Final = bytes(_CHUNK)


class UnusablePath(ValueError):
    """A path that cannot be used for a file of the workspace. The message says why, and where it leads."""


@dataclass(frozen=True, slots=True)
class Blob:
    """What is in a file: its bytes, and zeros up to its `size` where it declares more than it has."""

    data: bytes
    size: int

    @classmethod
    def of(cls, data: bytes, size: int | None = None) -> Blob:
        """The content with these bytes. Raises `ValueError` for a `size` below their number."""
        if size is not None and size < len(data):
            raise ValueError(f"{len(data)} bytes do not fit in a size of {size}")
        return cls(data, len(data) if size is None else size)

    def head(self, count: int) -> bytes:
        """The first `count` bytes, or all there are."""
        count = min(count, self.size)
        return self.data[:count].ljust(count, b"\0")

    def chunks(self) -> Iterator[bytes]:
        """The content a piece at a time: no second copy of the whole is made."""
        for start in range(0, len(self.data), _CHUNK):
            yield self.data[start : start + _CHUNK]
        left = self.size - len(self.data)
        while left > 0:
            yield _ZEROS if left >= _CHUNK else _ZEROS[:left]
            left -= _CHUNK


@dataclass(slots=True)
class Files:
    """The files of one workspace, by absolute path. `_directories` counts the files below each directory."""

    _content: dict[str, Blob] = field(default_factory=dict)
    _unpublished: dict[str, None] = field(default_factory=dict)
    _directories: dict[str, int] = field(default_factory=dict)

    def __contains__(self, absolute: str) -> bool:
        return absolute in self._content

    def all(self) -> dict[str, Blob]:
        """Every file by its absolute path, a copy of the list and not of what is in them."""
        return dict(self._content)

    def copy(self) -> Files:
        """The same files in another workspace."""
        return Files(dict(self._content), dict(self._unpublished), dict(self._directories))

    def place(self, path: str) -> str:
        """Where a file of that path is or would be. Raises `UnusablePath`, also for what is a directory."""
        absolute = resolve(path)
        if absolute in self._directories:
            raise UnusablePath(f"{absolute} is a directory")
        for passed in _passed(path):
            if passed in self._content:
                raise UnusablePath(f"it leads through {passed}, which is a file")
        return absolute

    def write(self, path: str, content: Blob) -> tuple[str, str]:
        """Store a file. Gives its absolute path and `created` or `modified`. Raises `UnusablePath`."""
        absolute = self.place(path)
        kind = "modified" if absolute in self._content else "created"
        if kind == "created":
            for directory in _above(absolute):
                self._directories[directory] = self._directories.get(directory, 0) + 1
        self._content[absolute] = content
        self.unpublish(absolute)
        return absolute, kind

    def write_all(self, sent: Iterable[tuple[str, Blob]], prefix: str) -> list[tuple[str, Blob]]:
        """Store files by (path, content), all of them or none. Gives them by absolute path.

        `prefix` is where they stand in the request. Raises 400 for the first that cannot be stored.
        """
        trial, written = self.copy(), []
        for n, (path, content) in enumerate(sent):
            try:
                written.append((trial.write(path, content)[0], content))
            except UnusablePath as unusable:
                raise _refused(prefix, n, unusable) from None
        self._content, self._unpublished, self._directories = trial._content, trial._unpublished, trial._directories
        return written

    def find(self, path: str) -> str:
        """The absolute path of a file that is there. Raises `UnusablePath` and `FileNotFoundError`."""
        absolute = resolve(path)
        if absolute not in self._content:
            raise FileNotFoundError(f"{absolute} does not exist in the workspace")
        return absolute

    def delete(self, path: str) -> str:
        """Remove a file and give its absolute path. Raises `UnusablePath` and `FileNotFoundError`."""
        absolute = self.find(path)
        del self._content[absolute]
        self._unpublished.pop(absolute, None)
        for directory in _above(absolute):
            self._directories[directory] -= 1
            if not self._directories[directory]:
                del self._directories[directory]
        return absolute

    def unpublish(self, path: str) -> None:
        """Have a file published with the next turn that settles, if it is there and under outputs.

        `path` is one of this workspace's, absolute or relative to it.
        """
        absolute = f"{ROOT}/{relative(path)}"
        if absolute.startswith(OUTPUTS) and absolute in self._content:
            self._unpublished[absolute] = None

    def take_unpublished(self) -> tuple[list[tuple[str, Blob]], list[dict[str, str]]]:
        """What is to be published now, and what is skipped with the reason; both are then forgotten."""
        publish: list[tuple[str, Blob]] = []
        skipped: list[dict[str, str]] = []
        total = 0
        for path in self._unpublished:
            content = self._content[path]
            if content.size > ARTIFACT_BYTES:
                skipped.append({"path": relative(path), "reason": f"larger than {ARTIFACT_BYTES} bytes"})
            elif total + content.size > ARTIFACTS_BYTES:
                reason = f"the turn's files are larger than {ARTIFACTS_BYTES} bytes"
                skipped.append({"path": relative(path), "reason": reason})
            else:
                total += content.size
                publish.append((path, content))
        self._unpublished.clear()
        return publish, skipped

    def clear(self) -> None:
        """Lose everything, as when the workspace is reclaimed."""
        self._content.clear()
        self._unpublished.clear()
        self._directories.clear()


def resolve(path: str) -> str:
    """The absolute path inside /workspace of the file that `path` names. Raises `UnusablePath`."""
    if not path or "\0" in path:
        raise UnusablePath("a path must not be empty or hold a NUL character")
    try:
        size = len(path.encode())
    except UnicodeEncodeError:
        raise UnusablePath("a path must not hold half a surrogate pair") from None
    if size > PATH_BYTES:
        raise UnusablePath(f"a path takes at most {PATH_BYTES} bytes, and this one has {size}")
    parts = path.split("/")
    for part in parts:
        if (length := len(part.encode())) > NAME_BYTES:
            raise UnusablePath(f"a name in a path takes at most {NAME_BYTES} bytes, and {part[:20]!r}… has {length}")
    absolute = spelled_out(path)
    if not absolute.startswith(f"{ROOT}/"):
        raise UnusablePath(f"it resolves to {absolute}, which is not inside {ROOT}")
    if (depth := relative(absolute).count("/") + 1) > PATH_NAMES:
        raise UnusablePath(f"a path takes at most {PATH_NAMES} names, and this one has {depth}")
    if parts[-1] in ("", ".", ".."):
        raise UnusablePath(f"{absolute} is a directory")
    return absolute


def spelled_out(path: str) -> str:
    """The absolute path that a path means, inside the workspace or not, in the one way it is written here."""
    # normpath keeps a leading double slash, which names the same file.
    return "/" + normpath(path if path.startswith("/") else f"{ROOT}/{path}").lstrip("/")


def relative(absolute: str) -> str:
    """A path as it reads from within the workspace."""
    return absolute.removeprefix(f"{ROOT}/")


def names(paths: Iterable[str], absolute: str) -> bool:
    """Whether a file is among `paths`, each absolute or relative to the workspace."""
    return any(path in (absolute, relative(absolute)) for path in paths)


def decoded(sent: Iterable[tuple[str, str]], prefix: str) -> list[tuple[str, Blob]]:
    """Files as they are sent, (path, base64), as (path, content).

    `prefix` is where the list stands in the request. Raises 400 for a path that leaves the workspace or is
    there twice, data that is not strict base64, and what is too large, decoded (contract §10).
    """
    files: list[tuple[str, Blob]] = []
    places: dict[str, int] = {}
    total = 0
    for n, (path, data) in enumerate(sent):
        try:
            absolute = resolve(path)
        except UnusablePath as unusable:
            raise _refused(prefix, n, unusable) from None
        if (first := places.setdefault(absolute, n)) != n:
            raise invalid(f"`{prefix}[{n}].path` is {absolute}, as is `{prefix}[{first}].path`: send each file once.")
        try:
            content = b64decode(data, validate=True)
        except (binascii.Error, ValueError):
            raise invalid(f"`{prefix}[{n}].data` is not valid base64.") from None
        total += len(content)
        if len(content) > FILE_BYTES:
            raise invalid(f"`{prefix}[{n}].data` takes at most {FILE_BYTES} bytes decoded; {len(content)} were sent.")
        if total > FILES_BYTES:
            raise invalid(f"`{prefix}` takes at most {FILES_BYTES} bytes decoded in all; {total} were sent by [{n}].")
        files.append((path, Blob.of(content)))
    return files


def _refused(prefix: str, n: int, unusable: UnusablePath) -> Exception:
    return invalid(f"`{prefix}[{n}].path` must name a file inside {ROOT}: {unusable}.")


def _passed(path: str) -> Iterator[str]:
    """Every place a path leads through before its end, in order."""
    at = "" if path.startswith("/") else ROOT
    for part in path.split("/")[:-1]:
        if part in ("", "."):
            continue
        at = at.rpartition("/")[0] if part == ".." else f"{at}/{part}"
        yield at


def _above(absolute: str) -> Iterator[str]:
    """The directories a file is in, up to the workspace itself and without it."""
    while (absolute := absolute.rpartition("/")[0]) != ROOT:
        yield absolute
