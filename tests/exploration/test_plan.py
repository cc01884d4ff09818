"""The plan of an emulator: explored from anywhere, in any language, over the control routes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from emulator import Emulator, EmulatorClient
from tests.support import Api

if TYPE_CHECKING:
    from collections.abc import Iterator

    from emulator.client import Handle


@pytest.fixture(params=["in this process", "over HTTP"])
def handle(request: pytest.FixtureRequest, gobare: Emulator) -> Iterator[Handle]:
    """The test's emulator, as a handle here or as one from elsewhere."""
    if request.param == "in this process":
        yield gobare
    else:
        with EmulatorClient(gobare.url) as client:
            yield client


def answer(api: Api) -> str:
    """Have a call answered, and give the outcome."""
    function = {"type": "function", "name": "lookup", "description": "Look up.", "parameters": {"type": "object"}}
    session = api.post("/v1/sessions", {"input": "go", "agent": {"tools": [function]}}).json
    call = session["required_actions"][0]
    answered = {"type": "input.tool_result", "success": True, "output": "1"}
    ids = {"turn_id": call["turn_id"], "call_id": call["call_id"]}
    reply = api.post(f"/v1/sessions/{session['id']}/events", {"events": [{**answered, **ids}]})
    outcome: str = reply.json["outcome"] if reply.status == 202 else reply.code
    return outcome


def variants(handle: Handle) -> dict[str, str]:
    return {variant["explore"]: variant["about"] for variant in handle.exploration()["variants"]}


def test_a_suite_in_any_language_explores_with_a_setting_and_a_route(api: Api, handle: Handle) -> None:
    assert handle.exploration() == {"explore": [], "reached": False, "variants": []}
    handle.settings.update(explore=["race"])
    assert answer(api) == "accepted"
    found = variants(handle)
    assert list(found) == [f"race:1:{name}" for name in ("accepted", "already_resolved", "not_delivered", "cancelled")]
    assert found["race:1:not_delivered"] == (
        "as the function call 'lookup' is answered, the sandbox has just forgotten the call"
    )
    for variant, outcome in zip(found, ("accepted", "already_resolved", "not_delivered", "not_found"), strict=True):
        handle.reset()
        handle.settings.update(explore=[variant])
        assert handle.exploration() == {"explore": [variant], "reached": False, "variants": []}
        assert answer(api) == outcome
        assert handle.exploration()["reached"] is True


def test_a_setting_that_is_taken_back_leaves_an_ordinary_emulator(api: Api, gobare: Emulator, handle: Handle) -> None:
    handle.settings.update(explore=["race:1:not_delivered", "future_proof:items"])
    handle.settings.update(explore=["future_proof:fields"])
    handle.settings.update(explore=[])
    assert gobare.socket.deployment.deliveries.widened is None
    assert answer(api) == "accepted"
    assert handle.exploration() == {"explore": [], "reached": False, "variants": []}


def test_reached_tells_of_every_variant(api: Api, handle: Handle) -> None:
    handle.settings.update(explore=["race:1:not_delivered", "race:2:cancelled"])
    assert answer(api) == "not_delivered"
    assert handle.exploration()["reached"] is False
    assert answer(api) == "not_found"
    assert handle.exploration()["reached"] is True


def test_what_happened_in_a_deleted_session_is_explored_too(api: Api, gobare: Emulator) -> None:
    gobare.settings.update(explore=["resume_everywhere"])
    session_id = api.session({"input": "hello"})
    with api.stream(f"/v1/sessions/{session_id}/events", headers={"last-event-id": "0"}) as stream:
        stream.until("turn.ended")
    events = [f"resume_everywhere:{event['seq']}" for event in gobare.events()]
    api.delete(f"/v1/sessions/{session_id}")
    assert list(variants(gobare)) == events


def test_a_session_that_nobody_streamed_is_not_cut(api: Api, gobare: Emulator) -> None:
    gobare.settings.update(explore=["resume_everywhere"])
    one, other = api.session({"input": "hello"}), api.session({"input": "hello"})
    with api.stream(f"/v1/sessions/{one}/events", headers={"last-event-id": "0"}) as stream:
        stream.until("turn.ended")
    seqs = {f"resume_everywhere:{event['seq']}" for event in gobare.events(one)}
    assert set(variants(gobare)) == seqs
    with api.stream("/v1/events"):
        both = seqs | {f"resume_everywhere:{event['seq']}" for event in gobare.events(other)}
        assert set(variants(gobare)) == both


def test_reads_alone_are_not_put_in_another_order(api: Api, gobare: Emulator) -> None:
    import asyncio

    from emulator.exploration.part import Sent
    from emulator.exploration.race import Race

    async def flights(*verbs: str) -> list[str]:
        race = Race(gobare.socket.deployment, "")
        organization = gobare.socket.deployment.world.organization("default")
        sent = [Sent(n, organization, verb, f"/v1/{n}", None) for n, verb in enumerate(verbs)]
        await asyncio.gather(*(race.before(one) for one in sent))
        for one in sent:
            race.after(one.number)
        return [variant.about for variant in race.variants()]

    assert gobare.run(flights("GET", "GET")) == []
    assert gobare.run(flights("GET", "POST")) == [
        "POST /v1/1 is carried out before GET /v1/0, which was sent at the same time"
    ]
    assert len(gobare.run(flights("POST", "POST", "DELETE"))) == 3


def test_the_emulator_takes_it_at_its_start() -> None:
    with Emulator(explore=["race:1:not_delivered"]) as emulator:
        assert answer(Api(emulator)) == "not_delivered"
        emulator.reset()
        assert answer(Api(emulator)) == "not_delivered"


@pytest.mark.parametrize("wrong", [["race:1:lost"], ["racing"], "race", 3])
def test_a_wrong_setting_is_refused_by_name(gobare: Emulator, wrong: Any) -> None:
    with pytest.raises(Exception, match="`explore") as refused:
        gobare.settings.update(explore=wrong)
    assert type(refused.value).__name__ == "ControlError"
