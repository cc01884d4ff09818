"""Request bodies: what is not JSON, what JSON cannot say, and how much is too much (contract §2)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.contract.calls import WITH_A_BODY, Known, call

if TYPE_CHECKING:
    from tests.support import Answer, Api

MIB = 1_048_576
NUMBERS = [b"NaN", b"Infinity", b"-Infinity", b"1e999", b"-1e999", b"1E400"]
HUGE = b"1" * 5000


def put_carried(api: Api, value: bytes) -> Answer:
    """JSON text put where anything is carried unexamined: the schema of a function."""
    raw = b'{"tools":[{"type":"function","name":"f","parameters":{"x":%b}}]}' % value
    return api.put(f"/v1/sessions/{api.session()}/tools", raw=raw)


def chunked(api: Api, path: str, body: bytes, verb: str = "PATCH") -> Answer:
    """A request whose body announces no length."""
    headers = {"transfer-encoding": "chunked", "content-type": "application/json"}
    if api.kind == "in-process":
        return api.request(verb, path, raw=body, headers={**headers, "content-length": ""})
    pieces = [body[at : at + 65_536] for at in range(0, len(body), 65_536)]
    framed = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)
    return api.request(verb, path, raw=framed + b"0\r\n\r\n", headers=headers)


def padded(size: int, body: dict[str, Any]) -> bytes:
    """A body as JSON of exactly that many bytes."""
    raw = json.dumps(body).encode()
    return raw + b" " * (size - len(raw))


@pytest.mark.behaviour("refusals.not-json")
@pytest.mark.parametrize("known", WITH_A_BODY, ids=str)
def test_a_body_that_is_not_a_json_object_is_refused(api: Api, known: Known) -> None:
    unsent = () if known.optional else (b"",)
    for raw in (*unsent, b" ", b"{", b"{'title':1}", b'{"title":"a",}', b'{"title":"a"} x', b"\xff\xfe{\x00}\x00"):
        answer = call(api, known, raw=raw)
        assert (answer.status, answer.code) == (400, "invalid_request"), raw
        assert "JSON" in answer.message


@pytest.mark.behaviour("refusals.not-json")
@pytest.mark.parametrize(
    ("raw", "kind"),
    [(b"[]", "a list"), (b'"text"', "a string"), (b"1", "an integer"), (b"true", "a boolean"), (b"null", "null")],
)
def test_json_that_is_no_object_is_told_what_it_is(api: Api, raw: bytes, kind: str) -> None:
    answer = api.post("/v1/sessions", raw=raw)
    assert answer.status == 400
    assert f"must be a JSON object; {kind} was sent" in answer.message


@pytest.mark.behaviour("refusals.not-json")
@pytest.mark.parametrize("raw", [b'{"title":"\xff"}', b'{"title":"\xc3"}', b'{"title":"\xed\xa0\x80"}'])
def test_invalid_utf_8_is_refused(api: Api, raw: bytes) -> None:
    answer = api.post("/v1/sessions", raw=raw)
    assert (answer.status, answer.code) == (400, "invalid_request")


@pytest.mark.behaviour("refusals.not-a-number")
@pytest.mark.parametrize("value", NUMBERS)
def test_what_is_no_number_of_json_is_refused(api: Api, value: bytes) -> None:
    for carried in (value, b"[[%b]]" % value, b'{"a":[1,{"b":%b}]}' % value):
        answer = put_carried(api, carried)
        assert (answer.status, answer.code) == (400, "invalid_request")


@pytest.mark.behaviour("refusals.not-a-number")
def test_large_numbers_that_can_be_represented_are_carried(api: Api) -> None:
    answer = put_carried(api, b"[1e308,-1.5e-7,123456789012345678901234567890,0.1]")
    assert answer.status == 200
    assert answer.json["tools"][0]["parameters"]["x"] == [1e308, -1.5e-7, 123456789012345678901234567890, 0.1]


@pytest.mark.behaviour("refusals.surrogates")
@pytest.mark.parametrize("text", [rb'"\ud800"', rb'"a\udfff"', rb'"\ud83dx"', rb'{"\ud800":1}', rb'["\udc00\ud800"]'])
def test_lone_surrogates_are_refused(api: Api, text: bytes) -> None:
    answer = put_carried(api, text)
    assert (answer.status, answer.code) == (400, "invalid_request")


@pytest.mark.behaviour("refusals.surrogates")
def test_a_pair_of_surrogates_is_the_character_it_means(api: Api) -> None:
    assert put_carried(api, rb'"\ud83e\udd8a\u0000"').json["tools"][0]["parameters"]["x"] == "🦊\0"


@pytest.mark.behaviour("refusals.nesting")
@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"a":', b"}"), (b"[", b""), (b'{"a":', b"")])
def test_absurd_nesting_is_refused(api: Api, opening: bytes, closing: bytes) -> None:
    answer = put_carried(api, opening * 100_000 + b"1" + closing * 100_000)
    assert (answer.status, answer.code) == (400, "invalid_request")


@pytest.mark.behaviour("refusals.nesting")
@pytest.mark.parametrize("depth", [100, 150, 180, 190, 195, 198, 205, 300, 1000])
def test_nesting_is_refused_or_comes_back(api: Api, depth: int) -> None:
    answer = put_carried(api, b"[" * depth + b"]" * depth)
    assert answer.status == (200 if depth <= 150 else answer.status)
    if answer.status == 200:
        shown = api.get(f"/v1/sessions/{answer.json['session_id']}/tools")
        assert b"[" * depth + b"]" * depth in shown.raw
    else:
        assert (answer.status, answer.code) == (400, "invalid_request")


@pytest.mark.behaviour("refusals.huge-integers")
@pytest.mark.parametrize("value", [HUGE, b"-" + HUGE, b"[%b]" % HUGE, b'{"a":%b}' % HUGE])
def test_a_huge_integer_is_refused_where_it_would_be_carried(api: Api, value: bytes) -> None:
    answer = put_carried(api, value)
    assert (answer.status, answer.code) == (400, "invalid_request")


@pytest.mark.behaviour("refusals.huge-integers")
@pytest.mark.parametrize(
    ("verb", "path", "body"),
    [
        ("PUT", "/tools", b'{"tools":[{"type":"function","name":"f","timeout_seconds":%b}]}'),
        ("PUT", "/tools", b'{"tools":[{"type":"function","name":%b}]}'),
        ("PATCH", "", b'{"title":%b}'),
        ("PATCH", "", b'{"metadata":{"a":%b}}'),
        ("POST", "/events", b'{"events":[{"type":%b}]}'),
    ],
)
def test_a_huge_integer_is_refused_where_it_does_not_fit(api: Api, verb: str, path: str, body: bytes) -> None:
    answer = api.request(verb, f"/v1/sessions/{api.session()}{path}", raw=body % HUGE)
    assert (answer.status, answer.code) == (400, "invalid_request")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
NAMES = st.sampled_from(
    [
        "agent",
        "environment",
        "metadata",
        "title",
        "input",
        "tools",
        "text",
        "events",
        "type",
        "name",
        "model",
        "content",
    ]
)
BODIES = st.dictionaries(
    NAMES, JSON | st.dictionaries(NAMES, JSON, max_size=3) | st.lists(JSON, max_size=2), max_size=4
)


@pytest.mark.behaviour("refusals.any-body")
@pytest.mark.parametrize("known", WITH_A_BODY, ids=str)
def test_no_body_makes_the_server_fail(api: Api, known: Known) -> None:
    fine = {200, 201, 202, 400, 404, 429}

    @settings(max_examples=20, deadline=None, derandomize=True, database=None, suppress_health_check=[*HealthCheck])
    @given(body=BODIES)
    def holds(body: dict[str, Any]) -> None:
        answer = call(api, known, body=body)
        assert answer.status in fine, (body, answer.raw)

    @settings(max_examples=10, deadline=None, derandomize=True, database=None, suppress_health_check=[*HealthCheck])
    @given(raw=st.binary(max_size=30))
    def holds_for_bytes(raw: bytes) -> None:
        assert call(api, known, raw=raw).status in fine, raw

    holds()
    holds_for_bytes()


@pytest.mark.behaviour("refusals.body-ceiling")
@pytest.mark.parametrize("known", [known for known in WITH_A_BODY if known.path != "/v1/sessions"], ids=str)
def test_a_body_past_its_ceiling_is_refused(api: Api, known: Known) -> None:
    answer = call(api, known, raw=padded(MIB + 1, {}))
    assert (answer.status, answer.code) == (400, "invalid_request")
    assert "1048576 bytes" in answer.message


@pytest.mark.behaviour("refusals.body-ceiling")
def test_a_body_of_exactly_its_ceiling_is_taken(api: Api) -> None:
    answer = api.patch(f"/v1/sessions/{api.session()}", raw=padded(MIB, {"title": "new"}))
    assert (answer.status, answer.json["title"]) == (200, "new")


@pytest.mark.behaviour("refusals.create-ceiling")
def test_creating_a_session_takes_more(api: Api) -> None:
    assert api.post("/v1/sessions", raw=padded(2 * MIB, {"title": "big"})).status == 201


@pytest.mark.behaviour("refusals.create-ceiling")
@pytest.mark.parametrize("announced", [16 * MIB + 1, 10**15])
def test_creating_a_session_has_a_ceiling_too(api: Api, announced: int) -> None:
    headers = {"content-length": str(announced)}
    if api.kind == "in-process":
        answer = api.post("/v1/sessions", raw=b"{}", headers=headers)
        assert (answer.status, answer.code) == (400, "invalid_request")
        assert "16777216 bytes" in answer.message
    answer = chunked(api, "/v1/sessions", padded(16 * MIB + 1, {}), "POST")
    assert (answer.status, answer.code) == (400, "invalid_request")
    assert "16777216 bytes" in answer.message


@pytest.mark.behaviour("refusals.chunked-ceiling")
def test_the_ceiling_holds_without_a_length(api: Api) -> None:
    session_id = api.session()
    answer = chunked(api, f"/v1/sessions/{session_id}", padded(MIB + 1, {"title": "new"}))
    assert (answer.status, answer.code) == (400, "invalid_request")
    assert "1048576 bytes" in answer.message
    assert chunked(api, f"/v1/sessions/{session_id}", padded(MIB, {"title": "new"})).json["title"] == "new"


@pytest.mark.behaviour("refusals.chunked-ceiling")
@pytest.mark.gobare(body_limit=64, create_body_limit=128)
def test_the_ceilings_are_settings(api: Api) -> None:
    session_id = api.session()
    assert api.patch(f"/v1/sessions/{session_id}", raw=padded(64, {"title": "a"})).status == 200
    assert "64 bytes; 65 were sent" in api.patch(f"/v1/sessions/{session_id}", raw=padded(65, {"title": "a"})).message
    assert api.post("/v1/sessions", raw=padded(128, {"title": "a"})).status == 201
    assert "128 bytes; 129 were sent" in api.post("/v1/sessions", raw=padded(129, {"title": "a"})).message


@pytest.mark.behaviour("refusals.content-type")
@pytest.mark.parametrize("sent", ["text/plain", "application/x-www-form-urlencoded", "application/json; charset=x", ""])
def test_the_content_type_is_not_looked_at(api: Api, sent: str) -> None:
    answer = api.post("/v1/sessions", {"title": "a"}, headers={"content-type": sent})
    assert (answer.status, answer.json["title"]) == (201, "a")
