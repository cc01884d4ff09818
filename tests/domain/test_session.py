"""A session: what each command does in each state, and that one which is not allowed changes nothing."""

from __future__ import annotations

import json
from copy import deepcopy
from itertools import count
from typing import TYPE_CHECKING, Any, Final, Literal

import pytest

from emulator.domain import files, transitions
from emulator.domain.action import Action
from emulator.domain.event_log import EventLog
from emulator.domain.files import Blob
from emulator.domain.session import Agent, Session, Turn
from emulator.domain.transitions import IllegalTransition
from emulator.domain.workspace import Preview, Workspace
from emulator.ids import Ids

if TYPE_CHECKING:
    from collections.abc import Callable

    from emulator.domain.transitions import SessionStatus, WorkspaceState

    Command = Callable[[Session], object]

STATUSES: Final[tuple[SessionStatus, ...]] = ("idle", "working", "requires_action", "failed")


class PlainCodec:
    """Frames that are JSON and nothing else."""

    def encode(
        self, event_type: str, session_id: str, seq: int | None, created_at: int, payload: dict[str, Any]
    ) -> bytes:
        return json.dumps(payload).encode()

    def payload(self, frame: bytes) -> dict[str, Any]:
        return dict(json.loads(frame))


def fresh(repo: str | None = None) -> Session:
    """A session of its own, on a clock that moves a millisecond an event, from 1000."""
    stamps = count(1001)
    log = EventLog(PlainCodec(), lambda: next(stamps))
    agent = Agent(model="MiniMax-M3", model_credential_id=None)
    return Session("s", log=log, ids=Ids(0), now=1000, agent=agent, repo=repo)


def opened(session: Session, text: str = "Go.") -> Turn:
    """A turn that has begun."""
    turn = session.open_turn(text, 1000)
    session.start(turn)
    return turn


def asked(session: Session, kind: Literal["function_call", "approval", "question"] = "question") -> Action:
    """The current turn, parked on one more thing."""
    assert session.current is not None
    return session.ask(session.current, kind, "Sure?", {}, ("question.asked", {"question": "Sure?"}))


def in_status(status: SessionStatus) -> Session:
    """A session that got into a status by the commands that lead there."""
    session = fresh()
    if status != "idle":
        turn = opened(session)
        if status == "requires_action":
            asked(session)
        elif status == "failed":
            session.settle(turn, "fail")
    assert session.status == status
    return session


def said(session: Session) -> list[tuple[str, dict[str, Any]]]:
    """What the log has of a session."""
    return [(event.type, session.log.payload(event)) for event in session.log.of(session.id)]


def picture(session: Session) -> dict[str, Any]:
    """Everything about a session that a command could change."""
    parts = {name: value for name, value in vars(session).items() if name not in ("log", "ids", "agent")}
    return deepcopy({**parts, "said": said(session), "last_seq": session.log.last_seq})


def stray(session: Session) -> Turn:
    """A turn the session never opened."""
    return Turn("turn_stray", session.id, 9, "?", 1000)


# The session's table, through the commands that move along it

