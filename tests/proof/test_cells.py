"""Every operation refuses what its gates refuse, in the way the document says.

The answers themselves are held against the document after each test; here they are brought about.
"""

from __future__ import annotations

import http.client
import json
from typing import TYPE_CHECKING, Any

import pytest

from emulator.api import gates
from emulator.api.operations import OPERATIONS
from tests.contract.calls import CALLS, NOWHERE, Known, call, mint
from tests.support import WAIT, Answer, Api

if TYPE_CHECKING:
    from emulator import Emulator

WRITES = [known for known in CALLS if known.writes]
REFUSALS = {(operation.verb, operation.path): operation.refusals for operation in OPERATIONS}


@pytest.fixture
def api(gobare: Emulator) -> Api:
    """A client of the test's emulator, in process."""
    return Api(gobare, "in-process")


def those_that_refuse(code: str) -> list[Known]:
    return [known for known in CALLS if code in REFUSALS[known.verb, known.path]]


@pytest.mark.parametrize("known", those_that_refuse("invalid_request"), ids=str)
def test_an_unknown_parameter_is_refused(api: Api, known: Known) -> None:
    assert call(api, known, NOWHERE, "?nothing=1").code == "invalid_request"


@pytest.mark.parametrize("known", those_that_refuse("authentication_error"), ids=str)
def test_nobody_is_refused(api: Api, known: Known) -> None:
    assert call(api, known, NOWHERE, token=None).code == "authentication_error"


@pytest.mark.parametrize("known", those_that_refuse("permission_denied"), ids=str)
def test_a_token_that_may_do_nothing_is_refused(api: Api, known: Known) -> None:
    assert call(api, known, NOWHERE, token=mint(api, "cli")).code == "permission_denied"


@pytest.mark.parametrize("known", [known for known in CALLS if "{" in known.path], ids=str)
def test_what_is_not_there_is_not_found(api: Api, known: Known) -> None:
    assert call(api, known, NOWHERE).code == "not_found"


@pytest.mark.gobare(rates="published")
def test_past_its_rate_a_token_is_refused_everywhere(api: Api) -> None:
    while api.get("/v1/health").status == 200:
        pass
    while api.post("/v1/sessions", {"nothing": 1}).status == 400:
        pass
    for known in those_that_refuse("rate_limit_exceeded"):
        assert call(api, known, NOWHERE).code == "rate_limit_exceeded", known


def test_a_fault_of_ours_has_one_form_everywhere(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("secret words")

    monkeypatch.setattr(gates, "check_token", fail)
    for known in CALLS:
        answer = call(api, known, NOWHERE)
        assert answer.code == "internal_error", known
        assert b"secret" not in answer.raw


@pytest.mark.parametrize("path", sorted({known.path for known in CALLS}))
def test_a_verb_that_a_path_does_not_take_is_refused(api: Api, path: str) -> None:
    answer = api.request("OPTIONS", NOWHERE.fill(path))
    assert answer.code == "method_not_allowed"
    served = [operation.verb for operation in OPERATIONS if operation.path == path]
    assert sorted(answer.headers["allow"].split(", ")) == sorted(served)


@pytest.mark.parametrize("known", WRITES, ids=str)
def test_a_write_in_flight_keeps_its_key_and_does_not_outlive_a_reset(gobare: Emulator, known: Known) -> None:
    api = Api(gobare)
    key = {"idempotency-key": "one"}
    body = json.dumps(known.body or {}).encode()
    head = {**key, "content-length": str(len(body)), "authorization": f"Bearer {gobare.token}"}
    connection = http.client.HTTPConnection(gobare.url.removeprefix("http://"), timeout=WAIT)
    try:
        connection.putrequest(known.verb, NOWHERE.fill(known.path))
        for name, value in head.items():
            connection.putheader(name, value)
        connection.endheaders(body[:-1])
        # The first of these may overtake it: they are such that they keep no key.
        answers = (call(api, known, NOWHERE, raw=b"[", headers=key) for _ in range(1000))
        clash = next(answer for answer in answers if answer.status != 400)
        assert (clash.code, '"one"' in clash.message) == ("conflict", True)
        gobare.reset()
        connection.send(body[-1:])
        response = connection.getresponse()
        late = Answer(response.status, {}, response.read())
    finally:
        connection.close()
    assert (late.status, late.code) == (503, "sandbox_unavailable")


def test_a_refresh_does_not_outlive_a_reset(gobare: Emulator, api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    class Server:
        async def connect(self) -> None:
            await gobare.socket.reset()

        async def close(self) -> None:
            pass

    session_id = api.session({"agent": {"tools": [{"type": "mcp", "name": "docs", "url": "http://docs"}]}})
    monkeypatch.setattr(gobare.socket.deployment.engine.workspaces, "_reach", lambda *_: Server())
    assert api.get(f"/v1/sessions/{session_id}/files?refresh=1").code == "sandbox_unavailable"


def test_every_event_can_be_subscribed_to(api: Api) -> None:
    schemas = api.get("/v1/openapi.json").json["components"]["schemas"]
    events = schemas["WebhookSubscription"]["properties"]["events"]["items"]["enum"]
    assert api.post("/v1/webhooks", {"url": "https://you.example.com", "events": events}).status == 201
    assert sorted(api.get("/v1/webhooks").json["data"][0]["events"]) == sorted(events)
