"""Shapes: the field tree of a request model, made once from the model.

Two things follow from it: what is accepted at a place a client got wrong, and which parts of a body
the journal may keep.
"""

from __future__ import annotations

import types
import typing
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel

from emulator.redaction import scrub_value, size_of

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(slots=True)
class Shape:
    """A place in a body. `fields` of an object, `items` of a list or a mapping, `variants` by their `type`.

    `plain`: text or a number may stand here too, of `choices` only if there are any. `least` and `most`
    bound a number.
    """

    fields: dict[str, Shape] | None = None
    items: Shape | None = None
    variants: dict[str, Shape] = field(default_factory=dict)
    secret: bool = False
    plain: bool = False
    choices: tuple[str, ...] = ()
    least: Any = None
    most: Any = None

    def of(self, value: Any) -> Shape:
        """The shape that applies to `value`: the variant its `type` names, where there are several."""
        if self.variants and isinstance(value, dict):
            kind = value.get("type")
            if isinstance(kind, str) and kind in self.variants:
                return self.variants[kind]
        return self

    def within(self, key: str | int) -> Shape | None:
        """The shape of a field or an entry."""
        if isinstance(key, str) and self.fields is not None:
            return self.fields.get(key)
        return self.items

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
    for name, info in model.model_fields.items():
        secret = isinstance(info.json_schema_extra, dict) and bool(info.json_schema_extra.get("writeOnly"))
        shape = _from_annotation(info.annotation)
        shape.secret |= secret
        for bound in info.metadata:
            shape.least = getattr(bound, "ge", shape.least)
            shape.most = getattr(bound, "le", shape.most)
        fields[info.alias or name] = shape
    return Shape(fields=fields)


def kept(shape: Shape | None, value: Any) -> Any:
    """What the journal keeps of `value`: fields the API knows and that are no secret; of others the size."""
    if shape is None or shape.secret:
        return f"[{size_of(value)}]"
    shape = shape.of(value)
    if isinstance(value, dict):
        if shape.fields is not None:
            return {scrub_value(key): kept(shape.fields.get(key), entry) for key, entry in value.items()}
        if shape.items is not None:
            return {scrub_value(key): kept(shape.items, entry) for key, entry in value.items()}
        return f"[{size_of(value)}]" if shape.variants else scrub_value(value)
    if isinstance(value, list):
        if shape.items is not None:
            return [kept(shape.items, entry) for entry in value]
        return f"[{size_of(value)}]" if shape.fields is not None else scrub_value(value)
    return scrub_value(value) if shape.plain else f"[{size_of(value)}]"


def _from_annotation(annotation: Any) -> Shape:
    origin = typing.get_origin(annotation)
    arguments = typing.get_args(annotation)
    if origin is typing.Annotated:
        shape = _from_annotation(arguments[0])
        for extra in arguments[1:]:
            hints = getattr(extra, "json_schema_extra", None)
            if isinstance(hints, dict) and hints.get("writeOnly"):
                shape.secret = True
        return shape
    if origin in (typing.Union, types.UnionType):
        kinds = [_from_annotation(kind) for kind in arguments if kind is not type(None)]
        return kinds[0] if len(kinds) == 1 else _merged(arguments, kinds)
    if origin is list:
        return Shape(items=_from_annotation(arguments[0]))
    if origin is dict:
        # A mapping of anything is carried whole; one of strings has its own entries.
        return Shape(plain=True) if arguments[1] is Any else Shape(items=_from_annotation(arguments[1]))
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
    items = next((shape.items for shape in shapes if shape.items is not None), None)
    plain = any(shape.plain for shape in shapes)
    return Shape(items=None if variants else items, variants=variants, plain=plain)
