"""Streams (contract §9): how many may be open, whose events are on them, and when they end."""

from __future__ import annotations

import asyncio
import http.client
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from emulator.settings import Settings
from tests.contract.steps import until
from tests.support import Api

if TYPE_CHECKING:
    from emulator import Emulator, Turn
    from tests.support import Frames

EVERYTHING = "/v1/events"


def note(api: Api, session: str, *texts: str, token: str | None = "default") -> None:
    """Record events, one for each text, and nothing else."""
    for text in texts:
        assert api.send(session, {"type": "input.context", "content": text}, token=token).status == 202


def next_texts(frames: Frames, count: int) -> list[str]:
    """The texts of the next so many events."""
    found = [frame.payload["text"] for frame in (frames.event() for _ in range(count)) if frame is not None]
    assert len(found) == count, "the stream ended"
    return found


def opened(api: Api, stack: ExitStack, path: str, count: int, token: str | None = "default") -> list[Frames]:
    """Open so many streams, which all begin."""
    streams = [stack.enter_context(api.stream(path, token=token)) for _ in range(count)]
    assert [frames.stream.status for frames in streams] == [200] * count
    return streams


def streams_open(api: Api) -> int:
    return len(api.emulator.report()["open_streams"])


# Ceilings


@pytest.mark.behaviour("streams.token-ceiling", "streams.slot-kept")
def test_a_sixth_stream_of_a_token_is_refused_as_json(api: Api) -> None:
    session = api.session()
    with ExitStack() as stack:
        streams = opened(api, stack, f"/v1/sessions/{session}/events", 3)
        streams += opened(api, stack, EVERYTHING, 1)
        streams += opened(api, stack, f"{EVERYTHING}?root={session}", 1)
        for path in (EVERYTHING, f"/v1/sessions/{session}/events", f"{EVERYTHING}?root={session}"):
            answer = api.get(path)
            assert (answer.status, answer.code) == (429, "rate_limit_exceeded")
            assert answer.headers["content-type"] == "application/json"
            assert int(answer.headers["retry-after"]) >= 1
            assert "5 event streams" in answer.message
            assert set(answer.json) == {"error"}
        note(api, session, "still there")
        for frames in streams:
            assert next_texts(frames, 1) == ["still there"]
        # Another token of the organization has slots of its own.
        opened(api, stack, EVERYTHING, 1, token=api.emulator.tokens.mint().token)


@pytest.mark.behaviour("streams.organization-ceiling")
def test_an_organization_has_twenty_streams_over_all_its_tokens(api: Api) -> None:
    tokens = [api.emulator.tokens.mint().token for _ in range(5)]
    with ExitStack() as stack:
        for token in tokens[:4]:
            opened(api, stack, EVERYTHING, 5, token=token)
        answer = api.get(EVERYTHING, token=tokens[4])
        assert (answer.status, answer.code) == (429, "rate_limit_exceeded")
        assert "20 event streams" in answer.message
        assert int(answer.headers["retry-after"]) >= 1
        other = api.emulator.tokens.mint(organization="other").token
        opened(api, stack, EVERYTHING, 1, token=other)


@pytest.mark.behaviour("streams.slot-freed")
def test_the_slot_of_a_stream_is_free_once_its_client_has_left(api: Api) -> None:
    with ExitStack() as stack:
        leaving = opened(api, stack, EVERYTHING, 5)[2]
        assert api.get(EVERYTHING).status == 429
        leaving.close()
        until(lambda: streams_open(api) == 4, "the slot is free")
        opened(api, stack, EVERYTHING, 1)
        assert api.get(EVERYTHING).status == 429
    until(lambda: streams_open(api) == 0, "every slot is free")


@pytest.mark.behaviour("streams.slot-freed", "streams.end-on-delete")
def test_the_slot_of_a_stream_is_free_once_its_session_is_deleted(api: Api) -> None:
    session = api.session()
    with ExitStack() as stack:
        opened(api, stack, f"/v1/sessions/{session}/events", 5)
        assert api.get(EVERYTHING).status == 429
        api.delete(f"/v1/sessions/{session}")
        until(lambda: streams_open(api) == 0, "every slot is free")
        opened(api, stack, EVERYTHING, 5)


