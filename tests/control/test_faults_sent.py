"""What a client meets when its request goes wrong, over a real socket and with real clients."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import urllib.error
import urllib.request
from base64 import b64encode
from contextlib import suppress
from typing import Any

import httpx2
import pytest

from emulator import Emulator
from emulator.clock import stopwatch
from tests.findings.support import evidence, found, ids
from tests.support import WAIT, Api, read_to_end

LIST = {"method": "GET", "path": "/v1/sessions"}
CREATE = {"method": "POST", "path": "/v1/sessions"}
LOST = (OSError, http.client.HTTPException)


def raw(gobare: Emulator, verb: str, path: str, body: bytes = b"", head: str = "") -> tuple[bytes, str]:
    """All that a client reads of a connection with one request, and how it ends."""
    host, _, port = gobare.url.removeprefix("http://").partition(":")
    lines = f"{verb} {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {gobare.token}\r\n{head}"
    with socket.create_connection((host, int(port)), timeout=WAIT) as connection:
        connection.sendall(f"{lines}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        return read_to_end(connection)


def body_of(got: bytes) -> tuple[int, bytes]:
    """The length that was said, and the body that came."""
    head, _, body = got.partition(b"\r\n\r\n")
    (said,) = (line for line in head.split(b"\r\n") if line.startswith(b"content-length"))
    return int(said.partition(b": ")[2]), body


# Connections


def test_before_there_is_not_a_byte_and_a_reset(gobare: Emulator) -> None:
    gobare.faults.add(reset="before")
    assert raw(gobare, "POST", "/v1/sessions", b"{}") == (b"", "reset")


def test_during_there_is_half_of_the_answer_and_a_reset(gobare: Emulator) -> None:
    gobare.faults.add(reset="during")
    got, how = raw(gobare, "POST", "/v1/sessions", b"{}")
    said, body = body_of(got)
    assert (how, len(body), got[:12]) == ("reset", said // 2, b"HTTP/1.1 201")


def test_half_of_a_long_answer_comes_to_a_slow_client_too(gobare: Emulator) -> None:
    gobare.faults.add(reset="during")
    connection = http.client.HTTPConnection(gobare.url.removeprefix("http://"), timeout=WAIT)
    connection.request("GET", "/v1/openapi.json")
    while not gobare.faults.list()[0].hits:
        pass
    answer = connection.getresponse()
    half = int(answer.headers["content-length"]) // 2
    assert len(answer.read(half)) == half
    with pytest.raises(ConnectionResetError):
        answer.read(1)
    connection.close()


def test_after_there_is_not_a_byte_and_a_reset_though_it_was_done(gobare: Emulator, api: Api) -> None:
    gobare.faults.add(reset="after", times=1)
    assert raw(gobare, "POST", "/v1/sessions", b'{"title":"there"}') == (b"", "reset")
    assert [session["title"] for session in api.get("/v1/sessions").json["data"]] == ["there"]


def test_an_empty_answer_is_a_connection_that_closes(gobare: Emulator) -> None:
    gobare.faults.add(empty=True)
    assert raw(gobare, "GET", "/v1/sessions") == (b"", "closed")


@pytest.mark.parametrize("count", [0, 1, 50, 1_000_000])
def test_a_truncated_body_is_shorter_than_it_says(gobare: Emulator, count: int) -> None:
    gobare.faults.add(truncate=count)
    got, how = raw(gobare, "GET", "/v1/openapi.json")
    said, body = body_of(got)
    assert (how, len(body)) == ("closed", min(count, said - 1))


@pytest.mark.rigged
@pytest.mark.parametrize("fault", [{"error": "not_found"}, {"html": 502}, {"reset": "during"}, {"truncate": 9}])
def test_a_head_has_no_body_whatever_goes_wrong(gobare: Emulator, fault: dict[str, Any]) -> None:
    gobare.faults.add({"method": "HEAD"}, **fault)
    got, _ = raw(gobare, "HEAD", "/v1/sessions", head="Connection: close\r\n")
    assert got.startswith(b"HTTP/1.1 ")
    assert got.endswith(b"\r\n\r\n")


def test_the_next_request_of_a_kept_connection_is_served(gobare: Emulator, api: Api) -> None:
    gobare.faults.add(LIST, delay=0.01, times=1)
    connection = http.client.HTTPConnection(gobare.url.removeprefix("http://"), timeout=WAIT)
    for _ in range(2):
        connection.request("GET", "/v1/sessions", headers={"authorization": f"Bearer {gobare.token}"})
        assert json.load(connection.getresponse())["data"] == []
    connection.close()


@pytest.mark.parametrize(
    "fault", [{"empty": True}, {"reset": "before"}, {"reset": "during"}, {"reset": "after"}, {"truncate": 5}]
)
def test_one_with_another_behind_it_on_its_connection_ends_too(gobare: Emulator, fault: dict[str, Any]) -> None:
    gobare.faults.add(LIST, **fault)
    second = f"GET /v1/health HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {gobare.token}\r\n"
    raw(gobare, "GET", "/v1/sessions", head=f"Content-Length: 0\r\n\r\n{second}")
    gobare.settle()
    assert [entry.fault for entry in gobare.requests] == [gobare.faults.list()[0].id]


@pytest.mark.rigged
@pytest.mark.parametrize("status", [413, 502, 599])
def test_a_proxy_answers_with_a_page_of_its_own(gobare: Emulator, api: Api, status: int) -> None:
    fault = gobare.faults.add(CREATE, html=status)
    answer = api.post("/v1/sessions", {"title": "one"})
    assert (answer.status, answer.headers["content-type"]) == (status, "text/html")
    assert answer.raw.startswith(b"<html>")
    assert str(status).encode() in answer.raw
    assert not {"x-request-id", "link", "retry-after", "x-ratelimit-limit"} & set(answer.headers)
    (entry,) = gobare.requests
    assert (entry.status, entry.fault, entry.body, entry.code) == (status, fault.id, {"title": "one"}, None)


def test_httpx_and_urllib_meet_what_they_would_meet_elsewhere(gobare: Emulator) -> None:
    head = {"authorization": f"Bearer {gobare.token}"}
    url = f"{gobare.url}/v1/sessions"
    with httpx2.Client(headers=head) as client:
        met: list[tuple[dict[str, Any], type[Exception]]] = [
            ({"reset": "before"}, httpx2.ReadError),
            ({"reset": "during"}, httpx2.ReadError),
            ({"reset": "after"}, httpx2.ReadError),
            ({"empty": True}, httpx2.RemoteProtocolError),
            ({"truncate": 3}, httpx2.RemoteProtocolError),
        ]
        for fault, kind in met:
            gobare.faults.add(times=1, **fault)
            with pytest.raises(kind):
                client.get(url)
            assert client.get(url).status_code == 200
        gobare.faults.add(delay=5, times=1)
        with pytest.raises(httpx2.ReadTimeout):
            client.get(url, timeout=0.1)
    gobare.faults.add(error="rate_limit_exceeded", retry_after=3, times=1)
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(urllib.request.Request(url, headers=head))
    with refused.value as answer:
        assert (answer.code, answer.headers["retry-after"]) == (429, "3")


# Waiting


def test_a_request_waits_in_real_time_and_is_then_handled(gobare: Emulator, api: Api) -> None:
    fault = gobare.faults.add(LIST, delay=0.15)
    began = stopwatch()
    assert api.get("/v1/sessions").status == 200
    assert stopwatch() - began >= 0.15
    (entry,) = gobare.requests
    assert entry.duration_ms is not None
    assert entry.duration_ms >= 150
    assert (entry.fault, gobare.clock.now()) == (fault.id, 1_767_225_600_000)


def test_a_wait_goes_with_what_comes_after_it(gobare: Emulator) -> None:
    gobare.faults.add(delay=0.1, reset="before")
    began = stopwatch()
    assert raw(gobare, "GET", "/v1/sessions") == (b"", "reset")
    assert stopwatch() - began >= 0.1


def test_a_client_that_leaves_before_its_connection_is_to_break(
    gobare: Emulator, caplog: pytest.LogCaptureFixture
) -> None:
    gobare.faults.add(delay=0.1, reset="before")
    connection = http.client.HTTPConnection(gobare.url.removeprefix("http://"))
    connection.request("GET", "/v1/sessions")
    while not gobare.faults.list()[0].hits:
        pass
    connection.close()
    while not gobare.requests:
        pass
    assert [entry.status for entry in gobare.requests] == [0]
    assert caplog.records == []


def test_others_are_served_while_one_waits(gobare: Emulator, api: Api) -> None:
    gobare.faults.add(CREATE, delay=0.3, times=1)
    first = threading.Thread(target=lambda: api.post("/v1/sessions", {"title": "late"}))
    first.start()
    while not gobare.faults.list()[0].hits:
        pass
    assert api.post("/v1/sessions", {"title": "soon"}).status == 201
    first.join(WAIT)
    assert [session["title"] for session in api.get("/v1/sessions").json["data"]] == ["late", "soon"]


@pytest.mark.parametrize(("verb", "path"), [("POST", "/v1/sessions"), ("GET", "/v1/sessions"), ("GET", "/v1/events")])
def test_a_request_that_waits_does_not_outlive_a_reset(gobare: Emulator, api: Api, verb: str, path: str) -> None:
    gobare.faults.add(delay=3600, times=1)
    answers = []
    body: Any = {} if verb == "POST" else None
    first = threading.Thread(target=lambda: answers.append(api.request(verb, path, body)))
    first.start()
    while not gobare.faults.list()[0].hits:
        pass
    gobare.reset()
    first.join(WAIT)
    assert [(answer.status, answer.code) for answer in answers] == [(503, "sandbox_unavailable")]
    assert api.get("/v1/sessions").json["data"] == []


def test_an_emulator_stops_while_requests_wait() -> None:
    with Emulator() as gobare:
        gobare.faults.add({"path": "/v1/sessions"}, delay=60)
        gobare.faults.add({"path": "/v1/events"}, stall="forever")
        head = {"authorization": f"Bearer {gobare.token}"}
        connections = [http.client.HTTPConnection(gobare.url.removeprefix("http://")) for _ in range(5)]
        connections[0].request("GET", "/v1/events", headers=head)
        for connection in connections[1:]:
            connection.request("POST", "/v1/sessions", b'{"input": "hello"}', headers=head)
        while sum(fault.hits for fault in gobare.faults.list()) < len(connections):
            pass
        began = stopwatch()
    assert stopwatch() - began < 1
    for connection in connections[1:]:
        with connection.getresponse() as answer:
            assert (answer.status, b"sandbox_unavailable" in answer.read()) == (503, True)
    for connection in connections:
        connection.close()


# Downloads and uploads


@pytest.fixture
def artifact(gobare: Emulator, api: Api) -> str:
    """The path of a large artifact's bytes."""

    @gobare.agent
    async def agent(turn: Any) -> None:
        await turn.write("/workspace/outputs/large.bin", "x" * 3_000_000)

    session = api.session({"input": "go"})
    (made,) = api.get(f"/v1/sessions/{session}/artifacts").json["data"]
    return f"/v1/sessions/{session}/artifacts/{made['id']}/content"


