"""Subscriptions, deliveries and addresses, without anything around them."""

from __future__ import annotations

import pytest

from emulator.domain.transitions import IllegalTransition
from emulator.domain.webhooks import (
    DELIVERY,
    RETRY_SECONDS,
    TYPES,
    Attempt,
    Delivery,
    Subscription,
    Webhooks,
    check_url,
    reachable,
    signature,
)
from emulator.ids import Ids
from emulator.redaction import Secret
from emulator.refusals import Refusal

WAYS = {"delivered": "deliver", "dead": "give_up", "held": "hold", "dropped": "drop", "cancelled": "cancel"}
COMMANDS = ("deliver", "fail", "give_up", "hold", "drop", "cancel")


@pytest.fixture
def subscription() -> Subscription:
    return Webhooks("acme", Ids(0)).subscribe("https://you.example.com/", (), 1)


def delivery(subscription: Subscription) -> Delivery:
    return Delivery("whdel_1", subscription, "s", "session.created", 1, b"{}")


@pytest.mark.parametrize("state", ["pending", "delivered", "dead", "held", "dropped", "cancelled"])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_delivery_moves_by_the_table_alone(subscription: Subscription, state: str, command: str) -> None:
    moved = delivery(subscription)
    if state in WAYS:
        moved.step(WAYS[state])
    after: str | None = DELIVERY.get((state, command))
    if after is None:
        with pytest.raises(IllegalTransition):
            moved.step(command)
        after = state
    else:
        moved.step(command)
    assert moved.state == after
    assert (subscription.pending, subscription.dead) == (after == "pending", after == "dead")


def test_six_attempts_over_about_nine_hours() -> None:
    assert len(RETRY_SECONDS) == 5
    assert 8 * 3600 < sum(RETRY_SECONDS) < 9 * 3600


def test_a_delivery_is_tried_again_until_it_is_dead(subscription: Subscription) -> None:
    owed = delivery(subscription)
    waits: list[int | None] = []
    for n in range(1, 7):
        owed.attempts.append(Attempt(n, status=500 + n))
        owed.tries = n
        waits.append(owed.fail(n))
    assert waits == [*RETRY_SECONDS, None]
    assert (owed.state, subscription.active, subscription.last_error) == ("dead", False, "status 506")
    assert subscription.last_failed_at == 6


@pytest.mark.parametrize(
    ("attempts", "error"),
    [
        ([], None),
        ([Attempt(1)], None),
        ([Attempt(1, status=204)], None),
        ([Attempt(1, status=302)], "status 302"),
        ([Attempt(1, error="refused")], "refused"),
        ([Attempt(1, status=500), Attempt(2)], "status 500"),
        ([Attempt(1, status=500), Attempt(2, status=200)], None),
    ],
)
def test_the_error_is_that_of_the_latest_attempt(
    subscription: Subscription, attempts: list[Attempt], error: str | None
) -> None:
    owed = delivery(subscription)
    owed.attempts += attempts
    assert owed.error == error


def test_ids_and_secrets_come_from_the_seed() -> None:
    made = [Webhooks(name, Ids(seed)).subscribe("https://a/", (), 1) for seed in (1, 2) for name in ("a", "b")]
    again = Webhooks("a", Ids(1)).subscribe("https://b/", (), 1)
    assert len({one.id for one in made}) == len({one.secret for one in made}) == 4
    assert (again.id, again.secret) == (made[0].id, made[0].secret)
    assert "whsec" not in repr(made)


def test_a_subscription_wants_what_it_names() -> None:
    webhooks = Webhooks("acme", Ids(0))
    some = webhooks.subscribe("https://a/", ["turn.failed", "turn.failed"], 1)
    everything = webhooks.subscribe("https://a/", [], 1)
    assert (some.events, everything.events) == (("turn.failed",), ())
    assert [kind for kind in TYPES if some.wants(kind)] == ["turn.failed"]
    assert all(everything.wants(kind) for kind in TYPES)


def test_a_subscription_that_is_there_already_is_refused() -> None:
    webhooks = Webhooks("acme", Ids(0))
    first = webhooks.subscribe("https://a/", TYPES, 1)
    with pytest.raises(Refusal, match=f"as {first.id}"):
        webhooks.subscribe("https://a/", (), 2)
    webhooks.remove(first.id)
    assert first.deleted
    second = webhooks.subscribe("https://a/", (), 2)
    assert second.id != first.id
    assert (webhooks.position(second.id), webhooks.position(first.id)) == (0, None)


@pytest.mark.parametrize(
    ("url", "hosts", "sent"),
    [
        ("http://localhost:1/", (), True),
        ("https://127.0.0.1/", (), True),
        ("http://[::1]:1/", (), True),
        ("https://127.1/", (), False),
        ("https://0.0.0.0/", (), False),
        ("https://192.168.0.1/", (), False),
        ("https://a.localhost/", (), False),
        ("https://You.example.com/", ("you.EXAMPLE.com",), True),
        ("https://you.example.com.evil.example/", ("you.example.com",), False),
        ("https://you.example.com/", ("*",), True),
    ],
)
def test_what_is_sent_off_this_machine(url: str, hosts: tuple[str, ...], sent: bool) -> None:
    check_url(url, hosts)
    assert reachable(url, hosts) is sent


@pytest.mark.parametrize("host", ["a..b", "%", ".", "a" * 64, "x\U000ff4bb", "a_b!", "*"])
def test_a_host_that_could_not_be_looked_up_is_refused(host: str) -> None:
    with pytest.raises(Refusal, match="`url` must be an absolute https address"):
        check_url(f"https://{host}:443/", ("*",))


@pytest.mark.parametrize(
    "host", ["bücher.example", "xn--bcher-kva.example", "a_b.example", "example.com.", "[2001:db8::1]"]
)
def test_a_host_may_have_any_letters(host: str) -> None:
    check_url(f"https://{host}/hooks", ())


@pytest.mark.parametrize("url", ["http:// /", "https://a:b/", "//a/", "https://u@a/", "http://a/", "file:///a", "\x00"])
def test_an_address_nothing_goes_to_is_refused(url: str) -> None:
    with pytest.raises(Refusal, match="`url` must"):
        check_url(url, ())


def test_the_signature_is_the_published_one() -> None:
    # Made once with: printf '%s' '1789305457283.{"a":"ü"}' | openssl dgst -sha256 -hmac whsec_test
    body = '{"a":"ü"}'.encode()
    found = signature(Secret("whsec_test"), "1789305457283", body)
    assert found == "a4d0555e537f67ec41043c570735bce7fb130aff75d8b2f379d571aa47223794"
