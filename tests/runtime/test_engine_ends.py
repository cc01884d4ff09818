"""What happens at the edges: resets, deletes and cancels while something is under way."""

from __future__ import annotations

import asyncio
import socket
import threading
from typing import TYPE_CHECKING, Any

from emulator import Emulator
from tests.support import WAIT, Api

if TYPE_CHECKING:
    from emulator.runtime.turn import Turn

FUNCTIONS = [{"type": "function", "name": name} for name in ("f", "g")]
TOOLS = {"agent": {"tools": FUNCTIONS}}


def test_a_task_that_dies_after_its_session_was_deleted_leaves_nothing_in_the_log() -> None:
    with Emulator() as gobare:
        api = Api(gobare)

        @gobare.agent
        async def agent(turn: Turn) -> None:
            async def background() -> None:
                try:
                    await turn.call("g")
                except asyncio.CancelledError:
                    raise ValueError("too late") from None

            task = asyncio.ensure_future(background())
            await turn.call("f")
            await task

        session = api.session({**TOOLS, "input": "Go."})
        assert len(api.actions(session)) == 2
        api.delete(f"/v1/sessions/{session}")
        gobare.clock.advance(400)
        assert gobare.events() == []


def test_a_reset_answers_a_request_that_waits_for_the_agent_at_once() -> None:
    with Emulator(rest_seconds=60) as gobare:
        api = Api(gobare)
        begun = threading.Event()

        @gobare.agent
        async def agent(turn: Turn) -> None:
            begun.set()
            await asyncio.sleep(WAIT * 6)

        session = api.session()
        statuses: list[int] = []
        sender = threading.Thread(target=lambda: statuses.append(api.say(session, "Go.").status))
        sender.start()
        assert begun.wait(WAIT)
        gobare.reset()
        sender.join(WAIT)
        assert statuses == [503]


def test_a_request_whose_body_arrives_after_a_reset_is_refused_and_starts_nothing() -> None:
    with Emulator() as gobare:
        body = b'{"input": "hello"}'
        host, port = gobare.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=WAIT) as connection:
            head = f"POST /v1/sessions HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {gobare.token}\r\n"
            connection.sendall(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body[:5])
            # A request on another connection is answered after the head above was taken up.
            Api(gobare).get("/v1/health")
            gobare.reset()
            connection.sendall(body[5:])
            answer = connection.recv(65536)
        assert answer.startswith(b"HTTP/1.1 503 ")
        assert b"sandbox_unavailable" in answer
        assert Api(gobare).get("/v1/sessions").json["data"] == []


def test_a_verb_the_agent_gave_up_is_no_longer_required(gobare: Emulator, api: Api) -> None:
    @gobare.agent
    async def agent(turn: Turn) -> None:
        for verb in (turn.ask("Which?"), turn.call("f"), turn.approve("bash")):
            task = asyncio.ensure_future(verb)
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
        await turn.call("g")

    session = api.session({**TOOLS, "input": "Go."})
    (left,) = api.actions(session)
    assert left["name"] == "g"
    events = api.events(session)
    given_up = {event["type"]: event["payload"]["toolCallId"] for event in events if "toolCallId" in event["payload"]}
    late = {"turn_id": left["turn_id"], "call_id": given_up["question.asked"]}
    question = {"type": "input.question_answer", "call_id": late["call_id"], "answer": "x"}
    assert api.send(session, question).json["outcome"] == "no_longer_pending"
    calls = [event["payload"]["toolCallId"] for event in events if event["type"] == "tool.required"]
    assert api.answer(session, {**late, "call_id": calls[0]}).json["outcome"] == "not_delivered"
    denied = next(event["payload"] for event in events if event["type"] == "approval.resolved")
    assert (denied["approved"], denied["code"]) == (False, "aborted")
    assert api.answer(session, left).json["outcome"] == "accepted"


def test_between_two_turns_a_session_works_and_can_be_cancelled(gobare: Emulator, api: Api) -> None:
    @gobare.agent
    async def agent(turn: Turn) -> None:
        await turn.call("f")

    session = api.session({**TOOLS, "input": "one"})
    api.say(session, "two")
    api.say(session, "three")
    engine = gobare.socket.deployment.engine

    async def cancel_twice() -> list[Any]:
        organization, found = gobare.socket.deployment.world.find_session(session) or (None, None)
        assert organization is not None
        assert found is not None
        seen = []
        for _ in range(2):
            engine.cancel(organization, found)
            seen.append(found.status)
        return seen

    assert gobare.run(cancel_twice()) == ["working", "working"]
    gobare.settle()
    assert [turn["status"] for turn in api.turns(session)] == ["cancelled", "cancelled", "working"]
    assert api.get(f"/v1/sessions/{session}").json["status"] == "requires_action"


def test_what_is_no_http_is_refused_in_the_words_of_the_api(gobare: Emulator) -> None:
    host, port = gobare.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=WAIT) as connection:
        connection.sendall(b"GET /v1/\xff HTTP/1.1\r\nhost: x\r\n\r\n")
        answer = connection.recv(65536)
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\n")
    assert b"x-request-id: " in head
    assert b'"code":"invalid_request"' in body


def test_an_agent_may_wait_for_the_clock_from_within_its_own_turn(gobare: Emulator, api: Api) -> None:
    gobare.settings.update(rest_seconds=30)

    @gobare.agent
    async def agent(turn: Turn) -> None:
        await turn.say(str(await gobare.aio.clock.advance(60)))

    started = gobare.clock.now()
    session = api.session({"input": "Go."})
    said = gobare.transcript(session).last_message
    assert said is not None
    assert int(said) >= started + 60_000