COMMANDS: Final[dict[str, Command]] = {
    "open": lambda session: session.open_turn("More.", 2000),
    "ask": lambda session: session.ask(
        session.current or stray(session), "question", "Why?", {}, ("question.asked", {"question": "Why?"})
    ),
    "complete": lambda session: session.settle(stray(session), "complete"),
    "cancel": lambda session: session.settle(stray(session), "cancel"),
    "fail": lambda session: session.cannot_start("It is down."),
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("status", STATUSES)
def test_a_command_moves_the_status_along_the_table_or_changes_nothing(status: SessionStatus, command: str) -> None:
    session = in_status(status)
    before = picture(session)
    after = transitions.SESSION.get((status, command))
    if after is None:
        with pytest.raises(IllegalTransition):
            COMMANDS[command](session)
        assert picture(session) == before
    else:
        COMMANDS[command](session)
        assert session.status == after
        assert session.log.last_seq > before["last_seq"]


@pytest.mark.parametrize("command", ["complete", "fail", "cancel"])
@pytest.mark.parametrize("ending", ["complete", "fail", "cancel"])
def test_a_settled_turn_takes_no_command(
    ending: Literal["complete", "fail", "cancel"], command: Literal["complete", "fail", "cancel"]
) -> None:
    session = fresh()
    turn = opened(session)
    session.settle(turn, ending)
    refused: list[Command] = [
        lambda session: session.settle(turn, command),
        lambda session: session.start(turn),
        lambda session: session.ask(turn, "question", "Why?", {}, ("question.asked", {})),
    ]
    before = picture(session)
    for attempt in refused:
        with pytest.raises(IllegalTransition):
            attempt(session)
        assert picture(session) == before


def test_a_turn_begins_once() -> None:
    session = fresh()
    turn = opened(session)
    before = picture(session)
    with pytest.raises(IllegalTransition, match="begins once"):
        session.start(turn)
    assert picture(session) == before


def test_an_action_closes_once() -> None:
    session = in_status("requires_action")
    (action,) = session.required_actions()
    session.close_action(action, "answered", ("question.answered", {"answer": "yes"}))
    before = picture(session)
    with pytest.raises(IllegalTransition, match="closes once"):
        session.close_action(action, "expired", ("tool.resolved", {}))
    assert picture(session) == before


def test_a_turn_is_published_once_and_not_before_it_has_settled() -> None:
    session = fresh()
    turn = opened(session)
    for settled in (False, True):
        if settled:
            session.settle(turn, "complete")
            session.publish(turn)
        before = picture(session)
        with pytest.raises(IllegalTransition, match="published once"):
            session.publish(turn)
        assert picture(session) == before


# The workspace

PATHS: Final[dict[WorkspaceState, list[str]]] = {
    "unknown": [],
    "running": ["start"],
    "paused": ["start", "pause"],
    "destroyed": ["start", "reclaim"],
    "recovering": ["start", "reclaim", "recover"],
    "recovery_failed": ["start", "reclaim", "recover", "give_up"],
}
SHOWN: Final = {
    "start": ("sandbox.created", {"state": "running"}),
    "pause": ("sandbox.paused", {"state": "paused"}),
    "resume": ("sandbox.resumed", {"state": "running"}),
    "give_up": ("workspace.recovery_failed", {"message": "no snapshot was available for this workspace"}),
}


@pytest.mark.parametrize("command", ["start", "pause", "resume", "reclaim", "recover", "give_up"])
@pytest.mark.parametrize("state", PATHS)
def test_a_workspace_moves_along_its_table_and_shows_what_a_client_sees(state: WorkspaceState, command: str) -> None:
    session = fresh()
    for way in PATHS[state]:
        session.workspace_step(way)
    assert session.workspace.state == state
    before = picture(session)
    after = transitions.WORKSPACE.get((state, command))
    if after is None:
        with pytest.raises(IllegalTransition):
            session.workspace_step(command)
        assert picture(session) == before
    else:
        session.workspace_step(command)
        assert session.workspace.state == after
        assert said(session)[len(before["said"]) :] == ([SHOWN[command]] if command in SHOWN else [])


def test_a_reclaimed_workspace_has_lost_what_was_in_it() -> None:
    session = fresh()
    session.workspace_step("start")
    session.workspace.servers_started = True
    session.workspace.tools = session.agent.tools
    session.workspace.files.write("a.txt", Blob.of(b"x"))
    session.preview.url, session.preview.port = "http://127.0.0.1:1", 3000
    session.workspace_step("reclaim")
    assert session.workspace == Workspace(state="destroyed")
    assert session.preview == Preview()


def test_a_repository_is_on_its_branch_once_it_was_cloned_and_has_files_or_says_why_not() -> None:
    workspace = fresh(repo="acme/app").workspace
    assert workspace.repo == {"full_name": "acme/app", "branch": None, "clone_error": None}
    workspace.cloned("trunk", None, {"README.md": "# App"})
    assert workspace.repo == {"full_name": "acme/app", "branch": "trunk", "clone_error": None}
    assert list(workspace.files.all()) == ["/workspace/README.md"]
    broken = fresh(repo="acme/app").workspace
    broken.cloned("main", "Repository not found", {"README.md": "# App"})
    assert broken.repo == {"full_name": "acme/app", "branch": None, "clone_error": "Repository not found"}
    broken.cloned("main", None, {"a": "1", "a/b": "2"})
    assert broken.repo is not None
    assert str(broken.repo["clone_error"]).startswith("a/b cannot be checked out: ")
    assert broken.files.all() == {}
    fresh().workspace.cloned("main", None, {})


# Turns and the queue


def test_messages_behind_a_turn_wait_in_order() -> None:
    session = fresh()
    first = opened(session, "one")
    second, third = session.open_turn("two", 1000), session.open_turn("three", 1000)
    assert (session.current, list(session.queue)) == (first, [second, third])
    assert [turn.number for turn in session.turns] == [1, 2, 3]
    assert said(session)[-2:] == [
        ("message.queued", {"text": "two", "position": 1}),
        ("message.queued", {"text": "three", "position": 2}),
    ]
    session.settle(first, "complete")
    assert session.busy
    assert session.dequeue() is second
    assert (session.current, session.status) == (second, "working")
    assert said(session)[-2:] == [("message.dequeued", {"text": "two"}), ("user.message", {"text": "two"})]


def test_nothing_is_dequeued_while_a_turn_runs_or_when_nothing_waits() -> None:
    session = fresh()
    assert session.dequeue() is None
    opened(session)
    session.open_turn("two", 1000)
    before = picture(session)
    assert session.dequeue() is None
    assert picture(session) == before


def test_a_turn_is_found_by_its_id() -> None:
    session = fresh()
    turn = opened(session)
    assert session.turn(turn.id) is turn
    assert session.turn("turn_other") is None


def test_a_turn_keeps_the_times_of_its_events() -> None:
    session = fresh()
    turn = opened(session)
    session.settle(turn, "complete")
    assert (turn.created_at, turn.started_at, turn.completed_at) == (1000, 1002, 1003)
    assert session.updated_at == 1003
    session.touch(900)
    assert session.updated_at == 1003


def test_a_failed_turn_says_why_and_from_where() -> None:
    session = fresh()
    turn = opened(session)
    error = {"code": "provider_error", "message": "502"}
    session.settle(turn, "fail", error, origin="sandbox")
    assert turn.error == error
    assert said(session)[-2:] == [
        ("agent.error", {"message": "502", "origin": "sandbox"}),
        ("turn.ended", {"turnId": turn.id}),
    ]


# Actions


def test_a_session_waits_until_the_last_action_is_closed() -> None:
    session = fresh()
    opened(session)
    first, second = asked(session), asked(session)
    assert session.required_actions() == [first, second]
    session.close_action(first, "answered", ("question.answered", {"answer": "yes"}))
    assert (session.status, session.required_actions()) == ("requires_action", [second])
    assert said(session)[-1] == ("question.answered", {"toolCallId": first.call_id, "answer": "yes"})
    session.close_action(second, "lost", None)
    assert (session.status, session.required_actions()) == ("working", [])
    assert said(session)[-1] == ("question.answered", {"toolCallId": first.call_id, "answer": "yes"})


def test_an_action_is_in_place_when_its_event_is_seen() -> None:
    seen: list[tuple[str, int]] = []

    class Watching(PlainCodec):
        def encode(self, *event: Any) -> bytes:
            seen.append((session.status, len(session.actions)))
            return super().encode(*event)

    session = fresh()
    opened(session)
    session.log = EventLog(Watching(), lambda: 2000)
    asked(session)
    assert seen == [("requires_action", 1)]


def test_the_deadline_of_an_action_counts_from_its_event() -> None:
    session = fresh()
    turn = opened(session)
    event = ("tool.required", {"name": "f"})
    action = session.ask(turn, "function_call", "f", {}, event, timeout_seconds=30)
    assert (action.created_at, action.expires_at) == (1003, 31_003)
    assert session.ask(turn, "function_call", "f", {}, event).expires_at is None


def test_calls_are_numbered_by_the_session() -> None:
    session = fresh()
    ids = [session.next_call_id() for _ in range(50)]
    assert len(set(ids)) == 50
    assert all(call_id.startswith("call_") and len(call_id) == len("call_") + 8 for call_id in ids)
    assert fresh().next_call_id() == ids[0]


@pytest.mark.parametrize("command", ["complete", "fail", "cancel"])
def test_what_a_settled_turn_waited_for_is_dropped_and_an_approval_refused(
    command: Literal["complete", "fail", "cancel"],
) -> None:
    session = fresh()
    turn = opened(session)
    question, approval = asked(session), asked(session, "approval")
    session.settle(turn, command)
    assert (question.state, approval.state) == ("dropped", "dropped")
    assert session.status == ("failed" if command == "fail" else "idle")
    resolved, ended = said(session)[-2:]
    assert (resolved[0], ended[0]) == ("approval.resolved", "turn.ended")
    denial = {name: resolved[1][name] for name in ("toolCallId", "approved", "name", "code")}
    assert denial == {"toolCallId": approval.call_id, "approved": False, "name": "Sure?", "code": "aborted"}


# Context and files


def test_context_behind_a_turn_lands_after_it() -> None:
    session = fresh()
    assert session.add_context("before") is False
    turn = opened(session)
    session.workspace_step("start")
    assert session.add_context("during") is True
    session.settle(turn, "complete")
    told = [(kind, payload.get("text")) for kind, payload in said(session)]
    assert told == [
        ("user.context", "before"),
        ("user.message", "Go."),
        ("turn.started", None),
        ("sandbox.created", None),
        ("turn.ended", None),
        ("user.context", "during"),
    ]
    assert session.deferred_context == []


def test_what_a_turn_left_is_published_after_it_settles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "ARTIFACT_BYTES", 5)
    session = fresh()
    states = []
    for n, content in enumerate((b"1", b"22", b"too large")):
        turn = opened(session)
        session.workspace.files.write(f"outputs/{n}.md", Blob.of(content))
        states.append(turn.artifacts)
        session.settle(turn, "complete")
        states.append(turn.artifacts)
        session.publish(turn)
        states.append(turn.artifacts)
    assert states == [None, "pending", "ready", None, "pending", "ready", None, "pending", "partial"]
    assert [(a.path, a.content.data, a.content_type) for a in session.artifacts] == [
        ("/workspace/outputs/0.md", b"1", "text/markdown"),
        ("/workspace/outputs/1.md", b"22", "text/markdown"),
    ]
    assert len({artifact.id for artifact in session.artifacts}) == 2
    created = [payload for kind, payload in said(session) if kind == "artifact.created"]
    assert [payload["id"] for payload in created] == [artifact.id for artifact in session.artifacts]
    assert session.turns[-1].artifacts_skipped == [{"path": "outputs/2.md", "reason": "larger than 5 bytes"}]
    assert session.turns[0].leaving == []


def test_a_session_keeps_a_metadata_object_of_its_own() -> None:
    given = {"tenant": "acme"}
    log = EventLog(PlainCodec(), lambda: 0)
    agent = Agent(model=None, model_credential_id=None)
    session = Session("s", log=log, ids=Ids(0), now=0, agent=agent, metadata=given)
    given["tenant"] = "other"
    assert session.metadata == {"tenant": "acme"}
