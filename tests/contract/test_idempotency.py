"""Idempotency keys (contract §13)."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from tests.contract.calls import CALLS, Known, call, mint, place
from tests.support import Api

if TYPE_CHECKING:
    from collections.abc import Iterator

WRITES = [known for known in CALLS if known.writes]
KEY = {"idempotency-key": "job-8842"}


class Gate:
    """Something an agent waits for that is none of the emulator's business, so that its request stays in flight."""

    def __init__(self, api: Api) -> None:
        self.reached = threading.Event()
        self._api = api
        self._open = asyncio.Event()

    async def wait(self) -> None:
        self.reached.set()
        await self._open.wait()

    def open(self) -> None:
        self._api.emulator.loop.loop.call_soon_threadsafe(self._open.set)


@pytest.fixture
def gate(api: Api) -> Iterator[Gate]:
    """An agent that stays busy until the gate is opened, at the end of the test at the latest."""
    gate = Gate(api)

    @api.emulator.agent
    async def agent(turn: Any) -> None:
        await gate.wait()
        await turn.say("done")

    yield gate
    gate.open()


@pytest.mark.behaviour("idempotency.replay", "idempotency.every-write")
@pytest.mark.parametrize("known", WRITES, ids=str)
def test_a_write_sent_again_is_answered_alike_and_not_carried_out(api: Api, known: Known) -> None:
    where = place(api)
    first = call(api, known, where, headers=KEY)
    events, sessions = api.emulator.events(), api.get("/v1/sessions").json
    second = call(api, known, where, headers=KEY)
    assert (first.status, second.status) == (known.status, known.status)
    assert second.raw == first.raw
    assert api.emulator.events() == events
    assert api.get("/v1/sessions").json == sessions


@pytest.mark.behaviour("idempotency.reads")
@pytest.mark.parametrize("key", ["job-8842", "", "k" * 300])
def test_a_key_on_a_read_means_nothing(api: Api, key: str) -> None:
    first = api.get("/v1/sessions", headers={"idempotency-key": key})
    api.session()
    second = api.get("/v1/sessions", headers={"idempotency-key": key})
    assert (first.status, second.status) == (200, 200)
    assert (len(first.json["data"]), len(second.json["data"])) == (0, 1)


@pytest.mark.behaviour("idempotency.headers")
def test_a_replay_is_a_response_of_its_own(api: Api) -> None:
    first, second = (api.post("/v1/sessions", {}, headers=KEY) for _ in range(2))
    assert first.headers["x-request-id"] != second.headers["x-request-id"]
    assert (first.headers["x-ratelimit-remaining"], second.headers["x-ratelimit-remaining"]) == ("9", "8")
    assert second.headers["link"] == first.headers["link"]
    assert second.headers["content-type"] == "application/json"


@pytest.mark.behaviour("idempotency.scope")
def test_another_key_token_verb_or_path_is_another_call(api: Api) -> None:
    one, two = api.session(), api.session()
    answers = [
        api.patch(f"/v1/sessions/{one}", {"title": "a"}, headers=KEY),
        api.patch(f"/v1/sessions/{one}", {"title": "b"}, headers={"idempotency-key": "job-8843"}),
        api.patch(f"/v1/sessions/{two}", {"title": "c"}, headers=KEY),
        api.patch(f"/v1/sessions/{one}", {"title": "d"}, headers=KEY, token=mint(api)),
        api.patch(f"/v1/sessions/{one}", {"title": "e"}, headers={"idempotency-key": "JOB-8842"}),
    ]
    assert [answer.json["title"] for answer in answers] == ["a", "b", "c", "d", "e"]
    assert api.delete(f"/v1/sessions/{one}", headers=KEY).json["object"] == "session.deleted"


@pytest.mark.behaviour("idempotency.body")
def test_another_body_replays_the_first_answer(api: Api) -> None:
    session_id = api.session()
    first = api.patch(f"/v1/sessions/{session_id}", {"title": "a"}, headers=KEY)
    second = api.patch(f"/v1/sessions/{session_id}", {"title": "b"}, headers=KEY)
    assert second.raw == first.raw
    assert api.get(f"/v1/sessions/{session_id}").json["title"] == "a"


@pytest.mark.behaviour("idempotency.before-the-body")
def test_a_replay_looks_at_neither_query_nor_body(api: Api) -> None:
    first = api.post("/v1/sessions", {}, headers=KEY)
    for query, raw in (("", b"{"), ("?nothing=1", b"{}"), ("", b"")):
        assert api.post(f"/v1/sessions{query}", raw=raw, headers=KEY).raw == first.raw


@pytest.mark.behaviour("idempotency.length")
def test_a_key_has_a_length(api: Api) -> None:
    longest = {"idempotency-key": "k" * 255}
    assert api.post("/v1/sessions", {}, headers=longest).raw == api.post("/v1/sessions", {}, headers=longest).raw
    answer = api.post("/v1/sessions", {}, headers={"idempotency-key": "k" * 256})
    assert (answer.status, answer.code) == (400, "invalid_request")
    assert "`Idempotency-Key`" in answer.message
    assert "255" in answer.message
    assert "256" in answer.message


@pytest.mark.behaviour("idempotency.empty")
@pytest.mark.parametrize("key", ["", " "])
def test_an_empty_key_is_refused(api: Api, key: str) -> None:
    answer = api.post("/v1/sessions", {}, headers={"idempotency-key": key})
    assert (answer.status, answer.code) == (400, "invalid_request")
    assert "`Idempotency-Key`" in answer.message


