"""Files that are read: snapshots, lists, contents and what is withheld (contract §10)."""

from __future__ import annotations

from base64 import b64decode
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from tests.contract.calls import mint
from tests.contract.test_files import file, seeded, state, write

if TYPE_CHECKING:
    from tests.support import Answer, Api


@pytest.fixture(autouse=True)
def _agent(api: Api) -> None:
    """An agent that writes `<path> <text>`, and waits in between when there is more after it."""

    @api.emulator.agent
    async def agent(turn: Any) -> None:
        path, _, text = turn.message.partition(" ")
        await turn.write(path, text)
        if text == "wait":
            await turn.ask("Which?")


def tree(api: Api, session_id: str, **options: Any) -> Any:
    return api.get(f"/v1/sessions/{session_id}/files", **options).json


def read(api: Api, session_id: str, path: str) -> Answer:
    return api.get(f"/v1/sessions/{session_id}/files/content?path={quote(path, safe='')}")


def paths(listing: Any) -> list[str]:
    return [entry["path"] for entry in listing["data"]]


def with_files(api: Api, **files: bytes) -> str:
    """A session with files, and a snapshot of them."""
    api.emulator.settings.update(files_body_limit=32_000_000)
    session_id = api.session()
    write(api, session_id, *(file(path, data) for path, data in files.items()))
    api.post(f"/v1/sessions/{session_id}/files/refresh")
    return session_id


@pytest.mark.behaviour("files.missing", "files.content-missing")
def test_before_any_snapshot_there_is_nothing_to_read(api: Api) -> None:
    session_id = api.session(seeded(file("a")))
    empty: dict[str, Any] = {"object": "list", "data": [], "captured_at": None, "state": "missing", "truncated": False}
    assert tree(api, session_id) == empty
    answer = read(api, session_id, "a")
    assert (answer.status, answer.code) == (404, "not_found")
    assert "has no snapshot yet" in answer.message
    api.post(f"/v1/sessions/{session_id}/files", {"files": [file("b")]})
    assert tree(api, session_id) == empty


@pytest.mark.behaviour("files.snapshot")
def test_a_snapshot_is_taken_when_a_turn_settles_and_stays_as_it_was(api: Api) -> None:
    session_id = api.session({"input": "a.txt 1"})
    first = tree(api, session_id)
    assert (paths(first), first["state"]) == (["a.txt"], "ready")
    assert first["captured_at"] == api.turns(session_id)[0]["completed_at"]
    api.say(session_id, "b.txt wait")
    assert tree(api, session_id) == first
    assert read(api, session_id, "b.txt").code == "not_found"
    api.emulator.answer("this one")
    second = tree(api, session_id)
    assert paths(second) == ["a.txt", "b.txt"]
    assert read(api, session_id, "b.txt").json["captured_at"] == second["captured_at"] > first["captured_at"]


@pytest.mark.behaviour("files.snapshot")
def test_a_snapshot_is_taken_when_the_workspace_is_paused_and_before_it_is_reclaimed(api: Api) -> None:
    session_id = api.session({"input": "a.txt 1"})
    write(api, session_id, file("b.txt"))
    api.emulator.clock.advance(300)
    paused = tree(api, session_id)
    [event] = [event for event in api.events(session_id) if event["type"] == "sandbox.paused"]
    assert (paths(paused), paused["captured_at"]) == (["a.txt", "b.txt"], event["created_at"])
    api.say(session_id, "c.txt wait")
    api.emulator.clock.advance(7200)
    assert state(api, session_id) == "destroyed"
    assert paths(tree(api, session_id)) == ["a.txt", "b.txt", "c.txt"]
    assert read(api, session_id, "c.txt").json["content"] == "wait"


@pytest.mark.behaviour("files.list")
def test_a_list_has_files_and_directories_by_path(api: Api) -> None:
    session_id = with_files(api, **{"src/b/c.py": b"12", "a.md": b"", "src/z.py": b"1"})
    entry = {"object": "workspace_file", "type": "file", "readable": True}
    directory = {"object": "workspace_file", "type": "directory", "size_bytes": None, "readable": False}
    listing = tree(api, session_id)
    assert set(listing) == {"object", "data", "captured_at", "state", "truncated"}
    assert listing["data"] == [
        {**entry, "path": "a.md", "size_bytes": 0},
        {**directory, "path": "src"},
        {**directory, "path": "src/b"},
        {**entry, "path": "src/b/c.py", "size_bytes": 2},
        {**entry, "path": "src/z.py", "size_bytes": 1},
    ]


