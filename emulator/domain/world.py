"""The world: everything one emulator knows. A reset is a new one.

Law: nothing outlives it and nothing is shared between two. It holds state and finds things in it;
what changes a session is in `session`.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

from emulator.domain.access import DEFAULT_ORGANIZATION, DEFAULT_SCOPES, Access, Token
from emulator.domain.catalogue import Agents, Profiles
from emulator.domain.connections import Connections
from emulator.domain.event_log import Codec, EventLog
from emulator.domain.idempotency import Keys
from emulator.domain.index import Index
from emulator.domain.limits import GENERAL_PER_MINUTE, SESSIONS_PER_MINUTE, TREE_DEPTH, Budget
from emulator.domain.previews import Addresses
from emulator.domain.transcript import Transcript
from emulator.domain.webhooks import Webhooks
from emulator.ids import Ids
from emulator.refusals import Refusal, not_found

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from emulator.domain.artifacts import Artifact
    from emulator.domain.index import Label
    from emulator.domain.session import Session
    from emulator.settings import Settings


class Organization:
    """One customer: its sessions, its event log, its connections, agents and profiles."""

    def __init__(
        self, organization_id: str, ids: Ids, codec: Codec, stamp: Callable[[], int], settings: Settings
    ) -> None:
        self.id = organization_id
        self.ids = ids
        self.log = EventLog(codec, stamp)
        self.sessions: list[Session] = []
        self.webhooks = Webhooks(organization_id, ids)
        self.connections = Connections(organization_id, ids, settings.connections)
        self.agents = Agents(organization_id, ids)
        self.profiles = Profiles(organization_id, ids, settings.profiles)
        self._by_id: dict[str, Session] = {}
        self._by_number: dict[int, Session] = {}
        self._numbers: list[int] = []
        self._number_of: dict[str, int] = {}
        self._index = Index()
        self._transcripts: dict[str, Transcript] = {}
        self._outlived: dict[str, list[Artifact]] = {}
        self._created = 0

    def next_session_id(self) -> str:
        """The id the next session gets."""
        self._created += 1
        return self.ids.session(self.id, self._created)

    def add(self, session: Session) -> None:
        """Keep a new session."""
        self._by_id[session.id] = session
        self._by_number[self._created] = session
        self._number_of[session.id] = self._created
        self._numbers.append(self._created)
        self.sessions.append(session)
        session.moved = self.relabel
        self.relabel(session)

    def relabel(self, session: Session) -> None:
        """Take note of what a session can be found by now."""
        self._index.put(self._number_of[session.id], session.labels())

    def remove(self, session: Session) -> None:
        """Forget a session and everything that happened in it."""
        number = self._number_of.pop(session.id, None)
        if number is None:
            return
        session.deleted = True
        session.moved = None
        place = bisect_left(self._numbers, number)
        del self.sessions[place], self._numbers[place]
        del self._by_id[session.id], self._by_number[number]
        self._index.remove(number)
        self._transcripts.pop(session.id, None)
        self.log.forget(session.id)

    @property
    def newest(self) -> int:
        """The number of the session that was created last of those that are there, 0 where there is none."""
        return self._numbers[-1] if self._numbers else 0

    def since(self, number: int) -> list[Session]:
        """The sessions created after the one of that number, oldest first."""
        return [self._by_number[later] for later in self._numbers[bisect_right(self._numbers, number) :]]

    def keep_artifacts(self, session: Session) -> None:
        """Keep what a deleted session published, until each is deleted itself (contract §6)."""
        if session.artifacts:
            self._outlived[session.id] = session.artifacts

    def artifact(self, session_id: str, artifact_id: str) -> Artifact:
        """An artifact by its session, which may be deleted, and its id. Raises 404."""
        artifacts = self._outlived.get(session_id)
        if artifacts is None:
            artifacts = self.session(session_id).artifacts
        found = next((artifact for artifact in artifacts if artifact.id == artifact_id), None)
        if found is None:
            raise not_found(f"No artifact {artifact_id!r} in this session.")
        return found

    def delete_artifact(self, artifact: Artifact) -> None:
        """Forget an artifact and what is in it."""
        outlived = self._outlived.get(artifact.session_id)
        if outlived is None:
            self.session(artifact.session_id).artifacts.remove(artifact)
            return
        outlived.remove(artifact)
        if not outlived:
            del self._outlived[artifact.session_id]

    def numbered(self, number: int) -> Session:
        """The session of a number, as `among` gives them."""
        return self._by_number[number]

    def number(self, session_id: str) -> int | None:
        """The number of a session, or `None` where there is no such session."""
        return self._number_of.get(session_id)

    def among(self, labels: Sequence[Label], root: str | None = None) -> Sequence[int]:
        """The numbers of the sessions that have every label and stand below `root`, oldest first.

        Reads no more than the rarest of them has. Raises 404 for a `root` that is not there.
        """
        candidates = [self._index.numbers(label) for label in labels]
        if root is not None:
            candidates.append(self._tree(root))
        if not candidates:
            return self._numbers
        rarest = min(candidates, key=len)
        if len(candidates) == 1:
            return rarest
        members = set(candidates[-1]) if root is not None else None
        return [
            number
            for number in rarest
            if all(self._index.has(number, label) for label in labels) and (members is None or number in members)
        ]

    def tree(self, root: str) -> list[Session]:
        """A session and everything below it, at most 16 levels, oldest first (contract §6). Raises 404."""
        return [self._by_number[number] for number in self._tree(root)]

    def _tree(self, root: str) -> list[int]:
        self.session(root)
        found: list[int] = []
        level = [root]
        for _ in range(TREE_DEPTH):
            numbers = [self._number_of[session_id] for session_id in level]
            found += numbers
            level = [
                self._by_number[number].id
                for session_id in level
                for number in self._index.numbers(("parent", session_id))
            ]
            if not level:
                break
        return sorted(found)

    def find(self, session_id: str) -> Session | None:
        return self._by_id.get(session_id)

    def session(self, session_id: str) -> Session:
        """The session of that id. Raises 404 in the same words whether it never was or is another's."""
        session = self._by_id.get(session_id)
        if session is None:
            raise not_found(f"No session {session_id!r}.")
        return session

    def transcript(self, session: Session) -> Transcript:
        """The reader of a session's items."""
        transcript = self._transcripts.get(session.id)
        if transcript is None:
            transcript = self._transcripts[session.id] = Transcript(session.id, self.log, self.ids, session.inherited)
        return transcript

    def in_tree(self, session_id: str, root: str) -> bool:
        """Whether a session is `root` or below it, at most 16 levels down (contract §6)."""
        for _ in range(TREE_DEPTH):
            if session_id == root:
                return True
            session = self._by_id.get(session_id)
            if session is None or session.parent_session_id is None:
                return False
            session_id = session.parent_session_id
        return False

    def check_room(self, limit: int) -> None:
        """Raise 429 `project_limit_exceeded` when another session would be one too many."""
        if len(self.sessions) >= limit:
            raise Refusal(
                "project_limit_exceeded",
                f"This organization has {len(self.sessions)} sessions, and {limit} is the most it may have. "
                "Delete one with DELETE /v1/sessions/{session_id}; waiting does not free any.",
            )


