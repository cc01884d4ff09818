"""Injected faults, and what the contract promises when a request goes wrong."""

from __future__ import annotations

import http.client
from typing import TYPE_CHECKING, Any

import pytest

from emulator.refusals import CATALOGUE
from tests.contract.calls import CALLS, NOWHERE, call

if TYPE_CHECKING:
    from tests.support import Answer, Api

KEY = {"idempotency-key": "job-8842"}
LIST = {"method": "GET", "path": "/v1/sessions"}
CREATE = {"method": "POST", "path": "/v1/sessions"}
LOST = (OSError, http.client.HTTPException)


def answer_of(api: Api, method: str, path: str, body: Any = None, **headers: Any) -> Answer | None:
    """The answer, or nothing where none came whole."""
    try:
        answer = api.request(method, path, body, headers=headers.get("headers"))
    except LOST:
        return None
    return answer if answer.status else None


def titles(api: Api) -> list[str]:
    return [session["title"] for session in api.get("/v1/sessions").json["data"]]


@pytest.mark.rigged
@pytest.mark.behaviour("faults.codes")
@pytest.mark.parametrize("code", CATALOGUE)
def test_an_error_has_all_that_goes_with_its_code(api: Api, code: str) -> None:
    fault = api.emulator.faults.add(LIST, error=code)
    answer = api.get("/v1/sessions")
    assert (answer.status, answer.code) == (CATALOGUE[code].status, code)
    assert answer.json["error"]["request_id"] == answer.headers["x-request-id"]
    waits = CATALOGUE[code].retry_after
    assert answer.headers.get("retry-after") == (None if waits is None else str(waits))
    challenged = answer.headers.get("www-authenticate", "")
    assert challenged == ('Bearer realm="gobare", error="invalid_token"' if code == "authentication_error" else "")
    assert answer.headers.get("allow") == ("GET, POST" if code == "method_not_allowed" else None)
    assert ("x-ratelimit-remaining" in answer.headers) is (code != "authentication_error")
    assert answer.headers["link"] == '</v1/openapi.json>; rel="service-desc"'
    (entry,) = api.emulator.requests
    assert (entry.status, entry.code, entry.fault) == (answer.status, code, fault.id)


@pytest.mark.behaviour("faults.everywhere")
@pytest.mark.parametrize("code", ["internal_error", "sandbox_error", "sandbox_unavailable", "directory_unavailable"])
def test_a_platform_that_fails_may_do_so_at_every_operation(api: Api, code: str) -> None:
    api.emulator.faults.add(error=code)
    for known in CALLS:
        assert call(api, known, NOWHERE).code == code, known


@pytest.mark.rigged
@pytest.mark.behaviour("faults.codes")
def test_clients_find_the_words_they_know(api: Api) -> None:
    faults = api.emulator.faults
    faults.add(LIST, error="authentication_error", times=1)
    faults.add(LIST, error="permission_denied", times=1)
    faults.add(LIST, error="conflict", message="Not now.", retry_after=7, times=1)
    faults.add(LIST, error="rate_limit_exceeded", retry_after=0, times=1)
    assert api.get("/v1/sessions").message == "This access token is not recognized"
    assert api.get("/v1/sessions").message == 'This token does not have the "sessions:read" scope.'
    third, fourth = api.get("/v1/sessions"), api.get("/v1/sessions")
    assert (third.message, third.headers["retry-after"], fourth.headers["retry-after"]) == ("Not now.", "7", "0")


@pytest.mark.rigged
@pytest.mark.behaviour("faults.first")
def test_a_fault_comes_before_every_check(api: Api) -> None:
    api.emulator.faults.add(error="directory_unavailable")
    for answer in (
        api.get("/v1/nothing"),
        api.request("OPTIONS", "/v1/sessions"),
        api.get("/v1/sessions", token=None),
        api.get("/v1/sessions?nothing=1"),
        api.post("/v1/sessions", raw=b"["),
        api.post("/v1/sessions", {}, headers={"idempotency-key": ""}),
    ):
        assert answer.code == "directory_unavailable"


