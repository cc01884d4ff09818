"""Workspace: the sandbox of a session, as far as a client can tell, and what is served from it.

Law: its state moves in the session's `workspace_step` alone; what is here changes no state and tells nobody.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from emulator.domain.files import Blob, Files, UnusablePath
from emulator.domain.usage import Meter

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from emulator.domain.snapshots import Snapshot
    from emulator.domain.tools import ToolSet
    from emulator.domain.transitions import WorkspaceState


@dataclass(slots=True)
class Workspace:
    """The sandbox of a session. `servers_started`: its MCP servers have been connected to.

    `copied`: it begins with another's files, so that there is nothing to clone. `seeds` are written whenever it
    is built; `snapshot` is how it was when it was last looked at. `profiles` are the ids of the environment profiles
    it is bound to; `None` is the default group.
    """

    state: WorkspaceState = "unknown"
    servers_started: bool = False
    tools: ToolSet | None = None
    files: Files = field(default_factory=Files)
    repo: dict[str, str | None] | None = None
    seeds: Sequence[tuple[str, Blob]] = ()
    snapshot: Snapshot | None = None
    meter: Meter = field(default_factory=Meter)
    copied: bool = False
    profiles: Sequence[str] | None = None

    @property
    def can_be_copied(self) -> bool:
        """Whether there is anything to copy: a workspace that never had files or is gone has nothing."""
        return self.copied or self.state in ("running", "paused")

    def forked(self, *, copied: bool) -> Workspace:
        """The workspace of a fork: not up yet, with these files or, not `copied`, with none."""
        repo = None if self.repo is None else dict(self.repo)
        if repo is not None and not copied:
            repo |= {"branch": None, "clone_error": None}
        files = self.files.copy() if copied else Files()
        fresh = replace(self, state="unknown", servers_started=False, tools=None, files=files, repo=repo)
        fresh.meter, fresh.copied, fresh.snapshot = Meter(), copied, None
        return fresh

    def cloned(self, branch: str, error: str | None, files: Mapping[str, str]) -> None:
        """Note what came of cloning the repository: what was checked out, or the reason why nothing was."""
        if self.repo is None:
            return
        checked_out = Files()
        if error is None:
            try:
                for path, text in files.items():
                    checked_out.write(path, Blob.of(text.encode()))
            except UnusablePath as unusable:
                error = f"{path} cannot be checked out: {unusable}"
        self.repo |= {"branch": branch if error is None else None, "clone_error": error}
        if error is None:
            self.files = checked_out


@dataclass(slots=True)
class Preview:
    """The addresses of what the agent serves. `body` is a text, or texts by path; `subdomain` is where it is public."""

    url: str | None = None
    port: int | None = None
    published_url: str | None = None
    body: str | Mapping[str, str] | None = None
    subdomain: str | None = None
