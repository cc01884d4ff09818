"""Expectations: what an answer must be like."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from emulator.differences import Difference, difference_line
from emulator.domain.expectations import ANYTHING, Expectation, Outcome

if TYPE_CHECKING:
    from collections.abc import Iterator

DONE = Outcome(success=True, output='{"status": "shipped", "total": 3}')
FAILED = Outcome(success=False, error="warehouse closed")


def no_schema(value: Any, schema: Any) -> Iterator[Difference]:
    raise AssertionError("no schema was given")


def missed(expectation: Expectation, outcome: Outcome) -> list[str]:
    return [difference_line(found.as_json()) for found in expectation.misses(outcome, no_schema)]


@pytest.mark.parametrize(
    ("expectation", "outcome"),
    [
        (Expectation(), DONE),
        (Expectation(success=True), DONE),
        (Expectation(success=False), FAILED),
        (Expectation(output={"total": 3, "status": "shipped"}), DONE),
        (Expectation(output=None), Outcome(success=True, output="null")),
        (Expectation(output="plain"), Outcome(success=True, output="plain")),
        (Expectation(matches=r"ship\w+"), DONE),
        (Expectation(error="closed"), FAILED),
        (Expectation(answer="eu"), Outcome(answer="eu")),
        (Expectation(matches="^e"), Outcome(answer="eu")),
        (Expectation(approved=False), Outcome(approved=False)),
    ],
)
def test_what_is_as_expected_says_nothing(expectation: Expectation, outcome: Outcome) -> None:
    assert missed(expectation, outcome) == []


@pytest.mark.parametrize(
    ("expectation", "outcome", "said"),
    [
        (Expectation(success=False), DONE, ["success: expected false, was true"]),
        (
            Expectation(output={"status": "lost", "total": 3}),
            DONE,
            ['output.status: expected "lost", was "shipped"'],
        ),
        (Expectation(output=None), DONE, ['output: expected null, was {"status": "shipped", "total": 3}']),
        (
            Expectation(output={"status": "x"}),
            FAILED,
            ["success: expected true, was false", 'error: is not expected; was "warehouse closed"'],
        ),
        (
            Expectation(matches="lost"),
            DONE,
            ['output: expected a match of "lost", was {"status": "shipped", "total": 3}'],
        ),
        (Expectation(error="open"), FAILED, ['error: expected a match of "open", was "warehouse closed"']),
        (
            Expectation(error="open"),
            DONE,
            ["success: expected false, was true", 'error: expected a match of "open", was null'],
        ),
        (Expectation(answer="eu"), Outcome(answer="us"), ['answer: expected "eu", was "us"']),
        (Expectation(matches="^e"), Outcome(answer="us"), ['answer: expected a match of "^e", was "us"']),
        (Expectation(approved=True), Outcome(approved=False), ["approved: expected true, was false"]),
    ],
)
def test_what_is_not_as_expected_is_told(expectation: Expectation, outcome: Outcome, said: list[str]) -> None:
    assert missed(expectation, outcome) == said


def test_a_schema_is_asked_with_the_output_read_as_json() -> None:
    asked = []

    def misfits(value: Any, schema: Any) -> Iterator[Difference]:
        asked.append((value, schema))
        yield Difference(("total",), "schema", schema, 3)

    found = list(Expectation(schema={"type": "string"}).misses(DONE, misfits))
    assert asked == [({"status": "shipped", "total": 3}, {"type": "string"})]
    assert found == [Difference(("output", "total"), "schema", {"type": "string"}, 3)]


def test_what_was_given_is_known_even_where_it_is_null() -> None:
    assert Expectation(output=None, success=False).given() == ["success", "output"]
    assert Expectation().given() == []
    assert repr(ANYTHING) == "anything"
