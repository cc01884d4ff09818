"""Forks: sessions that begin where another one is (contract §6)."""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING, Any

import pytest

from tests.contract.calls import mint
from tests.contract.steps import function, parked, replying

if TYPE_CHECKING:
    from emulator import Turn
    from tests.support import Answer, Api

IDLE = 300
LIFE = 7200
SECRET = "Bearer sk-canary-fork"


@pytest.fixture
def _writes(api: Api) -> None:
    """An agent that writes a file named by the message, or parks, or fails."""

    @api.emulator.agent
    async def agent(turn: Turn) -> None:
        turn.state.setdefault("messages", []).append(turn.message)
        match turn.message:
            case "ask":
                await turn.say(await turn.ask("Which?"))
            case "fail":
                await turn.fail("provider_error", "no")
            case "serve":
                await turn.preview(3000)
            case "recall":
                await turn.say(f"{turn.number}: {turn.state['messages']}")
            case path:
                await turn.write(path, turn.session.id)


def fork(api: Api, session_id: str, **options: Any) -> Answer:
    return api.post(f"/v1/sessions/{session_id}/fork", **options)


def forked(api: Api, session_id: str) -> str:
    """The id of a fork."""
    answer = fork(api, session_id)
    assert answer.status == 201, answer.raw
    made: str = answer.json["id"]
    return made


def read(api: Api, session_id: str) -> dict[str, Any]:
    shown: dict[str, Any] = api.get(f"/v1/sessions/{session_id}").json
    return shown


def files(api: Api, session_id: str) -> list[str]:
    """The files of a session's last snapshot."""
    tree = api.get(f"/v1/sessions/{session_id}/files").json
    return [entry["path"] for entry in tree["data"] if entry["type"] == "file"]


def content(api: Api, session_id: str, path: str) -> str:
    found: str = api.get(f"/v1/sessions/{session_id}/files/content?path={path}").json["content"]
    return found


@pytest.mark.behaviour("forks.answer", "forks.parent", "forks.token")
def test_a_fork_answers_with_the_new_session_and_where_it_comes_from(api: Api) -> None:
    source = api.session({"input": "hello"})
    token = mint(api)
    answer = fork(api, source, token=token)
    assert answer.status == 201
    shown = read(api, answer.json["id"])
    del shown["agent"]["tools"]
    assert answer.json == {**shown, "forked_from": source, "workspace_copied": True}
    assert (shown["parent_session_id"], shown["source"]) == (source, "api")
    assert shown["id"] != source
    created = api.get("/v1/sessions?created_by_token=me", token=token).json["data"]
    assert [session["id"] for session in created] == [shown["id"]]


@pytest.mark.behaviour("forks.answer")
@pytest.mark.parametrize("raw", [b"", b"{}"])
def test_a_fork_takes_no_body_and_any_content_type(api: Api, raw: bytes) -> None:
    source = api.session()
    assert fork(api, source, raw=raw, headers={"content-type": "application/json"}).status == 201
    assert fork(api, source, body={"title": "a"}).code == "invalid_request"


