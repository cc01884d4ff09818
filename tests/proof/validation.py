"""Whether an exchange is as the OpenAPI document says: its status, its headers, its body, what was accepted.

Everything is read from the document and the operation table, so that it follows both by itself.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final

import jsonschema_rs

from emulator import render
from emulator.api import openapi
from emulator.api.operations import OPERATIONS
from emulator.api.routes import Routes
from emulator.control import document as control
from emulator.control.operations import OPERATIONS as CONTROL_OPERATIONS
from emulator.refusals import CATALOGUE, Refusal
from tests.proof.event_table import problems as event_problems

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.proof.exchanges import Exchange

BUDGET: Final = ("x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset", "x-ratelimit-resource")
LINKS: Final = ('</v1/openapi.json>; rel="service-desc"', '</_emulator/openapi.json>; rel="service-desc"')
# What HTTP itself, and not the API, has on a response.
_PLAIN: Final = {"content-type", "content-length", "cache-control"}
_LARGE: Final = 20_000
_SOMETIMES: Final = ("conflict",)


class Document:
    """One of the two documents, and the routes it is of."""

    def __init__(self, text: dict[str, Any], routes: Routes[Any]) -> None:
        self.text = text
        self._routes = routes
        self._validators: dict[str, jsonschema_rs.Validator] = {}
        # Of large answers without a fault: they are often the same as before.
        self.large: set[int] = set()

    def find(self, verb: str, raw_path: bytes) -> tuple[str, dict[str, Any] | None]:
        """The operation a request is for, as `verb path` and as the document describes it; the first
        alone is the code of the refusal where there is none."""
        try:
            operation = self._routes.find(verb, raw_path)[0]
        except Refusal as refused:
            return refused.code, None
        name = f"{operation.verb} {operation.path}"
        return name, self.text["paths"][operation.path][operation.verb.lower()]

    def known(self, body: bytes) -> bool:
        """Whether this large answer was looked at before."""
        return len(body) > _LARGE and hash(body) in self.large

    def faults(self, schema: dict[str, Any], value: Any) -> Iterator[str]:
        """What a value has that its schema does not allow."""
        key = str(schema)
        validator = self._validators.get(key)
        if validator is None:
            whole = {**schema, "components": self.text["components"]}
            validator = self._validators[key] = jsonschema_rs.validator_for(whole, validate_formats=True)
        for error in validator.iter_errors(value):
            yield f"/{'/'.join(map(str, error.instance_path))}: {error.message}"


@cache
def documents() -> tuple[Document, Document]:
    """The document of the API, and that of the control routes."""
    return (
        Document(openapi.document(), Routes(OPERATIONS)),
        Document(control.document(), Routes(CONTROL_OPERATIONS)),
    )


def named(name: str) -> dict[str, Any]:
    """The schema of that name."""
    return {"$ref": f"#/components/schemas/{name}"}


@dataclass(slots=True)
class Reading:
    """An exchange, read once: the operation it is of, as `verb path` and as its document describes it (or the code
    that routing refuses it with, and nothing), and the JSON of the answer, where there is one to be held to."""

    seen: Exchange
    name: str
    described: dict[str, Any] | None
    answer: Any

    @property
    def code(self) -> str | None:
        """The code of a refusal."""
        if self.seen.status < 400 or not isinstance(self.answer, dict):
            return None
        code: str | None = self.answer["error"].get("code")
        return code


def read(seen: Exchange) -> Reading:
    """Read an exchange."""
    name, described = documents()[seen.control].find(seen.verb, seen.raw_path)
    # Bytes are what they are, whatever their type.
    no_json = described is not None and seen.status < 400 and not _says_json(seen, described)
    answer = None if seen.body is None or no_json else decode(seen.body)
    return Reading(seen, name, described, answer)


@lru_cache(maxsize=4)
def _decoded(body: bytes) -> Any:
    return render.decode(body)


def decode(body: bytes) -> Any:
    """The value of some JSON. A large one is often the same as before."""
    return _decoded(body) if len(body) > _LARGE else render.decode(body)


def problems(reading: Reading) -> Iterator[str]:
    """Everything about an exchange that is not as the document says."""
    seen, described, answer, code = reading.seen, reading.described, reading.answer, reading.code
    document = documents()[seen.control]
    headers = {name.decode(): value.decode("latin-1") for name, value in seen.headers}
    if described is None:
        yield from _refused_by_routing(document, reading.name, answer, code)
    else:
        yield from _declared(document, seen, described, headers, answer, code)
        yield from _accepted(document, seen, described)
    yield from _heads(seen, described, headers, answer, code)


def _says_json(seen: Exchange, described: dict[str, Any]) -> bool:
    return "application/json" in described["responses"].get(str(seen.status), {}).get("content", {})


def _refused_by_routing(document: Document, wanted: str, answer: Any, code: Any) -> Iterator[str]:
    if code != wanted:
        yield f"{code} where routing says {wanted}"
    yield from document.faults(named("Error"), answer)


def _declared(
    document: Document, seen: Exchange, described: dict[str, Any], headers: dict[str, str], answer: Any, code: Any
) -> Iterator[str]:
    response = described["responses"].get(str(seen.status))
    if response is None:
        yield f"the status {seen.status} ({code}) is not declared"
        return
    kind = headers["content-type"].partition(";")[0]
    content = response["content"].get(kind) or response["content"].get("*/*")
    if content is None:
        yield f"the type {kind} is not declared, only {', '.join(response['content'])}"
    elif answer is not None and seen.body is not None and not document.known(seen.body):
        faults = list(document.faults(content["schema"], answer))
        if not faults and len(seen.body) > _LARGE:
            document.large.add(hash(seen.body))
        yield from faults
    if code is not None and code not in response["x-error-codes"]:
        yield f"the code {code} is not declared"
    undeclared = set(headers) - {name.lower() for name in response.get("headers", {})} - _PLAIN
    if undeclared:
        yield f"the headers {sorted(undeclared)} are not declared"


def _accepted(document: Document, seen: Exchange, described: dict[str, Any]) -> Iterator[str]:
    """What was let in must be something the document allows: an answer to a key may be another call's."""
    body = described.get("requestBody")
    if seen.status >= 300 or body is None or not seen.sent or b"idempotency-key" in seen.asked:
        return
    for fault in document.faults(body["content"]["application/json"]["schema"], render.decode(seen.sent)):
        yield f"accepted a body that the document refuses: {fault}"


