"""MCP servers a session refuses to run without (contract §5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.contract.tool_doors import FUNCTION, PROCESS, SERVER, put

if TYPE_CHECKING:
    from tests.support import Answer, Api

TIMED_OUT: Final = "the server did not answer within 10s"
REQUIRED: Final = SERVER | {"required": True}


def words(servers: str) -> str:
    """The refusal, word for word."""
    return (
        f"This session cannot start: required MCP server(s) failed to initialise — {servers}. That server is "
        "configured with `required: true`, so the session refuses to run without it — fix the server, or set "
        "`required: false` to let the agent continue with fewer tools."
    )


def state(api: Api, session_id: str) -> str:
    """What a session's status reads."""
    status: str = api.get(f"/v1/sessions/{session_id}").json["status"]
    return status


def check_refused(answer: Answer, servers: str) -> None:
    """An answer is the refusal of those servers and nothing else."""
    assert answer.status == 400
    assert answer.json == {
        "error": {
            "code": "invalid_request",
            "message": words(servers),
            "request_id": answer.headers["x-request-id"],
        }
    }
    assert "retry-after" not in answer.headers


@pytest.mark.behaviour("mcp.required.refused", "mcp.reason.default")
@pytest.mark.parametrize("entry", [SERVER, PROCESS | {"name": "docs"}], ids=["url", "command"])
def test_the_call_is_refused_in_the_exact_words(api: Api, entry: dict[str, Any]) -> None:
    session_id = api.session({"agent": {"tools": [entry | {"required": True}]}})
    api.emulator.mcp.down("docs")

    check_refused(api.say(session_id, "hello"), "docs: fetch failed")


@pytest.mark.behaviour("mcp.required.refused", "mcp.reason.timeout")
@pytest.mark.parametrize("reason", [TIMED_OUT, "fetch failed", "401 Unauthorized — token expired"])
def test_the_refusal_gives_the_reason_as_it_is(api: Api, reason: str) -> None:
    session_id = api.session({"agent": {"tools": [REQUIRED]}})
    api.emulator.mcp.down("docs", reason=reason)

    check_refused(api.say(session_id, "hello"), f"docs: {reason}")


@pytest.mark.behaviour("mcp.required.several")
def test_several_are_joined_in_declared_order(api: Api) -> None:
    names = ["zeta", "alpha", "mid"]
    session_id = api.session({"agent": {"tools": [REQUIRED | {"name": name} for name in names]}})
    api.emulator.mcp.down("mid")
    api.emulator.mcp.down("alpha", reason=TIMED_OUT)
    api.emulator.mcp.down("zeta")

    answer = api.say(session_id, "hello")

    check_refused(answer, f"zeta: fetch failed; alpha: {TIMED_OUT}; mid: fetch failed")
    (item,) = api.items(session_id)
    assert item["detail"]["message"].endswith(f"— zeta: fetch failed; alpha: {TIMED_OUT}; mid: fetch failed")


@pytest.mark.behaviour("mcp.required.only-those")
def test_servers_that_are_up_or_optional_are_not_named(api: Api) -> None:
    tools = [
        SERVER | {"name": "skipped"},
        REQUIRED | {"name": "up"},
        REQUIRED | {"name": "down"},
        PROCESS | {"name": "also-skipped", "required": False},
    ]
    session_id = api.session({"agent": {"tools": tools}})
    for name in ("skipped", "down", "also-skipped"):
        api.emulator.mcp.down(name)

    check_refused(api.say(session_id, "hello"), "down: fetch failed")

    # A workspace that did not come up tells of nothing it skipped.
    assert [event["type"] for event in api.events(session_id)] == ["agent.error"]


@pytest.mark.behaviour("mcp.required.refused")
def test_a_required_server_that_is_up_refuses_nothing(api: Api) -> None:
    session_id = api.session({"agent": {"tools": [REQUIRED]}})

    assert api.say(session_id, "hello").status == 202
    assert state(api, session_id) == "idle"


