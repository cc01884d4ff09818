"""What the published guides do: each finding of theirs is true, and the others are absent.

Each entry is the requests of a guide's program that matter, against the conditions it meets there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from emulator import Emulator
from tests.findings.support import LOOKUP, found
from tests.receiver import Receiver
from tests.support import Api

if TYPE_CHECKING:
    from collections.abc import Callable

    from emulator.runtime.turn import Turn

SETTLED: Final = ("completed", "failed", "cancelled")


def quickstart(api: Api) -> None:
    """Asks for a file, polls the turn, and takes the items and the artifacts as soon as it has settled."""
    session_id = api.session({"agent": {"model": "MiniMax-M3"}})
    api.say(session_id, "Create a report.", headers={"Idempotency-Key": "a-1"})
    while _turn(api, session_id)["status"] not in SETTLED:
        api.emulator.clock.advance(3)
    api.get(f"/v1/sessions/{session_id}/items?limit=100")
    artifacts = api.get(f"/v1/sessions/{session_id}/artifacts").json["data"]
    if artifacts:
        api.get(f"/v1/sessions/{session_id}/artifacts/{artifacts[0]['id']}/content")
        api.get(f"/v1/sessions/{session_id}/artifacts/archive")
    api.delete(f"/v1/sessions/{session_id}")


def agent_behind_an_api(api: Api) -> None:
    """Opens sessions with a key each, polls the session, answers calls, and waits for the artifacts."""
    for job in range(2):
        body = {"input": "Report.", "metadata": {"job": str(job)}, "agent": {"tools": [LOOKUP]}}
        session_id = api.session(body, headers={"Idempotency-Key": f"job-{job}"})
        _answer_all(api, session_id)
        while _turn(api, session_id)["artifacts"] == "pending":
            api.emulator.clock.advance(2)
        api.get(f"/v1/sessions/{session_id}/items?limit=20")
        api.get(f"/v1/sessions/{session_id}/artifacts")
        api.delete(f"/v1/sessions/{session_id}")


def agent_behind_an_api_at_the_ceiling(api: Api) -> None:
    """Opens sessions until it is refused, and tries again after a second of its own choosing."""
    while (answer := api.post("/v1/sessions", {"input": "Report."})).status == 201:
        api.delete(f"/v1/sessions/{answer.json['id']}")
    assert answer.code == "rate_limit_exceeded"
    api.emulator.clock.advance(1)
    api.post("/v1/sessions", {"input": "Report."})


def showing_the_agents_work(api: Api) -> None:
    """Subscribes before it sends, and follows up to the end of the turn; then resumes from its cursor."""
    session_id = api.session()
    with api.stream(f"/v1/sessions/{session_id}/events") as stream:
        stream.next()
        api.say(session_id, "Report.")
        cursor = stream.until("turn.ended")[-1].id
    with api.stream(f"/v1/sessions/{session_id}/events?last_event_id={cursor}") as stream:
        stream.until("artifact.created")


def approvals_in_a_product(api: Api) -> None:
    """Polls the session and answers what it waits for, until it waits for nothing and is quiet."""
    session_id = api.session({"input": "Ask first.", "agent": {"tools": [LOOKUP]}})
    _answer_all(api, session_id)
    api.get(f"/v1/sessions/{session_id}/items?limit=100&order=asc")


def run_session(api: Api) -> None:
    """Polls the session and its newest turn side by side, and reads the transcript from its beginning."""
    session_id = api.session({"agent": {"tools": [LOOKUP]}})
    for text in ("Ask first.", "Report."):
        api.say(session_id, text, headers={"Idempotency-Key": f"{session_id}:{text}"})
        while True:
            _answer_all(api, session_id)
            if _turn(api, session_id)["status"] in SETTLED:
                break
        api.get(f"/v1/sessions/{session_id}/items?limit=100&order=asc")


def work_that_spans_hours(api: Api) -> None:
    """Sends a message, waits for the newest turn and reads the answer, round by round, hours apart."""
    session_id = api.session()
    for text in ("Report.", "Go on."):
        api.say(session_id, text)
        while _turn(api, session_id)["status"] not in SETTLED:
            api.emulator.clock.advance(3)
        api.get(f"/v1/sessions/{session_id}/items?limit=100")
        api.emulator.clock.advance(3600)


def webhook_backend(api: Api) -> None:
    """Hears of the end by webhook, and then reads that turn and its answer."""
    with Receiver() as receiver:
        api.post("/v1/webhooks", {"url": receiver.url, "events": ["turn.completed", "session.action_required"]})
        session_id = api.session({"input": "Report."})
        assert api.emulator.settle()
        (post,) = receiver.posts
        turn_id = post.json["data"]["turn_id"]
        api.get(f"/v1/sessions/{session_id}/turns/{turn_id}")
        api.get(f"/v1/sessions/{session_id}/items?limit=20")
        api.get(f"/v1/sessions/{session_id}/artifacts?turn_id={turn_id}")


# The true ones, and under which settings. All others break no rule, whatever the settings.
LAG: Final = {"publication_seconds": 5}
GUIDES: Final[list[tuple[Callable[[Api], None], dict[str, Any], list[str]]]] = [
    (quickstart, {}, []),
    # It does not wait for publication: with five seconds of it the list is empty, and there was a file.
    (quickstart, LAG, ["empty-artifacts-taken"]),
    (agent_behind_an_api, {}, []),
    (agent_behind_an_api, LAG, []),
    # It waits a second, then two, whatever `Retry-After` says.
    (agent_behind_an_api_at_the_ceiling, {"rates": "published"}, ["retry-too-soon"]),
    (showing_the_agents_work, {}, []),
    (showing_the_agents_work, {"pace": "realistic"}, []),
    (approvals_in_a_product, {}, []),
    (run_session, {}, []),
    (work_that_spans_hours, {}, []),
    (work_that_spans_hours, LAG, []),
    (webhook_backend, {}, []),
]


@pytest.mark.parametrize(("guide", "settings", "true"), GUIDES, ids=lambda value: getattr(value, "__name__", None))
def test_a_guide_breaks_the_rules_it_breaks_and_no_other(
    guide: Callable[[Api], None], settings: dict[str, Any], true: list[str]
) -> None:
    with Emulator(**settings) as gobare:

        @gobare.agent
        async def agent(turn: Turn) -> None:
            await turn.say("Looking.")
            if turn.message == "Ask first.":
                await turn.together(turn.call("lookup"), turn.ask("Which region?"), turn.approve("bash"))
            await turn.write(f"/workspace/outputs/{turn.number}.md", "# Report")
            await turn.say("Done.")

        guide(Api(gobare))
        assert sorted(found(gobare)) == true


def _turn(api: Api, session_id: str) -> dict[str, Any]:
    turn: dict[str, Any] = api.get(f"/v1/sessions/{session_id}/turns?limit=1").json["data"][0]
    return turn


def _answer_all(api: Api, session_id: str) -> None:
    """Answer what a session waits for, each by its own event, until it waits for nothing."""
    while actions := api.actions(session_id):
        for action in actions:
            match action["type"]:
                case "function_call":
                    api.answer(session_id, action)
                case "approval":
                    api.send(session_id, {"type": "input.approval", "call_id": action["call_id"], "approved": True})
                case _:
                    answer = {"type": "input.question_answer", "call_id": action["call_id"], "answer": "eu"}
                    api.send(session_id, answer)