@pytest.mark.behaviour("files.left-out")
def test_a_snapshot_leaves_out_what_is_not_the_agents_work_and_what_does_not_fit(api: Api) -> None:
    @api.emulator.agent
    async def agent(turn: Any) -> None:
        for path in (".git/config", "web/node_modules/x/index.js", "a", "c"):
            await turn.write(path, "1")
        if turn.message == "more":
            await turn.write("b", "", size=300_000_000)

    session_id = api.session({"input": "go"})
    listing = tree(api, session_id)
    assert (paths(listing), listing["truncated"]) == (["a", "c"], False)
    api.say(session_id, "more")
    listing = tree(api, session_id)
    assert (paths(listing), listing["truncated"]) == (["a", "c"], True)
    assert read(api, session_id, ".git/config").code == "not_found"


@pytest.mark.behaviour("files.refresh")
def test_a_refresh_takes_a_snapshot_of_a_workspace_it_starts_or_wakes(api: Api) -> None:
    session_id = api.session(seeded(file("a")))
    before = api.emulator.clock.now()
    answer = api.post(f"/v1/sessions/{session_id}/files/refresh")
    assert (answer.status, paths(answer.json), answer.json["state"]) == (200, ["a"], "ready")
    assert answer.json["captured_at"] > before
    assert tree(api, session_id) == answer.json
    api.emulator.clock.advance(300)
    assert state(api, session_id) == "paused"
    later = api.post(f"/v1/sessions/{session_id}/files/refresh", {})
    assert later.json["captured_at"] > answer.json["captured_at"]
    assert state(api, session_id) == "running"
    api.emulator.clock.advance(300)
    assert state(api, session_id) == "paused"


@pytest.mark.behaviour("files.refresh")
def test_a_refresh_shows_what_a_running_turn_has_done_so_far(api: Api) -> None:
    session_id = api.session({"input": "a.txt wait"})
    assert tree(api, session_id)["state"] == "missing"
    assert paths(api.post(f"/v1/sessions/{session_id}/files/refresh").json) == ["a.txt"]
    assert len(api.actions(session_id)) == 1


@pytest.mark.behaviour("files.refresh-query")
def test_a_list_can_be_refreshed_with_the_scope_for_it(api: Api) -> None:
    session_id = api.session(seeded(file("a")))
    path = f"/v1/sessions/{session_id}/files"
    reads, both = mint(api, "sessions:read"), mint(api, "sessions:read", "sessions:write")
    refused = api.get(f"{path}?refresh=1", token=reads)
    assert (refused.status, refused.code) == (403, "permission_denied")
    assert refused.message == 'This token does not have the "sessions:write" scope.'
    assert api.get(f"{path}?refresh=1", token=mint(api, "sessions:write")).code == "permission_denied"
    assert api.get(f"{path}?refresh=2", token=reads).message == "`refresh` must be one of 1."
    assert "`limit`" in api.get(f"{path}?limit=1", token=reads).message
    assert tree(api, session_id, token=reads)["state"] == "missing"
    answer = api.get(f"{path}?refresh=1", token=both)
    assert (answer.status, paths(answer.json)) == (200, ["a"])
    assert api.get("/v1/sessions/nowhere/files?refresh=1", token=both).code == "not_found"


@pytest.mark.behaviour("files.withheld")
@pytest.mark.parametrize(
    "path", [".env", ".env.local", "app/.ENV", "tls/server.pem", "private.key", "id_ed25519", ".ssh/config"]
)
def test_environment_files_and_keys_are_listed_and_not_read(api: Api, path: str) -> None:
    session_id = with_files(api, **{path: b"S=1", "environment.ts": b"1"})
    readable = {entry["path"]: entry["readable"] for entry in tree(api, session_id)["data"] if entry["type"] == "file"}
    assert readable == {path: False, "environment.ts": True}
    answer = read(api, session_id, path)
    assert (answer.status, answer.code) == (403, "permission_denied")
    assert answer.message.startswith(f"'{path}' is withheld")
    assert read(api, session_id, "environment.ts").status == 200
    assert read(api, session_id, f"{path}.not").status == 404


