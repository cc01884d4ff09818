"""`race`: each answer comes too late in each way there is, and requests in flight swap places."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.inner import Run

pytest_plugins = ("pytester",)

# A product that answers one call, and tells its user what came of it.
ASKED = """
def product(api, careful):
    session = open_session(api)
    (action,) = session["required_actions"]
    try:
        outcome = succeed(api, session, action)["outcome"]
    except ApiError as error:
        outcome = error.body["error"]["code"] if careful else "accepted"
    return outcome == "accepted" or not careful

@pytest.mark.gobare(explore="race")
def test_it(gobare):
    told = []

    @gobare.agent
    async def agent(turn):
        result = await turn.call("lookup")
        await turn.say(result.output if result.success else "nobody knows")

    @gobare.invariant
    def the_user_is_told_of_an_answer_only_where_it_is_given():
        assert told == [gobare.transcript().last_message == "42"]

    told.append(product(gobare, careful={careful}))
    assert told == [True]
"""


def test_a_client_that_looks_at_the_outcome_survives_every_race(run: Run) -> None:
    # What another answered is not this one's, which says so, although the agent heard the same.
    code = ASKED.replace("{careful}", "True").replace(
        'outcome == "accepted" or', 'outcome in ("accepted", "already_resolved") or'
    )
    result = run(code)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["test_it.py::test_it: run again 5 times"])


def test_a_client_that_does_not_is_found_and_each_setting_finds_it_again(run: Run) -> None:
    code = ASKED.replace("{careful}", "False")
    result = run(code)
    result.assert_outcomes(failed=1)
    text = result.stdout.str()
    assert "3 of 5 explored runs failed; the first was race:1:not_delivered" in text
    assert "as the function call 'lookup' is answered, the sandbox has just forgotten the call" in text
    assert set(re.findall(r"(race:1:\w+)", text)) == {"race:1:not_delivered", "race:1:deadline", "race:1:cancelled"}
    for outcome in ("not_delivered", "deadline", "cancelled"):
        run(code, "--gobare-explore", f"race:1:{outcome}").assert_outcomes(failed=1)
    for outcome in ("accepted", "already_resolved"):
        run(code, "--gobare-explore", f"race:1:{outcome}").assert_outcomes(passed=1)


def test_each_outcome_of_each_type_of_answer_is_what_the_api_says_of_it(run: Run) -> None:
    result = run("""
SEEN = []

@pytest.mark.gobare(explore="race")
def test_it(gobare):
    @gobare.agent
    async def agent(turn):
        result = await turn.call("lookup")
        said = [result.output if result.success else result.error]
        said.append(str(await turn.approve("deploy", {}, sensitive=True)))
        said.append(await turn.ask("Where?", options=["here", "there"]))
        await turn.say(", ".join(said))

    outcomes = []

    @gobare.invariant
    def seen(gobare, run):
        SEEN.append((run.variant, outcomes, gobare.transcript().last_message))

    session = open_session(gobare)
    for type, fields in (
        ("input.tool_result", {"success": True, "output": "42"}), ("input.approval", {"approved": True}),
        ("input.question_answer", {"answer": "here"}),
    ):
        actions = call(gobare, "GET", f"/v1/sessions/{session['id']}")["required_actions"]
        if not actions:
            break
        if type == "input.tool_result":
            fields["turn_id"] = actions[0]["turn_id"]
        try:
            answer = send(gobare, session["id"], type=type, call_id=actions[0]["call_id"], **fields)
            outcomes.append(answer["outcome"])
        except ApiError as error:
            outcomes.append(error.status)

def test_after():
    late = "Nobody answered this call in time. Do not call it again; go on without it."
    ok = "accepted"
    gone = "no_longer_pending"
    assert SEEN == [
        ("", [ok, ok, ok], "42, True, here"),
        ("race:1:accepted", [ok, ok, ok], "42, True, here"),
        ("race:1:already_resolved", ["already_resolved", ok, ok], "42, True, here"),
        ("race:1:not_delivered", ["not_delivered"], None),
        ("race:1:deadline", ["not_delivered", ok, ok], late + ", True, here"),
        ("race:1:cancelled", [404], None),
        ("race:2:accepted", [ok, ok, ok], "42, True, here"),
        ("race:2:already_resolved", [ok, gone, ok], "42, False, here"),
        ("race:2:deadline", [ok, gone, ok], "42, False, here"),
        ("race:2:cancelled", [ok, gone], None),
        ("race:3:accepted", [ok, ok, ok], "42, True, here"),
        ("race:3:already_resolved", [ok, ok, gone], "42, True, there"),
        ("race:3:cancelled", [ok, ok, gone], None),
    ]