@pytest.mark.parametrize(
    ("fault", "how", "least", "most"),
    [
        ({"truncate": 2_000_000}, "closed", 2_000_000, 2_000_000),
        ({"truncate": 9_000_000}, "closed", 2_999_999, 2_999_999),
        ({"reset": "during"}, "reset", 1, 2_999_999),
        ({"reset": "after"}, "reset", 0, 0),
    ],
)
def test_a_download_breaks_off(
    gobare: Emulator, artifact: str, fault: dict[str, Any], how: str, least: int, most: int
) -> None:
    gobare.faults.add({"path": "/v1/sessions/*/artifacts/*/content"}, **fault)
    got, ended = raw(gobare, "GET", artifact)
    assert ended == how
    assert least <= len(got.partition(b"\r\n\r\n")[2]) <= most


@pytest.mark.rigged
@pytest.mark.parametrize("fault", [{"error": "sandbox_unavailable"}, {"html": 413}, {"reset": "before"}])
def test_an_upload_that_is_refused_writes_nothing(gobare: Emulator, api: Api, fault: dict[str, Any]) -> None:
    session = api.session({"input": "go"})
    body = {"files": [{"path": "a.txt", "data": b64encode(b"x" * 300_000).decode()}]}
    gobare.faults.add({"path": "/v1/sessions/*/files", "method": "POST"}, times=1, **fault)
    with suppress(*LOST):
        assert api.post(f"/v1/sessions/{session}/files", body).status >= 400
    assert gobare.requests[-1].body["files"][0]["path"] == "a.txt"
    assert api.post(f"/v1/sessions/{session}/files/refresh").status == 200
    paths = [entry["path"] for entry in api.get(f"/v1/sessions/{session}/files").json["data"]]
    assert not any("a.txt" in path for path in paths)
    assert api.post(f"/v1/sessions/{session}/files", body).status == 200


