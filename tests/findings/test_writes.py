"""Findings about writes: a client that breaks the rule, one that keeps it, and those in between."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from emulator import Emulator
from emulator.domain.findings.writes import is_exception
from tests.findings.support import LOOKUP, evidence, found, ids, parked
from tests.support import Api

if TYPE_CHECKING:
    from emulator.runtime.turn import Turn


@pytest.mark.gobare(session_limit=1)
def test_a_create_is_tried_again_although_nothing_was_deleted(gobare: Emulator, api: Api) -> None:
    api.session()
    refused = [api.post("/v1/sessions", {"title": "two"}) for _ in range(3)]
    assert found(gobare) == {"project-limit-retried": evidence(ids(*refused))}


@pytest.mark.gobare(session_limit=1)
def test_a_create_is_tried_again_after_a_delete(gobare: Emulator, api: Api) -> None:
    for _ in range(3):
        session_id = api.session()
        assert api.post("/v1/sessions", {"title": "two"}).code == "project_limit_exceeded"
        api.delete(f"/v1/sessions/{session_id}")
    assert found(gobare) == {}


@pytest.mark.gobare(session_limit=1)
def test_another_create_is_no_retry(gobare: Emulator, api: Api) -> None:
    api.session()
    for title in ("two", "three"):
        assert api.post("/v1/sessions", {"title": title}).code == "project_limit_exceeded"
    assert found(gobare) == {}


@pytest.mark.gobare(rates="published")
def test_a_call_is_tried_again_at_once(gobare: Emulator, api: Api) -> None:
    refused = _spent(api)
    again = api.post("/v1/sessions", {})
    assert again.code == "rate_limit_exceeded"
    assert found(gobare) == {"retry-too-soon": evidence(ids(refused, again))}


@pytest.mark.gobare(rates="published")
def test_a_call_is_tried_again_when_it_was_told_to(gobare: Emulator, api: Api) -> None:
    gobare.clock.advance(int(_spent(api).headers["retry-after"]))
    assert api.post("/v1/sessions", {}).status == 201
    assert found(gobare) == {}


@pytest.mark.gobare(rates="published")
def test_another_call_in_the_meantime_is_no_retry(gobare: Emulator, api: Api) -> None:
    _spent(api)
    assert api.get("/v1/sessions").status == 200
    assert found(gobare) == {}


def _spent(api: Api) -> Any:
    while (answer := api.post("/v1/sessions", {})).status == 201:
        api.delete(f"/v1/sessions/{answer.json['id']}")
    assert int(answer.headers["retry-after"]) > 1
    return answer


@pytest.mark.gobare(queue_limit=0)
@pytest.mark.parametrize("answered", [False, True])
def test_a_message_is_sent_again_before_or_after_there_is_room(gobare: Emulator, api: Api, answered: bool) -> None:
    _, session_id = parked(api)
    refused = api.say(session_id, "and then")
    assert refused.code == "queue_full"
    if answered:
        api.answer(session_id, api.actions(session_id)[0])
    again = api.say(session_id, "and then")
    kept: dict[str, Any] = {}
    broken = {"retry-too-soon": evidence(ids(refused, again), session_id=session_id)}
    assert found(gobare) == (kept if answered else broken)


@pytest.mark.gobare(tools_restart_seconds=10)
@pytest.mark.parametrize("ready", [False, True])
def test_a_file_is_written_again_before_or_after_the_workspace_is_ready(
    gobare: Emulator, api: Api, ready: bool
) -> None:
    session_id = api.session({"input": "go"})
    api.put(f"/v1/sessions/{session_id}/tools", {"tools": [LOOKUP]})
    files = {"files": [{"path": "notes.md", "data": ""}]}
    refused = api.post(f"/v1/sessions/{session_id}/files", files)
    assert refused.code == "conflict"
    gobare.clock.advance(10 if ready else 1)
    again = api.post(f"/v1/sessions/{session_id}/files", files)
    assert again.status == (200 if ready else 409)
    broken = {"retry-too-soon": evidence(ids(refused, again), session_id=session_id)}
    assert found(gobare) == ({} if ready else broken)


def test_a_message_that_is_worked_on_is_sent_again(gobare: Emulator, api: Api) -> None:
    _, session_id = parked(api)
    first, again = api.say(session_id, "Refund order 42"), api.say(session_id, "Refund order 42")
    turn_id = api.turns(session_id)[2]["id"]
    assert found(gobare) == {"written-twice": evidence(ids(first, again), session_id=session_id, turn_id=turn_id)}


def test_what_a_call_collided_with_may_be_over_sooner(gobare: Emulator, api: Api) -> None:
    reached, go = threading.Event(), asyncio.Event()

    @gobare.agent
    async def agent(turn: Turn) -> None:
        reached.set()
        await go.wait()

    key = {"Idempotency-Key": "job-7"}
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(api.post, "/v1/sessions", {"input": "go"}, headers=key)
        assert reached.wait(5)
        assert api.post("/v1/sessions", {"input": "go"}, headers=key).code == "conflict"
        gobare.loop.loop.call_soon_threadsafe(go.set)
        assert first.result(timeout=5).status == 201
    assert api.post("/v1/sessions", {"input": "go"}, headers=key).status == 201
    assert found(gobare) == {}


@pytest.mark.gobare(queue_limit=0)
def test_another_message_is_no_retry(gobare: Emulator, api: Api) -> None:
    _, session_id = parked(api)
    for text in ("and then", "or rather"):
        assert api.say(session_id, text).code == "queue_full"
    assert found(gobare) == {}


@pytest.mark.gobare(rates="published")
def test_the_tries_of_one_call_are_one_finding(gobare: Emulator, api: Api) -> None:
    tries = [_spent(api), *(api.post("/v1/sessions", {}) for _ in range(2))]
    assert found(gobare) == {"retry-too-soon": evidence(ids(*tries))}


def test_what_was_not_delivered_may_be_said_again(gobare: Emulator, api: Api) -> None:
    gobare.load({"agent": [{"otherwise": [{"call": {"function": "lookup", "lose": True}}]}]})
    session_id = api.session({"agent": {"tools": [LOOKUP]}})
    api.say(session_id, "Refund order 42")
    assert api.answer(session_id, api.actions(session_id)[0]).json["outcome"] == "not_delivered"
    api.say(session_id, "Refund order 42")
    assert found(gobare) == {}


@pytest.mark.parametrize("how", ["key", "keys", "another", "another session", "later", "done"])
def test_a_message_is_sent_once_or_meant_twice(gobare: Emulator, api: Api, how: str) -> None:
    _, session_id = parked(api)
    headers = {"Idempotency-Key": "refund-42"} if how in ("key", "keys") else {}
    if how == "done":
        # The first is not worked on any more when it is sent again.
        gobare.load({"agent": [{"otherwise": [{"say": "Done."}]}]})
        api.send(session_id, {"type": "input.cancel"})
    api.say(session_id, "Refund order 42", headers=headers)
    match how:
        case "keys":
            headers = {"Idempotency-Key": "refund-42-again"}
        case "another session":
            session_id = parked(api)[1]
        case "later":
            gobare.clock.advance(61)
    api.say(session_id, "Refund order 43" if how == "another" else "Refund order 42", headers=headers)
    assert found(gobare) == {}


def test_the_same_session_is_created_twice(gobare: Emulator, api: Api) -> None:
    body = {"input": "Review #7", "metadata": {"job": "7"}}
    first, again = api.post("/v1/sessions", body), api.post("/v1/sessions", body)
    assert found(gobare) == {"written-twice": evidence(ids(first, again), session_id=again.json["id"])}


@pytest.mark.parametrize("how", ["key", "labels", "no labels", "deleted"])
def test_a_session_is_created_once_or_meant_twice(gobare: Emulator, api: Api, how: str) -> None:
    headers = {"Idempotency-Key": "job-7"} if how == "key" else {}
    body: dict[str, Any] = {"input": "Review #7"}
    if how != "no labels":
        body["metadata"] = {"job": "7"}
    first = api.session(body, headers=headers)
    if how == "labels":
        body["metadata"] = {"job": "7", "try": "2"}
    if how == "deleted":
        api.delete(f"/v1/sessions/{first}")
    api.session(body, headers=headers)
    assert found(gobare) == {}


def test_a_key_is_used_again_for_another_body(gobare: Emulator, api: Api) -> None:
    first = api.post("/v1/sessions", {"title": "one"}, headers={"Idempotency-Key": "k"})
    again = api.post("/v1/sessions", {"title": "two"}, headers={"Idempotency-Key": "k"})
    assert again.json == first.json
    assert found(gobare) == {"key-reused": evidence(ids(first, again), session_id=first.json["id"])}


@pytest.mark.parametrize("how", ["same", "order", "other key", "other path", "refused"])
def test_a_key_is_used_again_for_the_same_or_elsewhere(gobare: Emulator, api: Api, how: str) -> None:
    headers = {"Idempotency-Key": "k"}
    first = {"title": "one", "metadata": {"a": "1", "b": "2"}}
    if how == "refused":
        assert api.post("/v1/sessions", {"title": 1}, headers=headers).status == 400
    session_id = api.session(first, headers=headers)
    match how:
        case "order":
            answer = api.post("/v1/sessions", {"metadata": {"b": "2", "a": "1"}, "title": "one"}, headers=headers)
        case "other key":
            answer = api.post("/v1/sessions", {"title": "two"}, headers={"Idempotency-Key": "l"})
        case "other path":
            answer = api.patch(f"/v1/sessions/{session_id}", {"title": "two"}, headers=headers)
        case _:
            answer = api.post("/v1/sessions", first, headers=headers)
    assert answer.status < 300
    assert found(gobare) == {}


@pytest.mark.parametrize("kind", ["approval", "question"])
def test_what_is_no_call_is_answered_with_a_tool_result(gobare: Emulator, api: Api, kind: str) -> None:
    action = _asked(gobare, api, kind)
    answer = api.answer(action["session_id"], action)
    assert answer.status == 400
    assert found(gobare) == {
        "answered-with-tool-result": evidence(
            ids(answer), session_id=action["session_id"], turn_id=action["turn_id"], call_id=action["call_id"]
        )
    }


@pytest.mark.parametrize("kind", ["approval", "question"])
def test_what_is_no_call_is_answered_with_its_own_event(gobare: Emulator, api: Api, kind: str) -> None:
    action = _asked(gobare, api, kind)
    value = {"approved": True} if kind == "approval" else {"answer": "eu"}
    event = {"type": "input.approval" if kind == "approval" else "input.question_answer", **value}
    assert api.send(action["session_id"], {**event, "call_id": action["call_id"]}).json["outcome"] == "accepted"
    assert found(gobare) == {}


def test_a_tool_result_that_is_refused_for_something_else(gobare: Emulator, api: Api) -> None:
    _, session_id = parked(api)
    action = api.actions(session_id)[0]
    event = {"type": "input.tool_result", "turn_id": action["turn_id"], "call_id": action["call_id"], "success": True}
    assert api.send(session_id, event).status == 400
    assert api.answer(session_id, action | {"call_id": "call_00000000"}).status == 404
    assert found(gobare) == {}


def _asked(gobare: Emulator, api: Api, kind: str) -> dict[str, Any]:
    @gobare.agent
    async def agent(turn: Turn) -> None:
        if kind == "approval":
            await turn.approve("bash", {"command": "deploy"})
        else:
            await turn.ask("Which region?")

    session_id = api.session({"input": "go"})
    return {**api.actions(session_id)[0], "session_id": session_id}


def test_a_tool_fails_with_a_stack_trace(gobare: Emulator, api: Api) -> None:
    session_id, action, answer = _failed(
        api, 'Traceback (most recent call last):\n  File "a.py", line 3, in f\nKeyError'
    )
    assert found(gobare) == {
        "exception-in-error": evidence(
            ids(answer), session_id=session_id, turn_id=action["turn_id"], call_id=action["call_id"]
        )
    }


def test_a_tool_fails_with_a_sentence(gobare: Emulator, api: Api) -> None:
    _failed(api, "There is no order 42. Ask for its number again.")
    assert found(gobare) == {}


def test_a_trace_that_was_asked_for_is_an_output(gobare: Emulator, api: Api) -> None:
    _, session_id = parked(api)
    api.answer(session_id, api.actions(session_id)[0], "Traceback (most recent call last):\n  ...")
    assert found(gobare) == {}


def _failed(api: Api, error: str) -> tuple[str, dict[str, Any], Any]:
    _, session_id = parked(api)
    action = api.actions(session_id)[0]
    event = {"type": "input.tool_result", "turn_id": action["turn_id"], "call_id": action["call_id"]}
    return session_id, action, api.send(session_id, {**event, "success": False, "error": error})


@pytest.mark.parametrize(
    ("text", "exception"),
    [
        ("KeyError: 'order'", True),
        ("requests.exceptions.ConnectionError: Max retries exceeded", True),
        ("ValueError('no such order')", True),
        ("TypeError: fetch failed\n    at node:internal/deps/undici/undici:12345:11", True),
        ("failed\n    at async lookup (/srv/app/tools.ts:14:9)", True),
        ("java.lang.IllegalStateException", True),
        ("Caused by: java.net.ConnectException: refused", True),
        ("panic: runtime error: index out of range\n\ngoroutine 1 [running]:", True),
        ("Error: the order was not found. Ask for its number.", False),
        ("No order 42. The error: it was archived, at 10:30. Ask for the new number.", False),
        ("Lookup failed: the service answered 503. Try again in a minute.", False),
        ("The order system raised a ValueError for that number; use digits only.", False),
        ("", False),
    ],
)
def test_what_is_the_text_of_an_exception(text: str, exception: bool) -> None:
    assert is_exception(text) is exception


SERVER = {"type": "mcp", "name": "docs", "url": "https://mcp.example.com", "authorization": "Bearer s3cret-s3cret"}


@pytest.mark.parametrize("where", ["put", "create", "agent"])
def test_a_read_back_is_sent_in(gobare: Emulator, api: Api, where: str) -> None:
    session_id = api.session({"agent": {"tools": [SERVER]}})
    tools = api.get(f"/v1/sessions/{session_id}/tools").json["tools"]
    match where:
        case "put":
            answer = api.put(f"/v1/sessions/{session_id}/tools", {"tools": tools})
        case "create":
            answer = api.post("/v1/sessions", {"agent": {"tools": tools}})
        case _:
            answer = api.post("/v1/agents", {"name": "helper", "tools": tools})
    assert answer.status == 400
    about = session_id if where == "put" else None
    assert found(gobare) == {"read-back-sent": evidence(ids(answer), session_id=about)}


def test_tools_are_sent_in_with_their_secrets(gobare: Emulator, api: Api) -> None:
    session_id = api.session({"agent": {"tools": [SERVER]}})
    tools = api.get(f"/v1/sessions/{session_id}/tools").json["tools"]
    for tool in tools:
        del tool["redacted"]
        tool["authorization"] = SERVER["authorization"]
    assert api.put(f"/v1/sessions/{session_id}/tools", {"tools": tools}).status == 200
    assert api.put(f"/v1/sessions/{session_id}/tools", {"tools": [{**SERVER, "extra": 1}]}).status == 400
    assert found(gobare) == {}


REFUND = {"type": "function", "name": "refund"}


@pytest.fixture
def _refunds(gobare: Emulator) -> None:
    """The agent calls the new function where it is asked to refund, and only answers otherwise."""
    refund = {"when": {"message": {"contains": "refund"}}, "do": [{"call": {"function": "refund"}}]}
    gobare.load({"agent": [refund, {"otherwise": [{"say": "Yes."}]}]})


def _replace(api: Api, session_id: str, *tools: dict[str, Any]) -> Any:
    put = api.put(f"/v1/sessions/{session_id}/tools", {"tools": tools})
    assert put.status == 200
    return put


@pytest.mark.usefixtures("_refunds")
def test_the_running_agent_uses_a_tool_that_came_later(gobare: Emulator, api: Api) -> None:
    session_id = api.session({"input": "go", "agent": {"tools": [LOOKUP]}})
    put = _replace(api, session_id, LOOKUP, REFUND)
    said = api.say(session_id, "refund it")
    turn_id = api.turns(session_id)[1]["id"]
    api.actions(session_id)
    assert found(gobare) == {"tools-not-reached": evidence(ids(put, said), session_id=session_id, turn_id=turn_id)}


@pytest.mark.gobare(tools_reach="next_workspace")
@pytest.mark.usefixtures("_refunds")
def test_the_running_agent_still_has_the_old_tools(gobare: Emulator, api: Api) -> None:
    session_id = api.session({"input": "go", "agent": {"tools": [LOOKUP]}})
    put = _replace(api, session_id, LOOKUP, REFUND)
    said = api.say(session_id, "and now")
    turn_id = api.turns(session_id)[1]["id"]
    assert found(gobare) == {"tools-not-reached": evidence(ids(put, said), session_id=session_id, turn_id=turn_id)}


@pytest.mark.parametrize(
    ("how", "reach"),
    [
        ("not used", "next_turn"),
        *(
            (how, reach)
            for how in ("before the first", "the same", "another workspace", "no message")
            for reach in ("next_turn", "next_workspace")
        ),
    ],
)
def test_tools_are_in_place_when_they_are_needed(how: str, reach: str) -> None:
    with Emulator(tools_reach=reach) as gobare:
        api = Api(gobare)
        refund = {"when": {"message": {"contains": "refund"}}, "do": [{"call": {"function": "refund"}}]}
        waits = {"when": {"message": {"equals": "wait"}}, "do": [{"ask": {"question": "How long?"}}]}
        gobare.load({"agent": [refund, waits, {"otherwise": [{"say": "Yes."}]}]})
        session_id = api.session({"agent": {"tools": [LOOKUP]}})
        if how != "before the first":
            api.say(session_id, "wait" if how == "another workspace" else "go")
        _replace(api, session_id, *([LOOKUP] if how == "the same" else [LOOKUP, REFUND]))
        if how == "another workspace":
            # The turn that waits keeps the workspace from being paused.
            gobare.clock.advance(7201)
        if how != "no message":
            wanted = how in ("before the first", "another workspace")
            api.say(session_id, "refund it" if wanted else "and now")
            assert len(api.actions(session_id)) == wanted
        assert found(gobare) == {}
