"""`future_proof`: a client that minds what it does not know is found, one that does not mind is not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from emulator.exploration.future import FIELD, widened

if TYPE_CHECKING:
    from tests.inner import Run

pytest_plugins = ("pytester",)

# What these runs answer is on purpose what today's document does not have.
pytestmark = pytest.mark.rigged

KNOWN = """
EVENTS = {"user.message", "sandbox.created", "turn.started", "agent.text", "agent.message", "turn.ended"}
ITEMS = {"message"}
FIELDS = {"object", "id", "session_id", "status", "created_at", "started_at", "completed_at", "artifacts",
          "artifacts_skipped", "subagent_id", "error"}

@pytest.mark.gobare(explore="future_proof")
def test_it(gobare):
    @gobare.agent
    async def agent(turn):
        await turn.say("bye")

    session = open_session(gobare)
    events = follow(gobare, session["id"])
    items = call(gobare, "GET", f"/v1/sessions/{session['id']}/items")["data"]
    turn = call(gobare, "GET", f"/v1/sessions/{session['id']}/turns")["data"][0]
    strict
    assert [item["content"] for item in items if item["type"] == "message"] == ["bye", "hello"]
    assert [event for event in events if event in EVENTS][-1] == "turn.ended"
"""
STRICT = {
    "events": "for event in events: {name: 1 for name in EVENTS}[event]",
    "items": "for item in items: {name: 1 for name in ITEMS}[item['type']]",
    "fields": "for field in turn: {name: 1 for name in FIELDS}[field]",
}


def test_a_tolerant_client_survives(run: Run) -> None:
    result = run(KNOWN.replace("strict", "pass"))
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["test_it.py::test_it: run again 3 times"])
    assert "without anything happening" not in result.stdout.str()


@pytest.mark.parametrize("minded", STRICT)
def test_a_client_that_minds_is_found_by_exactly_one_run_and_its_setting_finds_it_again(run: Run, minded: str) -> None:
    code = KNOWN.replace("strict", STRICT[minded])
    result = run(code)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([f"1 of 3 explored runs failed; the first was future_proof:{minded} *"])
    result.stdout.fnmatch_lines(["*KeyError: *future*"])
    run(code, "--gobare-explore", f"future_proof:{minded}").assert_outcomes(failed=1)


def test_an_exception_is_found_in_spite_of_an_invariant_that_holds(run: Run) -> None:
    code = KNOWN.replace("strict", f"gobare.invariant(lambda: None)\n    {STRICT['items']}")
    run(code).assert_outcomes(failed=1)


def test_refusals_frames_and_webhooks_have_unknown_fields_too(run: Run) -> None:
    result = run("""
from http.server import BaseHTTPRequestHandler, HTTPServer

@pytest.mark.gobare(explore="future_proof:fields")
def test_it(gobare):
    bodies = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self):
            bodies.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *args):
            pass

    with HTTPServer(("127.0.0.1", 0), Receiver) as server:
        threading.Thread(target=server.serve_forever).start()
        url = f"http://127.0.0.1:{server.server_port}/"
        call(gobare, "POST", "/v1/webhooks", {"url": url, "events": ["session.created"]})
        session = open_session(gobare)
        gobare.settle()
        server.shutdown()
    with pytest.raises(ApiError) as refused:
        call(gobare, "GET", "/v1/sessions/none")
    refusal = refused.value.body
    sent = request(gobare, "GET", f"/v1/sessions/{session['id']}/events?last_event_id=0")
    with urllib.request.urlopen(sent, timeout=20) as stream:
        event = json.loads(next(frames(stream))["data"])
    for found in (bodies[0], bodies[0]["data"], refusal, refusal["error"], event, event["payload"], session,
                  session["agent"], session["environment"], session["required_actions"][0]):
        found["future_field"]
    if "future_field" in session["metadata"] or "future_field" in session["required_actions"][0]["arguments"]:
        raise LookupError("what a user sent was changed")
""")
    result.assert_outcomes(passed=1)
    assert "without anything happening" not in result.stdout.str()


def test_what_a_user_sent_stays_as_it_is() -> None:
    sent = {"parameters": {"type": "object"}, "metadata": {"a": "b"}, "name": "n", "list": [{"deep": 1}]}
    made = widened(sent)
    assert {name: made[name] for name in ("parameters", "metadata", "name")} == {
        name: sent[name] for name in ("parameters", "metadata", "name")
    }
    assert FIELD in made
    assert FIELD in made["list"][0]
    assert FIELD not in sent
    assert FIELD not in widened({"openapi": "3.1.0"})
