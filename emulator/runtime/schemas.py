"""Schemas: following references in a JSON Schema, and asking whether a value fits.

Law: a schema comes from outside and was never examined, so anything in it may be nonsense. A keyword
that is not what it should be is ignored, and every question ends after a bounded number of steps.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from emulator.runtime.patterns import found

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

STEPS: Final = 50_000
DEPTH: Final = 60


def resolve(root: Any, reference: Any) -> Any:
    """What a local reference (`#/$defs/name`, `#`, `#anchor`) points at, or `None`."""
    if not isinstance(reference, str) or not reference.startswith("#"):
        return None
    fragment = unquote(reference[1:])
    if fragment and not fragment.startswith("/"):
        return _anchored(root, fragment)
    value = root
    for raw in fragment.split("/")[1:]:
        key = raw.replace("~1", "/").replace("~0", "~")
        if isinstance(value, Mapping) and key in value:
            value = value[key]
        elif isinstance(value, list) and key.isdigit() and len(key) < 7 and int(key) < len(value):
            value = value[int(key)]
        else:
            return None
    return value


def _anchored(root: Any, name: str) -> Any:
    for group in ("$defs", "definitions"):
        entries = root.get(group) if isinstance(root, Mapping) else None
        for schema in entries.values() if isinstance(entries, Mapping) else ():
            if isinstance(schema, Mapping) and schema.get("$anchor") == name:
                return schema
    return None


def number(value: Any) -> int | float | None:
    """`value` if it is a finite number."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return value if isinstance(value, int) or math.isfinite(value) else None


def count(value: Any) -> int | None:
    """`value` if it is a number of things."""
    known = number(value)
    return int(known) if known is not None and known >= 0 and known == int(known) else None


def mapping(value: Any) -> Mapping[str, Any]:
    """`value` if it is an object, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def entries(value: Any) -> list[Any]:
    """`value` if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def names(value: Any) -> list[str]:
    """The strings of a list of names."""
    return [name for name in entries(value) if isinstance(name, str)]


def same(left: Any, right: Any) -> bool:
    """Equality as JSON has it: 1 is 1.0, and true is not 1."""
    return identity(left) == identity(right)


def is_a(value: Any, kind: Any) -> bool:
    """Whether `value` is of a JSON Schema type. An unknown type takes anything."""
    match kind:
        case "null":
            return value is None
        case "boolean":
            return isinstance(value, bool)
        case "integer":
            return (known := number(value)) is not None and known == int(known)
        case "number":
            return number(value) is not None
        case "string":
            return isinstance(value, str)
        case "array":
            return isinstance(value, list)
        case "object":
            return isinstance(value, Mapping)
    return True


class Checker:
    """Asks whether values fit schemas of one document, with so many steps for all its questions."""

    def __init__(self, root: Any) -> None:
        self._root = root
        self._left = STEPS

    def fits(self, value: Any, schema: Any, depth: int = 0) -> bool:
        """Whether `value` is valid under `schema`, as far as was looked. Formats are not looked at."""
        self._left -= 1
        if isinstance(schema, bool):
            return schema
        if not isinstance(schema, Mapping) or depth > DEPTH or self._left < 0:
            return True
        below = depth + 1
        return (
            _of_type(value, schema)
            and self._combined(value, schema, below)
            and _number_fits(value, schema)
            and _text_fits(value, schema)
            and (not isinstance(value, list) or self._list_fits(value, schema, below))
            and (not isinstance(value, Mapping) or self._object_fits(value, schema, below))
        )

    def _combined(self, value: Any, schema: Mapping[str, Any], depth: int) -> bool:
        if "$ref" in schema:
            target = resolve(self._root, schema["$ref"])
            if target is not None and not self.fits(value, target, depth):
                return False
        if not all(self.fits(value, branch, depth) for branch in entries(schema.get("allOf"))):
            return False
        any_of = entries(schema.get("anyOf"))
        if any_of and not any(self.fits(value, branch, depth) for branch in any_of):
            return False
        one_of = entries(schema.get("oneOf"))
        if one_of and sum(self.fits(value, branch, depth) for branch in one_of) != 1:
            return False
        if "not" in schema and self.fits(value, schema["not"], depth):
            return False
        if "if" not in schema:
            return True
        return self.fits(value, schema.get("then" if self.fits(value, schema["if"], depth) else "else", True), depth)

    def _list_fits(self, value: list[Any], schema: Mapping[str, Any], depth: int) -> bool:
        if not _within(len(value), schema, "minItems", "maxItems"):
            return False
        first, rest = tuple_of(schema)
        if not all(self.fits(entry, part, depth) for entry, part in zip(value, first, strict=False)):
            return False
        if not all(self.fits(entry, rest, depth) for entry in value[len(first) :]):
            return False
        if schema.get("uniqueItems") is True and not distinct(value):
            return False
        if "contains" not in schema:
            return True
        matched = sum(self.fits(entry, schema["contains"], depth) for entry in value)
        least, most = count(schema.get("minContains")), count(schema.get("maxContains"))
        return matched >= (1 if least is None else least) and (most is None or matched <= most)

    def _object_fits(self, value: Mapping[str, Any], schema: Mapping[str, Any], depth: int) -> bool:
        if not _within(len(value), schema, "minProperties", "maxProperties"):
            return False
        wanted = names(schema.get("required"))
        for key, dependents in mapping(schema.get("dependentRequired")).items():
            wanted += names(dependents) if key in value else []
        if any(name not in value for name in wanted):
            return False
        for key, dependent in mapping(schema.get("dependentSchemas")).items():
            if key in value and not self.fits(value, dependent, depth):
                return False
        known, patterns = mapping(schema.get("properties")), mapping(schema.get("patternProperties"))
        for key, entry in value.items():
            parts = [known[key]] if key in known else []
            parts += [part for pattern, part in patterns.items() if found(pattern, key)]
            if not all(self.fits(entry, part, depth) for part in parts or [schema.get("additionalProperties", True)]):
                return False
            if not self.fits(key, schema.get("propertyNames", True), depth):
                return False
        return True


