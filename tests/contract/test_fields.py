"""What a refusal says about a field, a value or a parameter (contract §2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.support import Answer, Api

CREATE, PATCH, TOOLS, EVENTS = "POST ", "PATCH /{id}", "PUT /{id}/tools", "POST /{id}/events"
FUNCTION = {"type": "function", "name": "f"}
SERVER = {"type": "mcp", "name": "m", "url": "http://m.example.com"}
RESULT = {"type": "input.tool_result", "turn_id": "t", "call_id": "c", "success": True}
FORMAT = {"type": "json_schema", "schema": {}}


def sent(api: Api, where: str, body: Any) -> Answer:
    """A body sent to a call, on a session that is there."""
    verb, _, path = where.partition(" ")
    session_id = api.session() if "{id}" in path else ""
    return api.request(verb, f"/v1/sessions{path.format(id=session_id)}", body)


def event(**fields: Any) -> dict[str, Any]:
    return {"events": [fields]}


UNKNOWN: list[tuple[str, Any, str, str]] = [
    (CREATE, {"zzz": 1}, "zzz", "agent, environment, parent_session_id, metadata, title, input"),
    (CREATE, {"agent": {"zzz": 1}}, "agent.zzz", "model_credential_id"),
    (
        CREATE,
        {"agent": {"permission_rules": [{"decision": "deny", "zzz": 1}]}},
        "agent.permission_rules[0].zzz",
        "domain",
    ),
    (CREATE, {"agent": {"tools": [FUNCTION, {**SERVER, "zzz": 1}]}}, "agent.tools[1].zzz", "allowed_tools"),
    (CREATE, {"agent": {"text": {"zzz": 1}}}, "agent.text.zzz", "verbosity"),
    (CREATE, {"agent": {"text": {"format": {**FORMAT, "zzz": 1}}}}, "agent.text.format.zzz", "schema"),
    (CREATE, {"environment": {"zzz": 1}}, "environment.zzz", "repo"),
    (CREATE, {"environment": {"files": [{"path": "a", "data": "", "zzz": 1}]}}, "environment.files[0].zzz", "data"),
    (CREATE, {"input": [{"type": "input_text", "text": "a", "zzz": 1}]}, "input[0].zzz", "text"),
    (PATCH, {"zzz": 1}, "zzz", "title"),
    (PATCH, {"title": "a", "agent": {"zzz": 1}}, "agent.zzz", "approval_mode"),
    (TOOLS, {"tools": [], "zzz": 1}, "zzz", "tools, text"),
    (TOOLS, {"tools": [{**FUNCTION, "zzz": 1}]}, "tools[0].zzz", "parameters"),
    (TOOLS, {"tools": [SERVER, {"type": "web_search", "zzz": 1}]}, "tools[1].zzz", "type"),
    (TOOLS, {"text": {"format": {**FORMAT, "zzz": 1}}}, "text.format.zzz", "schema"),
    (EVENTS, {**event(type="input.cancel"), "zzz": 1}, "zzz", "events"),
    (EVENTS, event(type="input.cancel", zzz=1), "events[0].zzz", "type"),
    (EVENTS, event(type="input.message", content="a", turn_id="t"), "events[0].turn_id", "content"),
    (
        EVENTS,
        event(type="input.message", content=[{"type": "input_text", "text": "a", "zzz": 1}]),
        "events[0].content[0].zzz",
        "text",
    ),
]

NEAR: list[tuple[str, Any, str, str]] = [
    (TOOLS, {"tools": [{**SERVER, "allowedTools": []}]}, "tools[0].allowedTools", "allowed_tools"),
    (TOOLS, {"tools": [{**FUNCTION, "timeout": 5}]}, "tools[0].timeout", "timeout_seconds"),
    (TOOLS, {"tools": [{"type": "mcp", "name": "m", "cmd": "x"}]}, "tools[0].cmd", "command"),
    (TOOLS, {"tools": [{"type": "fuction", "name": "m"}]}, "tools[0].type", "function"),
    (TOOLS, {"tools": [{"type": "webSearch"}]}, "tools[0].type", "web_search"),
    (TOOLS, {"tool": []}, "tool", "tools"),
    (TOOLS, {"text": {"verbosity": "Low"}}, "text.verbosity", "low"),
    (CREATE, {"agent": {"modelCredentialId": "c"}}, "agent.modelCredentialId", "model_credential_id"),
    (CREATE, {"agent": {"approval_mode": "read-only"}}, "agent.approval_mode", "read_only"),
    (CREATE, {"agent": {"permission_rules": [{"decision": "Deny"}]}}, "agent.permission_rules[0].decision", "deny"),
    (CREATE, {"agent": {"tools": [{**SERVER, "Headers": {}}]}}, "agent.tools[0].Headers", "headers"),
    (CREATE, {"metaData": {}}, "metaData", "metadata"),
    (CREATE, {"parentSessionId": "a"}, "parentSessionId", "parent_session_id"),
    (PATCH, {"titel": "a"}, "titel", "title"),
    (EVENTS, {"event": []}, "event", "events"),
    (EVENTS, event(type="input.mesage", content="a"), "events[0].type", "input.message"),
    (EVENTS, event(type="input.toolResult"), "events[0].type", "input.tool_result"),
    (EVENTS, event(**RESULT, callId="c"), "events[0].callId", "call_id"),
    (EVENTS, event(type="input.message", content="a", contents="b"), "events[0].contents", "content"),
]

WRONG: list[tuple[str, Any, str, str]] = [
    (CREATE, {"title": 1}, "title", "a string; an integer was sent"),
    (CREATE, {"title": True}, "title", "a string; a boolean was sent"),
    (CREATE, {"title": ["a"]}, "title", "a string; a list was sent"),
    (CREATE, {"metadata": {"a": 1}}, "metadata.a", "a string; an integer was sent"),
    (CREATE, {"metadata": []}, "metadata", "an object; a list was sent"),
    (CREATE, {"agent": []}, "agent", "an object; a list was sent"),
    (CREATE, {"agent": {"instructions": 1}}, "agent.instructions", "a string; an integer was sent"),
    (CREATE, {"agent": {"permission_rules": {}}}, "agent.permission_rules", "a list; an object was sent"),
    (CREATE, {"agent": {"permission_rules": ["deny"]}}, "agent.permission_rules[0]", "an object; a string was sent"),
    (CREATE, {"agent": {"approval_mode": True}}, "agent.approval_mode", "one of auto, per_step, read_only, plan"),
    (CREATE, {"agent": {"tools": {}}}, "agent.tools", "a list; an object was sent"),
    (CREATE, {"environment": {"profiles": "a"}}, "environment.profiles", "a list; a string was sent"),
    (CREATE, {"environment": {"profiles": [1]}}, "environment.profiles[0]", "a string; an integer was sent"),
    (CREATE, {"input": 1}, "input", "a string or a list of parts; an integer was sent"),
    (CREATE, {"input": [{"type": "input_text", "text": 1}]}, "input[0].text", "a string; an integer was sent"),
    (TOOLS, {"tools": [{**SERVER, "required": "yes"}]}, "tools[0].required", "a boolean, true or false; a string was"),
    (TOOLS, {"tools": [{**SERVER, "required": 1}]}, "tools[0].required", "a boolean, true or false; an integer was"),
    (
        TOOLS,
        {"tools": [{**FUNCTION, "timeout_seconds": True}]},
        "tools[0].timeout_seconds",
        "an integer; a boolean was",
    ),
    (TOOLS, {"tools": [{**FUNCTION, "timeout_seconds": "5"}]}, "tools[0].timeout_seconds", "an integer; a string was"),
    (TOOLS, {"tools": [{**FUNCTION, "timeout_seconds": 1.5}]}, "tools[0].timeout_seconds", "an integer; a number was"),
    (TOOLS, {"tools": [{**FUNCTION, "parameters": "{}"}]}, "tools[0].parameters", "an object; a string was sent"),
    (TOOLS, {"tools": ["web_search"]}, "tools[0]", "an object; a string was sent"),
    (EVENTS, {"events": {}}, "events", "a list; an object was sent"),
    (EVENTS, {"events": [1]}, "events[0]", "an object; an integer was sent"),
    (EVENTS, event(type="input.message", content=1), "events[0].content", "a string or a list of parts; an integer"),
    (
        EVENTS,
        event(type="input.approval", call_id="c", approved="yes"),
        "events[0].approved",
        "a boolean, true or false",
    ),
    (EVENTS, event(type="input.approval", call_id="c", approved=1), "events[0].approved", "a boolean, true or false"),
    (EVENTS, event(**{**RESULT, "success": "true"}, output="a"), "events[0].success", "a boolean, true or false"),
    (EVENTS, event(**RESULT, output={"a": 1}), "events[0].output", "a string; an object was sent"),
    (EVENTS, event(**{**RESULT, "call_id": 1}, output="a"), "events[0].call_id", "a string; an integer was sent"),
    (EVENTS, event(type="input.question_answer", call_id="c", answer=False), "events[0].answer", "a string; a boolean"),
]

NULL: list[tuple[str, Any, str]] = [
    (CREATE, {"title": None}, "title"),
    (CREATE, {"agent": None}, "agent"),
    (CREATE, {"metadata": None}, "metadata"),
    (CREATE, {"input": None}, "input"),
    (CREATE, {"agent": {"approval_mode": None}}, "agent.approval_mode"),
    (CREATE, {"agent": {"model": None}}, "agent.model"),
    (CREATE, {"agent": {"tools": None}}, "agent.tools"),
    (CREATE, {"environment": {"repo": None}}, "environment.repo"),
    (PATCH, {"agent": None}, "agent"),
    (PATCH, {"agent": {"approval_mode": None}}, "agent.approval_mode"),
    (PATCH, {"agent": {"permission_rules": None}}, "agent.permission_rules"),
    (TOOLS, {"tools": None}, "tools"),
    (TOOLS, {"tools": [{**SERVER, "required": None}]}, "tools[0].required"),
    (EVENTS, event(**RESULT, output=None), "events[0].output"),
]

CEILINGS: list[tuple[str, Any, Any, str, int, int]] = [
    (
        CREATE,
        {"agent": {"instructions": "x" * 32000}},
        {"agent": {"instructions": "x" * 32001}},
        "agent.instructions",
        32000,
        32001,
    ),
    (
        PATCH,
        {"agent": {"instructions": "x" * 32000}},
        {"agent": {"instructions": "x" * 40000}},
        "agent.instructions",
        32000,
        40000,
    ),
    (
        CREATE,
        {"metadata": {str(n): "" for n in range(16)}},
        {"metadata": {str(n): "" for n in range(17)}},
        "metadata",
        16,
        17,
    ),
    (CREATE, {"metadata": {"k" * 64: ""}}, {"metadata": {"k" * 65: ""}}, "metadata", 64, 65),
    (CREATE, {"metadata": {"k": "v" * 512}}, {"metadata": {"k": "v" * 513}}, "metadata.k", 512, 513),
    (PATCH, {"metadata": {"k": "v" * 512}}, {"metadata": {"k": "v" * 513}}, "metadata.k", 512, 513),
    (
        CREATE,
        {"agent": {"permission_rules": [{"decision": "ask"}] * 50}},
        {"agent": {"permission_rules": [{"decision": "ask"}] * 51}},
        "agent.permission_rules",
        50,
        51,
    ),
    *(
        (
            CREATE,
            {"agent": {"permission_rules": [{"decision": "ask", name: "x" * 500}]}},
            {"agent": {"permission_rules": [{"decision": "ask", name: "x" * 501}]}},
            f"agent.permission_rules[0].{name}",
            500,
            501,
        )
        for name in ("tool", "path", "command", "domain")
    ),
    (
        TOOLS,
        {"tools": [{**FUNCTION, "name": f"f{n}"} for n in range(32)]},
        {"tools": [{**FUNCTION, "name": f"f{n}"} for n in range(33)]},
        "tools",
        32,
        33,
    ),
    (
        TOOLS,
        {"tools": [{**FUNCTION, "name": "n" * 64}]},
        {"tools": [{**FUNCTION, "name": "n" * 65}]},
        "tools[0].name",
        64,
        65,
    ),
    (
        TOOLS,
        {"tools": [{**FUNCTION, "timeout_seconds": 7200}]},
        {"tools": [{**FUNCTION, "timeout_seconds": 7201}]},
        "tools[0].timeout_seconds",
        7200,
        7201,
    ),
    (EVENTS, event(type="input.cancel"), {"events": [{"type": "input.cancel"}] * 2}, "events", 1, 2),
]


def ids(rows: list[Any]) -> list[str]:
    """A name for each row: the call, and the field it is about."""
    return [f"{row[0]}-{next(cell for cell in row[2:] if isinstance(cell, str))}" for row in rows]


@pytest.mark.behaviour("refusals.unknown-field", "refusals.accepted")
@pytest.mark.parametrize(("where", "body", "path", "accepted"), UNKNOWN, ids=ids(UNKNOWN))
def test_an_unknown_field_is_refused_by_its_path_with_what_is_accepted(
    api: Api, where: str, body: Any, path: str, accepted: str
) -> None:
    answer = sent(api, where, body)
    assert (answer.status, answer.code) == (400, "invalid_request")
    assert f"`{path}`" in answer.message
    assert accepted in answer.message


@pytest.mark.behaviour("refusals.near-miss")
@pytest.mark.parametrize(("where", "body", "path", "meant"), NEAR, ids=ids(NEAR))
def test_a_near_miss_is_told_what_was_meant(api: Api, where: str, body: Any, path: str, meant: str) -> None:
    answer = sent(api, where, body)
    assert (answer.status, answer.code) == (400, "invalid_request")
    assert f"`{path}`" in answer.message
    assert f"`{meant}`?" in answer.message


@pytest.mark.behaviour("refusals.near-miss")
@pytest.mark.parametrize(
    ("query", "name", "meant"),
    [
        ("Limit=5", "Limit", "limit"),
        ("order=ASC", "order", "asc"),
        ("status=requires-action", "status", "requires_action"),
        ("createdByToken=me", "createdByToken", "created_by_token"),
    ],
)
def test_a_near_miss_in_a_query_is_told_what_was_meant(api: Api, query: str, name: str, meant: str) -> None:
    answer = api.get(f"/v1/sessions?{query}")
    assert answer.status == 400
    assert f"`{name}`" in answer.message
    assert f"`{meant}`?" in answer.message


@pytest.mark.behaviour("refusals.near-miss")
def test_a_field_like_no_other_is_told_nothing_of_the_sort(api: Api) -> None:
    assert "mean" not in sent(api, CREATE, {"zzz": 1}).message


@pytest.mark.behaviour("refusals.misplaced-field")
@pytest.mark.parametrize(
    ("where", "field", "belongs"),
    [
        (PATCH, "approval_mode", "agent.approval_mode"),
        (PATCH, "instructions", "agent.instructions"),
        (CREATE, "model", "agent.model"),
        (CREATE, "tools", "agent.tools"),
        (CREATE, "repo", "environment.repo"),
    ],
)
def test_a_misplaced_field_is_told_where_it_belongs(api: Api, where: str, field: str, belongs: str) -> None:
    answer = sent(api, where, {field: "auto"})
    assert answer.status == 400
    assert f"`{field}`" in answer.message
    assert f"`{belongs}`" in answer.message


@pytest.mark.behaviour("refusals.types")
@pytest.mark.parametrize(("where", "body", "path", "says"), WRONG, ids=ids(WRONG))
def test_nothing_is_coerced(api: Api, where: str, body: Any, path: str, says: str) -> None:
    answer = sent(api, where, body)
    assert (answer.status, answer.code) == (400, "invalid_request")
    assert f"`{path}` must be {says}" in answer.message


@pytest.mark.behaviour("refusals.null")
@pytest.mark.parametrize(("where", "body", "path"), NULL, ids=ids(NULL))
def test_null_is_refused_where_it_clears_nothing(api: Api, where: str, body: Any, path: str) -> None:
    answer = sent(api, where, body)
    assert (answer.status, answer.code) == (400, "invalid_request")
    assert f"`{path}`" in answer.message


@pytest.mark.behaviour("refusals.ceilings", "refusals.at-the-ceiling")
@pytest.mark.parametrize(
    ("where", "fits", "body", "path", "ceiling", "count"), CEILINGS, ids=ids([(r[0], 0, r[3]) for r in CEILINGS])
)
def test_past_a_ceiling_both_numbers_are_told_and_at_it_none(
    api: Api, where: str, fits: Any, body: Any, path: str, ceiling: int, count: int
) -> None:
    assert sent(api, where, fits).status in (200, 201, 202)
    answer = sent(api, where, body)
    assert (answer.status, answer.code) == (400, "invalid_request")
    assert f"`{path}`" in answer.message
    assert ("exactly one" if ceiling == 1 else str(ceiling)) in answer.message
    assert str(count) in answer.message


@pytest.mark.behaviour("refusals.ceilings")
def test_a_body_past_its_ceiling_is_told_both_numbers(api: Api) -> None:
    answer = api.patch("/v1/sessions/none", raw=b" " * 1_048_577)
    assert answer.status == 400
    assert "1048576" in answer.message
    assert "1048577" in answer.message


@pytest.mark.behaviour("refusals.query-values", "refusals.ceilings")
@pytest.mark.parametrize("value", ["0", "101", "-1", "1.5", "ten", "", "+5", "5%20", "1e1", "9" * 400])
def test_a_limit_out_of_range_is_told_the_range_and_what_was_sent(api: Api, value: str) -> None:
    answer = api.get(f"/v1/sessions?limit={value}")
    assert (answer.status, answer.code) == (400, "invalid_request")
    assert "`limit` must be an integer from 1 to 100" in answer.message
    if value in ("0", "101", "-1"):
        assert value in answer.message.replace("from 1 to 100", "")


@pytest.mark.behaviour("refusals.query-values")
@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("/v1/sessions?order=up", "`order` must be one of asc, desc"),
        ("/v1/sessions?order=", "`order` must be one of asc, desc"),
        ("/v1/sessions?status=done", "`status` must be one of idle, working, requires_action, failed"),
        ("/v1/sessions?source=cli", "`source` must be one of api, console"),
        ("/v1/sessions?metadata=job", "`metadata` must be of the form key:value"),
        ("/v1/sessions?metadata=:8842", "`metadata` must be of the form key:value"),
        ("/v1/sessions?created_by_token=", "`created_by_token`"),
        ("/v1/sessions?root=", "`root`"),
        ("/v1/sessions?after=", "`after`"),
        ("/v1/sessions?after=%FF", "UTF-8"),
        ("/v1/events?last_event_id=-1", "`last_event_id` must be a non-negative integer"),
        ("/v1/events?last_event_id=x", "`last_event_id` must be a non-negative integer"),
    ],
)
def test_a_query_value_of_the_wrong_form_is_told_what_is_taken(api: Api, path: str, says: str) -> None:
    answer = api.get(path)
    assert (answer.status, answer.code) == (400, "invalid_request")
    assert says in answer.message


@pytest.mark.behaviour("refusals.repeated-parameter")
def test_a_parameter_sent_twice_is_refused(api: Api) -> None:
    answer = api.get("/v1/sessions?limit=5&limit=6")
    assert answer.status == 400
    assert "`limit`" in answer.message
