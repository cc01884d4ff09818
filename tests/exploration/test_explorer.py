"""The explorer: what it runs, how it is asked, where it stops, and what it tells."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from emulator.exploration import explorer

if TYPE_CHECKING:
    from tests.inner import Run

pytest_plugins = ("pytester",)

# What some of these runs answer is on purpose what today's document does not have.
pytestmark = pytest.mark.rigged

TALK = """
RUNS = []

def talk(gobare, explored=""):
    @gobare.invariant
    def note(gobare, run):
        RUNS.append(run.variant)

    session = open_session(gobare)
    for n in range(3):
        send(gobare, session["id"], type="input.message", content=f"message {n}")
    if succeed(gobare, session, session["required_actions"][0])["outcome"] == "not_delivered":
        send(gobare, session["id"], type="input.cancel")
    follow(gobare, session["id"])
"""


def variants(result: pytest.RunResult) -> list[str]:
    """The variants a run has printed."""
    return re.findall(r"ran (\S+)", result.stdout.str())


PRINTED = "\ndef test_after():\n    for run in RUNS:\n        print('ran', run or 'itself')\n"


def test_more_than_the_limit_is_sampled_by_the_seed_in_the_order_of_the_run(run: Run) -> None:
    def sample(*, seed: int, limit: int) -> list[str]:
        code = f'{TALK}\n@pytest.mark.gobare(explore="resume_everywhere", explore_limit={limit}, seed={seed})\n'
        result = run(code + "def test_it(gobare):\n    talk(gobare)\n" + PRINTED, "-s")
        result.assert_outcomes(passed=2)
        assert "left out" in result.stdout.str()
        result.stdout.fnmatch_lines([f"test_it.py::test_it: run again {limit} times, * left out for explore_limit"])
        return variants(result)

    first = sample(seed=1, limit=4)
    assert first[0] == "itself"
    assert len(first) == 5
    numbers = [int(name.partition(":")[2]) for name in first[1:]]
    assert numbers == sorted(numbers)
    assert sample(seed=1, limit=4) == first
    assert sample(seed=2, limit=4) != first
    assert set(sample(seed=1, limit=5)) > set(first)


def test_the_same_seed_gives_the_same_runs(run: Run) -> None:
    code = (
        f'{TALK}\n@pytest.mark.gobare(explore=["race", "resume_everywhere"])\ndef test_it(gobare):\n    talk(gobare)\n'
    )
    first, second = variants(run(code + PRINTED, "-s")), variants(run(code + PRINTED, "-s"))
    assert first == second
    assert {"itself", "race:1:deadline", "resume_everywhere:1"} < set(first)
    assert len(first) == len(set(first))


def test_exploring_stops_when_its_time_is_up_and_says_so(run: Run) -> None:
    code = f'{TALK}\n@pytest.mark.gobare(explore="race", explore_seconds=0)\ndef test_it(gobare):\n    talk(gobare)\n'
    result = run(code + PRINTED, "-s")
    assert variants(result) == ["itself"]
    result.stdout.fnmatch_lines(["test_it.py::test_it: run again 0 times, 5 left out for explore_seconds"])


def test_a_client_that_does_not_come_to_an_end_is_found_and_ends(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explorer, "_LEAST_SECONDS", 1.0)
    monkeypatch.setattr(explorer, "_TIMES_AS_LONG", 0.5)
    result = run("""
@pytest.mark.gobare(explore="race")
def test_it(gobare):
    @gobare.agent
    async def agent(turn):
        await turn.call("lookup")

    session = open_session(gobare)
    try:
        succeed(gobare, session, session["required_actions"][0])
    except OSError:
        return
    # Whatever came of it: a turn that is never resumed has no end.
    follow(gobare, session["id"])
""")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["1 of 3 explored runs failed; the first was race:1:not_delivered *"])
    result.stdout.fnmatch_lines(["The run did not come to an end within *"])
    result.stdout.fnmatch_lines(["test_it.py::test_it: run again 3 times, 2 left out after one that did not end"])


def test_a_client_that_goes_on_in_spite_of_everything_is_ended(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explorer, "_LEAST_SECONDS", 1.0)
    monkeypatch.setattr(explorer, "_TIMES_AS_LONG", 0.5)
    monkeypatch.setattr(explorer, "_LAST_SECONDS", 0.3)
    result = run("""
@pytest.mark.gobare(explore="future_proof")
def test_it(gobare):
    session = open_session(gobare)
    while "future_field" in session:
        threading.Event().wait(0.05)
        try:
            call(gobare, "GET", f"/v1/sessions/{session['id']}")
        except Exception:
            pass
""")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["1 of 2 explored runs failed; the first was future_proof:fields *"])


def test_an_invariant_must_hold_in_an_ordinary_run_too(run: Run) -> None:
    code = """
def nothing_is_left(gobare):
    assert not gobare.report()["undeleted"]["sessions"]

@pytest.mark.gobare(invariant=nothing_is_left)
def test_it(gobare):
    open_session(gobare)
"""
    run(code).assert_outcomes(failed=1)
    run(code.replace("invariant=nothing_is_left", "invariant=[nothing_is_left, print]")).assert_outcomes(failed=1)
    run(code.replace("open_session(gobare)", "pass")).assert_outcomes(passed=1)


def test_what_is_no_plain_function_is_no_invariant(run: Run) -> None:
    result = run("""
def test_it(gobare):
    with pytest.raises(TypeError, match="plain function"):
        gobare.invariant(3)
    with pytest.raises(TypeError, match="plain function"):
        @gobare.invariant
        async def holds():
            pass

    @gobare.invariant
    def kept(expected=None):
        assert expected is None

    kept()