def tuple_of(schema: Mapping[str, Any]) -> tuple[list[Any], Any]:
    """The schemas of a list's first entries, and that of the rest. Knows the older spelling."""
    if isinstance(schema.get("items"), list):
        return schema["items"], schema.get("additionalItems", True)
    return entries(schema.get("prefixItems")), schema.get("items", True)


def distinct(value: Iterable[Any]) -> bool:
    """Whether no two entries are the same."""
    seen = [identity(entry) for entry in value]
    return len(set(seen)) == len(seen)


def identity(value: Any) -> Hashable:
    """Something hashable that two values share exactly when they are the `same`."""
    match value:
        case bool():
            return ("boolean", value)
        case list():
            return ("array", tuple(identity(entry) for entry in value))
        case Mapping():
            return ("object", frozenset((key, identity(entry)) for key, entry in value.items()))
    return value if isinstance(value, (int, float, str)) or value is None else ("other", repr(value))


def is_multiple(value: float, step: float) -> bool:
    """Whether `value` is a whole number of steps."""
    if isinstance(value, int) and isinstance(step, int):
        return value % step == 0
    quotient = value / step
    return math.isfinite(quotient) and quotient == int(quotient)


def merged(left: Mapping[str, Any], right: Mapping[str, Any]) -> dict[str, Any]:
    """Both schemas at once, as far as one flat schema can say it."""
    made = dict(left)
    for key, value in right.items():
        made[key] = _both(key, made[key], value) if key in made else value
    return made


def _both(key: str, left: Any, right: Any) -> Any:
    match key:
        case "properties" | "patternProperties" | "dependentRequired":
            old, new = mapping(left), mapping(right)
            shared = {name: {"allOf": [old[name], new[name]]} for name in old.keys() & new.keys()}
            return {**old, **new, **shared}
        case "required":
            return [*names(left), *(name for name in names(right) if name not in names(left))]
        case "enum":
            return [value for value in entries(left) if value in entries(right)]
        case "type":
            ours, theirs = ([kinds] if isinstance(kinds, str) else entries(kinds) for kinds in (left, right))
            common = [kind for kind in ours if kind in theirs or (kind == "integer" and "number" in theirs)]
            return common + [kind for kind in theirs if kind == "integer" and "number" in ours and kind not in common]
        case "items" | "additionalProperties" | "contains" | "propertyNames" if not isinstance(left, list):
            return {"allOf": [left, right]}
    return _narrower(key, left, right)


def _narrower(key: str, left: Any, right: Any) -> Any:
    low, high = number(left), number(right)
    if low is None or high is None:
        return right
    if key.startswith("min") or key == "exclusiveMinimum":
        return max(low, high)
    if key.startswith("max") or key == "exclusiveMaximum":
        return min(low, high)
    if key == "multipleOf" and low > 0 and high > 0:
        one, other = Fraction(str(low)), Fraction(str(high))
        common = Fraction(math.lcm(one.numerator, other.numerator), math.gcd(one.denominator, other.denominator))
        return int(common) if common.denominator == 1 else float(common)
    return right


def _of_type(value: Any, schema: Mapping[str, Any]) -> bool:
    kinds = schema.get("type")
    if isinstance(kinds, str) and not is_a(value, kinds):
        return False
    if isinstance(kinds, list) and kinds and not any(is_a(value, kind) for kind in kinds):
        return False
    if "const" in schema and not same(value, schema["const"]):
        return False
    choices = entries(schema.get("enum"))
    return not choices or any(same(value, choice) for choice in choices)


def _number_fits(value: Any, schema: Mapping[str, Any]) -> bool:
    if (known := number(value)) is None:
        return True
    low, above = number(schema.get("minimum")), number(schema.get("exclusiveMinimum"))
    high, below = number(schema.get("maximum")), number(schema.get("exclusiveMaximum"))
    # The older spelling makes the other bound exclusive with `true`.
    above = low if schema.get("exclusiveMinimum") is True else above
    below = high if schema.get("exclusiveMaximum") is True else below
    if (low is not None and known < low) or (high is not None and known > high):
        return False
    if (above is not None and known <= above) or (below is not None and known >= below):
        return False
    step = number(schema.get("multipleOf"))
    try:
        return not step or step < 0 or is_multiple(known, step)
    except OverflowError:
        return False


def _text_fits(value: Any, schema: Mapping[str, Any]) -> bool:
    if not isinstance(value, str):
        return True
    pattern = schema.get("pattern")
    if isinstance(pattern, str) and found(pattern, value) is False:
        return False
    return _within(len(value), schema, "minLength", "maxLength")


def _within(size: int, schema: Mapping[str, Any], least: str, most: str) -> bool:
    low, high = count(schema.get(least)), count(schema.get(most))
    return (low is None or size >= low) and (high is None or size <= high)
