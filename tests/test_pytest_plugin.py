"""The fixtures as a stranger uses them: test files of their own, run by a pytest of their own."""

from __future__ import annotations

import re

import pytest

from tests.inner import Run

pytest_plugins = ("pytester",)

CALL = """
import json, urllib.error, urllib.request

def call(api, method, path, body=None, token=None):
    data = None if body is None else json.dumps(body).encode()
    headers = {"authorization": f"Bearer {token or api.token}", "content-type": "application/json"}
    request = urllib.request.Request(api.url + path, data, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return json.load(error)

def say(api, text, **agent):
    return call(api, "POST", "/v1/sessions", {"input": text, "agent": agent})
"""


@pytest.fixture
def run(pytester: pytest.Pytester) -> Run:
    """Runs a test file with the helper functions of `CALL` in it."""
    return Run(pytester, CALL)


def test_a_fresh_emulator_for_each_test(run: Run) -> None:
    result = run("""
def test_one(gobare):
    assert len(call(gobare, "GET", "/v1/sessions")["data"]) == 0
    say(gobare, "hello")

def test_two(gobare):
    assert len(call(gobare, "GET", "/v1/sessions")["data"]) == 0
""")
    result.assert_outcomes(passed=2)


def test_a_script_error_fails_the_test_in_its_call_phase_with_its_own_traceback(run: Run) -> None:
    result = run("""
def helper_of_the_script():
    raise LookupError("the warehouse is closed")

def test_it(gobare):
    @gobare.agent
    async def agent(turn):
        helper_of_the_script()

    assert say(gobare, "hello")["status"] == "failed"
""")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*helper_of_the_script*", "*LookupError: the warehouse is closed*"])


def test_an_undeclared_function_is_a_script_error(run: Run) -> None:
    result = run("""
def test_it(gobare):
    @gobare.agent
    async def agent(turn):
        await turn.call("lookup_order")

    say(gobare, "hello")
""")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*ScriptError: the agent called the function 'lookup_order', which this session*"])


def test_pytest_fail_and_a_failed_assertion_inside_an_agent_fail_the_test(run: Run) -> None:
    result = run("""
import pytest

def test_fail(gobare):
    @gobare.agent
    async def agent(turn):
        pytest.fail("not like this")
    say(gobare, "hello")

def test_assert(gobare):
    @gobare.agent
    async def agent(turn):
        assert turn.message == "goodbye"
    say(gobare, "hello")
""")
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["*not like this*"])
    result.stdout.fnmatch_lines(["*assert *hello* == *goodbye*"])


def test_a_script_that_raises_system_exit_fails_its_test_and_not_the_run(run: Run) -> None:
    result = run("""
def test_one(gobare):
    @gobare.agent
    async def agent(turn):
        raise SystemExit(3)
    say(gobare, "hello")

def test_two(gobare):
    assert say(gobare, "hello")["status"] == "idle"
""")
    result.assert_outcomes(failed=1, passed=1)


def test_a_failing_test_shows_its_transcript_and_its_requests_without_secrets(run: Run) -> None:
    result = run("""
def test_it(gobare):
    tools = [{"type": "mcp", "name": "docs", "url": "https://x.example/mcp", "authorization": "canary-1",
              "headers": {"x-key": "canary-2"}}]
    say(gobare, "the message of this test", tools=tools)
    call(gobare, "GET", "/v1/sessions", token="gbr_pat_canary-3")
    assert False
""")
    result.assert_outcomes(failed=1)
    text = result.stdout.str()
    assert "gobare timeline" in text
    assert "the message of this test" in text.partition("gobare timeline")[2]
    assert re.search(r"201 POST /v1/sessions", text)
    assert re.search(r"401 authentication_error GET /v1/sessions \w{8}\n +This access token is not recognized", text)
    assert "canary" not in text.partition("gobare timeline")[2]


def test_a_failing_test_shows_what_its_script_raised_too(run: Run) -> None:
    result = run("""
def test_it(gobare):
    @gobare.agent
    async def agent(turn):
        raise LookupError("the cause")
    assert say(gobare, "hello")["status"] == "idle"
""")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*gobare script*", "*LookupError: the cause*"])


