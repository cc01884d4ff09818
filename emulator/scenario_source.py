"""Scenario source: from a file, or a mapping, to a plain JSON document, and how its errors read.

Law: what leaves here is JSON and nothing else, bounded in size and depth, with every key written
once. A source that is wrong is a `ScenarioError` that names the place; it is never half accepted.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn, cast

if TYPE_CHECKING:
    import os
    from collections.abc import Hashable, Iterator, Sequence

BYTES: Final = 8 * 1024 * 1024
# A recording has the files of its sessions in it.
RECORDING_BYTES: Final = 32 * 1024 * 1024
# YAML aliases let a small file stand for a huge document.
NODES: Final = 200_000
DEPTH: Final = 64
_KEYS: Final = "Its keys are scenario, description, mcp and agent."

Where = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong, and where: the place of a key or an entry, empty for the whole."""

    where: Where
    text: str

    def __str__(self) -> str:
        return f"{path_of(self.where) or 'the scenario'} {self.text}"


class ScenarioError(ValueError):
    """A scenario that is not accepted. The message names the file, each bad place, and what belongs there."""

    def __init__(self, source: str | None, problems: Sequence[Problem]) -> None:
        self.source = source
        self.problems = tuple(problems)
        lines = [str(problem) for problem in self.problems]
        head = f"{source}: " if source else ""
        super().__init__(head + lines[0] if len(lines) == 1 else "\n  ".join([f"{head}{len(lines)} problems", *lines]))


def path_of(where: Where) -> str:
    """A place as it is written in messages: `agent[1].do[0].call.function`."""
    text = ""
    for part in where:
        if isinstance(part, int):
            text += f"[{part}]"
        elif part and all(character.isalnum() or character in "_-" for character in part):
            text += f".{part}" if text else part
        else:
            text += f"[{json.dumps(part, ensure_ascii=False)}]"
    return text


def kind_of(value: Any) -> str:
    """What a value is, in a word or two: `text`, `a list`."""
    match value:
        case None:
            return "nothing"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return "a number"
        case str():
            return "text"
        case list() | tuple():
            return "a list"
        case Mapping():
            return "an object"
    return f"a {type(value).__name__}"


def read(source: str | os.PathLike[str] | Mapping[str, Any]) -> tuple[str | None, dict[str, Any]]:
    """The name of the file, if it was one, and the document. Raises `ScenarioError`."""
    if isinstance(source, Mapping):
        # A recording is JSON that was read already, and larger than anything people write.
        return None, dict(source) if "recording" in source else _document(None, source)
    path = Path(source)
    name = str(path)
    text = _text(name, path)
    if path.suffix.lower() == ".jsonl":
        return name, _recording(name, text)
    value = _yaml(name, text) if path.suffix.lower() in (".yaml", ".yml") else _json(name, text)
    return name, _document(name, value)


def _text(name: str, path: Path) -> str:
    try:
        if not path.exists():
            _refuse(name, "is not there: no such file")
        if not path.is_file():
            _refuse(name, "is not in a file: this is a directory" if path.is_dir() else "is not in a regular file")
        most = RECORDING_BYTES if path.suffix.lower() == ".jsonl" else BYTES
        if path.stat().st_size > most:
            _refuse(name, f"is too large: a file has at most {most} bytes")
        data = path.read_bytes()
        return _whole(data) if path.suffix.lower() == ".jsonl" else data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        _refuse(name, f"is not UTF-8 text (byte {error.start})")
    except ValueError as error:
        if isinstance(error, ScenarioError):
            raise
        _refuse(name, f"cannot be read: {error}")
    except OSError as error:
        _refuse(name, f"cannot be read: {error.strerror or error}")


