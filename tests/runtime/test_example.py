"""A value for a JSON Schema."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from emulator.runtime.example import FORMATS, example
from emulator.runtime.patterns import found, matching

NODE: dict[str, Any] = {
    "$ref": "#/$defs/node",
    "$defs": {
        "node": {
            "type": "object",
            "properties": {
                "value": {"type": "integer"},
                "next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]},
            },
            "required": ["value", "next"],
        }
    },
}
ORDINARY: list[tuple[Any, Any]] = [
    ({"const": False}, False),
    ({"type": "string", "default": "eu", "enum": ["us", "eu"]}, "eu"),
    ({"type": "integer", "default": "not one"}, 1),
    ({"type": "string", "examples": ["A-4471", "B"]}, "A-4471"),
    ({"enum": [None, 1]}, None),
    ({"type": "string"}, "example"),
    ({"type": ["null", "integer"]}, 1),
    ({"type": "null"}, None),
    ({"type": "boolean"}, True),
    ({"type": "string", "maxLength": 2}, "ex"),
    ({"type": "string", "minLength": 9}, "exampleee"),
    ({"type": "string", "pattern": "^[A-Z]{3}-\\d{4}$"}, "AAA-0000"),
    ({"type": "string", "pattern": "^(eu|us)-[a-z]+$"}, "eu-a"),
    ({"type": "string", "pattern": "^[a-z]+$", "minLength": 5}, "aaaaa"),
    ({"type": "integer", "minimum": 5}, 5),
    ({"type": "integer", "exclusiveMinimum": 5}, 6),
    ({"type": "integer", "maximum": -5}, -5),
    ({"type": "integer", "multipleOf": 7, "minimum": 8}, 14),
    ({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 0.5}, 0.25),
    ({"type": "number", "multipleOf": 0.01, "minimum": 3.005}, 3.01),
    ({"type": "object", "properties": {"a": {"type": "string"}, "b": {}}, "required": ["a"]}, {"a": "example"}),
    ({"type": "object", "required": ["unknown"]}, {"unknown": "example"}),
    ({"properties": {"a": {"type": "integer"}}, "minProperties": 1}, {"a": 1}),
    ({"type": "array"}, []),
    ({"type": "array", "items": {"type": "integer"}, "minItems": 2}, [1, 1]),
    ({"type": "array", "items": {"type": "integer"}, "minItems": 2, "uniqueItems": True}, [1, 2]),
    ({"type": "array", "prefixItems": [{"type": "integer"}, {"const": "x"}], "items": False}, [1, "x"]),
    ({"type": "array", "contains": {"const": 5}}, [5]),
    (NODE, {"value": 1, "next": None}),
    ({"anyOf": [False, {"type": "integer"}]}, 1),
    ({"oneOf": [{"type": "string"}, {"minLength": 2, "type": "string"}, {"const": 3}]}, 3),
    ({"allOf": [{"type": "integer", "minimum": 4}, {"maximum": 9}]}, 4),
    ({"not": {"type": "string"}}, {}),
    ({"if": {"const": 1}, "then": {"const": 2}, "else": {"const": 3}}, 3),
    ({"allOf": [{"type": ["integer", "string"]}, {"type": ["null", "number"]}]}, 1),
    ({"allOf": [{"enum": [1, 2, 3]}, {"enum": [3, 2]}]}, 2),
    ({"allOf": [{"type": "number", "multipleOf": 0.5}, {"multipleOf": 0.75, "minimum": 1}]}, 1.5),
    ({"allOf": [{"type": "integer", "multipleOf": 4}, {"multipleOf": 6}]}, 12),
    (
        {
            "allOf": [
                {"properties": {"a": {"type": "integer"}}, "required": ["a"], "type": "object"},
                {"properties": {"a": {"minimum": 7}, "b": {"const": 0}}, "required": ["b"]},
            ]
        },
        {"a": 7, "b": 0},
    ),
    ({"allOf": [{"items": {"type": "integer"}}, {"items": {"minimum": 3}, "minItems": 1}], "type": "array"}, [3]),
    ({"type": "object", "dependentRequired": {"a": ["b"]}, "required": ["a"]}, {"a": "example", "b": "example"}),
    ({"type": "object", "patternProperties": {"^x-": {"const": 1}}, "required": ["x-"]}, {"x-": 1}),
    (
        {"patternProperties": {"^x": {"const": 1}}, "additionalProperties": False, "minProperties": 1},
        {"x": 1},
    ),
    ({"type": "object", "propertyNames": {"enum": ["p", "q"]}, "minProperties": 2}, {"p": "example", "q": "example"}),
    ({"$ref": "#tag", "$defs": {"other": {}, "one": {"$anchor": "tag", "const": 4}}}, 4),
    ({"$ref": "#/$defs/list/prefixItems/1", "$defs": {"list": {"prefixItems": [{}, {"const": 8}]}}}, 8),
    ({"type": "array", "uniqueItems": True, "minItems": 2, "items": {"type": "boolean"}}, [True, False]),
    (
        {"type": "array", "uniqueItems": True, "minItems": 2, "items": {"type": "array", "minItems": 1}},
        [["example"], ["example2"]],
    ),
    ({"type": "array", "uniqueItems": True, "minItems": 2, "items": {"enum": [1, True, {"a": []}]}}, [1, True]),
    ({"type": "array", "uniqueItems": True, "minItems": 2, "items": {"format": "date"}}, ["2026-01-01", "2026-01-02"]),
    ({"$ref": "#/definitions/a%20b", "definitions": {"a b": {"const": 1}}}, 1),
    (True, "example"),
    ({}, "example"),
]
NONSENSE: list[Any] = [
    None,
    False,
    3,
    "string",
    [],
    {"type": "banana"},
    {"type": 5},
    {"type": []},
    {"$ref": "#"},
    {"$ref": 5},
    {"$ref": "https://example.com/schema"},
    {"$ref": "#/a", "a": {"$ref": "#/b"}, "b": {"$ref": "#/a"}},
    {"type": "object", "required": ["a"], "properties": {"a": {"$ref": "#"}}},
    {"type": "object", "required": "x"},
    {"type": "object", "properties": [1], "required": [None, 1]},
    {"type": "array", "minItems": 10**12},
    {"type": "array", "minItems": 50, "items": {"type": "array", "minItems": 50, "items": {"minItems": 50}}},
    {"type": "array", "minItems": 5, "uniqueItems": True, "items": {"type": "boolean"}},
    {"type": "array", "minItems": 1000, "uniqueItems": True, "items": {"type": "integer"}},
    {"type": "string", "minLength": 10**12},
    {"type": "string", "pattern": "("},
    {"type": "string", "pattern": "(a+)+$", "default": "a" * 60 + "!"},
    {"type": "string", "pattern": ".*.*.*.*.*.*=x", "default": "=" * 5000},
    {"type": "string", "pattern": "a{99999999}"},
    {"type": "integer", "minimum": 5, "maximum": 1},
    {"type": "integer", "minimum": 10**400},
    {"type": "number", "minimum": 1e308, "exclusiveMinimum": True},
    {"type": "number", "multipleOf": 0},
    {"type": "number", "multipleOf": 1e-320},
    {"type": "object", "minProperties": 10**9},
    {"enum": []},
    {"allOf": [{"anyOf": [{"type": "string"}, {"type": "integer"}]}] * 40},
    {"anyOf": [{"oneOf": [{} for _ in range(40)]} for _ in range(40)]},
]


@pytest.mark.parametrize(("schema", "value"), ORDINARY)
def test_an_ordinary_schema_has_this_value(schema: Any, value: Any) -> None:
    made = example(schema)
    assert (made, type(made)) == (value, type(value))
    Draft202012Validator(schema).validate(made)


@pytest.mark.parametrize("name", FORMATS)
def test_a_format_gives_a_value_of_that_format(name: str) -> None:
    checker = Draft202012Validator.FORMAT_CHECKER
    schema = {"type": "string", "format": name}
    Draft202012Validator(schema, format_checker=checker).validate(example(schema))
    unique = {"type": "array", "items": schema, "minItems": 1}
    Draft202012Validator(unique, format_checker=checker).validate(example(unique))


def test_a_format_that_must_be_long_is_lengthened() -> None:
    assert example({"type": "string", "format": "email", "minLength": 30}).endswith("@example.com")
    assert len(example({"type": "string", "format": "uri", "minLength": 50})) == 50


@pytest.mark.parametrize("schema", NONSENSE, ids=lambda schema: repr(schema)[:60])
def test_nonsense_neither_raises_nor_hangs(schema: Any) -> None:
    json.dumps(example(schema))


def test_a_schema_nested_beyond_reason_ends() -> None:
    deep: dict[str, Any] = {"type": "string"}
    for _ in range(5000):
        deep = {"type": "object", "required": ["a"], "properties": {"a": deep}}
    assert example(deep) == {}


def test_the_value_is_the_same_each_time_and_shares_nothing_with_the_schema() -> None:
    schema: dict[str, Any] = {"default": {"list": []}}
    first = example(schema)
    first["list"].append(1)
    assert example(schema) == {"list": []}


def integers() -> st.SearchStrategy[dict[str, Any]]:
    bounds = st.tuples(st.integers(-50, 50), st.integers(0, 60))
    return bounds.map(lambda b: {"type": "integer", "minimum": b[0], "maximum": b[0] + b[1]})


def multiples() -> st.SearchStrategy[dict[str, Any]]:
    return st.tuples(st.sampled_from([1, 3, 7, 0.5, 0.25]), st.integers(-50, 50)).map(
        lambda m: {"type": "number", "multipleOf": m[0], "exclusiveMinimum": m[1]}
    )


def numbers() -> st.SearchStrategy[dict[str, Any]]:
    bounds = st.tuples(st.floats(-1000, 1000), st.floats(0.001, 1000))
    return bounds.map(lambda b: {"type": "number", "exclusiveMinimum": b[0], "exclusiveMaximum": b[0] + b[1]})


def texts() -> st.SearchStrategy[dict[str, Any]]:
    lengths = st.tuples(st.integers(0, 30), st.integers(0, 30))
    return lengths.map(lambda n: {"type": "string", "minLength": n[0], "maxLength": n[0] + n[1]})


def simple() -> st.SearchStrategy[dict[str, Any]]:
    constants = st.sampled_from([None, True, 0, 1.5, "x", [1], {"a": 1}])
    patterns = ["^[a-f0-9]{8}$", "^\\w+@\\w+\\.com$", "^(a|b)?c*$", "x\\.y", "^[^0-9]{2,3}$", "^\\+?[1-9]\\d{1,14}$"]
    return st.one_of(
        integers(),
        numbers(),
        multiples(),
        texts(),
        st.sampled_from([{"type": "boolean"}, {"type": "null"}, {}, {"type": ["null", "string", "array"]}]),
        st.lists(constants, min_size=1, max_size=3).map(lambda choices: {"enum": choices}),
        constants.map(lambda value: {"const": value}),
        st.sampled_from(patterns).map(lambda pattern: {"type": "string", "pattern": pattern}),
    )


def nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    objects = st.dictionaries(st.sampled_from("abcd"), inner, max_size=3).flatmap(
        lambda properties: st.builds(
            lambda required, closed, least: {
                "type": "object",
                "properties": properties,
                "required": sorted(required),
                "additionalProperties": not closed,
                "minProperties": min(least, len(properties)),
            },
            st.sets(st.sampled_from(sorted(properties))) if properties else st.just(set()),
            st.booleans(),
            st.integers(0, 3),
        )
    )
    arrays = st.tuples(inner, st.integers(0, 3)).map(
        lambda part: {"type": "array", "items": part[0], "minItems": part[1]}
    )
    tuples = st.lists(inner, max_size=3).map(
        lambda parts: {"type": "array", "prefixItems": parts, "items": False, "minItems": len(parts)}
    )
    choices = st.lists(inner, min_size=1, max_size=3).map(lambda parts: {"anyOf": parts})
    alone = inner.map(lambda part: {"allOf": [part]})
    return st.one_of(objects, arrays, tuples, choices, alone)


@settings(max_examples=200, deadline=None, derandomize=True, database=None)
@given(st.recursive(simple(), nested, max_leaves=8))
def test_a_value_is_valid_under_the_schema_it_was_made_for(schema: Any) -> None:
    Draft202012Validator(schema).validate(example(schema))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
KEYWORDS = (
    "type enum const default examples properties required additionalProperties patternProperties propertyNames "
    "dependentRequired items prefixItems contains minItems maxItems uniqueItems minimum maximum exclusiveMinimum "
    "multipleOf minLength maxLength pattern format $ref $defs allOf anyOf oneOf not if then else minProperties"
)


@settings(max_examples=200, deadline=None, derandomize=True, database=None)
@given(st.dictionaries(st.sampled_from(KEYWORDS.split()), JSON | st.just({"$ref": "#"}) | st.just([{"$ref": "#"}])))
def test_keywords_with_anything_behind_them_are_survived(schema: Any) -> None:
    example(schema)


@pytest.mark.parametrize(
    "pattern",
    [
        *("^\\d{3}-[A-F]$", "^(?:ab|c)+\\.x?$", "[^a-z]", "^[]x]$", "\\x41\\u0042", "^\\w\\s\\S\\D\\W$"),
        "^a{2,}b{1,3}?c*+$",
        *("(?P<year>\\d{4})", "\\bword\\b", "^\\t\\n$", "^$", "", "a|b|", "^[\\d.]+$", "^[^\\x00-\\x7f]?.$", "{"),
    ],
)
def test_a_pattern_gives_a_text_it_finds(pattern: str) -> None:
    if (text := matching(pattern)) is not None:
        assert re.search(pattern, text) is not None
        assert found(pattern, text) is not False
    else:
        assert pattern == "{"


@pytest.mark.parametrize(
    "pattern", ["(?=a)b", "\\p{L}", "a**", "(a", "a)", "[z", "\\1", "\\xzz", "x{,}", "(" * 5000, "[^\\s\\S]"]
)
def test_a_pattern_that_is_not_understood_gives_nothing(pattern: str) -> None:
    assert matching(pattern) is None


@pytest.mark.parametrize(
    "pattern", ["(a+)+$", "(a|a)*$", "(a|aa)+$", "(.*)*x", "((ab?)*c?)*$", "(?=a+)a+a+$", "a*a*a*a*a*a*$"]
)
def test_a_pattern_that_may_search_for_ever_is_not_searched_with(pattern: str) -> None:
    assert found(pattern, "a" * 5000 + "!") is None


def test_a_text_for_a_pattern_keeps_to_the_lengths() -> None:
    assert matching("^a+$", shortest=4, longest=4) == "aaaa"
    assert matching("^a$", shortest=2) is None
    assert matching("a", shortest=3) == "aaa"
