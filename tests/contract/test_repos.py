"""Repositories: what is cloned into a workspace, and what a clone says that fails (contract §6)."""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING, Any

import pytest

from emulator.settings import SettingError, Settings, changed

if TYPE_CHECKING:
    from emulator import Turn
    from tests.support import Api

LIFE = 7200
SITE = {"full_name": "acme/site", "branch": "trunk", "files": {"README.md": "# Site", "src/app.ts": "run()"}}
BROKEN = {"full_name": "acme/broken", "clone_error": "Could not resolve host: github.com"}


@pytest.fixture(autouse=True)
def _agent(api: Api) -> None:
    """An agent that asks when told to."""

    @api.emulator.agent
    async def agent(turn: Turn) -> None:
        if turn.message == "ask":
            await turn.ask("Which?")


def repo(api: Api, session_id: str) -> dict[str, Any]:
    found: dict[str, Any] = api.get(f"/v1/sessions/{session_id}").json["environment"]["repo"]
    return found


def files(api: Api, session_id: str) -> dict[str, str]:
    """What is in the workspace, by path."""
    tree = api.post(f"/v1/sessions/{session_id}/files/refresh").json["data"]
    return {
        entry["path"]: api.get(f"/v1/sessions/{session_id}/files/content?path={entry['path']}").json["content"]
        for entry in tree
        if entry["type"] == "file"
    }


def cloned(api: Api, name: str, **environment: Any) -> str:
    """A session whose workspace has come up with a repository."""
    return api.session({"input": "go", "environment": {"repo": name, **environment}})


@pytest.mark.behaviour("repos.any")
def test_every_repository_is_there_while_none_is_set(api: Api) -> None:
    session_id = cloned(api, "octo/anything")
    assert repo(api, session_id) == {"full_name": "octo/anything", "branch": "main", "clone_error": None}
    assert files(api, session_id) == {}


@pytest.mark.behaviour("repos.branch", "repos.files")
@pytest.mark.gobare(repositories=[SITE, BROKEN])
def test_a_repository_brings_its_branch_and_its_files(api: Api) -> None:
    session_id = api.session({"environment": {"repo": "acme/site"}})
    assert repo(api, session_id) == {"full_name": "acme/site", "branch": None, "clone_error": None}
    api.say(session_id, "go")
    assert repo(api, session_id) == {"full_name": "acme/site", "branch": "trunk", "clone_error": None}
    assert files(api, session_id) == SITE["files"]
    assert api.get(f"/v1/sessions/{session_id}/artifacts").json["data"] == []


@pytest.mark.behaviour("repos.seeds")
@pytest.mark.gobare(repositories=[SITE])
def test_seeds_are_dropped_into_the_clone(api: Api) -> None:
    seeds = [
        {"path": path, "data": b64encode(text).decode()}
        for path, text in (("config.json", b"{}"), ("README.md", b"mine"))
    ]
    session_id = cloned(api, "acme/site", files=seeds)
    assert files(api, session_id) == {"README.md": "# Site", "config.json": "{}", "src/app.ts": "run()"}


@pytest.mark.behaviour("repos.unknown", "repos.clone-error")
@pytest.mark.gobare(repositories=[SITE])
def test_a_repository_that_is_not_there_fails_to_clone(api: Api) -> None:
    answer = api.post("/v1/sessions", {"environment": {"repo": "acme/none"}})
    assert answer.status == 201
    session_id = answer.json["id"]
    assert repo(api, session_id)["clone_error"] is None
    assert api.say(session_id, "go").status == 202
    assert repo(api, session_id) == {"full_name": "acme/none", "branch": None, "clone_error": "Repository not found"}
    assert files(api, session_id) == {}


@pytest.mark.behaviour("repos.case")
@pytest.mark.gobare(repositories=[SITE])
def test_the_case_of_a_name_does_not_matter(api: Api) -> None:
    session_id = cloned(api, "Acme/SITE")
    assert repo(api, session_id) == {"full_name": "Acme/SITE", "branch": "trunk", "clone_error": None}


@pytest.mark.behaviour("repos.clone-error", "repos.silent")
@pytest.mark.gobare(repositories=[SITE, BROKEN])
def test_a_clone_that_fails_is_told_on_the_session_alone(api: Api) -> None:
    session_id = cloned(api, "acme/broken")
    assert repo(api, session_id) == {
        "full_name": "acme/broken",
        "branch": None,
        "clone_error": "Could not resolve host: github.com",
    }
    assert api.get(f"/v1/sessions/{session_id}").json["status"] == "idle"
    assert [item["type"] for item in api.items(session_id)] == ["message"]
    plain = api.session({"input": "go"})
    types = [[event["type"] for event in api.events(session)] for session in (session_id, plain)]
    assert types[0] == types[1]


@pytest.mark.behaviour("repos.clone-error")
@pytest.mark.gobare(repositories=[{"full_name": "acme/site", "files": {"a": "1", "a/b": "2", "/etc/x": "3"}}])
def test_files_that_cannot_be_checked_out_fail_the_clone(api: Api) -> None:
    session_id = cloned(api, "acme/site")
    assert repo(api, session_id)["branch"] is None
    assert repo(api, session_id)["clone_error"].startswith("a/b cannot be checked out: ")
    assert files(api, session_id) == {}


@pytest.mark.behaviour("repos.rebuilt")
@pytest.mark.gobare(repositories=[SITE])
def test_a_rebuilt_workspace_is_cloned_again(api: Api) -> None:
    session_id = cloned(api, "acme/site")
    api.say(session_id, "ask")
    api.emulator.clock.advance(LIFE)
    api.emulator.settings.update(repositories=[{**SITE, "branch": "next", "files": {"NEW.md": "new"}}])
    api.say(session_id, "ask")
    assert (repo(api, session_id)["branch"], files(api, session_id)) == ("next", {"NEW.md": "new"})
    api.emulator.clock.advance(LIFE)
    api.emulator.settings.update(repositories=[{**SITE, "clone_error": "gone"}])
    api.say(session_id, "ask")
    assert (repo(api, session_id)["branch"], repo(api, session_id)["clone_error"]) == (None, "gone")
    api.emulator.clock.advance(LIFE)
    api.emulator.settings.update(repositories=[SITE])
    api.say(session_id, "go")
    assert repo(api, session_id) == {"full_name": "acme/site", "branch": "trunk", "clone_error": None}
    assert files(api, session_id) == SITE["files"]


@pytest.mark.behaviour("repos.setting")
@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("site", "owner/name"),
        ("/site", "owner/name"),
        ("a/b/c", "owner/name"),
    ],
)
def test_a_name_that_is_none_is_refused_where_it_is_set(value: str, told: str) -> None:
    with pytest.raises(SettingError, match=told):
        changed(Settings(), {"repositories": [{"full_name": value}]})


@pytest.mark.behaviour("repos.setting")
@pytest.mark.parametrize(
    "value",
    [{}, {"full_name": 5}, {"full_name": "a/b", "files": {"a": 5}}, {"full_name": "a/b", "x": 1}, "a/b"],
)
def test_a_repository_of_another_shape_is_refused_where_it_is_set(value: Any) -> None:
    with pytest.raises(SettingError, match="repositories"):
        changed(Settings(), {"repositories": [value]})
