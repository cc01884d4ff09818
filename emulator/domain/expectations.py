"""Expectations: what an answer to the agent must be like, and where one is not.

Law: checking is pure. An expectation that is not met ends nothing; it is told.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final, NoReturn

from emulator.differences import Difference, differences

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

# What may be expected of the answer to each type of action.
KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "function_call": ("success", "output", "schema", "matches", "error"),
    "question": ("answer", "matches"),
    "approval": ("approved",),
}


class _Anything:
    """What is not looked at. `None` cannot say so: an output may have to be null."""

    def __repr__(self) -> str:
        return "anything"


ANYTHING: Final = _Anything()


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came: of a function call `success` and `output` or `error`; else the `answer` or `approved`."""

    success: bool | None = None
    output: str | None = None
    error: str | None = None
    answer: str | None = None
    approved: bool | None = None


@dataclass(frozen=True, slots=True)
class Expectation:
    """What an answer must be like. Every part that is given must hold.

    `output` equals the output read as JSON, or its text where it is no JSON; `schema` is a JSON Schema the output
    fits. `matches` (of an output or an answer) and `error` are regular expressions, searched for anywhere. `output`,
    `schema`, `matches` expect success, and `error` expects none, unless `success` says otherwise.
    """

    success: bool | None = None
    output: Any = ANYTHING
    schema: Any = ANYTHING
    matches: str | None = None
    error: str | None = None
    answer: str | None = None
    approved: bool | None = None

    def given(self) -> list[str]:
        """The names of the parts that are given."""
        return [
            part.name
            for part in fields(self)
            if getattr(self, part.name) is not (ANYTHING if part.name in ("output", "schema") else None)
        ]

    def misses(self, outcome: Outcome, misfits: Callable[[Any, Any], Iterator[Difference]]) -> Iterator[Difference]:
        """Where `outcome` is not as expected. `misfits(value, schema)` tells where a value does not fit a schema."""
        if self.answer is not None:
            yield from differences(self.answer, outcome.answer, ("answer",))
        if self.approved is not None:
            yield from differences(self.approved, outcome.approved, ("approved",))
        if outcome.success is None:
            yield from _found(self.matches, outcome.answer, "answer")
            return
        wants_output = self.output is not ANYTHING or self.schema is not ANYTHING or self.matches is not None
        success = self.success
        if success is None and (wants_output or self.error is not None):
            success = self.error is None
        if success is not None and success != outcome.success:
            yield Difference(("success",), "equals", success, outcome.success)
            if not outcome.success:
                # Why it did not succeed says more than all the fields that an output would have had.
                yield Difference(("error",), "unexpected", actual=outcome.error)
                return
        yield from _found(self.error, outcome.error, "error")
        if wants_output:
            value = parsed(outcome.output)
            if self.output is not ANYTHING:
                yield from differences(self.output, value, ("output",))
            if self.schema is not ANYTHING:
                for found in misfits(value, self.schema):
                    yield Difference(("output", *found.path), found.check, found.expected, found.actual)
            yield from _found(self.matches, outcome.output, "output")


def _found(pattern: str | None, text: str | None, name: str) -> Iterator[Difference]:
    if pattern is not None and (text is None or re.search(pattern, text) is None):
        # Read where it can be: what JSON says is a secret is withheld, which a text does not say.
        yield Difference((name,), "matches", pattern, parsed(text))


def parsed(text: str | None) -> Any:
    """The JSON value of a text; the text itself where it is none."""
    if text is None:
        return None
    try:
        return json.loads(text, parse_constant=_not_json)
    except (ValueError, RecursionError):
        return text


def _not_json(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
