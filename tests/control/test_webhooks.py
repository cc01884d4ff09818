"""The control side of webhooks: the journal of deliveries, sending one again, and scripted misbehaviour."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from emulator.client import ControlError, EmulatorClient
from tests.receiver import Receiver
from tests.support import Api

if TYPE_CHECKING:
    from collections.abc import Iterator

    from emulator import Emulator
    from tests.receiver import Post

LIFE = ["session.created", "session.working", "session.idle", "turn.completed"]
MINUTE = 60


@pytest.fixture
def receiver(api: Api) -> Iterator[Receiver]:
    """A receiver, told of everything, that checks and deduplicates."""
    with Receiver() as receiver:
        answer = api.post("/v1/webhooks", {"url": f"{receiver.url}?key=private"})
        receiver.secrets.append(answer.json["secret"])
        yield receiver


def answers(receiver: Receiver) -> list[tuple[str, int]]:
    return [(post.type, post.answer) for post in receiver.posts]


# The journal


def test_the_journal_keeps_what_was_sent(gobare: Emulator, api: Api, receiver: Receiver) -> None:
    session_id = api.session()
    gobare.settle()
    (entry,) = gobare.webhooks.deliveries()
    (post,) = receiver.posts
    (subscription,) = api.get("/v1/webhooks").json["data"]
    (attempt,) = entry.attempts
    assert entry.id.startswith("whdel_")
    assert (entry.webhook_id, entry.session_id, entry.type) == (subscription["id"], session_id, "session.created")
    assert (entry.state, entry.body, entry.created_at) == ("delivered", post.json, post.json["created_at"])
    assert (entry.url, entry.organization) == (receiver.url, "default")
    assert (attempt.status, attempt.error) == (200, None)


def test_the_journal_is_bounded(gobare: Emulator, api: Api, receiver: Receiver) -> None:
    gobare.settings.update(deliveries_limit=3)
    api.session({"input": "hello"})
    gobare.settle()
    kept = gobare.webhooks.deliveries()
    assert ([entry.type for entry in kept], kept.dropped) == (LIFE[1:], 1)


def test_a_journal_that_keeps_nothing_delivers_all_the_same(gobare: Emulator, api: Api, receiver: Receiver) -> None:
    gobare.settings.update(deliveries_limit=0)
    receiver.answers.append(500)
    api.session()
    gobare.settle()
    gobare.clock.advance(MINUTE)
    assert (len(receiver.posts), list(gobare.webhooks.deliveries())) == (2, [])


def test_the_same_script_makes_the_same_deliveries() -> None:
    from emulator import Emulator

    found = []
    for _ in range(2):
        with Emulator(seed=7) as gobare, Receiver() as receiver:
            api = Api(gobare)
            receiver.answers = [500, 200]
            api.post("/v1/webhooks", {"url": receiver.url})
            api.session({"input": "hello"})
            gobare.settle()
            gobare.clock.advance(MINUTE)
            shown = json.loads(json.dumps([entry.model_dump() for entry in gobare.webhooks.deliveries()]))
            found.append([{**entry, "url": ""} for entry in shown])
    assert found[0] == found[1]


# Once more


def test_a_delivery_is_sent_again_with_the_same_body(gobare: Emulator, api: Api, receiver: Receiver) -> None:
    api.session()
    gobare.settle()
    (entry,) = gobare.webhooks.deliveries()
    again = gobare.webhooks.redeliver(entry.id)
    assert (again.id, again.state, len(again.attempts)) == (entry.id, "delivered", 2)
    first, second = receiver.posts
    assert (first.body, first.answer, second.answer) == (second.body, 200, 200)
    assert first.headers["x-gobare-timestamp"] <= second.headers["x-gobare-timestamp"]
    # What arrives twice is handled once.
    assert len(receiver.handled) == 1


def test_what_is_still_owed_can_be_sent_at_once(gobare: Emulator, api: Api, receiver: Receiver) -> None:
    receiver.answers = [500, 500]
    api.session()
    gobare.settle()
    (entry,) = gobare.webhooks.deliveries()
    assert gobare.webhooks.redeliver(entry.id).state == "pending"
    assert gobare.webhooks.redeliver(entry.id).state == "delivered"
    gobare.clock.advance(100_000)
    assert [post.answer for post in receiver.posts] == [500, 500, 200]
    assert api.get("/v1/webhooks").json["data"][0]["delivery"]["pending"] == 0


def test_a_failure_on_request_is_none_of_the_six(gobare: Emulator, api: Api, receiver: Receiver) -> None:
    receiver.answers = [500] * 7
    api.session()
    gobare.settle()
    (entry,) = gobare.webhooks.deliveries()
    gobare.webhooks.redeliver(entry.id)
    gobare.clock.advance(100_000)
    assert [entry.state for entry in gobare.webhooks.deliveries()] == ["dead"]
    assert len(receiver.posts) == 7


def test_a_dead_letter_can_still_be_delivered(gobare: Emulator, api: Api, receiver: Receiver) -> None:
    receiver.answers = [500] * 7
    api.session()
    gobare.settle()
    gobare.clock.advance(100_000)
    (entry,) = gobare.webhooks.deliveries()
    assert gobare.webhooks.redeliver(entry.id).state == "dead"
    assert gobare.webhooks.redeliver(entry.id).state == "delivered"
    assert api.get("/v1/webhooks").json["data"][0]["delivery"]["dead"] == 0
    assert gobare.report()["undelivered_webhooks"] == []


def test_what_cannot_be_sent_again_says_why(gobare: Emulator, api: Api, receiver: Receiver) -> None:
    with pytest.raises(ControlError, match=r"No delivery 'whdel_1' is kept.*not_found"):
        gobare.webhooks.redeliver("whdel_1")
    api.post("/v1/webhooks", {"url": "https://you.example.com/"})
    api.session()
    gobare.settle()
    sent, held = gobare.webhooks.deliveries()
    with pytest.raises(ControlError, match=r"not on this machine.*`webhook_hosts`.*conflict"):
        gobare.webhooks.redeliver(held.id)
    api.delete(f"/v1/webhooks/{sent.webhook_id}")
    with pytest.raises(ControlError, match=f"Webhook {sent.webhook_id} was deleted.*conflict"):
        gobare.webhooks.redeliver(sent.id)


# Misbehaviour


def test_a_duplicate_arrives_twice_and_is_handled_once(gobare: Emulator, api: Api, receiver: Receiver) -> None:
    gobare.webhooks.script([{"do": "duplicate", "type": "turn.completed"}])
    api.session({"input": "hello"})
    gobare.settle()
    assert receiver.types == [*LIFE, "turn.completed"]
    assert receiver.posts[-1].body == receiver.posts[-2].body
    assert [event["type"] for event in receiver.handled] == LIFE
    assert [len(entry.attempts) for entry in gobare.webhooks.deliveries()] == [1, 1, 1, 2]


def test_a_delay_is_on_the_clock(gobare: Emulator, api: Api, receiver: Receiver) -> None:
    gobare.webhooks.script([{"do": "delay", "seconds": 30, "type": "session.working"}])
    api.session({"input": "hello"})
    gobare.settle()
    gobare.clock.advance(29)
    assert receiver.types == ["session.created", "session.idle", "turn.completed"]
    gobare.clock.advance(1)
    assert receiver.types[3:] == ["session.working"]


def test_what_is_dropped_is_on_record_and_never_sent(gobare: Emulator, api: Api, receiver: Receiver) -> None:
    gobare.webhooks.script([{"do": "drop"}])
    api.session({"input": "hello"})
    gobare.settle()
    gobare.clock.advance(100_000)
    assert receiver.types == LIFE[1:]
    assert [entry.state for entry in gobare.webhooks.deliveries()] == ["dropped"] + ["delivered"] * 3
    assert gobare.report()["undelivered_webhooks"] == []


def test_two_can_be_swapped(gobare: Emulator, api: Api, receiver: Receiver) -> None:
    gobare.webhooks.script([{"do": "reorder", "type": "session.working"}])
    api.session({"input": "hello"})
    gobare.settle()
    assert receiver.types == ["session.created", "session.idle", "session.working", "turn.completed"]


def test_one_that_waits_to_be_overtaken_waits_for_the_next(gobare: Emulator, api: Api, receiver: Receiver) -> None:
    gobare.webhooks.script([{"do": "reorder", "type": "turn.completed"}])
    session_id = api.session({"input": "hello"})
    assert gobare.settle()
    assert receiver.types == LIFE[:-1]
    (left,) = gobare.report()["undelivered_webhooks"]
    assert (left["type"], left["state"]) == ("turn.completed", "pending")
    api.say(session_id, "again")
    gobare.settle()
    assert receiver.types == [*LIFE[:-1], "session.working", "turn.completed", "session.idle", "turn.completed"]


@pytest.mark.parametrize("message", [None, "hello"])
def test_early_is_before_the_reply(gobare: Emulator, api: Api, receiver: Receiver, message: str | None) -> None:
    gobare.webhooks.script([{"do": "early", "times": 10}])
    api.session({} if message is None else {"input": message})
    # Nobody waited: all of it was there before the reply.
    assert receiver.types == (LIFE[:1] if message is None else LIFE)


def test_an_early_receiver_may_call_the_api(gobare: Emulator, api: Api, receiver: Receiver) -> None:
    gobare.webhooks.script([{"do": "early", "type": "session.created"}])

    def speak(post: Post) -> None:
        if post.type == "session.created":
            api.say(post.json["data"]["session_id"], "at once")

    receiver.on_post = speak
    session_id = api.session()
    gobare.settle()
    assert receiver.types == LIFE
    assert [turn["status"] for turn in api.turns(session_id)] == ["completed"]


def test_an_early_receiver_may_cause_what_is_early_as_well(gobare: Emulator, api: Api, receiver: Receiver) -> None:
    gobare.settings.update(webhook_seconds=2)
    gobare.webhooks.script([{"do": "early", "times": 20}])

    def speak(post: Post) -> None:
        if post.type == "session.created":
            api.say(post.json["data"]["session_id"], "at once")

    receiver.on_post = speak
    api.session()
    assert receiver.types == LIFE
    attempts = [(len(sent.attempts), sent.attempts[0].status) for sent in gobare.webhooks.deliveries()]
    assert attempts == [(1, 200)] * 4


@pytest.mark.parametrize("do", ["wrong_secret", "old_timestamp", "corrupt"])
def test_a_receiver_refuses_what_is_forged_and_takes_the_retry(
    gobare: Emulator, api: Api, receiver: Receiver, do: str
) -> None:
    gobare.webhooks.script([{"do": do, "type": "session.idle"}])
    api.session({"input": "hello"})
    gobare.settle()
    assert [answer for _, answer in answers(receiver)] == [200, 200, 401, 200]
    assert json.loads(receiver.posts[2].body)["type"] == "session.idle"
    gobare.clock.advance(MINUTE)
    assert answers(receiver)[4:] == [("session.idle", 200)]
    assert len(receiver.handled) == 4


def test_a_corrupt_body_is_signed_as_it_was(gobare: Emulator, api: Api, receiver: Receiver) -> None:
    gobare.webhooks.script([{"do": "corrupt"}])
    api.session()
    gobare.settle()
    (entry,) = gobare.webhooks.deliveries()
    (post,) = receiver.posts
    assert post.json == {**entry.body, "forged": True}
    post.body = json.dumps(entry.body, separators=(",", ":")).encode()
    assert receiver.decide(post) == 200


def test_data_can_be_added_and_a_turn_be_unknown(gobare: Emulator, api: Api, receiver: Receiver) -> None:
    gobare.webhooks.script(
        [
            {"do": "extra_data", "type": "session.created", "data": {"note": "neu 🌍", "session_id": "not this"}},
            {"do": "no_turn_id", "type": "turn.completed"},
            {"do": "no_turn_id", "type": "session.idle"},
        ]
    )
    session_id = api.session({"input": "hello"})
    gobare.settle()
    data = {post.type: post.json["data"] for post in receiver.posts}
    assert data["session.created"] == {"note": "neu 🌍", "session_id": session_id}
    assert data["turn.completed"] == {"session_id": session_id, "turn_id": None}
    assert data["session.idle"] == {"session_id": session_id}
    assert len(receiver.handled) == 4


def test_a_script_is_used_up_in_order(gobare: Emulator, api: Api, receiver: Receiver) -> None:
    script = [{"do": "drop", "type": "session.created", "times": 2}, {"do": "duplicate", "times": 1}]
    gobare.webhooks.script(script)
    assert gobare.webhooks.scripted() == script
    api.session()
    assert gobare.webhooks.scripted() == [{**script[0], "times": 1}, script[1]]
    api.session({"input": "hello"})
    assert gobare.webhooks.scripted() == []
    gobare.settle()
    assert receiver.types == ["session.working", *LIFE[1:]]


def test_a_script_can_be_replaced_and_cleared(gobare: Emulator, api: Api, receiver: Receiver) -> None:
    gobare.webhooks.script([{"do": "drop", "times": 5}])
    gobare.webhooks.script([{"do": "duplicate"}])
    assert gobare.webhooks.scripted() == [{"do": "duplicate", "times": 1}]
    gobare.webhooks.clear()
    assert gobare.webhooks.scripted() == []
    api.session()
    gobare.settle()
    assert receiver.types == ["session.created"]


def test_a_held_delivery_uses_up_no_script(gobare: Emulator, api: Api) -> None:
    api.post("/v1/webhooks", {"url": "https://you.example.com/"})
    gobare.webhooks.script([{"do": "drop"}])
    api.session()
    assert gobare.webhooks.scripted() == [{"do": "drop", "times": 1}]


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"do": "explode"}, r"`script\[0\]\.do` must be one of duplicate, delay"),
        ({"type": "session.idle"}, r"`script\[0\]\.do` is required"),
        ({"do": "drop", "type": "tool.required"}, r"`script\[0\]\.type` must be one of session\.created"),
        ({"do": "drop", "times": 0}, r"`script\[0\]\.times` must be from 1"),
        ({"do": "drop", "seconds": 5}, r"`script\[0\]`: drop takes no `seconds`\."),
        ({"do": "delay"}, r"`script\[0\]`: delay needs `seconds`\."),
        ({"do": "delay", "seconds": -1}, r"`script\[0\]\.seconds` must be at least 0"),
        ({"do": "extra_data"}, r"`script\[0\]`: extra_data needs `data`\."),
        ({"do": "extra_data", "data": {}}, r"`script\[0\]\.data` must not be empty"),
        ({"do": "drop", "data": {"a": 1}}, r"`script\[0\]`: drop takes no `data`\."),
        ({"do": "drop", "tims": 1}, r"Unknown field `script\[0\]\.tims`.*Did you mean `times`"),
    ],
)
def test_a_wrong_script_is_refused_by_its_place(gobare: Emulator, entry: dict[str, Any], words: str) -> None:
    gobare.webhooks.script([{"do": "drop"}])
    with pytest.raises(ControlError, match=words):
        gobare.webhooks.script([entry])
    assert gobare.webhooks.scripted() == [{"do": "drop", "times": 1}]


# Ends


def test_a_reset_forgets_everything(gobare: Emulator, api: Api, receiver: Receiver) -> None:
    receiver.answers = [500]
    api.session()
    gobare.settle()
    gobare.webhooks.script([{"do": "drop", "times": 100}])
    gobare.reset()
    assert (gobare.webhooks.scripted(), list(gobare.webhooks.deliveries())) == ([], [])
    assert api.get("/v1/webhooks").json["data"] == []
    gobare.clock.advance(100_000)
    assert len(receiver.posts) == 1


def test_the_report_names_subscriptions_left_over(gobare: Emulator, api: Api, receiver: Receiver) -> None:
    (left,) = gobare.report()["undeleted"]["webhooks"]
    made = api.get("/v1/webhooks").json["data"][0]["id"]
    (created,) = (entry.request_id for entry in gobare.requests if entry.method == "POST")
    assert left == {"id": made, "url": receiver.url, "organization": "default", "request_id": created}
    api.delete(f"/v1/webhooks/{made}")
    assert gobare.report()["undeleted"]["webhooks"] == []


def test_the_report_names_what_is_owed(gobare: Emulator, api: Api, receiver: Receiver) -> None:
    receiver.answers = [500]
    api.session()
    gobare.settle()
    (left,) = gobare.report()["undelivered_webhooks"]
    assert (left["state"], left["attempts"], left["last_error"], left["url"]) == (
        "pending",
        1,
        "status 500",
        receiver.url,
    )
    gobare.clock.advance(MINUTE)
    assert gobare.report()["undelivered_webhooks"] == []


def test_every_spelling_of_the_handle(gobare: Emulator, api: Api, receiver: Receiver) -> None:
    api.session()
    gobare.settle()

    async def awaited() -> list[Any]:
        part = gobare.aio.webhooks
        await part.script([{"do": "drop"}])
        scripted = await part.scripted()
        await part.clear()
        (entry,) = await part.deliveries()
        return [scripted, await part.scripted(), (await part.redeliver(entry.id)).state]

    assert asyncio.run(awaited()) == [[{"do": "drop", "times": 1}], [], "delivered"]
    with EmulatorClient(gobare.url) as client:
        client.webhooks.script([{"do": "drop"}])
        assert client.webhooks.scripted() == [{"do": "drop", "times": 1}]
        (entry,) = client.webhooks.deliveries()
        assert client.webhooks.redeliver(entry.id).attempts[-1].status == 200
        client.webhooks.clear()
    assert len(receiver.posts) == 3
