"""Artifacts: published, listed, read, downloaded and deleted (contract §8, §10)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.contract.calls import mint
from tests.contract.test_files import file, seeded, write

if TYPE_CHECKING:
    from tests.support import Api

MEBIBYTE = 1024 * 1024


@pytest.fixture(autouse=True)
def _agent(api: Api) -> None:
    """An agent that writes each word of the message as a file under outputs."""

    @api.emulator.agent
    async def agent(turn: Any) -> None:
        for name in turn.message.split():
            match name:
                case "fail":
                    await turn.fail("provider_error", "no")
                case "ask":
                    await turn.ask("Which?")
                case "delete":
                    await turn.delete("outputs/a.md")
                case _:
                    await turn.write(f"/workspace/outputs/{name}", f"{name} of turn {turn.number}")


def artifacts(api: Api, session_id: str, query: str = "?order=asc") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = api.get(f"/v1/sessions/{session_id}/artifacts{query}").json["data"]
    return found


def names(found: list[dict[str, Any]]) -> list[str]:
    return [artifact["path"].removeprefix("/workspace/outputs/") for artifact in found]


@pytest.mark.behaviour("artifacts.published", "artifacts.shape")
def test_what_is_under_outputs_is_published_when_the_turn_settles(api: Api) -> None:
    session_id = api.session({"input": "a.md ask"})
    assert artifacts(api, session_id) == []
    api.emulator.answer("x")
    [turn] = api.turns(session_id)
    [artifact] = artifacts(api, session_id)
    [event] = [event for event in api.events(session_id) if event["type"] == "artifact.created"]
    assert artifact == {
        "object": "artifact",
        "id": artifact["id"],
        "session_id": session_id,
        "turn_id": turn["id"],
        "path": "/workspace/outputs/a.md",
        "size_bytes": len("a.md of turn 1"),
        "content_type": "text/markdown",
        "created_at": event["created_at"],
    }
    assert artifact["id"].startswith("art_")
    known = {"id": artifact["id"], "path": artifact["path"], "size_bytes": 14, "turn_id": turn["id"]}
    assert event["payload"] == known
    api.say(session_id, "../src/b.py")
    assert names(artifacts(api, session_id)) == ["a.md"]
    assert (turn["artifacts"], api.turns(session_id)[1]["artifacts"]) == ("ready", "ready")


@pytest.mark.behaviour("artifacts.types")
def test_the_type_follows_the_ending(api: Api) -> None:
    session_id = api.session({"input": "a.json b.PNG c.csv d e.unknown"})
    assert [artifact["content_type"] for artifact in artifacts(api, session_id)] == [
        "application/json",
        "image/png",
        "text/csv",
        "application/octet-stream",
        "application/octet-stream",
    ]


@pytest.mark.behaviour("artifacts.each-turn")
def test_a_file_that_several_turns_change_is_an_artifact_of_each(api: Api) -> None:
    session_id = api.session({"input": "a.md"})
    api.say(session_id, "b.md")
    api.say(session_id, "a.md")
    found = artifacts(api, session_id)
    turns = [turn["id"] for turn in api.turns(session_id)]
    assert [(artifact["path"], artifact["turn_id"]) for artifact in found] == [
        ("/workspace/outputs/a.md", turns[0]),
        ("/workspace/outputs/b.md", turns[1]),
        ("/workspace/outputs/a.md", turns[2]),
    ]
    assert len({artifact["id"] for artifact in found}) == 3
    texts = [api.get(f"/v1/sessions/{session_id}/artifacts/{artifact['id']}/content").raw for artifact in found]
    assert texts == [b"a.md of turn 1", b"b.md of turn 2", b"a.md of turn 3"]


@pytest.mark.behaviour("artifacts.deleted-file")
def test_a_file_that_is_gone_again_is_not_published(api: Api) -> None:
    session_id = api.session({"input": "a.md b.md delete"})
    assert names(artifacts(api, session_id)) == ["b.md"]


@pytest.mark.behaviour("artifacts.any-outcome")
def test_a_turn_that_failed_or_was_cancelled_publishes_too(api: Api) -> None:
    session_id = api.session({"input": "a.md fail"})
    api.say(session_id, "b.md ask c.md")
    api.send(session_id, {"type": "input.cancel"})
    assert [turn["status"] for turn in api.turns(session_id)] == ["failed", "cancelled"]
    assert [turn["artifacts"] for turn in api.turns(session_id)] == ["ready", "ready"]
    assert names(artifacts(api, session_id)) == ["a.md", "b.md"]


@pytest.mark.behaviour("artifacts.any-outcome")
def test_a_turn_that_fails_with_its_workspace_publishes_too(api: Api) -> None:
    session_id = api.session({"input": "a.md ask"})
    api.emulator.clock.advance(7200)
    [turn] = api.turns(session_id)
    assert (turn["status"], turn["error"]["code"], turn["artifacts"]) == ("failed", "sandbox_unavailable", "ready")
    assert names(artifacts(api, session_id)) == ["a.md"]
    api.say(session_id, "b.md")
    assert names(artifacts(api, session_id)) == ["a.md", "b.md"]


@pytest.mark.behaviour("artifacts.seeded")
def test_what_a_client_put_under_outputs_is_published_with_the_next_turn(api: Api) -> None:
    session_id = api.session(seeded(file("outputs/seed.md")))
    write(api, session_id, file("outputs/live.md"))
    assert artifacts(api, session_id) == []
    api.say(session_id, "a.md")
    assert names(artifacts(api, session_id)) == ["seed.md", "live.md", "a.md"]


@pytest.mark.behaviour("artifacts.lag")
def test_artifacts_are_pending_for_as_long_as_scripted(api: Api) -> None:
    api.emulator.settings.update(publication_seconds=30)
    session_id = api.session({"input": "a.md"})
    api.say(session_id, "b.md")
    api.emulator.clock.advance(29)
    assert api.emulator.settle()
    assert [(turn["status"], turn["artifacts"]) for turn in api.turns(session_id)] == [("completed", "pending")] * 2
    assert artifacts(api, session_id) == []
    api.emulator.clock.advance(1)
    assert [turn["artifacts"] for turn in api.turns(session_id)] == ["ready", "ready"]
    assert names(artifacts(api, session_id)) == ["a.md", "b.md"]


@pytest.mark.behaviour("artifacts.lag")
def test_nothing_is_published_of_a_session_that_was_deleted_meanwhile(api: Api) -> None:
    api.emulator.settings.update(publication_seconds=30)
    session_id = api.session({"input": "a.md"})
    api.delete(f"/v1/sessions/{session_id}")
    api.emulator.clock.advance(30)
    assert [event for event in api.emulator.events() if event["type"] == "artifact.created"] == []


@pytest.mark.behaviour("artifacts.failed")
def test_what_could_not_be_published_goes_out_with_the_next_turn(api: Api) -> None:
    api.emulator.settings.update(publication="fails")
    session_id = api.session({"input": "a.md b.md"})
    api.say(session_id, "c.md")
    assert [turn["artifacts"] for turn in api.turns(session_id)] == ["failed", "failed"]
    assert (artifacts(api, session_id), api.turns(session_id)[0]["artifacts_skipped"]) == ([], [])
    api.emulator.settings.update(publication="works")
    api.say(session_id, "a.md")
    last = api.turns(session_id)[2]
    assert last["artifacts"] == "ready"
    assert sorted(names(artifacts(api, session_id, f"?turn_id={last['id']}"))) == ["a.md", "b.md", "c.md"]


@pytest.mark.behaviour("artifacts.failed", "artifacts.skipped")
def test_what_was_skipped_by_a_publication_that_failed_is_skipped_by_the_next(api: Api) -> None:
    @api.emulator.agent
    async def agent(turn: Any) -> None:
        if turn.number == 1:
            await turn.write("outputs/build.tar", "", size=200 * MEBIBYTE + 1)

    api.emulator.settings.update(publication="fails")
    session_id = api.session({"input": "go"})
    api.emulator.settings.update(publication="works")
    api.say(session_id, "go")
    first, second = api.turns(session_id)
    assert (first["artifacts"], first["artifacts_skipped"]) == ("failed", [])
    assert (second["artifacts"], len(second["artifacts_skipped"])) == ("partial", 1)


@pytest.mark.behaviour("artifacts.skipped")
def test_what_is_too_large_is_skipped_with_its_reason(api: Api) -> None:
    @api.emulator.agent
    async def agent(turn: Any) -> None:
        for name, size in (("a", 200), ("b", 200), ("c", 101), ("d", 100)):
            await turn.write(f"outputs/{name}", "", size=size * MEBIBYTE)
        await turn.write("outputs/build.tar", "", size=200 * MEBIBYTE + 1)

    session_id = api.session({"input": "go"})
    [turn] = api.turns(session_id)
    assert (turn["status"], turn["artifacts"]) == ("completed", "partial")
    assert turn["artifacts_skipped"] == [
        {"path": "outputs/c", "reason": "the turn's files are larger than 524288000 bytes"},
        {"path": "outputs/build.tar", "reason": "larger than 209715200 bytes"},
    ]
    found = artifacts(api, session_id)
    assert [artifact["size_bytes"] // MEBIBYTE for artifact in found] == [200, 200, 100]


@pytest.mark.behaviour("artifacts.list")
def test_artifacts_are_listed_in_pages(api: Api) -> None:
    session_id = api.session({"input": "a b c d e"})
    base = f"/v1/sessions/{session_id}/artifacts"
    first = api.get(f"{base}?limit=2").json
    assert (names(first["data"]), first["has_more"]) == (["e", "d"], True)
    second = api.get(f"{base}?limit=2&after={first['last_id']}").json
    assert (names(second["data"]), second["has_more"]) == (["c", "b"], True)
    last = api.get(f"{base}?limit=2&after={second['last_id']}").json
    assert (names(last["data"]), last["has_more"]) == (["a"], False)
    assert names(api.get(f"{base}?order=asc&limit=2").json["data"]) == ["a", "b"]
    nowhere = api.get(f"{base}?after=art_0").json
    assert nowhere == {"object": "list", "data": [], "has_more": False, "last_id": None}


@pytest.mark.behaviour("artifacts.list-turn")
def test_the_artifacts_of_one_turn_are_listed(api: Api) -> None:
    session_id = api.session({"input": "a b"})
    api.say(session_id, "c")
    first, second = (turn["id"] for turn in api.turns(session_id))
    assert names(artifacts(api, session_id, f"?turn_id={first}")) == ["b", "a"]
    assert names(artifacts(api, session_id, f"?turn_id={first}&order=asc&limit=1")) == ["a"]
    assert names(artifacts(api, session_id, f"?turn_id={second}")) == ["c"]
    other = api.session({"input": "d"})
    for turn_id in ("turn_0000000000000000", api.turns(other)[0]["id"]):
        for route in ("artifacts", "artifacts/archive"):
            answer = api.get(f"/v1/sessions/{session_id}/{route}?turn_id={turn_id}")
            assert (answer.status, answer.message) == (404, f"No turn '{turn_id}' in this session.")


@pytest.mark.behaviour("artifacts.read")
def test_an_artifact_is_read_under_its_own_session_only(api: Api) -> None:
    first, second = api.session({"input": "a"}), api.session({"input": "b"})
    [artifact] = artifacts(api, first)
    path = f"artifacts/{artifact['id']}"
    assert api.get(f"/v1/sessions/{first}/{path}").json == artifact
    theirs = mint(api, organization="acme")
    for method, tail in (("GET", ""), ("DELETE", ""), ("GET", "/content")):
        elsewhere = api.request(method, f"/v1/sessions/{second}/{path}{tail}")
        assert (elsewhere.status, elsewhere.message) == (404, f"No artifact '{artifact['id']}' in this session.")
        foreign = api.request(method, f"/v1/sessions/{first}/{path}{tail}", token=theirs)
        assert (foreign.status, foreign.message) == (404, f"No session '{first}'.")


@pytest.mark.behaviour("artifacts.delete")
def test_a_deleted_artifact_is_gone_everywhere(api: Api) -> None:
    session_id = api.session({"input": "a b"})
    first, second = artifacts(api, session_id)
    path = f"/v1/sessions/{session_id}/artifacts"
    answer = api.delete(f"{path}/{first['id']}")
    assert (answer.status, answer.json) == (200, {"object": "artifact.deleted", "id": first["id"], "deleted": True})
    assert artifacts(api, session_id) == [second]
    for method, tail in (("GET", ""), ("DELETE", ""), ("GET", "/content")):
        assert api.request(method, f"{path}/{first['id']}{tail}").code == "not_found"
    assert b"outputs/a" not in api.get(f"{path}/archive").raw
    assert names(api.emulator.report()["undeleted"]["artifacts"]) == ["b"]
    api.say(session_id, "c")
    assert len({first["id"], *(artifact["id"] for artifact in artifacts(api, session_id))}) == 3


@pytest.mark.behaviour("artifacts.content")
def test_an_artifact_is_downloaded_as_its_own_type(api: Api) -> None:
    @api.emulator.agent
    async def agent(turn: Any) -> None:
        await turn.write("outputs/a.md", "# größer")
        await turn.write("outputs/b", b"\xff\0HTTP/1.1 200")
        await turn.write("outputs/c.bin", b"HTTP/1.1 ", size=600_000)
        await turn.write("outputs/empty.txt", "")

    session_id = api.session({"input": "go"})
    wanted = ["# größer".encode(), b"\xff\0HTTP/1.1 200", b"HTTP/1.1 ".ljust(600_000, b"\0"), b""]
    for artifact, data in zip(artifacts(api, session_id), wanted, strict=True):
        answer = api.get(f"/v1/sessions/{session_id}/artifacts/{artifact['id']}/content")
        assert (answer.status, answer.raw) == (200, data)
        assert answer.headers["content-type"] == artifact["content_type"]
        assert answer.headers["content-length"] == str(artifact["size_bytes"]) == str(len(data))
        assert answer.headers["x-request-id"]
        assert answer.headers["x-ratelimit-resource"] == "general"
        assert "content-disposition" not in answer.headers


@pytest.mark.behaviour("artifacts.outlive")
def test_an_artifact_outlives_its_session(api: Api) -> None:
    session_id = api.session({"input": "a.md b.md"})
    first, second = artifacts(api, session_id)
    path = f"/v1/sessions/{session_id}/artifacts"
    api.delete(f"/v1/sessions/{session_id}")
    assert api.get(f"{path}/{first['id']}").json == first
    assert api.get(f"{path}/{first['id']}/content").raw == b"a.md of turn 1"
    for gone in ("", "/artifacts", "/artifacts/archive", "/files", "/turns", "/items"):
        assert api.get(f"/v1/sessions/{session_id}{gone}").message == f"No session '{session_id}'."
    assert api.get(f"{path}/art_0").message == "No artifact 'art_0' in this session."
    assert api.get(f"{path}/{first['id']}", token=mint(api, organization="acme")).code == "not_found"
    for artifact in (first, second):
        assert api.delete(f"{path}/{artifact['id']}").status == 200
        assert api.get(f"{path}/{artifact['id']}").code == "not_found"
    assert api.get(f"{path}/{first['id']}").message == f"No session '{session_id}'."


@pytest.mark.behaviour("artifacts.outlive")
def test_with_the_setting_off_it_goes_with_its_session(api: Api) -> None:
    api.emulator.settings.update(artifacts_outlive_sessions=False)
    session_id = api.session({"input": "a.md"})
    [artifact] = artifacts(api, session_id)
    api.delete(f"/v1/sessions/{session_id}")
    for tail in ("", "/content"):
        answer = api.get(f"/v1/sessions/{session_id}/artifacts/{artifact['id']}{tail}")
        assert answer.message == f"No session '{session_id}'."


@pytest.mark.behaviour("artifacts.settle")
def test_waiting_for_rest_waits_for_what_is_published_a_moment_later(api: Api) -> None:
    api.emulator.settings.update(pace="realistic")
    session_id = api.session({"input": "a.md"})
    assert api.emulator.settle()
    assert api.turns(session_id)[0]["artifacts"] == "ready"
    assert names(artifacts(api, session_id)) == ["a.md"]