@pytest.mark.behaviour("idempotency.refusals")
@pytest.mark.gobare(session_limit=1)
def test_a_refusal_is_not_kept(api: Api) -> None:
    kept = api.session()
    codes = [
        api.post("/v1/sessions", {"nothing": 1}, headers=KEY).code,
        api.post("/v1/sessions", {"parent_session_id": "nobody"}, headers=KEY).code,
        api.post("/v1/sessions", {}, headers=KEY).code,
        api.post("/v1/sessions?nothing=1", {}, headers=KEY).code,
    ]
    assert codes == ["invalid_request", "not_found", "project_limit_exceeded", "invalid_request"]
    api.delete(f"/v1/sessions/{kept}")
    assert api.post("/v1/sessions", {}, headers=KEY).status == 201


@pytest.mark.behaviour("idempotency.refusals")
@pytest.mark.gobare(rates="published")
def test_a_refusal_for_the_rate_is_not_kept(api: Api) -> None:
    made = [api.session() for _ in range(10)]
    assert api.post("/v1/sessions", {}, headers=KEY).code == "rate_limit_exceeded"
    api.emulator.clock.advance(6)
    answer = api.post("/v1/sessions", {}, headers=KEY)
    assert answer.status == 201
    assert answer.json["id"] not in made


@pytest.mark.behaviour("idempotency.failure")
def test_a_failed_call_releases_its_key(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError

    session_id = api.session()
    with monkeypatch.context() as patch:
        patch.setattr(api.emulator.socket.deployment.engine, "cancel", fail)
        assert api.send(session_id, {"type": "input.cancel"}, headers=KEY).status == 500
    assert api.send(session_id, {"type": "input.cancel"}, headers=KEY).status == 202


@pytest.mark.behaviour("idempotency.in-flight", "idempotency.in-flight-ends")
def test_a_key_in_flight_is_a_conflict_and_then_replays(api: Api, gate: Gate) -> None:
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(api.post, "/v1/sessions", {"input": "go"}, headers=KEY)
        assert gate.reached.wait(5)
        second = api.post("/v1/sessions", {"input": "go"}, headers=KEY)
        gate.open()
        answer = first.result(timeout=5)
    assert (second.status, second.code) == (409, "conflict")
    assert second.message == (
        'A request with Idempotency-Key "job-8842" is already in flight. Retry in a moment; '
        "if it succeeded, the retry replays its answer rather than acting again."
    )
    assert second.headers["retry-after"].isdigit()
    assert answer.status == 201
    assert api.post("/v1/sessions", {"input": "go"}, headers=KEY).raw == answer.raw
    assert len(api.get("/v1/sessions").json["data"]) == 1


@pytest.mark.behaviour("idempotency.in-flight")
def test_a_key_in_flight_stands_in_nobody_elses_way(api: Api, gate: Gate) -> None:
    session_id = api.session()
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(api.say, session_id, "go", headers=KEY)
        assert gate.reached.wait(5)
        answers = [
            api.patch(f"/v1/sessions/{session_id}", {"title": "a"}, headers=KEY),
            api.patch(f"/v1/sessions/{session_id}", {"title": "b"}, headers={"idempotency-key": "other"}),
            api.post("/v1/sessions", {}, headers=KEY),
            api.patch(f"/v1/sessions/{session_id}", {"title": "c"}, headers=KEY, token=mint(api)),
        ]
        gate.open()
        assert first.result(timeout=5).status == 202
    assert [answer.status for answer in answers] == [200, 200, 201, 200]


@pytest.mark.behaviour("idempotency.race")
def test_of_calls_that_race_one_is_carried_out(api: Api) -> None:
    with ThreadPoolExecutor(8) as pool:
        calls = [pool.submit(api.post, "/v1/sessions", {"title": str(n)}, headers=KEY) for n in range(16)]
        answers = [call.result(timeout=5) for call in calls]
    assert {answer.status for answer in answers} <= {201, 409}
    assert len({answer.raw for answer in answers if answer.status == 201}) == 1
    assert len(api.get("/v1/sessions").json["data"]) == 1


@pytest.mark.behaviour("idempotency.abandoned")
def test_a_call_that_is_abandoned_releases_its_key(api: Api) -> None:
    over_a_socket = Api(api.emulator)

    def wait_for(code: str) -> None:
        until = time.monotonic() + 5
        while over_a_socket.post("/v1/sessions", {"nothing": 1}, headers=KEY).code != code:
            assert time.monotonic() < until, f"never became {code}"

    host, port = api.emulator.url.removeprefix("http://").split(":")
    head = f"POST /v1/sessions HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {api.emulator.token}\r\n"
    with socket.create_connection((host, int(port)), timeout=5) as connection:
        connection.sendall(f"{head}Idempotency-Key: job-8842\r\nContent-Length: 100\r\n\r\n{{".encode())
        wait_for("conflict")
    wait_for("invalid_request")
    assert over_a_socket.post("/v1/sessions", {}, headers=KEY).status == 201


@pytest.mark.behaviour("idempotency.day")
def test_an_answer_is_kept_for_a_day(api: Api) -> None:
    first = api.post("/v1/sessions", {}, headers=KEY).json["id"]
    api.emulator.clock.advance(86_399.999)
    assert api.post("/v1/sessions", {}, headers=KEY).json["id"] == first
    api.emulator.clock.advance(0.001)
    second = api.post("/v1/sessions", {}, headers=KEY).json["id"]
    assert second != first
    assert api.post("/v1/sessions", {}, headers=KEY).json["id"] == second


@pytest.mark.behaviour("idempotency.deleted")
def test_a_delete_is_replayed(api: Api) -> None:
    session_id = api.session()
    answers = [api.delete(f"/v1/sessions/{session_id}", headers=KEY) for _ in range(2)]
    assert [answer.status for answer in answers] == [200, 200]
    assert answers[0].raw == answers[1].raw
    assert api.delete(f"/v1/sessions/{session_id}").status == 404
