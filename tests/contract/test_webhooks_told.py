"""What webhooks are told of, and when (contract §11)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.receiver import Receiver

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.receiver import Post
    from tests.support import Api

LOOKUP = {"type": "function", "name": "lookup"}
DOWN = {"type": "mcp", "name": "docs", "url": "http://127.0.0.1:9/mcp", "required": True}
RULES = [{"tool": "deploy", "decision": "ask"}]


@pytest.fixture(autouse=True)
def _agent(api: Api) -> None:
    @api.emulator.agent
    async def agent(turn: Any) -> None:
        match turn.message:
            case "call":
                await turn.call("lookup")
            case "ask":
                await turn.ask("Which region?", ["eu", "us"])
            case "approve":
                await turn.approve("deploy", {})
            case "all three":
                await turn.together(turn.call("lookup"), turn.ask("Which?"), turn.approve("deploy", {}))
            case "fail":
                await turn.write("/workspace/outputs/half.md", "half")
                await turn.fail("provider_error", "the model provider returned 502")
            case "write":
                await turn.write("/workspace/outputs/report.md", "# Report")
            case _:
                await turn.say("done")


@pytest.fixture
def receiver(api: Api) -> Iterator[Receiver]:
    """A receiver that is told of everything."""
    with Receiver() as receiver:
        answer = api.post("/v1/webhooks", {"url": receiver.url})
        receiver.secrets.append(answer.json["secret"])
        yield receiver


def told(api: Api, receiver: Receiver) -> list[tuple[str, dict[str, Any]]]:
    """What has come in since the last look: type and data, less the session."""
    assert api.emulator.settle()
    posts, receiver.posts = receiver.posts, []
    assert all(post.answer == 200 for post in posts)
    return [(post.type, {k: v for k, v in post.json["data"].items() if k != "session_id"}) for post in posts]


def types(api: Api, receiver: Receiver) -> list[str]:
    return [kind for kind, _ in told(api, receiver)]


Told = tuple[str, dict[str, Any]]
CREATED: Told = ("session.created", {})
WORKING: Told = ("session.working", {})
IDLE: Told = ("session.idle", {})
FAILED: Told = ("session.failed", {})


@pytest.mark.behaviour("webhooks.body")
def test_a_body_names_the_session_and_is_not_it(api: Api, receiver: Receiver) -> None:
    session_id = api.session({"title": "Grüße"})
    api.emulator.settle()
    created_at = api.get(f"/v1/sessions/{session_id}").json["created_at"]
    assert receiver.posts[0].body == (
        b'{"object":"event","type":"session.created","created_at":%d,"data":{"session_id":"%b"}}'
        % (created_at, session_id.encode())
    )


@pytest.mark.behaviour("webhooks.created", "webhooks.working", "webhooks.completed")
def test_the_life_of_a_session(api: Api, receiver: Receiver) -> None:
    session_id = api.session({"input": "hello"})
    turn_id = api.turns(session_id)[0]["id"]
    assert told(api, receiver) == [CREATED, WORKING, IDLE, ("turn.completed", {"turn_id": turn_id})]
    api.say(session_id, "again")
    turn_id = api.turns(session_id)[1]["id"]
    assert told(api, receiver) == [WORKING, IDLE, ("turn.completed", {"turn_id": turn_id})]


@pytest.mark.behaviour("webhooks.body")
def test_what_changes_nothing_is_not_told_of(api: Api, receiver: Receiver) -> None:
    session_id = api.session({"input": "hello"})
    told(api, receiver)
    api.patch(f"/v1/sessions/{session_id}", {"title": "new"})
    api.put(f"/v1/sessions/{session_id}/tools", {"tools": []})
    api.send(session_id, {"type": "input.context", "content": "more"})
    api.emulator.clock.advance(8000)
    api.delete(f"/v1/sessions/{session_id}")
    assert told(api, receiver) == []


@pytest.mark.behaviour("webhooks.completed")
def test_the_turn_can_be_read_when_it_is_told_of(api: Api, receiver: Receiver) -> None:
    seen: list[Any] = []

    def read(post: Post) -> None:
        data = post.json["data"]
        if post.type == "turn.completed":
            items = api.get(f"/v1/sessions/{data['session_id']}/items?limit=20").json["data"]
            turn = api.get(f"/v1/sessions/{data['session_id']}/turns/{data['turn_id']}").json
            seen.extend((items[0]["content"], turn["status"], turn["artifacts"]))

    receiver.on_post = read
    api.session({"input": "hello"})
    api.emulator.settle()
    assert seen == ["done", "completed", "ready"]


@pytest.mark.behaviour("webhooks.created-fork")
def test_a_fork_is_told_of(api: Api, receiver: Receiver) -> None:
    session_id = api.session({"input": "hello"})
    told(api, receiver)
    fork = api.post(f"/v1/sessions/{session_id}/fork").json["id"]
    api.emulator.settle()
    assert [(post.type, post.json["data"]) for post in receiver.posts] == [("session.created", {"session_id": fork})]


@pytest.mark.behaviour("webhooks.never-opened")
def test_nothing_is_told_of_a_session_that_never_opened(api: Api, receiver: Receiver) -> None:
    api.emulator.mcp.down("docs")
    assert api.post("/v1/sessions", {"input": "hello", "agent": {"tools": [DOWN]}}).status == 400
    assert told(api, receiver) == []
    api.emulator.settings.update(orphan_sessions=True)
    assert api.post("/v1/sessions", {"input": "hello", "agent": {"tools": [DOWN]}}).status == 400
    assert told(api, receiver) == [CREATED, FAILED]


@pytest.mark.behaviour("webhooks.never-opened")
def test_nothing_is_told_later_either_of_a_session_that_never_opened(api: Api, receiver: Receiver) -> None:
    api.emulator.mcp.down("docs")
    api.emulator.webhooks.script([{"do": "delay", "seconds": 60, "times": 5}])
    assert api.post("/v1/sessions", {"input": "hello", "agent": {"tools": [DOWN]}}).status == 400
    api.emulator.clock.advance(60)
    assert told(api, receiver) == []


@pytest.mark.behaviour("webhooks.refused-start")
def test_a_refused_start_is_told_of_as_a_failed_session(api: Api, receiver: Receiver) -> None:
    session_id = api.session({"agent": {"tools": [DOWN]}})
    told(api, receiver)
    api.emulator.mcp.down("docs")
    assert api.say(session_id, "hello").status == 400
    assert told(api, receiver) == [FAILED]


@pytest.mark.behaviour("webhooks.refused-start")
def test_a_file_that_could_not_be_written_fails_no_session(api: Api, receiver: Receiver) -> None:
    api.emulator.settings.update(unwritable_files=["/workspace/notes.md"])
    files = [{"path": "notes.md", "data": "aGk="}]
    session_id = api.session({"input": "ask", "environment": {"files": files}})
    assert types(api, receiver) == ["session.created", "session.working", "session.action_required"]
    api.emulator.clock.advance(7200)
    assert types(api, receiver) == ["session.failed", "turn.failed"]
    # The workspace is built again, with the session failed and the same error on its record.
    assert api.post(f"/v1/sessions/{session_id}/files", {"files": [{"path": "a.md", "data": "aGk="}]}).status == 200
    assert [event["type"] for event in api.events(session_id)].count("agent.error") == 3
    assert told(api, receiver) == []


@pytest.mark.behaviour("webhooks.action-required", "webhooks.working")
@pytest.mark.parametrize(("message", "kind"), [("call", "function_call"), ("ask", "question"), ("approve", "approval")])
def test_an_action_is_told_of_with_its_type(api: Api, receiver: Receiver, message: str, kind: str) -> None:
    seen: list[Any] = []

    def read(post: Post) -> None:
        if post.type == "session.action_required":
            session = api.get(f"/v1/sessions/{post.json['data']['session_id']}").json
            seen.append((session["status"], [action["type"] for action in session["required_actions"]]))

    receiver.on_post = read
    session_id = api.session({"input": message, "agent": {"tools": [LOOKUP], "permission_rules": RULES}})
    assert told(api, receiver) == [CREATED, WORKING, ("session.action_required", {"required_action": {"type": kind}})]
    assert seen == [("requires_action", [kind])]
    action = api.actions(session_id)[0]
    match kind:
        case "function_call":
            api.answer(session_id, action)
        case "question":
            api.send(session_id, {"type": "input.question_answer", "call_id": action["call_id"], "answer": "eu"})
        case _:
            api.send(session_id, {"type": "input.approval", "call_id": action["call_id"], "approved": True})
    assert types(api, receiver) == ["session.idle", "turn.completed"]


@pytest.mark.behaviour("webhooks.action-required")
def test_each_of_several_actions_is_told_of(api: Api, receiver: Receiver) -> None:
    api.session({"input": "all three", "agent": {"tools": [LOOKUP], "permission_rules": RULES}})
    kinds = [data["required_action"]["type"] for kind, data in told(api, receiver)[2:]]
    assert sorted(kinds) == ["approval", "function_call", "question"]


@pytest.mark.behaviour("webhooks.failed")
def test_a_failed_turn_is_told_of(api: Api, receiver: Receiver) -> None:
    session_id = api.session({"input": "fail"})
    turn = api.turns(session_id)[0]
    assert told(api, receiver) == [CREATED, WORKING, FAILED, ("turn.failed", {"turn_id": turn["id"]})]
    assert turn["error"]["code"] == "provider_error"


@pytest.mark.behaviour("webhooks.failed")
def test_a_turn_whose_workspace_is_reclaimed_is_told_of(api: Api, receiver: Receiver) -> None:
    api.session({"input": "ask"})
    told(api, receiver)
    api.emulator.clock.advance(7200)
    assert types(api, receiver) == ["session.failed", "turn.failed"]


@pytest.mark.behaviour("webhooks.cancelled")
def test_a_cancelled_turn_is_told_of_as_an_idle_session(api: Api, receiver: Receiver) -> None:
    session_id = api.session({"input": "ask"})
    told(api, receiver)
    api.send(session_id, {"type": "input.cancel"})
    assert told(api, receiver) == [IDLE]
    api.send(session_id, {"type": "input.cancel"})
    assert told(api, receiver) == []


@pytest.mark.behaviour("webhooks.queue")
@pytest.mark.parametrize("ended", ["answered", "cancelled", "failed"])
def test_a_session_with_a_queue_is_not_quiet(api: Api, receiver: Receiver, ended: str) -> None:
    session_id = api.session({"input": "ask"})
    api.say(session_id, "hello")
    told(api, receiver)
    match ended:
        case "answered":
            api.emulator.answer("eu")
        case "cancelled":
            api.send(session_id, {"type": "input.cancel"})
        case _:
            api.emulator.clock.advance(7200)
    first = {"answered": ["turn.completed"], "cancelled": [], "failed": ["turn.failed"]}[ended]
    assert types(api, receiver) == [*first, "session.working", "session.idle", "turn.completed"]


@pytest.mark.behaviour("webhooks.publication")
def test_a_completed_turn_is_told_of_once_it_is_published(api: Api, receiver: Receiver) -> None:
    api.emulator.settings.update(publication_seconds=10.0)
    session_id = api.session({"input": "write"})
    assert types(api, receiver) == ["session.created", "session.working", "session.idle"]
    api.emulator.clock.advance(9)
    assert told(api, receiver) == []
    assert api.get("/v1/webhooks").json["data"][0]["delivery"]["pending"] == 1
    api.emulator.clock.advance(2)
    assert types(api, receiver) == ["turn.completed"]
    assert api.turns(session_id)[0]["artifacts"] == "ready"


@pytest.mark.behaviour("webhooks.publication-late")
def test_after_thirty_seconds_it_is_told_of_all_the_same(api: Api, receiver: Receiver) -> None:
    api.emulator.settings.update(publication_seconds=60.0)
    session_id = api.session({"input": "write"})
    told(api, receiver)
    api.emulator.clock.advance(29)
    assert told(api, receiver) == []
    api.emulator.clock.advance(1)
    assert types(api, receiver) == ["turn.completed"]
    assert api.turns(session_id)[0]["artifacts"] == "pending"
    api.emulator.clock.advance(60)
    assert told(api, receiver) == []


@pytest.mark.behaviour("webhooks.failed")
def test_a_failed_turn_waits_for_no_publication(api: Api, receiver: Receiver) -> None:
    api.emulator.settings.update(publication_seconds=60.0)
    session_id = api.session({"input": "fail"})
    assert types(api, receiver)[-1] == "turn.failed"
    assert api.turns(session_id)[0]["artifacts"] == "pending"


@pytest.mark.behaviour("webhooks.subscribed-later")
def test_what_happened_before_is_not_told(api: Api) -> None:
    api.emulator.settings.update(publication_seconds=10.0)
    session_id = api.session({"input": "write"})
    with Receiver() as receiver:
        api.post("/v1/webhooks", {"url": receiver.url})
        api.emulator.clock.advance(60)
        assert receiver.types == []
        api.say(session_id, "hello")
        api.emulator.settle()
        assert receiver.types[0] == "session.working"


@pytest.mark.behaviour("webhooks.deleted-session")
def test_what_was_owed_when_a_session_was_deleted_is_sent(api: Api, receiver: Receiver) -> None:
    api.emulator.settings.update(publication_seconds=10.0)
    session_id = api.session({"input": "write"})
    told(api, receiver)
    receiver.answers.append(500)
    api.say(session_id, "hello")
    api.emulator.settle()
    receiver.posts.clear()
    api.delete(f"/v1/sessions/{session_id}")
    assert types(api, receiver) == ["turn.completed", "turn.completed"]
    api.emulator.clock.advance(60)
    assert types(api, receiver) == ["session.working"]


@pytest.mark.behaviour("webhooks.apart")
def test_no_two_of_one_kind_can_be_taken_for_each_other(api: Api, receiver: Receiver) -> None:
    api.emulator.settings.update(session_limit=100)
    sessions = [api.session() for _ in range(3)]
    for session_id in sessions:
        for _ in range(3):
            api.say(session_id, "hello")
    api.emulator.settle()
    keys = [(post.json["data"]["session_id"], post.type, post.json["created_at"]) for post in receiver.posts]
    assert len(keys) == len(set(keys)) == 3 + 27
