"""Files that are sent: paths, data, ceilings, seeds and live writes (contract §10)."""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.support import Answer, Api

DOCS = {"type": "mcp", "name": "docs", "url": "http://docs.example.com", "required": True}
NOT_READY = (
    "This session's workspace is not ready yet — it is starting, or restarting to pick up a configuration change. "
    "Retry in a few seconds; nothing was written."
)


def file(path: str, content: bytes | str = b"x") -> dict[str, Any]:
    """A file to send."""
    data = content.encode() if isinstance(content, str) else content
    return {"path": path, "data": b64encode(data).decode()}


def write(api: Api, session_id: str, *files: dict[str, Any]) -> Answer:
    return api.post(f"/v1/sessions/{session_id}/files", {"files": list(files)})


def listed(api: Api, session_id: str) -> dict[str, int]:
    """The files that are there now, with their sizes."""
    tree = api.post(f"/v1/sessions/{session_id}/files/refresh").json
    return {entry["path"]: entry["size_bytes"] for entry in tree["data"] if entry["type"] == "file"}


def content(api: Api, session_id: str, path: str) -> str:
    found: str = api.get(f"/v1/sessions/{session_id}/files/content?path={path}").json["content"]
    return found


def seeded(*files: dict[str, Any], **more: Any) -> dict[str, Any]:
    """The body of a session with these files."""
    return {"environment": {"files": list(files)}, **more}


def state(api: Api, session_id: str) -> str:
    found: str = api.get(f"/v1/sessions/{session_id}").json["environment"]["state"]
    return found


@pytest.mark.behaviour("files.paths", "files.write")
def test_a_path_is_relative_or_absolute_and_kept_as_it_was_sent(api: Api) -> None:
    session_id = api.session()
    paths = ["a/b.txt", "/workspace/c.txt", "./d//e", "f/../g", "ünï/码 🦊", "e\u0301", "\u00e9", "x\u202ey\t", "..z"]
    answer = write(api, session_id, *(file(path) for path in paths))
    kept = ["a/b.txt", "c.txt", "d/e", "g", "ünï/码 🦊", "e\u0301", "\u00e9", "x\u202ey\t", "..z"]
    assert (answer.status, answer.json) == (
        200,
        {"object": "list", "data": [{"object": "workspace_file", "path": path, "size_bytes": 1} for path in kept]},
    )
    assert set(listed(api, session_id)) == set(kept)


@pytest.mark.behaviour("files.outside", "files.seeds-refused")
@pytest.mark.parametrize(
    ("path", "where"),
    [
        ("../x", "/x"),
        ("a/../../etc/passwd", "/etc/passwd"),
        ("/etc/passwd", "/etc/passwd"),
        ("//etc/passwd", "/etc/passwd"),
        ("/workspace/../x", "/x"),
        ("/workspacex/a", "/workspacex/a"),
        ("/workspace", "/workspace"),
        (".", "/workspace"),
    ],
)
def test_a_path_that_leaves_the_workspace_is_refused_saying_where_it_leads(api: Api, path: str, where: str) -> None:
    session_id = api.session()
    answers = {
        "files[1].path": write(api, session_id, file("a"), file(path)),
        "environment.files[1].path": api.post("/v1/sessions", seeded(file("a"), file(path))),
    }
    for place, answer in answers.items():
        assert (answer.status, answer.code) == (400, "invalid_request")
        assert answer.message == (
            f"`{place}` must name a file inside /workspace: it resolves to {where}, which is not inside /workspace."
        )
    assert listed(api, session_id) == {}
    assert len(api.get("/v1/sessions").json["data"]) == 1


@pytest.mark.behaviour("files.impossible-path")
@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("", "`files[0].path` must not be empty"),
        ("a\0b", "`files[0].path` must name a file inside /workspace: a path must not be empty or hold a NUL"),
        ("é" * 128, "takes at most 255 bytes, and 'éééééééééééééééééééé'… has 256"),
        ("a/" * 2048 + "b", "takes at most 4096 bytes, and this one has 4097"),
        ("a/" * 128 + "b", "takes at most 128 names, and this one has 129"),
    ],
)
def test_an_impossible_path_is_refused(api: Api, path: str, why: str) -> None:
    answer = write(api, api.session(), file(path))
    assert (answer.status, answer.code) == (400, "invalid_request")
    assert why in answer.message


@pytest.mark.behaviour("files.in-the-way")
@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("a.txt/b", "it leads through /workspace/a.txt, which is a file"),
        ("a.txt/../b", "it leads through /workspace/a.txt, which is a file"),
        ("d", "/workspace/d is a directory"),
        ("new/", "/workspace/new is a directory"),
    ],
)
def test_what_is_in_the_way_refuses_the_whole_request(api: Api, path: str, why: str) -> None:
    session_id = api.session()
    write(api, session_id, file("a.txt"), file("d/e"))
    answer = write(api, session_id, file("fine"), file(path))
    assert (answer.status, answer.code) == (400, "invalid_request")
    assert answer.message == f"`files[1].path` must name a file inside /workspace: {why}."
    assert set(listed(api, session_id)) == {"a.txt", "d/e"}


