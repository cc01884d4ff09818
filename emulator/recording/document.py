"""The file of a recording: one JSON object a line, and what is read from it again.

Law: a line is written whole and at once, and never touched again: whatever ends the recorder, what is in
the file so far can be read. A last line that was cut is passed over.

A recording has a header, `{"recording": 1, …}`, then entries in the order in which they were seen. Each has
`at`, in milliseconds since the start, and is one of

- an exchange: `n` (its number by arrival), `verb`, `path`, `query`, `headers`, `body`, `status`, `answer`;
- an event: `event` (its type), `session`, `time` (of the API's clock, in milliseconds since its first), `payload`;
- a turn as it settled: `turn`, `session`, `status`, `error`, `artifacts`, `artifacts_skipped`;
- the content of an artifact or a file: `artifact` or `file`, `session`, `turn`, `path`, `size`, and `text` or
  `base64`, or neither where it was too large;
- a note: `note` (`incomplete`, `suspected`), with what it is about;
- the end, `end`, which a recording that was cut off does not have.
"""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from emulator.scenario_source import Problem, ScenarioError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

VERSION: Final = 1


class Writer:
    """Appends entries to a file, each flushed."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.lines = 0
        # Why nothing more can be written, once that is so.
        self.failed: str | None = None

    def write(self, entry: Mapping[str, Any]) -> None:
        """Append one entry. After `close`, and once the disk refused one (`failed`), nothing."""
        if self._file.closed or self.failed is not None:
            return
        text = json.dumps(entry, ensure_ascii=False)
        try:
            self._file.write(text.encode("utf-8", "replace") + b"\n")
            self._file.flush()
        except OSError as error:
            # What follows would come after a line that was cut.
            self.failed = error.strerror or type(error).__name__
            return
        self.lines += 1

    def close(self) -> None:
        try:
            self._file.close()
        except OSError as error:
            self.failed = self.failed or error.strerror or type(error).__name__


def content_fields(data: bytes) -> dict[str, str]:
    """Bytes as an entry keeps them: `text`, or `base64` where they are none."""
    try:
        return {"text": data.decode("utf-8")}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode("ascii")}


def content_of(entry: Mapping[str, Any]) -> bytes | None:
    """The bytes an entry keeps; `None` where it has only their number."""
    match entry:
        case {"text": str(text)}:
            return text.encode("utf-8", "replace")
        case {"base64": str(text)}:
            try:
                return base64.b64decode(text, validate=True)
            except (binascii.Error, ValueError):
                return None
    return None


@dataclass(slots=True)
class Recording:
    """A recording as it was read. `entries` keep their line in the file, from 1, as `line`."""

    header: dict[str, Any]
    entries: list[dict[str, Any]] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        """Whether it was ended rather than cut off."""
        return any("end" in entry for entry in self.entries[-1:])

    @property
    def free(self) -> list[str]:
        """The fields of bodies that strict playback does not compare."""
        return list(self.header.get("free", ()))

    def exchanges(self) -> Iterator[dict[str, Any]]:
        """The requests and what came of each, in the order they arrived."""
        return iter(sorted((entry for entry in self.entries if "verb" in entry), key=lambda entry: entry["n"]))

    def of(self, kind: str) -> Iterator[dict[str, Any]]:
        """The entries of a kind, which is the field only they have: `event`, `turn`, `artifact`, `file`, `note`."""
        return (entry for entry in self.entries if kind in entry and "verb" not in entry)


def recording_of(document: Mapping[str, Any], origin: str | None) -> Recording:
    """The recording in a document, `{"recording": 1, …, "entries": […]}`. Raises `ScenarioError`."""
    version = document.get("recording")
    if version != VERSION or isinstance(version, bool):
        raise _wrong(origin, ("recording",), f"is {version!r}; this emulator reads version {VERSION}")
    entries = document.get("entries", [])
    if not isinstance(entries, list):
        raise _wrong(origin, ("entries",), "is not a list")
    free = document.get("free", [])
    if not isinstance(free, list) or not all(isinstance(path, str) for path in free):
        raise _wrong(origin, ("free",), "is not a list of paths, such as events[*].content")
    header = {key: value for key, value in document.items() if key != "entries"}
    found = Recording(header)
    for n, entry in enumerate(entries):
        if not isinstance(entry, dict):
            raise _wrong(origin, ("entries", n), "is not an object")
        _check(origin, n, entry)
        found.entries.append({**entry, "line": n + 2})
    return found


# What an entry of each kind must have for anything to be made of it.
_NEEDED: Final[Mapping[str, Mapping[str, type]]] = {
    "verb": {"verb": str, "path": str, "n": int, "status": int},
    "event": {"event": str, "session": str, "payload": dict},
    "turn": {"turn": str, "session": str, "status": str},
    "artifact": {"artifact": str, "path": str},
    "file": {"file": str, "session": str},
}


def _check(origin: str | None, n: int, entry: Mapping[str, Any]) -> None:
    kind = next((kind for kind in _NEEDED if kind in entry and kind != "turn"), "turn" if "status" in entry else None)
    for name, wanted in (_NEEDED[kind] if kind is not None else {}).items():
        if not isinstance(entry.get(name), wanted):
            raise _wrong(origin, ("entries", n, name), f"(line {n + 2}) is missing, or not what a recording has there")


def _wrong(origin: str | None, where: tuple[str | int, ...], text: str) -> ScenarioError:
    return ScenarioError(origin, [Problem(where, text)])
