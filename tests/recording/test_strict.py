"""Strict playback: a client that does something else is told what, field by field, and nothing else counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.recording.recorded import Recorded
from tests.support import Api

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from emulator import Emulator, Turn

    Client = Callable[[Api], None]

LOOKUP = {"type": "function", "name": "lookup_order"}
DOCS = {"type": "mcp", "name": "docs", "url": "https://docs.test/mcp", "authorization": "Bearer docs-secret-7Q2x"}


async def agent(turn: Turn) -> None:
    order = await turn.call("lookup_order", order_id="A-4471")
    await turn.say(f"It is {order.output}.")


def client(
    api: Api,
    *,
    title: str = "Order desk",
    message: str = "Where is order A-4471?",
    output: str = '{"status": "shipped"}',
    secret: str = "Bearer docs-secret-7Q2x",
    run: str = "1",
    delete: bool = True,
) -> None:
    body = {"title": title, "metadata": {"run": run}, "agent": {"tools": [LOOKUP, {**DOCS, "authorization": secret}]}}
    session = api.session(body)
    api.say(session, message, headers={"idempotency-key": f"key-{run}"})
    api.answer(session, api.actions(session)[0], output)
    if delete:
        api.delete(f"/v1/sessions/{session}")


@pytest.fixture
def play(gobare: Emulator, tmp_path: Path) -> Callable[..., list[dict[str, Any]]]:
    """Record the client, then play to another one strictly. Gives what is reported."""

    def recorded(other: Client, *, free: tuple[str, ...] = (), first: Client = client) -> list[dict[str, Any]]:
        path = tmp_path / "strict.jsonl"
        gobare.agent(agent)
        with Recorded(gobare, path, {"free": free}) as recorder:
            first(recorder.api)
        gobare.reset()
        gobare.load(path, mode="strict")
        other(Api(gobare))
        found: list[dict[str, Any]] = gobare.report()["recording"]
        assert gobare.report()["recording"] == found
        # The test's own verdict is not about this.
        gobare.reset()
        return found

    return recorded


def test_the_same_client_has_no_difference(play: Callable[..., list[dict[str, Any]]]) -> None:
    assert play(client) == []


def test_reads_keys_secrets_and_repeated_writes_do_not_count(play: Callable[..., list[dict[str, Any]]]) -> None:
    def other(api: Api) -> None:
        api.get("/v1/sessions")
        client(api, secret="Bearer another-secret-8R3y")
        for _ in range(3):
            api.get("/v1/agents")

    assert play(other) == []


def test_a_changed_answer_is_told_by_line_and_field_with_both_values(
    play: Callable[..., list[dict[str, Any]]],
) -> None:
    (found,) = play(lambda api: client(api, output='{"status": "lost"}'))
    assert found["kind"] == "different"
    assert found["request_id"]
    assert found["differences"] == [
        {
            "path": "events[0].output",
            "check": "equals",
            "expected": '{"status": "shipped"}',
            "actual": '{"status": "lost"}',
        }
    ]
    assert found["message"] == (
        f"the recording, line {found['line']}, POST /v1/sessions/<session 1>/events (input.tool_result): the client "
        "sent something else\n"
        r'      events[0].output: expected "{\"status\": \"shipped\"}", was "{\"status\": \"lost\"}"'
    )


def test_a_field_more_and_a_field_less_are_told(play: Callable[..., list[dict[str, Any]]]) -> None:
    def other(api: Api) -> None:
        session = api.session({"metadata": {"run": "1", "more": "x"}, "agent": {"tools": [LOOKUP, DOCS]}})
        api.say(session, "Where is order A-4471?")
        api.answer(session, api.actions(session)[0], '{"status": "shipped"}')
        api.delete(f"/v1/sessions/{session}")

    (found,) = play(other)
    assert [(one["path"], one["check"]) for one in found["differences"]] == [
        ("title", "missing"),
        ("metadata.more", "unexpected"),
    ]


def test_a_free_field_does_not_count(play: Callable[..., list[dict[str, Any]]]) -> None:
    assert [one["path"] for found in play(lambda api: client(api, run="2")) for one in found["differences"]] == [
        "metadata.run"
    ]
    assert play(lambda api: client(api, run="2"), free=("metadata.run",)) == []
    assert play(lambda api: client(api, message="Where?"), free=("events[*].content",)) == []
    assert play(lambda api: client(api, run="2"), free=("metadata",)) == []


def test_a_write_that_does_not_come_is_told_at_the_end(play: Callable[..., list[dict[str, Any]]]) -> None:
    (found,) = play(lambda api: client(api, delete=False))
    assert (found["kind"], found["verb"], found["path"]) == ("missing", "DELETE", "/v1/sessions/<session 1>")


def test_a_write_that_was_not_recorded_is_told_and_the_rest_still_fits(
    play: Callable[..., list[dict[str, Any]]],
) -> None:
    def other(api: Api) -> None:
        api.post("/v1/webhooks", {"url": "http://127.0.0.1:9/"})
        client(api)

    (found,) = play(other)
    assert (found["kind"], found["verb"], found["path"]) == ("unexpected", "POST", "/v1/webhooks")


def test_a_write_left_out_in_the_middle_is_told_once(play: Callable[..., list[dict[str, Any]]]) -> None:
    def first(api: Api) -> None:
        session = api.session()
        api.put(f"/v1/sessions/{session}/tools", {"tools": []})
        api.patch(f"/v1/sessions/{session}", {"title": "x"})
        api.delete(f"/v1/sessions/{session}")

    def other(api: Api) -> None:
        session = api.session()
        api.put(f"/v1/sessions/{session}/tools", {"tools": []})
        api.delete(f"/v1/sessions/{session}")

    (found,) = play(other, first=first)
    assert (found["kind"], found["verb"]) == ("missing", "PATCH")


def test_an_answer_to_another_call_than_the_recorded_one_is_told(play: Callable[..., list[dict[str, Any]]]) -> None:
    def first(api: Api, swapped: bool = False) -> None:
        session = api.session({"agent": {"tools": [LOOKUP]}})
        api.say(session, "both")
        actions = api.actions(session)
        for action in reversed(actions) if swapped else actions:
            api.answer(session, action, "same")

    async def both(turn: Turn) -> None:
        await turn.together(turn.call("lookup_order", n=1), turn.call("lookup_order", n=2))

    global agent
    agent, kept = both, agent
    try:
        found = play(lambda api: first(api, swapped=True), first=first)
    finally:
        agent = kept
    assert [one["path"] for entry in found for one in entry["differences"]] == ["events[0].call_id"] * 2


def test_refusals_that_have_a_client_try_again_do_not_count(play: Callable[..., list[dict[str, Any]]]) -> None:
    def first(api: Api) -> None:
        session = api.session()
        for _ in range(2):
            api.post(f"/v1/sessions/{session}/files", {"files": []})
        key = {"idempotency-key": "once"}
        for _ in range(2):
            api.patch(f"/v1/sessions/{session}", {"title": "x"}, headers=key)

    def other(api: Api) -> None:
        session = api.session()
        for _ in range(2):
            api.post(f"/v1/sessions/{session}/files", {"files": []})
        api.patch(f"/v1/sessions/{session}", {"title": "x"}, headers={"idempotency-key": "another"})

    assert play(other, first=first) == []


def test_sessions_made_in_another_order_are_told_apart_by_what_they_are_made_of(
    play: Callable[..., list[dict[str, Any]]],
) -> None:
    def first(api: Api, titles: tuple[str, ...] = ("one", "two", "three")) -> None:
        for title in titles:
            session = api.session({"title": title})
            api.patch(f"/v1/sessions/{session}", {"title": f"{title}, again"})

    assert play(lambda api: first(api, ("three", "one", "two")), first=first) == []


def test_no_secret_is_in_a_difference(play: Callable[..., list[dict[str, Any]]]) -> None:
    def first(api: Api, *extra: dict[str, Any]) -> None:
        session = api.session()
        api.put(f"/v1/sessions/{session}/tools", {"tools": [DOCS, *extra]})

    other = {"type": "mcp", "name": "wiki", "url": "https://wiki.test", "headers": {"x-team": "hunter2 hunter2"}}
    (found,) = play(lambda api: first(api, other), first=first)
    assert found["differences"][0]["path"] == "tools[1]"
    assert "hunter2" not in str(found)


def test_played_freely_nothing_of_it_is_reported(gobare: Emulator, tmp_path: Path) -> None:
    gobare.agent(agent)
    with Recorded(gobare, tmp_path / "free.jsonl") as recorder:
        client(recorder.api)
    gobare.reset()
    gobare.load(tmp_path / "free.jsonl")
    client(Api(gobare), output='{"status": "lost"}', title="Another")
    assert gobare.report()["recording"] == []
    gobare.settings.update(mode="strict")
    assert len(gobare.report()["recording"]) == 2
    gobare.settings.update(mode="script")


# Requests that go wrong


def test_a_fault_is_no_difference(play: Callable[..., list[dict[str, Any]]]) -> None:
    def tries_again(api: Api) -> None:
        faults = api.emulator.faults
        faults.add({"method": "POST", "path": "/v1/sessions"}, reset="before", times=1)
        faults.add({"method": "POST", "path": "/v1/sessions/*/events", "nth": 1}, error="invalid_request")
        faults.add({"method": "POST", "path": "/v1/sessions/*/events", "nth": 3}, reset="after")
        faults.add({"method": "DELETE"}, twice=True)

        def again(call: Callable[[], object]) -> None:
            try:
                call()
            except OSError:
                call()

        body = {"title": "Order desk", "metadata": {"run": "1"}, "agent": {"tools": [LOOKUP, DOCS]}}
        again(lambda: api.post("/v1/sessions", body))
        session = api.get("/v1/sessions").json["data"][0]["id"]
        assert api.say(session, "Where is order A-4471?").status == 400
        assert api.say(session, "Where is order A-4471?").status == 202
        action, key = api.actions(session)[0], {"idempotency-key": "mine"}
        again(lambda: api.answer(session, action, '{"status": "shipped"}', headers=key))
        api.delete(f"/v1/sessions/{session}")

    assert play(tries_again) == []
