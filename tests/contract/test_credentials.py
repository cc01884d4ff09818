"""Model connectors and model credentials (contract §12)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from emulator.domain.catalogue import CONNECTORS
from tests.contract.calls import mint

if TYPE_CHECKING:
    from tests.contract.canaries import Watch
    from tests.support import Answer, Api

PATH = "/v1/model-credentials"
CLAUDE = {"key": "sk-ant-api03-aaaax9f2"}
IDS = ["anthropic", "openai", "xai", "openrouter", "minimax", "deepseek", "qwen", "moonshot", "glm", "custom"]
SHARED = (
    'Several providers issue keys starting with "sk-": deepseek, moonshot, openai, qwen. Pass "provider" to say which.'
)
OWN = {"key": "k-1", "provider": "custom", "model": "own", "base_url": "https://llm.example.com/v1"}


def connect(api: Api, **body: Any) -> dict[str, Any]:
    """A connection made."""
    answer = api.post(PATH, body)
    assert answer.status == 201, answer.raw
    credential: dict[str, Any] = answer.json
    return credential


def again(api: Api, **body: Any) -> dict[str, Any]:
    """A connection that was there."""
    answer = api.post(PATH, body)
    assert answer.status == 200, answer.raw
    credential: dict[str, Any] = answer.json
    return credential


def refused(answer: Answer) -> str:
    """The message of a 400."""
    assert (answer.status, answer.code) == (400, "invalid_request")
    return answer.message


def listed(api: Api, query: str = "?limit=100") -> list[dict[str, Any]]:
    data: list[dict[str, Any]] = api.get(PATH + query).json["data"]
    return data


def agent_of(api: Api, session_id: str) -> tuple[str | None, str | None]:
    agent = api.get(f"/v1/sessions/{session_id}").json["agent"]
    return agent["model"], agent["model_credential_id"]


# Connectors


@pytest.mark.behaviour("connectors.list")
def test_the_ten_connectors_are_listed_for_anybody(api: Api) -> None:
    answer = api.get("/v1/model-connectors", token=None)
    assert set(answer.json) == {"object", "data"}
    assert [connector["id"] for connector in answer.json["data"]] == IDS
    for connector in answer.json["data"]:
        assert set(connector) == {
            "object",
            "id",
            "display_name",
            "default_model",
            "key_prefix",
            "key_url",
            "protocol",
            "default_base_url",
        }
        assert connector["object"] == "model_connector"
    assert api.get("/v1/model-connectors").json == answer.json
    assert "`limit`" in refused(api.get("/v1/model-connectors?limit=5"))


@pytest.mark.behaviour("connectors.facts")
def test_what_the_pages_show_of_connectors_is_shown(api: Api) -> None:
    by_id = {connector["id"]: connector for connector in api.get("/v1/model-connectors").json["data"]}
    shown = {
        "object": "model_connector",
        "id": "anthropic",
        "display_name": "Anthropic",
        "default_model": "claude-sonnet-4-6",
        "key_prefix": "sk-ant-",
        "key_url": "https://console.anthropic.com/settings/keys",
        "protocol": "anthropic",
    }
    assert by_id["anthropic"] == by_id["anthropic"] | shown
    assert (by_id["minimax"]["default_model"], by_id["minimax"]["protocol"]) == ("MiniMax-M3", "anthropic")
    assert [name for name in sorted(by_id) if by_id[name]["key_prefix"] == "sk-"] == [
        "deepseek",
        "moonshot",
        "openai",
        "qwen",
    ]
    assert by_id["moonshot"]["display_name"] == "Kimi"
    assert by_id["custom"]["default_model"] is by_id["custom"]["default_base_url"] is None


# Create


@pytest.mark.behaviour("credentials.create")
def test_a_key_alone_connects_a_model(api: Api) -> None:
    credential = connect(api, **CLAUDE)
    assert credential == {
        "object": "model_credential",
        "id": credential["id"],
        "label": "anthropic",
        "connector": "anthropic",
        "model": "claude-sonnet-4-6",
        "is_default": False,
        "last4": "x9f2",
        "verified": True,
    }
    assert re.fullmatch("cred_[0-9a-f]{16}", credential["id"])
    session = api.post("/v1/sessions", {"agent": {"model_credential_id": credential["id"]}}).json
    assert session["agent"]["model"] == "claude-sonnet-4-6"


@pytest.mark.behaviour("credentials.create", "credentials.default-first")
def test_the_quickstart_key_connects_and_the_default_stays(api: Api) -> None:
    credential = connect(api, key="sk-ant-api03-…")
    assert (credential["connector"], credential["last4"], credential["is_default"]) == ("anthropic", "03-…", False)
    assert api.post("/v1/sessions", {"agent": {"model": "MiniMax-M3"}}).status == 201


@pytest.mark.behaviour("credentials.fields")
def test_what_is_sent_is_kept(api: Api) -> None:
    sent = {"key": "sk-1234567890", "provider": "openai", "model": "gpt-9", "label": "Ours", "default": True}
    shown = {"connector": "openai", "model": "gpt-9", "label": "Ours", "is_default": True}
    credential = connect(api, **sent, base_url="http://proxy.example.com:8080/v1")
    assert credential == credential | shown
    assert listed(api)[0] == {"object": "model_credential", "id": credential["id"], **shown}


@pytest.mark.behaviour("credentials.prefix", "credentials.shared-prefix", "credentials.no-prefix")
def test_the_beginning_of_a_key_says_whose_it_is_or_is_asked(api: Api) -> None:
    for key, connector in (("sk-ant-x", "anthropic"), ("sk-or-v1-x", "openrouter"), ("xai-x", "xai")):
        assert connect(api, key=key)["connector"] == connector
    for key in ("sk-x", "sk-", "sk-proj-abc", "sk-…"):
        assert refused(api.post(PATH, {"key": key})) == SHARED
    for key in ("x", "SK-ant-x", " sk-ant-x", "eyJhbGciOi", "sk"):
        message = refused(api.post(PATH, {"key": key}))
        assert "Several" not in message
        for name in IDS:
            assert name in message
    assert len(listed(api)) == 4


@pytest.mark.behaviour("credentials.shared-prefix", "credentials.provider-wins", "credentials.create")
def test_a_provider_that_is_sent_is_believed(api: Api) -> None:
    for connector in CONNECTORS[:-1]:
        for key in (f"sk-{connector.id}", f"sk-ant-{connector.id}", f"{connector.id}"):
            made = connect(api, key=key, provider=connector.id)
            assert (made["connector"], made["label"], made["model"]) == (
                connector.id,
                connector.id,
                connector.default_model,
            )
            api.delete(f"{PATH}/{made['id']}")


@pytest.mark.behaviour("credentials.provider-unknown")
@pytest.mark.parametrize(
    ("provider", "meant"),
    [
        ("OpenAI", "openai"),
        ("antropic", "anthropic"),
        ("kimi", "moonshot"),
        ("open-router", "openrouter"),
        ("zzz", None),
    ],
)
def test_an_unknown_provider_is_told_the_ten(api: Api, provider: str, meant: str | None) -> None:
    message = refused(api.post(PATH, {"key": "sk-x", "provider": provider}))
    assert f"`provider` must be one of {', '.join(IDS)}" in message
    assert ("Did you mean" in message) == (meant is not None)
    assert meant is None or f"`{meant}`?" in message


@pytest.mark.behaviour("credentials.custom")
def test_custom_needs_an_address_and_a_model(api: Api) -> None:
    for missing in ("model", "base_url"):
        message = refused(api.post(PATH, {name: value for name, value in OWN.items() if name != missing}))
        assert f"`{missing}` is required" in message
    made = connect(api, **OWN)
    assert (made["connector"], made["label"], made["model"]) == ("custom", "custom", "own")


@pytest.mark.behaviour("credentials.base-url")
def test_an_address_must_be_one(api: Api) -> None:
    for wrong in ("", "llm.example.com", "ftp://llm.example.com", "https://", "http:/x", "https://a b.example.com"):
        message = refused(api.post(PATH, {**CLAUDE, "base_url": wrong}))
        assert "`base_url`" in message
        assert not wrong or wrong not in message
    for fine in ("http://localhost:11434", "https://llm.example.com/v1?x=1", "http://[::1]:8080/"):
        connect(api, **CLAUDE, base_url=fine)
    assert len(listed(api)) == 4


@pytest.mark.behaviour("credentials.create", "credentials.default-boolean")
@pytest.mark.parametrize(
    ("sent", "says"),
    [
        ({}, "`key` is required"),
        ({"key": ""}, "`key`"),
        ({"key": " ", "provider": "openai"}, "`key`"),
        ({"key": 7}, "`key` must be a string"),
        ({"key": None}, "`key`"),
        ({**CLAUDE, "default": "true"}, "`default` must be a boolean"),
        ({**CLAUDE, "default": 1}, "`default` must be a boolean"),
        ({**CLAUDE, "default": None}, "`default`"),
        ({**CLAUDE, "model": ""}, "`model`"),
        ({**CLAUDE, "model": None}, "`model`"),
        ({**CLAUDE, "label": ""}, "`label`"),
        ({**CLAUDE, "provider": None}, "`provider`"),
        ({**CLAUDE, "baseUrl": "https://x"}, "Did you mean `base_url`?"),
        ({**CLAUDE, "is_default": True}, "Did you mean `default`?"),
        ({**CLAUDE, "verify": False}, "Unknown field `verify`"),
    ],
)
def test_what_is_wrong_with_a_connection_is_told(api: Api, sent: dict[str, Any], says: str) -> None:
    assert says in refused(api.post(PATH, sent))
    assert len(listed(api)) == 1


@pytest.mark.behaviour("credentials.default-first", "credentials.default-moves")
@pytest.mark.gobare(connections=[])
def test_the_first_is_the_default_until_another_asks_to_be(api: Api) -> None:
    first = connect(api, **CLAUDE, default=False)
    assert first["is_default"] is True
    assert connect(api, key="xai-2")["is_default"] is False
    assert connect(api, key="xai-3", default=False)["is_default"] is False
    fourth = connect(api, key="xai-4", default=True)
    assert [entry["is_default"] for entry in listed(api)] == [True, False, False, False]
    assert api.post("/v1/sessions", {}).json["agent"]["model_credential_id"] == fourth["id"]


@pytest.mark.behaviour("credentials.same", "credentials.same-unchanged")
def test_the_same_connection_again_is_the_one_there_is(api: Api) -> None:
    first = connect(api, **CLAUDE, label="Ours")
    api.emulator.settings.update(provider_answers=[{"key": "*", "outcome": "rejected"}])
    for repeat in (
        CLAUDE,
        {**CLAUDE, "label": "Theirs", "default": True},
        {**CLAUDE, "model": "claude-sonnet-4-6", "provider": "anthropic"},
        {**CLAUDE, "base_url": "https://api.anthropic.com"},
    ):
        assert again(api, **repeat) == first
    assert len(listed(api)) == 2
    api.emulator.settings.update(provider_answers=[])
    for other in ({"key": "sk-ant-2"}, {**CLAUDE, "model": "claude-9"}, {**CLAUDE, "base_url": "https://x.example"}):
        assert connect(api, **{**CLAUDE, **other})["id"] != first["id"]
    theirs = api.post(PATH, CLAUDE, token=mint(api, organization="other"))
    assert (theirs.status, theirs.json["id"] != first["id"]) == (201, True)


@pytest.mark.behaviour("credentials.ceiling", "credentials.same")
def test_past_twenty_five_the_refusal_names_what_frees_one(api: Api) -> None:
    made = [connect(api, key=f"xai-{n}") for n in range(24)]
    answer = api.post(PATH, CLAUDE)
    message = refused(answer)
    assert "retry-after" not in answer.headers
    assert "DELETE /v1/model-credentials/{credential_id}" in message
    assert "25" in message
    assert again(api, key="xai-3")["id"] == made[3]["id"]
    api.delete(f"{PATH}/{made[3]['id']}")
    assert connect(api, **CLAUDE)["id"] not in {credential["id"] for credential in made}


@pytest.mark.behaviour("credentials.short-key")
def test_a_short_key_shows_none_of_itself(api: Api) -> None:
    assert connect(api, key="1234567", provider="glm")["last4"] == ""
    assert connect(api, key="12345678", provider="glm")["last4"] == "5678"


# Secrets


@pytest.mark.behaviour("credentials.withheld", "credentials.create-only")
def test_no_key_and_no_address_comes_out(watch: Watch) -> None:
    def key() -> str:
        return f"sk-ant-{watch.secret()}9876"

    body = {"key": key(), "base_url": f"https://{watch.secret()}.example.com/{watch.secret()}", "label": watch.mark()}
    made = connect(watch, **body, default=True)
    assert made["last4"] == "9876"
    assert again(watch, **body)["id"] == made["id"]
    assert {frozenset(entry) for entry in listed(watch)} == {
        frozenset({"object", "id", "label", "connector", "model", "is_default"})
    }
    rejected, whole = key(), key()
    answers = [
        {"key": f"{rejected[:14]}*", "outcome": "rejected", "message": f"key {rejected} was revoked"},
        {"key": whole, "outcome": "unreachable"},
    ]
    # The pattern of the first is no secret: it is whatever a test chose to tell keys apart by.
    watch.emulator.settings.update(provider_answers=[{**answers[0], "key": "*9876"}])
    message = refused(watch.post(PATH, {"key": rejected}))
    assert "was revoked" in message
    watch.emulator.settings.update(provider_answers=answers[1:])
    assert watch.post(PATH, {"key": whole}).status == 502
    for wrong in (
        {"key": f"sk-{watch.secret()}"},
        {"key": watch.secret()},
        {"key": key(), "provider": f"sk-ant-{watch.secret()}-and-more"},
        {"key": key(), "base_url": watch.secret()},
        {"key": [key()]},
        {"key": {"key": key()}},
        {"keys": key()},
        {"key": key(), "base_url": [watch.secret()]},
        {"key": key(), "default": key()},
        {"key": key(), "model": [key()]},
    ):
        refused(watch.post(PATH, wrong))
    session_id = watch.session({"input": "hello"})
    watch.get(PATH)
    assert watch.get(f"{PATH}?after={made['id']}").status == 200
    watch.delete(f"{PATH}/{made['id']}")
    watch.delete(f"/v1/sessions/{session_id}")
    watch.check()


@pytest.mark.behaviour("credentials.withheld")
def test_the_settings_show_patterns_and_no_whole_key(api: Api) -> None:
    patterns = ["*-rejected", "sk-ant-*-down", "sk-ant-0123456789abcdef0123", "sk-ant-0123456789abcdef0123*", "mine"]
    answers = [{"key": pattern, "outcome": "ok", "message": ""} for pattern in patterns]
    shown = api.patch("/_emulator/settings", {"provider_answers": answers}).json["provider_answers"]
    withheld = "[withheld]"
    assert [entry["key"] for entry in shown] == [*patterns[:2], withheld, f"{withheld}*", withheld]
    assert api.get("/_emulator/settings").json["provider_answers"] == shown


@pytest.mark.behaviour("credentials.withheld")
def test_the_settings_show_no_whole_key_in_what_its_provider_says(api: Api) -> None:
    answers = [{"key": "mine-0123", "outcome": "rejected", "message": "mine-0123 was revoked"}]
    [shown] = api.patch("/_emulator/settings", {"provider_answers": answers}).json["provider_answers"]
    assert shown == {"key": "[withheld]", "outcome": "rejected", "message": "[withheld] was revoked"}


# Verification


@pytest.mark.behaviour("credentials.rejected", "credentials.nothing-written")
def test_a_rejected_key_is_refused_in_the_providers_words(api: Api) -> None:
    answers = [
        {"key": "*-expired", "outcome": "rejected", "message": "Key *** expired on 1 May."},
        {"key": "*-leaky", "outcome": "rejected", "message": "sk-ant-1-leaky is no key of ours"},
        {"key": "*-rejected", "outcome": "rejected"},
    ]
    api.emulator.settings.update(provider_answers=answers)
    assert "Key *** expired on 1 May." in refused(api.post(PATH, {"key": "sk-ant-1-expired"}))
    leaky = refused(api.post(PATH, {"key": "sk-ant-1-leaky"}))
    assert "is no key of ours" in leaky
    assert "sk-ant-1-leaky" not in leaky
    assert "Anthropic" in refused(api.post(PATH, {"key": "sk-ant-1-rejected"}))
    assert len(listed(api)) == 1
    assert connect(api, key="sk-ant-1")["verified"] is True


@pytest.mark.behaviour("credentials.no-model", "credentials.nothing-written")
def test_a_model_that_is_not_on_the_key_is_named(api: Api) -> None:
    answers = [{"key": "sk-ant-small*", "outcome": "no_model", "message": "Upgrade your plan."}]
    api.emulator.settings.update(provider_answers=answers)
    message = refused(api.post(PATH, {"key": "sk-ant-small-1", "model": "claude-9"}))
    assert "claude-9" in message
    assert "Upgrade your plan." in message
    assert "claude-sonnet-4-6" in refused(api.post(PATH, {"key": "sk-ant-small-1"}))
    assert len(listed(api)) == 1


@pytest.mark.behaviour("credentials.unreachable", "credentials.nothing-written")
def test_a_provider_that_cannot_be_reached_is_worth_another_try(api: Api) -> None:
    answers = [{"key": "xai-*", "outcome": "ok"}, {"key": "*", "outcome": "unreachable", "message": "timed out"}]
    api.emulator.settings.update(provider_answers=answers)
    headers = {"idempotency-key": "connect-1"}
    answer = api.post(PATH, CLAUDE, headers=headers)
    assert (answer.status, answer.code) == (502, "provider_error")
    assert answer.headers["retry-after"] == "5"
    assert "timed out" in answer.message
    assert len(listed(api)) == 1
    assert connect(api, key="xai-1")["connector"] == "xai"
    api.emulator.settings.update(provider_answers=[])
    again = api.post(PATH, CLAUDE, headers=headers)
    assert again.status == 201
    assert api.post(PATH, CLAUDE, headers=headers).json == again.json


# Lists


@pytest.mark.behaviour("credentials.list")
def test_connections_are_listed_newest_first_in_pages(api: Api) -> None:
    made = [listed(api)[0]["id"], *(connect(api, key=f"xai-{n}")["id"] for n in range(4))]
    for limit in (1, 2, 5):
        found: list[str] = []
        after = ""
        while len(found) < 5:
            page = api.get(f"{PATH}?limit={limit}{after}").json
            found += [entry["id"] for entry in page["data"]]
            assert (page["object"], page["has_more"], page["last_id"]) == ("list", len(found) < 5, found[-1])
            after = f"&after={page['last_id']}"
        assert found == made[::-1]
    empty = {"object": "list", "data": [], "has_more": False, "last_id": None}
    assert api.get(f"{PATH}?after={made[0]}").json == api.get(f"{PATH}?after=cred_nowhere").json == empty
    for query in ("order=desc", "limit=0", "limit=101", "after=", "connector=xai"):
        assert f"`{query.partition('=')[0]}`" in refused(api.get(f"{PATH}?{query}"))


@pytest.mark.behaviour("credentials.seeded")
@pytest.mark.gobare(
    connections=[
        {"label": "MiniMax", "connector": "minimax", "model": "MiniMax-M3"},
        {"label": "Ours", "connector": "custom", "model": "own"},
    ]
)
def test_a_fresh_organization_has_the_connections_of_the_settings(api: Api) -> None:
    entries = listed(api)
    assert [(entry["label"], entry["connector"], entry["model"], entry["is_default"]) for entry in entries] == [
        ("Ours", "custom", "own", False),
        ("MiniMax", "minimax", "MiniMax-M3", True),
    ]
    theirs = api.get(PATH, token=mint(api, organization="other")).json["data"]
    assert [entry["label"] for entry in theirs] == ["Ours", "MiniMax"]
    assert not {entry["id"] for entry in theirs} & {entry["id"] for entry in entries}


# Delete


@pytest.mark.behaviour("credentials.delete")
def test_sessions_move_to_the_default(api: Api) -> None:
    default = listed(api)[0]["id"]
    gone, newest = connect(api, **CLAUDE)["id"], connect(api, key="xai-1")["id"]
    moved = [api.session({"agent": {"model_credential_id": gone}}) for _ in range(2)]
    stays = api.session({"agent": {"model_credential_id": newest}})
    before = api.get(f"/v1/sessions/{moved[0]}").json["updated_at"]
    api.emulator.clock.advance(1)
    told = {"object": "model_credential.deleted", "id": gone, "deleted": True}
    assert api.delete(f"{PATH}/{gone}").json == {**told, "sessions_moved": 2, "moved_to": default}
    assert [entry["id"] for entry in listed(api)] == [newest, default]
    assert {agent_of(api, session_id) for session_id in moved} == {("MiniMax-M3", default)}
    assert agent_of(api, stays) == ("grok-4", newest)
    assert api.get(f"/v1/sessions/{moved[0]}").json["updated_at"] > before
    assert api.say(moved[0], "hello").status == 202
    assert api.turns(moved[0])[0]["status"] == "completed"


@pytest.mark.behaviour("credentials.delete-default", "credentials.new-default")
def test_with_the_default_gone_the_newest_takes_over(api: Api) -> None:
    default = listed(api)[0]["id"]
    second, newest = connect(api, **CLAUDE)["id"], connect(api, key="xai-1")["id"]
    session_id = api.session()
    answer = api.delete(f"{PATH}/{default}").json
    assert (answer["sessions_moved"], answer["moved_to"]) == (1, newest)
    assert agent_of(api, session_id) == ("grok-4", newest)
    assert [(entry["id"], entry["is_default"]) for entry in listed(api)] == [(newest, True), (second, False)]
    assert agent_of(api, api.session()) == ("grok-4", newest)


@pytest.mark.behaviour("credentials.moved-to")
def test_without_sessions_it_is_told_where_they_would_have_gone(api: Api) -> None:
    default = listed(api)[0]["id"]
    answer = api.delete(f"{PATH}/{connect(api, **CLAUDE)['id']}").json
    assert (answer["sessions_moved"], answer["moved_to"]) == (0, default)
    answer = api.delete(f"{PATH}/{default}").json
    assert (answer["sessions_moved"], answer["moved_to"]) == (0, None)
    assert listed(api) == []


@pytest.mark.behaviour("credentials.delete-last", "credentials.no-model-turn", "credentials.not-switching")
def test_with_nothing_left_a_session_has_no_model_until_it_is_given_one(api: Api) -> None:
    session_id = api.session({"input": "hello"})
    answer = api.delete(f"{PATH}/{listed(api)[0]['id']}").json
    assert (answer["sessions_moved"], answer["moved_to"]) == (0, None)
    assert agent_of(api, session_id) == (None, None)

    assert api.say(session_id, "hello?").status == 202
    turn = api.turns(session_id)[-1]
    assert (turn["status"], turn["error"]["code"]) == ("failed", "provider_unauthorized")
    assert "POST /v1/model-credentials" in turn["error"]["message"]
    assert api.items(session_id)[-1]["type"] == "error"
    assert api.get(f"/v1/sessions/{session_id}").json["status"] == "failed"
    assert api.emulator.report()["script_errors"] == []

    made = connect(api, **CLAUDE)
    assert made["is_default"] is True
    assert agent_of(api, session_id) == (None, None)
    pair = {"model": made["model"], "model_credential_id": made["id"]}
    assert api.patch(f"/v1/sessions/{session_id}", {"agent": pair}).status == 200
    api.say(session_id, "hello!")
    assert [turn["status"] for turn in api.turns(session_id)] == ["completed", "failed", "completed"]


@pytest.mark.behaviour("credentials.delete")
def test_a_running_turn_goes_on_without_its_connection(api: Api) -> None:
    @api.emulator.agent
    async def agent(turn: Any) -> None:
        await turn.say(await turn.ask("Which?"))

    session_id = api.session({"input": "go"})
    api.delete(f"{PATH}/{listed(api)[0]['id']}")
    [action] = api.actions(session_id)
    api.send(session_id, {"type": "input.question_answer", "call_id": action["call_id"], "answer": "this"})
    assert api.turns(session_id)[0]["status"] == "completed"
    assert api.emulator.transcript(session_id).last_message == "this"


@pytest.mark.behaviour("credentials.not-switching")
def test_a_new_default_moves_no_session(api: Api) -> None:
    session_id = api.session()
    before = agent_of(api, session_id)
    connect(api, **CLAUDE, default=True)
    assert agent_of(api, session_id) == before


@pytest.mark.behaviour("credentials.unknown")
def test_anothers_connection_is_as_one_that_never_was(api: Api) -> None:
    token = mint(api, organization="other")
    theirs = api.get(PATH, token=token).json["data"][0]["id"]
    session_id = api.session(token=token)
    answers = [api.delete(f"{PATH}/{credential_id}") for credential_id in (theirs, "cred_0000000000000000")]
    assert {(answer.status, answer.code) for answer in answers} == {(404, "not_found")}
    assert answers[0].message.replace(theirs, "cred_0000000000000000") == answers[1].message
    assert api.get(f"/v1/sessions/{session_id}", token=token).json["agent"]["model_credential_id"] == theirs
    gone = listed(api)[0]["id"]
    assert [api.delete(f"{PATH}/{gone}").status for _ in range(2)] == [200, 404]
