"""The archive of a session's artifacts (contract §10)."""

from __future__ import annotations

import io
import tarfile
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Api


@pytest.fixture(autouse=True)
def _agent(api: Api) -> None:
    """An agent that writes each line of the message as a file under outputs."""

    @api.emulator.agent
    async def agent(turn: Any) -> None:
        for name in turn.message.split("\n"):
            if name != "nothing":
                await turn.write(f"/workspace/outputs/{name}", f"{name} of turn {turn.number}")


def unpacked(api: Api, session_id: str, query: str = "") -> dict[str, bytes]:
    """What is in the archive, read as it comes."""
    answer = api.get(f"/v1/sessions/{session_id}/artifacts/archive{query}")
    assert (answer.status, answer.headers["content-type"]) == (200, "application/x-tar")
    assert answer.headers["content-length"] == str(len(answer.raw))
    found = {}
    with tarfile.open(fileobj=io.BytesIO(answer.raw), mode="r|") as tar:
        for member in tar:
            assert member.isreg()
            assert not member.name.startswith("/")
            content = tar.extractfile(member)
            assert content is not None
            found[member.name] = content.read()
    return found


@pytest.mark.behaviour("artifacts.archive", "artifacts.archive-all")
def test_without_a_turn_each_entry_is_behind_its_turns_id(api: Api, tmp_path: Path) -> None:
    session_id = api.session({"input": "a.md\nd/b.csv"})
    api.say(session_id, "a.md")
    first, second = (turn["id"] for turn in api.turns(session_id))
    assert unpacked(api, session_id) == {
        f"{first}/outputs/a.md": b"a.md of turn 1",
        f"{first}/outputs/d/b.csv": b"d/b.csv of turn 1",
        f"{second}/outputs/a.md": b"a.md of turn 2",
    }
    raw = api.get(f"/v1/sessions/{session_id}/artifacts/archive").raw
    with tarfile.open(fileobj=io.BytesIO(raw), mode="r|") as tar:
        tar.extractall(tmp_path, filter="data")
    assert (tmp_path / second / "outputs" / "a.md").read_text() == "a.md of turn 2"


@pytest.mark.behaviour("artifacts.archive-turn")
def test_with_a_turn_each_entry_is_at_its_path_in_the_workspace(api: Api) -> None:
    session_id = api.session({"input": "a.md\nb.md"})
    api.say(session_id, "a.md")
    turn_id = api.turns(session_id)[1]["id"]
    assert unpacked(api, session_id, f"?turn_id={turn_id}") == {"outputs/a.md": b"a.md of turn 2"}


@pytest.mark.behaviour("artifacts.archive-names")
@pytest.mark.parametrize("name", ["n" * 200, "d/" * 60 + "deep.txt", "größer 码 🦊.md", "a b\t'\".md", "e\u0301"])
def test_a_name_comes_out_as_it_was(api: Api, name: str) -> None:
    session_id = api.session({"input": name})
    turn_id = api.turns(session_id)[0]["id"]
    assert unpacked(api, session_id) == {f"{turn_id}/outputs/{name}": f"{name} of turn 1".encode()}


@pytest.mark.behaviour("artifacts.archive-empty")
def test_the_archive_of_nothing_is_empty(api: Api) -> None:
    session_id = api.session({"input": "nothing"})
    assert unpacked(api, session_id) == {}
    assert unpacked(api, session_id, f"?turn_id={api.turns(session_id)[0]['id']}") == {}
    assert unpacked(api, api.session()) == {}


@pytest.mark.behaviour("artifacts.archive-omitted")
def test_an_artifact_whose_copy_is_gone_is_left_out_and_named(api: Api) -> None:
    session_id = api.session({"input": "a.md\nb.md"})
    turn_id = api.turns(session_id)[0]["id"]
    api.emulator.settings.update(lost_artifacts=["outputs/a.md", "/workspace/outputs/other.md"])
    found = unpacked(api, session_id)
    assert list(found) == [f"{turn_id}/outputs/b.md", "gobare-omitted.txt"]
    assert found["gobare-omitted.txt"] == f"{turn_id}/outputs/a.md\n".encode()
    assert unpacked(api, session_id, f"?turn_id={turn_id}")["gobare-omitted.txt"] == b"outputs/a.md\n"
    lost, kept = api.get(f"/v1/sessions/{session_id}/artifacts?order=asc").json["data"]
    path = f"/v1/sessions/{session_id}/artifacts"
    assert api.get(f"{path}/{lost['id']}").json == lost
    answer = api.get(f"{path}/{lost['id']}/content")
    assert (answer.status, answer.code) == (404, "not_found")
    assert answer.message.startswith(f"The stored copy of artifact {lost['id']} is gone.")
    assert api.get(f"{path}/{kept['id']}/content").status == 200
