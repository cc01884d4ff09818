"""How much of the API the suite has reached, counted in cells.

A cell is a line of text, made from what the product itself declares: an operation and one of its
statuses or error codes, a value of an enumeration in an answer (states and outcomes are such), a step of
a state machine, how an action ended, a type of event. So what is added to the API adds its cells.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any, Final, get_args
from urllib.parse import parse_qsl

from emulator import render
from emulator.api.operations import OPERATIONS
from emulator.domain import action as actions
from emulator.domain import session, transitions
from emulator.refusals import CATALOGUE
from tests.proof.event_table import EVENTS
from tests.proof.validation import documents

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.proof.exchanges import Exchange
    from tests.proof.validation import Reading

TABLES: Final[Mapping[str, Mapping[tuple[str, str], str]]] = {
    "session": transitions.SESSION,
    "turn": transitions.TURN,
    "workspace": transitions.WORKSPACE,
}


@cache
def cells() -> frozenset[str]:
    """Every cell there is."""
    found: set[str] = set()
    for operation in OPERATIONS:
        name = f"{operation.verb} {operation.path}"
        for status in (operation.status, operation.also):
            if status is not None:
                found.add(f"{name} → {status}")
        found |= {f"{name} → {code}" for code in operation.refusals}
        found.add(f"{operation.path} → method_not_allowed")
    found.add("no such path → not_found")
    for name, table in TABLES.items():
        found |= {_step(name, state, command) for state, command in table}
    for kind in get_args(actions.ActionType):
        found |= {_action(kind, state) for state in get_args(actions.ActionState) if state != "open"}
    found |= {f"event {kind}" for kind in EVENTS}
    for operation in OPERATIONS:
        found |= set(_values(operation.response.model.__name__))
    found.discard("")
    return frozenset(found)


def _step(table: str, state: str, command: str) -> str:
    return f"{table} {state} · {command}"


def _action(kind: str, state: str) -> str:
    return f"action {kind} {state}"


def of_exchange(reading: Reading, known: set[str]) -> Iterator[str]:
    """The cells that an exchange reaches; those of `known` need not be told again."""
    seen, name, described = reading.seen, reading.name, reading.described
    if seen.control:
        return
    if described is None:
        yield "no such path → not_found" if name == "not_found" else f"{_path(seen)} → {name}"
        return
    if reading.code is not None:
        yield f"{name} → {reading.code}"
        return
    yield f"{name} → {seen.status}"
    if reading.answer is not None:
        schema = described["responses"].get(str(seen.status), {}).get("content", {})["application/json"]["schema"]
        if not _values(schema["$ref"].rpartition("/")[2]) <= known:
            yield from _seen(schema, reading.answer, "")


def _path(seen: Exchange) -> str:
    """The path of a request whose verb is not served there, as the table writes it."""
    for operation in OPERATIONS:
        if documents()[0].find(operation.verb, seen.raw_path)[0] == f"{operation.verb} {operation.path}":
            return operation.path
    return ""


def of_event(event: Mapping[str, Any]) -> str:
    """The cell that an event reaches."""
    return f"event {event['type']}"


def watch_states(reached: set[str]) -> None:
    """Note from now on every step of a state machine, and how actions end."""
    step, close = transitions.step, session.Session.close_action
    names = {id(table): name for name, table in TABLES.items()}

    def stepped(table: Any, state: Any, command: str) -> Any:
        after = step(table, state, command)
        reached.add(_step(names[id(table)], state, command))
        return after

    def closed(self: Any, action: actions.Action, state: Any, event: Any) -> None:
        close(self, action, state, event)
        reached.add(_action(action.type, state))

    # The name the sessions know it by.
    session.step = stepped  # type: ignore[attr-defined]
    session.Session.close_action = closed  # type: ignore[method-assign]


# What rows of the manifest must hold: every operation, every field and parameter of a request, every code and
# every event. A row holds what its tests have brought about.


@cache
def promised() -> frozenset[str]:
    """What there must be a row for."""
    found = {f"code {code}" for code in CATALOGUE} | {f"event {kind}" for kind in EVENTS}
    for operation in OPERATIONS:
        name = f"{operation.verb} {operation.path}"
        found.add(f"operation {name}")
        found |= {f"parameter {name} {parameter.name}" for parameter in operation.query}
        if operation.request is not None:
            found |= _all_fields(f"#/{operation.request.model.__name__}")
    return frozenset(found)


@cache
def _all_fields(reference: str) -> frozenset[str]:
    return frozenset(_fields({"$ref": reference}, set()))


def _fields(schema: Any, done: set[str]) -> set[str]:
    found: set[str] = set()
    owner = schema["$ref"].rpartition("/")[2] if "$ref" in schema else ""
    if owner in done:
        return found
    if owner:
        done.add(owner)
        schema = _schemas()[owner]
        found |= {f"field {owner}.{key}" for key, entry in schema.get("properties", {}).items() if entry}
    for entry in (*schema.get("properties", {}).values(), schema.get("items"), *_options(schema)):
        if isinstance(entry, dict):
            found |= _fields(entry, done)
    return found


def _options(schema: dict[str, Any]) -> list[Any]:
    return [*schema.get("anyOf", ()), *schema.get("oneOf", ())]


def held_by(reading: Reading, known: set[str]) -> Iterator[str]:
    """What of it an exchange brings about; what is `known` need not be told again."""
    seen, name, described = reading.seen, reading.name, reading.described
    if seen.control:
        return
    if reading.code is not None:
        yield f"code {reading.code}"
    if described is None:
        return
    if seen.status < 300:
        yield f"operation {name}"
    if seen.query:
        yield from (f"parameter {name} {key}" for key, _ in parse_qsl(seen.query.decode("latin-1")))
    body = described.get("requestBody")
    if body is not None and seen.sent:
        schema = body["content"]["application/json"]["schema"]
        if not _all_fields(schema["$ref"]) <= known:
            with suppress(ValueError, RecursionError):
                yield from _sent(schema, render.decode(seen.sent))


def _sent(schema: Any, value: Any) -> Iterator[str]:
    owner = schema["$ref"].rpartition("/")[2] if "$ref" in schema else ""
    if owner:
        schema = _schemas()[owner]
    if isinstance(value, dict):
        properties = schema.get("properties", {})
        for key in properties.keys() & value.keys():
            yield f"field {owner}.{key}"
            yield from _sent(properties[key], value[key])
    if isinstance(value, list) and "items" in schema:
        for entry in value:
            yield from _sent(schema["items"], entry)
    with suppress(KeyError, TypeError):
        for option in _fitting(schema, value):
            if isinstance(option, dict):
                yield from _sent(option, value)


# The values of enumerations, by where they are: `Turn.status failed`. A list of what is allowed and the
# answer are gone through alike, so that each finds what the other does.


def _schemas() -> dict[str, Any]:
    schemas: dict[str, Any] = documents()[0].text["components"]["schemas"]
    return schemas


@cache
def _values(name: str) -> frozenset[str]:
    """The cells of a schema and of what it refers to."""
    found: set[str] = set()
    done: set[str] = set()

    def walk(schema: dict[str, Any], place: str) -> None:
        reference = schema.get("$ref")
        if reference is not None:
            target = reference.rpartition("/")[2]
            if target not in done:
                done.add(target)
                walk(_schemas()[target], target)
        options = schema.get("anyOf", []) + schema.get("oneOf", [])
        for value in _enumerated(schema):
            found.add(f"{place} {value}")
        for option in options:
            walk(option, place)
        for key, entry in schema.get("properties", {}).items():
            if isinstance(entry, dict):
                walk(entry, f"{place}.{key}")
        if "items" in schema:
            walk(schema["items"], place)

    walk({"$ref": name}, "")
    return frozenset(found)


def _enumerated(schema: dict[str, Any]) -> list[str]:
    """The values of an enumeration; where it may be null, null is one of them."""
    if "enum" in schema:
        return [str(value) for value in schema["enum"]] if len(schema["enum"]) > 1 else []
    options = schema.get("anyOf", [])
    if {"type": "null"} in options and any("enum" in option for option in options):
        return ["null"]
    return []


def _seen(schema: dict[str, Any], value: Any, place: str) -> Iterator[str]:
    if "$ref" in schema:
        target = schema["$ref"].rpartition("/")[2]
        schema, place = _schemas()[target], target
        if target in _nothing():
            return
    shown = "null" if value is None else value
    if isinstance(shown, str) and shown in _enumerated(schema):
        yield f"{place} {shown}"
    for option in _fitting(schema, value):
        yield from _seen(option, value, place)
    if isinstance(value, dict):
        for key, entry in schema.get("properties", {}).items():
            if key in value:
                yield from _seen(entry, value[key], f"{place}.{key}")
    elif isinstance(value, list) and "items" in schema:
        for entry in value:
            yield from _seen(schema["items"], entry, place)


@cache
def _nothing() -> frozenset[str]:
    """The schemas without a cell, which need not be gone into."""
    return frozenset(name for name in _schemas() if not _values(name))


def _fitting(schema: dict[str, Any], value: Any) -> list[dict[str, Any]]:
    if "discriminator" in schema:
        told = schema["discriminator"]
        return [{"$ref": told["mapping"][value[told["propertyName"]]]}]
    options: list[dict[str, Any]] = schema.get("anyOf", []) + schema.get("oneOf", [])
    kinds = {dict: "object", list: "array", str: "string", type(None): "null"}
    kind = kinds.get(type(value))
    return [option for option in options if option.get("type", kind) == kind]
