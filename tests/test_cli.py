"""The command line, as a command and from within."""

from __future__ import annotations

import dataclasses
import errno
import http.client
import io
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import jsonschema
import pytest
import yaml

from emulator import __version__, cli
from emulator.clock import stopwatch
from emulator.command import stop_on_signals
from emulator.domain.access import DEFAULT_SCOPES, SCOPES
from emulator.settings import Settings, as_json
from tests.served import COMMAND, ROOT, Served, ask, environment, run
from tests.support import WAIT

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

BEARER = "Bearer gbr_pat_emulator"
CANARY = "gbr_pat_canary"


class Screen(io.StringIO):
    """A standard output that tells when the greeting has been printed."""

    def __init__(self) -> None:
        super().__init__()
        self.greeted = threading.Event()

    def write(self, text: str) -> int:
        written = super().write(text)
        if "export GOBARE_TOKEN" in self.getvalue():
            self.greeted.set()
        return written

    @property
    def url(self) -> str:
        found = re.search(r"http://\S+", self.getvalue())
        assert found is not None
        return found[0]


def serve_here(
    monkeypatch: pytest.MonkeyPatch, *arguments: str, meanwhile: Callable[[str], Any] = lambda url: None
) -> tuple[str, Any]:
    """Run `serve` in this process until `meanwhile(url)` is done; what it printed, and what that gave."""
    screen = Screen()
    monkeypatch.setattr(sys, "stdout", screen)
    given: list[Any] = []
    ended = threading.Event()

    def visit() -> None:
        if not screen.greeted.wait(WAIT):
            return
        try:
            given.append(meanwhile(screen.url))
        finally:
            if not ended.is_set():
                os.kill(os.getpid(), signal.SIGTERM)

    visitor = threading.Thread(target=visit)
    visitor.start()
    try:
        status = cli.main(["serve", *arguments])
    finally:
        ended.set()
        visitor.join(WAIT)
    assert status == 0
    assert given, "it ended before it was asked to"
    return screen.getvalue(), given[0]


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Run a command that must be refused, and give the one line it said."""
    assert cli.main(list(arguments)) == 2
    printed, complained = capsys.readouterr()
    assert printed == ""
    assert complained.startswith("gobare-emulator: ")
    assert complained.endswith("\n")
    assert complained.count("\n") == 1
    return complained


# serve, as a command


def test_serve_prints_the_url_once_it_answers_and_the_two_exports() -> None:
    with Served() as served:
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+", served.url)
        assert served.greeting == [
            f"Gobare emulator {__version__} answers on {served.url}\n",
            f"export GOBARE_API={served.url}\n",
            "export GOBARE_TOKEN=gbr_pat_emulator\n",
        ]
        health = ask(served.url, "GET", "/v1/health", authorization=BEARER)
        assert health.json["scopes"] == list(DEFAULT_SCOPES)
        settings = ask(served.url, "GET", "/_emulator/settings").json
        assert settings == as_json(Settings(pace="realistic", clock="real"))
        assert served.stop() == (0, "", "")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_it_at_once_and_in_silence_with_a_stream_open_and_a_turn_waiting(number: int) -> None:
    with Served() as served:
        path = "/v1/sessions"
        tool = {"type": "function", "name": "lookup_order"}
        session = ask(served.url, "POST", path, {"agent": {"tools": [tool]}}, authorization=BEARER).json["id"]
        stream = http.client.HTTPConnection(urlsplit(served.url).netloc, timeout=WAIT)
        stream.request("GET", f"{path}/{session}/events", headers={"authorization": BEARER})
        response = stream.getresponse()
        message = {"events": [{"type": "input.message", "content": "hello"}]}
        assert ask(served.url, "POST", f"{path}/{session}/events", message, authorization=BEARER).status == 202
        read = b""
        while b"tool.required" not in read:
            more = response.read1(65536)
            assert more, read
            read += more
        idle = http.client.HTTPConnection(urlsplit(served.url).netloc, timeout=WAIT)
        idle.connect()
        began = stopwatch()
        assert served.stop(number) == (0, "", "")
        assert stopwatch() - began < 1
        response.close()
        stream.close()
        idle.close()


def test_the_second_on_a_port_is_refused() -> None:
    with Served() as served:
        port = urlsplit(served.url).port
        second = run("serve", "--port", str(port))
        assert second.returncode == 2
        assert second.stdout == ""
        assert second.stderr == (
            f"gobare-emulator: port {port} of 127.0.0.1 is in use. Choose another, or --port 0 for any that is free.\n"
        )
        assert ask(served.url, "GET", "/_emulator/health").status == 200


def test_variables_set_what_flags_do_not_and_foreign_ones_are_passed_over() -> None:
    env = {
        "GOBARE_EMULATOR_SEED": "7",
        "GOBARE_EMULATOR_PACE": "instant",
        "GOBARE_EMULATOR_DISABLED_TOOLS": "browse,screenshot",
        "GOBARE_EMULATOR_SCENARIO": os.pathsep.join(
            [str(ROOT / "fixtures" / "order_lookup.yaml"), str(ROOT / "fixtures" / "release_gate.yaml")]
        ),
        "GOBARE_EMULATOR_TOKEN": f"{CANARY}_a {CANARY}_b:sessions:read",
        "GOBARE_EMULATOR_CONTROL_TOKEN": f"{CANARY}_c",
        "GOBARE_EMULATOR_ALLOW_HOST": "gobare, other.test",
        "GOBARE_EMULATOR_HOST": "127.0.0.1",
        # What Kubernetes and Compose inject for a service of this name.
        "GOBARE_EMULATOR_PORT": "tcp://10.0.0.7:4747",
        "GOBARE_EMULATOR_PORT_4747_TCP": "tcp://10.0.0.7:4747",
        "GOBARE_EMULATOR_PORT_4747_TCP_ADDR": "10.0.0.7",
        "GOBARE_EMULATOR_SERVICE_HOST": "10.0.0.7",
        "GOBARE_EMULATOR_SERVICE_PORT": "4747",
        "GOBARE_EMULATOR_SERVICE_PORT_HTTP": "4747",
    }
    with Served("--seed", "8", env=env) as served:
        control = f"Bearer {CANARY}_c"
        settings = ask(served.url, "GET", "/_emulator/settings", authorization=control).json
        assert settings["seed"] == 8
        assert settings["pace"] == "instant"
        assert settings["disabled_tools"] == ["browse", "screenshot"]
        scenario = ask(served.url, "GET", "/_emulator/scenario", authorization=control).json
        assert scenario["scenario"] == "order lookup + release gate"
        assert ask(served.url, "GET", "/_emulator/settings").status == 401
        assert ask(served.url, "GET", "/v1/health", authorization=BEARER).status == 401
        everything = ask(served.url, "GET", "/v1/health", authorization=f"Bearer {CANARY}_a").json
        assert everything["scopes"] == list(DEFAULT_SCOPES)
        little = ask(served.url, "GET", "/v1/health", authorization=f"Bearer {CANARY}_b").json
        assert little["scopes"] == ["sessions:read"]
        for host, status in (("gobare:4747", 200), ("other.test", 200), ("evil.test", 403)):
            assert ask(served.url, "GET", "/_emulator/health", host=host).status == status
        assert CANARY not in "".join(served.greeting)
        assert served.greeting[2] == "export GOBARE_TOKEN='<the token you gave it>'\n"
        code, printed, complained = served.stop()
        assert (code, printed, complained) == (0, "", "")


def test_the_port_can_come_from_a_variable(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        monkeypatch.setenv("GOBARE_EMULATOR_PORT", port)
        assert f"port {port} of 127.0.0.1 is in use" in refused(capsys, "serve")
        printed, _ = serve_here(monkeypatch, "--port", "0")
        assert "http://127.0.0.1:" in printed


def test_a_start_imports_nothing_it_does_not_need() -> None:
    with Served(command=(sys.executable, "-X", "importtime", "-m", "emulator", "serve", "--port", "0")) as served:
        _, _, complained = served.stop()
    loaded = {line.rpartition("|")[2].strip().partition(".")[0] for line in complained.splitlines()}
    assert "uvicorn" in loaded
    assert not loaded & {"yaml", "jinja2", "mcp", "httpx2", "jsonschema", "pytest", "pydantic"}


def test_a_loop_that_is_held_for_good_ends_the_process_and_names_who_holds_it() -> None:
    # A scenario cannot do this; a default agent that sleeps stands in for what nobody has thought of.
    code = (
        "import threading\n"
        "import emulator.loops as loops, emulator.runtime.default_agent as script\n"
        "from emulator import cli\n"
        "async def holds_the_loop(turn):\n    threading.Event().wait(60)\n"
        "script.default_agent = holds_the_loop\n"
        "loops._BLOCKED_AFTER, loops._STUCK_AFTER = 0.2, 0.4\n"
        "raise SystemExit(cli.main(['serve', '--port', '0', '--pace', 'instant']))\n"
    )
    with Served(command=(sys.executable, "-c", code)) as served:
        body = {"input": "hello"}
        with pytest.raises((http.client.HTTPException, OSError)):
            ask(served.url, "POST", "/v1/sessions", body, authorization=BEARER)
        status, printed, complained = served.ended()
    assert (status, printed) == (70, "")
    assert complained.startswith("gobare-emulator: an agent holds the event loop and cannot be interrupted:\n")
    assert "holds_the_loop" in complained


@pytest.mark.parametrize("arguments", [("schema",), ("openapi",), ("--help",)])
def test_a_reader_that_has_gone_is_no_crash(arguments: tuple[str, ...]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command, env = [*COMMAND, *arguments], environment()
    done = subprocess.run(command, cwd=ROOT, env=env, stdout=writer, stderr=subprocess.PIPE, timeout=60, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (1, b"")


def test_nor_is_it_within_a_process(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    class Gone(io.StringIO):
        def flush(self) -> None:
            raise BrokenPipeError

    with monkeypatch.context() as patched:
        patched.setattr(sys, "stdout", Gone())
        assert cli.main(["--version"]) == 1
    assert capsys.readouterr() == ("", "")


# serve, from within


def test_it_serves_in_this_process_and_puts_everything_back(monkeypatch: pytest.MonkeyPatch) -> None:
    before = signal.getsignal(signal.SIGTERM), threading.active_count()
    printed, status = serve_here(
        monkeypatch,
        "--port",
        "0",
        "--scenario",
        str(ROOT / "fixtures" / "flaky_docs.json"),
        meanwhile=lambda url: ask(url, "GET", "/_emulator/scenario").json["scenario"],
    )
    assert status == "flaky docs"
    assert printed.count("\n") == 3
    assert (signal.getsignal(signal.SIGTERM), threading.active_count()) == before


LISTS: Final[dict[str, list[Any]]] = {
    "disabled_tools": ["browse"],
    "explore": ["race"],
    "connections": [{"label": "Other", "connector": "openai", "model": "gpt"}],
    "profiles": [{"name": "staging", "is_default": True, "variable_count": 4, "variables": None}],
    "provider_answers": [{"key": "*-rejected", "outcome": "rejected", "message": "It was revoked."}],
    "repositories": [{"full_name": "acme/app", "branch": "trunk", "clone_error": None, "files": None}],
}


def other(name: str, value: Any) -> Any:
    """A value of a setting that is not the default, of the same type."""
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 3
        case list():
            return LISTS.get(name, ["other"])
        case "":
            return "http://127.0.0.1:4747"
    return {
        "virtual": "real",
        "real": "virtual",
        "instant": "realistic",
        "realistic": "instant",
        "off": "published",
        "next_turn": "next_workspace",
        "works": "fails",
        "script": "strict",
        "on": "off",
        "simulated": "connect",
    }[value]


def test_a_setting_that_is_on_or_off_is_on_with_its_flag_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    _, told = serve_here(
        monkeypatch,
        *("--allow-processes", "--port", "0", "--github", "false", "--strict"),
        meanwhile=lambda url: ask(url, "GET", "/_emulator/settings").json,
    )
    assert (told["allow_processes"], told["github"], told["strict"]) == (True, False, True)


def test_every_setting_is_a_flag_and_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = {name: other(name, value) for name, value in as_json(cli.SERVE_DEFAULTS).items()}
    flags: list[str] = []
    for n, (name, value) in enumerate(wanted.items()):
        text = value if isinstance(value, str) else json.dumps(value)
        if n % 2:
            flags += [f"--{name.replace('_', '-')}", text]
        else:
            monkeypatch.setenv(f"GOBARE_EMULATOR_{name.upper()}", text)
    _, settings = serve_here(
        monkeypatch, "--port", "0", *flags, meanwhile=lambda url: ask(url, "GET", "/_emulator/settings").json
    )
    assert settings == wanted


def test_beyond_this_machine_without_a_control_token_is_warned_of(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _, health = serve_here(
        monkeypatch,
        *("--host", "0.0.0.0", "--port", "0"),
        meanwhile=lambda url: ask(url, "GET", "/_emulator/health").status,
    )
    assert health == 200
    warning = capsys.readouterr().err
    assert warning.startswith("gobare-emulator: warning: ")
    assert "0.0.0.0" in warning
    assert "--control-token" in warning
    assert warning.count("\n") == 1


@pytest.mark.parametrize(
    "flags", [("--host", "0.0.0.0", "--control-token", CANARY), ("--host", "127.0.0.2", "--allow-host", "gobare")]
)
def test_otherwise_it_is_not(
    flags: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    printed, _ = serve_here(monkeypatch, "--port", "0", *flags)
    assert capsys.readouterr().err == ""
    assert CANARY not in printed


def test_the_default_token_is_shown_when_it_is_among_those_given(monkeypatch: pytest.MonkeyPatch) -> None:
    printed, _ = serve_here(monkeypatch, *("--port", "0", "--token", f"{CANARY}:cli", "--token", "gbr_pat_emulator"))
    assert "export GOBARE_TOKEN=gbr_pat_emulator\n" in printed
    assert CANARY not in printed


def test_where_the_loop_takes_no_signal_handlers_the_interpreter_does(monkeypatch: pytest.MonkeyPatch) -> None:
    class Loop:
        def __init__(self) -> None:
            self.called: list[Any] = []

        def add_signal_handler(self, number: int, callback: Any) -> None:
            raise NotImplementedError

        def call_soon_threadsafe(self, callback: Any) -> None:
            self.called.append(callback)

    handlers: dict[int, Any] = {}
    monkeypatch.setattr(signal, "signal", handlers.__setitem__)
    loop: Any = Loop()
    stop: Any = threading.Event()
    stop_on_signals(loop, stop)
    assert set(handlers) == {signal.SIGINT, signal.SIGTERM}
    handlers[signal.SIGINT](signal.SIGINT, None)
    assert loop.called == [stop.set]


def test_the_last_words_of_a_stuck_process_hold_no_token(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ended: list[int] = []
    monkeypatch.setattr(os, "_exit", ended.append)
    cli._stuck(f"  File agent.py, line 1\n    sleep('{CANARY}')\n")
    assert ended == [70]
    complained = capsys.readouterr().err
    assert "agent.py" in complained
    assert CANARY not in complained


def test_a_process_without_a_standard_output_serves_in_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    assert cli.main(["--version"]) == 0


def test_an_interrupt_before_it_serves_ends_it_quietly(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "_dispatch", interrupt)
    assert cli.main(["serve"]) == 130
    assert capsys.readouterr() == ("", "")


# what is refused


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), ("serve, demo, record, scenario, check, schema, openapi",)),
        (("serv",), ("no such command", "Did you mean `serve`?")),
        (("replay",), ("no such command",)),
        (("record",), ("required", "--upstream")),
        (("serve", "--tokne", "x"), ("has no --tokne", "Did you mean `--token`?")),
        (("serve", "--disabled_tools", "x"), ("has no --disabled_tools", "Did you mean `--disabled-tools`?")),
        (("serve", "--pac", "instant"), ("has no --pac.", "Did you mean `--pace`?")),
        (("serve", "extra"), ("takes no further arguments",)),
        (("serve", "--port"), ("--port", "expected one argument", "`gobare-emulator serve --help`")),
        (("serve", "--port", "http"), ("`port`", "0 to 65535", "'http'")),
        (("serve", "--port", "65536"), ("`port`", "0 to 65535")),
        (("serve", "--port", "-1"), ("`port`", "'-1'")),
        (("serve", "--port="), ("`port` is empty",)),
        (("serve", "--host", ""), ("`host` is empty",)),
        (("serve", "--control-token", ""), ("`control_token` is empty",)),
        (("serve", "--control-token", "two words"), ("control token", "header")),
        (("serve", "--pace", "fast"), ("`pace`", "instant, realistic", "'fast'")),
        (("serve", "--seed", "x"), ("`seed`", "'x'")),
        (("serve", "--github", "maybe"), ("`github`", "true or false")),
        (("serve", "--session-limit", "0"), ("`session_limit`", "from 1 to")),
        (("serve", "--connections", "[{}]"), ("`connections[0]`",)),
        (("serve", "--token", "a:sessions:red"), ("scope 1 of token 1", "Did you mean `sessions:read`?")),
        (("serve", "--token", "a", "--token", "b:"), ("scope 1 of token 2", ", ".join(SCOPES))),
        (("serve", "--token", ""), ("token 1 is empty",)),
        (("serve", "--token", "pässwort"), ("token 1", "header")),
        (("serve", "--allow-host", "gobare:4747"), ("`allow_host`", "without scheme, port or wildcard")),
        (("serve", "--allow-host", "http://gobare"), ("`allow_host`",)),
        (("serve", "--allow-host", "*"), ("`allow_host`",)),
        (("serve", "--host", "a" * 70), ("cannot listen on 'aaa",)),
        (("serve", "--host", "192.0.2.1", "--port", "0"), ("cannot listen on '192.0.2.1'",)),
        (("serve", "--scenario", "nowhere.yaml"), ("nowhere.yaml", "no such file")),
        (("demo", "--seed", "x"), ("`seed`", "'x'")),
        (("demo", "1"), ("takes no further arguments",)),
        (("check",), ("FILE",)),
        (("schema", "-v"), ("has no -v.",)),
        (("openapi", "x"), ("takes no further arguments",)),
    ],
    ids=lambda value: " ".join(value) or "nothing" if isinstance(value, tuple) else None,
)
def test_what_is_wrong_is_one_line(
    arguments: tuple[str, ...], words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    line = refused(capsys, *arguments)
    for word in words:
        assert word in line


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("SEEDS", "1", ("GOBARE_EMULATOR_SEEDS is not a setting", "Did you mean `seed`?")),
        ("SCENARIOS", "x", ("Did you mean `scenario`?",)),
        ("PACE", "fast", ("`pace`", "'fast'")),
        ("PORT", "99999", ("`port`",)),
        ("HOST", "", ("`host` is empty",)),
        ("TOKEN", f"{CANARY}:all", ("scope 1 of token 1",)),
        ("CONTROL_TOKEN", "", ("`control_token` is empty",)),
        ("SCENARIO", "nowhere.yaml", ("nowhere.yaml",)),
        ("ALLOW_HOST", "*", ("`allow_host`",)),
    ],
)
def test_a_wrong_variable_is_one_line(
    name: str,
    value: str,
    words: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv(f"GOBARE_EMULATOR_{name}", value)
    line = refused(capsys, "serve")
    for word in words:
        assert word in line
    assert CANARY not in line


@pytest.mark.parametrize(
    "arguments",
    [
        (CANARY,),
        ("--token", CANARY),
        ("serve", CANARY),
        ("serve", f"--tokne={CANARY}"),
        ("serve", "--tokne", CANARY),
        ("serve", f"--{CANARY}"),
        ("serve", f"-t{CANARY}"),
        ("serve", "--token", f"{CANARY}:{CANARY}"),
        ("serve", "--token", f"{CANARY} "),
        ("serve", "--control-token", f"{CANARY}\n"),
        ("serve", f"--help={CANARY}"),
        ("serve", "--allow-host", f"https://{CANARY}@gobare"),
    ],
)
def test_no_complaint_repeats_a_token(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert CANARY not in refused(capsys, *arguments)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (PermissionError(errno.EACCES, "Permission denied"), "port 80 may not be used without more rights"),
        (socket.gaierror(socket.EAI_NONAME, "Name or service not known"), "cannot listen on 'nowhere': Name or"),
    ],
)
def test_an_address_that_cannot_be_had_is_one_line(
    error: OSError, words: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def bind(host: str, port: int) -> None:
        raise error

    monkeypatch.setattr("emulator.server.bind", bind)
    assert words in refused(capsys, "serve", "--host", "nowhere", "--port", "80")


def test_a_scenario_with_several_faults_is_still_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "bad.json"
    file.write_text(json.dumps({"agent": [{"otherwise": [{"sya": "hi"}]}, {"when": {"turn": 0}, "do": []}]}))
    line = refused(capsys, "serve", "--scenario", str(file))
    assert line.startswith(f"gobare-emulator: {file}: agent[0].otherwise[0]")
    assert f"more: see `gobare-emulator check {file}`" in line


def test_two_scenarios_that_contradict_each_other_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(ROOT / "fixtures" / "order_lookup.yaml")
    assert "mcp.docs" in refused(capsys, "serve", "--scenario", file, "--scenario", file)


# the other commands


def test_check_says_ok_or_where(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = [str(path) for path in sorted((ROOT / "fixtures").iterdir()) if path.suffix in (".yaml", ".json")]
    assert good
    assert cli.main(["check", *good]) == 0
    assert capsys.readouterr() == ("".join(f"{file}: ok\n" for file in good), "")
    bad = tmp_path / "bad.yaml"
    bad.write_text("agent:\n  - otherwise:\n      - sya: hello\n")
    assert cli.main(["check", str(bad), good[0]]) == 1
    printed, complained = capsys.readouterr()
    assert printed.startswith(f"{bad}: agent[0].otherwise[0]")
    assert printed.endswith(f"{good[0]}: ok\n")
    assert complained == ""


def test_check_as_a_command(tmp_path: Path) -> None:
    bad = tmp_path / "bad.json"
    bad.write_text('{"agent": [], "mpc": {}}')
    done = run("check", "fixtures/order_lookup.yaml", str(bad))
    assert done.returncode == 1
    first, second = done.stdout.splitlines()
    assert first == "fixtures/order_lookup.yaml: ok"
    assert second.startswith(f"{bad}: mpc")
    assert done.stderr == ""


def test_schema_is_the_schema_of_the_files_that_ship(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["schema"]) == 0
    schema = json.loads(capsys.readouterr().out)
    jsonschema.Draft202012Validator.check_schema(schema)
    document = yaml.safe_load((ROOT / "fixtures" / "order_lookup.yaml").read_text())
    jsonschema.Draft202012Validator(schema).validate(document)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(schema).validate({"agnet": []})


def test_openapi_is_the_document_that_is_served(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["openapi"]) == 0
    printed = json.loads(capsys.readouterr().out)
    _, served = serve_here(monkeypatch, "--port", "0", meanwhile=lambda url: ask(url, "GET", "/v1/openapi.json").json)
    assert printed == served


def test_the_version() -> None:
    done = run("--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"gobare-emulator {__version__}\n", "")


def test_help_names_every_command_and_serve_every_flag(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--help"]) == 0
    top = capsys.readouterr().out
    for command in ("serve", "demo", "record", "scenario", "check", "schema", "openapi"):
        assert f"\n  {command} " in top
        with pytest.raises(SystemExit) as ended:
            cli.main([command, "--help"])
        assert ended.value.code == 0
        shown = capsys.readouterr().out
        assert shown.startswith(f"usage: gobare-emulator {command}")
        if command == "serve":
            flat = " ".join(shown.split())
            for field in dataclasses.fields(Settings):
                assert f"--{field.name.replace('_', '-')} " in flat
                assert field.metadata["doc"] in flat
