"""Tokens, scopes, organizations (contract §3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.contract.calls import CALLS, NOWHERE, WITH_A_SCOPE, WITH_A_TOKEN, Known, call, mint, place

if TYPE_CHECKING:
    from tests.support import Api

UNRECOGNIZED = "This access token is not recognized"
FUNCTION = {"agent": {"tools": [{"type": "function", "name": "f"}]}, "input": "go"}


def parked(api: Api, verb: str) -> tuple[str, dict[str, Any]]:
    """A session whose agent waits for a call, an approval or a question, and what it waits for."""

    @api.emulator.agent
    async def agent(turn: Any) -> None:
        match verb:
            case "call":
                await turn.call("f")
            case "approve":
                await turn.approve("bash", {})
            case _:
                await turn.ask("Which?")

    session_id = api.session(FUNCTION)
    return session_id, api.actions(session_id)[0]


def result(action: dict[str, Any]) -> dict[str, Any]:
    pair = {"turn_id": action["turn_id"], "call_id": action["call_id"]}
    return {"type": "input.tool_result", **pair, "success": True, "output": "done"}


@pytest.mark.behaviour("access.bearer")
@pytest.mark.parametrize("form", ["Bearer {}", "bearer {}", "Bearer  {} "])
def test_a_token_is_a_bearer_token(api: Api, form: str) -> None:
    headers = {"authorization": form.format(api.emulator.token)}
    assert api.get("/v1/health", token=None, headers=headers).status == 200


@pytest.mark.behaviour("access.missing")
@pytest.mark.parametrize("known", WITH_A_TOKEN, ids=str)
def test_a_call_without_a_token_is_refused(api: Api, known: Known) -> None:
    answer = call(api, known, place(api), token=None)
    assert (answer.status, answer.code) == (401, "authentication_error")
    assert "Authorization" in answer.message


@pytest.mark.behaviour("access.unknown")
@pytest.mark.parametrize("known", WITH_A_TOKEN, ids=str)
def test_an_unknown_token_is_not_recognized(api: Api, known: Known) -> None:
    answer = call(api, known, token="gbr_pat_nobody")
    assert (answer.status, answer.code, answer.message) == (401, "authentication_error", UNRECOGNIZED)


@pytest.mark.behaviour("access.revoked")
def test_a_revoked_token_is_refused_at_the_next_request(api: Api) -> None:
    minted = api.emulator.tokens.mint()
    assert api.get("/v1/health", token=minted.token).status == 200
    api.emulator.tokens.revoke(minted.id)
    answer = api.get("/v1/health", token=minted.token)
    assert (answer.status, answer.message) == (401, UNRECOGNIZED)
    assert answer.headers["www-authenticate"] == 'Bearer realm="gobare", error="invalid_token"'
    assert api.get("/v1/health").status == 200


@pytest.mark.behaviour("access.expired")
def test_a_token_expires_on_the_clock(api: Api) -> None:
    token = api.emulator.tokens.mint(expires_in=60).token
    api.emulator.clock.advance(59.999)
    assert api.get("/v1/health", token=token).status == 200
    api.emulator.clock.advance(0.001)
    answer = api.get("/v1/health", token=token)
    assert (answer.status, answer.message) == (401, UNRECOGNIZED)


@pytest.mark.behaviour("access.malformed")
@pytest.mark.parametrize(
    "header", ["", "Bearer", "Bearer ", "gbr_pat_emulator", "Basic Z2JyOmdicg==", "Token gbr_pat_x"]
)
def test_a_header_of_another_form_is_refused(api: Api, header: str) -> None:
    answer = api.get("/v1/health", token=None, headers={"authorization": header})
    assert (answer.status, answer.code) == (401, "authentication_error")
    assert answer.headers["www-authenticate"] == 'Bearer realm="gobare", error="invalid_request"'


@pytest.mark.behaviour("access.scope-message")
def test_a_missing_scope_is_named_in_quotes(api: Api) -> None:
    answer = api.get("/v1/sessions", token=mint(api, "sessions:write"))
    assert answer.message == 'This token does not have the "sessions:read" scope.'
    answer = api.post("/v1/sessions", {}, token=mint(api, "sessions:read"))
    assert answer.message == 'This token does not have the "sessions:write" scope.'


@pytest.mark.behaviour("access.cli")
@pytest.mark.parametrize("known", WITH_A_SCOPE, ids=str)
def test_a_token_with_only_cli_is_refused(api: Api, known: Known) -> None:
    answer = call(api, known, NOWHERE, token=mint(api, "cli"))
    assert (answer.status, answer.code) == (403, "permission_denied")


@pytest.mark.behaviour("access.cli")
def test_only_health_and_what_is_public_take_a_token_with_only_cli(api: Api) -> None:
    token = mint(api, "cli")
    taken = [str(known) for known in CALLS if known.scope is None and call(api, known, token=token).status == 200]
    assert taken == ["GET /v1/health", "GET /v1/openapi.json", "GET /v1/model-connectors"]


@pytest.mark.behaviour("access.cli-and-more")
def test_cli_beside_another_scope_takes_nothing_away(api: Api) -> None:
    assert api.get("/v1/sessions", token=mint(api, "cli", "sessions:read")).status == 200


@pytest.mark.behaviour("access.tool-result")
def test_write_does_not_answer_a_call_and_respond_does(api: Api) -> None:
    session_id, action = parked(api, "call")
    others = ("sessions:read", "sessions:write", "artifacts:read", "credentials:write")
    refused = api.send(session_id, result(action), token=mint(api, *others))
    assert (refused.status, refused.message) == (403, 'This token does not have the "tools:respond" scope.')
    assert api.actions(session_id) == [action]
    answer = api.send(session_id, result(action), token=mint(api, "tools:respond"))
    assert (answer.status, answer.json["outcome"]) == (202, "accepted")


@pytest.mark.behaviour("access.respond-only", "access.write-events")
@pytest.mark.parametrize(
    "event",
    [
        {"type": "input.message", "content": "a"},
        {"type": "input.context", "content": "a"},
        {"type": "input.steer", "content": "a"},
        {"type": "input.cancel"},
        {"type": "input.approval", "call_id": "c", "approved": True},
        {"type": "input.question_answer", "call_id": "c", "answer": "a"},
    ],
    ids=lambda event: event["type"],
)
def test_respond_sends_nothing_but_results(api: Api, event: dict[str, Any]) -> None:
    session_id, _ = parked(api, "call")
    before = api.events(session_id)
    refused = api.send(session_id, event, token=mint(api, "tools:respond"))
    assert (refused.status, refused.message) == (403, 'This token does not have the "sessions:write" scope.')
    assert api.events(session_id) == before
    assert api.send(session_id, event, token=mint(api, "sessions:write")).status == 202


@pytest.mark.behaviour("access.answers")
@pytest.mark.parametrize(
    ("verb", "event"),
    [
        ("approve", {"type": "input.approval", "approved": True}),
        ("ask", {"type": "input.question_answer", "answer": "a"}),
    ],
)
def test_approvals_and_questions_are_answered_with_write(api: Api, verb: str, event: dict[str, Any]) -> None:
    session_id, action = parked(api, verb)
    event = {**event, "call_id": action["call_id"]}
    assert api.send(session_id, event, token=mint(api, "tools:respond", "sessions:read")).status == 403
    answer = api.send(session_id, event, token=mint(api, "sessions:write"))
    assert (answer.status, answer.json["outcome"]) == (202, "accepted")


@pytest.mark.behaviour("access.created-by")
def test_a_session_tells_the_id_of_its_token(api: Api) -> None:
    minted = api.emulator.tokens.mint()
    answer = api.post("/v1/sessions", {}, token=minted.token)
    assert answer.json["created_by_token"] == minted.id
    read = api.get(f"/v1/sessions/{answer.json['id']}").json
    assert read["created_by_token"] == minted.id != minted.token


@pytest.mark.behaviour("access.organization-lists")
def test_a_list_shows_nothing_of_another_organization(api: Api) -> None:
    other = mint(api, organization="other")
    api.session()
    assert api.get("/v1/sessions", token=other).json["data"] == []
    theirs = api.session(token=other)
    assert [entry["id"] for entry in api.get("/v1/sessions", token=other).json["data"]] == [theirs]
    assert theirs not in api.get("/v1/sessions").raw.decode()


@pytest.mark.behaviour("access.organization-ids")
def test_a_session_of_another_organization_cannot_be_named(api: Api) -> None:
    other = mint(api, organization="other")
    theirs = api.session(token=other)
    for foreign in (theirs, NOWHERE.session_id):
        answers = [
            api.post("/v1/sessions", {"parent_session_id": foreign}),
            api.get(f"/v1/sessions?root={foreign}"),
            api.get(f"/v1/events?root={foreign}"),
        ]
        assert [answer.code for answer in answers] == ["not_found"] * 3
        assert {answer.message.replace(foreign, "X") for answer in answers} == {"No session 'X'."}
    assert api.get(f"/v1/sessions?after={theirs}").json["data"] == []


@pytest.mark.behaviour("access.organization-streams")
def test_a_stream_shows_nothing_of_another_organization(api: Api) -> None:
    other = mint(api, organization="other")
    with api.stream("/v1/events", token=other) as frames:
        api.session({"input": "ours"})
        theirs = api.session({"input": "theirs"}, token=other)
        seen = frames.until("turn.ended")
    assert {frame.data["session_id"] for frame in seen} == {theirs}
    assert seen[0].id == 1
    assert seen[0].payload == {"text": "theirs"}


@pytest.mark.behaviour("access.organization-shared")
def test_two_tokens_of_one_organization_see_the_same(api: Api) -> None:
    session_id = api.session({"title": "ours"})
    assert api.get(f"/v1/sessions/{session_id}", token=mint(api)).json["title"] == "ours"


@pytest.mark.behaviour("access.secret")
def test_a_token_stands_in_nothing_that_comes_out(api: Api) -> None:
    token = mint(api)
    session_id = api.session({"input": "hello"}, token=token)
    paths = ("/v1/health", "/v1/sessions", f"/v1/sessions/{session_id}", f"/v1/sessions/{session_id}/items", "/v1/x")
    answers = [api.get(path, token=token) for path in paths]
    answers += [api.post("/v1/sessions", {token: 1}, token=token), api.get(f"/v1/sessions?{token}=1", token=token)]
    assert [answer.status for answer in answers] == [200, 200, 200, 200, 404, 400, 400]
    secret = token.removeprefix("gbr_pat_")
    for answer in answers:
        assert secret not in answer.raw.decode() + str(answer.headers)
    assert secret not in str(api.events(session_id))
    assert secret not in str(api.emulator.requests)
    assert secret not in str(api.emulator.report())
