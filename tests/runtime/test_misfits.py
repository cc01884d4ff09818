"""Misfits: where in a value a JSON Schema does not hold."""

from __future__ import annotations

from typing import Any

import pytest

from emulator.differences import difference_line
from emulator.runtime.misfits import misfits

ORDER: dict[str, Any] = {
    "type": "object",
    "required": ["id", "items"],
    "properties": {
        "id": {"type": "string"},
        "items": {"type": "array", "items": {"$ref": "#/$defs/item"}},
    },
    "additionalProperties": False,
    "$defs": {"item": {"type": "object", "properties": {"sku": {"type": "integer"}}}},
}


def lines(value: Any, schema: Any) -> list[str]:
    return [difference_line(found.as_json()) for found in misfits(value, schema)]


def test_a_value_that_fits_has_none() -> None:
    assert lines({"id": "a", "items": [{"sku": 1}]}, ORDER) == []
    assert lines({"anything": 1}, True) == []


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"id": 1, "items": []}, ['id: does not fit the schema {"type": "string"}, was 1']),
        ({"id": "a"}, ["items: is missing; expected {"]),
        (
            {"id": "a", "items": [{"sku": 1}, {"sku": "2"}]},
            ['items[1].sku: does not fit the schema {"type": "integer"}'],
        ),
        ({"id": "a", "items": [], "more": 1}, ["more: is not expected; was 1"]),
        ("text", ['it: does not fit the schema {"type": "object"']),
    ],
)
def test_the_place_is_as_near_as_can_be_told(value: Any, said: list[str]) -> None:
    found = lines(value, ORDER)
    assert [line[: len(start)] for line, start in zip(found, said, strict=True)] == said


def test_a_branch_of_all_is_looked_into_and_one_of_any_is_told_as_a_whole() -> None:
    assert lines({"a": 1}, {"allOf": [{"properties": {"a": {"type": "string"}}}]}) == [
        'a: does not fit the schema {"type": "string"}, was 1'
    ]
    assert lines(1, {"anyOf": [{"type": "string"}, {"type": "null"}]})[0].startswith("it: does not fit the schema")


def test_a_schema_that_leads_to_itself_comes_to_an_end() -> None:
    tree: dict[str, Any] = {"properties": {"next": {"$ref": "#"}, "n": {"type": "integer"}}}
    assert lines({"next": {"next": {"n": "x"}}}, tree) == [
        'next.next.n: does not fit the schema {"type": "integer"}, was "x"'
    ]
    assert lines(1, {"$ref": "#", "type": "string"}) != []