""")
    result.assert_outcomes(passed=1)


def test_an_assertion_of_the_happy_path_does_not_count_but_an_error_does(run: Run) -> None:
    code = """
@pytest.mark.gobare(explore="race:1:cancelled")
def test_it(gobare):
    session = open_session(gobare)
    try:
        succeed(gobare, session, session["required_actions"][0])
    except OSError:
        raises
"""
    run(code.replace("raises", "assert False")).assert_outcomes(passed=1)
    run(code.replace("raises", "pytest.fail('no')")).assert_outcomes(passed=1)
    run(code.replace("raises", "pytest.skip('no')")).assert_outcomes(passed=1)
    run(code.replace("raises", "raise ExceptionGroup('both', [AssertionError()])")).assert_outcomes(passed=1)
    run(code.replace("raises", "raise ExceptionGroup('both', [AssertionError(), KeyError()])")).assert_outcomes(
        failed=1
    )
    run(code.replace("raises", "raise LookupError")).assert_outcomes(failed=1)


def test_a_test_that_cannot_be_run_again_is_told_by_the_run_in_which_nothing_is_different(run: Run) -> None:
    result = run("""
RUNS = []

@pytest.mark.gobare(explore="race")
def test_it(gobare):
    session = open_session(gobare)
    succeed(gobare, session, session["required_actions"][0])
    RUNS.append(1)
    assert len(RUNS) == 1
""")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*the first was race:1:accepted *"])


def test_a_script_that_fails_in_an_explored_run_is_no_fault_of_the_client(run: Run) -> None:
    result = run("""
@pytest.mark.gobare(explore="race")
def test_it(gobare):
    @gobare.agent
    async def agent(turn):
        result = await turn.call("lookup")
        await turn.say(result.output.upper())

    @gobare.invariant
    def holds():
        pass

    session = open_session(gobare)
    succeed(gobare, session, session["required_actions"][0])
""")
    result.assert_outcomes(passed=1)


def test_it_is_asked_for_on_the_command_line_and_in_the_ini_file_too(run: Run) -> None:
    code = "def test_it(gobare):\n    open_session(gobare)\n\ndef test_other():\n    pass\n"
    said = "test_it.py::test_it: run again 3 times*"
    run(code, "--gobare-explore", "future_proof").stdout.fnmatch_lines([said])
    run(code, ini="gobare_settings = explore=future_proof").stdout.fnmatch_lines([said])
    both = run(code, "--gobare-explore=resume_everywhere", "--gobare-explore=future_proof:items")
    both.stdout.fnmatch_lines(["test_it.py::test_it: run again once*"])
    assert "gobare exploration" not in run(code, "--setup-only", "--gobare-explore", "future_proof").stdout.str()


@pytest.mark.parametrize("named", ["racing", "race:1:lost", "future_proof:webhooks", "race:"])
def test_what_is_no_mode_and_no_variant_is_refused(run: Run, named: str) -> None:
    code = "def test_it(gobare):\n    pass\n"
    refused = run(code, "--gobare-explore", named)
    refused.stderr.fnmatch_lines(["*--gobare-explore: `explore`*"])
    marked = run(f'@pytest.mark.gobare(explore="{named}")\n{code}')
    assert marked.ret == pytest.ExitCode.USAGE_ERROR


def test_an_emulator_that_a_fixture_of_the_users_hands_on_is_explored(run: Run) -> None:
    result = run("""
@pytest.fixture
def product(gobare_session):
    return lambda: open_session(gobare_session)

@pytest.mark.gobare(explore="future_proof")
def test_it(product):
    if "future_field" in product():
        raise KeyError("future_field")
""")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["1 of 3 explored runs failed; the first was future_proof:fields *"])


def test_a_product_in_a_process_of_its_own_is_explored(run: Run) -> None:
    result = run("""
import subprocess, sys

PRODUCT = '''
import json, os, urllib.request
headers = {"authorization": "Bearer " + os.environ["GOBARE_TOKEN"], "content-type": "application/json"}
sent = urllib.request.Request(os.environ["GOBARE_API"] + "/v1/sessions", b"{}", headers)
with urllib.request.urlopen(sent, timeout=20) as answer:
    assert "future_field" not in json.load(answer)
'''

@pytest.mark.gobare(explore=["future_proof:items", "future_proof:fields"])
def test_it(gobare_env):
    subprocess.run([sys.executable, "-S", "-c", PRODUCT], check=True, timeout=60, stderr=subprocess.DEVNULL)
""")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["1 of 2 explored runs failed; the first was future_proof:fields"])


def test_a_test_that_stops_its_emulator_is_explored_no_further(run: Run) -> None:
    result = run("""
@pytest.mark.gobare(explore=["race", "future_proof:items"])
def test_it(gobare):
    open_session(gobare)
    gobare.stop()
""")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["test_it.py::test_it: run again once"])


def test_a_variant_outlives_a_reset_in_the_test(run: Run) -> None:
    result = run("""
@pytest.mark.gobare(explore="future_proof:fields")
def test_it(gobare):
    gobare.reset()
    if "future_field" in open_session(gobare):
        raise KeyError("future_field")
""")
    result.assert_outcomes(failed=1)


def test_nothing_is_imported_where_nothing_is_explored(run: Run) -> None:
    result = run(
        """
import sys

def test_it(gobare):
    open_session(gobare)
    assert not [name for name in sys.modules if name.startswith("emulator.exploration")]
""",
        alone=True,
    )
    result.assert_outcomes(passed=1)