@pytest.mark.parametrize("fault", [{"html": 502}, {"twice": True}])
def test_a_body_that_never_comes_meets_nothing(gobare: Emulator, fault: dict[str, Any]) -> None:
    gobare.faults.add(CREATE, times=1, **fault)
    host, _, port = gobare.url.removeprefix("http://").partition(":")
    head = f"POST /v1/sessions HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {gobare.token}\r\n"
    with socket.create_connection((host, int(port)), timeout=WAIT) as connection:
        connection.sendall(f"{head}Content-Length: 100\r\n\r\n{{".encode())
        while not gobare.faults.list()[0].matched:
            pass
    gobare.settle()
    assert gobare.faults.list()[0].hits == 0


def test_a_secret_in_what_is_refused_is_not_kept(gobare: Emulator, api: Api) -> None:
    tool = {"type": "mcp", "name": "docs", "url": "http://docs", "authorization": "Bearer very-private"}
    gobare.faults.add(CREATE, reset="before", times=1)
    with pytest.raises(LOST):
        api.post("/v1/sessions?key=gbr_pat_private", {"agent": {"tools": [tool]}, "unknown": "very-private"})
    kept = json.dumps([vars(entry) for entry in gobare.requests]) + str(gobare.timeline())
    assert "docs" in kept
    assert "private" not in kept