@pytest.mark.behaviour("streams.settings", "streams.slot-kept")
@pytest.mark.gobare(streams_per_token=2, streams_per_organization=3)
def test_both_ceilings_can_be_set(api: Api) -> None:
    assert (Settings().streams_per_token, Settings().streams_per_organization) == (5, 20)
    one, two = (api.emulator.tokens.mint().token for _ in range(2))
    with ExitStack() as stack:
        opened(api, stack, EVERYTHING, 2, token=one)
        assert "2 event streams" in api.get(EVERYTHING, token=one).message
        opened(api, stack, EVERYTHING, 1, token=two)
        assert "3 event streams" in api.get(EVERYTHING, token=two).message
        assert streams_open(api) == 3


@pytest.mark.behaviour("streams.not-found")
def test_a_stream_of_no_session_is_refused_as_json(api: Api) -> None:
    answer = api.get("/v1/sessions/3f9c1b60-4e2a-4d18-9a77-6c0b2e5d81af/events")
    assert (answer.status, answer.code) == (404, "not_found")
    assert answer.headers["content-type"] == "application/json"
    assert streams_open(api) == 0


# Whose events


@pytest.mark.behaviour("streams.session", "streams.organization")
def test_a_session_has_its_own_events_and_the_organization_all_of_them(api: Api) -> None:
    one, two = api.session(), api.session()
    with api.stream(f"/v1/sessions/{one}/events") as own, api.stream(EVERYTHING) as every:
        note(api, two, "elsewhere")
        note(api, one, "here")
        later = api.session()
        note(api, later, "new")
        note(api, one, "here again")
        assert next_texts(own, 2) == ["here", "here again"]
        assert next_texts(every, 4) == ["elsewhere", "here", "new", "here again"]
        assert [frame.id for frame in every.seen if frame.id] == [1, 2, 3, 4]
        assert [frame.data["session_id"] for frame in every.seen if frame.id] == [two, one, later, one]


@pytest.mark.behaviour("streams.organization")
def test_transient_frames_are_on_the_organization_s_stream_too(api: Api) -> None:
    session = api.session()
    with api.stream(EVERYTHING) as frames:
        api.say(session, "Hello")
        deltas = [frame for frame in frames.until("turn.ended") if frame.type == "agent.text"]
    assert deltas
    assert {frame.data["session_id"] for frame in deltas} == {session}


@pytest.mark.behaviour("streams.isolation")
def test_nothing_of_another_organization_is_on_a_stream(api: Api) -> None:
    mine = api.session()
    other = api.emulator.tokens.mint(organization="other").token
    foreign = api.session(token=other)
    answer = api.get(f"/v1/sessions/{foreign}/events")
    assert (answer.status, answer.code) == (404, "not_found")
    api.say(foreign, "before", token=other)
    with api.stream(f"{EVERYTHING}?last_event_id=0") as frames:
        api.say(foreign, "secret", token=other)
        note(api, mine, "mine")
        frame = frames.event()
    assert frame is not None
    assert (frame.id, frame.payload) == (1, {"text": "mine"})


# Roots


@pytest.mark.behaviour("streams.root", "streams.root-joins", "streams.organization")
def test_a_root_narrows_to_its_tree_and_later_members_join(api: Api) -> None:
    root = api.session()
    child = api.session({"parent_session_id": root})
    aside = api.session()
    for session, text in ((root, "root"), (aside, "aside"), (child, "child")):
        note(api, session, text)
    with api.stream(f"{EVERYTHING}?root={root}&last_event_id=0") as frames:
        assert next_texts(frames, 2) == ["root", "child"]
        note(api, aside, "aside again")
        grandchild = api.session({"parent_session_id": child})
        below_aside = api.session({"parent_session_id": aside})
        note(api, below_aside, "not this")
        note(api, grandchild, "grandchild")
        note(api, root, "root again")
        assert next_texts(frames, 2) == ["grandchild", "root again"]


@pytest.mark.behaviour("streams.root")
def test_transient_frames_of_others_are_not_on_a_root_s_stream(api: Api) -> None:
    root, aside = api.session(), api.session()
    with api.stream(f"{EVERYTHING}?root={root}") as frames:
        api.say(aside, "Hello")
        api.say(root, "Hello")
        assert {frame.data["session_id"] for frame in frames.until("turn.ended")} == {root}


@pytest.mark.behaviour("streams.root-leaf")
def test_a_leaf_as_root_gives_its_own_events(api: Api) -> None:
    root = api.session()
    leaf = api.session({"parent_session_id": root})
    with api.stream(f"{EVERYTHING}?root={leaf}") as frames:
        note(api, root, "above")
        note(api, leaf, "leaf")
        assert next_texts(frames, 1) == ["leaf"]


