"""The OpenAPI document, made from the operation table and the shapes; nothing in it is written twice."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Protocol

from pydantic.json_schema import models_json_schema

from emulator.api.operations import OPERATIONS
from emulator.domain.limits import KEY, PAGE
from emulator.refusals import CATALOGUE
from emulator.wire import common

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from emulator.api.parse import Parameter
    from emulator.wire import Named


class Described(Protocol):
    """What the document looks at in an operation."""

    @property
    def verb(self) -> str: ...
    @property
    def path(self) -> str: ...
    @property
    def summary(self) -> str: ...
    @property
    def handler(self) -> Callable[..., object]: ...
    @property
    def request(self) -> Named | None: ...
    @property
    def optional(self) -> bool: ...
    @property
    def response(self) -> Named: ...
    @property
    def status(self) -> int: ...
    @property
    def also(self) -> int | None: ...
    @property
    def media(self) -> str: ...
    @property
    def refusals(self) -> tuple[str, ...]: ...
    @property
    def query(self) -> tuple[Parameter, ...]: ...
    @property
    def scopes(self) -> tuple[str, ...]: ...
    @property
    def public(self) -> bool: ...
    @property
    def stream(self) -> bool: ...
    @property
    def deprecated(self) -> bool: ...
    @property
    def writes(self) -> bool: ...


_MEANING: Final[Mapping[int, str]] = {
    400: "The request is wrong in itself; the message names what to fix.",
    401: "No access token, or one that is not recognised.",
    403: "The token lacks the scope.",
    404: "There is no such endpoint, or no such object in this organization.",
    409: "The present state does not allow it, or the same idempotency key is in flight.",
    429: "A budget, a queue or a ceiling is used up.",
    500: "A fault of the server or of the workspace.",
    502: "The model provider failed or refused.",
    503: "Something the server needs is down; retry after a wait.",
}


@cache
def document() -> dict[str, Any]:
    """The document of /v1, made once: whoever wants to change it makes a copy."""
    return build(
        OPERATIONS,
        title="Gobare Agent API",
        version="v1",
        description="Cloud sessions of a coding agent, driven over HTTP, as this emulator serves them.",
        prefix="/v1",
    )


def build(
    operations: Iterable[Described], *, title: str, version: str, description: str, prefix: str
) -> dict[str, Any]:
    """An OpenAPI 3.1 document of a table of operations."""
    table = list(operations)
    requests = [operation.request.model for operation in table if operation.request is not None]
    responses = [operation.response.model for operation in table]
    models = [(model, "validation") for model in dict.fromkeys([*requests, *responses, common.Error])]
    _, schemas = models_json_schema(models, ref_template="#/components/schemas/{model}")  # type: ignore[arg-type]
    paths: dict[str, dict[str, Any]] = {}
    for operation in table:
        paths.setdefault(operation.path, {})[operation.verb.lower()] = _operation(operation, prefix)
    _link(table, paths)
    return {
        "openapi": "3.1.0",
        "info": {"title": title, "version": version, "description": description},
        "servers": [{"url": "/"}],
        "components": {
            "securitySchemes": {
                "accessToken": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "An access token; what it may do is decided when it is minted.",
                }
            },
            "schemas": {name: _tidied(schema) for name, schema in sorted(schemas["$defs"].items())},
        },
        "paths": paths,
    }


def _operation(operation: Described, prefix: str) -> dict[str, Any]:
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in re.findall(r"\{(\w+)\}", operation.path)
    ]
    parameters += [_parameter(parameter) for parameter in operation.query]
    if operation.stream:
        parameters.append(
            {
                "name": "Last-Event-ID",
                "in": "header",
                "required": False,
                "description": "Like `last_event_id`, which it beats.",
                "schema": {"type": "integer", "minimum": 0},
            }
        )
    if operation.writes:
        parameters.append(
            {
                "name": "Idempotency-Key",
                "in": "header",
                "required": False,
                "description": "A key of your own: for a day the same call with it is answered, not carried out.",
                "schema": {"type": "string", "minLength": 1, "maxLength": KEY},
            }
        )
    described: dict[str, Any] = {
        "operationId": re.sub(r"[^a-zA-Z0-9]+", "_", f"{operation.verb.lower()} {operation.path.removeprefix(prefix)}"),
        "summary": operation.summary,
        "description": (operation.handler.__doc__ or "").strip(),
        "security": [] if operation.public else [{"accessToken": []}],
        "parameters": parameters,
        "responses": _responses(operation),
    }
    if operation.deprecated:
        described["deprecated"] = True
    if len(operation.scopes) == 1:
        described["x-required-scope"] = operation.scopes[0]
    elif operation.scopes:
        described["x-any-required-scope"] = list(operation.scopes)
    if operation.request is not None:
        described["requestBody"] = {
            "required": not operation.optional,
            "content": {"application/json": {"schema": _ref(operation.request.model.__name__)}},
        }
    return described


def _link(table: Iterable[Described], paths: dict[str, dict[str, Any]]) -> None:
    """Say where ids come from: what makes a thing, or else lists such things, leads to all there is to do with one."""
    operations = {(operation.verb, operation.path): operation for operation in table}
    for target in operations.values():
        if "{" not in target.path:
            continue
        collection, _, rest = target.path.rpartition("/{")
        name = rest.partition("}")[0]
        passed = {f"path.{outer}": f"$request.path.{outer}" for outer in re.findall(r"\{(\w+)\}", collection)}
        made, listed = operations.get(("POST", collection)), operations.get(("GET", collection))
        if made is not None and "id" in made.response.model.model_fields:
            source, place = made, "/id"
        elif listed is not None and "last_id" in listed.response.model.model_fields:
            source, place = listed, "/data/0/id"
        else:
            continue
        target_id = paths[target.path][target.verb.lower()]["operationId"]
        link = {"operationId": target_id, "parameters": {**passed, f"path.{name}": f"$response.body#{place}"}}
        responses = paths[source.path][source.verb.lower()]["responses"]
        for status in (source.status, source.also):
            if status is not None:
                responses[str(status)].setdefault("links", {})[target_id] = link


def _responses(operation: Described) -> dict[str, Any]:
    common_headers: dict[str, Any] = {
        "x-request-id": {"description": "Quote it when something is wrong.", "schema": {"type": "string"}},
        "Link": {"description": "Where this document is.", "schema": {"type": "string"}},
    }
    budget: dict[str, Any] = {}
    if not operation.public:
        for name, words in (
            ("limit", "Calls a minute in this bucket."),
            ("remaining", "Calls left now."),
            ("reset", "Whole seconds until the bucket is full."),
        ):
            budget[f"x-ratelimit-{name}"] = {"description": words, "schema": {"type": "integer"}}
        budget["x-ratelimit-resource"] = {"description": "The bucket.", "schema": {"type": "string"}}
    responses: dict[str, Any] = {}
    for success in (operation.status, operation.also):
        if success is not None:
            responses[str(success)] = {
                "description": operation.summary,
                "headers": common_headers | budget,
                "content": {operation.media: {"schema": _ref(operation.response.model.__name__)}},
            }
    by_status: dict[int, list[str]] = {}
    for code in operation.refusals:
        by_status.setdefault(CATALOGUE[code].status, []).append(code)
    for status, codes in by_status.items():
        # Without a token that is known there is no budget to tell.
        headers = common_headers | (budget if status != 401 else {})
        if status == 401:
            headers["WWW-Authenticate"] = {"description": "How to authenticate.", "schema": {"type": "string"}}
        if status == 409 or any(CATALOGUE[code].retry_after for code in codes):
            headers["Retry-After"] = {"description": "Seconds, where waiting helps.", "schema": {"type": "integer"}}
        responses[str(status)] = {
            "description": _MEANING[status],
            "headers": headers,
            "x-error-codes": codes,
            "content": {"application/json": {"schema": _ref("Error")}},
        }
    return responses


def _parameter(parameter: Parameter) -> dict[str, Any]:
    match parameter.kind:
        case "limit":
            schema: dict[str, Any] = {"type": "integer", "minimum": 1, "maximum": PAGE}
        case "cursor":
            schema = {"type": "integer", "minimum": 0}
        case "order":
            schema = {"type": "string", "enum": ["asc", "desc"]}
        case "choice":
            schema = {"type": "string", "enum": list(parameter.choices)}
        case "pair":
            schema = {"type": "string", "pattern": "^[^:]+:"}
        case _:
            schema = {"type": "string", "minLength": 1}
    return {
        "name": parameter.name,
        "in": "query",
        "required": parameter.required,
        "description": parameter.doc,
        "schema": schema,
    }


def _ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


def _tidied(schema: Any) -> Any:
    """A schema without what the model library adds for itself: titles, and defaults that mean absent."""
    if isinstance(schema, list):
        return [_tidied(entry) for entry in schema]
    if not isinstance(schema, dict):
        return schema
    kept: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "properties":
            kept[key] = {name: _tidied(entry) for name, entry in value.items()}
        elif not (key == "title" and isinstance(value, str)) and not (key == "default" and value in (None, [])):
            kept[key] = _tidied(value)
    return kept
