"""What is served where (contract §4)."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from emulator.api.operations import OPERATIONS
from tests.contract.calls import (
    ALL_SCOPES,
    CALLS,
    NOWHERE,
    WITH_A_SCOPE,
    WITH_JSON,
    Known,
    call,
    mint,
    place,
)

if TYPE_CHECKING:
    from tests.support import Answer, Api


def outcome(api: Api, known: Known, token: str) -> Answer | int:
    """The answer of an operation on a session that is there; of a stream that opens, its status."""
    where = place(api)
    if not known.stream:
        return call(api, known, where, token=token)
    with api.stream(where.fill(known.path), token=token) as frames:
        return frames.stream.status


def document(api: Api) -> dict[str, Any]:
    return read(api.get("/v1/openapi.json", token=None).raw)


@lru_cache(maxsize=2)
def read(raw: bytes) -> dict[str, Any]:
    """The document, read once: it is large, and comes again and again."""
    described: dict[str, Any] = json.loads(raw)
    return described


@pytest.mark.behaviour("operations.table")
def test_the_served_table_is_the_contracts(api: Api) -> None:
    served = {(operation.verb, operation.path, operation.status) for operation in OPERATIONS}
    assert served == {(known.verb, known.path, known.status) for known in CALLS}
    assert api.request("POST", "/v1/health").code == "method_not_allowed"


@pytest.mark.behaviour("operations.status")
@pytest.mark.parametrize("known", CALLS, ids=str)
def test_an_operation_answers_with_its_status(api: Api, known: Known) -> None:
    answer = outcome(api, known, "default")
    assert (answer if isinstance(answer, int) else answer.status) == known.status


@pytest.mark.behaviour("operations.scope")
@pytest.mark.parametrize("known", WITH_A_SCOPE, ids=str)
def test_a_token_with_every_other_scope_is_refused(api: Api, known: Known) -> None:
    others = [scope for scope in ALL_SCOPES if scope != known.scope]
    if known.path.endswith("/events") and known.writes:
        others.remove("tools:respond")  # the one other scope that may come this far; see test_access
    answer = call(api, known, NOWHERE, token=mint(api, *others))
    assert (answer.status, answer.code) == (403, "permission_denied")
    assert f'"{known.scope}"' in answer.message


@pytest.mark.behaviour("operations.scope")
@pytest.mark.parametrize("known", WITH_A_SCOPE, ids=str)
def test_the_scope_of_the_row_is_enough_by_itself(api: Api, known: Known) -> None:
    assert known.scope is not None
    answer = outcome(api, known, mint(api, known.scope))
    assert (answer if isinstance(answer, int) else answer.status) == known.status


@pytest.mark.behaviour("operations.health")
def test_health_tells_the_scopes_of_the_token_that_asks(api: Api) -> None:
    assert api.get("/v1/health").json == {
        "object": "health",
        "status": "ok",
        "version": "v1",
        "scopes": list(ALL_SCOPES[1:]),
        "usable": True,
        "missing_scopes": [],
    }
    told = api.get("/v1/health", token=mint(api, "tools:respond", "cli")).json
    assert (told["scopes"], told["usable"], told["missing_scopes"]) == (["cli", "tools:respond"], True, [])


@pytest.mark.behaviour("operations.health-cli")
def test_health_tells_a_cli_token_what_to_mint(api: Api) -> None:
    answer = api.get("/v1/health", token=mint(api, "cli"))
    assert answer.status == 200
    assert answer.json["scopes"] == ["cli"]
    assert answer.json["usable"] is False
    assert answer.json["missing_scopes"] == list(ALL_SCOPES[1:])


@pytest.mark.behaviour("operations.openapi-public")
def test_the_openapi_document_needs_no_token(api: Api) -> None:
    answer = api.get("/v1/openapi.json", token=None)
    assert (answer.status, answer.json["openapi"]) == (200, "3.1.0")
    assert answer.json["info"] == {**answer.json["info"], "title": "Gobare Agent API", "version": "v1"}


@pytest.mark.behaviour("operations.openapi-any-token")
@pytest.mark.parametrize("token", ["gbr_pat_nobody", ""])
def test_a_public_operation_does_not_mind_a_bad_token(api: Api, token: str) -> None:
    assert api.get("/v1/openapi.json", token=token).status == 200


@pytest.mark.behaviour("operations.openapi-table")
def test_the_document_lists_exactly_what_is_served(api: Api) -> None:
    paths = document(api)["paths"]
    listed = {(verb.upper(), path) for path, verbs in paths.items() for verb in verbs}
    assert listed == {(known.verb, known.path) for known in CALLS}


@pytest.mark.behaviour("operations.openapi-table")
@pytest.mark.parametrize("known", CALLS, ids=str)
def test_the_document_says_what_an_operation_needs(api: Api, known: Known) -> None:
    told = document(api)["paths"][known.path][known.verb.lower()]
    assert told["security"] == ([] if known.public else [{"accessToken": []}])
    successes = [str(known.status)] if known.also is None else [str(known.status), str(known.also)]
    assert [status for status in told["responses"] if status.startswith("2")] == successes
    assert ("requestBody" in told) == (known.body is not None)
    declared = {(parameter["in"], parameter["name"]) for parameter in told["parameters"]}
    assert {("path", name) for name in re.findall(r"\{(\w+)\}", known.path)} <= declared
    assert (("header", "Idempotency-Key") in declared) == known.writes
    if known.path.endswith("/events") and known.writes:
        assert told["x-any-required-scope"] == ["sessions:write", "tools:respond"]
    else:
        assert told.get("x-required-scope") == known.scope


@pytest.mark.behaviour("operations.openapi-ids")
@pytest.mark.parametrize("known", CALLS, ids=str)
def test_an_operation_id_follows_from_verb_and_path(api: Api, known: Known) -> None:
    told = document(api)["paths"][known.path][known.verb.lower()]
    assert told["operationId"] == re.sub(r"\W+", "_", f"{known.verb.lower()}_{known.path.removeprefix('/v1/')}")


@pytest.mark.behaviour("operations.openapi-schemas")
@pytest.mark.parametrize("known", WITH_JSON, ids=str)
def test_an_answer_is_as_its_schema_says(api: Api, known: Known) -> None:
    described = document(api)
    answer = call(api, known, place(api))
    responses = described["paths"][known.path][known.verb.lower()]["responses"]
    schema = responses[str(answer.status)]["content"]["application/json"]["schema"]
    jsonschema.validate(answer.json, {**schema, "components": described["components"]})


@pytest.mark.behaviour("operations.openapi-schemas")
def test_a_session_full_of_everything_is_as_its_schema_says(api: Api) -> None:
    described = document(api)

    @api.emulator.agent
    async def agent(turn: Any) -> None:
        await turn.use("bash", {"command": "ls"}, "a.txt")
        await turn.write("/workspace/a.txt", "a")
        await turn.together(turn.ask("Which?", ["a"]), turn.approve("bash", {}), turn.call("f"))

    tools = [{"type": "function", "name": "f", "timeout_seconds": 9}, {"type": "mcp", "name": "m", "url": "http://m"}]
    tools += [{"type": "web_search"}]
    api.emulator.mcp.down("m")
    rules = [{"decision": "ask", "tool": "x"}]
    session_id = api.session(
        {"agent": {"tools": tools, "permission_rules": rules}, "metadata": {"a": "b"}, "input": "go"}
    )
    for path, schema in (
        ("", "Session"),
        ("/items?limit=100", "ItemList"),
        ("/turns", "TurnList"),
        ("/tools", "ToolConfig"),
    ):
        answer = api.get(f"/v1/sessions/{session_id}{path}")
        jsonschema.validate(
            answer.json, {"$ref": f"#/components/schemas/{schema}", "components": described["components"]}
        )
    assert len(api.actions(session_id)) == 3


@pytest.mark.behaviour("operations.openapi-schemas")
def test_a_refusal_is_as_its_schema_says(api: Api) -> None:
    described = document(api)
    schema = {"$ref": "#/components/schemas/Error", "components": described["components"]}
    jsonschema.validate(api.get("/v1/sessions/none").json, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"error": {"code": "teapot", "message": "", "request_id": "0" * 8}}, schema)


@pytest.mark.behaviour("operations.session-deleted")
def test_a_delete_answers_what_it_deleted(api: Api) -> None:
    session_id = api.session()
    answer = api.delete(f"/v1/sessions/{session_id}")
    assert answer.status == 200
    assert answer.json == {"object": "session.deleted", "id": session_id, "deleted": True}


@pytest.mark.behaviour("operations.stream")
@pytest.mark.parametrize("path", ["/v1/events", "/v1/sessions/{session_id}/events", "/v1/events?root={session_id}"])
def test_a_stream_opens_as_an_event_stream(api: Api, path: str) -> None:
    with api.stream(path.format(session_id=api.session())) as frames:
        assert frames.stream.status == 200
        assert frames.stream.headers["content-type"].partition(";")[0] == "text/event-stream"


@pytest.mark.behaviour("operations.organization-stream")
@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("/v1/events?last_event_id=0", ["root", "leaf", "other"]),
        ("/v1/events?last_event_id=0&root={root}", ["root", "leaf"]),
        ("/v1/sessions/{root}/events?last_event_id=0", ["root"]),
    ],
)
def test_a_stream_shows_the_sessions_it_is_of(api: Api, path: str, shown: list[str]) -> None:
    ids = {"root": api.session()}
    ids["leaf"] = api.session({"parent_session_id": ids["root"]})
    ids["other"] = api.session()
    for session_id in ids.values():
        api.say(session_id, "hello")
    with api.stream(path.format(root=ids["root"])) as frames:
        seen = [frames.until("turn.ended")[-1].data["session_id"] for _ in shown]
    assert seen == [ids[name] for name in shown]


@pytest.mark.behaviour("operations.health-nothing")
def test_a_token_without_scopes_is_not_usable(api: Api) -> None:
    token = api.emulator.tokens.mint(scopes=[]).token
    health = api.get("/v1/health", token=token).json
    assert (health["scopes"], health["usable"]) == ([], False)
    assert health["missing_scopes"]