@pytest.mark.behaviour("mcp.required.no-turn")
def test_no_turn_opens_and_the_session_reads_failed(api: Api) -> None:
    session_id = api.session({"agent": {"tools": [REQUIRED]}})
    api.emulator.mcp.down("docs")

    api.say(session_id, "hello")

    assert api.turns(session_id) == []
    session = api.get(f"/v1/sessions/{session_id}").json
    assert session["status"] == "failed"
    assert session["environment"]["state"] == "unknown"
    assert session["required_actions"] == []
    assert [item["type"] for item in api.items(session_id)] == ["error"]
    assert [listed["id"] for listed in api.get("/v1/sessions?status=failed").json["data"]] == [session_id]


@pytest.mark.behaviour("mcp.required.error-item")
def test_an_error_item_says_what_failed(api: Api) -> None:
    session_id = api.session({"agent": {"tools": [REQUIRED]}})
    api.emulator.mcp.down("docs")

    api.say(session_id, "hello")

    (item,) = api.items(session_id)
    assert item["type"] == "error"
    assert item["detail"] == {
        "event": "agent.error",
        "message": "required MCP server(s) failed to initialise — docs: fetch failed",
        "origin": "sandbox",
    }
    (event,) = api.events(session_id)
    assert event["type"] == "agent.error"
    assert event["payload"]["message"] == "required MCP server(s) failed to initialise — docs: fetch failed"
    assert isinstance(event["seq"], int)


@pytest.mark.behaviour("mcp.required.tries-again", "mcp.outage.down-and-up")
def test_every_later_call_tries_again_and_works_once_the_server_is_up(api: Api) -> None:
    session_id = api.session({"agent": {"tools": [REQUIRED]}})
    api.emulator.mcp.down("docs")

    for attempt in (1, 2):
        check_refused(api.say(session_id, "hello"), "docs: fetch failed")
        assert [item["type"] for item in api.items(session_id)] == ["error"] * attempt
        assert state(api, session_id) == "failed"

    api.emulator.mcp.up("docs")
    assert api.say(session_id, "hello").status == 202
    assert state(api, session_id) == "idle"
    assert [turn["status"] for turn in api.turns(session_id)] == ["completed"]
    assert [event["type"] for event in api.events(session_id)][:4] == [
        "agent.error",
        "agent.error",
        "user.message",
        "sandbox.created",
    ]


@pytest.mark.behaviour("mcp.required.tries-again")
def test_each_try_meets_the_servers_as_they_are_then(api: Api) -> None:
    session_id = api.session({"agent": {"tools": [REQUIRED, REQUIRED | {"name": "notes"}]}})
    api.emulator.mcp.down("docs", times=1)
    api.emulator.mcp.script("notes", ["up", {"state": "down", "reason": "later"}])

    check_refused(api.say(session_id, "one"), "docs: fetch failed")
    check_refused(api.say(session_id, "two"), "notes: later")
    assert api.say(session_id, "three").status == 202


@pytest.mark.behaviour("mcp.required.mended-by-put")
@pytest.mark.parametrize("tools", [[SERVER], [REQUIRED | {"required": False}], [FUNCTION], []], ids=str)
def test_a_put_without_the_requirement_lets_the_session_go_on(api: Api, tools: list[dict[str, Any]]) -> None:
    @api.emulator.agent
    async def agent(turn: Any) -> None:
        await turn.say("here")

    session_id = api.session({"agent": {"tools": [REQUIRED]}})
    api.emulator.mcp.down("docs")
    check_refused(api.say(session_id, "hello"), "docs: fetch failed")

    put(api, session_id, *tools)

    assert state(api, session_id) == "failed"
    assert api.say(session_id, "hello").status == 202
    assert state(api, session_id) == "idle"


@pytest.mark.behaviour("mcp.required.opening-input")
@pytest.mark.parametrize("content", ["hello", [{"type": "input_text", "text": "hello"}]], ids=["text", "parts"])
@pytest.mark.gobare(session_limit=1)
def test_a_creation_with_input_is_refused_and_no_session_remains(api: Api, content: Any) -> None:
    api.emulator.mcp.down("docs")
    body = {"agent": {"tools": [REQUIRED]}, "input": content}

    check_refused(api.post("/v1/sessions", body), "docs: fetch failed")
    check_refused(api.post("/v1/sessions", body), "docs: fetch failed")

    assert api.get("/v1/sessions").json["data"] == []
    assert api.emulator.events() == []
    api.emulator.mcp.up("docs")
    assert api.post("/v1/sessions", body).status == 201


