"""Session: a conversation with the agent, its turns and what it waits for.

Law: one funnel. Every change is a method here that first checks, then moves states through the
tables of `transitions`, then records what happened in the event log. A method that raises has
changed nothing. Times are handed in (`now`, Unix milliseconds), as are ids.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from emulator.domain import transitions
from emulator.domain.action import Action
from emulator.domain.artifacts import Artifact, content_type
from emulator.domain.files import Blob, UnusablePath, names
from emulator.domain.snapshots import capture
from emulator.domain.tools import ToolSet
from emulator.domain.transitions import IllegalTransition, step
from emulator.domain.workspace import Preview, Workspace

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from emulator.domain.action import ActionState, ActionType
    from emulator.domain.event_log import Event, EventLog
    from emulator.domain.index import Label
    from emulator.domain.snapshots import Snapshot
    from emulator.domain.transitions import SessionStatus, TurnStatus
    from emulator.ids import Ids


@dataclass(slots=True)
class Turn:
    """One run of the agent. `artifacts` is `None` until it has settled and never after (contract §8).

    `leaving` holds the files it left to be published, from settling to publication. `request_id` is that of
    the request its message came in.
    """

    id: str
    session_id: str
    number: int
    text: str
    created_at: int
    status: TurnStatus = "working"
    started_at: int | None = None
    completed_at: int | None = None
    artifacts: Literal["pending", "ready", "partial", "failed"] | None = None
    artifacts_skipped: list[dict[str, str]] = field(default_factory=list)
    error: dict[str, str] | None = None
    leaving: list[tuple[str, Blob]] = field(default_factory=list)
    request_id: str | None = None

    @property
    def settled(self) -> bool:
        return self.status != "working"


@dataclass(slots=True)
class Agent:
    """What runs in a session, and how freely."""

    model: str | None
    model_credential_id: str | None
    id: str | None = None
    instructions: str | None = None
    approval_mode: str = "auto"
    permission_rules: list[dict[str, Any]] = field(default_factory=list)
    tools: ToolSet = field(default_factory=ToolSet)


class Session:
    """One session. `log` is its organization's; `ids` gives every id below it."""

    def __init__(
        self,
        session_id: str,
        *,
        log: EventLog,
        ids: Ids,
        now: int,
        agent: Agent,
        title: str | None = None,
        metadata: dict[str, str] | None = None,
        source: str | None = "api",
        created_by_token: str | None = None,
        parent_session_id: str | None = None,
        repo: str | None = None,
        seeds: Sequence[tuple[str, Blob]] = (),
        profiles: Sequence[str] | None = None,
        request_id: str | None = None,
        inherited: Sequence[Event] = (),
    ) -> None:
        self.id = session_id
        # What a fork's transcript begins with. It is not on the log: none of it happened in the fork.
        self.inherited = inherited
        self.request_id = request_id
        self.log = log
        self.ids = ids
        self.agent = agent
        self.title = title
        self.metadata = dict(metadata or {})
        self.source = source
        self.created_by_token = created_by_token
        self.parent_session_id = parent_session_id
        self.forked_from: str | None = None
        self.created_at = now
        self.updated_at = now
        self._status: SessionStatus = "idle"
        # Called after every change of status: the organization keeps its sessions sorted by it.
        self.moved: Callable[[Session], None] | None = None
        self.workspace = Workspace(
            repo=None if repo is None else {"full_name": repo, "branch": None, "clone_error": None},
            seeds=seeds,
            profiles=profiles,
        )
        self.preview = Preview()
        self.turns: list[Turn] = []
        # The turn the agent is on or about to begin, parked or not.
        self.current: Turn | None = None
        self.queue: list[Turn] = []
        self.actions: dict[str, Action] = {}
        self.artifacts: list[Artifact] = []
        self.deferred_context: list[str] = []
        self.deleted = False
        # The seq of the error that a refused start left last.
        self.refused_start: int | None = None
        self._calls = 0
        self._artifacts_made = 0

    # What can be asked of it

    @property
    def status(self) -> SessionStatus:
        """What a client reads: `failed` is the last turn's outcome, not a dead session (contract §6)."""
        return self._status

    @status.setter
    def status(self, status: SessionStatus) -> None:
        if status != self._status:
            self._status = status
            if self.moved is not None:
                self.moved(self)

    def labels(self) -> list[Label]:
        """What lists of sessions can be narrowed to: each a field and its value."""
        labels: list[Label] = [("status", self._status)]
        if self.source is not None:
            labels.append(("source", self.source))
        if self.created_by_token is not None:
            labels.append(("created_by_token", self.created_by_token))
        if self.parent_session_id is not None:
            labels.append(("parent", self.parent_session_id))
        labels += [("metadata", key, value) for key, value in self.metadata.items()]
        return labels

    @property
    def busy(self) -> bool:
        """Whether a message sent now would wait behind a turn."""
        return self.current is not None or bool(self.queue)

    def required_actions(self) -> list[Action]:
        """What is waited for now, oldest first."""
        if self.status != "requires_action":
            return []
        return [action for action in self.actions.values() if action.state == "open"]

    def turn(self, turn_id: str) -> Turn | None:
        return next((turn for turn in self.turns if turn.id == turn_id), None)

    def next_call_id(self) -> str:
        """The id of the next tool call in this session."""
        self._calls += 1
        return self.ids.derive("call", self.id, self._calls, length=8)

    # Commands

    def fork(
        self,
        session_id: str,
        *,
        now: int,
        inherited: Sequence[Event],
        workspace_copied: bool,
        created_by_token: str | None,
        request_id: str | None = None,
    ) -> Session:
        """A new session that begins where this one is; this one is left as it was (contract §6).

        It has the same agent, tools with their secrets included, title and labels; its transcript begins with
        `inherited`. Turns, artifacts, the preview and what is waited for stay behind.
        """
        fork = Session(
            session_id,
            log=self.log,
            ids=self.ids,
            now=now,
            agent=replace(self.agent, permission_rules=[dict(rule) for rule in self.agent.permission_rules]),
            title=self.title,
            metadata=self.metadata,
            created_by_token=created_by_token,
            parent_session_id=self.id,
            request_id=request_id,
            inherited=inherited,
        )
        fork.forked_from = self.id
        fork.workspace = self.workspace.forked(copied=workspace_copied)
        if workspace_copied:
            fork.capture(now)
        return fork

    def touch(self, now: int) -> None:
        """Note that something about the session changed."""
        self.updated_at = max(self.updated_at, now)

    def record(self, event_type: str, payload: dict[str, Any]) -> Event:
        """Put an event on the log."""
        event = self.log.append(self.id, event_type, payload)
        self.touch(event.created_at)
        return event

    def workspace_step(self, command: str) -> None:
        """Move the workspace's state; what a client sees of it goes on the log."""
        workspace = self.workspace
        before, workspace.state = workspace.state, step(transitions.WORKSPACE, workspace.state, command)
        match command:
            case "start":
                self.record("sandbox.created", {"state": "running"})
            case "pause":
                self.capture(self.record("sandbox.paused", {"state": "paused"}).created_at)
            case "resume":
                self.record("sandbox.resumed", {"state": "running"})
            case "give_up":
                self.record("workspace.recovery_failed", {"message": "no snapshot was available for this workspace"})
            case "reclaim":
                if self.current is not None:
                    # It fails of this, and what it left is published all the same.
                    self._leave(self.current)
                workspace.servers_started = False
                workspace.tools = None
                workspace.files.clear()
                workspace.copied = False
                self.preview.url = self.preview.port = self.preview.body = None
            case _:
                assert (before, command) in transitions.WORKSPACE

    def seed(self, unwritable: Collection[str] = ()) -> None:
        """Write the seeded files into a workspace that was just built, over nothing that is there already.

        One that cannot be written, for what is in its way or because it is `unwritable`, leaves an error item.
        """
        files = self.workspace.files
        for path, content in self.workspace.seeds:
            try:
                absolute = files.place(path)
                if absolute in files:
                    continue
                if names(unwritable, absolute):
                    raise UnusablePath("permission denied")
                files.write(path, content)
            except UnusablePath as unusable:
                message = f"The file {path} could not be written to the workspace: {unusable}"
                self.record("agent.error", {"message": message, "origin": "sandbox"})

    def capture(self, now: int) -> Snapshot:
        """Take a snapshot of the workspace, which reads of its files are answered from."""
        self.workspace.snapshot = snapshot = capture(self.workspace.files, now)
        return snapshot

    def cannot_start(self, message: str) -> None:
        """Record that a run could not begin: no turn opens, the session reads `failed` (contract §5)."""
        self.status = step(transitions.SESSION, self.status, "fail")
        self.refused_start = self.record("agent.error", {"message": message, "origin": "sandbox"}).seq

    def open_turn(self, text: str, now: int, request_id: str | None = None) -> Turn:
        """Take a message. The turn begins later, by `start`; behind another it waits in the queue."""
        status = step(transitions.SESSION, self.status, "open")
        number = len(self.turns) + 1
        turn = Turn(self.ids.derive("turn", self.id, number), self.id, number, text, now, request_id=request_id)
        self.status = status
        self.turns.append(turn)
        if self.busy:
            self.queue.append(turn)
            self.record("message.queued", {"text": text, "position": len(self.queue)})
        else:
            self.current = turn
            self.record("user.message", {"text": text})
        return turn

    def dequeue(self) -> Turn | None:
        """The turn to begin now that nothing runs, its message put into the conversation."""
        if not self.queue or self.current is not None:
            return None
        turn = self.current = self.queue.pop(0)
        self.status = step(transitions.SESSION, self.status, "open")
        self.record("message.dequeued", {"text": turn.text})
        self.record("user.message", {"text": turn.text})
        return turn

    def start(self, turn: Turn) -> None:
        """Begin a turn."""
        if turn.started_at is not None or turn.settled:
            raise IllegalTransition("a turn begins once")
        turn.started_at = self.record("turn.started", {"turnId": turn.id}).created_at

    def ask(
        self,
        turn: Turn,
        action_type: ActionType,
        name: str,
        arguments: dict[str, Any],
        event: tuple[str, dict[str, Any]],
        *,
        timeout_seconds: int | None = None,
        lost: bool = False,
    ) -> Action:
        """Park the turn on something only the client can give. `event` is what the stream shows of it."""
        if turn.settled:
            raise IllegalTransition("a settled turn asks for nothing")
        status = step(transitions.SESSION, self.status, "ask")
        call_id = self.next_call_id()
        action = Action(action_type, turn.id, call_id, name, arguments, 0, lost=lost)
        # In place before the event: whoever reads the session on seeing it finds the action there.
        before, self.status = self.status, status
        self.actions[call_id] = action
        kind, payload = event
        try:
            action.created_at = self.record(kind, {"toolCallId": call_id, **payload}).created_at
        except Exception:
            self.status = before
            del self.actions[call_id]
            raise
        if timeout_seconds is not None:
            action.expires_at = action.created_at + timeout_seconds * 1000
        return action

    def close_action(self, action: Action, state: ActionState, event: tuple[str, dict[str, Any]] | None) -> None:
        """Stop waiting for an action. `event` is what the stream shows of it, if anything."""
        if action.state != "open":
            raise IllegalTransition("an action closes once")
        status = self.status
        action.state = action.outcome = state
        if not any(other.state == "open" for other in self.actions.values()):
            status = step(transitions.SESSION, self.status, "answered")
        self.status = status
        if event is not None:
            kind, payload = event
            action.closed_at = self.record(kind, {"toolCallId": action.call_id, **payload}).created_at

    def settle(
        self,
        turn: Turn,
        command: Literal["complete", "fail", "cancel"],
        error: dict[str, str] | None = None,
        *,
        origin: str | None = None,
    ) -> None:
        """End a turn for good. What it still waited for is dropped; `origin` says who failed it."""
        status = step(transitions.TURN, turn.status, command)
        for action in self.actions.values():
            if action.turn_id == turn.id and action.state == "withdrawn":
                action.state = "dropped"
            if action.turn_id == turn.id and action.state == "open":
                event = None
                if action.type == "approval":
                    reason = "The turn ended before anybody decided."
                    denial = {"approved": False, "name": action.name, "code": "aborted", "reason": reason}
                    event = ("approval.resolved", denial)
                self.close_action(action, "dropped", event)
        self.status = step(transitions.SESSION, self.status, command)
        if turn.started_at is None:
            # Readers of the stream pair the two: what ends has begun, also where it was stopped before that.
            self.start(turn)
        if self.queue:
            # The next one is about to begin: nobody may take the session for idle meanwhile.
            self.status = step(transitions.SESSION, self.status, "open")
        turn.status = status
        turn.error = error
        self.current = None
        turn.artifacts = "pending"
        self._leave(turn)
        if error is not None:
            self.record("agent.error", {"message": error["message"], **({"origin": origin} if origin else {})})
        turn.completed_at = self.record("turn.ended", {"turnId": turn.id}).created_at
        if self.workspace.state == "running":
            self.capture(turn.completed_at)
        for text in self.deferred_context:
            self.record("user.context", {"text": text})
        self.deferred_context.clear()

    def _leave(self, turn: Turn) -> None:
        """Put by what is to be published of a turn: it may lose its workspace before that."""
        leaving, skipped = self.workspace.files.take_unpublished()
        turn.leaving += leaving
        turn.artifacts_skipped += skipped

    def publish(self, turn: Turn, *, works: bool = True) -> None:
        """Publish what the turn left under /workspace/outputs (contract §10).

        Where it does not work, the files go out with the next turn that settles.
        """
        if turn.artifacts != "pending":
            raise IllegalTransition("a turn is published once")
        if not works:
            for path in (*(path for path, _ in turn.leaving), *(skip["path"] for skip in turn.artifacts_skipped)):
                self.workspace.files.unpublish(path)
            turn.leaving.clear()
            turn.artifacts_skipped.clear()
            turn.artifacts = "failed"
            return
        for path, content in turn.leaving:
            self._artifacts_made += 1
            artifact_id = self.ids.derive("art", self.id, self._artifacts_made)
            payload = {"id": artifact_id, "path": path, "size_bytes": content.size, "turn_id": turn.id}
            created_at = self.record("artifact.created", payload).created_at
            kept = Artifact(artifact_id, self.id, turn.id, path, content, content_type(path), created_at)
            self.artifacts.append(kept)
        turn.leaving.clear()
        turn.artifacts = "partial" if turn.artifacts_skipped else "ready"

    def empty(self) -> None:
        """Let go of the files of a deleted session now, not when nothing refers to it any more."""
        self.workspace.files.clear()
        self.workspace.seeds, self.workspace.snapshot = (), None
        self.artifacts = []
        for turn in self.turns:
            turn.leaving.clear()

    def add_context(self, text: str) -> bool:
        """Add context for the agent; behind a running turn it lands after it. Whether the sandbox is up."""
        if self.busy:
            self.deferred_context.append(text)
        else:
            self.record("user.context", {"text": text})
        return self.workspace.state == "running"
