"""Snapshots: the workspace as it was when it was last looked at, which is all that reads see of it.

Law: a snapshot never changes. It shares the bytes of files with the workspace and copies none (contract §10).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from emulator.domain.files import ROOT, Blob, UnusablePath, relative, resolve
from emulator.domain.limits import BINARY_BYTES, SNAPSHOT_BYTES, TEXT_BYTES
from emulator.refusals import Refusal, invalid, not_found

if TYPE_CHECKING:
    from collections.abc import Iterator

    from emulator.domain.files import Files

_LEFT_OUT: Final = frozenset((".git", "node_modules"))
# Environment files, and what usually holds a private key.
_WITHHELD: Final = re.compile(
    r"\.env.*|.*\.(?:pem|key|p12|pfx|jks|keystore|ppk)|id_(?:rsa|dsa|ecdsa|ed25519).*|\.ssh", re.IGNORECASE | re.DOTALL
)


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of a listing: a file with its size in bytes, or a directory, which has none."""

    path: str
    size: int | None
    readable: bool


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The files by absolute path at one time, in Unix milliseconds. `truncated`: there were more than fit."""

    captured_at: int
    files: dict[str, Blob]
    truncated: bool

    def entries(self) -> list[Entry]:
        """Every file and every directory above one, sorted by path, relative to the workspace."""
        found: dict[str, Entry] = {}
        for absolute, content in self.files.items():
            path = relative(absolute)
            found[path] = Entry(path, content.size, not withheld(path))
            while path := path.rpartition("/")[0]:
                found[path] = Entry(path, None, readable=False)
        return [found[path] for path in sorted(found)]


@dataclass(frozen=True, slots=True)
class Content:
    """A file as it is read: its text, cut where that is too long, or bytes, all of them."""

    path: str
    captured_at: int
    text: str | None
    data: bytes
    truncated: bool


def capture(files: Files, now: int) -> Snapshot:
    """A snapshot of the workspace without its version control and installed packages, of 300 MB at most."""
    kept = {path: content for path, content in files.all().items() if not _LEFT_OUT.intersection(path.split("/"))}
    if sum(content.size for content in kept.values()) <= SNAPSHOT_BYTES:
        return Snapshot(now, kept, truncated=False)
    return Snapshot(now, dict(_first(kept)), truncated=True)


def withheld(path: str) -> bool:
    """Whether a file is listed and never read out: environment files and key material."""
    return any(_WITHHELD.fullmatch(part) for part in path.split("/"))


def read(snapshot: Snapshot | None, path: str) -> Content:
    """A file of a session's last snapshot.

    Raises 400 for a path that cannot be one, or a file too large to be put into JSON; 404 where there is no
    snapshot or no such file in it; 403 for one that is withheld.
    """
    try:
        absolute = resolve(path)
    except UnusablePath as unusable:
        raise invalid(f"`path` must name a file inside {ROOT}: {unusable}.") from None
    if snapshot is None:
        raise not_found(
            "This session's workspace has no snapshot yet. One is taken when a turn settles, and by "
            "POST /v1/sessions/{session_id}/files/refresh."
        )
    content = snapshot.files.get(absolute)
    if content is None:
        if any(other.startswith(f"{absolute}/") for other in snapshot.files):
            raise invalid(f"`path` must name a file: {absolute} is a directory.")
        raise not_found(f"There is no file {absolute!r} in the last snapshot of this session's workspace.")
    path = relative(absolute)
    if withheld(path):
        raise Refusal(
            "permission_denied", f"{path!r} is withheld: environment files and key material are listed and never read."
        )
    text, truncated = _text(content)
    if text is None and content.size > BINARY_BYTES:
        raise invalid(
            f"{path!r} is not text and has {content.size} bytes; {BINARY_BYTES} is the most that is read this way. "
            "Have the agent put it under /workspace/outputs, and download the artifact."
        )
    return Content(path, snapshot.captured_at, text, b"" if text is not None else content.head(content.size), truncated)


def _first(files: dict[str, Blob]) -> Iterator[tuple[str, Blob]]:
    """The files that fit, in the order of their paths."""
    left = SNAPSHOT_BYTES
    for path in sorted(files):
        if files[path].size <= left:
            left -= files[path].size
            yield path, files[path]


def _text(content: Blob) -> tuple[str | None, bool]:
    """The text of a file and whether it was cut; `None` where it begins as no text does."""
    head = content.head(TEXT_BYTES)
    truncated = content.size > TEXT_BYTES
    try:
        text = head.decode()
    except UnicodeDecodeError as error:
        # The cut may have gone through a character, which is left out then.
        if not truncated or error.reason != "unexpected end of data":
            return None, False
        text = head[: error.start].decode()
    return (None, False) if "\0" in text else (text, truncated)
