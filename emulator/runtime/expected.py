"""What a Python script says it expects, as an expectation.

Law: one that cannot be checked is the script's error, told before anybody is asked anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from emulator.domain.expectations import KEYS, Expectation
from emulator.refusals import did_you_mean
from emulator.runtime.fault import script_place
from emulator.runtime.patterns import unusable
from emulator.runtime.player import Expected
from emulator.runtime.run import ScriptError

if TYPE_CHECKING:
    from collections.abc import Sequence

_KINDS: Final[Mapping[str, tuple[type, str]]] = {
    "success": (bool, "true or false"),
    "approved": (bool, "true or false"),
    "matches": (str, "a regular expression"),
    "error": (str, "a regular expression"),
    "answer": (str, "text"),
}


def expected_of(verb: str, kind: str, given: Expected | Mapping[str, Any] | None) -> Expected | None:
    """The expectation of an answer to an action of a type. Raises `ScriptError` for one that says nothing."""
    if given is None or isinstance(given, Expected):
        return given
    accepted: Sequence[str] = KEYS[kind]
    if not given:
        raise ScriptError(f"{verb}: nothing is expected. Accepted: {', '.join(accepted)}")
    for name, value in given.items():
        if name not in accepted:
            hint = did_you_mean(str(name), accepted)
            raise ScriptError(f"{verb}: {name!r} is nothing to expect here. Accepted: {', '.join(accepted)}.{hint}")
        wanted = _KINDS.get(name)
        if wanted is not None and type(value) is not wanted[0]:
            raise ScriptError(f"{verb}: the expected `{name}` is {wanted[1]}, which {value!r:.80} is not")
        if name in ("matches", "error") and (wrong := unusable(value)) is not None:
            raise ScriptError(f"{verb}: the expected `{name}` {wrong}")
    return Expected(Expectation(**given), script_place())
