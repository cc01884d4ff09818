"""How webhooks are signed, sent, and tried again (contract §11)."""

from __future__ import annotations

import socket
import threading
import time
from hashlib import sha256
from hmac import new as hmac
from typing import TYPE_CHECKING, Any

import pytest

from tests.receiver import Receiver, verify
from tests.support import WAIT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.receiver import Post
    from tests.support import Api

MINUTE = 60
STEPS = (MINUTE, 5 * MINUTE, 30 * MINUTE, 120 * MINUTE, 360 * MINUTE)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as receiver:
        yield receiver


def subscribe(api: Api, receiver: Receiver | str, *events: str) -> dict[str, Any]:
    url = receiver if isinstance(receiver, str) else receiver.url
    answer = api.post("/v1/webhooks", {"url": url, "events": list(events)})
    assert answer.status == 201, answer.raw
    made: dict[str, Any] = answer.json
    return made


def health(api: Api) -> dict[str, Any]:
    found: dict[str, Any] = api.get("/v1/webhooks").json["data"][0]["delivery"]
    return found


def states(api: Api) -> list[str]:
    return [entry.state for entry in api.emulator.webhooks.deliveries()]


@pytest.mark.behaviour("webhooks.headers", "webhooks.signature")
def test_a_delivery_is_signed_over_its_time_and_raw_body(api: Api, receiver: Receiver) -> None:
    secret = subscribe(api, receiver)["secret"]
    api.session({"input": "hello"})
    api.emulator.settle()
    for post in receiver.posts:
        assert sorted(post.headers) == [
            "content-length",
            "content-type",
            "host",
            "x-gobare-signature",
            "x-gobare-timestamp",
        ]
        timestamp = post.headers["x-gobare-timestamp"]
        assert post.headers["content-type"] == "application/json"
        expected = hmac(secret.encode(), f"{timestamp}.".encode() + post.body, sha256).hexdigest()
        assert post.headers["x-gobare-signature"] == expected == expected.lower()
    assert len(receiver.posts) == 4


@pytest.mark.behaviour("webhooks.real-time")
def test_the_time_is_that_of_the_attempt_and_real(api: Api, receiver: Receiver) -> None:
    receiver.answers.append(500)
    secret = subscribe(api, receiver, "session.created")["secret"]
    before = time.time() * 1000
    api.session()
    api.emulator.settle()
    api.emulator.clock.advance(MINUTE)
    after = time.time() * 1000
    first, second = (post.headers["x-gobare-timestamp"] for post in receiver.posts)
    assert before - 1 <= int(first) < int(second) <= after
    for post in receiver.posts:
        assert verify(secret, post.headers["x-gobare-timestamp"], post.body, post.headers["x-gobare-signature"])


@pytest.mark.behaviour("webhooks.utf-8")
def test_a_body_is_utf_8_and_signed_as_it_is(api: Api, receiver: Receiver) -> None:
    text = "Grüße, 東京 🌍 \u2028"
    secret = subscribe(api, receiver, "session.created")["secret"]
    api.emulator.webhooks.script([{"do": "extra_data", "data": {"note": text}}])
    api.session()
    api.emulator.settle()
    (post,) = receiver.posts
    assert text.encode() in post.body
    assert verify(secret, post.headers["x-gobare-timestamp"], post.body, post.headers["x-gobare-signature"])


@pytest.mark.behaviour("webhooks.after-the-reply")
def test_what_a_request_caused_arrives_after_its_reply(api: Api, receiver: Receiver) -> None:
    replied, early = threading.Event(), []

    def arrived(post: Post) -> None:
        # One that came too soon would find no reply, and wait for it in vain.
        early.append(not replied.wait(WAIT))

    receiver.on_post = arrived
    subscribe(api, receiver)
    for _ in range(5):
        replied.clear()
        api.session({"input": "hello"})
        replied.set()
        api.emulator.settle()
    assert early == [False] * 20