@pytest.mark.behaviour("files.in-the-way", "files.seeds-refused")
@pytest.mark.parametrize("path", ["new/", "new/.", "new/x/.."])
def test_a_path_that_can_only_be_a_directory_is_refused_for_a_seed_as_well(api: Api, path: str) -> None:
    answer = api.post("/v1/sessions", seeded(file("fine"), file(path)))
    assert (answer.status, answer.code) == (400, "invalid_request")
    assert answer.message == (
        "`environment.files[1].path` must name a file inside /workspace: /workspace/new is a directory."
    )
    assert api.get("/v1/sessions").json["data"] == []


@pytest.mark.behaviour("files.twice")
def test_one_file_sent_twice_is_refused(api: Api) -> None:
    answer = write(api, api.session(), file("a"), file("b/../a"))
    assert answer.message == "`files[1].path` is /workspace/a, as is `files[0].path`: send each file once."
    assert api.post("/v1/sessions", seeded(file("a"), file("/workspace/a"))).code == "invalid_request"


@pytest.mark.behaviour("files.base64")
@pytest.mark.parametrize("data", ["no base64!", "aGk", "aGk=aGk=", "aGk=\n", "_-8=", "=", "é"])
def test_data_that_is_not_base64_is_refused(api: Api, data: str) -> None:
    answer = write(api, api.session(), {"path": "a", "data": data})
    assert (answer.status, answer.message) == (400, "`files[0].data` is not valid base64.")


@pytest.mark.behaviour("files.base64")
def test_an_empty_file_is_a_file(api: Api) -> None:
    session_id = api.session()
    assert write(api, session_id, {"path": "a", "data": ""}).json["data"][0]["size_bytes"] == 0
    assert listed(api, session_id) == {"a": 0}


@pytest.mark.behaviour("files.inline")
def test_only_inline_files_are_taken(api: Api) -> None:
    session_id = api.session()
    assert write(api, session_id, {"type": "inline", **file("a")}).status == 200
    for sent in ({"type": "url", **file("a")}, {"type": "file", **file("a")}, {"type": None, **file("a")}):
        answer = write(api, session_id, sent)
        assert (answer.status, answer.code) == (400, "invalid_request")
        assert answer.message.startswith("`files[0].type` must be")
    assert write(api, session_id, {"path": "a"}).message == "`files[0].data` is required."
    assert "`files[0].content`" in write(api, session_id, {**file("a"), "content": "b"}).message


@pytest.mark.behaviour("files.ceilings", "files.seeds-refused")
@pytest.mark.parametrize("seeds", [False, True])
def test_what_is_too_large_decoded_is_refused_with_the_ceiling(api: Api, seeds: bool) -> None:
    api.emulator.settings.update(files_body_limit=32 * 1024 * 1024)
    session_id = api.session()
    prefix = "environment.files" if seeds else "files"

    def send(*files: dict[str, Any]) -> Answer:
        return api.post("/v1/sessions", seeded(*files)) if seeds else write(api, session_id, *files)

    five = 5 * 1024 * 1024
    answer = send(file("a", bytes(five + 1)))
    assert (answer.status, answer.code) == (400, "invalid_request")
    assert answer.message == f"`{prefix}[0].data` takes at most 5242880 bytes decoded; 5242881 were sent."
    answer = send(file("a", bytes(five)), file("b", bytes(five)), file("c"))
    assert answer.message == f"`{prefix}` takes at most 10485760 bytes decoded in all; 10485761 were sent by [2]."
    answer = send(*(file(str(n)) for n in range(51)))
    assert answer.message == f"`{prefix}` takes at most 50 entries; 51 were sent."
    assert len(api.get("/v1/sessions").json["data"]) == 1
    assert listed(api, session_id) == {}
    assert send(file("a", bytes(five))).status in (200, 201)


@pytest.mark.behaviour("files.body")
def test_a_body_of_files_has_a_ceiling_of_its_own(api: Api) -> None:
    session_id = api.session()
    sent = file("a", bytes(1_000_000))
    answer = write(api, session_id, sent)
    assert (answer.status, answer.code) == (400, "invalid_request")
    assert "at most 1048576 bytes" in answer.message
    api.emulator.settings.update(files_body_limit=2_000_000)
    assert write(api, session_id, sent).status == 200
    assert api.post("/v1/sessions", seeded(sent)).status == 201


