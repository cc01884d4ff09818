"""Misfits: where in a value a JSON Schema does not hold, as near to the place as can be told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from emulator.differences import Difference
from emulator.runtime.schemas import DEPTH, Checker, entries, mapping, names, resolve, tuple_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


def misfits(value: Any, schema: Any) -> Iterator[Difference]:
    """Each place where `value` does not fit `schema`; nothing where it fits."""
    yield from _Misfits(schema).at(value, schema, ())


class _Misfits:
    def __init__(self, root: Any) -> None:
        self._root = root

    def at(self, value: Any, schema: Any, path: tuple[str | int, ...]) -> Iterator[Difference]:
        if self._fits(value, schema):
            return
        inside = list(self._inside(value, mapping(schema), path)) if len(path) < DEPTH else []
        if inside:
            yield from inside
        else:
            yield Difference(path, "schema", schema, value)

    def _fits(self, value: Any, schema: Any) -> bool:
        return Checker(self._root).fits(value, schema)

    def _inside(self, value: Any, schema: Mapping[str, Any], path: tuple[str | int, ...]) -> Iterator[Difference]:
        """The places further in, where they are what does not fit."""
        target = resolve(self._root, schema.get("$ref"))
        # A schema that leads back to itself is asked about once for each level of the value.
        if target is not None and target is not schema and "$ref" not in mapping(target):
            yield from self.at(value, target, path)
        if isinstance(value, dict):
            known = mapping(schema.get("properties"))
            for name in names(schema.get("required")):
                if name not in value:
                    yield Difference((*path, name), "missing", known.get(name, True))
            for key, entry in value.items():
                if key in known:
                    yield from self.at(entry, known[key], (*path, key))
                elif schema.get("additionalProperties") is False and not mapping(schema.get("patternProperties")):
                    yield Difference((*path, key), "unexpected", actual=entry)
        elif isinstance(value, list):
            first, rest = tuple_of(schema)
            for n, entry in enumerate(value):
                yield from self.at(entry, first[n] if n < len(first) else rest, (*path, n))
        for branch in entries(schema.get("allOf")):
            yield from self.at(value, branch, path)