""")
    result.assert_outcomes(passed=2)


def test_an_act_that_the_mode_asks_about_is_raced_like_any_approval(run: Run) -> None:
    result = run("""
SEEN = []

@pytest.mark.gobare(explore="race")
def test_it(gobare):
    @gobare.agent
    async def agent(turn):
        await turn.say(f"{await turn.write('a.txt', 'a')} {await turn.use('bash')}")

    @gobare.invariant
    def seen(gobare, run):
        changed = any(event["type"] == "file.changed" for event in gobare.events())
        SEEN.append((run.variant, gobare.transcript().last_message, changed))

    body = {"input": "go", "agent": {"approval_mode": "per_step"}}
    session = call(gobare, "POST", "/v1/sessions", body)
    while actions := call(gobare, "GET", f"/v1/sessions/{session['id']}")["required_actions"]:
        send(gobare, session["id"], type="input.approval", call_id=actions[0]["call_id"], approved=True)

def test_after():
    assert SEEN == [
        ("", "True True", True),
        ("race:1:accepted", "True True", True),
        ("race:1:already_resolved", "False True", False),
        ("race:1:deadline", "False True", False),
        ("race:1:cancelled", None, False),
        ("race:2:accepted", "True True", True),
        ("race:2:already_resolved", "True False", True),
        ("race:2:deadline", "True False", True),
        ("race:2:cancelled", None, True),
    ]
""")
    result.assert_outcomes(passed=2)


TOGETHER = """
def at_once(*jobs):
    barrier = threading.Barrier(len(jobs))
    def work(job):
        barrier.wait()
        job()
    threads = [threading.Thread(target=work, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

@pytest.mark.gobare(explore="race")
def test_it(gobare):
    session = open_session(gobare)

    @gobare.invariant
    def the_title_is_the_last_one_that_was_sent():
        now = call(gobare, "GET", f"/v1/sessions/{session['id']}")["title"]
        titles = [entry.body["title"] for entry in gobare.requests if entry.method == "PATCH"]
        ORDERS.add(tuple(titles))
        assert now == titles[-1]
        assert not WANTED or now == WANTED

    def rename(title):
        call(gobare, "PATCH", f"/v1/sessions/{session['id']}", {"title": title})

    ways
"""


def test_requests_that_are_in_flight_together_are_carried_out_in_both_orders(run: Run) -> None:
    code = 'ORDERS = set()\nWANTED = ""\n' + TOGETHER.replace(
        "ways", 'at_once(lambda: rename("a"), lambda: rename("b"))'
    )
    result = run(code + '\ndef test_after():\n    assert ORDERS == {("a", "b"), ("b", "a")}\n')
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["test_it.py::test_it: run again once"])


def test_what_depends_on_the_order_is_found_and_its_setting_finds_it_again(run: Run) -> None:
    code = 'ORDERS = set()\nWANTED = "b"\n' + TOGETHER.replace(
        # Whoever is first by itself has a head start, which is no promise.
        "ways",
        'at_once(lambda: rename("a"), lambda: (threading.Event().wait(0.002), rename("b")))',
    )
    for _ in range(5):
        result = run(code)
        found = re.search(r"pytest .*--gobare-explore (race:order:[0-9a-f-]+)", result.stdout.str())
        if found is not None:
            break
    else:
        raise AssertionError("the two were never in flight together")
    assert "is carried out before PATCH /v1/sessions/" in result.stdout.str()
    for _ in range(2):
        run(code, "--gobare-explore", found[1]).assert_outcomes(failed=1)


def test_requests_that_are_sent_one_after_the_other_stay_in_order(run: Run) -> None:
    result = run('ORDERS = set()\nWANTED = "b"\n' + TOGETHER.replace("ways", 'rename("a"), rename("b")'))
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["test_it.py::test_it: run again 0 times"])


def test_in_a_race_an_exception_is_judged_by_the_invariant_where_there_is_one(run: Run) -> None:
    code = """
@pytest.mark.gobare(explore="race:1:cancelled")
def test_it(gobare):
    invariant
    session = open_session(gobare)
    succeed(gobare, session, session["required_actions"][0])
"""
    run(code.replace("invariant", "")).assert_outcomes(failed=1)
    run(code.replace("invariant", "gobare.invariant(lambda: None)")).assert_outcomes(passed=1)
    told = run(
        code.replace(
            "invariant",
            """
    @gobare.invariant
    def gives_up_in_its_own_words(gobare, run):
        assert not isinstance(run.error, OSError), run.error
""",
        )
    )
    told.assert_outcomes(failed=1)
    told.stdout.fnmatch_lines(["The test itself had raised ApiError: the answer is 404"])
