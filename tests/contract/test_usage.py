"""Usage: the sandbox time of a session or a tree (contract §6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from emulator import Turn
    from tests.support import Api

IDLE = 300
LIFE = 7200


@pytest.fixture(autouse=True)
def _agent(api: Api) -> None:
    """An agent that asks when told to, and is done at once otherwise."""

    @api.emulator.agent
    async def agent(turn: Turn) -> None:
        if turn.message == "ask":
            await turn.ask("Which?")


def usage(api: Api, session_id: str, *, tree: bool = False) -> dict[str, Any]:
    answer = api.get(f"/v1/sessions/{session_id}/usage" + (f"?root={session_id}" if tree else ""))
    assert answer.status == 200, answer.raw
    shown: dict[str, Any] = answer.json
    return shown


def told(api: Api, session_id: str) -> tuple[int, int, int, int]:
    """Seconds, chargeable seconds, intervals and those that need review."""
    shown = usage(api, session_id)
    names = ("sandbox_seconds", "chargeable_seconds", "intervals", "needs_review_intervals")
    seconds, chargeable, intervals, review = (shown[name] for name in names)
    return seconds, chargeable, intervals, review


@pytest.mark.behaviour("usage.shape", "usage.nothing")
def test_a_session_that_never_ran_used_nothing(api: Api) -> None:
    session_id = api.session()
    api.emulator.clock.advance(LIFE)
    assert usage(api, session_id) == {
        "object": "session.usage",
        "session_id": session_id,
        "scope": "session",
        "sessions": 1,
        "as_of": api.emulator.clock.now(),
        "sandbox_seconds": 0,
        "chargeable_seconds": 0,
        "needs_review_intervals": 0,
        "intervals": 0,
    }


@pytest.mark.behaviour("usage.running")
def test_a_running_sandbox_counts_until_now(api: Api) -> None:
    session_id = api.session({"input": "go"})
    api.emulator.clock.advance(23)
    assert told(api, session_id) == (23, 0, 1, 0)
    api.emulator.clock.advance(7)
    assert told(api, session_id) == (30, 0, 1, 0)


@pytest.mark.behaviour("usage.paused")
def test_time_paused_does_not_count(api: Api) -> None:
    session_id = api.session({"input": "go"})
    api.emulator.clock.advance(2 * IDLE)
    assert told(api, session_id) == (300, 0, 1, 0)
    api.say(session_id, "go")
    api.emulator.clock.advance(10)
    assert told(api, session_id) == (310, 0, 2, 0)


@pytest.mark.behaviour("usage.reclaimed")
def test_a_reclaimed_workspace_stops_counting(api: Api) -> None:
    session_id = api.session({"input": "ask"})
    api.emulator.clock.advance(LIFE + 1000)
    assert told(api, session_id) == (LIFE, 0, 1, 0)
    api.say(session_id, "ask")
    api.emulator.clock.advance(5)
    assert told(api, session_id) == (LIFE + 5, 0, 2, 0)


@pytest.mark.behaviour("usage.woken")
def test_whatever_wakes_the_workspace_has_it_count_again(api: Api) -> None:
    session_id = api.session({"input": "go"})
    api.emulator.clock.advance(2 * IDLE)
    api.post(f"/v1/sessions/{session_id}/files/refresh")
    api.emulator.clock.advance(2 * IDLE)
    assert told(api, session_id) == (2 * IDLE, 0, 2, 0)


@pytest.mark.behaviour("usage.chargeable")
def test_what_is_over_becomes_chargeable_an_hour_later(api: Api) -> None:
    session_id = api.session({"input": "go"})
    api.emulator.clock.advance(IDLE)
    api.emulator.clock.advance(3600 - 1)
    assert told(api, session_id) == (300, 0, 1, 0)
    api.emulator.clock.advance(1)
    assert told(api, session_id) == (300, 300, 1, 0)
    api.say(session_id, "ask")
    api.emulator.clock.advance(3600)
    assert told(api, session_id) == (3900, 300, 2, 0)


@pytest.mark.behaviour("usage.chargeable")
@pytest.mark.gobare(usage_reconciled_seconds=0)
def test_the_lag_can_be_set(api: Api) -> None:
    session_id = api.session({"input": "go"})
    api.emulator.clock.advance(IDLE)
    assert told(api, session_id) == (300, 300, 1, 0)


@pytest.mark.behaviour("usage.needs-review")
@pytest.mark.gobare(usage_review_intervals=1)
def test_what_nobody_can_account_for_is_counted_without_seconds(api: Api) -> None:
    session_id = api.session({"input": "go"})
    api.emulator.clock.advance(10)
    assert told(api, session_id) == (10, 0, 1, 0)
    api.emulator.clock.advance(IDLE)
    assert told(api, session_id) == (0, 0, 1, 1)
    api.say(session_id, "go")
    api.emulator.clock.advance(IDLE)
    assert told(api, session_id) == (300, 0, 2, 1)
    assert usage(api, session_id, tree=True)["needs_review_intervals"] == 1


@pytest.mark.behaviour("usage.rounding")
def test_milliseconds_are_added_up_before_they_are_rounded(api: Api) -> None:
    root = api.session({"input": "ask"})
    child = api.session({"input": "ask", "parent_session_id": root})
    api.emulator.clock.advance(0.6)
    assert [usage(api, session)["sandbox_seconds"] for session in (root, child)] == [0, 0]
    assert usage(api, root, tree=True)["sandbox_seconds"] == 1


@pytest.mark.behaviour("usage.tree", "usage.leaf")
def test_a_tree_is_added_up(api: Api) -> None:
    root = api.session({"input": "go"})
    child = api.session({"input": "go", "parent_session_id": root})
    copy = api.post(f"/v1/sessions/{child}/fork").json["id"]
    assert told(api, copy) == (0, 0, 0, 0)
    api.say(copy, "go")
    api.session({"input": "go"})
    api.emulator.clock.advance(IDLE)
    shown = usage(api, root, tree=True)
    assert (shown["session_id"], shown["scope"], shown["sessions"]) == (root, "tree", 3)
    assert (shown["sandbox_seconds"], shown["intervals"]) == (3 * IDLE, 3)
    below = usage(api, child, tree=True)
    assert (below["sessions"], below["sandbox_seconds"]) == (2, 2 * IDLE)
    leaf = usage(api, copy, tree=True)
    assert (leaf["scope"], leaf["sessions"], leaf["sandbox_seconds"]) == ("tree", 1, IDLE)
    assert usage(api, root)["sessions"] == 1


@pytest.mark.behaviour("usage.tree-depth")
def test_a_tree_is_added_up_sixteen_levels_deep(api: Api) -> None:
    sessions = [api.session()]
    for _ in range(16):
        sessions.append(api.session({"parent_session_id": sessions[-1]}))
    assert len(sessions) == 17
    assert usage(api, sessions[0], tree=True)["sessions"] == 16
    assert usage(api, sessions[1], tree=True)["sessions"] == 16
    assert usage(api, sessions[2], tree=True)["sessions"] == 15


@pytest.mark.behaviour("usage.deleted")
def test_a_deleted_session_counts_no_more(api: Api) -> None:
    root = api.session({"input": "go"})
    middle = api.session({"input": "go", "parent_session_id": root})
    api.session({"input": "go", "parent_session_id": middle})
    api.emulator.clock.advance(IDLE)
    assert usage(api, root, tree=True)["sandbox_seconds"] == 3 * IDLE
    api.delete(f"/v1/sessions/{middle}")
    shown = usage(api, root, tree=True)
    assert (shown["sessions"], shown["sandbox_seconds"]) == (1, IDLE)
    for query in ("", f"?root={middle}"):
        assert api.get(f"/v1/sessions/{middle}/usage{query}").code == "not_found"


@pytest.mark.behaviour("usage.root")
def test_root_is_the_session_of_the_path(api: Api) -> None:
    session_id, other = api.session(), api.session()
    for root in (other, "x", session_id.upper()):
        answer = api.get(f"/v1/sessions/{session_id}/usage?root={root}")
        assert (answer.status, answer.code) == (400, "invalid_request")
        assert "`root`" in answer.message
        assert root in answer.message


@pytest.mark.behaviour("usage.query")
def test_any_other_parameter_is_refused(api: Api) -> None:
    answer = api.get(f"/v1/sessions/{api.session()}/usage?limit=5")
    assert (answer.status, answer.code) == (400, "invalid_request")
    assert "limit" in answer.message


@pytest.mark.behaviour("usage.reads")
def test_reading_usage_wakes_nothing(api: Api) -> None:
    session_id = api.session({"input": "go"})
    api.emulator.clock.advance(IDLE)
    events = api.events(session_id)
    assert usage(api, session_id) == usage(api, session_id)
    assert api.events(session_id) == events
    assert api.get(f"/v1/sessions/{session_id}").json["environment"]["state"] == "paused"