def test_the_marker_sets_the_scenario_and_settings(run: Run, pytester: pytest.Pytester) -> None:
    pytester.makefile(".yaml", hello="agent: [{otherwise: [{say: from the file}]}]")
    result = run("""
import pytest

@pytest.mark.gobare(scenario="hello.yaml", seed=5, session_limit=1)
def test_it(gobare):
    say(gobare, "hello")
    assert gobare.transcript().last_message == "from the file"
    assert gobare.settings.get()["seed"] == 5
    assert say(gobare, "again")["error"]["code"] == "project_limit_exceeded"
""")
    result.assert_outcomes(passed=1)


def test_the_ini_file_sets_the_scenario_and_settings_and_the_marker_wins(run: Run, pytester: pytest.Pytester) -> None:
    pytester.makefile(".yaml", hello="agent: [{otherwise: [{say: from the ini}]}]")
    result = run(
        """
import pytest

@pytest.mark.gobare(seed=5)
def test_it(gobare):
    say(gobare, "hello")
    assert gobare.transcript().last_message == "from the ini"
    settings = gobare.settings.get()
    assert (settings["seed"], settings["queue_limit"]) == (5, 2)
""",
        ini="gobare_scenario = hello.yaml\ngobare_settings =\n    seed = 4\n    queue_limit = 2\n",
    )
    result.assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("mark", "said"),
    [
        ("sed=5", "`sed` is not a setting. Did you mean `seed`?"),
        ('seed="five"', "`seed` is an integer, which 'five' is not"),
        ('scenario="nowhere.yaml"', "there is no scenario file nowhere.yaml"),
        ('"positional"', "the gobare marker takes names"),
    ],
)
def test_a_wrong_marker_is_a_usage_error(run: Run, mark: str, said: str) -> None:
    result = run(f"import pytest\n\n@pytest.mark.gobare({mark})\ndef test_it(gobare):\n    pass\n")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*{said.replace('`', '?')}*"])


@pytest.mark.parametrize("ini", ["gobare_settings = sed=5", "gobare_settings = seed", "gobare_scenario = nowhere.yaml"])
def test_a_wrong_ini_line_is_a_usage_error(run: Run, ini: str) -> None:
    result = run("def test_it():\n    pass\n", ini=ini)
    assert result.ret == pytest.ExitCode.USAGE_ERROR


def test_the_session_fixture_keeps_its_address_and_is_reset(run: Run) -> None:
    result = run("""
import pytest
seen = []

@pytest.mark.parametrize("n", range(3))
def test_it(gobare_session, n):
    seen.append(gobare_session.url)
    assert len(set(seen)) == 1
    assert call(gobare_session, "GET", "/v1/sessions")["data"] == []
    assert len(gobare_session.requests) == 1
    say(gobare_session, "hello")

@pytest.mark.gobare(session_limit=1)
def test_with_settings(gobare_session):
    assert gobare_session.url in seen
    assert gobare_session.settings.get()["session_limit"] == 1

def test_without(gobare_session):
    assert gobare_session.settings.get()["session_limit"] == 25
""")
    result.assert_outcomes(passed=5)


def test_the_environment_fixture_sets_both_variables(run: Run) -> None:
    result = run("""
import os

def test_fresh(gobare_env):
    assert os.environ["GOBARE_API"] == gobare_env.url
    assert os.environ["GOBARE_TOKEN"] == gobare_env.token

def test_shared(gobare_session, gobare_env):
    assert os.environ["GOBARE_API"] == gobare_session.url

def test_gone():
    assert "GOBARE_API" not in os.environ
""")
    result.assert_outcomes(passed=3)


def test_it_runs_in_workers(run: Run) -> None:
    result = run(
        """
import pytest

@pytest.mark.parametrize("n", range(8))
def test_it(gobare, gobare_session, n):
    for api in (gobare, gobare_session):
        assert say(api, "hello")["status"] == "idle"
""",
        "-n",
        "2",
        alone=True,
    )
    result.assert_outcomes(passed=8)


