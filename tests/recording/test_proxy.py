"""The proxy changes nothing on the way, holds nothing up, and ends with whoever ends first."""

from __future__ import annotations

import gzip
import http.client
import json
import socket
import ssl
import threading
from typing import TYPE_CHECKING, Any

import pytest

from emulator.recording.upstream import Upstream, why
from tests.recording.recorded import Recorded
from tests.recording.upstream import Answer, Request, Scripted
from tests.support import WAIT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from emulator import Emulator

STREAM = {"content-type": "text/event-stream"}
JSON = {"content-type": "application/json"}
SESSION = "98e997bb-d64f-4e4e-9391-24b87f74fd04"


@pytest.fixture
def record(gobare: Emulator, tmp_path: Path) -> Callable[[str], Recorded]:
    return lambda upstream: Recorded(gobare, tmp_path / "it.jsonl", upstream=upstream)


def connect(recorded: Recorded) -> http.client.HTTPConnection:
    return http.client.HTTPConnection(recorded.server.url.removeprefix("http://"), timeout=WAIT)


def test_a_request_and_its_answer_arrive_as_they_were_sent(record: Callable[[str], Recorded]) -> None:
    def answer(request: Request) -> Answer:
        return (
            418,
            {"content-type": "text/plain", "x-request-id": "0badcafe", "set-cookie": "a=b", "x-twice": "1"},
            b"hi",
        )

    with Scripted(answer) as upstream, record(upstream.url) as recorded:
        connection = connect(recorded)
        for _ in range(2):
            connection.putrequest("PUT", "/v1/sessions/a%2Fb/tools?x=1&x=%20&y", skip_accept_encoding=True)
            sent = [
                ("X-Custom", "kept"),
                ("User-Agent", "mine"),
                ("Content-Type", "application/json; x"),
                ("Cookie", "c=d"),
            ]
            for name, value in [*sent, ("Connection", "keep-alive, x-hop"), ("X-Hop", "no"), ("Content-Length", "7")]:
                connection.putheader(name, value)
            connection.endheaders(b'{"a":1}')
            response = connection.getresponse()
            assert (response.status, response.read()) == (418, b"hi")
            assert response.getheader("x-request-id") == "0badcafe"
            assert response.getheader("set-cookie") == "a=b"
        connection.close()
    for arrived in upstream.requests:
        assert (arrived.verb, arrived.target, arrived.body) == (
            "PUT",
            "/v1/sessions/a%2Fb/tools?x=1&x=%20&y",
            b'{"a":1}',
        )
        names = {name: value for name, value in arrived.headers if name not in ("host", "content-length")}
        assert names == {name.lower(): value for name, value in sent}
        assert arrived.header["host"] == upstream.url.removeprefix("http://")


def test_what_is_beside_the_api_is_passed_on_and_not_recorded(record: Callable[[str], Recorded]) -> None:
    with Scripted(lambda request: (200, JSON, b"{}")) as upstream, record(upstream.url) as recorded:
        connection = connect(recorded)
        connection.request("POST", "/_emulator/clock/advance", b'{"seconds": 1}')
        assert connection.getresponse().read() == b"{}"
        connection.close()
    assert not [line for line in recorded.lines() if "verb" in line]


def test_each_frame_of_a_stream_is_passed_on_before_the_next_one_exists(record: Callable[[str], Recorded]) -> None:
    seen = threading.Semaphore(0)

    def frames() -> Iterator[bytes]:
        for n in range(3):
            yield b"id: %d\nevent: x\ndata: {}\n\n" % n
            # Held back until the client has the one before.
            assert seen.acquire(timeout=WAIT)

    with Scripted(lambda request: (200, STREAM, frames())) as upstream, record(upstream.url) as recorded:
        connection = connect(recorded)
        connection.request("GET", "/v1/events?last_event_id=0")
        response = connection.getresponse()
        for n in range(3):
            assert response.read1(65536) == b"id: %d\nevent: x\ndata: {}\n\n" % n
            seen.release()
        assert response.read1(65536) == b""
        connection.request("GET", "/v1/events", headers={"last-event-id": "2"})
        again = connection.getresponse()
        assert again.read1(65536).startswith(b"id: 0")
        connection.close()
        seen.release(8)
    streams = [line for line in recorded.lines() if line.get("stream")]
    assert [(line.get("query"), line.get("headers")) for line in streams] == [
        ({"last_event_id": "0"}, None),
        (None, {"last-event-id": "2"}),
    ]