@pytest.mark.behaviour("secrets.journal-keeps-little")
def test_the_journal_keeps_the_path_of_a_file_and_not_what_is_in_it(api: Api) -> None:
    write(api, api.session(), file("notes.txt", "a secret"))
    assert api.emulator.requests[-1].body == {"files": [{"path": "notes.txt", "data": "[text of 12 characters]"}]}


@pytest.mark.behaviour("files.none")
def test_a_write_of_nothing_is_refused(api: Api) -> None:
    session_id = api.session()
    assert write(api, session_id).message == "`files` must not be empty."
    assert state(api, session_id) == "unknown"
    assert api.post(f"/v1/sessions/{session_id}/files", {}).message == "`files` is required."
    assert api.post("/v1/sessions", seeded()).status == 201


@pytest.mark.behaviour("files.seeds")
def test_seeds_are_there_once_the_workspace_has_come_up(api: Api) -> None:
    session_id = api.session(seeded(file("in/a.csv", "a,b"), file("/workspace/b", "é")))
    assert api.get(f"/v1/sessions/{session_id}/files").json["state"] == "missing"
    assert state(api, session_id) == "unknown"
    api.say(session_id, "go")
    tree = api.get(f"/v1/sessions/{session_id}/files").json
    assert [entry["path"] for entry in tree["data"]] == ["b", "in", "in/a.csv"]
    assert content(api, session_id, "b") == "é"
    opened = api.session(seeded(file("c"), input="go"))
    assert listed(api, opened) == {"c": 1}


@pytest.mark.behaviour("files.seeds-rebuilt")
def test_seeds_return_with_a_rebuilt_workspace_and_live_writes_do_not(api: Api) -> None:
    @api.emulator.agent
    async def agent(turn: Any) -> None:
        if turn.message == "ask":
            await turn.ask("Which?")

    session_id = api.session(seeded(file("a", "1"), input="ask"))
    write(api, session_id, file("a", "22"), file("live"))
    assert listed(api, session_id) == {"a": 2, "live": 1}
    api.emulator.clock.advance(7200)
    assert state(api, session_id) == "destroyed"
    assert {entry["path"] for entry in api.get(f"/v1/sessions/{session_id}/files").json["data"]} == {"a", "live"}
    api.say(session_id, "go")
    assert listed(api, session_id) == {"a": 1}


@pytest.mark.behaviour("files.seeds-keep")
def test_seeds_overwrite_nothing(api: Api) -> None:
    repository = {"full_name": "acme/app", "branch": "main", "clone_error": None, "files": {"README.md": "cloned"}}
    api.emulator.settings.update(repositories=[repository])
    body = seeded(file("README.md", "seeded"), file("a", "seeded"), input="go")
    body["environment"]["repo"] = "acme/app"
    session_id = api.session(body)
    write(api, session_id, file("a", "edited"))
    api.emulator.clock.advance(300)
    assert state(api, session_id) == "paused"
    api.say(session_id, "go")
    assert (content(api, session_id, "README.md"), content(api, session_id, "a")) == ("cloned", "edited")


@pytest.mark.behaviour("files.seeds-unwritable")
def test_a_seed_that_cannot_be_written_leaves_an_error_item(api: Api) -> None:
    api.emulator.settings.update(unwritable_files=["locked.txt"])
    seeds = [file("locked.txt"), file("/workspace/d/e"), file("d"), file("fine")]
    answer = api.post("/v1/sessions", seeded(*seeds, input="go"))
    assert (answer.status, answer.json["status"]) == (201, "idle")
    session_id = answer.json["id"]
    errors = [item["detail"] for item in api.items(session_id) if item["type"] == "error"]
    assert errors == [
        {
            "event": "agent.error",
            "message": f"The file {path} could not be written to the workspace: {why}",
            "origin": "sandbox",
        }
        for path, why in (("locked.txt", "permission denied"), ("d", "/workspace/d is a directory"))
    ]
    assert listed(api, session_id) == {"d/e": 1, "fine": 1}
    assert api.turns(session_id)[0]["status"] == "completed"


@pytest.mark.behaviour("files.write")
def test_a_write_overwrites(api: Api) -> None:
    session_id = api.session(seeded(file("a", "1")))
    answer = write(api, session_id, file("b", "2"), file("a", "333"))
    assert [(entry["path"], entry["size_bytes"]) for entry in answer.json["data"]] == [("b", 1), ("a", 3)]
    listed(api, session_id)
    assert content(api, session_id, "a") == "333"