@pytest.mark.parametrize("kind", ["asyncio", "anyio-asyncio", "anyio-trio"])
def test_it_works_in_async_tests_and_a_receiver_on_the_tests_loop_can_be_called_meanwhile(run: Run, kind: str) -> None:
    mark = "asyncio" if kind == "asyncio" else "anyio"
    backend = "asyncio" if kind != "anyio-trio" else "trio"
    result = run(f"""
import anyio
import pytest

@pytest.fixture
def anyio_backend():
    return "{backend}"

@pytest.mark.{mark}
async def test_it(gobare):
    called = []

    async def receive(stream):
        async with stream:
            await stream.receive()
            called.append(True)
            await stream.send(b"HTTP/1.1 200 OK\\r\\ncontent-length: 2\\r\\nconnection: close\\r\\n\\r\\n{{}}")

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(anyio.abc.SocketAttribute.local_port)

    @gobare.agent
    async def agent(turn):
        await turn.wait(30)
        def ring():
            urllib.request.urlopen(f"http://127.0.0.1:{{port}}/", timeout=10).read()
        await anyio.to_thread.run_sync(ring)
        await turn.say("rang")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, receive)
        await anyio.to_thread.run_sync(say, gobare, "hello")
        await gobare.aio.clock.advance(30)
        assert called == [True]
        assert (await gobare.aio.transcript()).last_message == "rang"
        tasks.cancel_scope.cancel()
    await listener.aclose()
""")
    result.assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("imports", "frozen"),
    [
        ("import freezegun", 'freezegun.freeze_time("2030-01-01")'),
        ("import time_machine", 'time_machine.travel("2030-01-01", tick=False)'),
    ],
)
def test_a_users_frozen_time_does_not_stop_the_server(run: Run, imports: str, frozen: str) -> None:
    result = run(f"""
{imports}
import datetime

@{frozen}
def test_decorated(gobare):
    assert say(gobare, "hello")["status"] == "idle"
    assert datetime.datetime.now().year == 2030

def test_inside(gobare):
    @gobare.agent
    async def agent(turn):
        await turn.wait(10)
        await turn.say("later")
    with {frozen}:
        say(gobare, "hello")
        gobare.clock.advance(10)
        assert gobare.transcript().last_message == "later"
""")
    result.assert_outcomes(passed=2)


def test_the_handle_refuses_to_wait_for_itself_inside_an_agent(run: Run) -> None:
    result = run("""
import pytest

def test_it(gobare):
    @gobare.agent
    async def agent(turn):
        with pytest.raises(RuntimeError, match="awaitable handle"):
            gobare.clock.advance(1)
        await turn.say(str(await gobare.aio.clock.now() > 0))
    say(gobare, "hello")
    assert gobare.transcript().last_message == "True"
""")
    result.assert_outcomes(passed=1)


def test_stopping_with_streams_open_takes_no_time_and_prints_nothing(run: Run) -> None:
    result = run(
        """
import time
started = []

def test_open(gobare):
    session = say(gobare, "hello")["id"]
    for _ in range(3):
        path = f"{gobare.url}/v1/sessions/{session}/events"
        request = urllib.request.Request(path, headers={"authorization": f"Bearer {gobare.token}"})
        started.append(urllib.request.urlopen(request, timeout=10))
    assert all(answer.read(5) == b"retry" for answer in started)
    started.append(time.monotonic())

def test_after():
    assert time.monotonic() - started.pop() < 0.9
    for answer in started:
        answer.close()
""",
        "-s",
        alone=True,
    )
    result.assert_outcomes(passed=2)
    assert "Traceback" not in result.stdout.str() + result.stderr.str()
    assert result.stderr.str() == ""


def test_an_agent_that_blocks_the_loop_is_named_and_the_next_test_is_served(run: Run) -> None:
    result = run(
        """
import time
import http.client

def test_busy(gobare):
    @gobare.agent
    async def agent(turn):
        while True:
            pass
    say(gobare, "hello")

def test_sleeping(gobare):
    @gobare.agent
    async def agent(turn):
        time.sleep(40)  # nothing can interrupt this
    try:
        say(gobare, "hello")
    except (OSError, http.client.HTTPException):
        pass

def test_next(gobare):
    assert say(gobare, "hello")["status"] == "idle"
""",
        "--durations=3",
        alone=True,
    )
    result.assert_outcomes(failed=2, passed=1)
    result.stdout.fnmatch_lines(["*blocks the event loop*", "*while True:*"])
    result.stdout.fnmatch_lines(["*cannot be interrupted*", "*time.sleep(40)*"])
    slowest = max(float(seconds) for seconds in re.findall(r"^([\d.]+)s call", result.stdout.str(), re.MULTILINE))
    assert slowest < 9