@pytest.mark.behaviour("streams.root-slot")
@pytest.mark.gobare(streams_per_organization=1)
def test_a_root_of_many_sessions_is_one_slot(api: Api) -> None:
    root = api.session()
    members = [api.session({"parent_session_id": root}) for _ in range(3)]
    with api.stream(f"{EVERYTHING}?root={root}") as frames:
        assert frames.stream.status == 200
        assert streams_open(api) == 1
        for member in members:
            note(api, member, "here")
        assert next_texts(frames, 3) == ["here"] * 3
        assert api.get(EVERYTHING).status == 429


@pytest.mark.behaviour("streams.root-unknown")
def test_an_unknown_root_is_as_foreign_as_a_foreign_one(api: Api) -> None:
    other = api.emulator.tokens.mint(organization="other").token
    foreign = api.session(token=other)
    unknown = "3f9c1b60-4e2a-4d18-9a77-6c0b2e5d81af"
    messages = []
    for session in (foreign, unknown):
        answer = api.get(f"{EVERYTHING}?root={session}")
        assert (answer.status, answer.code) == (404, "not_found")
        assert session in answer.message
        messages.append(answer.message.replace(session, "X"))
    assert messages[0] == messages[1]
    assert streams_open(api) == 0


# Ends


@pytest.mark.behaviour("streams.end-on-delete")
@pytest.mark.parametrize("cursor", ["", "?last_event_id=0"])
def test_a_session_s_stream_ends_with_it(api: Api, cursor: str) -> None:
    session = api.session()
    note(api, session, "one", "two")
    with api.stream(f"/v1/sessions/{session}/events{cursor}") as frames:
        note(api, session, "three")
        api.delete(f"/v1/sessions/{session}")
        left = []
        while (frame := frames.event()) is not None:
            left.append(frame.payload["text"])
    assert left == (["one", "two", "three"] if cursor else ["three"])


@pytest.mark.behaviour("streams.end-on-delete", "streams.organization-outlives")
def test_other_streams_go_on_when_a_session_is_deleted(api: Api) -> None:
    root, other = api.session(), api.session()
    child = api.session({"parent_session_id": root})
    with ExitStack() as stack:
        paths = [EVERYTHING, f"{EVERYTHING}?root={root}", f"/v1/sessions/{child}/events"]
        streams = [opened(api, stack, path, 1)[0] for path in paths]
        api.delete(f"/v1/sessions/{other}")
        note(api, root, "root")
        note(api, child, "child")
        assert next_texts(streams[0], 2) == ["root", "child"]
        assert next_texts(streams[1], 2) == ["root", "child"]
        assert next_texts(streams[2], 1) == ["child"]


@pytest.mark.behaviour("streams.end-on-delete")
def test_a_stream_ends_while_its_turn_is_parked(api: Api) -> None:
    @api.emulator.agent
    async def agent(turn: Turn) -> None:
        await turn.ask("Sure?")

    session = api.session()
    with api.stream(f"/v1/sessions/{session}/events") as frames:
        api.say(session, "Go.")
        api.delete(f"/v1/sessions/{session}")
        seen = []
        while (frame := frames.event()) is not None:
            seen.append(frame.type)
    assert seen == ["user.message", "sandbox.created", "turn.started", "question.asked"]


@pytest.mark.behaviour("streams.too-slow", "streams.slot-freed")
def test_a_stream_nobody_reads_breaks_off_past_8_mib(gobare: Emulator) -> None:
    label = "x" * (1 << 20)

    @gobare.agent
    async def agent(turn: Turn) -> None:
        for _ in range(40):
            await turn.todos([{"label": label, "status": "done"}])
            await asyncio.sleep(0)

    api = Api(gobare)
    session = api.session()
    with api.stream(f"/v1/sessions/{session}/events") as unread:
        api.say(session, "Go.")
        until(lambda: streams_open(api) == 0, "the slot is free")
        with pytest.raises((http.client.IncompleteRead, ConnectionError)):
            unread.until("turn.ended")
    seen = [frame.type for frame in unread.seen if frame.type is not None]
    assert seen[:3] == ["user.message", "sandbox.created", "turn.started"]
    assert "turn.ended" not in seen
    assert len(api.events(session)) == 44