# What is made of it


def test_a_create_whose_answer_was_lost_and_is_sent_again_was_written_twice(gobare: Emulator, api: Api) -> None:
    body = {"input": "hello", "metadata": {"tenant": "acme"}}
    gobare.faults.add(CREATE, reset="after", times=1)
    with pytest.raises(LOST):
        api.post("/v1/sessions", body)
    again = api.post("/v1/sessions", body)
    lost = gobare.requests[0].request_id
    assert found(gobare)["written-twice"] == evidence([lost, *ids(again)], session_id=again.json["id"])


def test_with_a_key_it_was_not(gobare: Emulator, api: Api) -> None:
    body = {"input": "hello", "metadata": {"tenant": "acme"}}
    gobare.faults.add(CREATE, reset="after", times=1)
    with pytest.raises(LOST):
        api.post("/v1/sessions", body, headers={"idempotency-key": "one"})
    api.post("/v1/sessions", body, headers={"idempotency-key": "one"})
    assert found(gobare) == {}


@pytest.mark.parametrize("fault", [{"reset": "before"}, {"empty": True}, {"twice": True}])
def test_nobody_is_blamed_for_what_a_fault_did(gobare: Emulator, api: Api, fault: dict[str, Any]) -> None:
    body = {"input": "hello", "metadata": {"tenant": "acme"}}
    gobare.faults.add(CREATE, times=1, **fault)
    try:
        api.post("/v1/sessions", body)
    except LOST:
        api.post("/v1/sessions", body)
    assert found(gobare) == {}


@pytest.mark.parametrize("reset", ["during", "after"])
@pytest.mark.parametrize("verb", ["GET", "PATCH"])
def test_what_a_lost_answer_told_was_not_read(gobare: Emulator, api: Api, verb: str, reset: Any) -> None:
    gobare.load({"agent": [{"otherwise": [{"ask": {"question": "Which?"}}]}]})
    session = api.session({"input": "hello"})
    gobare.faults.add({"path": "/v1/sessions/*"}, reset=reset, times=3)
    (turn,) = api.turns(session)
    for _ in range(3):
        with pytest.raises(LOST):
            api.request(verb, f"/v1/sessions/{session}", {"title": "mine"} if verb == "PATCH" else None)
        api.get(f"/v1/sessions/{session}/turns/{turn['id']}")
    assert list(found(gobare)) == ["polled-turn-only"]


@pytest.mark.gobare(session_limit=1)
def test_a_refusal_that_was_lost_was_not_read_either(gobare: Emulator, api: Api) -> None:
    api.session()
    gobare.faults.add(CREATE, reset="after", times=2)
    for _ in range(2):
        with pytest.raises(LOST):
            api.post("/v1/sessions", {"title": "one too many"})
    assert found(gobare) == {}
    for _ in range(2):
        assert api.post("/v1/sessions", {"title": "one too many"}).code == "project_limit_exceeded"
    assert list(found(gobare)) == ["project-limit-retried"]


def test_a_retry_that_comes_too_soon_is_told_with_an_injected_wait_too(gobare: Emulator, api: Api) -> None:
    gobare.faults.add(LIST, error="directory_unavailable", times=1)
    first, second = api.get("/v1/sessions"), api.get("/v1/sessions")
    assert found(gobare) == {"retry-too-soon": evidence(ids(first, second))}
    gobare.reset()
    gobare.faults.add(LIST, error="directory_unavailable", retry_after=0, times=1)
    assert [api.get("/v1/sessions").status for _ in range(2)] == [503, 200]
    assert found(gobare) == {}


def test_one_session_of_many_meets_it(gobare: Emulator, api: Api) -> None:
    mine, other = api.session(), api.session()
    gobare.faults.add({"session": mine}, reset="after", times=1)
    assert api.say(other, "hello").status == 202
    with pytest.raises(LOST):
        api.say(mine, "hello")
    assert [len(api.turns(session)) for session in (mine, other)] == [1, 1]
