"""Parsing: bodies, queries and headers into checked values, or into the refusal the contract gives.

Law: nothing is coerced, truncated or ignored. A refusal names the field by its full path, what is
accepted there and, for a near miss, what was probably meant; it never repeats a value that could be
a secret (contract §2).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import isinf
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar
from urllib.parse import unquote_to_bytes

from pydantic_core import to_json

from emulator import render
from emulator.domain.limits import KEY, PAGE
from emulator.redaction import scrub
from emulator.refusals import did_you_mean, invalid

if TYPE_CHECKING:
    from collections.abc import Mapping, MutableMapping, Sequence

    from pydantic import BaseModel
    from starlette.types import Receive

    from emulator.api.shapes import Shape

Model = TypeVar("Model", bound="BaseModel")


# A word somebody meant as a name: nothing that keeps a secret looks like one.
_WORD: Final = re.compile(r"[A-Za-z]{1,16}(?:[._-][A-Za-z]{1,16}){0,3}")
# Digits of the longest number that is read as one.
_LONG: Final = 18


class Disconnected(Exception):
    """The client went away before its request was complete."""


# Fields of answers that clients send back, wherever (contract §5).
_ELSEWHERE: Final[Mapping[str, str]] = {
    "redacted": "`redacted` names what a read held back; it is not sent. Send the secrets themselves again.",
}


async def read_body(receive: Receive, headers: Mapping[bytes, bytes], ceiling: int) -> bytes:
    """The request body. Raises 400 past `ceiling` bytes, whether or not a length was announced."""
    announced = headers.get(b"content-length", b"")
    if announced.isdigit() and int(announced) > ceiling:
        raise _too_large(ceiling, announced.decode())
    parts: list[bytes] = []
    size = 0
    while True:
        message: MutableMapping[str, Any] = await receive()
        if message["type"] == "http.disconnect":
            raise Disconnected
        part = message.get("body", b"")
        size += len(part)
        if size > ceiling:
            raise _too_large(ceiling, f"at least {size}")
        parts.append(part)
        if not message.get("more_body", False):
            return parts[0] if len(parts) == 1 else b"".join(parts)


async def left(receive: Receive) -> None:
    """Wait until the client has gone away. What it sends meanwhile is passed over."""
    while (await receive())["type"] != "http.disconnect":
        pass


def read_json(body: bytes) -> dict[str, Any]:
    """A body as a JSON object. Raises 400 for anything else, whatever it is."""
    try:
        value = render.decode(body)
    except (ValueError, RecursionError):
        raise invalid("The request body is not valid JSON (UTF-8, no NaN or Infinity, nesting below 200).") from None
    if not isinstance(value, dict):
        raise invalid(f"The request body must be a JSON object; {_a_kind(value)} was sent.")
    if b"Infinity" in to_json(value, inf_nan_mode="constants") and _has_infinity(value):
        raise invalid("The request body has a number that is too large to be represented.")
    return value


def shaped(model: type[Model], body: dict[str, Any]) -> Model:
    """`body` as `model`. Raises 400 `invalid_request` for the first thing wrong with it."""
    # Imported here, as everything about models: a server answers its first reads without it.
    from pydantic import ValidationError

    from emulator.api.shapes import shape_of

    try:
        return model.model_validate(body)
    except ValidationError as error:
        problems = error.errors(include_url=False, include_input=False, include_context=True)
    problems.sort(key=lambda problem: problem["type"] != "extra_forbidden")
    raise _refusal(shape_of(model), body, problems[0]) from None


def kept(model: type[BaseModel], body: dict[str, Any]) -> Any:
    """What the journal may keep of a body of that shape."""
    from emulator.api import shapes

    return shapes.kept(shapes.shape_of(model), body)


@dataclass(frozen=True, slots=True)
class Parameter:
    """A query parameter: its name, what it takes, and what it is for."""

    name: str
    kind: Literal["limit", "order", "text", "choice", "cursor", "pair"]
    doc: str
    choices: tuple[str, ...] = ()
    required: bool = False

    def parse(self, text: str) -> Any:
        """The value. Raises 400 `invalid_request`."""
        match self.kind:
            case "limit":
                if not _digits(text) or not 1 <= int(text) <= PAGE:
                    sent = f"{text} was sent" if _digits(text.removeprefix("-")) else "something else was sent"
                    raise invalid(f"`{self.name}` must be an integer from 1 to {PAGE}; {sent}.")
                return int(text)
            case "cursor":
                return cursor(text, f"`{self.name}`")
            case "order" | "choice":
                choices = self.choices or ("asc", "desc")
                if text not in choices:
                    raise invalid(f"`{self.name}` must be one of {', '.join(choices)}.{did_you_mean(text, choices)}")
                return text
            case "pair":
                key, colon, value = text.partition(":")
                if not colon or not key:
                    raise invalid(f"`{self.name}` must be of the form key:value.")
                return key, value
            case _:
                if not text:
                    raise invalid(f"`{self.name}` must not be empty.")
                return text


def read_query(query: bytes, parameters: Sequence[Parameter]) -> dict[str, Any]:
    """The query parameters by name. Raises 400 for an unknown one, a repeated one, or a wrong value."""
    if not query:
        return {}
    known = {parameter.name: parameter for parameter in parameters}
    values: dict[str, Any] = {}
    for part in query.split(b"&"):
        if not part:
            continue
        key, _, raw = part.partition(b"=")
        name, text = _form_text(key), _form_text(raw)
        parameter = known.get(name)
        if parameter is None:
            accepted = f"Accepted here: {', '.join(known)}." if known else "None is accepted here."
            raise invalid(f"Unknown query parameter `{_shown(name)}`. {accepted}{did_you_mean(name, known)}")
        if name in values:
            raise invalid(f"The query parameter `{name}` was sent more than once.")
        values[name] = parameter.parse(text)
    return values


def cursor(text: str, what: str) -> int:
    """A stream cursor: a non-negative integer of any size. Raises 400 `invalid_request`."""
    if not (text.isascii() and text.isdigit()):
        raise invalid(f"{what} must be a non-negative integer, the id of the last event you have.")
    # One that no event will ever have is as far ahead as any other.
    return int(text[-_LONG:]) if len(text.lstrip("0")) <= _LONG else 10**_LONG


def idempotency_key(header: bytes | None) -> str | None:
    """The key of a write, or `None`. Raises 400 for an empty or over-long one."""
    if header is None:
        return None
    key = header.decode("latin-1").strip()
    if not 1 <= len(key) <= KEY:
        raise invalid(f"`Idempotency-Key` must be 1 to {KEY} characters; {len(key)} were sent.")
    return key


def segments(raw_path: bytes) -> list[str] | None:
    """The segments of a path, each percent-decoded after splitting. `None` when one is not UTF-8."""
    try:
        if b"%" not in raw_path:
            return raw_path.decode().split("/")[1:]
        return [unquote_to_bytes(part).decode() for part in raw_path.split(b"/")[1:]]
    except UnicodeDecodeError:
        return None


_KINDS: Final[Mapping[str, str]] = {
    "string_type": "a string",
    "int_type": "an integer",
    "int_from_float": "an integer",
    "int_parsing": "an integer",
    "bool_type": "a boolean, true or false",
    "dict_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
    "list_type": "a list",
    "float_type": "a number",
}


def _refusal(shape: Shape, body: Any, problem: Mapping[str, Any]) -> Exception:
    kind: str = problem["type"]
    path, place, owner, value, name = _locate(shape, body, problem["loc"])
    context: Mapping[str, Any] = problem.get("ctx", {})
    if kind == "extra_forbidden":
        return _unknown_field(shape, path, name, owner, place)
    if kind == "missing":
        return invalid(f"`{path}` is required{': one of ' + ', '.join(place.choices) if place.choices else ''}.")
    if kind in _KINDS:
        hint = "" if place.fields else _instead(place)
        return invalid(f"`{path}` must be {_KINDS[kind]}; {_a_kind(value)} was sent.{hint}")
    if kind == "literal_error":
        choices = str(context["expected"]).replace("'", "").replace("True", "true").replace(" or ", ", ").split(", ")
        one_of = "one of " if len(choices) > 1 else ""
        hint = _meant(value, choices) or _instead(place)
        return invalid(f"`{path}` must be {one_of}{', '.join(choices)}{_sent(value)}{hint}")
    if kind == "union_tag_invalid":
        tag, choices = context["tag"], list(place.variants)
        return invalid(f"`{path}.type` must be one of {', '.join(choices)}{_sent(tag)}{_meant(tag, choices)}")
    if kind == "union_tag_not_found":
        if not place.variants:
            what = "an object or a list of strings" if name == "env_refs" else "a string or a list of parts"
            return invalid(f"`{path}` must be {what}; {_a_kind(value)} was sent.")
        if not isinstance(value, dict):
            return invalid(f"`{path}` must be an object; {_a_kind(value)} was sent.")
        return invalid(f"`{path}.type` is required: one of {', '.join(place.variants)}.")
    if kind == "null":
        return invalid(f"`{path}` must not be null; leave it out.")
    if kind in ("too_long", "too_short"):
        return _wrong_count(path, name, value, context)
    if kind in ("string_too_long", "string_too_short"):
        return _wrong_length(path, problem["loc"], value, context)
    if kind in ("greater_than_equal", "less_than_equal"):
        if place.least is not None and place.most is not None:
            return invalid(f"`{path}` must be from {place.least} to {place.most}; {value} was sent.")
        words = f"at least {context['ge']}" if "ge" in context else f"at most {context['le']}"
        return invalid(f"`{path}` must be {words}; {value} was sent.")
    return invalid(f"`{path}` is not what is accepted there.")


def _sent(value: Any) -> str:
    """What was sent, for the end of a sentence; a word only if it is one, and so no secret."""
    if not isinstance(value, str):
        return f"; {_a_kind(value)} was sent."
    return f"; `{value}` was sent." if _WORD.fullmatch(value) else "."


def _meant(value: Any, choices: Sequence[str]) -> str:
    return did_you_mean(value, choices) if isinstance(value, str) else ""


def _instead(place: Shape) -> str:
    return f" {place.instead}" if place.instead else ""


def _unknown_field(root: Shape, path: str, name: str, owner: str, place: Shape) -> Exception:
    words = _ELSEWHERE.get(name) or place.elsewhere.get(name)
    if words is not None:
        return invalid(f"`{path}` is not accepted. {words}")
    accepted = list(place.fields or ())
    where = f"`{owner}` accepts" if owner else "Accepted here:"
    elsewhere = list(root.paths_of(name)) if not owner else []
    hint = did_you_mean(name, accepted)
    if not hint and elsewhere:
        hint = f" It belongs at `{elsewhere[0]}`."
    return invalid(f"Unknown field `{path}`. {where} {', '.join(accepted)}.{hint}")


def _wrong_count(path: str, name: str, value: Any, context: Mapping[str, Any]) -> Exception:
    sent = len(value)
    if name == "events":
        return invalid(f"`{path}` takes exactly one event; {sent} were sent.")
    if "max_length" in context:
        what = "keys" if isinstance(value, dict) else "entries"
        return invalid(f"`{path}` takes at most {context['max_length']} {what}; {sent} were sent.")
    return invalid(f"`{path}` must not be empty.")


def _wrong_length(path: str, loc: Sequence[str | int], value: Any, context: Mapping[str, Any]) -> Exception:
    sent = len(value) if isinstance(value, str) else 0
    if loc[-1] == "[key]":
        key = str(loc[-2])
        owner = path.rpartition(".")[0] if "." in path else path
        if not key:
            return invalid(f"A key of `{owner}` must not be empty.")
        return invalid(f"A key of `{owner}` takes at most {context['max_length']} characters; {len(key)} were sent.")
    if "max_length" in context:
        return invalid(f"`{path}` takes at most {context['max_length']} characters; {sent} were sent.")
    return invalid(f"`{path}` must not be empty.")


def _locate(shape: Shape, body: Any, loc: Sequence[str | int]) -> tuple[str, Shape, str, Any, str]:
    """Where a problem is: its path, the shape there, the path of the object it is in, its value, its name.

    For a field the object does not know, the shape is the object's.
    """
    path = owner = ""
    place, value = shape, body
    for n, part in enumerate(loc):
        last = n == len(loc) - 1
        if isinstance(part, int):
            inner = place.within(part)
            value = value[part] if isinstance(value, list) and part < len(value) else None
            path, owner = f"{path}[{part}]", f"{path}[{part}]"
            place = place if inner is None else inner.of(value)
            continue
        if part == "[key]":
            continue
        if not isinstance(value, dict) or (not last and part not in value) or (part == value.get("type") and not last):
            # The tag of a union, not a field.
            continue
        owner = path
        path = f"{path}.{_shown(part)}" if path else _shown(part)
        inner = place.within(part)
        value = value.get(part)
        if inner is not None:
            place = inner.of(value)
    name = str(next((part for part in reversed(loc) if isinstance(part, str) and part != "[key]"), ""))
    return path, place, owner, value, name


def _a_kind(value: Any) -> str:
    match value:
        case bool():
            return "a boolean"
        case int():
            return "an integer"
        case float():
            return "a number"
        case str():
            return "a string"
        case list():
            return "a list"
        case dict():
            return "an object"
        case _:
            return "null"


def _shown(name: str) -> str:
    """A name somebody sent, short enough to repeat."""
    name = scrub(name)
    return name if len(name) <= 100 else f"{name[:100]}…"


def _digits(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _LONG


def _form_text(raw: bytes) -> str:
    try:
        return unquote_to_bytes(raw.replace(b"+", b" ")).decode()
    except UnicodeDecodeError:
        raise invalid("The query is not valid UTF-8.") from None


def _too_large(ceiling: int, sent: str) -> Exception:
    return invalid(f"The request body takes at most {ceiling} bytes; {sent} were sent.")


def _has_infinity(value: Any) -> bool:
    if isinstance(value, float):
        return isinf(value)
    if isinstance(value, dict):
        return any(map(_has_infinity, value.values()))
    return isinstance(value, list) and any(map(_has_infinity, value))


def check_no_body(body: bytes) -> None:
    """Raise 400 for a body on a call that takes none. Some clients send an empty object with every call."""
    if body.strip() not in (b"", b"{}", b"null"):
        raise invalid(f"This call takes no body; {len(body)} bytes were sent.")
