"""The demonstration: it holds, it shows what really came, and it fails when something does not hold."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from emulator import cli, demo
from tests.served import run

if TYPE_CHECKING:
    from emulator import Emulator


def printed_by(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert cli.main(["demo", *arguments]) == 0
    printed, complained = capsys.readouterr()
    assert complained == ""
    return printed


def without_port(text: str) -> str:
    return re.sub(r"http://127\.0\.0\.1:\d+", "URL", text)


def test_the_command_walks_through_the_main_job() -> None:
    done = run("demo")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    checks = [line for line in lines if line.startswith("   ok: ")]
    assert len(checks) > 20
    assert lines[-1] == f"All {len(checks)} checks held."
    headings = [line for line in lines if re.match(r"\d+\. ", line)]
    assert [int(line.partition(".")[0]) for line in headings] == list(range(1, len(headings) + 1))
    text = done.stdout
    for shown in (
        "GET /v1/health",
        "PUT /v1/sessions/",
        "DELETE /v1/sessions/",
        "400 Bad Request",
        "Unknown field `tools[1].allowedTools`",
        '"type": "mcp_unavailable"',
        '"status": "requires_action"',
        '"outcome": "accepted"',
        '"outcome": "already_resolved"',
        '"status": "completed"',
        '"content": "It is shipped."',
        '"redacted": ["authorization", "headers.x-team"]',
        '"authorization": "[withheld]"',
    ):
        assert shown in text
    for secret in (demo.AUTHORIZATION, demo.HEADER_VALUE, "gbr_pat_emulator"):
        assert secret not in text


def test_answers_are_shown_in_full_with_their_request_ids(capsys: pytest.CaptureFixture[str]) -> None:
    printed = printed_by(capsys)
    found = re.findall(r"^   (\d{3}) [A-Z].*x-request-id: (\w{8})$\n((?:     .*\n)+)", printed, re.MULTILINE)
    asked = re.findall(r"^   (?:GET|PUT|POST|DELETE) /", printed, re.MULTILINE)
    assert len(found) == len(asked)
    assert len({request_id for _, request_id, _ in found}) == len(found)
    bodies = [json.loads(body) for _, _, body in found]
    assert bodies[0]["object"] == "health"
    refusals = [body for (status, _, _), body in zip(found, bodies, strict=True) if status >= "400"]
    assert [body["error"]["code"] for body in refusals] == ["invalid_request", "not_found"]


def test_the_same_seed_shows_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    first = without_port(printed_by(capsys, "--seed", "3"))
    assert without_port(printed_by(capsys, "--seed", "3")) == first
    assert without_port(printed_by(capsys, "--seed", "4")) != first


def failed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    """The line a failing demonstration ends with."""
    assert cli.main(["demo"]) == 1
    printed, complained = capsys.readouterr()
    assert "checks held" not in printed
    assert complained.count("\n") == 1
    assert complained.startswith("gobare-emulator: the demonstration failed at ")
    return complained


def test_an_agent_that_does_something_else_fails_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def silent(turn: Any) -> None:
        await turn.say("No.")

    monkeypatch.setattr(demo, "assistant", silent)
    line = failed(monkeypatch, capsys)
    assert "step 9, Find the call that waits for us: it does not hold that the session requires an action" in line


def test_another_status_or_another_shape_fails_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def wrong_status(walk: demo.Walk) -> None:
        walk.step("Look")
        walk.send("GET", "/v1/nothing", status=200)

    monkeypatch.setattr(demo, "main_job", wrong_status)
    assert "step 1, Look: the answer is 404, and 200 was expected" in failed(monkeypatch, capsys)

    def wrong_shape(walk: demo.Walk) -> None:
        walk.step("Look")
        walk.send("GET", "/v1/health", status=200)["nothing"]

    monkeypatch.setattr(demo, "main_job", wrong_shape)
    assert "step 1, Look: KeyError: 'nothing'" in failed(monkeypatch, capsys)

    def unreachable(walk: demo.Walk) -> None:
        raise ConnectionRefusedError("nobody is there")

    monkeypatch.setattr(demo, "main_job", unreachable)
    assert "at the start: ConnectionRefusedError: nobody is there" in failed(monkeypatch, capsys)


def test_an_answer_that_is_no_json_or_has_no_request_id_of_its_own_fails_it(
    gobare: Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    import http.client

    walk = demo.Walk(gobare.url, gobare.token)
    with monkeypatch.context() as patched:
        patched.setattr(http.client.HTTPResponse, "read", lambda self: b"<html>")
        with pytest.raises(demo.Unexpected, match="not JSON"):
            walk.send("GET", "/v1/health", status=200)
    with monkeypatch.context() as patched:
        patched.setattr(http.client.HTTPResponse, "getheader", lambda self, name: "deadbeef")
        walk.send("GET", "/v1/health", status=200)
        with pytest.raises(demo.Unexpected, match="no request id of its own"):
            walk.send("GET", "/v1/health", status=200)


def test_a_secret_that_comes_back_is_counted_and_not_shown(
    gobare: Emulator, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    walk = demo.Walk(gobare.url, gobare.token)
    session = walk.send("POST", "/v1/sessions", {"title": demo.HEADER_VALUE}, status=201)
    assert session["title"] == demo.HEADER_VALUE
    assert walk.leaks == 1
    assert demo.HEADER_VALUE not in capsys.readouterr().out
    walk.send("DELETE", f"/v1/sessions/{session['id']}", status=200)


def test_json_stays_on_a_line_where_it_fits() -> None:
    assert demo.pretty({"a": [1, None, "é"], "b": {}}) == '{"a": [1, null, "é"], "b": {}}'
    long = {"words": ["word " * 10] * 3, "none": []}
    shown = demo.pretty(long)
    assert json.loads(shown) == long
    assert max(map(len, shown.splitlines())) <= demo.WIDTH
    assert demo.pretty("x" * 200) == '"' + "x" * 200 + '"'
