"""Secrets in what surrounds a body, in bodies that cannot be read, and in faults (contract §2, §3, §5)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from emulator import Emulator
from tests.contract.canaries import Watch
from tests.contract.tool_doors import FUNCTION, SERVER, put

if TYPE_CHECKING:
    from tests.support import Api


# Bodies that cannot be read, and those nobody asked for


@pytest.mark.behaviour("secrets.unreadable-bodies")
def test_nothing_of_a_body_that_cannot_be_read_is_kept(watch: Watch) -> None:
    session_id = watch.session()

    def body() -> bytes:
        return json.dumps({"tools": [SERVER | {"authorization": watch.secret()}]}).encode()

    spoilt = [
        body()[:-3],
        body() + b"}",
        body() + b"\xff",
        b"\xef\xbb\xbf" + body(),
        body().replace(b'"https', b"'https"),
        body().replace(b'"docs"', b"NaN"),
        body().replace(b'"docs"', b"1e999"),
        body().replace(b'"docs"', b'"\\ud800"'),
        body().replace(b'"docs"', b"[" * 500 + b"]" * 500),
        b"[" + body() + b"]",
        json.dumps(body().decode()).encode(),
        f"authorization={watch.secret()}&name=docs".encode(),
        watch.secret().encode(),
        body().decode().encode("utf-16"),
        body() + b" " * 1_048_576,
    ]
    for raw in spoilt:
        assert watch.put(f"/v1/sessions/{session_id}/tools", raw=raw).status == 400
        assert watch.post(f"/v1/sessions/{session_id}/events", raw=raw).status == 400
    for raw in spoilt[:-1]:
        assert watch.post("/v1/sessions", raw=raw).status == 400

    watch.check()


@pytest.mark.behaviour("secrets.unwanted-bodies")
def test_nothing_of_a_body_sent_where_none_belongs_is_kept(watch: Watch) -> None:
    session_id = watch.session()

    def body() -> dict[str, Any]:
        return {"tools": [SERVER | {"authorization": watch.secret()}]}

    for verb, path in (
        ("DELETE", f"/v1/sessions/{session_id}"),
        ("GET", f"/v1/sessions/{session_id}/tools"),
        ("GET", "/v1/sessions"),
        ("POST", f"/v1/sessions/{session_id}/tools"),
        ("PATCH", f"/v1/sessions/{session_id}/tools"),
        ("PUT", "/v1/sessions"),
        ("PUT", "/v1/nowhere"),
        ("POST", "/elsewhere"),
    ):
        watch.request(verb, path, body())

    watch.check()


# Requests around them


@pytest.mark.behaviour("secrets.query")
@pytest.mark.parametrize("name", ["authorization", "token", "access_token", "api_key", "x", "limits", ""])
def test_the_value_of_an_unknown_query_parameter_is_not_kept(watch: Watch, name: str) -> None:
    session_id = watch.session()
    for verb, path in (
        ("GET", "/v1/sessions"),
        ("GET", f"/v1/sessions/{session_id}/tools"),
        ("PUT", f"/v1/sessions/{session_id}/tools"),
        ("POST", "/v1/sessions"),
        ("GET", "/v1/health"),
        ("GET", "/v1/openapi.json"),
        ("GET", "/v1/events"),
    ):
        answer = watch.request(verb, f"{path}?{name}={watch.secret()}", None if verb == "GET" else {})
        assert answer.status == 400

    for path in ("/v1/nowhere", "/elsewhere", f"/v1/sessions/{session_id}/nowhere"):
        assert watch.get(f"{path}?{name}={watch.secret()}").status == 404
    watch.check()


@pytest.mark.behaviour("secrets.query")
def test_a_value_that_a_known_parameter_refuses_is_not_repeated(watch: Watch) -> None:
    for name in ("limit", "order", "status", "source", "metadata"):
        assert watch.get(f"/v1/sessions?{name}={watch.token()}").status == 400

    watch.check()


@pytest.mark.behaviour("secrets.token-shaped")
def test_a_token_in_an_address_is_withheld_wherever_it_is_repeated(watch: Watch) -> None:
    session_id = watch.session()
    for verb, path in (
        ("GET", "/v1/sessions/@"),
        ("GET", "/v1/sessions/@/tools"),
        ("PUT", "/v1/sessions/@/tools"),
        ("DELETE", "/v1/sessions/@"),
        ("GET", f"/v1/sessions/{session_id}/turns/@"),
        ("GET", f"/v1/sessions/{session_id}/@"),
        ("GET", "/v1/@"),
        ("GET", "/@"),
        ("GET", "/v1/sessions?@=1"),
        ("GET", "/v1/sessions?root=@"),
        ("GET", "/v1/sessions?after=@"),
        ("GET", "/v1/sessions?created_by_token=@"),
        ("GET", "/v1/events?root=@"),
    ):
        watch.request(verb, path.replace("@", watch.token()), {"tools": []} if verb == "PUT" else None)

    watch.check()


@pytest.mark.behaviour("secrets.token-shaped")
def test_a_token_in_a_body_where_names_and_ids_belong_is_withheld(watch: Watch) -> None:
    session_id = watch.session()
    refused = [
        watch.put(f"/v1/sessions/{session_id}/tools", {watch.token(): 1}),
        watch.put(f"/v1/sessions/{session_id}/tools", {"tools": [SERVER | {watch.token(): 1}]}),
        watch.put(f"/v1/sessions/{session_id}/tools", {"tools": [{"type": watch.token()}]}),
        watch.put(f"/v1/sessions/{session_id}/tools", {"tools": [SERVER | {"headers": {watch.token(): 1}}]}),
        watch.put(f"/v1/sessions/{session_id}/tools", {"text": {"verbosity": watch.token()}}),
        watch.put(f"/v1/sessions/{session_id}/tools", {"tools": [FUNCTION | {"name": watch.token()}] * 2}),
        watch.post("/v1/sessions", {"agent": {"model": watch.token()}}),
        watch.post("/v1/sessions", {"agent": {"model_credential_id": watch.token()}}),
        watch.post("/v1/sessions", {"agent": {"id": watch.token()}}),
        watch.post("/v1/sessions", {"agent": {"approval_mode": watch.token()}}),
        watch.post("/v1/sessions", {"parent_session_id": watch.token()}),
        watch.post("/v1/sessions", {"environment": {"template_id": watch.token()}}),
        watch.post("/v1/sessions", {"environment": {"profiles": [watch.token()]}}),
        watch.post("/v1/sessions", {"environment": {"repo": f"https://{watch.token()}@github.com/acme/app"}}),
        watch.send(session_id, {"type": watch.token()}),
        watch.send(
            session_id,
            {
                "type": "input.tool_result",
                "turn_id": watch.token(),
                "call_id": watch.token(),
                "success": True,
                "output": watch.token(),
            },
        ),
    ]

    assert [answer.status for answer in refused if answer.status not in (400, 404)] == []
    watch.check()


@pytest.mark.behaviour("secrets.access-tokens")
def test_the_token_of_a_request_is_in_no_answer_to_it(watch: Watch) -> None:
    session_id = watch.session()
    for path in ("/v1/sessions", f"/v1/sessions/{session_id}/tools", "/v1/health", "/v1/events"):
        assert watch.get(path, token=watch.secret()).status == 401
        assert watch.get(path, token=watch.token()).status == 401
        for scheme in ("Basic", "Token", "bearer", "", "Digest x"):
            header = {"authorization": f"{scheme} {watch.secret()}".strip()}
            assert watch.get(path, token=None, headers=header).status == 401
        assert watch.get(path, token=None, headers={"authorization": f"Bearer x {watch.secret()}"}).status == 401
    assert watch.get("/v1/openapi.json", token=watch.secret()).status == 200
    assert watch.get("/v1/nowhere", token=watch.secret()).status == 404
    assert watch.put("/v1/sessions", {}, token=watch.secret()).status == 405
    assert watch.get("/elsewhere", token=watch.secret()).status == 404

    watch.check()


@pytest.mark.behaviour("secrets.other-headers")
def test_no_other_header_of_a_request_is_kept(watch: Watch) -> None:
    session_id = watch.session()
    for name in ("x-api-key", "cookie", "proxy-authorization", "idempotency-key", "user-agent", "referer", "x-y"):
        headers = {name: watch.secret()}
        assert watch.get(f"/v1/sessions/{session_id}", headers=headers).status == 200
        assert watch.put(f"/v1/sessions/{session_id}/tools", {"tools": []}, headers=headers).status == 200
        assert watch.put(f"/v1/sessions/{session_id}/tools", {"tools": 1}, headers={name: watch.secret()}).status == 400
        assert watch.get("/v1/nowhere", headers=headers).status == 404
    long = {"idempotency-key": f"{watch.secret()}{'k' * 255}"}
    assert watch.put(f"/v1/sessions/{session_id}/tools", {"tools": []}, headers=long).status == 400
    assert watch.get("/v1/events", headers={"last-event-id": watch.secret()}).status == 400

    watch.check()


@pytest.mark.behaviour("secrets.address-of-a-server")
def test_the_journal_withholds_the_user_of_an_address(watch: Watch) -> None:
    url = "https://acme:sesame@mcp.example.com/mcp"

    session_id = watch.session({"agent": {"tools": [SERVER | {"url": url}]}})
    put(watch, session_id, SERVER | {"url": url})

    assert watch.get(f"/v1/sessions/{session_id}/tools").json["tools"] == [SERVER | {"url": url}]
    journal = json.dumps([entry.model_dump() for entry in watch.emulator.requests])
    assert "mcp.example.com/mcp" in journal
    assert "sesame" not in journal
    assert "acme" not in journal


# Faults


@pytest.mark.behaviour("secrets.internal-errors")
def test_a_fault_of_ours_tells_nothing_of_the_values(watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = watch.secret()

    def fails(*arguments: Any) -> None:
        raise RuntimeError(f"could not store {secret} of {arguments}")

    session_id = watch.session()
    monkeypatch.setattr(watch.emulator.socket.deployment.engine, "replace_tools", fails)
    body = {"tools": [SERVER | {"authorization": secret}]}

    answer = watch.put(f"/v1/sessions/{session_id}/tools", body)

    assert (answer.status, answer.code) == (500, "internal_error")
    logged = [text for place, text in watch.places() if place == "the log"]
    assert answer.json["error"]["request_id"] in logged[0]
    assert "RuntimeError" in logged[0]
    watch.check()


@pytest.mark.behaviour("secrets.scripts")
def test_a_token_in_the_error_of_a_script_is_withheld(
    api: Api, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    # Its own emulator: the fixture's would fail this test with the script's error.
    with Emulator() as emulator:
        watch = Watch(emulator, api.kind, caplog, capfd)
        token = watch.token()

        @emulator.agent
        async def agent(turn: Any) -> None:
            raise ValueError(f"refused: {token}")

        session_id = watch.session()
        watch.say(session_id, "hello")

        assert watch.turns(session_id)[0]["error"]["message"].endswith("ValueError: refused: [withheld]")
        assert len(emulator.report()["script_errors"]) == 1
        watch.check()


@pytest.mark.behaviour("secrets.minted-tokens")
def test_a_minted_token_is_told_once(watch: Watch) -> None:
    minted = watch.emulator.tokens.mint(scopes=["sessions:read"])
    watch.remember(minted.token, watch.emulator.token)

    assert watch.get("/v1/sessions", token=minted.token).status == 200
    assert watch.get("/v1/health", token=minted.token).status == 200
    assert watch.post("/v1/sessions", {}, token=minted.token).status == 403
    watch.emulator.tokens.revoke(minted.id)
    assert watch.get("/v1/sessions", token=minted.token).status == 401

    assert minted.token not in f"{minted!r} {minted}"
    assert minted.token.startswith("gbr_pat_")
    watch.check()


@pytest.mark.behaviour("secrets.minted-tokens")
def test_a_control_token_is_told_nowhere(
    api: Api, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    control = "canary-control"
    with Emulator(control_token=control) as emulator:
        watch = Watch(emulator, api.kind, caplog, capfd)
        watch.remember(control)

        refused = watch.get("/_emulator/requests", token=watch.secret())
        taken = watch.get("/_emulator/requests", token=control)

        assert (refused.status, taken.status) == (401, 200)
        watch.check()


@pytest.mark.behaviour("secrets.journal-keeps-little")
def test_the_journal_keeps_sizes_of_what_may_hold_anything(api: Api) -> None:
    files = [{"path": ".env", "data": "Y2FuYXJ5"}]
    api.post("/v1/sessions", {"environment": {"files": files, "repo": "canary@github.com/a/b"}})
    session = api.session()
    by_command = {"type": "mcp", "name": "a", "command": "run", "args": ["--token", "canary"]}
    by_url = {"type": "mcp", "name": "b", "url": "https://canary:x@h.example/mcp?key=canary#canary"}
    api.put(f"/v1/sessions/{session}/tools", {"tools": [by_command, by_url]})
    api.say(session, "canary" * 1000)
    api.get("/v1/sessions?metadata=api_key:canary")
    kept = [entry.body for entry in api.emulator.requests]
    assert "canary" not in json.dumps(kept)
    assert "Y2FuYXJ5" not in json.dumps(kept)
    tools = kept[2]["tools"]
    assert tools[0]["args"] == "[list of 2]"
    assert tools[1]["url"] == "https://[withheld]@h.example/mcp"
    assert kept[3]["events"][0]["content"] == "[text of 6000 characters]"
    assert api.emulator.requests[-1].query == {"metadata": "api_key:[withheld]"}