def _heads(
    seen: Exchange, described: dict[str, Any] | None, headers: dict[str, str], answer: Any, code: Any
) -> Iterator[str]:
    request_id = headers.get("x-request-id", "")
    if not re.fullmatch("[0-9a-f]{8}", request_id):
        yield f"x-request-id is {request_id!r}"
    if code is not None and answer["error"].get("request_id") != request_id:
        yield "the request id of the body is another than that of the headers"
    if headers.get("link") != LINKS[seen.control]:
        yield f"Link is {headers.get('link')!r}"
    authenticated = described is not None and bool(described["security"]) and seen.status != 401
    budget = set(BUDGET) & set(headers)
    # A fault may come before the budget is known.
    if not seen.control and budget != (set(BUDGET) if authenticated else set()) and code != "internal_error":
        yield f"the budget headers are {sorted(budget)}"
    for name in (*BUDGET[:3], "retry-after"):
        if name in headers and not re.fullmatch("[0-9]+", headers[name]):
            yield f"{name} is {headers[name]!r}"
    waits = code is not None and CATALOGUE[code].retry_after is not None
    if code not in _SOMETIMES and ("retry-after" in headers) != waits:
        yield f"{code} {'has' if 'retry-after' in headers else 'lacks'} Retry-After"
    if ("allow" in headers) != (seen.status == 405):
        yield f"Allow is {headers.get('allow')!r}"
    if ("www-authenticate" in headers) != (seen.status == 401):
        yield f"WWW-Authenticate is {headers.get('www-authenticate')!r}"


def frame_problems(frame: bytes) -> tuple[dict[str, Any] | None, list[str]]:
    """The event of a frame, if it is one, and what is wrong with it."""
    lines = frame.decode().split("\n")
    if len(lines) == 1 and lines[0].startswith((":", "retry: ")):
        return None, []
    names = [line.partition(": ")[0] for line in lines]
    if names not in (["id", "event", "data"], ["event", "data"]):
        return None, [f"a frame of {names}"]
    values = [line.partition(": ")[2] for line in lines]
    event: dict[str, Any] = render.decode(values[-1].encode())
    wrong = of_event(event)
    if values[-2] != event.get("type") or values[:-2] != ([] if event.get("seq") is None else [str(event["seq"])]):
        wrong.append(f"a frame of {values[:-1]} for {event.get('type')} {event.get('seq')}")
    return event, wrong


def of_event(event: dict[str, Any]) -> list[str]:
    """What is wrong with an event object."""
    return [*documents()[0].faults(named("EventStream"), event)] or [*event_problems(event)]
