"""`resume_everywhere`: a client that loses or doubles an event is found, one that resumes is not."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tests.support import Api

if TYPE_CHECKING:
    from emulator import Emulator
    from tests.inner import Run

pytest_plugins = ("pytester",)

FOLLOWED = """
STEP = {step}

@pytest.mark.gobare(explore="resume_everywhere")
def test_it(gobare):
    @gobare.agent
    async def agent(turn):
        await turn.use("bash", args={{}}, summary="done", exit_code=0)
        await turn.say("bye")

    seen = []

    @gobare.invariant
    def every_event_is_seen_once():
        assert seen == [event["type"] for event in gobare.events()]

    session = open_session(gobare)
    seen += follow(gobare, session["id"], STEP, patience=0.2 if STEP else 20)
"""


def test_a_client_that_resumes_with_its_cursor_survives_a_cut_after_every_event(run: Run) -> None:
    result = run(FOLLOWED.format(step=0))
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*gobare exploration*", "test_it.py::test_it: run again 7 times"])


def test_a_client_that_loses_an_event_is_found_and_the_setting_alone_finds_it_again(run: Run) -> None:
    result = run(FOLLOWED.format(step=1))
    result.assert_outcomes(failed=1)
    text = result.stdout.str()
    assert "6 of 7 explored runs failed; the first was resume_everywhere:1" in text
    assert "--gobare-explore resume_everywhere:1" in text
    assert "every_event_is_seen_once" in text
    assert "gobare timeline" in text
    # The last event is followed by none that could be lost.
    assert set(re.findall(r"(resume_everywhere:\d+)", text)) == {f"resume_everywhere:{n}" for n in range(1, 7)}

    alone = run(FOLLOWED.format(step=1), "--gobare-explore", "resume_everywhere:3")
    alone.assert_outcomes(failed=1)
    alone.stdout.fnmatch_lines(["1 of 1 explored runs failed; the first was resume_everywhere:3"])
    run(FOLLOWED.format(step=1), "--gobare-explore", "resume_everywhere:7").assert_outcomes(passed=1)


def test_the_setting_of_a_failure_works_on_the_marker_too(run: Run) -> None:
    code = FOLLOWED.format(step=1).replace('"resume_everywhere"', '"resume_everywhere:2"')
    run(code).assert_outcomes(failed=1)


def test_a_cut_costs_no_waiting_and_comes_in_both_manners(run: Run) -> None:
    result = run("""
ENDS = []

@pytest.mark.gobare(explore="resume_everywhere")
def test_it(gobare):
    session = open_session(gobare)
    path = f"/v1/sessions/{session['id']}/events"
    with urllib.request.urlopen(request(gobare, "GET", path, None, **{"last-event-id": "0"}), timeout=20) as stream:
        if gobare.settings.get()["explore"] == ["resume_everywhere"]:
            return
        assert stream.readline() == b"retry: 0\\n"
        try:
            read = stream.read()
            ENDS.append((int(read.rpartition(b"id: ")[2].split()[0]), "ends"))
        except http.client.IncompleteRead as gone:
            ENDS.append((int(gone.partial.rpartition(b"id: ")[2].split()[0]), "is gone"))

def test_after():
    assert ENDS == [(seq, "is gone" if seq % 2 else "ends") for seq in range(1, len(ENDS) + 1)] and len(ENDS) > 3
""")
    result.assert_outcomes(passed=2)


def test_a_test_that_opens_no_stream_is_not_run_again(run: Run) -> None:
    result = run("""
@pytest.mark.gobare(explore="resume_everywhere")
def test_it(gobare):
    open_session(gobare)
""")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*run again 0 times*"])


def test_a_stream_of_the_organization_is_cut_too(run: Run) -> None:
    result = run("""
@pytest.mark.gobare(explore="resume_everywhere:2")
def test_it(gobare):
    open_session(gobare)
    sent = request(gobare, "GET", "/v1/events", None, **{"last-event-id": "0"})
    for attempt in range(2):
        with urllib.request.urlopen(sent, timeout=20) as stream:
            seen = [next(frames(stream)) for _ in range(2)]
            if attempt:
                assert int(next(frames(stream))["id"]) == 3
            else:
                assert stream.read() == b""
        assert [frame["id"] for frame in seen] == ["1", "2"]
    raise LookupError("to see that it came here")
""")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*LookupError: to see that it came here*"])


def test_what_a_cut_kept_from_a_client_counts_as_not_sent(gobare: Emulator) -> None:
    api = Api(gobare)
    gobare.load({"agent": [{"otherwise": [{"say": "Looking."}, {"call": {"function": "lookup"}}]}]})
    session = api.session({"agent": {"tools": [{"type": "function", "name": "lookup"}]}})
    gobare.settings.update(explore=["resume_everywhere:4"])
    with api.stream(f"/v1/sessions/{session}/events") as stream:
        api.say(session, "go")
        assert [frame.type for frame in iter(stream.event, None)][-1] == "agent.message"
    api.stream(f"/v1/sessions/{session}/events").close()
    assert [finding["id"] for finding in gobare.report()["findings"]] == ["resumed-without-cursor"]
