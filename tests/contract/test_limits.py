"""Rates and the number of sessions (contract §6, §13)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.contract.calls import mint

if TYPE_CHECKING:
    from tests.support import Answer, Api

published = pytest.mark.gobare(rates="published", session_limit=1000)


def budget(answer: Answer) -> list[str]:
    return [answer.headers[f"x-ratelimit-{name}"] for name in ("limit", "remaining", "reset", "resource")]


def spend(api: Api, count: int, **options: Any) -> None:
    """Make that many calls of the general bucket."""
    for n in range(count):
        answer = api.get("/v1/health", **options)
        assert (answer.status, budget(answer)[1]) == (200, str(119 - n))


@pytest.mark.behaviour("limits.sessions-rate", "limits.refusal")
@published
def test_the_eleventh_session_of_a_minute_is_refused(api: Api) -> None:
    for n in range(10):
        answer = api.post("/v1/sessions", {})
        assert (answer.status, budget(answer)) == (201, ["10", str(9 - n), str(6 * (n + 1)), "sessions"])
    answer = api.post("/v1/sessions", {})
    assert (answer.status, answer.code) == (429, "rate_limit_exceeded")
    assert answer.headers["retry-after"] == "6"
    assert budget(answer) == ["10", "0", "60", "sessions"]
    assert "10" in answer.message


@pytest.mark.behaviour("limits.general-rate", "limits.refusal")
@published
def test_the_hundred_and_twenty_first_call_of_a_minute_is_refused(api: Api) -> None:
    spend(api, 120)
    answer = api.get("/v1/health")
    assert (answer.status, answer.code) == (429, "rate_limit_exceeded")
    assert answer.headers["retry-after"] == "1"
    assert budget(answer) == ["120", "0", "60", "general"]


@pytest.mark.behaviour("limits.refill")
@published
def test_what_was_spent_comes_back_bit_by_bit(api: Api) -> None:
    for _ in range(10):
        api.session()
    api.emulator.clock.advance(5.9)
    answer = api.post("/v1/sessions", {})
    assert (answer.status, answer.headers["retry-after"]) == (429, "1")
    api.emulator.clock.advance(0.1)
    assert api.post("/v1/sessions", {}).status == 201
    assert api.post("/v1/sessions", {}).status == 429
    api.emulator.clock.advance(30)
    assert [api.post("/v1/sessions", {}).status for _ in range(6)] == [201] * 5 + [429]


@pytest.mark.behaviour("limits.refill")
@published
def test_no_more_comes_back_than_was_there(api: Api) -> None:
    api.session()
    api.emulator.clock.advance(3600)
    assert [api.post("/v1/sessions", {}).status for _ in range(11)] == [201] * 10 + [429]


@pytest.mark.behaviour("limits.not-charged")
@published
def test_a_refused_call_costs_nothing(api: Api) -> None:
    for _ in range(10):
        api.session()
    for _ in range(20):
        assert api.post("/v1/sessions", {}).headers["retry-after"] == "6"
    api.emulator.clock.advance(6)
    assert api.post("/v1/sessions", {}).status == 201


@pytest.mark.behaviour("limits.per-token", "limits.apart")
@published
def test_tokens_and_buckets_are_apart(api: Api) -> None:
    other = mint(api)
    for _ in range(10):
        api.session()
    assert api.post("/v1/sessions", {}).status == 429
    assert budget(api.get("/v1/health")) == ["120", "119", "1", "general"]
    assert budget(api.post("/v1/sessions", {}, token=other)) == ["10", "9", "6", "sessions"]
    spend(api, 120, token=other)
    assert api.get("/v1/health", token=other).status == 429
    assert api.post("/v1/sessions", {}, token=other).status == 201


@pytest.mark.behaviour("limits.streams")
@published
def test_a_stream_is_a_call_of_the_general_bucket(api: Api) -> None:
    with api.stream("/v1/events") as frames:
        assert frames.stream.headers["x-ratelimit-remaining"] == "119"
        assert frames.stream.headers["x-ratelimit-resource"] == "general"
    token = mint(api)
    spend(api, 120, token=token)
    answer = api.get("/v1/events", token=token)
    assert (answer.status, answer.code) == (429, "rate_limit_exceeded")


@pytest.mark.behaviour("limits.off")
@pytest.mark.gobare(session_limit=1000)
def test_without_the_setting_it_counts_but_does_not_refuse(api: Api) -> None:
    answers = [api.post("/v1/sessions", {}) for _ in range(12)]
    assert {answer.status for answer in answers} == {201}
    assert [budget(answer)[1] for answer in answers[8:]] == ["1", "0", "0", "0"]


@pytest.mark.behaviour("limits.sessions", "limits.sessions-no-retry", "limits.sessions-freed")
def test_the_twenty_sixth_session_is_refused_until_one_is_deleted(api: Api) -> None:
    ids = [api.session() for _ in range(25)]
    for _ in range(2):
        answer = api.post("/v1/sessions", {})
        assert (answer.status, answer.code) == (429, "project_limit_exceeded")
        assert "retry-after" not in answer.headers
        assert "25" in answer.message
        assert "DELETE /v1/sessions/" in answer.message
    assert len(api.get("/v1/sessions?limit=100").json["data"]) == 25
    api.delete(f"/v1/sessions/{ids[7]}")
    assert api.post("/v1/sessions", {}).status == 201
    assert api.post("/v1/sessions", {}).status == 429


@pytest.mark.behaviour("limits.sessions-per-organization")
@pytest.mark.gobare(session_limit=1)
def test_organizations_do_not_share_their_slots(api: Api) -> None:
    other = mint(api, organization="other")
    api.session()
    assert api.post("/v1/sessions", {}, token=mint(api)).code == "project_limit_exceeded"
    assert api.post("/v1/sessions", {}, token=other).status == 201
    assert api.post("/v1/sessions", {}, token=other).code == "project_limit_exceeded"


@pytest.mark.behaviour("limits.sessions-any-state")
@pytest.mark.gobare(session_limit=2)
def test_a_session_that_does_nothing_holds_its_slot(api: Api) -> None:
    @api.emulator.agent
    async def agent(turn: Any) -> None:
        await turn.fail("provider_error", "no")

    failed = api.session({"input": "go"})
    api.emulator.clock.advance(300)
    assert api.get(f"/v1/sessions/{failed}").json["environment"]["state"] == "paused"
    api.session()
    assert api.post("/v1/sessions", {}).code == "project_limit_exceeded"
