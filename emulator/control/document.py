"""The OpenAPI document of the control routes, made from their table, the scenario's schema and the settings."""

from __future__ import annotations

import dataclasses
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from pydantic import TypeAdapter

from emulator import __version__
from emulator.api.openapi import build
from emulator.control.operations import OPERATIONS
from emulator.settings import NAMES, Settings
from emulator.wire.scenario import scenario_schema

if TYPE_CHECKING:
    from collections.abc import Mapping

_SCENARIO: Final = "Scenario"
_RECORDING: Final[Mapping[str, Any]] = {
    "type": "object",
    "description": "A recording: its first line, with the others as `entries`.",
    "required": ["recording"],
    "properties": {
        "recording": {"const": 1},
        "mode": {"enum": ["script", "strict"], "description": "How it is played; the setting `mode` when absent."},
        "free": {"type": "array", "items": {"type": "string"}, "description": "Body fields `strict` passes over."},
        "entries": {"type": "array", "items": {"type": "object"}},
    },
}
_MORE: Final[Mapping[int, tuple[str, str]]] = {
    401: ("authentication_error", "A control token is set, and this request does not have it."),
    403: ("permission_denied", "The emulator does not serve this host name."),
    409: ("conflict", "The present state does not allow it."),
}
_CONFLICTS: Final = ("/_emulator/actions", "/_emulator/actions/{call_id}")


@cache
def document() -> dict[str, Any]:
    """The document of /_emulator, made once: whoever wants to change it makes a copy."""
    built = build(
        OPERATIONS,
        title="Gobare emulator control",
        version=__version__,
        description="Scripts and inspects an emulator of the Gobare Agent API. No part of that API.",
        prefix="/_emulator",
    )
    components = built["components"]
    components["securitySchemes"] = {
        "controlToken": {"type": "http", "scheme": "bearer", "description": "Only where one was set at the start."}
    }
    schemas = components["schemas"]
    schemas |= _scenario_schemas()
    schemas["PlayedDocument"] = {"anyOf": [{"$ref": "#/components/schemas/ScenarioDocument"}, _RECORDING]}
    settings, changes = _settings_schemas()
    schemas |= {"SettingsDocument": settings, "SettingsChange": changes}
    for operation in OPERATIONS:
        _complete(built["paths"][operation.path][operation.verb.lower()], operation.open, operation.optional)
        if operation.path in _CONFLICTS:
            _refused(built["paths"][operation.path][operation.verb.lower()], 409)
    return built


def _complete(described: dict[str, Any], is_open: bool, optional: bool) -> None:
    described["security"] = [] if is_open else [{}, {"controlToken": []}]
    for status in (403,) if is_open else (401, 403):
        _refused(described, status)
    if optional:
        described["requestBody"]["required"] = False


def _refused(described: dict[str, Any], status: int) -> None:
    responses = described["responses"]
    code, meaning = _MORE[status]
    refused = responses["400"] | {"description": meaning, "x-error-codes": [code]}
    if status == 401:
        how = {"description": "How to authenticate.", "schema": {"type": "string"}}
        refused["headers"] = refused["headers"] | {"WWW-Authenticate": how}
    responses[str(status)] = refused
    described["responses"] = dict(sorted(responses.items()))


def _scenario_schemas() -> dict[str, Any]:
    """The scenario's own schema and its parts, under names that meet no other."""
    schema = scenario_schema()
    parts: dict[str, Any] = schema.pop("$defs")
    del schema["$schema"]
    named = {"ScenarioDocument": schema} | {f"{_SCENARIO}{name}": part for name, part in parts.items()}
    moved: dict[str, Any] = _moved(named)
    return moved


def _moved(schema: Any) -> Any:
    match schema:
        case {"$ref": str(ref), **rest}:
            return {"$ref": ref.replace("#/$defs/", f"#/components/schemas/{_SCENARIO}"), **_moved(rest)}
        case dict():
            return {key: _moved(value) for key, value in schema.items()}
        case list():
            return [_moved(entry) for entry in schema]
    return schema


def _settings_schemas() -> tuple[dict[str, Any], dict[str, Any]]:
    """The settings as they are read, and as they are changed: fewer, and all of them optional."""
    schema = TypeAdapter(Settings).json_schema()
    parts = schema.pop("$defs", {})
    properties: dict[str, Any] = {}
    changeable: dict[str, Any] = {}
    for definition in dataclasses.fields(Settings):
        described = _inlined(schema["properties"][definition.name], parts)
        described = {key: value for key, value in described.items() if key not in ("title", "default")}
        doc: str = definition.metadata["doc"]
        properties[definition.name] = described | {"description": f"{doc[0].upper()}{doc[1:]}."}
        if not definition.metadata["at_start"]:
            changeable[definition.name] = properties[definition.name]
    shape = {"type": "object", "additionalProperties": False}
    return (
        shape | {"description": "Every setting by name.", "properties": properties, "required": list(NAMES)},
        shape | {"description": "The settings to change; the others stay.", "properties": changeable},
    )


def _inlined(schema: Any, parts: dict[str, Any]) -> Any:
    match schema:
        case {"$ref": str(ref)}:
            return _inlined(parts[ref.rpartition("/")[2]], parts)
        case dict():
            return {key: _inlined(value, parts) for key, value in schema.items()}
        case list():
            return [_inlined(entry, parts) for entry in schema]
    return schema