class World:
    """The state behind one emulator. `now` and `stamp` are its clock's."""

    def __init__(self, settings: Settings, codec: Codec, now: Callable[[], int], stamp: Callable[[], int]) -> None:
        self.settings = settings
        self.now = now
        self.ids = Ids(settings.seed)
        self.access = Access()
        self.keys = Keys()
        self.addresses = Addresses()
        # Where this emulator is reached, for the addresses it gives out.
        self.url = ""
        self._codec = codec
        self._stamp = stamp
        self._organizations: dict[str, Organization] = {}
        self._budgets: dict[tuple[str, str], Budget] = {}
        self._minted = 0

    def organization(self, organization_id: str) -> Organization:
        """An organization, made when first named."""
        organization = self._organizations.get(organization_id)
        if organization is None:
            organization = Organization(organization_id, self.ids, self._codec, self._stamp, self.settings)
            self._organizations[organization_id] = organization
        return organization

    def organizations(self) -> list[Organization]:
        return list(self._organizations.values())

    def sessions(self) -> Iterable[Session]:
        """Every session of every organization."""
        for organization in self._organizations.values():
            yield from organization.sessions

    def find_session(self, session_id: str) -> tuple[Organization, Session] | None:
        """A session and its organization, whoever's it is: for the control side only."""
        for organization in self._organizations.values():
            session = organization.find(session_id)
            if session is not None:
                return organization, session
        return None

    def mint(
        self,
        text: str | None = None,
        *,
        scopes: Iterable[str] = DEFAULT_SCOPES,
        organization: str = DEFAULT_ORGANIZATION,
        expires_in: float | None = None,
    ) -> tuple[str, Token]:
        """Make a token and give its text, once, with it. `expires_in` is in seconds of the clock."""
        self._minted += 1
        token_id = self.ids.derive("tok", organization, self._minted)
        if text is None:
            text = self.ids.derive("gbr_pat", organization, self._minted, length=32)
        expires_at = None if expires_in is None else self.now() + round(expires_in * 1000)
        token = Token(token_id, organization, frozenset(scopes), expires_at)
        self.access.add(text, token)
        return text, token

    def budget(self, token: Token, *, creates_session: bool) -> Budget:
        """What a token has left in the bucket this call uses."""
        resource, per_minute = ("sessions", SESSIONS_PER_MINUTE) if creates_session else ("general", GENERAL_PER_MINUTE)
        budget = self._budgets.get((token.id, resource))
        if budget is None:
            budget = self._budgets[token.id, resource] = Budget.full(resource, per_minute, self.now())
        return budget