@pytest.mark.behaviour("files.content")
def test_a_file_is_read_as_text_or_as_bytes(api: Api) -> None:
    binary = b"\x89PNG\xff"
    session_id = with_files(
        api, **{"src/a.txt": "größer 🦊\r\n".encode(), "b.png": binary, "nul": b"a\0b", "empty": b""}
    )
    answer = read(api, session_id, "src/a.txt")
    assert answer.json == {
        "object": "workspace_file.content",
        "path": "src/a.txt",
        "captured_at": tree(api, session_id)["captured_at"],
        "content": "größer 🦊\r\n",
        "encoding": "utf8",
        "truncated": False,
    }
    assert read(api, session_id, "/workspace/src/../src/a.txt").json == answer.json
    for path, data in (("b.png", binary), ("nul", b"a\0b")):
        found = read(api, session_id, path).json
        assert (b64decode(found["content"]), found["encoding"], found["truncated"]) == (data, "base64", False)
    assert (read(api, session_id, "empty").json["content"], read(api, session_id, "empty").json["encoding"]) == (
        "",
        "utf8",
    )


@pytest.mark.behaviour("files.content-cut")
def test_long_text_is_cut_between_characters(api: Api) -> None:
    ceiling = 256 * 1024
    session_id = with_files(api, whole=b"x" * ceiling, cut=b"x" * (ceiling - 1) + "é".encode() + b"y" * 1_000_000)
    whole, cut = read(api, session_id, "whole").json, read(api, session_id, "cut").json
    assert (len(whole["content"]), whole["truncated"]) == (ceiling, False)
    assert (cut["content"], cut["encoding"], cut["truncated"]) == ("x" * (ceiling - 1), "utf8", True)
    assert tree(api, session_id)["data"][0]["size_bytes"] == ceiling + 1_000_001


@pytest.mark.behaviour("files.content-large")
def test_bytes_are_read_whole_or_not_at_all(api: Api) -> None:
    five = 5 * 1024 * 1024

    @api.emulator.agent
    async def agent(turn: Any) -> None:
        await turn.write("most", b"\xff", size=five)
        await turn.write("more", b"\xff", size=five + 1)

    session_id = api.session({"input": "go"})
    most = read(api, session_id, "most").json
    assert (len(b64decode(most["content"])), most["encoding"], most["truncated"]) == (five, "base64", False)
    answer = read(api, session_id, "more")
    assert (answer.status, answer.code) == (400, "invalid_request")
    assert "has 5242881 bytes; 5242880 is the most" in answer.message


@pytest.mark.behaviour("files.content-path", "files.content-missing")
def test_a_path_that_cannot_be_read_is_refused(api: Api) -> None:
    session_id = with_files(api, **{"src/a.py": b"1"})
    base = f"/v1/sessions/{session_id}/files/content"
    assert api.get(base).message == "`path` is required: the file to read, relative to /workspace or absolute below it."
    assert api.get(f"{base}?path=").message == "`path` must not be empty."
    for path, said in (
        ("../etc/passwd", "`path` must name a file inside /workspace: it resolves to /etc/passwd"),
        ("/etc/passwd", "resolves to /etc/passwd"),
        ("a\0", "NUL"),
        ("src", "`path` must name a file: /workspace/src is a directory."),
        ("src/a.py/", "`path` must name a file inside /workspace: /workspace/src/a.py is a directory."),
    ):
        answer = read(api, session_id, path)
        assert (answer.status, answer.code) == (400, "invalid_request")
        assert said in answer.message
    for path in ("src/b.py", "src/a.py/b", "sr"):
        answer = read(api, session_id, path)
        assert (answer.status, answer.code) == (404, "not_found")
        assert f"no file '/workspace/{path}'" in answer.message
