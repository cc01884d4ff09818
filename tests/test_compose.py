"""The Compose file: what it runs starts and is found healthy, and it offers nothing beyond this machine."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from typing import Any, Final
from urllib.parse import urlsplit

import pytest
import yaml

from tests.served import COMMAND, ROOT, Served, ask, environment

SERVICE: Final[dict[str, Any]] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]["gobare"]
PROJECT: Final[dict[str, Any]] = tomllib.loads((ROOT / "pyproject.toml").read_text())
DOCKERFILE: Final[list[str]] = SERVICE["build"]["dockerfile_inline"].splitlines()


def substituted(text: str, **variables: str) -> str:
    """`${NAME:-default}` replaced as Compose does it."""
    return re.sub(r"\$\{(\w+):-([^}]*)\}", lambda found: variables.get(found[1]) or found[2], text)


def command(**variables: str) -> list[str]:
    """The service's command, on this machine: its folder of fixtures is ours, and any free port will do."""
    words = [substituted(word, **variables) for word in SERVICE["command"]]
    assert words[words.index("--port") + 1] == "4747"
    words[words.index("--port") + 1] = "0"
    return [word.replace("/fixtures/", f"{ROOT / 'fixtures'}/") for word in words]


def healthy(url: str) -> bool:
    """What the service's health check says of a server elsewhere."""
    kind, program, *arguments = SERVICE["healthcheck"]["test"]
    assert (kind, program) == ("CMD", "python")
    port = urlsplit(url).port
    words = [word.replace("127.0.0.1:4747", f"127.0.0.1:{port}") for word in arguments]
    assert words != arguments
    done = subprocess.run([sys.executable, *words], env=environment(), capture_output=True, timeout=60, check=False)
    return done.returncode == 0


@pytest.mark.parametrize(
    ("variables", "name"), [({}, "order lookup"), ({"GOBARE_SCENARIO": "release_gate.yaml"}, "release gate")]
)
def test_the_service_starts_plays_its_scenario_and_is_healthy(variables: dict[str, str], name: str) -> None:
    with Served(command=(*COMMAND, *command(**variables))) as served:
        assert healthy(served.url)
        assert ask(served.url, "GET", "/_emulator/scenario").json["scenario"] == name
        # As the other services of the project call it, and nobody else.
        assert ask(served.url, "GET", "/v1/openapi.json", host="gobare:4747").status == 200
        assert ask(served.url, "GET", "/v1/openapi.json", host="gobare.example:4747").status == 403
        status, printed, complained = served.stop()
    assert (status, printed) == (0, "")
    assert complained.startswith("gobare-emulator: warning: ")
    assert not healthy(served.url)


@pytest.mark.parametrize(
    ("variables", "hosts"),
    [({}, ["host.docker.internal"]), ({"GOBARE_WEBHOOK_HOSTS": "app"}, ["host.docker.internal", "app"])],
)
def test_webhooks_reach_this_machine_and_the_services_that_are_named(
    variables: dict[str, str], hosts: list[str]
) -> None:
    assert SERVICE["extra_hosts"] == ["host.docker.internal:host-gateway"]
    env = {name: substituted(text, **variables) for name, text in SERVICE["environment"].items()}
    with Served(command=(*COMMAND, *command()), env=env) as served:
        assert ask(served.url, "GET", "/_emulator/settings").json["webhook_hosts"] == hosts
        served.stop()


def test_the_port_is_published_on_loopback_only() -> None:
    assert SERVICE["ports"] == ["127.0.0.1:4747:4747"]
    assert "network_mode" not in SERVICE
    assert "privileged" not in SERVICE


def test_the_fixtures_are_mounted_read_only() -> None:
    assert SERVICE["volumes"] == ["./fixtures:/fixtures:ro"]
    assert (ROOT / "fixtures").is_dir()


def test_the_image_fits_the_project() -> None:
    assert SERVICE["build"]["context"] == "."
    instructions = [line.split(maxsplit=1) for line in DOCKERFILE]
    [base] = [rest for word, rest in instructions if word == "FROM"]
    version = re.fullmatch(r"python:(\d+)\.(\d+)-slim", base)
    assert version is not None
    floor = re.fullmatch(r">=(\d+)\.(\d+)", PROJECT["project"]["requires-python"])
    assert floor is not None
    assert tuple(map(int, version.groups())) >= tuple(map(int, floor.groups()))
    assert f"Programming Language :: Python :: {'.'.join(version.groups())}" in PROJECT["project"]["classifiers"]
    [install] = [rest for word, rest in instructions if word == "RUN" and "pip install" in rest]
    assert re.search(r"pip install( --\S+)* \. ", f"{install} ")
    assert ["ENTRYPOINT", f'["{next(iter(PROJECT["project"]["scripts"]))}"]'] in instructions


def test_what_the_build_needs_is_copied_and_nothing_else() -> None:
    copied = {source for line in DOCKERFILE if line.startswith("COPY ") for source in line.split()[1:-1]}
    project = PROJECT["project"]
    packages = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    assert copied == {"pyproject.toml", project["readme"], *project["license-files"], *packages}
    for source in copied:
        assert (ROOT / source).exists(), source


def test_it_runs_without_rights() -> None:
    words = [line.split()[0] for line in DOCKERFILE]
    [user] = [line.split()[1] for line in DOCKERFILE if line.startswith("USER ")]
    assert user not in ("root", "0")
    assert words.index("USER") > max(n for n, word in enumerate(words) if word == "RUN")
    assert SERVICE["cap_drop"] == ["ALL"]
    assert SERVICE["read_only"] is True