@pytest.mark.behaviour("forks.transcript", "forks.untouched")
def test_the_transcript_comes_along_under_ids_of_its_own(api: Api) -> None:
    source = api.session({"input": "one"})
    before = api.items(source)
    copy = forked(api, source)

    def bare(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [{key: value for key, value in item.items() if key not in ("id", "session_id")} for item in items]

    copied = api.items(copy)
    assert bare(copied) == bare(before)
    assert {item["session_id"] for item in copied} == {copy}
    assert not {item["id"] for item in copied} & {item["id"] for item in before}
    api.say(copy, "two")
    assert api.items(copy)[: len(before)] == copied
    assert [item["content"] for item in api.items(copy) if item.get("role") == "user"] == ["one", "two"]
    assert api.items(source) == before


@pytest.mark.behaviour("forks.transcript")
def test_items_of_a_fork_are_read_page_by_page_like_any_others(api: Api) -> None:
    copy = forked(api, api.session({"input": "one"}))
    api.say(copy, "two")
    seen: list[str] = []
    after = ""
    while True:
        page = api.get(f"/v1/sessions/{copy}/items?limit=1&order=asc{after}").json
        seen += [item["id"] for item in page["data"]]
        if not page["has_more"]:
            break
        after = f"&after={page['last_id']}"
    assert seen == [item["id"] for item in api.items(copy)]


@pytest.mark.behaviour("forks.transcript-stays", "forks.parent")
def test_a_fork_outlives_its_source(api: Api) -> None:
    source = api.session({"input": "one"})
    copy = forked(api, source)
    before = api.items(copy)
    api.delete(f"/v1/sessions/{source}")
    assert api.items(copy) == before
    assert read(api, copy)["parent_session_id"] == source


@pytest.mark.behaviour("forks.events")
def test_the_stream_of_a_fork_begins_with_the_fork(api: Api) -> None:
    copy = forked(api, api.session({"input": "one"}))
    assert api.events(copy) == []
    api.say(copy, "two")
    with api.stream(f"/v1/sessions/{copy}/events?last_event_id=0") as frames:
        events = frames.until("turn.ended")
    assert [event.type for event in events][:3] == ["user.message", "sandbox.created", "turn.started"]
    assert events[0].payload == {"text": "two"}


@pytest.mark.behaviour("forks.workspace", "forks.snapshot", "forks.untouched")
@pytest.mark.usefixtures("_writes")
def test_the_workspace_comes_along_and_the_two_go_apart(api: Api) -> None:
    source = api.session({"input": "a.txt"})
    copy = forked(api, source)
    assert files(api, copy) == ["a.txt"]
    assert content(api, copy, "a.txt") == source
    api.say(copy, "b.txt")
    api.say(copy, "a.txt")
    assert files(api, copy) == ["a.txt", "b.txt"]
    assert content(api, copy, "a.txt") == copy
    api.post(f"/v1/sessions/{source}/files/refresh")
    assert (files(api, source), content(api, source, "a.txt")) == (["a.txt"], source)


@pytest.mark.behaviour("forks.of-a-fork")
@pytest.mark.usefixtures("_writes")
def test_a_fork_that_never_started_is_forked_with_what_it_was_given(api: Api) -> None:
    first = forked(api, api.session({"input": "a.txt"}))
    answer = fork(api, first)
    assert answer.json["workspace_copied"] is True
    second = answer.json["id"]
    assert files(api, second) == ["a.txt"]
    api.say(second, "b.txt")
    assert (files(api, first), files(api, second)) == (["a.txt"], ["a.txt", "b.txt"])


@pytest.mark.behaviour("forks.workspace-none")
@pytest.mark.usefixtures("_writes")
def test_there_may_be_no_workspace_to_copy(api: Api) -> None:
    fresh = api.session({"title": "fresh"})
    assert fork(api, fresh).json["workspace_copied"] is False
    reclaimed = api.session({"input": "a.txt"})
    api.say(reclaimed, "ask")
    api.emulator.clock.advance(LIFE)
    assert read(api, reclaimed)["environment"]["state"] == "destroyed"
    answer = fork(api, reclaimed)
    assert answer.json["workspace_copied"] is False
    assert api.say(answer.json["id"], "b.txt").status == 202
    assert files(api, answer.json["id"]) == ["b.txt"]


@pytest.mark.behaviour("forks.workspace-failed")
@pytest.mark.gobare(workspace_copy="fails")
@pytest.mark.usefixtures("_writes")
def test_a_fork_without_its_workspace_is_a_session_all_the_same(api: Api) -> None:
    source = api.session({"input": "a.txt", "environment": {"repo": "acme/site"}})
    answer = fork(api, source)
    assert (answer.status, answer.json["workspace_copied"]) == (201, False)
    repo = answer.json["environment"]["repo"]
    assert repo == {"full_name": "acme/site", "branch": None, "clone_error": None}
    copy = answer.json["id"]
    assert api.items(copy) != []
    assert api.get(f"/v1/sessions/{copy}/files").json["state"] == "missing"
    api.say(copy, "b.txt")
    assert files(api, copy) == ["b.txt"]


@pytest.mark.behaviour("forks.paused")
@pytest.mark.usefixtures("_writes")
def test_a_paused_session_sleeps_on_while_it_is_forked(api: Api) -> None:
    source = api.session({"input": "a.txt"})
    api.emulator.clock.advance(IDLE)
    answer = fork(api, source)
    assert answer.json["workspace_copied"] is True
    assert read(api, source)["environment"]["state"] == "paused"
    assert files(api, answer.json["id"]) == ["a.txt"]


@pytest.mark.behaviour("forks.state")
def test_the_forks_own_workspace_starts_with_its_first_message(api: Api) -> None:
    copy = forked(api, api.session({"input": "one"}))
    assert read(api, copy)["environment"]["state"] == "unknown"
    api.emulator.clock.advance(LIFE)
    assert read(api, copy)["environment"]["state"] == "unknown"
    api.say(copy, "two")
    assert read(api, copy)["environment"]["state"] == "running"


@pytest.mark.behaviour("forks.repo")
@pytest.mark.gobare(repositories=[{"full_name": "acme/site", "branch": "trunk", "files": {"README.md": "# Site"}}])
@pytest.mark.usefixtures("_writes")
def test_a_copied_checkout_is_not_cloned_again(api: Api) -> None:
    source = api.session({"input": "README.md", "environment": {"repo": "acme/site"}})
    copy = forked(api, source)
    api.emulator.settings.update(repositories=[{"full_name": "acme/site", "clone_error": "gone"}])
    api.say(copy, "ask")
    assert read(api, copy)["environment"]["repo"] == {"full_name": "acme/site", "branch": "trunk", "clone_error": None}
    assert content(api, copy, "README.md") == source
    api.emulator.clock.advance(LIFE)
    api.say(copy, "b.txt")
    assert read(api, copy)["environment"]["repo"]["clone_error"] == "gone"
    assert files(api, copy) == ["b.txt"]


@pytest.mark.behaviour("forks.seeds")
@pytest.mark.usefixtures("_writes")
def test_seeds_come_back_in_a_fork_that_is_rebuilt(api: Api) -> None:
    seed = {"path": "a.txt", "data": b64encode(b"seeded").decode()}
    source = api.session({"input": "a.txt", "environment": {"files": [seed]}})
    copy = forked(api, source)
    api.say(copy, "ask")
    assert content(api, copy, "a.txt") == source
    api.emulator.clock.advance(LIFE)
    api.say(copy, "b.txt")
    assert content(api, copy, "a.txt") == "seeded"


@pytest.mark.behaviour("forks.agent", "forks.labels", "forks.secrets")
def test_the_agent_and_the_labels_come_along(api: Api) -> None:
    docs = {"type": "mcp", "name": "docs", "url": "https://docs.example.com", "headers": {"X-Key": SECRET}}
    agent = {
        "instructions": "Be brief.",
        "approval_mode": "plan",
        "permission_rules": [{"decision": "deny", "path": "/etc"}],
        "tools": [function(), docs],
        "text": {"verbosity": "low"},
    }
    source = api.session({"agent": agent, "title": "nightly", "metadata": {"job": "1"}})
    answer = fork(api, source)
    original, copy = read(api, source), read(api, answer.json["id"])
    for field in ("agent", "title", "metadata"):
        assert copy[field] == original[field]
    assert copy["agent"]["tools"][1]["redacted"] == ["headers.X-Key"]
    assert SECRET.encode() not in answer.raw
    text = api.get(f"/v1/sessions/{copy['id']}/tools").json["text"]
    assert text == {"verbosity": "low"}
    api.patch(f"/v1/sessions/{copy['id']}", {"metadata": {"job": "2"}, "agent": {"permission_rules": []}})
    api.put(f"/v1/sessions/{copy['id']}/tools", {"tools": []})
    assert read(api, source) == original


@pytest.mark.behaviour("forks.secrets")
def test_a_forks_tools_still_have_their_secrets(api: Api) -> None:
    docs = {"type": "mcp", "name": "docs", "url": "https://docs.example.com", "authorization": SECRET}
    copy = forked(api, api.session({"agent": {"tools": [docs]}}))
    engine = api.emulator.socket.deployment.engine
    organization = engine.world.organization("default")
    [tool] = organization.session(copy).agent.tools.servers()
    assert tool.authorization is not None
    assert tool.authorization.reveal() == SECRET


@pytest.mark.behaviour("forks.left-behind")
@pytest.mark.usefixtures("_writes")
def test_what_belongs_to_the_source_stays_with_it(api: Api) -> None:
    source = api.session({"input": "outputs/a.txt"})
    api.say(source, "serve")
    api.post(f"/v1/sessions/{source}/preview")
    api.say(source, "fail")
    assert read(api, source)["status"] == "failed"
    answer = fork(api, source)
    copy = answer.json
    assert (copy["status"], copy["required_actions"]) == ("idle", [])
    assert copy["preview"] == {"url": None, "port": None, "published_url": None}
    assert api.turns(copy["id"]) == []
    assert api.get(f"/v1/sessions/{copy['id']}/artifacts").json["data"] == []
    api.say(copy["id"], "b.txt")
    assert api.get(f"/v1/sessions/{copy['id']}/artifacts").json["data"] == []
    assert files(api, copy["id"]) == ["b.txt", "outputs/a.txt"]


@pytest.mark.behaviour("forks.slot")
@pytest.mark.gobare(session_limit=2)
def test_a_fork_takes_a_slot(api: Api) -> None:
    source = api.session()
    forked(api, source)
    answer = fork(api, source)
    assert (answer.status, answer.code) == (429, "project_limit_exceeded")
    assert "retry-after" not in answer.headers
    assert len(api.get("/v1/sessions").json["data"]) == 2


@pytest.mark.behaviour("forks.mid-turn", "forks.afterwards")
def test_a_session_mid_turn_is_not_forked(api: Api) -> None:
    source, action = parked(api)
    answer = fork(api, source)
    assert (answer.status, answer.code) == (409, "conflict")
    assert "is in the middle of a turn" in answer.message
    assert "retry-after" not in answer.headers
    api.send(source, replying(action))
    assert fork(api, source).status == 201


@pytest.mark.behaviour("forks.mid-turn")
@pytest.mark.gobare(pace="realistic")
def test_a_turn_that_is_about_to_begin_is_one(api: Api) -> None:
    assert fork(api, api.session({"input": "hello"})).code == "conflict"


@pytest.mark.behaviour("forks.queued", "forks.afterwards")
@pytest.mark.usefixtures("_writes")
def test_a_session_with_queued_messages_is_not_forked(api: Api) -> None:
    source = api.session({"input": "ask"})
    api.say(source, "ask")
    answer = fork(api, source)
    assert (answer.status, answer.code) == (409, "conflict")
    assert "has messages queued" in answer.message
    for _ in range(2):
        api.emulator.answer("a")
    assert fork(api, source).status == 201


@pytest.mark.behaviour("forks.again", "forks.transcript")
def test_a_fork_can_be_forked(api: Api) -> None:
    source = api.session({"input": "one"})
    first = forked(api, source)
    api.say(first, "two")
    second = forked(api, first)
    assert [item["content"] for item in api.items(second) if item.get("role") == "user"] == ["one", "two"]
    tree = api.get(f"/v1/sessions?root={source}&order=asc").json["data"]
    assert [(session["id"], session["parent_session_id"]) for session in tree] == [
        (source, None),
        (first, source),
        (second, first),
    ]


@pytest.mark.behaviour("forks.rate")
def test_a_fork_is_charged_to_the_general_bucket(api: Api) -> None:
    assert fork(api, api.session()).headers["x-ratelimit-resource"] == "general"


@pytest.mark.behaviour("forks.script-state")
@pytest.mark.usefixtures("_writes")
def test_what_a_script_keeps_is_copied(api: Api) -> None:
    source = api.session({"input": "a.txt"})
    copy = forked(api, source)
    api.say(copy, "recall")
    api.say(source, "recall")
    assert [api.items(session)[-1]["content"] for session in (copy, source)] == [
        "1: ['a.txt', 'recall']",
        "2: ['a.txt', 'recall']",
    ]