@pytest.mark.behaviour("webhooks.after-the-reply")
def test_nothing_is_sent_while_the_request_that_caused_it_waits(api: Api, receiver: Receiver) -> None:
    seen: list[int] = []

    @api.emulator.agent
    async def agent(turn: Any) -> None:
        assert await api.emulator.aio.settle(0.2) in (True, False)
        seen.append(len(receiver.posts))

    subscribe(api, receiver)
    api.session({"input": "hello"})
    api.emulator.settle()
    assert (seen, len(receiver.posts)) == ([0], 4)


@pytest.mark.behaviour("webhooks.no-waiting")
def test_no_reply_waits_for_a_receiver(api: Api, receiver: Receiver) -> None:
    answer = threading.Event()
    receiver.on_post = lambda post: answer.wait(WAIT)
    subscribe(api, receiver)
    session_id = api.session({"input": "hello"})
    api.say(session_id, "again")
    assert len(api.turns(session_id)) == 2
    assert receiver.handled == []
    assert api.emulator.settle(0.05) is False
    answer.set()
    assert api.emulator.settle()
    assert len(receiver.handled) == 7


@pytest.mark.behaviour("webhooks.reenter")
def test_a_receiver_may_call_the_api(api: Api, receiver: Receiver) -> None:
    def answer(post: Post) -> None:
        session_id = post.json["data"]["session_id"]
        if post.type == "turn.completed" and len(api.turns(session_id)) < 3:
            api.say(session_id, "go on")

    receiver.on_post = answer
    subscribe(api, receiver, "turn.completed")
    session_id = api.session({"input": "hello"})
    assert api.emulator.settle()
    assert len(api.turns(session_id)) == 3
    assert receiver.types == ["turn.completed"] * 3


@pytest.mark.behaviour("webhooks.in-order")
def test_one_subscription_is_told_in_order(api: Api, receiver: Receiver) -> None:
    subscribe(api, receiver)
    for _ in range(5):
        api.session({"input": "hello"})
    api.emulator.settle()
    told = [post.json for post in receiver.posts]
    assert [event["created_at"] for event in told] == sorted(event["created_at"] for event in told)
    assert receiver.types == ["session.created", "session.working", "session.idle", "turn.completed"] * 5


@pytest.mark.behaviour("webhooks.in-order")
def test_a_slow_receiver_holds_up_no_other(api: Api, receiver: Receiver) -> None:
    answer, second = threading.Event(), threading.Event()
    with Receiver() as quick:
        receiver.on_post = lambda post: answer.wait(WAIT)
        quick.on_post = lambda post: second.set() if len(quick.posts) == 2 else None
        for one in (receiver, quick):
            subscribe(api, one, "session.created")
        for _ in range(2):
            api.session()
        assert second.wait(WAIT)
        assert len(receiver.posts) <= 1
        answer.set()
        api.emulator.settle()
        assert (len(receiver.handled), len(quick.handled)) == (2, 2)


@pytest.mark.behaviour("webhooks.delivered")
@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
def test_any_2xx_is_a_delivery(api: Api, receiver: Receiver, status: int) -> None:
    receiver.answers.append(status)
    subscribe(api, receiver, "session.created")
    api.session()
    api.emulator.settle()
    api.emulator.clock.advance(40_000)
    assert (len(receiver.posts), states(api)) == (1, ["delivered"])
    assert health(api)["pending"] == 0


@pytest.mark.behaviour("webhooks.not-2xx")
@pytest.mark.parametrize("status", [302, 307, 400, 401, 404, 410, 429, 500, 503])
def test_any_other_status_is_a_failure(api: Api, receiver: Receiver, status: int) -> None:
    receiver.answers.append(status)
    with Receiver() as elsewhere:
        receiver.location = elsewhere.url
        subscribe(api, receiver, "session.created")
        api.session()
        api.emulator.settle()
        assert states(api) == ["pending"]
        api.emulator.clock.advance(MINUTE)
        assert [post.answer for post in receiver.posts] == [status, 200]
        assert elsewhere.posts == []
    (entry,) = api.emulator.webhooks.deliveries()
    assert entry.state == "delivered"
    assert [(attempt.status, attempt.error) for attempt in entry.attempts] == [(status, None), (200, None)]


