"""Subscribing to webhooks (contract §11)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.contract.calls import mint
from tests.receiver import Receiver

if TYPE_CHECKING:
    from tests.contract.canaries import Watch
    from tests.support import Answer, Api

TYPES = (
    "session.created",
    "session.action_required",
    "session.working",
    "session.idle",
    "session.failed",
    "turn.completed",
    "turn.failed",
)
URL = "https://you.example.com/hooks"


def subscribe(api: Api, url: str = URL, events: Any = None, **options: Any) -> Answer:
    body = {"url": url} if events is None else {"url": url, "events": events}
    return api.post("/v1/webhooks", body, **options)


def subscriptions(api: Api, query: str = "", **options: Any) -> list[dict[str, Any]]:
    data: list[dict[str, Any]] = api.get(f"/v1/webhooks{query}", **options).json["data"]
    return data


@pytest.mark.behaviour("webhooks.create")
def test_a_subscription_is_answered_with_its_secret(api: Api) -> None:
    answer = subscribe(api, events=["session.idle", "turn.failed"])
    made = answer.json
    assert answer.status == 201
    assert made["id"].startswith("whsub_")
    assert made["secret"].startswith("whsec_")
    assert made == {
        "object": "webhook.subscription",
        "id": made["id"],
        "url": URL,
        "events": ["session.idle", "turn.failed"],
        "active": True,
        "secret": made["secret"],
    }


@pytest.mark.behaviour("webhooks.create")
def test_each_subscription_has_a_secret_of_its_own(api: Api) -> None:
    made = [subscribe(api, f"{URL}/{n}").json for n in range(3)]
    assert len({one["secret"] for one in made}) == len({one["id"] for one in made}) == 3


@pytest.mark.behaviour("webhooks.secret-once")
def test_the_secret_is_told_once(watch: Watch) -> None:
    with Receiver() as receiver:
        made = subscribe(watch, receiver.url).json
        watch.remember(made["secret"])
        watch.answers.clear()
        watch.session({"input": "hello"})
        subscribe(watch, receiver.url)
        subscriptions(watch)
        watch.emulator.settle()
        assert len(receiver.posts) == 4
        watch.check()
        assert made["secret"] not in repr(watch.emulator.webhooks.deliveries())


@pytest.mark.behaviour("webhooks.secret-replayed")
def test_the_same_key_gets_the_same_answer(api: Api) -> None:
    key = {"idempotency-key": "once"}
    first, second = (subscribe(api, headers=key) for _ in range(2))
    assert (first.status, first.json) == (second.status, second.json)
    assert len(subscriptions(api)) == 1


@pytest.mark.behaviour("webhooks.https")
@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://you.example.com/hooks", "`url` must be an https address; plain http"),
        ("http://localhost.example.com/", "`url` must be an https address; plain http"),
        ("http://127.0.0.1.example.com/", "`url` must be an https address; plain http"),
        ("http://10.0.0.1/", "`url` must be an https address; plain http"),
        ("ftp://you.example.com/hooks", "`url` must be an https address; another scheme"),
        ("you.example.com/hooks", "`url` must be an absolute https address"),
        ("https://", "`url` must be an absolute https address"),
        ("https:///hooks", "`url` must be an absolute https address"),
        ("https://you.example.com:port/", "`url` must be an absolute https address"),
        ("https://you.example.com:99999/", "`url` must be an absolute https address"),
        ("https://[::1/hooks", "`url` must be an absolute https address"),
        ("https://you.example.com/ho oks", "`url` must be an absolute https address"),
        ("https://you.example.com/\r\nx: y", "`url` must be an absolute https address"),
        ("", "`url` must not be empty"),
    ],
)
def test_an_address_nothing_could_be_sent_to_is_refused(api: Api, url: str, words: str) -> None:
    answer = subscribe(api, url)
    assert (answer.status, answer.code) == (400, "invalid_request")
    assert answer.message.startswith(words), answer.message
    assert subscriptions(api) == []


@pytest.mark.behaviour("webhooks.https")
def test_an_address_is_needed(api: Api) -> None:
    assert api.post("/v1/webhooks", {"events": []}).message == "`url` is required."
    assert api.post("/v1/webhooks", {"url": 5}).message == "`url` must be a string; an integer was sent."


@pytest.mark.behaviour("webhooks.loopback")
@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.8.0.1", "[::1]", "LOCALHOST", "127.0.0.1:8080"])
def test_plain_http_is_accepted_for_this_machine(api: Api, host: str) -> None:
    url = f"http://{host}/hooks"
    assert subscribe(api, url).json["url"] == url


@pytest.mark.behaviour("webhooks.loopback")
@pytest.mark.parametrize("hosts", [["app"], ["APP"], ["*"]])
def test_plain_http_is_accepted_for_hosts_a_setting_names(api: Api, hosts: list[str]) -> None:
    assert subscribe(api, "http://app:3000/hooks").status == 400
    api.emulator.settings.update(webhook_hosts=hosts)
    assert subscribe(api, "http://app:3000/hooks").status == 201


@pytest.mark.behaviour("webhooks.userinfo")
def test_an_address_with_a_password_is_refused(api: Api) -> None:
    for userinfo in ("me:secret-word@", "me@", ":secret-word@"):
        answer = subscribe(api, f"https://{userinfo}you.example.com/hooks")
        assert (answer.status, answer.code) == (400, "invalid_request")
        assert answer.message.startswith("`url` must not have a user name or a password in it")
        assert "secret-word" not in answer.message


@pytest.mark.behaviour("webhooks.unknown-event")
def test_an_unknown_event_is_refused_with_what_there_is(api: Api) -> None:
    answer = subscribe(api, events=["session.idle", "turn.complete"])
    assert (answer.status, answer.code) == (400, "invalid_request")
    assert answer.message == (
        f"`events[1]` must be one of {', '.join(TYPES)}; `turn.complete` was sent. Did you mean `turn.completed`?"
    )


@pytest.mark.behaviour("webhooks.unknown-event")
@pytest.mark.parametrize("events", ["session.idle", [5], {"session.idle": True}, ["tool.required"], [None]])
def test_events_are_a_list_of_those_there_are(api: Api, events: Any) -> None:
    answer = subscribe(api, events=events)
    assert (answer.status, answer.code) == (400, "invalid_request")
    assert "`events" in answer.message


@pytest.mark.behaviour("webhooks.unknown-event")
def test_events_are_left_out_rather_than_null(api: Api) -> None:
    answer = api.post("/v1/webhooks", {"url": URL, "events": None})
    assert answer.message == "`events` must be a list; null was sent."


@pytest.mark.behaviour("webhooks.all-events")
def test_no_events_are_all_of_them(api: Api) -> None:
    with Receiver() as absent, Receiver() as empty:
        assert subscribe(api, absent.url).json["events"] == []
        assert subscribe(api, empty.url, []).json["events"] == []
        api.session({"input": "hello"})
        api.emulator.settle()
        assert absent.types == empty.types == ["session.created", "session.working", "session.idle", "turn.completed"]


@pytest.mark.behaviour("webhooks.all-events")
def test_a_subscription_is_told_only_of_what_it_names(api: Api) -> None:
    with Receiver() as receiver:
        subscribe(api, receiver.url, ["turn.completed", "session.created"])
        api.session({"input": "hello"})
        api.emulator.settle()
        assert receiver.types == ["session.created", "turn.completed"]


@pytest.mark.behaviour("webhooks.repeated-event")
def test_an_event_named_twice_counts_once(api: Api) -> None:
    made = subscribe(api, events=["turn.failed", *TYPES, "turn.failed"]).json
    assert made["events"] == ["turn.failed", *TYPES[:-1]]


@pytest.mark.behaviour("webhooks.duplicate")
def test_the_same_address_with_the_same_events_is_a_conflict(api: Api) -> None:
    first = subscribe(api, events=["session.idle", "turn.failed"]).json["id"]
    answer = subscribe(api, events=["turn.failed", "session.idle", "turn.failed"])
    assert (answer.status, answer.code) == (409, "conflict")
    assert answer.message == (
        f"This organization already subscribes {URL} to exactly these events, as {first}. "
        "Delete it first if you want a new secret, or subscribe a different address — a second identical "
        "subscription would deliver everything twice."
    )
    assert "retry-after" not in answer.headers
    api.delete(f"/v1/webhooks/{first}")
    assert subscribe(api, events=["turn.failed", "session.idle"]).status == 201


@pytest.mark.behaviour("webhooks.duplicate-all")
def test_every_event_is_the_same_as_none_named(api: Api) -> None:
    assert subscribe(api, events=list(TYPES)).status == 201
    assert subscribe(api, events=[]).code == "conflict"


@pytest.mark.behaviour("webhooks.duplicate-query")
def test_a_conflict_shows_no_query(api: Api) -> None:
    url = f"{URL}?key=very-private"
    subscribe(api, url)
    answer = subscribe(api, url)
    assert answer.code == "conflict"
    assert "very-private" not in answer.message + repr(list(api.emulator.requests))


@pytest.mark.behaviour("webhooks.same-address")
def test_the_same_address_with_other_events_is_another_subscription(api: Api) -> None:
    with Receiver() as receiver:
        for events in (["turn.completed"], ["session.idle"], ["session.idle", "turn.completed"]):
            assert subscribe(api, receiver.url, events).status == 201
        api.session({"input": "hello"})
        api.emulator.settle()
        assert sorted(receiver.types) == ["session.idle", "session.idle", "turn.completed", "turn.completed"]


@pytest.mark.behaviour("webhooks.list")
def test_a_list_tells_of_the_health_of_deliveries(api: Api) -> None:
    made = [subscribe(api, f"{URL}/{n}").json for n in range(3)]
    shown = subscriptions(api)
    assert [one["id"] for one in shown] == [one["id"] for one in reversed(made)]
    healthy = {"pending": 0, "dead": 0, "last_error": None, "last_failed_at": None}
    assert shown[0] == {
        "object": "webhook.subscription",
        "id": made[2]["id"],
        "url": f"{URL}/2",
        "events": [],
        "active": True,
        "created_at": api.emulator.clock.now(),
        "delivery": healthy,
    }
    page = api.get("/v1/webhooks?limit=2").json
    assert (page["has_more"], page["last_id"]) == (True, made[1]["id"])
    assert [one["id"] for one in subscriptions(api, f"?limit=2&after={page['last_id']}")] == [made[0]["id"]]
    assert subscriptions(api, "?after=whsub_0") == []
    assert "Accepted here: limit, after." in api.get("/v1/webhooks?order=asc").message


@pytest.mark.behaviour("webhooks.delete")
def test_what_a_deleted_subscription_was_owed_is_not_sent(api: Api) -> None:
    with Receiver(answers=[500] * 10) as receiver:
        made = subscribe(api, receiver.url, ["session.created"]).json["id"]
        api.session()
        api.emulator.settle()
        answer = api.delete(f"/v1/webhooks/{made}")
        assert (answer.status, answer.json) == (200, {"object": "webhook.deleted", "id": made, "deleted": True})
        api.session()
        api.emulator.clock.advance(100_000)
        assert len(receiver.posts) == 1
        assert subscriptions(api) == []
        assert [entry.state for entry in api.emulator.webhooks.deliveries()] == ["cancelled"]
        assert api.emulator.report()["undelivered_webhooks"] == []


@pytest.mark.behaviour("webhooks.unknown")
def test_an_unknown_subscription_is_not_found(api: Api) -> None:
    made = subscribe(api).json["id"]
    other = mint(api, organization="other")
    foreign = api.delete(f"/v1/webhooks/{made}", token=other)
    unknown = api.delete("/v1/webhooks/whsub_1", token=other)
    assert (foreign.status, foreign.code) == (unknown.status, unknown.code) == (404, "not_found")
    assert foreign.message.replace(made, "whsub_1") == unknown.message
    api.delete(f"/v1/webhooks/{made}")
    assert api.delete(f"/v1/webhooks/{made}").code == "not_found"


@pytest.mark.behaviour("webhooks.organizations")
def test_an_organization_is_told_of_its_own_sessions(api: Api) -> None:
    other = mint(api, organization="other")
    with Receiver() as mine, Receiver() as theirs:
        subscribe(api, mine.url, ["session.created"])
        subscribe(api, theirs.url, ["session.created"], token=other)
        session_id, their_id = api.session(), api.session(token=other)
        api.emulator.settle()
        assert [post.json["data"]["session_id"] for post in mine.posts] == [session_id]
        assert [post.json["data"]["session_id"] for post in theirs.posts] == [their_id]
        assert [one["url"] for one in subscriptions(api)] == [mine.url]
        assert [one["url"] for one in subscriptions(api, token=other)] == [theirs.url]
