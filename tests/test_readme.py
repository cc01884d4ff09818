"""The README is right: every snippet in it runs, and every table of it holds."""

from __future__ import annotations

import dataclasses
import json
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
import yaml

from emulator import Emulator
from emulator.runtime.scenario_file import load
from emulator.runtime.turn import Turn
from emulator.settings import Settings, as_json
from tests import inner
from tests.support import Api

if TYPE_CHECKING:
    from emulator import Emulator as EmulatorType

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def snippets(language: str) -> list[str]:
    """The fenced blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)


def test_every_snippet_is_of_a_kind_that_is_run() -> None:
    assert set(re.findall(r"^```(\w*)$", README, re.MULTILINE)) == {"", "bash", "python", "yaml"}


def test_the_python_snippets_pass_as_they_stand(tmp_path: Path) -> None:
    for n, snippet in enumerate(snippets("python")):
        (tmp_path / f"test_snippet_{n}.py").write_text(snippet)
    shutil.copy(ROOT / "fixtures" / "demo.jsonl", tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *inner.LEFT_OUT, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "9 passed" in done.stdout


def test_the_fixture_takes_about_ten_lines() -> None:
    test = snippets("python")[0].partition("def test_")[2]
    assert len([line for line in test.splitlines() if line.strip()]) <= 12


def test_the_yaml_snippet_is_a_scenario_that_plays(gobare: EmulatorType, api: Api) -> None:
    scenarios = [yaml.safe_load(snippet) for snippet in snippets("yaml")]
    path = ROOT / "fixtures" / "order_lookup.yaml"
    assert load(path).rules
    for scenario in scenarios:
        assert load(scenario).rules or load(scenario).mcp
    gobare.load(next(scenario for scenario in scenarios if scenario.get("scenario") == "order lookup"))
    session = api.session()
    api.say(session, "hello")
    assert gobare.transcript(session).last_message == "I only know about orders."


def commands() -> list[str]:
    return [line for snippet in snippets("bash") for line in snippet.splitlines()]


def test_the_install_commands_are_those_of_the_ci() -> None:
    lines = commands()
    assert lines[0] == "pip install . && gobare-emulator demo"
    assert lines[1] == "pip install '.[test]' && python -m pytest -n auto"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert "test" in project["optional-dependencies"]
    assert project["scripts"]["gobare-emulator"] == "emulator.cli:main"


@pytest.mark.parametrize("command", [line for line in commands() if line.startswith("curl")])
def test_the_control_commands_are_answered(command: str, gobare: EmulatorType) -> None:
    words = shlex.split(command)
    address = next(word for word in words if word.startswith("localhost:4747"))
    method = words[words.index("-X") + 1] if "-X" in words else "GET"
    body = json.loads(words[words.index("-d") + 1]) if "-d" in words else None
    answer = Api(gobare).request(method, urlsplit(f"http://{address}").path, body, token=None)
    assert answer.status == 200, answer.raw


def test_the_serve_command_names_files_and_flags_that_exist() -> None:
    [serve] = [line for line in commands() if line.startswith("gobare-emulator serve")]
    words = shlex.split(serve)
    assert (ROOT / words[words.index("--scenario") + 1]).is_file()


def test_the_settings_table_is_complete_and_true() -> None:
    table = README.partition("<!-- settings -->\n")[2].partition("\n<!-- /settings -->")[0].splitlines()[2:]
    values = as_json(Settings())
    wanted = [
        f"| `{field.name}` | `{json.dumps(values[field.name])}` | {field.metadata['doc']}"
        f"{' (only at the start)' if field.metadata['at_start'] else ''} |"
        for field in dataclasses.fields(Settings)
    ]
    assert table == wanted


def test_the_verbs_table_names_every_verb() -> None:
    table = README.partition("### The verbs of a turn")[2].partition("\n##")[0]
    named = set(re.findall(r"`(\w+)\(", table))
    verbs = {name for name in vars(Turn) if not name.startswith("_")} - {"call_with"}
    assert named - {"json", "expect"} == verbs


def test_the_names_of_the_handle_exist(gobare: EmulatorType) -> None:
    text = README.partition("The handle, in a test:")[2].partition("The same names are awaited")[0]
    for name in [*re.findall(r"`([a-z_.]+)\(", text), "url", "token", "requests"]:
        thing: object = gobare
        for part in name.split("."):
            thing = getattr(thing, part)


def test_every_link_leads_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (ROOT / target).exists(), target


def test_an_emulator_says_its_address_and_no_token() -> None:
    with Emulator(token="gbr_pat_canary") as emulator:
        assert emulator.url in repr(emulator)
        assert "canary" not in repr(emulator)