@pytest.mark.behaviour("webhooks.unreachable")
def test_a_refused_connection_is_a_failure(api: Api) -> None:
    with Receiver() as gone:
        url = gone.url
    subscribe(api, url, "session.created")
    api.session()
    api.emulator.settle()
    (entry,) = api.emulator.webhooks.deliveries()
    (attempt,) = entry.attempts
    assert (entry.state, attempt.status) == ("pending", None)
    assert attempt.error


@pytest.mark.behaviour("webhooks.unreachable")
@pytest.mark.parametrize("how", ["silent", "trickling", "no HTTP", "hanging up"])
def test_no_answer_in_time_is_a_failure(api: Api, how: str) -> None:
    api.emulator.settings.update(webhook_seconds=0.2)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=_misbehave, args=(listening, how), daemon=True).start()
        subscribe(api, f"http://127.0.0.1:{listening.getsockname()[1]}/", "session.created")
        api.session()
        assert api.emulator.settle()
    (entry,) = api.emulator.webhooks.deliveries()
    (attempt,) = entry.attempts
    assert (entry.state, attempt.status) == ("pending", None)
    assert attempt.error == "no answer within 0.2s" if how in ("silent", "trickling") else attempt.error


def _misbehave(listening: socket.socket, how: str) -> None:
    connection, _ = listening.accept()
    connection.settimeout(WAIT)
    with connection:
        connection.recv(4096)
        match how:
            case "trickling":
                connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n1")
            case "no HTTP":
                connection.sendall(b"hello there\r\n\r\n")
            case "hanging up":
                return
            case _:
                pass
        while connection.recv(4096):
            pass


@pytest.mark.behaviour("webhooks.retries", "webhooks.pending")
def test_a_failure_is_tried_again_on_the_clock(api: Api, receiver: Receiver) -> None:
    receiver.answers = [500] * 10
    subscribe(api, receiver, "session.created")
    api.session()
    api.emulator.settle()
    for n, seconds in enumerate(STEPS, start=1):
        assert len(receiver.posts) == n
        assert health(api) == {"pending": 1, "dead": 0, "last_error": None, "last_failed_at": None}
        api.emulator.clock.advance(seconds - 1)
        assert len(receiver.posts) == n
        api.emulator.clock.advance(1)
    assert len(receiver.posts) == 6
    assert len({post.body for post in receiver.posts}) == 1
    assert len({post.headers["x-gobare-signature"] for post in receiver.posts}) == 6


@pytest.mark.behaviour("webhooks.retries")
def test_one_advance_makes_every_retry_in_its_time(api: Api, receiver: Receiver) -> None:
    receiver.answers = [500] * 5
    subscribe(api, receiver, "session.created")
    api.session()
    api.emulator.settle()
    start = api.emulator.clock.now()
    api.emulator.clock.advance(sum(STEPS))
    (entry,) = api.emulator.webhooks.deliveries()
    due = [start + sum(STEPS[:n]) * 1000 for n in range(6)]
    assert [attempt.at for attempt in entry.attempts] == due
    assert (entry.state, len(receiver.handled)) == ("delivered", 1)


@pytest.mark.behaviour("webhooks.dead", "webhooks.inactive")
def test_after_six_attempts_it_is_given_up_on(api: Api, receiver: Receiver) -> None:
    receiver.answers = [503] * 5 + [418]
    made = subscribe(api, receiver, "session.created")
    api.session()
    api.emulator.settle()
    api.emulator.clock.advance(sum(STEPS))
    now = api.emulator.clock.now()
    shown = api.get("/v1/webhooks").json["data"][0]
    assert shown["active"] is False
    assert shown["delivery"] == {"pending": 0, "dead": 1, "last_error": "status 418", "last_failed_at": now}
    api.emulator.clock.advance(100_000)
    assert (len(receiver.posts), states(api)) == (6, ["dead"])
    (left,) = api.emulator.report()["undelivered_webhooks"]
    assert (left["webhook_id"], left["state"], left["attempts"], left["last_error"]) == (
        made["id"],
        "dead",
        6,
        "status 418",
    )


