"""Shapes: the field tree of a request model, made once from the model.

Two things follow from it: what is accepted at a place a client got wrong, and which parts of a body
the journal may keep.
"""

from __future__ import annotations

import types
import typing
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Literal

from pydantic import BaseModel

from emulator.redaction import address, names_a_secret, scrub, scrub_value, size_of

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(slots=True)
class Shape:
    """A place in a body, and what may stand there; several of these where a union is accepted.

    `fields` of an object, `values` of a mapping, `entries` of a list, `variants` by their `type`; `free`: an
    object of anything; `plain`: text, a number or a boolean, of `choices` only if there are any, or an `address`.
    `least` and `most` bound a number. `elsewhere` is what to do instead of some fields people put here, `instead`
    what to do instead of a value that is not accepted.
    """

    fields: dict[str, Shape] | None = None
    values: Shape | None = None
    entries: Shape | None = None
    variants: dict[str, Shape] = field(default_factory=dict)
    secret: bool = False
    free: bool = False
    plain: bool = False
    address: bool = False
    choices: tuple[str, ...] = ()
    least: Any = None
    most: Any = None
    elsewhere: dict[str, str] = field(default_factory=dict)
    instead: str = ""

    def of(self, value: Any) -> Shape:
        """The shape that applies to `value`: the variant its `type` names, where there are several."""
        if self.variants and isinstance(value, dict):
            kind = value.get("type")
            if isinstance(kind, str) and kind in self.variants:
                return self.variants[kind]
        return self

    def within(self, key: str | int) -> Shape | None:
        """The shape of a field or an entry."""
        if isinstance(key, int):
            return self.entries
        return self.values if self.fields is None else self.fields.get(key)

    def paths_of(self, name: str, prefix: str = "") -> Iterator[str]:
        """Where else a field of that name is accepted, below here."""
        for key, shape in (self.fields or {}).items():
            if key == name and prefix:
                yield f"{prefix}{key}"
            if shape.fields is not None:
                yield from shape.paths_of(name, f"{prefix}{key}.")


@cache
def shape_of(model: type[BaseModel]) -> Shape:
    """The shape of a request model."""
    fields = {}
    elsewhere: dict[str, str] = getattr(model, "elsewhere", {})
    for name, info in model.model_fields.items():
        secret = isinstance(info.json_schema_extra, dict) and bool(info.json_schema_extra.get("writeOnly"))
        # A copy: the shape of a nested model is shared by every field of that model.
        shape = replace(_from_annotation(info.annotation))
        # Arguments of a command may hold anything; of an address the journal keeps the place only.
        shape.secret |= secret or name == "args"
        shape.address = name in ("url", "repo")
        shape.instead = elsewhere.get(name, "")
        for bound in info.metadata:
            shape.least = getattr(bound, "ge", shape.least)
            shape.most = getattr(bound, "le", shape.most)
        fields[info.alias or name] = shape
    return Shape(fields=fields, elsewhere=elsewhere, instead=getattr(model, "instead", ""))


# The longest text the journal keeps, in characters.
_LONGEST: Final = 4096


def kept(shape: Shape | None, value: Any) -> Any:
    """What the journal keeps of `value`: what the API knows, where it belongs, and is no secret; else the size."""
    if shape is None or shape.secret:
        return f"[{size_of(value)}]"
    kind = type(value)
    if kind is dict:
        shape = shape.of(value)
        fields = shape.fields
        if fields is not None:
            return {key if key in fields else scrub(key): kept(fields.get(key), entry) for key, entry in value.items()}
        if shape.values is not None:
            named = {key: None if names_a_secret(key) else shape.values for key in value}
            return {scrub(key): kept(named[key], entry) for key, entry in value.items()}
        if shape.free:
            return scrub_value(value)
    elif kind is list:
        if (entries := shape.entries) is not None:
            return [kept(entries, entry) for entry in value]
    elif shape.plain:
        if kind is not str:
            return value
        if len(value) <= _LONGEST:
            return address(value) if shape.address else scrub(value)
    return f"[{size_of(value)}]"


def _from_annotation(annotation: Any) -> Shape:
    origin = typing.get_origin(annotation)
    arguments = typing.get_args(annotation)
    if origin is typing.Annotated:
        shape = replace(_from_annotation(arguments[0]))
        for extra in arguments[1:]:
            hints = getattr(extra, "json_schema_extra", None)
            if isinstance(hints, dict) and hints.get("writeOnly"):
                shape.secret = True
        return shape
    if origin in (typing.Union, types.UnionType):
        kinds = [_from_annotation(kind) for kind in arguments if kind is not type(None)]
        return kinds[0] if len(kinds) == 1 else _merged(arguments, kinds)
    if origin is list:
        return Shape(entries=_from_annotation(arguments[0]))
    if origin is dict:
        # A mapping of anything is carried whole; one of strings has its own entries.
        return Shape(free=True) if arguments[1] is Any else Shape(values=_from_annotation(arguments[1]))
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return shape_of(annotation)
    return Shape(plain=True, choices=arguments if origin is Literal else ())


def _merged(kinds: tuple[Any, ...], shapes: list[Shape]) -> Shape:
    variants = {}
    for kind, shape in zip([kind for kind in kinds if kind is not type(None)], shapes, strict=True):
        if isinstance(kind, type) and issubclass(kind, BaseModel) and "type" in kind.model_fields:
            tag = kind.model_fields["type"].annotation
            if typing.get_origin(tag) is Literal:
                variants[typing.get_args(tag)[0]] = shape
    merged = Shape(variants=variants, plain=any(shape.plain for shape in shapes))
    if not variants:
        merged.entries = next((shape.entries for shape in shapes if shape.entries is not None), None)
        merged.values = next((shape.values for shape in shapes if shape.values is not None), None)
        merged.free = any(shape.free for shape in shapes)
    return merged