@pytest.mark.behaviour("faults.first", "faults.no-effect")
def test_what_would_be_replayed_can_fail_and_is_replayed_then(api: Api) -> None:
    first = api.post("/v1/sessions", {}, headers=KEY)
    api.emulator.faults.add(CREATE, error="sandbox_unavailable", times=1)
    assert api.post("/v1/sessions", {}, headers=KEY).code == "sandbox_unavailable"
    assert api.post("/v1/sessions", {}, headers=KEY).raw == first.raw


@pytest.mark.behaviour("faults.budget")
def test_a_request_that_is_refused_is_not_charged(api: Api) -> None:
    assert api.get("/v1/sessions").headers["x-ratelimit-remaining"] == "119"
    api.emulator.faults.add(LIST, error="directory_unavailable", times=5)
    answers = [api.get("/v1/sessions") for _ in range(6)]
    assert [answer.headers["x-ratelimit-remaining"] for answer in answers] == ["119"] * 5 + ["118"]
    api.emulator.clock.advance(0.5)
    api.emulator.faults.add(LIST, error="directory_unavailable", times=1)
    assert api.get("/v1/sessions").headers["x-ratelimit-remaining"] == "119"


@pytest.mark.rigged
@pytest.mark.behaviour("faults.no-effect")
@pytest.mark.parametrize(
    "fault", [{"error": "internal_error"}, {"html": 502}, {"html": 413}, {"empty": True}, {"reset": "before"}]
)
def test_a_write_that_is_refused_has_no_effect_and_keeps_no_key(api: Api, fault: dict[str, Any]) -> None:
    api.emulator.faults.add(CREATE, times=2, **fault)
    for _ in range(2):
        answer = answer_of(api, "POST", "/v1/sessions", {"title": "one"}, headers=KEY)
        assert answer is None or answer.status >= 400
    assert titles(api) == []
    assert api.post("/v1/sessions", {"title": "two"}, headers=KEY).json["title"] == "two"


@pytest.mark.behaviour("faults.lost")
@pytest.mark.parametrize("fault", [{"reset": "after"}, {"reset": "during"}, {"truncate": 10}])
def test_a_write_whose_answer_is_lost_is_replayed_to_its_key(api: Api, fault: dict[str, Any]) -> None:
    api.emulator.faults.add(CREATE, times=1, **fault)
    lost = answer_of(api, "POST", "/v1/sessions", {"title": "one"}, headers=KEY)
    again = api.post("/v1/sessions", {"title": "one"}, headers=KEY)
    assert again.status == 201
    assert lost is None or (lost.raw != again.raw and again.raw.startswith(lost.raw))
    assert titles(api) == ["one"]


@pytest.mark.behaviour("faults.lost")
def test_a_write_whose_answer_is_lost_happens_again_without_a_key(api: Api) -> None:
    api.emulator.faults.add(CREATE, reset="after", times=1)
    assert answer_of(api, "POST", "/v1/sessions", {"title": "one"}) is None
    assert api.post("/v1/sessions", {"title": "one"}).status == 201
    assert titles(api) == ["one", "one"]


@pytest.mark.behaviour("faults.twice")
@pytest.mark.parametrize(("headers", "made"), [(KEY, ["one"]), ({}, ["one", "one"])])
def test_a_write_that_is_sent_twice(api: Api, headers: dict[str, str], made: list[str]) -> None:
    fault = api.emulator.faults.add(CREATE, twice=True, times=1)
    answer = api.post("/v1/sessions", {"title": "one"}, headers=headers)
    assert (answer.status, answer.json["title"], titles(api)) == (201, "one", made)
    first, second = api.emulator.requests[:2]
    assert [(entry.status, entry.fault) for entry in (first, second)] == [(0, fault.id), (201, fault.id)]
    assert second.request_id == answer.headers["x-request-id"] != first.request_id
