"""What the fixtures make of the end of a test, as a stranger sees it."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING

import pytest

from emulator.pytest_report import let_streams_close
from tests.inner import Run
from tests.support import Api

if TYPE_CHECKING:
    from emulator import Emulator

pytest_plugins = ("pytester",)

CALL = """
import json, urllib.request
import pytest

LOOKUP = {"type": "function", "name": "lookup"}

def call(api, method, path, body=None):
    data = None if body is None else json.dumps(body).encode()
    headers = {"authorization": f"Bearer {api.token}", "content-type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(api.url + path, data, headers, method=method), timeout=20) as a:
        return json.load(a)

def say(api, text, **agent):
    return call(api, "POST", "/v1/sessions", {"input": text, "agent": agent})["id"]

def answer(api, session, output):
    action = call(api, "GET", f"/v1/sessions/{session}")["required_actions"][0]
    event = {"type": "input.tool_result", "turn_id": action["turn_id"], "call_id": action["call_id"]}
    call(api, "POST", f"/v1/sessions/{session}/events", {"events": [{**event, "success": True, "output": output}]})

def delete(api, session):
    call(api, "DELETE", f"/v1/sessions/{session}")

def scenario(*steps, times=None):
    return {"scenario": "orders", "agent": [{"otherwise": list(steps), **({"times": times} if times else {})}]}
"""


@pytest.fixture
def run(pytester: pytest.Pytester) -> Run:
    """Runs a test file with the helper functions of `CALL` in it."""
    return Run(pytester, CALL)


WRONG = """
@pytest.mark.gobare(scenario=scenario({"call": {"function": "lookup", "expect": {"output": {"status": "shipped"}}}}))
def test_it(gobare):
    session = say(gobare, "hello", tools=[LOOKUP])
    answer(gobare, session, '{"status": "lost", "api_key": "canary-1"}')
    delete(gobare, session)
"""


def test_an_answer_that_is_not_as_expected_fails_the_test_and_says_all_there_is_to_say(run: Run) -> None:
    result = run(WRONG)
    result.assert_outcomes(failed=1)
    text = result.stdout.str()
    assert "1 answer was not what the script expects:" in text
    assert "scenario 'orders', agent[0].otherwise[0]: the call of \"lookup\" [call_" in text
    assert re.search(r"in session [-0-9a-f]{36}, turn turn_\w+; the answer came with request [0-9a-f]{8}", text)
    assert 'output.status: expected "shipped", was "lost"' in text
    assert 'output.api_key: is not expected; was "[withheld]"' in text
    assert "All traceback entries are hidden" not in text
    assert "canary" not in text.partition("1 answer was")[2].partition("gobare timeline")[0]


def test_a_python_agent_expects_as_well_and_a_reset_forgets_nothing(run: Run) -> None:
    result = run("""
def test_it(gobare):
    @gobare.agent
    async def agent(turn):
        await turn.approve("bash", expect={"approved": True})
    say(gobare, "hello")
    gobare.approve(approved=False)
    gobare.reset()

def test_next(gobare_session):
    @gobare_session.agent
    async def agent(turn):
        (await turn.call("lookup")).expect(output=1)
    answer(gobare_session, say(gobare_session, "hello", tools=[LOOKUP]), "2")

def test_after(gobare_session):
    pass
""")
    result.assert_outcomes(failed=2, passed=1)
    result.stdout.fnmatch_lines(
        ["*test_it.py:* in agent: the approval of ?bash? *", "*approved: expected true, was false*"]
    )
    result.stdout.fnmatch_lines(["*output: expected 1, was 2*"])


def test_a_required_step_that_was_not_reached_fails_without_strict(run: Run) -> None:
    result = run("""
@pytest.mark.gobare(scenario=scenario({"ask": {"question": "?"}}, {"say": "x", "required": True}))
def test_it(gobare):
    say(gobare, "hello")
""")
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(
        [
            "not reached, or left over at the end of the test:",
            "  - scenario 'orders', agent?0?.otherwise?1? (say) must be reached, and was not",
            "*gobare timeline*",
            "*asks: ?",
        ]
    )
    assert "left over by tests that passed" not in result.stdout.str()


LEAVES = """
def test_left(gobare):
    say(gobare, "hello")
"""


@pytest.mark.parametrize(
    ("mark", "ini"),
    [
        ("@pytest.mark.gobare(strict=True)", ""),
        ("", "gobare_strict = true"),
        ("", "gobare_settings = strict=true"),
    ],
)
def test_strict_fails_a_test_for_what_it_leaves_over(mark: str, ini: str, run: Run) -> None:
    result = run(f"\n{mark}{LEAVES}", ini=ini)
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["  - session * was not deleted; request * made it"])


def test_a_marker_has_a_test_out_of_strict(run: Run) -> None:
    result = run(f"\n@pytest.mark.gobare(strict=False){LEAVES}", ini="gobare_strict = true")
    result.assert_outcomes(passed=1)


def test_what_is_left_over_is_otherwise_one_short_section_and_no_warning(run: Run) -> None:
    result = run(
        LEAVES
        + """
@pytest.mark.gobare(scenario=scenario({"ask": {"question": "?"}}, {"say": "x"}, times=2))
def test_more(gobare):
    say(gobare, "hello")
    say(gobare, "hello")

def test_clean(gobare):
    delete(gobare, say(gobare, "hello"))

def test_none():
    pass
""",
        "-W",
        "error",
    )
    result.assert_outcomes(passed=4)
    lines = result.stdout.str().partition("gobare: left over by tests that passed")[2].splitlines()[1:4]
    assert lines == [
        "test_it.py::test_left: 1 session",
        "test_it.py::test_more: 2 unanswered actions, 1 unreached step, 2 running turns, 2 sessions",
        "With gobare_strict = true these fail; gobare.report() has all of it.",
    ]


def test_many_tests_that_leave_something_are_not_all_named(run: Run) -> None:
    code = '\n@pytest.mark.parametrize("n", range(13))\ndef test_left(gobare, n):\n    say(gobare, "hello")\n'
    assert "… and 3 more tests" in run(code).stdout.str()
    assert "more tests" not in run(code, "-v").stdout.str()


@pytest.mark.parametrize(
    "ends", ["assert False", "pytest.skip('not today')", "pytest.xfail('known')"], ids=["failed", "skipped", "xfailed"]
)
def test_a_test_that_did_not_pass_by_itself_gets_no_second_failure(ends: str, run: Run) -> None:
    result = run(f"""
@pytest.mark.gobare(strict=True, scenario=scenario({{"ask": {{"question": "?"}}}}, {{"say": "x", "required": True}}))
def test_it(gobare):
    say(gobare, "hello")
    {ends}

def test_of_no_strictness(gobare):
    say(gobare, "hello")
    {ends}
""")
    outcomes = result.parseoutcomes()
    assert "errors" not in outcomes
    assert list(outcomes.values()) == [2]
    assert "gobare: left over" not in result.stdout.str()


def test_what_fixtures_clean_up_and_streams_closed_just_now_are_not_left_over(run: Run) -> None:
    result = run(
        """
@pytest.fixture
def session(gobare):
    session = say(gobare, "hello")
    yield session
    delete(gobare, session)

def test_cleaned(gobare, session):
    gobare.assert_clean(ignore=("sessions",))

@pytest.mark.parametrize("n", range(10))
def test_closed(gobare, n):
    headers = {"authorization": f"Bearer {gobare.token}"}
    request = urllib.request.Request(f"{gobare.url}/v1/events", headers=headers)
    with urllib.request.urlopen(request, timeout=10) as stream:
        assert stream.read(5) == b"retry"
""",
        ini="gobare_strict = true",
    )
    result.assert_outcomes(passed=11)


def test_the_loop_goes_round_for_a_stream_that_is_about_to_be_seen_closed(gobare: Emulator) -> None:
    feed = gobare.socket.deployment.feed
    with Api(gobare, "in-process").stream("/v1/events"):

        async def seen_later() -> None:
            asyncio.get_running_loop().call_soon(hop, 10)
            await let_streams_close(gobare)

        def hop(left: int) -> None:
            if left:
                asyncio.get_running_loop().call_soon(hop, left - 1)
            else:
                for reader in feed.readers():
                    feed.close(reader)

        gobare.run(seen_later())
        assert feed.readers() == []
    with Api(gobare, "in-process").stream("/v1/events"):
        gobare.run(let_streams_close(gobare))
        assert len(feed.readers()) == 1


def test_a_failed_test_is_told_why_no_rule_answered(run: Run) -> None:
    result = run("""
RULES = {"scenario": "orders", "agent": [
    {"when": {"message": {"contains": "order"}, "turn": 1}, "times": 1, "do": [{"say": "x"}]},
    {"when": {"message": {"contains": "weather"}}, "do": [{"say": "y"}]},
]}

@pytest.mark.gobare(scenario=RULES)
def test_it(gobare):
    say(gobare, "my order")
    say(gobare, "my order")
    assert gobare.transcript().last_message == "x"
""")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "*gobare timeline*",
            "*error     No rule of the script answers this message. scenario 'orders', agent?0?: used up after 1*",
            "*gobare unmatched messages*",
            "*no rule answered the message ?my order? of session *",
            "*scenario 'orders', agent?0?: used up after 1",
            "*scenario 'orders', agent?1?: message.contains: wanted ?weather?, was ?my order?",
        ]
    )


def test_what_no_rule_answered_is_told_once_where_it_is_what_failed(run: Run) -> None:
    result = run("""
RULES = {"agent": [{"when": {"message": {"contains": "order"}}, "do": [{"say": "x"}]}]}

@pytest.mark.gobare(strict=True, scenario=RULES)
def test_it(gobare):
    delete(gobare, say(gobare, "the weather"))
""")
    result.assert_outcomes(passed=1, errors=1)
    assert result.stdout.str().count("  - no rule answered the message") == 1
    result.stdout.no_fnmatch_line("*gobare unmatched messages*")


def test_a_long_timeline_is_shown_from_its_beginning_and_to_its_end(run: Run) -> None:
    result = run("""
def test_it(gobare):
    for number in range(60):
        delete(gobare, say(gobare, f"number {number}"))
    assert False
""")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*user      number 0 *", "(* lines are left out)", "*user      number 59 *"])
    result.stdout.no_fnmatch_line("*user      number 30 *")


def test_a_test_its_marker_took_out_is_not_said_to_fail_under_the_setting_it_runs_with(run: Run) -> None:
    result = run(
        """
@pytest.mark.gobare(strict=False)
def test_it(gobare):
    say(gobare, "hello")
""",
        ini="gobare_strict = true\n",
    )
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["test_it.py::test_it: 1 session", "gobare.report() has all of it."])


PAGES = """
def test_passes(gobare):
    delete(gobare, say(gobare, "hello"))

@pytest.mark.parametrize("name", ["a/b", "<c>"])
def test_fails(gobare, gobare_session, name):
    say(gobare, "look & <see>", tools=[{"type": "mcp", "name": "docs", "url": "https://x.example/mcp",
        "authorization": "canary-1", "headers": {"x-key": "canary-2"}}])
    say(gobare_session, "gbr_pat_canary-3")
    assert name == ""

@pytest.mark.gobare(strict=True)
def test_leaves(gobare):
    say(gobare, "hello")
"""


@pytest.mark.parametrize("options", [(), ("-n", "2")], ids=["alone", "workers"])
def test_pages_of_failed_tests_are_written_and_have_no_secret_in_them(
    options: tuple[str, ...], run: Run, pytester: pytest.Pytester
) -> None:
    result = run(PAGES, "--gobare-html", "out/pages", *options, alone=bool(options))
    result.assert_outcomes(passed=2, failed=2, errors=1)
    found = {path.name: path.read_text("utf-8") for path in (pytester.path / "out" / "pages").iterdir()}
    names = sorted(re.sub(r"-[0-9a-f]{8}", "", name) for name in found)
    assert names == [
        "test_it.py_test_fails_a_b-2.html",
        "test_it.py_test_fails_a_b.html",
        "test_it.py_test_fails_c-2.html",
        "test_it.py_test_fails_c.html",
        "test_it.py_test_leaves.html",
    ]
    for text in found.values():
        assert "canary" not in text
        assert 'class="failed"' in text
    leaves = next(text for name, text in found.items() if "leaves" in name)
    assert "was not deleted; request" in leaves
    assert sum("look &amp; &lt;see&gt;" in text for text in found.values()) == 2


def test_pages_of_passed_tests_are_written_where_that_is_asked_for(run: Run, pytester: pytest.Pytester) -> None:
    run(PAGES, "--gobare-html", "pages", "--gobare-html-all").assert_outcomes(passed=2, failed=2, errors=1)
    (passed,) = (path for path in (pytester.path / "pages").iterdir() if "test_passes" in path.name)
    assert 'class="passed"' in passed.read_text("utf-8")


def test_a_place_that_cannot_be_written_to_is_a_warning(run: Run, pytester: pytest.Pytester) -> None:
    pytester.makefile(".txt", pages="x")
    result = run(PAGES, "--gobare-html", "pages.txt", "-k", "test_leaves", "-W", "default")
    result.stdout.fnmatch_lines(["*PytestWarning: --gobare-html: *"])
    result.assert_outcomes(passed=1, errors=1, warnings=1, deselected=3)


def test_nothing_is_written_or_told_where_nobody_asked(run: Run, pytester: pytest.Pytester) -> None:
    result = run("\ndef test_it():\n    pass\n", "--gobare-html", "pages")
    result.assert_outcomes(passed=1)
    assert not (pytester.path / "pages").exists()
    assert "gobare" not in result.stdout.str().partition("plugins:")[2].partition("\n")[2]
