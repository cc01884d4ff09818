"""Differences: where one JSON value is not as another, field by field, and how that reads.

Law: values are compared as JSON has it: 1 is 1.0, and true is not 1. Nothing is shown of what is kept
under a name of secrets.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from emulator.redaction import WITHHELD, encodable, names_a_secret, scrub, scrub_value

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Check: TypeAlias = Literal["equals", "missing", "unexpected", "matches", "schema"]
# Deeper than any body that is accepted.
_DEPTH: Final = 200


@dataclass(frozen=True, slots=True)
class Difference:
    """One place where what came is not what was expected.

    `missing`: nothing is there; `unexpected`: nothing should be; `matches` and `schema`: `expected` is the regular
    expression or the schema that `actual` does not fit.
    """

    path: tuple[str | int, ...]
    check: Check
    expected: Any = None
    actual: Any = None

    def as_json(self) -> dict[str, Any]:
        """The difference without secrets: `path` as text, `check`, `expected`, `actual`."""
        hidden = any(isinstance(part, str) and names_a_secret(part) for part in self.path)
        shown = _withheld if hidden else scrub_value
        return {
            "path": scrub(path_text(self.path)),
            "check": self.check,
            "expected": shown(self.expected),
            "actual": shown(self.actual),
        }


def path_text(path: tuple[str | int, ...]) -> str:
    """A place in a value: `output.items[0].id`."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif part.replace("_", "a").replace("-", "a").isalnum():
            text += f".{part}" if text else part
        else:
            text += f"[{json.dumps(part, ensure_ascii=False)}]"
    return text


def differences(
    expected: Any, actual: Any, path: tuple[str | int, ...] = (), *, partial: bool = False
) -> Iterator[Difference]:
    """Where `actual` is not `expected`, in order. With `partial`, objects may have more than is expected."""
    if len(path) > _DEPTH:
        return
    if isinstance(expected, dict) and isinstance(actual, dict):
        for key, entry in expected.items():
            if key in actual:
                yield from differences(entry, actual[key], (*path, key), partial=partial)
            else:
                yield Difference((*path, key), "missing", expected=entry)
        if not partial:
            for key, entry in actual.items():
                if key not in expected:
                    yield Difference((*path, key), "unexpected", actual=entry)
    elif isinstance(expected, list | tuple) and isinstance(actual, list | tuple):
        for n, entry in enumerate(expected):
            if n < len(actual):
                yield from differences(entry, actual[n], (*path, n), partial=partial)
            else:
                yield Difference((*path, n), "missing", expected=entry)
        for n in range(len(expected), len(actual)):
            yield Difference((*path, n), "unexpected", actual=actual[n])
    elif expected != actual or isinstance(expected, bool) is not isinstance(actual, bool):
        yield Difference(path, "equals", expected, actual)


def difference_line(found: Mapping[str, Any]) -> str:
    """A difference, in the form `as_json` gives it, as one line."""
    place, expected, actual = found["path"] or "it", short(found["expected"]), short(found["actual"])
    match found["check"]:
        case "missing":
            return f"{place}: is missing; expected {expected}"
        case "unexpected":
            return f"{place}: is not expected; was {actual}"
        case "matches":
            return f"{place}: expected a match of {expected}, was {actual}"
        case "schema":
            return f"{place}: does not fit the schema {expected}, was {actual}"
        case _:
            return f"{place}: expected {expected}, was {actual}"


def short(value: Any, longest: int = 200) -> str:
    """A JSON value in a line of at most so many characters."""
    text = encodable(json.dumps(value, ensure_ascii=False))
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def _withheld(value: Any) -> Any:
    return None if value is None else WITHHELD
