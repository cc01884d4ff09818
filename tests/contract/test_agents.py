"""Saved agents and their older name (contract §12)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from tests.contract.calls import mint

if TYPE_CHECKING:
    from tests.contract.canaries import Watch
    from tests.support import Answer, Api

AGENTS, TEMPLATES = "/v1/agents", "/v1/environment-templates"
FUNCTION = {"type": "function", "name": "lookup_order", "timeout_seconds": 30}
SERVER = {"type": "mcp", "name": "docs", "url": "https://mcp.example.com"}
FULL: dict[str, Any] = {
    "name": "support-bot",
    "model": "MiniMax-M3",
    "instructions": "You answer support tickets.",
    "tools": [FUNCTION, SERVER, {"type": "web_search"}],
    "text": {"verbosity": "low"},
}
NOTHING: dict[str, Any] = {"model": None, "model_credential_id": None, "instructions": None, "tools": [], "text": None}


def save(api: Api, path: str = AGENTS, **fields: Any) -> dict[str, Any]:
    """A saved agent."""
    answer = api.post(path, {"name": "bot", **fields} if set(fields) - {"name"} else {"instructions": "Go.", **fields})
    assert answer.status == 201, answer.raw
    agent: dict[str, Any] = answer.json
    return agent


def refused(answer: Answer) -> str:
    """The message of a 400."""
    assert (answer.status, answer.code) == (400, "invalid_request")
    return answer.message


def names(api: Api, path: str = AGENTS, query: str = "?limit=100") -> list[str]:
    return [agent["name"] for agent in api.get(path + query).json["data"]]


@pytest.mark.behaviour("agents.create", "agents.id")
def test_an_agent_is_answered_with_every_field(api: Api) -> None:
    agent = save(api, **FULL)
    assert agent == {
        **FULL,
        "object": "agent",
        "id": agent["id"],
        "model_credential_id": None,
        "created_at": api.emulator.clock.now(),
    }
    assert re.fullmatch("agt_[0-9a-f]{16}", agent["id"])
    assert api.get(f"{AGENTS}/{agent['id']}").json == agent
    assert api.get(AGENTS).json["data"] == [agent]


@pytest.mark.behaviour("agents.create", "agents.something", "agents.nothing")
@pytest.mark.parametrize(
    ("sent", "shown"),
    [
        ({"model": "MiniMax-M3"}, {"model": "MiniMax-M3"}),
        ({"instructions": "Be brief."}, {"instructions": "Be brief."}),
        ({"tools": []}, {}),
        ({"text": {}}, {"text": {}}),
        ({"text": {"verbosity": "high"}}, {"text": {"verbosity": "high"}}),
        ({"tools": [], "instructions": "", "text": None}, {}),
    ],
)
def test_one_field_is_enough(api: Api, sent: dict[str, Any], shown: dict[str, Any]) -> None:
    agent = save(api, name="a", **sent)
    assert {name: agent[name] for name in NOTHING} == NOTHING | shown


@pytest.mark.behaviour("agents.something", "agents.nothing")
def test_a_name_with_nothing_behind_it_is_refused(api: Api) -> None:
    sent: dict[str, Any]
    for sent in ({}, {"instructions": ""}, {"text": None}):
        for path in (AGENTS, TEMPLATES):
            message = refused(api.post(path, {"name": "a", **sent}))
            for field in NOTHING:
                assert f"`{field}`" in message
    assert names(api) == []


@pytest.mark.behaviour("agents.name-slug")
def test_a_slug_is_a_name(api: Api) -> None:
    slugs = ["a", "0", "support-bot", "v1.2_b-3", ".", "-", "a" * 64]
    for name in slugs:
        assert save(api, name=name, tools=[])["name"] == name
    assert names(api) == slugs[::-1]


@pytest.mark.behaviour("agents.name-slug", "agents.name-case")
@pytest.mark.parametrize("path", [AGENTS, TEMPLATES])
def test_what_is_no_slug_is_refused(api: Api, path: str) -> None:
    # The sign for kelvin becomes a k in lower case, and is none of the slug's.
    wrong = ["", " ", "a b", "a/b", "bot\n", "größe", "\u212aelvin", "\ufb01x", "bot!", "a:b", "İ", "a" * 65, "ä" * 65]
    for name in wrong:
        message = refused(api.post(path, {"name": name, "tools": []}))
        assert "`name`" in message
        if len(name) > 64:
            assert "64" in message
            assert "65" in message
    assert names(api) == []


@pytest.mark.behaviour("agents.name-slug")
def test_a_name_is_needed_and_is_text(api: Api) -> None:
    for name in ({}, {"name": None}, {"name": 7}):
        assert "`name`" in refused(api.post(AGENTS, {"tools": [], **name}))


@pytest.mark.behaviour("agents.name-case", "agents.replace")
def test_a_name_is_put_into_lower_case(api: Api) -> None:
    first = save(api, name="Support-Bot", instructions="one")
    assert first["name"] == "support-bot"
    assert save(api, name="SUPPORT-BOT", instructions="two")["id"] == first["id"]
    session = api.post("/v1/sessions", {"agent": {"id": "Support-BOT"}}).json
    assert (session["agent"]["id"], session["agent"]["instructions"]) == (first["id"], "two")


@pytest.mark.behaviour("agents.no-mode")
@pytest.mark.parametrize("path", [AGENTS, TEMPLATES])
def test_mode_and_rules_belong_to_each_session(api: Api, path: str) -> None:
    for field in ("approval_mode", "permission_rules"):
        message = refused(api.post(path, {"name": "bot", "instructions": "a", field: "auto"}))
        assert f"`{field}`" in message
        assert f"`agent.{field}`" in message
        assert "POST /v1/sessions" in message
    assert names(api) == []


@pytest.mark.behaviour("agents.replace", "agents.replace-status")
def test_the_same_name_replaces_in_place(api: Api) -> None:
    first = save(api, **FULL)
    save(api, name="other", tools=[])
    api.emulator.clock.advance(60)
    answer = api.post(AGENTS, {"name": "support-bot", "instructions": "New."})
    assert answer.status == 201
    assert answer.json == {
        **NOTHING,
        "object": "agent",
        "id": first["id"],
        "name": "support-bot",
        "instructions": "New.",
        "created_at": first["created_at"],
    }
    assert names(api) == ["other", "support-bot"]
    assert api.get(f"{AGENTS}/{first['id']}").json == answer.json


@pytest.mark.behaviour("agents.replace")
def test_a_refused_replacement_changes_nothing(api: Api) -> None:
    first = save(api, **FULL)
    for wrong in ({}, {"model": "gpt-9"}, {"tools": [{"type": "mcp", "name": "m"}]}, {"zzz": 1}):
        refused(api.post(AGENTS, {"name": "support-bot", **wrong}))
    assert api.get(f"{AGENTS}/{first['id']}").json == first


@pytest.mark.behaviour("agents.ceiling")
@pytest.mark.parametrize(
    ("path", "frees"),
    [(AGENTS, "DELETE /v1/agents/{agent_id}"), (TEMPLATES, "DELETE /v1/environment-templates/{template_id}")],
)
def test_past_twenty_five_the_refusal_names_what_frees_one(api: Api, path: str, frees: str) -> None:
    saved = [save(api, path, name=f"bot-{n}", tools=[]) for n in range(25)]
    answer = api.post(path, {"name": "one-more", "tools": []})
    message = refused(answer)
    assert "retry-after" not in answer.headers
    assert frees in message
    assert "25" in message
    assert api.post(path, {"name": "bot-3", "tools": []}).json["id"] == saved[3]["id"]
    api.delete(f"{path}/{saved[7]['id']}")
    new = save(api, path, name="one-more", tools=[])["id"]
    assert new not in {agent["id"] for agent in saved}
    assert api.post(AGENTS, {"name": "theirs", "tools": []}, token=mint(api, organization="other")).status == 201


RULES: list[tuple[dict[str, Any], str]] = [
    ({"tools": [FUNCTION, FUNCTION]}, "`tools[1].name`"),
    ({"tools": [{**SERVER, "command": "x"}]}, "`tools[0]` takes exactly one of `url` and `command`"),
    ({"tools": [{**SERVER, "allowedTools": []}]}, "Did you mean `allowed_tools`?"),
    ({"tools": [{**FUNCTION, "timeout_seconds": 7201}]}, "`tools[0].timeout_seconds`"),
    ({"tools": [{"type": "shell"}]}, "`tools[0].type`"),
    ({"tools": [{"type": "web_search"}] * 33}, "32"),
    ({"tools": {}}, "`tools` must be a list"),
    ({"tools": None}, "`tools`"),
    ({"text": {"verbosity": "loud"}}, "`text.verbosity`"),
    ({"text": {"format": {"type": "json_schema"}}}, "`text.format.schema`"),
    ({"instructions": "x" * 32001}, "32001"),
    ({"instructions": None}, "`instructions`"),
    ({"model": ""}, "`model`"),
    ({"model": None}, "`model`"),
    ({"model": 7}, "`model` must be a string"),
    ({"modelCredentialId": "a"}, "Did you mean `model_credential_id`?"),
]


@pytest.mark.behaviour("agents.tools")
@pytest.mark.parametrize("path", [AGENTS, TEMPLATES])
def test_what_an_agent_holds_keeps_its_rules(api: Api, path: str) -> None:
    for sent, says in RULES:
        assert says in refused(api.post(path, {"name": "bot", **sent})), sent
    assert names(api) == []


@pytest.mark.behaviour("agents.tools")
@pytest.mark.gobare(disabled_tools=["browse"])
def test_built_ins_collapse_and_those_switched_off_are_dropped(api: Api) -> None:
    tools = [{"type": "browse"}, {"type": "web_search"}, {"type": "web_search"}]
    assert save(api, tools=tools)["tools"] == [{"type": "web_search"}]


@pytest.mark.behaviour("agents.redacted")
@pytest.mark.parametrize("path", [AGENTS, TEMPLATES])
def test_no_secret_of_an_agent_comes_out(watch: Watch, path: str) -> None:
    secrets = {"authorization": watch.secret(), "headers": {"x-api-key": watch.secret()}}
    agent = save(watch, path, tools=[SERVER | secrets, FUNCTION | {"description": watch.mark()}])
    assert agent["tools"][0] == SERVER | {"redacted": ["authorization", "headers.x-api-key"]}
    again = {"name": "bot", "tools": agent["tools"]}
    message = refused(watch.post(path, again))
    assert "`tools[0].redacted`" in message
    for read in (path, f"{path}/{agent['id']}", AGENTS, TEMPLATES):
        watch.get(read)
    session_id = watch.session({"agent": {"id": "bot"}, "input": "hello"})
    refused(watch.post(path, {"name": "other", "tools": [SERVER | secrets | {"command": "x"}]}))
    watch.delete(f"/v1/sessions/{session_id}")
    watch.check()


@pytest.mark.behaviour("agents.model")
def test_a_model_and_a_connection_are_checked_when_saved(api: Api) -> None:
    [credential] = api.get("/v1/model-credentials").json["data"]
    agent = save(api, model_credential_id=credential["id"])
    assert (agent["model"], agent["model_credential_id"]) == (None, credential["id"])
    other = api.post("/v1/model-credentials", {"key": "sk-ant-theirs-0001"}, token=mint(api, organization="b")).json
    for sent, says in (
        ({"model": "gpt-9"}, "This organization's selected connection runs MiniMax-M3, not gpt-9"),
        ({"model": "gpt-9", "model_credential_id": credential["id"]}, "connection runs MiniMax-M3, not gpt-9"),
        ({"model_credential_id": "cred_no"}, "This organization has no model connection with id cred_no"),
        ({"model_credential_id": other["id"]}, f"This organization has no model connection with id {other['id']}"),
    ):
        message = refused(api.post(AGENTS, {"name": "wrong", **sent}))
        assert says in message
        assert "`model_credential_id`" in message
    api.delete(f"/v1/model-credentials/{credential['id']}")
    for sent in ({"model": "MiniMax-M3"}, {"model_credential_id": credential["id"]}):
        message = refused(api.post(AGENTS, {"name": "wrong", **sent}))
        assert message.startswith("This organization has no model connected")
    assert names(api) == ["bot"]
    assert save(api, name="without", instructions="a")["model"] is None


@pytest.mark.behaviour("agents.list")
@pytest.mark.parametrize("path", [AGENTS, TEMPLATES])
def test_agents_are_listed_newest_first_in_pages(api: Api, path: str) -> None:
    saved = [save(api, name=f"bot-{n}", tools=[])["id"] for n in range(5)]
    for limit in (1, 2, 5):
        found: list[str] = []
        after = ""
        while len(found) < 5:
            page = api.get(f"{path}?limit={limit}{after}").json
            found += [agent["id"] for agent in page["data"]]
            assert (page["object"], page["has_more"], page["last_id"]) == ("list", len(found) < 5, found[-1])
            after = f"&after={page['last_id']}"
        assert found == saved[::-1]
    empty = {"object": "list", "data": [], "has_more": False, "last_id": None}
    assert api.get(f"{path}?after={found[-1]}").json == empty
    assert api.get(f"{path}?after=agt_nowhere").json == empty


@pytest.mark.behaviour("agents.list")
@pytest.mark.parametrize("path", [AGENTS, TEMPLATES])
def test_a_list_of_agents_takes_a_limit_and_a_cursor_only(api: Api, path: str) -> None:
    for query in ("order=asc", "limit=0", "limit=101", "after=", "name=bot"):
        assert f"`{query.partition('=')[0]}`" in refused(api.get(f"{path}?{query}"))


@pytest.mark.behaviour("agents.by-id")
@pytest.mark.parametrize("path", [AGENTS, TEMPLATES])
def test_a_name_does_not_read_or_delete(api: Api, path: str) -> None:
    save(api, name="bot", tools=[])
    for verb in ("GET", "DELETE"):
        assert api.request(verb, f"{path}/bot").status == 404
    assert names(api) == ["bot"]


@pytest.mark.behaviour("agents.unknown")
@pytest.mark.parametrize("path", [AGENTS, TEMPLATES])
def test_anothers_agent_is_as_one_that_never_was(api: Api, path: str) -> None:
    theirs = api.post(path, {"name": "bot", "tools": []}, token=mint(api, organization="other")).json["id"]
    for verb in ("GET", "DELETE"):
        answers = [api.request(verb, f"{path}/{agent_id}") for agent_id in (theirs, "agt_0000000000000000")]
        assert {(answer.status, answer.code) for answer in answers} == {(404, "not_found")}
        assert answers[0].message.replace(theirs, "agt_0000000000000000") == answers[1].message
    assert names(api) == []
    assert api.get(f"{path}/{theirs}", token=mint(api, organization="other")).status == 200


@pytest.mark.behaviour("agents.delete")
def test_a_deleted_agent_leaves_its_sessions_alone(api: Api) -> None:
    agent_id = save(api, **FULL)["id"]
    session_id = api.session({"agent": {"id": agent_id}})
    before = api.get(f"/v1/sessions/{session_id}").json
    assert api.delete(f"{AGENTS}/{agent_id}").json == {"object": "agent.deleted", "id": agent_id, "deleted": True}
    assert api.get(f"/v1/sessions/{session_id}").json == before
    assert before["agent"]["id"] == agent_id
    for answer in (
        api.get(f"{AGENTS}/{agent_id}"),
        api.delete(f"{AGENTS}/{agent_id}"),
        api.post("/v1/sessions", {"agent": {"id": agent_id}}),
        api.post("/v1/sessions", {"agent": {"id": "support-bot"}}),
    ):
        assert (answer.status, answer.code) == (404, "not_found")
    assert api.say(session_id, "hello").status == 202
    assert save(api, **FULL)["id"] != agent_id


@pytest.mark.behaviour("agents.reported")
def test_the_report_lists_agents_until_they_are_deleted(api: Api) -> None:
    answer = api.post(AGENTS, {"name": "bot", "tools": []})
    told = {
        "id": answer.json["id"],
        "name": "bot",
        "organization": "default",
        "request_id": answer.headers["x-request-id"],
    }
    assert api.emulator.report()["undeleted"]["agents"] == [told]
    api.post(AGENTS, {"name": "bot", "instructions": "a"})
    assert api.emulator.report()["undeleted"]["agents"] == [told]
    api.delete(f"{AGENTS}/{told['id']}")
    assert api.emulator.report()["undeleted"]["agents"] == []


@pytest.mark.behaviour("agents.templates")
def test_a_template_is_the_same_agent_with_fewer_fields(api: Api) -> None:
    template = save(api, TEMPLATES, **FULL)
    assert template == {
        "object": "environment_template",
        "id": template["id"],
        "name": "support-bot",
        "tools": FULL["tools"],
        "text": FULL["text"],
        "created_at": api.emulator.clock.now(),
    }
    agent = api.get(f"{AGENTS}/{template['id']}").json
    assert (agent["object"], agent["instructions"]) == ("agent", FULL["instructions"])
    assert api.get(f"{TEMPLATES}/{template['id']}").json == template
    assert api.get(TEMPLATES).json["data"] == [template]
    assert save(api, AGENTS, name="support-bot", tools=[])["id"] == template["id"]
    assert api.get(TEMPLATES).json["data"] == [{**template, "tools": [], "text": None}]


@pytest.mark.behaviour("agents.templates-deleted")
def test_a_template_is_deleted_under_its_own_name(api: Api) -> None:
    agent_id = save(api, **FULL)["id"]
    answer = api.delete(f"{TEMPLATES}/{agent_id}")
    assert answer.json == {"object": "environment_template.deleted", "id": agent_id, "deleted": True}
    assert names(api) == []


@pytest.mark.behaviour("agents.templates-deprecated")
def test_the_document_marks_the_older_name(api: Api) -> None:
    paths = api.get("/v1/openapi.json").json["paths"]
    marked = {path for path, verbs in paths.items() if all(told.get("deprecated") for told in verbs.values())}
    unmarked = {path for path, verbs in paths.items() if not any(told.get("deprecated") for told in verbs.values())}
    assert marked == {TEMPLATES, f"{TEMPLATES}/{{template_id}}"}
    assert marked | unmarked == set(paths)
