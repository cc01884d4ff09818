"""Findings about event streams, and about outages and scopes: who breaks the rule and who keeps it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.findings.support import LOOKUP, close, evidence, found, ids, parked

if TYPE_CHECKING:
    from emulator import Emulator
    from emulator.runtime.turn import Turn
    from tests.support import Api, Frames


def _opened(gobare: Emulator, api: Api, path: str, cursor: int | None = None) -> tuple[Frames, str]:
    """A stream, and the id of the request that opened it."""
    headers = {} if cursor is None else {"Last-Event-ID": str(cursor)}
    stream = api.stream(path, headers=headers)
    stream.next()
    return stream, gobare.requests[-1].request_id


@pytest.mark.parametrize("path", ["/v1/sessions/{}/events", "/v1/events", "/v1/events?root={}"])
def test_a_stream_is_opened_after_the_turn_had_begun(gobare: Emulator, api: Api, path: str) -> None:
    created, session_id = parked(api)
    turn_id = api.actions(session_id)[0]["turn_id"]
    stream, opened = _opened(gobare, api, path.format(session_id))
    api.answer(session_id, api.actions(session_id)[0])
    stream.until("turn.ended")
    stream.close()
    assert found(gobare) == {
        "subscribed-late": evidence([*ids(created), opened], session_id=session_id, turn_id=turn_id)
    }


def test_a_stream_is_opened_after_the_turn_was_over(gobare: Emulator, api: Api) -> None:
    created = api.post("/v1/sessions", {"input": "go"})
    session_id = created.json["id"]
    stream, opened = _opened(gobare, api, f"/v1/sessions/{session_id}/events")
    close(gobare, stream)
    turn_id = api.turns(session_id)[0]["id"]
    assert found(gobare) == {
        "subscribed-late": evidence([*ids(created), opened], session_id=session_id, turn_id=turn_id)
    }


@pytest.mark.parametrize(
    "how", ["before", "cursor", "items", "nothing yet", "only asked", "next message", "organization", "another stream"]
)
def test_a_stream_misses_nothing_that_matters(gobare: Emulator, api: Api, how: str) -> None:
    @gobare.agent
    async def agent(turn: Turn) -> None:
        if how not in ("nothing yet", "only asked"):
            await turn.say("Looking.")
        await turn.call("lookup")
        await turn.say("Ok.")

    session_id = api.session({"agent": {"tools": [LOOKUP]}})
    path = "/v1/events" if how == "organization" else f"/v1/sessions/{session_id}/events"
    streams = []
    if how in ("before", "organization", "another stream"):
        streams.append(_opened(gobare, api, path)[0])
    api.say(session_id, "go")
    match how:
        case "cursor":
            streams.append(_opened(gobare, api, path, 0)[0])
        case "items" | "only asked" | "nothing yet" | "another stream":
            streams.append(_opened(gobare, api, path)[0])
    action = api.actions(session_id)[0]
    api.answer(session_id, action)
    for stream in streams:
        stream.until("turn.ended")
        stream.close()
    if how == "next message":
        api.items(session_id)
        with api.stream(path) as stream:
            api.say(session_id, "again")
            stream.until("tool.required")
    if how == "items":
        api.items(session_id)
    assert found(gobare) == {}


@pytest.mark.parametrize("how", ["a cursor it was given", "another tree"])
def test_a_stream_was_opened_for_something_else(gobare: Emulator, api: Api, how: str) -> None:
    _, session_id = parked(api)
    other = api.session()
    path = f"/v1/events?root={other}" if how == "another tree" else f"/v1/sessions/{session_id}/events"
    stream, _ = _opened(gobare, api, path, None if how == "another tree" else 6)
    close(gobare, stream)
    assert found(gobare) == {}


@pytest.mark.parametrize("how", ["the next message", "whatever comes"])
def test_a_stream_is_opened_for_what_comes_after_a_turn_that_was_over(gobare: Emulator, api: Api, how: str) -> None:
    session_id = api.session({"input": "go"})
    path = f"/v1/sessions/{session_id}/events" if how == "the next message" else "/v1/events"
    stream, _ = _opened(gobare, api, path)
    if how == "the next message":
        api.say(session_id, "again")
        stream.until("turn.ended")
    close(gobare, stream)
    assert found(gobare) == {}


def test_a_stream_that_followed_one_turn_is_opened_late_in_the_next(gobare: Emulator, api: Api) -> None:
    gobare.load({"agent": [{"otherwise": [{"say": "Done."}]}]})
    session_id = api.session({"agent": {"tools": [LOOKUP]}})
    path = f"/v1/sessions/{session_id}/events"
    stream, _ = _opened(gobare, api, path)
    api.say(session_id, "go")
    stream.until("turn.ended")
    close(gobare, stream)
    gobare.load({"agent": [{"otherwise": [{"say": "Looking."}, {"call": {"function": "lookup"}}]}]})
    api.say(session_id, "again")
    stream, _ = _opened(gobare, api, path)
    close(gobare, stream)
    assert list(found(gobare)) == ["subscribed-late"]


def test_what_a_cut_lost_is_found_once(gobare: Emulator, api: Api) -> None:
    session_id, first, second = _cut(gobare, api, "/v1/sessions/{}/events", None)
    assert gobare.settle()
    stream, _ = _opened(gobare, api, f"/v1/sessions/{session_id}/events")
    close(gobare, stream)
    told = found(gobare)
    assert list(told) == ["resumed-without-cursor"]
    assert told["resumed-without-cursor"]["request_ids"] == [first, second]


@pytest.mark.parametrize("path", ["/v1/sessions/{}/events", "/v1/events"])
def test_a_stream_is_opened_again_without_a_cursor(gobare: Emulator, api: Api, path: str) -> None:
    session_id, first, second = _cut(gobare, api, path, None)
    turn_id = api.turns(session_id)[0]["id"]
    assert found(gobare) == {
        "resumed-without-cursor": evidence([first, second], session_id=session_id, turn_id=turn_id)
    }


@pytest.mark.parametrize("how", ["cursor", "items", "other stream", "nothing between"])
def test_a_stream_is_opened_again_and_misses_nothing(gobare: Emulator, api: Api, how: str) -> None:
    other = _opened(gobare, api, "/v1/events")[0] if how == "other stream" else None
    session_id, _, _ = _cut(
        gobare, api, "/v1/sessions/{}/events", 5 if how == "cursor" else None, answer=how != "nothing between"
    )
    if how == "items":
        api.items(session_id)
    if other is not None:
        other.until("turn.ended")
        other.close()
    assert found(gobare) == {}


def _cut(gobare: Emulator, api: Api, path: str, cursor: int | None, *, answer: bool = True) -> tuple[str, str, str]:
    """A stream that ends in the middle of a turn and is opened again once the agent went on."""

    @gobare.agent
    async def agent(turn: Turn) -> None:
        await turn.say("Looking.")
        await turn.call("lookup")
        await turn.say("Ok.")

    session_id = api.session({"agent": {"tools": [LOOKUP]}})
    stream, first = _opened(gobare, api, path.format(session_id))
    api.say(session_id, "go")
    stream.until("tool.required")
    action = api.actions(session_id)[0]
    close(gobare, stream)
    if answer:
        api.answer(session_id, action)
    stream, second = _opened(gobare, api, path.format(session_id), cursor)
    if cursor is not None:
        stream.until("turn.ended")
    close(gobare, stream)
    return session_id, first, second


def test_turn_after_turn_with_a_stream_for_each(gobare: Emulator, api: Api) -> None:
    @gobare.agent
    async def agent(turn: Turn) -> None:
        await turn.write(f"/workspace/outputs/{turn.number}.txt", "done")
        await turn.say("Done.")

    session_id = api.session()
    for text in ("one", "two", "three"):
        stream = _opened(gobare, api, f"/v1/sessions/{session_id}/events")[0]
        api.say(session_id, text)
        stream.until("turn.ended")
        close(gobare, stream)
    assert found(gobare) == {}


DOCS = {"type": "mcp", "name": "docs", "url": "https://mcp.example.com"}


def test_nothing_is_read_of_a_server_that_is_down(gobare: Emulator, api: Api) -> None:
    gobare.mcp.down("docs")
    created = api.post("/v1/sessions", {"input": "go", "agent": {"tools": [DOCS]}})
    session_id = created.json["id"]
    api.get(f"/v1/sessions/{session_id}")
    api.turns(session_id)
    assert found(gobare) == {"mcp-outage-unread": evidence(ids(created), session_id=session_id, server="docs")}


@pytest.mark.parametrize("how", ["items", "stream", "up", "required"])
def test_a_server_that_is_down_is_read_of(gobare: Emulator, api: Api, how: str) -> None:
    if how != "up":
        gobare.mcp.down("docs")
    answer = api.post("/v1/sessions", {"input": "go", "agent": {"tools": [{**DOCS, "required": how == "required"}]}})
    assert answer.status == (400 if how == "required" else 201)
    if how == "items":
        api.items(answer.json["id"])
    if how == "stream":
        with api.stream("/v1/events?last_event_id=0") as stream:
            stream.until("mcp.unavailable")
    assert found(gobare) == {}


def test_a_token_has_scopes_it_never_used(gobare: Emulator, api: Api) -> None:
    minted = gobare.tokens.mint(scopes=["sessions:read", "sessions:write", "artifacts:read", "tools:respond"])
    session_id = api.session({"input": "go"}, token=minted.token)
    answers = [api.get(f"/v1/sessions/{session_id}", token=minted.token) for _ in range(3)]
    token_id = answers[0].json["created_by_token"]
    assert found(gobare) == {
        "scopes-unused": evidence(ids(answers[-1]), token_id=token_id, scopes=["tools:respond", "artifacts:read"])
    }


@pytest.mark.parametrize("how", ["used", "not chosen", "hardly used"])
def test_a_token_has_what_it_needs(gobare: Emulator, api: Api, how: str) -> None:
    if how == "not chosen":
        minted = gobare.tokens.mint()
    else:
        minted = gobare.tokens.mint(scopes=["sessions:read", "sessions:write", "tools:respond"])
    token = minted.token
    session_id = api.session({"agent": {"tools": [LOOKUP]}}, token=token)
    if how != "hardly used":
        gobare.load({"agent": [{"otherwise": [{"call": {"function": "lookup"}}]}]})
        api.say(session_id, "go", token=token)
        action = api.get(f"/v1/sessions/{session_id}", token=token).json["required_actions"][0]
        api.answer(session_id, action, token=token)
        api.get(f"/v1/sessions/{session_id}", token=token)
    assert found(gobare) == {}
