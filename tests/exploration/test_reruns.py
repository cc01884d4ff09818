"""Running a test again: what is new in every run, what stays, and that nothing of it shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.inner import Run

pytest_plugins = ("pytester",)

# What some of these runs answer is on purpose what today's document does not have.
pytestmark = pytest.mark.rigged

AGAIN = '@pytest.mark.gobare(explore="future_proof")\n'


def test_fixtures_of_function_scope_are_new_in_every_run_and_wider_ones_stay(run: Run) -> None:
    result = run("""
import pathlib
LOG = []

def fixture_of(scope, name):
    @pytest.fixture(scope=scope, name=name)
    def made():
        LOG.append(f"{name} up")
        yield object()
        LOG.append(f"{name} down")
    return made

module = fixture_of("module", "module")
of_class = fixture_of("class", "of_class")
function = fixture_of("function", "function")
unasked = pytest.fixture(autouse=True)(lambda request, function: LOG.append(f"auto {request.node.name}"))

KEPT = set()
PATHS = set()

class TestIt:
    @pytest.mark.gobare(explore="future_proof")
    @pytest.mark.parametrize("number", [1, 2])
    def test_it(self, gobare_env, module, of_class, function, monkeypatch, tmp_path, number, request):
        assert not hasattr(self, "seen") and "LEAKED" not in __import__("os").environ
        self.seen = True
        monkeypatch.setenv("LEAKED", "yes")
        assert not list(tmp_path.iterdir())
        (tmp_path / "file").write_text("x")
        PATHS.add(tmp_path)
        KEPT.add((id(module), id(of_class)))
        LOG.append(f"test {number}")
        assert len(gobare_env.requests) == 0
        open_session(gobare_env)

def test_after(module):
    assert len(PATHS) == 8 and len(KEPT) == 1
    one = ["function up", "auto test_it[N]", "test N", "function down"]
    expected = ["module up", "of_class up"]
    for number in "12":
        for _ in range(4):
            expected += [entry.replace("N", number) for entry in one]
    expected += ["of_class down", "function up", "auto test_after"]
    assert LOG == expected
""")
    result.assert_outcomes(passed=3)


def test_the_last_run_tears_down_what_nobody_needs_any_more(run: Run) -> None:
    result = run(f"""
LOG = []

@pytest.fixture(scope="class")
def of_class():
    yield
    LOG.append("down")
    raise LookupError("on the way down")

class TestIt:
    {AGAIN.strip()}
    def test_it(self, gobare, of_class):
        assert not LOG

def test_after():
    assert LOG == ["down"]
""")
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(["the run was explored with future_proof:items"])
    result.stdout.fnmatch_lines(["*ERROR at teardown of TestIt.test_it*", "*LookupError: on the way down*"])


def test_an_async_test_is_run_again_on_a_loop_of_its_own(run: Run) -> None:
    code = """
import asyncio
RUNS = []

@pytest.mark.MARK
@pytest.mark.gobare(explore="future_proof")
async def test_it(gobare):
    loop = asyncio.get_running_loop()
    assert loop not in RUNS
    RUNS.append(loop)
    session = await asyncio.to_thread(open_session, gobare)
    assert (await gobare.aio.events(session["id"]))
    assert "future_field" not in session

def test_after():
    assert len(RUNS) == 4
"""
    run(code.replace("MARK", "asyncio")).assert_outcomes(passed=2)
    run(
        code.replace("MARK", "anyio") + "\n@pytest.fixture\ndef anyio_backend():\n    return 'asyncio'\n"
    ).assert_outcomes(passed=2)


def test_an_async_client_that_breaks_is_found(run: Run) -> None:
    result = run("""
import asyncio

@pytest.mark.asyncio
@pytest.mark.gobare(explore="future_proof")
async def test_it(gobare):
    session = await asyncio.to_thread(open_session, gobare)
    if "future_field" in session:
        raise KeyError("future_field")
""")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["1 of 3 explored runs failed; the first was future_proof:fields *"])


def test_a_test_of_a_worker_is_run_again_there_and_told_of_here(run: Run) -> None:
    result = run(
        f"""
{AGAIN}
def test_it(gobare):
    if "future_field" in open_session(gobare):
        raise KeyError("future_field")

{AGAIN}
def test_another(gobare_session):
    open_session(gobare_session)
""",
        "-n",
        "1",
        alone=True,
    )
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["1 of 3 explored runs failed; the first was future_proof:fields *"])
    result.stdout.fnmatch_lines_random(["test_it.py::test_it: run again 3 times*", "test_it.py::test_another: run*"])


def test_a_test_case_of_unittest_is_run_again(run: Run) -> None:
    result = run(f"""
import unittest
RUNS = []

class TestIt(unittest.TestCase):
    def setUp(self):
        self.session = open_session(self.gobare)

    @pytest.fixture(autouse=True)
    def emulator(self, gobare):
        self.gobare = gobare

    {AGAIN.strip()}
    def test_it(self):
        RUNS.append(self)
        self.assertEqual(len(self.gobare.requests), 1)

def test_after():
    assert len(set(map(id, RUNS))) == 4
""")
    result.assert_outcomes(passed=2)


def test_what_a_run_prints_and_notes_is_told_once(run: Run, pytester: pytest.Pytester) -> None:
    result = run(
        f"""
{AGAIN}
def test_it(gobare, record_property, request):
    if request.node.user_properties:
        raise LookupError("of an earlier run")
    print("said", "once")
    record_property("noted", "once")
""",
        "-rP",
        "--junitxml=told.xml",
        "-o",
        "junit_family=xunit1",
    )
    result.assert_outcomes(passed=1)
    assert result.stdout.str().count("said once") == 1
    xml = (pytester.path / "told.xml").read_text()
    assert xml.count('name="noted"') == 1


def test_a_fixture_that_fails_in_an_explored_run_is_told_with_its_setting(run: Run) -> None:
    result = run(f"""
@pytest.fixture
def session(gobare):
    session = open_session(gobare)
    if "future_field" in session:
        raise KeyError("in a fixture")
    yield session

{AGAIN}
def test_it(session):
    pass
""")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["1 of 3 explored runs failed; the first was future_proof:fields *", "*in a fixture*"])


def test_a_test_that_fails_or_is_skipped_by_itself_is_not_explored(run: Run) -> None:
    result = run(f"""
RUNS = []

{AGAIN}
def test_failing(gobare):
    RUNS.append(1)
    assert False

{AGAIN}
def test_skipped(gobare):
    RUNS.append(1)
    pytest.skip("not today")

{AGAIN}
@pytest.mark.xfail(reason="known", strict=True)
def test_expected_to_fail(gobare):
    RUNS.append(1)
    assert False

@pytest.fixture
def broken():
    raise LookupError("broken")

{AGAIN}
def test_broken(gobare, broken):
    RUNS.append(1)

def test_after():
    assert len(RUNS) == 3
""")
    result.assert_outcomes(passed=1, failed=1, skipped=1, xfailed=1, errors=1)
    assert "gobare exploration" not in result.stdout.str()