@pytest.mark.behaviour("mcp.required.opening-input")
@pytest.mark.gobare(orphan_sessions=True)
def test_a_session_that_could_not_be_removed_is_named_and_remains(api: Api) -> None:
    api.emulator.mcp.down("docs")

    answer = api.post("/v1/sessions", {"agent": {"tools": [REQUIRED]}, "input": "hello"})

    (session,) = api.get("/v1/sessions").json["data"]
    assert (answer.status, answer.code) == (400, "invalid_request")
    assert answer.message == (
        f"{words('docs: fetch failed')} We also could not remove the session we had created for it, so "
        f"{session['id']} still exists and still holds one of this organization's session slots — delete it with "
        f"DELETE /v1/sessions/{session['id']}."
    )
    assert session["status"] == "failed"


@pytest.mark.behaviour("mcp.required.creation-alone")
def test_a_creation_without_input_works(api: Api) -> None:
    api.emulator.mcp.down("docs")

    answer = api.post("/v1/sessions", {"agent": {"tools": [REQUIRED]}})

    assert answer.status == 201
    assert answer.json["status"] == "idle"


@pytest.mark.behaviour("mcp.required.other-calls")
def test_calls_that_need_no_workspace_go_on(api: Api) -> None:
    session_id = api.session({"agent": {"tools": [REQUIRED]}})
    api.emulator.mcp.down("docs")

    context = api.send(session_id, {"type": "input.context", "content": "x"})
    steer = api.send(session_id, {"type": "input.steer", "content": "x"})

    assert (context.status, context.json["delivered"]) == (202, False)
    assert (steer.status, steer.code) == (409, "conflict")
    assert api.send(session_id, {"type": "input.cancel"}).status == 202
    assert put(api, session_id, REQUIRED).status == 200
    assert api.patch(f"/v1/sessions/{session_id}", {"title": "x"}).status == 200
    assert state(api, session_id) == "idle"
    assert api.delete(f"/v1/sessions/{session_id}").status == 200


@pytest.mark.behaviour("mcp.required.queued")
def test_a_message_that_waited_fails_its_own_turn(api: Api) -> None:
    @api.emulator.agent
    async def agent(turn: Any) -> None:
        if turn.message == "wait":
            await turn.ask("Go on?")

    session_id = api.session()
    api.say(session_id, "wait")
    api.emulator.mcp.down("docs")
    put(api, session_id, REQUIRED)
    assert api.say(session_id, "two").json["queued"] is True
    assert api.say(session_id, "three").json["queue_position"] == 2
    api.emulator.mcp.down("docs", times=1)

    api.emulator.answer("yes")
    api.emulator.settle()

    first, second, third = api.turns(session_id)
    assert (first["status"], second["status"], third["status"]) == ("completed", "failed", "completed")
    problem = "required MCP server(s) failed to initialise — docs: fetch failed"
    assert second["error"] == {"code": "invalid_request", "message": problem}
    (item,) = [item for item in api.items(session_id) if item["type"] == "error"]
    assert item["detail"] == {"event": "agent.error", "message": problem, "origin": "sandbox"}
    assert state(api, session_id) == "idle"


@pytest.mark.behaviour("mcp.required.tries-again")
def test_a_repeated_call_with_an_idempotency_key_tries_again(api: Api) -> None:
    session_id = api.session({"agent": {"tools": [REQUIRED]}})
    api.emulator.mcp.down("docs", times=1)
    key = {"idempotency-key": "job-1"}

    check_refused(api.say(session_id, "hello", headers=key), "docs: fetch failed")

    assert api.say(session_id, "hello", headers=key).status == 202
    assert [turn["status"] for turn in api.turns(session_id)] == ["completed"]
