"""The /_emulator routes, over HTTP and without it."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest
from jsonschema import Draft202012Validator

from emulator import ControlError, Emulator, EmulatorClient, settings
from emulator.control.operations import OPERATIONS
from emulator.control.routes import Control, dispatch
from emulator.refusals import Refusal
from tests.support import Api

if TYPE_CHECKING:
    from collections.abc import Iterator

    from emulator.runtime.turn import Turn

LOOKUP = {"type": "function", "name": "lookup"}
SCENARIO = {
    "scenario": "shop",
    "mcp": {"docs": {"state": "down", "reason": "fetch failed"}},
    "agent": [
        {"when": {"message": {"contains": "order"}}, "do": [{"call": {"function": "lookup", "as": "found"}}]},
        {"otherwise": [{"say": "Only orders."}]},
    ],
}
GETS = [operation for operation in OPERATIONS if operation.verb == "GET"]


def send(gobare: Emulator, verb: str, path: str, body: Any = None) -> Any:
    """An operation without HTTP."""
    return gobare.run(dispatch(gobare.socket, verb, path, body))


def refused(gobare: Emulator, verb: str, path: str, body: Any = None) -> Refusal:
    with pytest.raises(Refusal) as caught:
        send(gobare, verb, path, body)
    return caught.value


@pytest.fixture
def guarded() -> Iterator[Emulator]:
    """An emulator with a control token."""
    with Emulator(control_token="s3cret-control") as emulator:
        yield emulator


@pytest.fixture
def parked(gobare: Emulator, api: Api) -> str:
    """A session that waits for two function calls, an approval and a question."""

    @gobare.agent
    async def agent(turn: Turn) -> None:
        await turn.together(
            turn.call("lookup", order="A"),
            turn.call("lookup", order="B"),
            turn.approve("bash", {"command": "ls"}),
            turn.ask("Which region?", ["eu", "us"]),
        )

    return api.session({"input": "go", "agent": {"tools": [LOOKUP]}})


def call_of(api: Api, session_id: str, kind: str) -> str:
    return str(next(action["call_id"] for action in api.actions(session_id) if action["type"] == kind))


# Both ways


@pytest.mark.parametrize("operation", GETS, ids=lambda operation: operation.path)
def test_an_operation_answers_alike_with_and_without_http_and_as_declared(
    operation: Any, gobare: Emulator, api: Api, parked: str
) -> None:
    gobare.load(SCENARIO)
    gobare.mcp.serve("docs", {"search": {"text": "found"}})
    path = operation.path.format(session_id=parked, server="docs")
    over_http = api.get(path, token=None)
    assert over_http.status == 200
    assert over_http.json == send(gobare, "GET", path)
    assert over_http.headers["content-type"] == "application/json"
    operation.response.model.model_validate(over_http.json)


def test_reading_changes_nothing(gobare: Emulator, api: Api, parked: str) -> None:
    gobare.load(SCENARIO)

    gobare.mcp.serve("docs")
    paths = [operation.path.format(session_id=parked, server="docs") for operation in GETS]

    def everything() -> list[Any]:
        return [send(gobare, "GET", path) for path in paths]

    before = everything()
    for path in paths:
        api.get(path, token=None)
    assert everything() == before


@pytest.mark.parametrize(
    ("verb", "path", "body", "status", "message"),
    [
        ("GET", "/_emulator", None, 404, "There is no such control route. GET /_emulator/openapi.json lists them."),
        ("GET", "/_emulator/fault", None, 404, "There is no such control route"),
        ("POST", "/_emulator/scenario", {}, 405, "This path takes GET, PUT, DELETE."),
        ("PUT", "/_emulator/clock/advance", {}, 405, "This path takes POST."),
        ("GET", "/_emulator/report?all=1", None, 400, "Unknown query parameter `all`. None is accepted here."),
        ("GET", "/_emulator/events?session=x", None, 400, "Did you mean `session_id`?"),
        ("GET", "/_emulator/events?session_id=x", None, 404, "No session 'x'."),
        ("GET", "/_emulator/transcript?session_id=x", None, 404, "No session 'x'."),
        ("GET", "/_emulator/scenario", None, 404, "No scenario is loaded."),
        ("POST", "/_emulator/reset", [1], 400, "This call takes no body"),
        ("POST", "/_emulator/clock/advance", {}, 400, "`seconds` is required."),
        (
            "POST",
            "/_emulator/clock/advance",
            {"seconds": -1},
            400,
            "must be from 0 to 1000000000; -1 was sent.",
        ),
        ("POST", "/_emulator/clock/advance", {"seconds": "3"}, 400, "`seconds` must be a number; a string was sent."),
        ("POST", "/_emulator/clock/advance", {"minutes": 3}, 400, "Unknown field `minutes`."),
        ("POST", "/_emulator/tokens", {"scopes": ["sessions:red"]}, 400, "the scopes are cli, sessions:read"),
        ("POST", "/_emulator/tokens", {"scopes": "cli"}, 400, "`scopes` must be a list"),
        ("POST", "/_emulator/tokens", {"organization": None}, 400, "`organization` must be a string; null was sent."),
        ("DELETE", "/_emulator/tokens/tok_none", None, 404, "No token 'tok_none'."),
        ("PATCH", "/_emulator/settings", {"paec": "instant"}, 400, "Did you mean `pace`?"),
        ("PATCH", "/_emulator/settings", {"pace": "slow"}, 400, "`pace` is one of instant, realistic"),
        ("PATCH", "/_emulator/settings", {"seed": 1}, 400, "`seed` can only be set when the emulator starts."),
        ("PUT", "/_emulator/mcp/docs", {}, 400, "Send what is to happen: at least one of state, reason, times, fault,"),
        ("PUT", "/_emulator/mcp/docs", {"state": "up", "script": ["up"]}, 400, "`state` stands beside `script`, which"),
        ("PUT", "/_emulator/mcp/docs", {"state": "up", "times": 1}, 400, "`times` goes with `state: down`"),
        ("PUT", "/_emulator/mcp/docs", {"state": "down", "times": 0}, 400, "`times` must be at least 1"),
        ("PUT", "/_emulator/mcp/docs", {"script": []}, 400, "`script` must not be empty."),
        ("PUT", "/_emulator/mcp/docs", {"script": [{"state": "up"}, {"state": "of"}]}, 400, "`script[1].state`"),
        (
            "PUT",
            "/_emulator/mcp/docs",
            {"script": [{"state": "up", "reason": "x"}]},
            400,
            "`script[0].reason` goes with `state: down`",
        ),
        ("PUT", "/_emulator/mcp/docs", {"script": ["up", "dwn"]}, 400, "`script[1]` must be one of up, down, refuse,"),
        ("PUT", "/_emulator/mcp/docs", {"script": ["dwn"]}, 400, "`dwn` was sent. Did you mean `down`?"),
        (
            "PUT",
            "/_emulator/mcp/docs",
            {"script": ["slow"]},
            400,
            "`script[0].seconds` is missing: with the fault `slow`",
        ),
        ("PUT", "/_emulator/mcp/docs", {"script": [5]}, 400, "`script[0]` must be an object; an integer was sent."),
        ("PUT", "/_emulator/mcp/docs", {"script": [{"stat": "up"}]}, 400, "Unknown field `script[0].stat`."),
        ("PUT", "/_emulator/mcp/docs", {"calls": [{"fault": "drp"}]}, 400, "Did you mean `drop`?"),
        (
            "PUT",
            "/_emulator/mcp/docs",
            {"calls": [{"seconds": 1}]},
            400,
            "`calls[0].seconds` goes with the fault `slow`",
        ),
        ("PUT", "/_emulator/mcp/docs", {"calls": []}, 400, "`calls` must not be empty."),
        ("PUT", "/_emulator/mcp/docs", {"reason": None}, 400, "`reason` must not be null; leave it out."),
        ("PUT", "/_emulator/mcp/docs", {"fault": "slow", "seconds": -1}, 400, "`seconds` must be"),
        ("PUT", "/_emulator/mcp/docs", {"tools": {"s": {"txt": ""}}}, 400, "Unknown field `tools.s.txt`."),
        (
            "PUT",
            "/_emulator/mcp/docs",
            {"tools": {"s": {"text": "", "content": []}}},
            400,
            "`tools.s` has both `text` and `content`; write one of them.",
        ),
        ("PUT", "/_emulator/scenario", {"agent": [{"otherwise": [{"sya": "x"}]}]}, 400, "agent[0].otherwise[0].sya"),
        ("PUT", "/_emulator/scenario", {"agents": []}, 400, "Did you mean `agent`?"),
        ("POST", "/_emulator/actions", {}, 400, "Send exactly one of `approved`, `answer`; none was sent."),
        ("POST", "/_emulator/actions", {"approved": True, "answer": "x"}, 400, "approved and answer were sent."),
        ("POST", "/_emulator/actions", {"lose": True}, 400, "Unknown field `lose`."),
        ("POST", "/_emulator/actions", {"approved": True}, 404, "No approval is open now. Nothing is waited for."),
        ("POST", "/_emulator/actions/call_x", {"answer": "x"}, 404, "No call 'call_x'."),
        ("POST", "/_emulator/actions/call_x", {"output": "x"}, 400, "Unknown field `output`."),
        ("POST", "/_emulator/actions/call_x", {"lose": False}, 400, "`lose` must be true"),
        ("POST", "/_emulator/sessions/none/lose", None, 404, "No session 'none'."),
        ("GET", "/_emulator/sessions/none/tools", None, 404, "No session 'none'."),
        ("POST", "/_emulator/settle", {"timeout": 1000}, 400, "`timeout` must be at most 120"),
    ],
)
def test_a_refusal_says_what_to_fix_both_ways(
    verb: str, path: str, body: Any, status: int, message: str, gobare: Emulator, api: Api
) -> None:
    answer = api.request(verb, path, body, token=None)
    assert answer.status == status
    assert message in answer.message
    assert list(answer.json) == ["error"]
    assert answer.json["error"]["request_id"] == answer.headers["x-request-id"]
    refusal = refused(gobare, verb, path, body)
    assert (refusal.status, refusal.code, refusal.message) == (status, answer.code, answer.message)


def test_a_wrong_verb_is_told_the_right_ones(api: Api) -> None:
    answer = api.delete("/_emulator/settings", token=None)
    assert answer.status == 405
    assert answer.headers["allow"] == "GET, PATCH"


@pytest.mark.parametrize(
    "raw", [b"", b"{", b"[]", b'"text"', b'{"seconds": NaN}', b'{"seconds": 1e999}', b"\xff", b"[" * 3000]
)
def test_a_body_that_is_no_json_object_is_refused(raw: bytes, api: Api) -> None:
    answer = api.request("POST", "/_emulator/clock/advance", raw=raw, token=None)
    assert (answer.status, answer.code) == (400, "invalid_request")


def test_a_scenario_is_never_emptied_by_a_forgotten_body(gobare: Emulator, api: Api) -> None:
    gobare.load(SCENARIO)
    assert api.request("PUT", "/_emulator/scenario", raw=b"", token=None).status == 400
    assert api.get("/_emulator/scenario", token=None).json == SCENARIO


def test_a_body_past_the_ceiling_is_refused(api: Api) -> None:
    answer = api.request("PUT", "/_emulator/scenario", raw=b" " * (32 * 1024 * 1024 + 1), token=None)
    assert (answer.status, answer.code) == (400, "invalid_request")
    assert "33554432" in answer.message


def test_a_body_that_json_does_not_have_is_refused_without_http_too(gobare: Emulator) -> None:
    assert refused(gobare, "PUT", "/_emulator/scenario", {"agent": object()}).code == "invalid_request"
    assert refused(gobare, "POST", "/_emulator/clock/advance", {"seconds": float("nan")}).code == "invalid_request"


def test_what_json_does_not_have_is_told_by_its_place_by_every_handle(gobare: Emulator) -> None:
    with EmulatorClient(gobare.url) as client:
        for handle in (gobare, client):
            with pytest.raises(ControlError, match=r"^tools\.search\.text is a function, which JSON does not have\. "):
                handle.mcp.serve("docs", {"search": {"text": lambda: "found"}})


def test_a_client_that_leaves_before_its_body_is_sent_gets_nothing(gobare: Emulator) -> None:
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    path = "/_emulator/reset"
    scope = {"method": "POST", "raw_path": path.encode(), "query_string": b"", "headers": []}
    gobare.run(Control()({**scope, "type": "http", "path": path, "state": {"emulator": gobare.socket}}, receive, send))
    assert sent == []


def test_an_error_of_ours_tells_nothing_of_itself(
    api: Api, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(_: object) -> Any:
        raise RuntimeError("the value is gbr_pat_12345")

    monkeypatch.setattr(settings, "as_json", broken)
    answer = api.get("/_emulator/settings", token=None)
    assert (answer.status, answer.code) == (500, "internal_error")
    assert b"RuntimeError" not in answer.raw
    assert "RuntimeError" in caplog.text
    assert "gbr_pat_12345" not in caplog.text


# The control token


@pytest.mark.parametrize(
    "authorization", [None, "Bearer", "Bearer wrong", "Basic s3cret-control", "s3cret-control", "Bearer s3cret-controł"]
)
def test_a_control_token_is_asked_for(guarded: Emulator, authorization: str | None) -> None:
    headers = {} if authorization is None else {"authorization": authorization.encode().decode("latin-1")}
    answer = Api(guarded).get("/_emulator/report", token=None, headers=headers)
    assert (answer.status, answer.code) == (401, "authentication_error")
    assert answer.headers["www-authenticate"].startswith("Bearer")
    assert b"s3cret-control" not in answer.raw


def test_a_control_token_opens_the_routes_and_health_needs_none(guarded: Emulator) -> None:
    api = Api(guarded)
    assert api.get("/_emulator/report", token="s3cret-control").status == 200
    assert api.get("/_emulator/health", token=None).json["status"] == "ok"
    assert api.get("/v1/sessions").status == 200
    assert guarded.report()["script_errors"] == []


def test_an_access_token_does_not_open_guarded_routes(guarded: Emulator) -> None:
    assert Api(guarded).post("/_emulator/tokens", {}).status == 401


def test_the_control_token_comes_out_nowhere(guarded: Emulator) -> None:
    api = Api(guarded)
    api.get("/v1/sessions", token="s3cret-control")
    for operation in GETS:
        if "{" not in operation.path:
            assert b"s3cret-control" not in api.get(operation.path, token="s3cret-control").raw


# The operations


def test_reset_starts_over(gobare: Emulator, api: Api, parked: str) -> None:
    token = gobare.tokens.mint()
    gobare.load(SCENARIO)
    gobare.mcp.down("docs")
    gobare.settings.update(session_limit=1)
    gobare.clock.advance(60)
    assert api.post("/_emulator/reset", token=None).json == {"status": "ok"}
    assert api.get(f"/v1/sessions/{parked}").status == 404
    assert api.get("/v1/sessions", token=token.token).status == 401
    assert api.get("/_emulator/scenario", token=None).status == 404
    assert api.get("/_emulator/mcp", token=None).json == {"servers": {}}
    assert gobare.settings.get()["session_limit"] == 25
    assert gobare.clock.now() == 1_767_225_600_000
    assert [(entry.path, entry.status) for entry in gobare.requests] == [
        (f"/v1/sessions/{parked}", 404),
        ("/v1/sessions", 401),
    ]


def test_a_scenario_is_put_read_and_taken_away(gobare: Emulator, api: Api) -> None:
    assert api.put("/_emulator/scenario", SCENARIO, token=None).json == SCENARIO
    assert api.get("/_emulator/scenario", token=None).json == SCENARIO
    assert gobare.socket.deployment.outages.scripted["docs"].next_connect.fault == "refuse"
    session_id = api.session({"input": "hello"})
    assert gobare.transcript(session_id).last_message == "Only orders."
    for _ in range(2):
        assert api.delete("/_emulator/scenario", token=None).json == {"status": "ok"}
    assert api.get("/_emulator/mcp", token=None).json == {"servers": {}}


def test_a_bad_scenario_changes_nothing(api: Api) -> None:
    api.put("/_emulator/scenario", SCENARIO, token=None)
    assert api.put("/_emulator/scenario", {"agent": [{"do": []}]}, token=None).status == 400
    assert api.get("/_emulator/scenario", token=None).json == SCENARIO


def test_a_refused_scenario_does_not_repeat_a_token(api: Api) -> None:
    answer = api.put("/_emulator/scenario", {"mcp": {"docs": {"state": "gbr_pat_12345"}}}, token=None)
    assert answer.status == 400
    assert "gbr_pat_12345" not in answer.message


def test_a_replaced_scenario_leaves_a_running_turn_its_script(gobare: Emulator, api: Api) -> None:
    steps = [{"call": {"function": "lookup", "as": "found"}}, {"say": "It is {{ found.output }}."}]
    gobare.load({"agent": [{"otherwise": steps}]})
    session_id = api.session({"input": "go", "agent": {"tools": [LOOKUP]}})
    gobare.load({"agent": [{"otherwise": [{"say": "new"}]}]})
    api.answer(session_id, api.actions(session_id)[0], "42")
    assert gobare.transcript().last_message == "It is 42."
    api.say(session_id, "again")
    assert gobare.transcript().last_message == "new"


UP: dict[str, Any] = {
    "state": "up",
    "reason": None,
    "times": None,
    "fault": None,
    "seconds": 0,
    "connects": 0,
    "calls": [],
    "tools": None,
}


def test_servers_are_scripted_by_name(api: Api) -> None:
    down = {**UP, "state": "down", "reason": "fetch failed", "fault": "refuse"}
    assert api.put("/_emulator/mcp/docs", {"state": "down", "times": 1}, token=None).json == {**down, "times": 1}
    script = [{"state": "down", "reason": "gone"}, "up", {"fault": "hang", "tools": {}}]
    gone = {**down, "reason": "gone", "connects": 3}
    assert api.put("/_emulator/mcp/a%2Fb", {"script": script}, token=None).json == gone
    servers = {"docs": {**down, "times": 1}, "a/b": gone}
    assert api.get("/_emulator/mcp", token=None).json == {"servers": servers}
    assert api.put("/_emulator/mcp/docs", {"state": "up"}, token=None).json == UP
    assert api.delete("/_emulator/mcp/docs", token=None).json == UP
    assert api.delete("/_emulator/mcp/docs", token=None).json == UP
    assert list(api.get("/_emulator/mcp", token=None).json["servers"]) == ["a/b"]


def test_what_the_next_connect_and_the_next_calls_meet_can_be_read(api: Api) -> None:
    slow = {**UP, "fault": "slow", "seconds": 2.5, "times": 3}
    assert api.put("/_emulator/mcp/docs", {"fault": "slow", "seconds": 2.5, "times": 3}, token=None).json == slow

    calls = ["ok", {"fault": "hang", "tool": "search"}, {"fault": "error", "text": "no"}, "time_out"]
    body = {"calls": calls, "tools": {"search": {"text": "x"}}}

    # What was said of connects stays where nothing is said of them.
    assert api.put("/_emulator/mcp/docs", body, token=None).json == {
        **slow,
        "calls": [
            {"fault": "ok", "tool": None, "seconds": 0, "text": None},
            {"fault": "hang", "tool": "search", "seconds": None, "text": None},
            {"fault": "error", "tool": None, "seconds": 0, "text": "no"},
            {"fault": "time_out", "tool": None, "seconds": 60, "text": "the server did not answer within 60s"},
        ],
        "tools": ["search"],
    }


def test_the_tools_of_a_scenario_are_the_servers_own(gobare: Emulator, api: Api) -> None:
    gobare.load({"mcp": {"docs": {"calls": ["drop"], "tools": {"search": {}}}, "notes": {"tools": {"search": {}}}}})
    drop = {"fault": "drop", "tool": None, "seconds": 0, "text": "the connection was lost during the call"}
    assert api.get("/_emulator/mcp", token=None).json == {"servers": {"docs": {**UP, "calls": [drop]}}}


def test_the_document_has_no_null_where_none_is_taken(api: Api) -> None:
    schemas = api.get("/_emulator/openapi.json", token=None).json["components"]["schemas"]
    for name in ("ServerRequest", "ServedPlan", "McpTool", "ToolCall", "Connect"):
        assert schemas[name]["properties"]
        assert '"null"' not in json.dumps(schemas[name])
    assert schemas["ServerRequest"]["minProperties"] == 1


def test_entries_that_are_no_list_are_refused_as_what_they_are(gobare: Emulator) -> None:
    for entries, kind in (("drop", "a string"), ({"fault": "drop"}, "an object")):
        with pytest.raises(ControlError, match=f"`calls` must be a list; {kind} was sent"):
            gobare.mcp.calls("docs", entries)
    with pytest.raises(ControlError, match=r"`script\[0\]` must be an object; an integer was sent"):
        gobare.mcp.script("docs", [3])  # type: ignore[list-item]


def test_what_goes_wrong_with_calls_is_sent_from_connects_to_calls_and_back(gobare: Emulator) -> None:
    connects: list[Any] = ["drop", {"fault": "drop"}]
    for entry in connects:
        with pytest.raises(ControlError, match=r"`drop` was sent\. .* goes under `calls`\."):
            gobare.mcp.script("docs", [entry])
        with pytest.raises(ControlError, match=r", not 'drop'\. .* goes under `calls`\."):
            gobare.load({"mcp": {"docs": {"script": [entry]}}})
    with pytest.raises(ControlError, match=r"`drop` was sent\. .* goes under `calls`\."):
        gobare.mcp.down("docs", fault="drop")
    with pytest.raises(ControlError, match=r", not 'drop'\. .* goes under `calls`\."):
        gobare.load({"mcp": {"docs": {"fault": "drop"}}})
    calls: list[Any] = ["down", {"fault": "up"}]
    for entry in calls:
        with pytest.raises(ControlError, match=r"was sent\. .* goes under `script`\."):
            gobare.mcp.calls("docs", [entry])
        with pytest.raises(ControlError, match=r"\. .* goes under `script`\."):
            gobare.load({"mcp": {"docs": {"calls": [entry]}}})


def test_a_refused_word_about_a_server_changes_nothing(api: Api) -> None:
    before = api.put("/_emulator/mcp/docs", {"fault": "unauthorized", "times": 2}, token=None).json
    assert before["reason"] == "the server answered 401"

    assert api.put("/_emulator/mcp/docs", {"script": ["up", "slow"]}, token=None).status == 400

    assert api.get("/_emulator/mcp", token=None).json["servers"] == {"docs": before}


def test_a_server_that_is_down_refuses_its_connects_and_then_comes_up(gobare: Emulator, api: Api) -> None:
    api.put("/_emulator/mcp/docs", {"state": "down", "reason": "no route", "times": 1}, token=None)
    docs = {"type": "mcp", "name": "docs", "url": "http://docs.test/mcp", "required": True}
    session_id = api.session({"agent": {"tools": [docs]}})
    assert "docs: no route" in api.say(session_id, "hi").message
    assert api.say(session_id, "hi").status == 202


def test_advancing_runs_what_falls_due(gobare: Emulator, api: Api) -> None:
    @gobare.agent
    async def agent(turn: Turn) -> None:
        result = await turn.call("lookup")
        await turn.wait(10)
        await turn.say("late" if not result.success else "in time")

    session_id = api.session({"input": "go", "agent": {"tools": [{**LOOKUP, "timeout_seconds": 5}]}})
    before = api.get("/_emulator/clock", token=None).json["now"]
    after = api.post("/_emulator/clock/advance", {"seconds": 20}, token=None).json["now"]
    assert after == before + 20_000
    assert api.get("/_emulator/clock", token=None).json == {"now": after}
    assert gobare.transcript(session_id).last_message == "late"
    assert api.post("/_emulator/clock/advance", {"seconds": 0}, token=None).json == {"now": after}


def test_a_token_is_minted_used_and_revoked(gobare: Emulator, api: Api) -> None:
    answer = api.post("/_emulator/tokens", {"scopes": ["sessions:read", "cli"], "organization": "acme"}, token=None)
    assert answer.status == 201
    minted = answer.json
    assert minted["scopes"] == ["cli", "sessions:read"]
    assert (minted["organization"], minted["expires_at"]) == ("acme", None)
    assert api.get("/v1/health", token=minted["token"]).json["scopes"] == ["cli", "sessions:read"]
    assert api.post("/v1/sessions", {}, token=minted["token"]).status == 403
    assert api.delete(f"/_emulator/tokens/{minted['id']}", token=None).json == {"id": minted["id"], "revoked": True}
    assert api.get("/v1/health", token=minted["token"]).status == 401


def test_a_token_has_the_usual_scopes_and_no_end_unless_told(gobare: Emulator, api: Api) -> None:
    minted = api.request("POST", "/_emulator/tokens", raw=b"", token=None).json
    assert "cli" not in minted["scopes"]
    assert len(minted["scopes"]) == 5
    assert (minted["organization"], minted["expires_at"]) == ("default", None)


def test_a_token_expires_on_the_emulators_clock(gobare: Emulator, api: Api) -> None:
    minted = api.post("/_emulator/tokens", {"expires_in": 60}, token=None).json
    assert minted["expires_at"] == gobare.clock.now() + 60_000
    assert api.get("/v1/sessions", token=minted["token"]).status == 200
    gobare.clock.advance(60)
    assert api.get("/v1/sessions", token=minted["token"]).status == 401


def test_settings_are_changed_while_running(api: Api) -> None:
    before = api.get("/_emulator/settings", token=None).json
    answer = api.patch("/_emulator/settings", {"session_limit": 1, "disabled_tools": ["browse"]}, token=None)
    assert answer.json == {**before, "session_limit": 1, "disabled_tools": ["browse"]}
    assert api.get("/_emulator/settings", token=None).json == answer.json
    api.session()
    assert api.post("/v1/sessions", {}).code == "project_limit_exceeded"


def test_the_journal_tells_of_v1_and_not_of_itself(gobare: Emulator, api: Api) -> None:
    session_id = api.session({"title": "one"})
    api.get("/_emulator/clock", token=None)
    answer = api.get("/_emulator/requests", token=None).json
    assert answer["dropped"] == 0
    (entry,) = answer["data"]
    assert (entry["method"], entry["path"], entry["status"]) == ("POST", "/v1/sessions", 201)
    assert entry["body"] == {"title": "one"}
    assert entry["token_id"] == api.get(f"/v1/sessions/{session_id}").json["created_by_token"]


def test_the_journal_is_bounded_and_counts_what_it_dropped(gobare: Emulator, api: Api) -> None:
    gobare.settings.update(journal_limit=2)
    for _ in range(5):
        api.get("/v1/sessions")
    answer = api.get("/_emulator/requests", token=None).json
    assert (len(answer["data"]), answer["dropped"]) == (2, 3)


def test_events_are_told_of_one_session_and_of_all_in_order(gobare: Emulator, api: Api) -> None:
    other = gobare.tokens.mint(organization="acme")
    first = api.session({"input": "one"})
    second = api.session({"input": "two"}, token=other.token)
    api.say(first, "three")
    everything = api.get("/_emulator/events", token=None).json["data"]
    assert [event["created_at"] for event in everything] == sorted(event["created_at"] for event in everything)
    assert {event["session_id"] for event in everything} == {first, second}
    of_first = api.get(f"/_emulator/events?session_id={first}", token=None).json["data"]
    assert of_first == [event for event in everything if event["session_id"] == first]
    with api.stream(f"/v1/sessions/{first}/events?last_event_id=0") as frames:
        assert [frames.event() for _ in of_first][-1].data == of_first[-1]  # type: ignore[union-attr]


def test_the_transcript_is_the_latest_sessions_unless_named(gobare: Emulator, api: Api) -> None:
    assert api.get("/_emulator/transcript", token=None).json == {"session_id": None, "data": [], "events": []}
    first = api.session({"input": "one"})
    second, third = api.session(), api.session()
    assert api.get("/_emulator/transcript", token=None).json == {"session_id": third, "data": [], "events": []}
    assert api.get(f"/_emulator/transcript?session_id={second}", token=None).json["data"] == []
    told = api.get(f"/_emulator/transcript?session_id={first}", token=None).json
    assert told == {"session_id": first, "data": api.items(first), "events": api.events(first)}


def test_settle_tells_whether_the_agent_came_to_rest(gobare: Emulator, api: Api) -> None:
    gobare.settings.update(pace="realistic")
    go = asyncio.Event()

    @gobare.agent
    async def agent(turn: Turn) -> None:
        await go.wait()
        await turn.say("done")

    api.session({"input": "go"})
    for timeout in (0, 0.05):
        assert api.post("/_emulator/settle", {"timeout": timeout}, token=None).json == {"at_rest": False}
    gobare.loop.loop.call_soon_threadsafe(go.set)
    assert api.post("/_emulator/settle", {"timeout": 5}, token=None).json == {"at_rest": True}
    assert api.request("POST", "/_emulator/settle", raw=b"", token=None).json == {"at_rest": True}
    assert gobare.transcript().last_message == "done"
    # It was told; it is nothing to report as well.
    assert gobare.report()["agent_not_at_rest"] == []


# Actions


def test_the_person_at_the_console_decides(gobare: Emulator, api: Api) -> None:
    decided: list[object] = []

    @gobare.agent
    async def agent(turn: Turn) -> None:
        decided.append(await turn.approve("bash", {"command": "ls"}))
        decided.append(await turn.ask("Which region?"))
        await turn.say("done")

    session_id = api.session({"input": "go"})
    approval = call_of(api, session_id, "approval")
    answer = api.post(f"/_emulator/actions/{approval}", {"approved": False}, token=None)
    assert answer.json == {
        "call_id": approval,
        "session_id": session_id,
        "turn_id": api.turns(session_id)[0]["id"],
        "type": "approval",
        "outcome": "accepted",
    }
    # The reply came once the agent was at rest again.
    question = call_of(api, session_id, "question")
    assert api.post("/_emulator/actions", {"answer": "eu"}, token=None).json["call_id"] == question
    assert decided == [False, "eu"]
    assert api.get(f"/v1/sessions/{session_id}").json["status"] == "idle"


@pytest.mark.parametrize(
    ("kind", "body", "message"),
    [
        ("question", {"approved": True}, "is a question, which `answer` answers; `approved` was sent."),
        ("approval", {"answer": "x"}, "is an approval, which `approved` decides; `answer` was sent."),
        ("function_call", {"approved": True}, "answers over /v1 with input.tool_result; `approved` was sent."),
        ("question", {"lose": True}, "is a question, which `answer` answers; `lose` was sent."),
    ],
)
def test_an_action_of_another_type_is_refused(kind: str, body: Any, message: str, api: Api, parked: str) -> None:
    answer = api.post(f"/_emulator/actions/{call_of(api, parked, kind)}", body, token=None)
    assert answer.status == 400
    assert answer.message.endswith(message)
    assert len(api.actions(parked)) == 4


def test_an_action_is_decided_once(api: Api, parked: str) -> None:
    call_id = call_of(api, parked, "approval")
    assert api.post(f"/_emulator/actions/{call_id}", {"approved": True}, token=None).status == 200
    answer = api.post(f"/_emulator/actions/{call_id}", {"approved": True}, token=None)
    assert (answer.status, answer.code) == (409, "conflict")
    assert "it is answered" in answer.message


def test_the_only_one_open_is_not_guessed_among_several(api: Api, parked: str) -> None:
    other = api.session({"input": "go", "agent": {"tools": [LOOKUP]}})
    answer = api.post("/_emulator/actions", {"approved": True}, token=None)
    assert (answer.status, answer.code) == (409, "conflict")
    for session_id in (parked, other):
        assert call_of(api, session_id, "approval") in answer.message
        assert call_of(api, session_id, "question") not in answer.message


def test_a_lost_calls_answer_is_not_delivered(api: Api, parked: str) -> None:
    first, second = (action for action in api.actions(parked) if action["type"] == "function_call")
    answer = api.post(f"/_emulator/actions/{first['call_id']}", {"lose": True}, token=None)
    assert (answer.json["call_id"], answer.json["outcome"]) == (first["call_id"], "lost")
    assert api.answer(parked, first).json["outcome"] == "not_delivered"
    assert api.answer(parked, second).json["outcome"] == "accepted"


def test_every_call_a_session_is_parked_on_is_lost(api: Api, parked: str) -> None:
    calls = [action for action in api.actions(parked) if action["type"] == "function_call"]
    answer = api.post(f"/_emulator/sessions/{parked}/lose", token=None)
    assert answer.json == {"lost": [call["call_id"] for call in calls]}
    assert [api.answer(parked, call).json["outcome"] for call in calls] == ["not_delivered"] * 2
    assert api.post(f"/_emulator/sessions/{parked}/lose", {}, token=None).json == {"lost": []}


# Effective tools


@pytest.mark.parametrize(
    ("tools", "configured", "built_ins"),
    [
        (None, False, ["web_search", "web_fetch", "image_search", "browser_act", "screenshot"]),
        ([], True, []),
        ([LOOKUP], True, ["web_search", "web_fetch", "image_search", "browser_act", "screenshot"]),
        ([{"type": "web_search"}, {"type": "browse"}], True, ["web_search"]),
    ],
)
def test_the_effective_tools_are_told(
    tools: Any, configured: bool, built_ins: list[str], gobare: Emulator, api: Api
) -> None:
    gobare.settings.update(disabled_tools=["browse"])
    session_id = api.session({} if tools is None else {"agent": {"tools": tools}})
    answer = api.get(f"/_emulator/sessions/{session_id}/tools", token=None).json
    assert answer == {
        "configured": configured,
        "built_ins": built_ins,
        "functions": ["lookup"] if tools == [LOOKUP] else [],
        "servers": [],
    }


def test_the_effective_tools_follow_when_a_put_reaches_the_agent(gobare: Emulator, api: Api) -> None:
    gobare.settings.update(tools_reach="next_workspace")
    session_id = api.session({"input": "hi", "agent": {"tools": []}})
    api.put(f"/v1/sessions/{session_id}/tools", {"tools": [LOOKUP]})
    assert gobare.effective_tools(session_id)["functions"] == []
    gobare.settings.update(tools_reach="next_turn")
    assert gobare.effective_tools(session_id)["functions"] == ["lookup"]


# The document


def test_the_document_has_every_operation_and_its_references_lead_somewhere(api: Api) -> None:
    document = api.get("/_emulator/openapi.json", token=None).json
    described = {(verb.upper(), path) for path, verbs in document["paths"].items() for verb in verbs}
    assert described == {(operation.verb, operation.path) for operation in OPERATIONS}
    schemas = document["components"]["schemas"]
    for schema in schemas.values():
        Draft202012Validator.check_schema(schema)
    text = json.dumps(document)
    for part in text.split('"$ref": "')[1:]:
        assert part.partition('"')[0].removeprefix("#/components/schemas/") in schemas
    assert "Idempotency-Key" not in text
    identifiers = [entry["operationId"] for verbs in document["paths"].values() for entry in verbs.values()]
    assert len(set(identifiers)) == len(identifiers)


def test_the_documents_schemas_accept_what_is_answered(gobare: Emulator, api: Api, parked: str) -> None:
    gobare.load(SCENARIO)
    gobare.mcp.serve("docs", {"search": {"text": "found"}})
    document = api.get("/_emulator/openapi.json", token=None).json
    for operation in GETS:
        answer = api.get(operation.path.format(session_id=parked, server="docs"), token=None)
        described = document["paths"][operation.path]["get"]["responses"]["200"]
        schema = {**described["content"]["application/json"]["schema"], "components": document["components"]}
        Draft202012Validator(schema).validate(answer.json)


def test_the_document_says_where_a_control_token_goes(api: Api) -> None:
    paths = api.get("/_emulator/openapi.json", token=None).json["paths"]
    assert paths["/_emulator/health"]["get"]["security"] == []
    assert paths["/_emulator/report"]["get"]["security"] == [{}, {"controlToken": []}]
    assert "401" in paths["/_emulator/report"]["get"]["responses"]
    assert "409" in paths["/_emulator/actions"]["post"]["responses"]
    assert paths["/_emulator/tokens"]["post"]["requestBody"]["required"] is False
    assert "201" in paths["/_emulator/tokens"]["post"]["responses"]


@pytest.mark.parametrize(
    "body", [{"approved": True, "code": "approval_timeout"}, {"answer": "x", "code": "approval_timeout"}]
)
def test_a_code_goes_with_a_refusal_only(api: Api, body: dict[str, Any]) -> None:
    api.emulator.load({"agent": [{"otherwise": [{"approve": {"tool": "bash"}}]}]})
    api.session({"input": "go"})
    answer = api.post("/_emulator/actions", body, token=None)
    assert (answer.status, answer.code) == (400, "invalid_request")
    assert "`code` goes with `approved: false`" in answer.message
    assert len(api.emulator.report()["unanswered_actions"]) == 1