@pytest.mark.behaviour("files.write-wakes")
def test_a_write_starts_and_wakes_the_workspace_which_is_idle_again_after(api: Api) -> None:
    session_id = api.session()
    for before in ("unknown", "paused"):
        assert state(api, session_id) == before
        assert write(api, session_id, file("a")).status == 200
        assert state(api, session_id) == "running"
        api.emulator.clock.advance(299)
        write(api, session_id, file("a"))
        api.emulator.clock.advance(299)
        assert state(api, session_id) == "running"
        api.emulator.clock.advance(1)
    types = [event["type"] for event in api.events(session_id)]
    assert types == ["sandbox.created", "sandbox.paused", "sandbox.resumed", "sandbox.paused"]
    assert api.get(f"/v1/sessions/{session_id}").json["status"] == "idle"


@pytest.mark.behaviour("files.write-running")
def test_a_write_reaches_a_turn_that_runs(api: Api) -> None:
    @api.emulator.agent
    async def agent(turn: Any) -> None:
        await turn.ask("Which?")

    session_id = api.session({"input": "go", "agent": {"tools": [DOCS]}})
    api.put(f"/v1/sessions/{session_id}/tools", {"tools": [DOCS]})
    api.emulator.mcp.down("docs")
    assert write(api, session_id, file("a")).status == 200
    assert len(api.actions(session_id)) == 1
    api.emulator.clock.advance(301)
    assert state(api, session_id) == "running"
    assert listed(api, session_id) == {"a": 1}


@pytest.mark.behaviour("files.write-required")
@pytest.mark.parametrize("path", ["files", "files/refresh"])
def test_a_required_server_that_is_down_refuses_it(api: Api, path: str) -> None:
    session_id = api.session({"agent": {"tools": [DOCS]}})
    api.emulator.mcp.down("docs", times=1)
    body = {"files": [file("a")]} if path == "files" else None
    answer = api.post(f"/v1/sessions/{session_id}/{path}", body)
    assert (answer.status, answer.code) == (400, "invalid_request")
    assert answer.message.startswith(
        "This session cannot start: required MCP server(s) failed to initialise — docs: fetch failed."
    )
    assert api.get(f"/v1/sessions/{session_id}").json["status"] == "failed"
    assert (api.items(session_id)[-1]["type"], api.turns(session_id)) == ("error", [])
    assert api.post(f"/v1/sessions/{session_id}/{path}", body).status == 200


@pytest.mark.behaviour("files.write-quiet")
def test_a_write_shows_nothing_until_the_next_snapshot(api: Api) -> None:
    session_id = api.session({"input": "go"})
    before = api.events(session_id)
    write(api, session_id, file("a"))
    assert api.events(session_id) == before
    assert api.get(f"/v1/sessions/{session_id}/files").json["data"] == []
    assert api.get(f"/v1/sessions/{session_id}/files/content?path=a").code == "not_found"
    api.emulator.clock.advance(300)
    assert [entry["path"] for entry in api.get(f"/v1/sessions/{session_id}/files").json["data"]] == ["a"]


@pytest.mark.behaviour("files.not-ready")
def test_a_workspace_that_restarts_for_its_tools_takes_no_files(api: Api) -> None:
    api.emulator.settings.update(tools_restart_seconds=2.5)
    session_id = api.session()
    api.put(f"/v1/sessions/{session_id}/tools", {"tools": []})
    assert write(api, session_id, file("a")).status == 200
    api.put(f"/v1/sessions/{session_id}/tools", {"tools": []})
    answer = write(api, session_id, file("b"))
    assert (answer.status, answer.code, answer.message) == (409, "conflict", NOT_READY)
    assert answer.headers["retry-after"] == "3"
    assert listed(api, session_id) == {"a": 1}
    api.emulator.clock.advance(2.5)
    assert write(api, session_id, file("b")).status == 200


@pytest.mark.behaviour("files.not-ready")
def test_by_default_it_takes_files_at_once(api: Api) -> None:
    session_id = api.session({"input": "go"})
    api.put(f"/v1/sessions/{session_id}/tools", {"tools": []})
    assert write(api, session_id, file("b")).status == 200


@pytest.mark.behaviour("files.write-recovery")
def test_a_workspace_that_cannot_be_built_again_refuses_a_write(api: Api) -> None:
    @api.emulator.agent
    async def agent(turn: Any) -> None:
        await turn.ask("Which?")

    session_id = api.session({"input": "go"})
    api.emulator.clock.advance(7200)
    api.emulator.settings.update(workspace_recovery="fails")
    answers = [
        write(api, session_id, file("a")),
        api.post(f"/v1/sessions/{session_id}/files/refresh"),
        api.get(f"/v1/sessions/{session_id}/files?refresh=1"),
    ]
    assert [(answer.status, answer.code) for answer in answers] == [(500, "workspace_recovery_failed")] * 3
    assert state(api, session_id) == "recovery_failed"
    api.emulator.settings.update(workspace_recovery="works")
    assert write(api, session_id, file("a")).status == 200
