"""What holds every answer of the suite against the document would notice."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from tests.proof import coverage, event_table
from tests.proof.exchanges import Exchange
from tests.proof.reasons import REASONS, explained
from tests.proof.validation import frame_problems, problems, read

REQUEST_ID = "0a1b2c3d"
HEAD = {
    "content-type": "application/json",
    "x-request-id": REQUEST_ID,
    "link": '</v1/openapi.json>; rel="service-desc"',
}
BUDGET = {
    "x-ratelimit-limit": "120",
    "x-ratelimit-remaining": "119",
    "x-ratelimit-reset": "1",
    "x-ratelimit-resource": "general",
}
USABLE = {"scopes": [], "usable": True, "missing_scopes": []}
HEALTH = {"object": "health", "status": "ok", "version": "v1", **USABLE}


def exchange(status: int, body: Any, head: dict[str, str], verb: str = "GET", path: str = "/v1/health") -> Exchange:
    headers = [(name.encode(), value.encode()) for name, value in head.items()]
    return Exchange(False, verb, path.encode(), b"", {}, b"", status, headers, json.dumps(body).encode())


def refused(code: str, request_id: str = REQUEST_ID) -> dict[str, Any]:
    return {"error": {"code": code, "message": "Because.", "request_id": request_id}}


def said_of(seen: Exchange) -> list[str]:
    return list(problems(read(seen)))


GOOD = exchange(200, HEALTH, HEAD | BUDGET)


def test_what_is_as_it_should_be_has_no_problem() -> None:
    assert said_of(GOOD) == []
    assert said_of(exchange(400, refused("invalid_request"), HEAD | BUDGET)) == []
    assert said_of(exchange(404, refused("not_found"), HEAD, path="/v1/nothing")) == []
    allow = {"allow": "GET"}
    assert said_of(exchange(405, refused("method_not_allowed"), HEAD | allow, "PUT")) == []


@pytest.mark.parametrize(
    ("seen", "said"),
    [
        (replace(GOOD, status=202), "the status 202 (None) is not declared"),
        (exchange(200, {**HEALTH, "more": 1}, HEAD | BUDGET), "/: Additional properties are not allowed"),
        (exchange(200, {**HEALTH, "usable": "yes"}, HEAD | BUDGET), '/usable: "yes" is not of type "boolean"'),
        (exchange(200, HEALTH, HEAD), "the budget headers are []"),
        (exchange(200, HEALTH, HEAD | BUDGET | {"x-more": "1"}), "the headers ['x-more'] are not declared"),
        (exchange(200, HEALTH, HEAD | BUDGET | {"x-ratelimit-limit": "1.5"}), "x-ratelimit-limit is '1.5'"),
        (exchange(200, HEALTH, HEAD | BUDGET | {"x-request-id": "0A"}), "x-request-id is '0A'"),
        (exchange(200, HEALTH, HEAD | BUDGET | {"link": "no"}), "Link is 'no'"),
        (exchange(200, HEALTH, HEAD | BUDGET | {"content-type": "text/plain"}), "the type text/plain is not declared"),
        (exchange(200, HEALTH, HEAD | BUDGET | {"retry-after": "1"}), "None has Retry-After"),
        (exchange(200, HEALTH, HEAD | BUDGET | {"allow": "GET"}), "Allow is 'GET'"),
        (exchange(400, refused("queue_full"), HEAD | BUDGET), "the code queue_full is not declared"),
        (exchange(400, refused("invalid_request", "1" * 8), HEAD | BUDGET), "the request id of the body is another"),
        (exchange(429, refused("rate_limit_exceeded"), HEAD | BUDGET), "rate_limit_exceeded lacks Retry-After"),
        (exchange(401, refused("authentication_error"), HEAD), "WWW-Authenticate is None"),
        (exchange(404, refused("conflict"), HEAD, path="/v1/nothing"), "conflict where routing says not_found"),
        (
            replace(exchange(201, {}, HEAD | BUDGET, "POST", "/v1/sessions"), sent=b'{"titel":1}'),
            "accepted a body that the document refuses",
        ),
    ],
)
def test_what_is_wrong_with_an_exchange_is_said(seen: Exchange, said: str) -> None:
    assert any(problem.startswith(said) for problem in said_of(seen)), said_of(seen)


def frame(kind: str, payload: dict[str, Any], seq: int | None = 1, **more: Any) -> bytes:
    event = {"object": "event", "type": kind, "internal_type": kind, "session_id": "s", "seq": seq, "created_at": 1}
    data = json.dumps({**event, "payload": payload, **more})
    head = f"event: {kind}\ndata: {data}"
    return (head if seq is None else f"id: {seq}\n{head}").encode()


def test_a_frame_as_it_should_be_has_no_problem() -> None:
    assert frame_problems(frame("turn.started", {"turnId": "t"}))[1] == []
    assert frame_problems(frame("agent.text", {"delta": "t"}, None))[1] == []
    assert frame_problems(b": ping") == (None, [])


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (frame("turn.started", {}), "turn.started lacks ['turnId']"),
        (frame("turn.started", {"turnId": "t", "more": 1}), "turn.started does not have ['more']"),
        (frame("turn.begun", {}), "the contract knows no event turn.begun"),
        (frame("agent.text", {"delta": "t"}, 1), "agent.text has the seq 1"),
        (frame("turn.started", {"turnId": "t"}, internal_type="x"), "turn.started calls itself x"),
        (frame("turn.started", {"turnId": "t"}).replace(b"id: 1", b"id: 2"), "a frame of ['2', 'turn.started']"),
        (frame("turn.started", {"turnId": "t"}, more=1), "/: Additional properties"),
        (b"data: {}", "a frame of ['data']"),
    ],
)
def test_what_is_wrong_with_a_frame_is_said(sent: bytes, said: str) -> None:
    assert any(problem.startswith(said) for problem in frame_problems(sent)[1]), frame_problems(sent)[1]


def test_cells_are_made_from_what_is_declared() -> None:
    cells = coverage.cells()
    assert {"POST /v1/sessions → 201", "POST /v1/sessions → project_limit_exceeded"} <= cells
    assert {"Session.status failed", "turn working · cancel", "action approval dropped", "event turn.ended"} <= cells
    assert {f"event {kind}" for kind in event_table.EVENTS} <= cells


def test_every_reason_is_for_a_cell_and_is_given_once() -> None:
    assert set(explained(coverage.cells()).values()) == set(REASONS)