def _whole(data: bytes) -> str:
    """A text whose last character may have been cut off with its last line."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        if b"\n" in data[error.start :]:
            raise
        return data[: error.start].decode("utf-8-sig")


def _recording(name: str, text: str) -> dict[str, Any]:
    """The lines of a recording as one document: its header, with the other lines as `entries`."""
    lines = text.split("\n")
    values: list[Any] = []
    for n, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            if n == len(lines):
                # It was being written when the recorder ended; what is before it is whole.
                logging.getLogger("emulator").warning("%s: its last line was cut off, and is passed over", name)
                break
            _refuse(name, f"is no recording: line {n} is not JSON")
        values.append(value)
    if not values or not isinstance(values[0], dict) or "recording" not in values[0]:
        _refuse(name, 'is no recording: its first line is a header, {"recording": 1, …}')
    header: dict[str, Any] = values[0]
    return {**header, "entries": values[1:]}


class _Object(dict[str, Any]):
    """An object as it was read, with the key it has twice, if any."""

    repeated: str | None = None
    line: int | None = None


def _json(name: str, text: str) -> Any:
    def pairs(entries: list[tuple[str, Any]]) -> _Object:
        made = _Object()
        for key, value in entries:
            if key in made:
                made.repeated = key
            made[key] = value
        return made

    try:
        return json.loads(text, object_pairs_hook=pairs)
    except json.JSONDecodeError as error:
        _refuse(name, f"is not JSON: {error.msg} (line {error.lineno}, column {error.colno})")
    except (ValueError, RecursionError) as error:
        _refuse(name, f"is not JSON: {error}")


def _yaml(name: str, text: str) -> Any:
    # Imported here: it costs a start that has no YAML file a tenth of a second.
    import re

    import yaml

    class Loader(yaml.SafeLoader):
        """Plain YAML 1.2 values: only `true` and `false` are booleans, and a date is text."""

        yaml_implicit_resolvers: dict[str, list[tuple[str, Any]]] = {}  # noqa: RUF012

    def object_(loader: Loader, node: yaml.MappingNode) -> Iterator[_Object]:
        made = _Object()
        yield made
        seen: set[Hashable] = set()
        for key_node, _ in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                continue
            key = loader.construct_object(key_node, deep=True)
            if isinstance(key, str) and key in seen:
                made.repeated, made.line = key, key_node.start_mark.line + 1
            seen.add(key if isinstance(key, str) else None)
        made.update(cast("dict[str, Any]", loader.construct_mapping(node)))

    for tag, pattern, first in (
        ("null", r"~|null|Null|NULL|", "~nN\0"),
        ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
        ("int", r"[-+]?[0-9]+", "-+0123456789"),
        ("float", r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.inf|\.nan", "-+.0123456789"),
        ("merge", r"<<", "<"),
    ):
        whole = re.compile(f"^(?:{pattern})$")
        for character in first:
            key = "" if character == "\0" else character
            Loader.yaml_implicit_resolvers.setdefault(key, []).append((f"tag:yaml.org,2002:{tag}", whole))
    Loader.add_constructor("tag:yaml.org,2002:int", _yaml_int)
    Loader.add_constructor("tag:yaml.org,2002:map", object_)
    try:
        return yaml.load(text, Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f" (line {mark.line + 1}, column {mark.column + 1})" if mark else ""
        _refuse(name, f"is not YAML: {error.problem or error.context}{where}")
    except (yaml.YAMLError, ValueError, TypeError, RecursionError) as error:
        _refuse(name, f"is not YAML: {error}")


def _yaml_int(loader: Any, node: Any) -> int:
    # YAML 1.1 reads 012 as ten and 12:30 as 750; nobody who writes a scenario means that.
    return int(loader.construct_scalar(node))


def not_json(value: Any) -> str:
    """What in a value JSON does not have, and where, as a sentence."""
    try:
        _Plain(None).of(value, ())
    except ScenarioError as error:
        return f"{error}."
    return "The body is not a JSON value."


def _document(name: str | None, value: Any) -> dict[str, Any]:
    if value is None:
        _refuse(name, f"is empty. {_KEYS}")
    if not isinstance(value, Mapping):
        _refuse(name, f"is {kind_of(value)}, and must be an object. {_KEYS}")
    plain: dict[str, Any] = _Plain(name).of(value, ())
    return plain


class _Plain:
    def __init__(self, name: str | None) -> None:
        self._name = name
        self._left = NODES

    def of(self, value: Any, where: Where) -> Any:
        self._left -= 1
        if self._left < 0:
            _refuse(self._name, f"is too large: over {NODES} values, aliases counted each time")
        if len(where) > DEPTH:
            raise ScenarioError(self._name, [Problem(where[:6], f"is nested more than {DEPTH} deep")])
        match value:
            case None | bool() | int() | str():
                return value
            case float() if math.isfinite(value):
                return value
            case list() | tuple():
                return [self.of(entry, (*where, n)) for n, entry in enumerate(value)]
            case Mapping():
                return self._object(value, where)
        problem = "is a number that is not finite" if isinstance(value, float) else f"is {kind_of(value)}"
        raise ScenarioError(self._name, [Problem(where, f"{problem}, which JSON does not have")])

    def _object(self, value: Mapping[Any, Any], where: Where) -> dict[str, Any]:
        if isinstance(value, _Object) and value.repeated is not None:
            line = f" (line {value.line})" if value.line else ""
            raise ScenarioError(self._name, [Problem((*where, value.repeated), f"is written twice{line}. Keep one")])
        made: dict[str, Any] = {}
        for key, entry in value.items():
            if not isinstance(key, str):
                text = f'has the key {key!r}, which is {kind_of(key)}. Keys are text: put it in quotes, "{key}"'
                raise ScenarioError(self._name, [Problem(where, text)])
            made[key] = self.of(entry, (*where, key))
        return made


def _refuse(name: str | None, text: str) -> NoReturn:
    raise ScenarioError(name, [Problem((), text)])
