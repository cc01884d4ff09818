"""Assertions of a handle: what they let pass, and what they say."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from emulator import EmulatorClient
from emulator.client.verdict import KINDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from emulator import Emulator
    from tests.support import Api


def message(check: Callable[[], Any]) -> str:
    with pytest.raises(AssertionError) as raised:
        check()
    return str(raised.value)


def test_an_emulator_nobody_used_is_clean_and_was_sent_nothing(gobare: Emulator) -> None:
    gobare.assert_clean()
    gobare.assert_no_requests()
    gobare.assert_not_sent("POST", "/v1/sessions")
    assert gobare.assert_sent("POST", "/v1/sessions", times=0) == []
    assert message(lambda: gobare.assert_sent("POST", "/v1/sessions")) == (
        "POST /v1/sessions was never sent. Nothing was sent at all."
    )


def test_what_is_left_over_is_listed_and_kinds_of_it_are_ignored(gobare: Emulator, api: Api) -> None:
    gobare.load({"scenario": "s", "agent": [{"otherwise": [{"ask": {"question": "Where?"}}]}]})
    session_id = api.session({"input": "go"})
    said = message(gobare.assert_clean)
    assert said.startswith("3 things are left over or not as expected:\n  - nobody answered the question")
    assert f"  - session {session_id} was not deleted" in said
    left = message(lambda: gobare.assert_clean(ignore=("sessions", "running_turns")))
    assert left.startswith("1 thing is left over")
    gobare.assert_clean(ignore=("sessions", "running_turns", "unanswered_actions"))
    with pytest.raises(ValueError, match=r"nothing to ignore is called 'session'\. Accepted: script_errors"):
        gobare.assert_clean(ignore="session")


def test_every_kind_a_verdict_tells_can_be_ignored() -> None:
    from emulator.control import verdict

    assert {*verdict._LEFT, "script_errors", "failed_expectations", "required_steps", "recording"} <= set(KINDS)


def test_requests_are_found_by_method_path_and_a_part_of_the_body(gobare: Emulator, api: Api) -> None:
    session_id = api.session({"input": "hello", "metadata": {"tenant": "acme", "run": "7"}})
    api.say(session_id, "and then")
    api.get(f"/v1/sessions/{session_id}")
    (found,) = gobare.assert_sent("post", "/v1/sessions", {"metadata": {"tenant": "acme"}})
    assert found.request_id == gobare.requests[0].request_id
    for path in ("/v1/sessions/*/events", "/v1/sessions/{session_id}/events", f"/v1/sessions/{session_id}/events"):
        gobare.assert_sent("POST", path, {"events": [{"type": "input.message"}]}, times=1)
    gobare.assert_not_sent("POST", "/v1/sessions", {"input": "goodbye"})
    gobare.assert_not_sent("DELETE", "/v1/sessions/{}")
    assert message(gobare.assert_no_requests).startswith("3 requests were sent, and none was expected:\n  201 POST")


def test_what_was_not_sent_is_told_with_what_comes_nearest_and_how_it_differs(gobare: Emulator, api: Api) -> None:
    session_id = api.session({"input": "hello", "metadata": {"tenant": "acme"}})
    api.say(session_id, "and then")
    body = {"events": [{"type": "input.message", "content": "and when"}]}
    said = message(lambda: gobare.assert_sent("POST", "/v1/sessions/{}/events", body)).splitlines()
    assert said[0].startswith('POST /v1/sessions/{}/events with {"events": ')
    assert said[1] == "The nearest that were:"
    assert said[2].startswith(f"  202 POST /v1/sessions/{session_id}/events ")
    assert said[3] == '      body.events[0].content: expected "and when", was "and then"'
    assert said[4].startswith("  201 POST /v1/sessions ")
    assert said[5].startswith("      path: expected /v1/sessions/{}/events, was /v1/sessions")


def test_a_number_of_times_is_held_to(gobare: Emulator, api: Api) -> None:
    api.session()
    api.session()
    said = message(lambda: gobare.assert_sent("POST", "/v1/sessions", times=1))
    assert said.startswith("POST /v1/sessions was sent 2 times, not 1:\n  201 POST /v1/sessions ")
    assert "was sent 2 times, not 0" in message(lambda: gobare.assert_sent("POST", "/v1/sessions", times=0))
    assert message(lambda: gobare.assert_not_sent("POST", "/v1/sessions")).startswith("POST /v1/sessions was sent, and")


def test_requests_that_are_no_longer_kept_are_admitted(gobare: Emulator, api: Api) -> None:
    gobare.settings.update(journal_limit=1)
    api.session()
    api.get("/v1/sessions")
    said = message(lambda: gobare.assert_sent("POST", "/v1/sessions"))
    assert "(1 older requests are no longer kept)" in said
    assert message(gobare.assert_no_requests).startswith("2 requests were sent")


def test_the_awaitable_handle_and_the_one_over_http_say_the_same(gobare: Emulator, api: Api) -> None:
    api.session({"input": "go"})

    async def awaited() -> list[str]:
        found = []
        for wrong in (
            gobare.aio.assert_clean(),
            gobare.aio.assert_no_requests(),
            gobare.aio.assert_sent("GET", "/v1/models"),
            gobare.aio.assert_not_sent("POST", "/v1/sessions"),
        ):
            try:
                await wrong
            except AssertionError as error:
                found.append(str(error))
        assert len(await gobare.aio.assert_sent("POST", "/v1/sessions", times=1)) == 1
        assert str(await gobare.aio.timeline()) == str(gobare.timeline())
        return found

    with EmulatorClient(gobare.url) as client:
        for handle in (gobare, client):
            assert asyncio.run(awaited()) == [
                message(handle.assert_clean),
                message(handle.assert_no_requests),
                message(lambda handle=handle: handle.assert_sent("GET", "/v1/models")),  # type: ignore[misc]
                message(lambda handle=handle: handle.assert_not_sent("POST", "/v1/sessions")),  # type: ignore[misc]
            ]
