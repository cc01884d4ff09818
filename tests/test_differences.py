"""Differences: where a JSON value is not as another, and how that reads."""

from __future__ import annotations

from typing import Any

import pytest

from emulator.differences import difference_line, differences, path_text


def lines(expected: Any, actual: Any, *, partial: bool = False) -> list[str]:
    return [difference_line(found.as_json()) for found in differences(expected, actual, ("output",), partial=partial)]


@pytest.mark.parametrize(
    "value", [None, True, 0, 1.5, "text", [], {}, {"a": [1, {"b": None}]}], ids=lambda value: repr(value)
)
def test_a_value_is_as_itself(value: Any) -> None:
    assert lines(value, value) == []


def test_numbers_are_compared_as_json_has_them() -> None:
    assert lines({"a": 1}, {"a": 1.0}) == []
    assert lines({"a": 1}, {"a": True}) == ["output.a: expected 1, was true"]
    assert lines({"a": False}, {"a": 0}) == ["output.a: expected false, was 0"]


def test_every_place_is_told_with_both_values() -> None:
    expected = {"status": "shipped", "items": [{"sku": 1}, {"sku": 2}], "note": None}
    actual = {"status": "lost", "items": [{"sku": 1}], "extra": [1], "note": "x"}
    assert lines(expected, actual) == [
        'output.status: expected "shipped", was "lost"',
        'output.items[1]: is missing; expected {"sku": 2}',
        'output.note: expected null, was "x"',
        "output.extra: is not expected; was [1]",
    ]


def test_a_partial_comparison_lets_objects_have_more_and_lists_not() -> None:
    assert lines({"a": {"b": 1}}, {"a": {"b": 1, "c": 2}, "d": 3}, partial=True) == []
    assert lines({"a": [1]}, {"a": [1, 2]}, partial=True) == ["output.a[1]: is not expected; was 2"]
    assert lines({"a": {"b": 1}}, {"a": {}}, partial=True) == ["output.a.b: is missing; expected 1"]


def test_values_of_different_kinds_differ_as_a_whole() -> None:
    assert lines({"a": 1}, "text") == ['output: expected {"a": 1}, was "text"']
    assert lines([1], {"0": 1}) == ['output: expected [1], was {"0": 1}']


def test_what_is_kept_under_the_name_of_a_secret_is_withheld() -> None:
    told = lines(
        {"api_key": "canary-1", "in": {"x": 1}}, {"api_key": "canary-2", "in": {"x": {"password": "canary-3"}}}
    )
    assert told == [
        'output.api_key: expected "[withheld]", was "[withheld]"',
        'output.in.x: expected 1, was {"password": "[withheld]"}',
    ]
    assert lines({}, {"gbr_pat_canary": "gbr_pat_canary"}) == ['output.[withheld]: is not expected; was "[withheld]"']


def test_a_path_names_keys_that_are_no_names_in_quotes() -> None:
    assert path_text(("output", "a b", 0, "c.d", "e-f")) == 'output["a b"][0]["c.d"].e-f'


def test_a_long_value_is_cut() -> None:
    (line,) = lines({"a": "x" * 500}, {"a": 1})
    assert len(line) < 260
    assert "…" in line
