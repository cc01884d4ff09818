"""What every response has (contract §1)."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.contract.calls import CALLS, WITH_A_TOKEN, WITH_JSON, Known, call, mint, place
from tests.support import Api

LINK = '</v1/openapi.json>; rel="service-desc"'
BUDGET = ("x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset", "x-ratelimit-resource")
UUID = "[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"


def headers_of(api: Api, known: Known) -> dict[str, str]:
    """The headers of a call that succeeds."""
    where = place(api)
    if not known.stream:
        answer = call(api, known, where)
        assert answer.status == known.status
        return answer.headers
    with api.stream(where.fill(known.path)) as frames:
        return frames.stream.headers


def times_in(value: Any) -> list[tuple[str, Any]]:
    """Every field that is a time, wherever it is."""
    if isinstance(value, list):
        return [found for entry in value for found in times_in(entry)]
    if not isinstance(value, dict):
        return []
    own = [(key, entry) for key, entry in value.items() if key.endswith("_at")]
    return own + [found for entry in value.values() for found in times_in(entry)]


@pytest.mark.behaviour("responses.json")
@pytest.mark.parametrize("known", WITH_JSON, ids=str)
def test_an_answer_is_json(api: Api, known: Known) -> None:
    answer = call(api, known, place(api))
    assert answer.headers["content-type"] == "application/json"
    assert isinstance(answer.json, dict)
    assert answer.headers["content-length"] == str(len(answer.raw))


@pytest.mark.behaviour("responses.json")
def test_text_comes_back_in_utf_8(api: Api) -> None:
    title = "größer ≠ 大 🦊 \u2028"
    session_id = api.session({"title": title, "metadata": {"ключ": title}})
    answer = api.get(f"/v1/sessions/{session_id}")
    assert (answer.json["title"], answer.json["metadata"]) == (title, {"ключ": title})
    assert "größer ≠ 大 🦊".encode() in answer.raw


@pytest.mark.behaviour("responses.unknown-path")
@pytest.mark.parametrize(
    "path", ["/v1", "/v1/", "/v1/nothing", "/v1/sessions/", "/v1/sessions/x/nothing", "/v1//health"]
)
@pytest.mark.parametrize("verb", ["GET", "POST", "DELETE"])
def test_an_unknown_path_answers_a_refusal_in_json(api: Api, verb: str, path: str) -> None:
    answer = api.request(verb, path)
    assert (answer.status, answer.code) == (404, "not_found")
    assert answer.headers["content-type"] == "application/json"


@pytest.mark.behaviour("responses.request-id", "responses.link")
@pytest.mark.parametrize("known", CALLS, ids=str)
def test_a_success_has_a_request_id_and_the_link(api: Api, known: Known) -> None:
    headers = headers_of(api, known)
    assert re.fullmatch("[0-9a-f]{8}", headers["x-request-id"])
    assert headers["link"] == LINK


@pytest.mark.behaviour("responses.request-id", "responses.link")
@pytest.mark.parametrize(
    ("verb", "path", "options", "status"),
    [
        ("POST", "/v1/sessions", {"body": {"nothing": 1}}, 400),
        ("POST", "/v1/sessions", {"raw": b"{"}, 400),
        ("GET", "/v1/sessions?nothing=1", {}, 400),
        ("POST", "/v1/sessions/x/tools", {}, 400),
        ("GET", "/v1/health", {"token": None}, 401),
        ("GET", "/v1/events", {"token": "gbr_pat_nobody"}, 401),
        ("GET", "/v1/sessions/none", {}, 404),
        ("GET", "/v1/sessions/none/events", {}, 404),
        ("GET", "/v1/nothing", {}, 404),
        ("GET", "/v1/nothing", {"token": None}, 404),
        ("PATCH", "/v1/health", {}, 405),
    ],
)
def test_a_refusal_has_its_request_id_twice_and_the_link(
    api: Api, verb: str, path: str, options: dict[str, Any], status: int
) -> None:
    answer = api.request(verb, path, **options)
    assert answer.status == status
    assert re.fullmatch("[0-9a-f]{8}", answer.headers["x-request-id"])
    assert answer.json["error"]["request_id"] == answer.headers["x-request-id"]
    assert answer.headers["link"] == LINK


@pytest.mark.behaviour("responses.request-id")
def test_a_forbidden_and_a_failed_call_have_a_request_id(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError

    session_id = api.session()
    monkeypatch.setattr(api.emulator.socket.deployment.engine, "cancel", fail)
    failed = api.send(session_id, {"type": "input.cancel"})
    forbidden = api.get("/v1/sessions", token=mint(api, "cli"))
    assert (failed.status, forbidden.status) == (500, 403)
    for answer in (failed, forbidden):
        assert answer.json["error"]["request_id"] == answer.headers["x-request-id"]
        assert answer.headers["link"] == LINK


@pytest.mark.behaviour("responses.request-id-unique")
def test_no_two_requests_have_the_same_id(api: Api) -> None:
    answers = [api.get(path) for _ in range(50) for path in ("/v1/health", "/v1/nothing")]
    assert len({answer.headers["x-request-id"] for answer in answers}) == 100


@pytest.mark.behaviour("responses.foreign-host")
def test_a_host_that_is_not_served_is_refused_like_anything_else(api: Api) -> None:
    over_a_socket = Api(api.emulator)  # the bridge always names the emulator's own host
    answer = over_a_socket.get("/v1/health", headers={"host": "evil.example.com"})
    assert (answer.status, answer.code) == (403, "permission_denied")
    assert answer.json["error"]["request_id"] == answer.headers["x-request-id"]
    assert answer.headers["link"] == LINK


@pytest.mark.behaviour("responses.foreign-origin")
@pytest.mark.parametrize(("verb", "path"), [("GET", "/v1/health"), ("POST", "/v1/sessions"), ("GET", "/v1/nothing")])
def test_a_page_from_elsewhere_is_refused(api: Api, verb: str, path: str) -> None:
    answer = api.request(verb, path, headers={"origin": "https://evil.example.com"})
    assert (answer.status, answer.code) == (403, "permission_denied")
    assert answer.json["error"]["request_id"] == answer.headers["x-request-id"]
    assert answer.headers["link"] == LINK
    for origin in ("http://localhost:3000", "http://127.0.0.1"):
        assert api.get("/v1/health", headers={"origin": origin}).status == 200


@pytest.mark.behaviour("responses.budget", "responses.plain-integers")
@pytest.mark.parametrize("known", WITH_A_TOKEN, ids=str)
def test_an_authenticated_call_tells_its_budget(api: Api, known: Known) -> None:
    headers = headers_of(api, known)
    creates = (known.verb, known.path) == ("POST", "/v1/sessions")
    assert headers["x-ratelimit-resource"] == ("sessions" if creates else "general")
    assert headers["x-ratelimit-limit"] == ("10" if creates else "120")
    assert all(re.fullmatch("[0-9]+", headers[name]) for name in BUDGET[:3])


@pytest.mark.behaviour("responses.budget")
@pytest.mark.parametrize(
    ("path", "scopes", "status"),
    [("/v1/sessions/none", (), 404), ("/v1/sessions?nothing=1", (), 400), ("/v1/sessions", ("cli",), 403)],
)
def test_a_refusal_of_a_known_token_tells_its_budget(api: Api, path: str, scopes: tuple[str, ...], status: int) -> None:
    answer = api.get(path, token=mint(api, *scopes))
    assert answer.status == status
    assert [answer.headers[name] for name in BUDGET] == ["120", "119", "1", "general"]


@pytest.mark.behaviour("responses.budget-resource")
def test_the_two_buckets_are_apart(api: Api) -> None:
    created = api.post("/v1/sessions", {})
    listed = api.get("/v1/sessions")
    assert [created.headers[name] for name in BUDGET] == ["10", "9", "6", "sessions"]
    assert [listed.headers[name] for name in BUDGET] == ["120", "119", "1", "general"]


@pytest.mark.behaviour("responses.budget-rounding")
def test_what_remains_is_rounded_down_and_the_wait_up(api: Api) -> None:
    for _ in range(2):
        api.post("/v1/sessions", {})
    api.emulator.clock.advance(2)  # a third of a call comes back
    answer = api.post("/v1/sessions", {})
    assert [answer.headers[name] for name in BUDGET] == ["10", "7", "16", "sessions"]
    api.emulator.clock.advance(3.5)
    answer = api.post("/v1/sessions", {})
    assert [answer.headers[name] for name in BUDGET] == ["10", "6", "19", "sessions"]


@pytest.mark.behaviour("responses.no-budget")
@pytest.mark.parametrize(
    ("verb", "path", "token"),
    [
        ("GET", "/v1/openapi.json", "default"),
        ("GET", "/v1/openapi.json", None),
        ("GET", "/v1/nothing", "default"),
        ("PUT", "/v1/health", "default"),
        ("GET", "/v1/health", "gbr_pat_nobody"),
        ("GET", "/v1/health", None),
    ],
)
def test_a_response_to_nobody_has_no_budget(api: Api, verb: str, path: str, token: str | None) -> None:
    assert not set(BUDGET) & set(api.request(verb, path, token=token).headers)


@pytest.mark.behaviour("responses.times")
def test_times_are_integer_milliseconds(api: Api) -> None:
    @api.emulator.agent
    async def agent(turn: Any) -> None:
        await turn.call("f")

    tools = [{"type": "function", "name": "f", "timeout_seconds": 9}]
    session_id = api.session({"agent": {"tools": tools}, "input": "go"})
    path = f"/v1/sessions/{session_id}"
    found = [time for suffix in ("", "/turns", "/items") for time in times_in(api.get(path + suffix).json)]
    assert {name for name, _ in found} == {
        "created_at",
        "updated_at",
        "started_at",
        "completed_at",
        "expires_at",
    }
    for name, time in found:
        assert time is None if name == "completed_at" else type(time) is int
        assert time is None or 1_767_225_600_000 <= time < 1_767_225_700_000


@pytest.mark.behaviour("responses.no-cors")
@pytest.mark.parametrize("verb", ["GET", "OPTIONS", "POST"])
@pytest.mark.parametrize("path", ["/v1/health", "/v1/openapi.json", "/v1/nothing"])
def test_no_cors_header_is_sent(api: Api, verb: str, path: str) -> None:
    headers = {"origin": "http://localhost:3000", "access-control-request-method": "GET"}
    answer = api.request(verb, path, headers=headers)
    assert not [name for name in answer.headers if name.startswith("access-control")]
    assert answer.status in (200, 404, 405)


@pytest.mark.behaviour("responses.session-id")
def test_a_session_id_is_a_uuid(api: Api) -> None:
    ids = [api.session() for _ in range(5)]
    assert len(set(ids)) == 5
    assert all(re.fullmatch(UUID, session_id) for session_id in ids)


@pytest.mark.behaviour("responses.ids")
def test_ids_have_their_prefix_and_length(api: Api) -> None:
    @api.emulator.agent
    async def agent(turn: Any) -> None:
        await turn.call("f")

    session_id = api.session({"agent": {"tools": [{"type": "function", "name": "f"}]}, "input": "go"})
    session = api.get(f"/v1/sessions/{session_id}").json
    action = session["required_actions"][0]
    assert re.fullmatch("turn_[0-9a-f]{16}", action["turn_id"])
    assert re.fullmatch("call_[0-9a-f]{8}", action["call_id"])
    assert re.fullmatch("cred_[0-9a-f]{16}", session["agent"]["model_credential_id"])


@pytest.mark.behaviour("responses.item-id")
def test_an_item_id_is_unique_and_a_cursor(api: Api) -> None:
    session_id = api.session({"input": "one"})
    api.say(session_id, "two")
    ids = [item["id"] for item in api.items(session_id)]
    assert len(ids) == len(set(ids)) == 4
    page = api.get(f"/v1/sessions/{session_id}/items?order=asc&after={ids[1]}").json
    assert [item["id"] for item in page["data"]] == ids[2:]


@pytest.mark.behaviour("responses.path-decoding")
@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/v1/sessions/a%2Fb", "a/b"),
        ("/v1/sessions/a%2Fturns", "a/turns"),
        ("/v1/sessions/%2e%2e", ".."),
        ("/v1/sessions/%C3%BC%20", "ü "),
    ],
)
def test_an_encoded_slash_does_not_split(api: Api, path: str, message: str) -> None:
    answer = api.get(path)
    assert (answer.status, answer.code) == (404, "not_found")
    assert f"'{message}'" in answer.message


@pytest.mark.behaviour("responses.path-decoding")
def test_an_encoded_letter_is_the_letter(api: Api) -> None:
    session_id = api.session()
    encoded = "".join(f"%{ord(character):02x}" for character in session_id)
    assert api.get(f"/v1/s%65ssions/{encoded}").json["id"] == session_id


@pytest.mark.behaviour("responses.path-decoding")
@pytest.mark.parametrize("path", ["/v1%2Fhealth", "/v1/sessions/%FF", "/v1/sessions%2Fx", "/v1/health%2F"])
def test_a_path_that_is_not_there_once_decoded_is_not_found(api: Api, path: str) -> None:
    assert (api.get(path).status, api.get(path).code) == (404, "not_found")


@pytest.mark.behaviour("responses.bodyless")
@pytest.mark.parametrize("raw", [None, b"", b"{}", b"null", b" {} "])
@pytest.mark.parametrize("headers", [{}, {"content-type": "application/json"}])
def test_a_write_without_a_body_takes_an_empty_one(api: Api, raw: bytes | None, headers: dict[str, str]) -> None:
    assert api.delete(f"/v1/sessions/{api.session()}", raw=raw, headers=headers).status == 200


@pytest.mark.behaviour("responses.bodyless-body")
@pytest.mark.parametrize("raw", [b'{"force":true}', b"[]", b"x", json.dumps("text").encode()])
def test_a_write_without_a_body_refuses_one(api: Api, raw: bytes) -> None:
    session_id = api.session()
    answer = api.delete(f"/v1/sessions/{session_id}", raw=raw)
    assert (answer.status, answer.code) == (400, "invalid_request")
    assert api.get(f"/v1/sessions/{session_id}").status == 200


@pytest.mark.behaviour("responses.plain-integers")
@pytest.mark.gobare(rates="published")
def test_retry_after_is_a_plain_integer(api: Api) -> None:
    for _ in range(10):
        api.session()
    answer = api.post("/v1/sessions", {})
    assert answer.code == "rate_limit_exceeded"
    assert re.fullmatch("[1-9][0-9]*", answer.headers["retry-after"])
    assert all(re.fullmatch("[0-9]+", answer.headers[name]) for name in BUDGET[:3])