def test_a_script_error_while_a_fixture_is_torn_down_is_an_error(run: Run) -> None:
    result = run("""
import pytest

@pytest.fixture
def product(gobare):
    yield
    @gobare.agent
    async def agent(turn):
        raise LookupError("at the very end")
    say(gobare, "goodbye")

def test_it(product):
    pass
""")
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*LookupError: at the very end*"])


def test_a_reset_does_not_forget_what_a_script_did(run: Run) -> None:
    result = run("""
def test_it(gobare):
    @gobare.agent
    async def agent(turn):
        raise LookupError("before the reset")
    say(gobare, "hello")
    gobare.reset()

def test_next(gobare_session):
    @gobare_session.agent
    async def agent(turn):
        raise LookupError("of this test only")
    say(gobare_session, "hello")
    gobare_session.reset()

def test_after(gobare_session):
    pass
""")
    result.assert_outcomes(failed=2, passed=1)
    result.stdout.fnmatch_lines(["*LookupError: before the reset*"])


def test_every_session_and_every_script_error_of_a_failed_test_is_shown(run: Run) -> None:
    result = run("""
def test_it(gobare):
    @gobare.agent
    async def agent(turn):
        raise LookupError(f"problem {turn.message}")
    say(gobare, "one")
    say(gobare, "two")
""")
    result.assert_outcomes(failed=1)
    text = result.stdout.str()
    timeline = text.partition("gobare timeline")[2]
    assert re.findall(r"error +The script failed at .*: LookupError: problem (\w+)", timeline) == ["one", "two"]
    assert "LookupError: problem one" in text.partition("gobare script")[0]
    assert "LookupError: problem two" in text.partition("gobare script")[2]


def test_the_traceback_of_a_script_error_has_the_scripts_frames_only(run: Run) -> None:
    result = run("""
def test_it(gobare):
    @gobare.agent
    async def agent(turn):
        await turn.call("nobody_declared_it")
    say(gobare, "one")
""")
    result.assert_outcomes(failed=1)
    text = result.stdout.str().partition("Captured log")[0]
    assert '>       await turn.call("nobody_declared_it")' in text
    assert "engine.py" not in text
    assert "turn.py" not in text


def test_an_error_of_a_scenario_is_one_line_with_its_step(run: Run) -> None:
    result = run("""
import pytest

@pytest.mark.gobare(scenario={"agent": [{"otherwise": [{"say": "hi"}, {"call": {"function": "zz"}}]}]})
def test_it(gobare):
    say(gobare, "one")
""")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*the scenario failed at agent?0?.otherwise?1?: *'zz'*"])
    assert "player.py" not in result.stdout.str()


def test_a_wrong_scenario_is_a_usage_error_before_anything_runs(run: Run) -> None:
    result = run("""
import pytest

@pytest.mark.gobare(scenario={"agent": [{"otherwise": [{"sya": "hi"}]}]})
def test_it(gobare):
    pass
""")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*sya is not a verb*say*"])


def test_a_wrong_scenario_of_the_ini_file_stops_the_run_too(run: Run, pytester: pytest.Pytester) -> None:
    pytester.makefile(".yaml", hello="agent: [{otherwise: [{sya: x}]}]")
    result = run("def test_it(gobare):\n    pass\n", ini="gobare_scenario = hello.yaml\n")
    assert result.ret == pytest.ExitCode.USAGE_ERROR


def test_what_cannot_be_an_agent_is_refused_where_it_is_written(run: Run) -> None:
    result = run("""
import pytest

def test_it(gobare):
    with pytest.raises(TypeError, match="coroutine function"):
        gobare.agent(lambda turn: None)
    with pytest.raises(TypeError, match="one argument"):
        @gobare.aio.agent
        async def agent():
            pass
""")
    result.assert_outcomes(passed=1)


def test_a_served_mcp_server_is_a_fixture_of_the_tests_emulator(run: Run) -> None:
    result = run("""
def test_it(mcp_server, gobare):
    assert mcp_server.url == f"{gobare.url}/_mcp/served"
    mcp_server.offer({"search": {"text": "found"}})
    assert mcp_server.requests == [] and mcp_server.calls == []

def test_for_the_session(gobare_session, mcp_server):
    assert mcp_server.url == f"{gobare_session.url}/_mcp/served"

def test_alone(mcp_server):
    assert mcp_server.requests == []
""")
    result.assert_outcomes(passed=3)