@pytest.mark.behaviour("webhooks.dead")
def test_the_health_says_what_went_wrong(api: Api) -> None:
    with Receiver() as gone:
        url = gone.url
    subscribe(api, url, "session.created")
    api.session()
    api.emulator.settle()
    api.emulator.clock.advance(sum(STEPS))
    found = health(api)
    assert (found["dead"], found["pending"]) == (1, 0)
    assert isinstance(found["last_error"], str)


@pytest.mark.behaviour("webhooks.inactive")
def test_an_inactive_subscription_is_still_told(api: Api, receiver: Receiver) -> None:
    receiver.answers = [500] * 6
    subscribe(api, receiver, "session.created")
    api.session()
    api.emulator.settle()
    api.emulator.clock.advance(sum(STEPS))
    api.session()
    api.emulator.settle()
    assert (len(receiver.handled), states(api)) == (1, ["dead", "delivered"])
    assert api.get("/v1/webhooks").json["data"][0]["active"] is False


@pytest.mark.behaviour("webhooks.held")
def test_nothing_leaves_this_machine(api: Api, receiver: Receiver) -> None:
    made = subscribe(api, "https://you.example.com/hooks?key=private", "session.created")
    session_id = api.session()
    api.emulator.settle()
    api.emulator.clock.advance(sum(STEPS))
    (entry,) = api.emulator.webhooks.deliveries()
    assert (entry.state, entry.attempts, entry.url) == ("held", [], "https://you.example.com/hooks")
    assert health(api) == {"pending": 0, "dead": 0, "last_error": None, "last_failed_at": None}
    assert api.emulator.report()["undelivered_webhooks"] == [
        {
            "id": entry.id,
            "webhook_id": made["id"],
            "session_id": session_id,
            "type": "session.created",
            "url": "https://you.example.com/hooks",
            "state": "held",
            "attempts": 0,
            "last_error": None,
        }
    ]


@pytest.mark.behaviour("webhooks.held")
def test_a_host_that_is_named_is_sent_to(api: Api) -> None:
    api.emulator.settings.update(webhook_hosts=["gobare-receiver.invalid"])
    subscribe(api, "http://gobare-receiver.invalid/hooks", "session.created")
    api.session()
    api.emulator.settle()
    (entry,) = api.emulator.webhooks.deliveries()
    assert (entry.state, len(entry.attempts)) == ("pending", 1)
    api.emulator.settings.update(webhook_hosts=[])
    api.session()
    assert states(api) == ["pending", "held"]


@pytest.mark.behaviour("webhooks.signature", "webhooks.utf-8")
def test_a_receiver_written_from_the_documentation_verifies_every_delivery(api: Api, receiver: Receiver) -> None:
    @api.emulator.agent
    async def agent(turn: Any) -> None:
        match turn.message:
            case "größe":
                await turn.call("lookup", city="Zürich")
            case "fail":
                await turn.fail("provider_error", "Fehler: ü")
            case _:
                await turn.ask("Welche Größe?")

    receiver.secrets.append(subscribe(api, receiver)["secret"])
    api.emulator.webhooks.script([{"do": "extra_data", "times": 100, "data": {"title": "Über 東京 🌍"}}])
    tools = [{"type": "function", "name": "lookup"}]
    session_id = api.session({"title": "Über", "input": "größe", "agent": {"tools": tools}})
    api.answer(session_id, api.actions(session_id)[0], "schön")
    api.say(session_id, "fail")
    api.say(session_id, "ask")
    api.send(session_id, {"type": "input.cancel"})
    assert api.emulator.settle()
    assert [post.answer for post in receiver.posts] == [200] * len(receiver.posts)
    assert len(receiver.handled) == len(receiver.posts)
    assert {event["type"] for event in receiver.handled} == {
        "session.created",
        "session.action_required",
        "session.working",
        "session.idle",
        "session.failed",
        "turn.completed",
        "turn.failed",
    }
    assert all(event["data"]["title"] == "Über 東京 🌍" for event in receiver.handled)
