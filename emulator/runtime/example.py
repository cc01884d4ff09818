"""Example: one value that a JSON Schema accepts, the same each time.

Law: never raises and always ends, whatever it is given. What the author wrote down (`const`,
`default`, `examples`, `enum`) comes first; then the smallest value of the right kind; optional
properties are left out. A schema nothing fits gets the closest thing that was found.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from fractions import Fraction
from itertools import islice, product
from typing import TYPE_CHECKING, Any, Final

from emulator.runtime.patterns import matching
from emulator.runtime.schemas import (
    Checker,
    count,
    entries,
    identity,
    mapping,
    merged,
    names,
    number,
    resolve,
    tuple_of,
)

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator

STEPS: Final = 10_000
ENTRIES: Final = 1_000
CHARACTERS: Final = 100_000
COMBINATIONS: Final = 60

FORMATS: Final[Mapping[str, str]] = {
    "date": "2026-01-01",
    "date-time": "2026-01-01T00:00:00Z",
    "time": "00:00:00Z",
    "duration": "P1D",
    "email": "user@example.com",
    "idn-email": "user@example.com",
    "hostname": "example.com",
    "idn-hostname": "example.com",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "uri": "https://example.com/",
    "uri-reference": "/example",
    "iri": "https://example.com/",
    "iri-reference": "/example",
    "uri-template": "https://example.com/{id}",
    "uuid": "00000000-0000-4000-8000-000000000001",
    "json-pointer": "/example",
    "relative-json-pointer": "0",
    "regex": "^example$",
    "byte": "ZXhhbXBsZQ==",
}

_KIND_OF_KEYWORD: Final[Mapping[str, str]] = {
    **dict.fromkeys(("properties", "required", "additionalProperties", "minProperties", "patternProperties"), "object"),
    **dict.fromkeys(("items", "prefixItems", "minItems", "contains", "uniqueItems", "maxItems"), "array"),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"), "number"),
    **dict.fromkeys(("minLength", "maxLength", "pattern", "format"), "string"),
}
_KINDS: Final = ("string", "object", "array", "integer", "number", "boolean", "null")


class _NoValue(Exception):
    """No finite value comes out of this part of the schema."""


class _Spent(Exception):
    """The schema is too much work."""


def example(schema: Any) -> Any:
    """A value for `schema`: a JSON Schema, `true`, `false`, or nonsense. `None` when there is none."""
    try:
        return deepcopy(_Maker(schema).make(schema, 0))
    except (_NoValue, _Spent, RecursionError):
        return {} if isinstance(schema, Mapping) and schema.get("type") == "object" else None


class _Maker:
    def __init__(self, root: Any) -> None:
        self._root = root
        self._checker = Checker(root)
        self._left = STEPS
        self._open: list[int] = []

    def make(self, schema: Any, nth: int) -> Any:
        """The `nth` of the values for a schema; different ones as far as they can be told apart."""
        self._left -= 1
        if self._left < 0:
            raise _Spent
        if schema is False:
            raise _NoValue
        if not isinstance(schema, Mapping):
            return _text({}, nth)
        depth = len(self._open)
        second: list[Any] = []
        try:
            for flat in self._flattened(schema):
                for value in self._candidates(flat, nth):
                    if self._checker.fits(value, schema):
                        return value
                    second.append(value)
        finally:
            del self._open[depth:]
        if not second:
            raise _NoValue
        return second[0]

    # Combined schemas

    def _flattened(self, schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        """The schema without references and combinations: one for each way to choose among its branches."""
        depth = len(self._open)
        base, choices = self._collect(schema)
        opened = self._open[depth:]
        for chosen in islice(product(*choices), COMBINATIONS):
            del self._open[depth:]
            self._open += opened
            try:
                flat = base
                for branch in chosen:
                    inner, more = self._collect(branch)
                    flat = merged(flat, inner)
                    for group in more:
                        deeper, _ = self._collect(group[0])
                        flat = merged(flat, deeper)
            except _NoValue:
                continue
            yield flat

    def _collect(self, schema: Any) -> tuple[dict[str, Any], list[list[Any]]]:
        if schema is False:
            raise _NoValue
        self._left -= 1
        if self._left < 0:
            raise _Spent
        flat: dict[str, Any] = {}
        choices: list[list[Any]] = []
        for key, value in mapping(schema).items():
            if key in ("$ref", "allOf"):
                parts = [self._follow(value)] if key == "$ref" else entries(value)
                for part in parts:
                    inner, more = self._collect(part)
                    flat = merged(flat, inner)
                    choices += more
            elif key in ("anyOf", "oneOf"):
                choices += [entries(value)] if entries(value) else []
            elif key == "if":
                then, otherwise = mapping(schema).get("then", True), mapping(schema).get("else", True)
                choices.append([otherwise, {"allOf": [value, then]}])
            elif key not in ("then", "else", "not"):
                flat = merged(flat, {key: value})
        return flat, choices

    def _follow(self, reference: Any) -> Any:
        target = resolve(self._root, reference)
        if isinstance(target, Mapping):
            # A value that must contain itself has no end: some other branch has to do.
            if id(target) in self._open:
                raise _NoValue
            self._open.append(id(target))
        return True if target is None else target

    # Values

    def _candidates(self, flat: Mapping[str, Any], nth: int) -> Iterator[Any]:
        written = [flat[key] for key in ("const", "default") if key in flat]
        written += entries(flat.get("examples")) + entries(flat.get("enum"))
        yield from written[nth:] + written[:nth]
        if "const" in flat or entries(flat.get("enum")):
            return
        for kind in _kinds(flat):
            try:
                yield from self._of_kind(kind, flat, nth)
            except _NoValue:
                continue

    def _of_kind(self, kind: str, flat: Mapping[str, Any], nth: int) -> Iterable[Any]:
        match kind:
            case "object":
                return [self._object(flat, nth)]
            case "array":
                return [self._array(flat, nth)]
            case "integer" | "number":
                return _numbers(flat, whole=kind == "integer", nth=nth)
            case "boolean":
                return [nth % 2 == 0, nth % 2 == 1]
            case "null":
                return [None]
        return _texts(flat, nth)

    def _object(self, flat: Mapping[str, Any], nth: int) -> dict[str, Any]:
        properties = mapping(flat.get("properties"))
        rest = flat.get("additionalProperties", True)
        patterns = mapping(flat.get("patternProperties"))
        made: dict[str, Any] = {}
        wanted = names(flat.get("required"))[:ENTRIES]
        dependents = mapping(flat.get("dependentRequired"))
        for name in wanted:
            wanted += [other for other in names(dependents.get(name)) if other not in wanted]
            if name not in made:
                made[name] = self.make(properties.get(name, self._rest(name, patterns, rest)), nth)
        least = min(count(flat.get("minProperties")) or 0, ENTRIES)
        for name, schema in properties.items():
            if len(made) >= least:
                break
            if name not in made:
                made[name] = self.make(schema, nth)
        naming = flat.get("propertyNames", True)
        for n in range(2 * least):
            if len(made) >= least:
                break
            if patterns and rest is False:
                pattern, schema = list(patterns.items())[n % len(patterns)]
                made[matching(pattern, n) or str(n)] = self.make(schema, nth)
            else:
                name = str(self.make({"allOf": [naming], "type": "string"}, n))
                made[name] = self.make(rest, nth)
        return made

    def _rest(self, name: str, patterns: Mapping[str, Any], rest: Any) -> Any:
        fitting = [schema for pattern, schema in patterns.items() if matching(pattern) == name or pattern in ("", ".*")]
        return fitting[0] if fitting else rest

    def _array(self, flat: Mapping[str, Any], nth: int) -> list[Any]:
        first, rest = tuple_of(flat)
        least, most = count(flat.get("minItems")) or 0, count(flat.get("maxItems"))
        contained = count(flat.get("minContains"))
        inside = 0 if "contains" not in flat else 1 if contained is None else contained
        size = max(least, len(first), inside)
        size = min(size if most is None else min(size, most), ENTRIES)
        made: list[Any] = []
        seen: set[Hashable] = set()
        unique = flat.get("uniqueItems") is True
        for n in range(size):
            schema = first[n] if n < len(first) else rest
            if "contains" in flat and n < inside:
                schema = {"allOf": [schema, flat["contains"]]}
            try:
                made.append(self._next(schema, nth + n, seen) if unique else self.make(schema, nth))
            except _NoValue:
                if n < max(least, inside):
                    raise
                break
        return made

    def _next(self, schema: Any, nth: int, seen: set[Hashable]) -> Any:
        for further in range(8):
            value = self.make(schema, nth + further)
            if (known := identity(value)) not in seen:
                seen.add(known)
                return value
        raise _NoValue


def _kinds(flat: Mapping[str, Any]) -> list[str]:
    kinds = flat.get("type")
    if isinstance(kinds, str):
        kinds = [kinds]
    if isinstance(kinds, list) and (known := [kind for kind in kinds if kind in _KINDS]):
        return sorted(known, key=lambda kind: kind == "null")
    implied = next((kind for keyword, kind in _KIND_OF_KEYWORD.items() if keyword in flat), None)
    return [implied, *(kind for kind in _KINDS if kind != implied)] if implied else list(_KINDS)


def _text(flat: Mapping[str, Any], nth: int) -> str:
    return next(iter(_texts(flat, nth)))


def _texts(flat: Mapping[str, Any], nth: int) -> Iterator[str]:
    least = min(count(flat.get("minLength")) or 0, CHARACTERS)
    most = count(flat.get("maxLength"))
    known = flat.get("format")
    if isinstance(known, str) and known in FORMATS:
        text = FORMATS[known]
        yield text[:-1] + str((int(text[-1]) + nth) % 10) if nth and known in ("date", "uuid", "ipv4") else text
        if known.endswith("email"):
            yield f"{'user'.ljust(least - len('@example.com'), 'r')}@example.com"
        if known in ("uri", "iri", "uri-reference", "iri-reference"):
            yield FORMATS[known] + "a" * max(0, least - len(FORMATS[known]))
    if isinstance(pattern := flat.get("pattern"), str):
        for longer in range(nth, nth + 2):
            if (text_found := matching(pattern, max(least, longer), most)) is not None:
                yield text_found
        if (text_found := matching(pattern, least, most)) is not None:
            yield text_found
    plain = "example" if not nth else f"example{nth + 1}"
    if most is not None and len(plain) > most:
        plain = (str(nth) if nth else plain)[: max(most, 0)]
    yield plain.ljust(least, plain[-1:] or "e")


def _numbers(flat: Mapping[str, Any], *, whole: bool, nth: int) -> Iterator[int | float]:
    low, high = number(flat.get("minimum")), number(flat.get("maximum"))
    above, below = number(flat.get("exclusiveMinimum")), number(flat.get("exclusiveMaximum"))
    above = low if flat.get("exclusiveMinimum") is True else above
    below = high if flat.get("exclusiveMaximum") is True else below
    bottom = max((Fraction(bound) for bound in (low, above) if bound is not None), default=None)
    top = min((Fraction(bound) for bound in (high, below) if bound is not None), default=None)
    multiple = number(flat.get("multipleOf"))
    step = Fraction(str(multiple)) if multiple is not None and multiple > 0 else None
    if step is not None and whole:
        step = Fraction(step.numerator)
    unit = step or Fraction(1)
    preferred = step or (Fraction(1) if whole else Fraction(3, 2))
    starts: list[Fraction] = [preferred + nth * unit]
    if bottom is not None:
        starts += [-(-bottom // unit) * unit + nth * unit, (bottom // unit + 1) * unit + nth * unit]
    if top is not None:
        starts += [top // unit * unit - nth * unit, -(-top // unit - 1) * unit - nth * unit]
        starts.append((top // unit - 1) * unit - nth * unit)
    if step is None and not whole:
        if bottom is not None and top is not None:
            starts.append(bottom + (top - bottom) * Fraction(1 + nth, 2 + nth))
        starts += [bound for bound in (bottom, top) if bound is not None]
    for start in [*starts, Fraction(0)]:
        try:
            yield int(start) if start.denominator == 1 else float(start)
        except OverflowError:
            continue
