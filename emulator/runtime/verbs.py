"""What verbs take: checks that a script's values are of the API's types before anything is shown of them.

Law: a wrong value is the script's error, told by verb and argument, and has changed nothing.
"""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any, Final

from emulator.runtime.run import ScriptError

if TYPE_CHECKING:
    from collections.abc import Mapping

_KINDS: Final[Mapping[type, str]] = {
    str: "text",
    int: "an integer",
    bool: "true or false",
    dict: "an object",
    list: "a list",
}
# Deeper than any body that is accepted.
_DEPTH: Final = 200


def need(verb: str, kind: type, **values: Any) -> None:
    """Raise `ScriptError` unless each value is of `kind`, and can be sent as JSON."""
    for name, value in values.items():
        if type(value) is not kind and not (kind is not int and isinstance(value, kind)):
            raise ScriptError(f"{verb}: `{name}` is {_KINDS[kind]}, which {value!r:.80} is not")
        _sendable(verb, name, value, 0)


def need_texts(verb: str, name: str, values: Any) -> None:
    """Raise `ScriptError` unless `values` is a list of texts."""
    if not isinstance(values, list | tuple) or not all(isinstance(value, str) for value in values):
        raise ScriptError(f"{verb}: `{name}` is a list of texts, which {values!r:.80} is not")
    _sendable(verb, name, list(values), 0)


def need_number(verb: str, name: str, value: Any, low: float, high: float) -> None:
    """Raise `ScriptError` unless `value` is a number between the two."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise ScriptError(f"{verb}: `{name}` is a number from {low:g} to {high:g}, which {value!r:.80} is not")


def _sendable(verb: str, name: str, value: Any, depth: int) -> None:
    """Raise `ScriptError` for what JSON in UTF-8 cannot say."""
    match value:
        case str():
            try:
                value.encode()
            except UnicodeEncodeError:
                raise ScriptError(f"{verb}: `{name}` has half a surrogate pair, which cannot be sent") from None
        case None | bool() | int():
            pass
        case float():
            if not isfinite(value):
                raise ScriptError(f"{verb}: `{name}` has {value!r}, which JSON does not have")
        case dict() | list() | tuple() if depth < _DEPTH:
            if isinstance(value, dict):
                for key, entry in value.items():
                    if not isinstance(key, str):
                        raise ScriptError(f"{verb}: `{name}` has a key that is not text: {key!r:.80}")
                    _sendable(verb, name, key, depth + 1)
                    _sendable(verb, name, entry, depth + 1)
            else:
                for entry in value:
                    _sendable(verb, name, entry, depth + 1)
        case _:
            raise ScriptError(f"{verb}: `{name}` has {value!r:.80}, which JSON does not have")