def test_a_body_is_passed_on_piece_by_piece(record: Callable[[str], Recorded]) -> None:
    listening = socket.create_server(("127.0.0.1", 0))
    first = threading.Event()
    received: list[bytes] = []

    def serve() -> None:
        accepted, _ = listening.accept()
        with accepted:
            data = b""
            while b"second" not in data:
                data += accepted.recv(65536)
                if b"first" in data:
                    first.set()
            received.append(data)
            accepted.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}")

    thread = threading.Thread(target=serve)
    thread.start()
    with listening, record(f"http://127.0.0.1:{listening.getsockname()[1]}") as recorded:
        connection = connect(recorded)
        connection.putrequest("POST", "/v1/sessions")
        connection.putheader("Transfer-Encoding", "chunked")
        connection.endheaders()
        connection.send(b"5\r\nfirst\r\n")
        assert first.wait(WAIT), "the first piece waits for the second"
        connection.send(b"6\r\nsecond\r\n0\r\n\r\n")
        assert connection.getresponse().read() == b"{}"
        connection.close()
        thread.join(WAIT)
    assert next(line["body_text"] for line in recorded.lines() if "verb" in line) == "firstsecond"


def test_a_client_that_leaves_ends_its_request(record: Callable[[str], Recorded]) -> None:
    gone = threading.Event()

    def frames() -> Iterator[bytes]:
        try:
            while not gone.wait(0.01):
                yield b": ping\n\n"
        finally:
            gone.set()

    with Scripted(lambda request: (200, STREAM, frames())) as upstream, record(upstream.url) as recorded:
        connection = connect(recorded)
        connection.request("GET", "/v1/events")
        response = connection.getresponse()
        assert response.read1(65536)
        response.close()
        connection.close()
        assert gone.wait(WAIT), "the upstream goes on sending to nobody"


def test_an_upstream_that_breaks_off_breaks_the_answer_off(record: Callable[[str], Recorded]) -> None:
    def broken() -> Iterator[bytes]:
        yield b'{"half'
        raise ConnectionError

    with Scripted(lambda request: (200, JSON, broken())) as upstream, record(upstream.url) as recorded:
        connection = connect(recorded)
        connection.request("GET", "/v1/sessions")
        with pytest.raises((http.client.IncompleteRead, ConnectionError, http.client.HTTPException)):
            connection.getresponse().read()
        connection.close()
    assert [line["cut"] for line in recorded.lines() if "verb" in line] == [True]


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_an_upstream_that_is_not_there_is_said_in_the_api_s_envelope(
    record: Callable[[str], Recorded], scheme: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        port = nobody.getsockname()[1]
    with record(f"{scheme}://127.0.0.1:{port}") as recorded:
        connection = connect(recorded)
        connection.request("POST", "/v1/sessions", b"{}", {"authorization": "Bearer t"})
        response = connection.getresponse()
        answer = json.loads(response.read())
        assert response.status == 502
        assert set(answer) == {"error"}
        assert answer["error"]["code"] == "provider_error"
        assert answer["error"]["request_id"] == response.getheader("x-request-id")
        connection.close()
    (line,) = (line for line in recorded.lines() if "verb" in line)
    assert (line["status"], line["unreachable"], line["body"]) == (502, True, {})
    ((what, reason),) = recorded.server.incomplete()
    assert (what, reason) == ("answers of the upstream", "it cannot be reached: Connection refused")


def test_an_upstream_with_tls_is_verified() -> None:
    transport: Any = Upstream("https://api.gobare.test/base")._transport
    assert transport._pool._ssl_context.verify_mode == ssl.CERT_REQUIRED
    assert transport._pool._ssl_context.check_hostname


def test_why_an_upstream_cannot_be_reached_is_said() -> None:
    refused = ConnectionRefusedError(111, "Connection refused")
    untrusted = ssl.SSLCertVerificationError(1, "[SSL: CERTIFICATE_VERIFY_FAILED] self-signed certificate")
    untrusted.verify_message = "self-signed certificate"
    for cause, said in (
        (refused, "Connection refused"),
        (untrusted, "its certificate is not trusted (self-signed certificate)"),
        (None, "RuntimeError"),
    ):
        error = RuntimeError("at https://user:password@host")
        error.__cause__ = cause
        assert why(error) == said


def test_what_is_compressed_on_the_way_is_kept_readable(record: Callable[[str], Recorded]) -> None:
    body = gzip.compress(b'{"object": "list"}')
    headers = {**JSON, "content-encoding": "gzip"}
    with Scripted(lambda request: (200, headers, body)) as upstream, record(upstream.url) as recorded:
        connection = connect(recorded)
        connection.request("GET", "/v1/agents", headers={"accept-encoding": "br, gzip;q=0.5"})
        assert connection.getresponse().read() == body
        connection.close()
    assert upstream.requests[-1].header["accept-encoding"] == "gzip"
    assert next(line["answer"] for line in recorded.lines() if "verb" in line) == {"object": "list"}


def test_an_event_that_several_streams_show_is_kept_once(record: Callable[[str], Recorded], gobare: Emulator) -> None:
    with record(gobare.url) as recorded:
        session = recorded.api.session({"input": "hello"})
        for _ in range(2):
            with recorded.api.stream(f"/v1/sessions/{session}/events?last_event_id=0") as frames:
                assert frames.until("turn.ended")
        assert len(recorded.events("turn.ended")) == 1
