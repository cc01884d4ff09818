"""Forks: a new session that begins where another one is (contract §6).

Law: the source is only read. What a fork begins with is its own from then on.
"""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any

from emulator.refusals import Refusal

if TYPE_CHECKING:
    from emulator.domain.session import Session
    from emulator.domain.world import Organization
    from emulator.runtime.engine import Engine


def fork(
    engine: Engine, organization: Organization, source: Session, *, token_id: str, request_id: str
) -> tuple[Session, bool]:
    """A fork of a session, and whether its workspace came along.

    Raises 409 `conflict` while a turn is open or queued and 429 `project_limit_exceeded` past the last slot.
    """
    if source.queue or not engine.finished(source):
        waiting = "has messages queued" if source.queue else "is in the middle of a turn"
        raise Refusal(
            "conflict", f"This session {waiting}. Fork it when the work in flight has finished, or cancel that."
        )
    settings = engine.world.settings
    organization.check_room(settings.session_limit)
    copied = source.workspace.can_be_copied and settings.workspace_copy == "works"
    made = source.fork(
        organization.next_session_id(),
        now=engine.world.now(),
        inherited=organization.transcript(source).events(),
        workspace_copied=copied,
        created_by_token=token_id,
        request_id=request_id,
    )
    engine.states[made.id] = _copy(engine.states.get(source.id, {}))
    engine.create(organization, made)
    return made, copied


def _copy(state: dict[str, Any]) -> dict[str, Any]:
    """What a script has kept for its session; what cannot be copied is shared."""
    copy: dict[str, Any] = {}
    for key, value in state.items():
        try:
            copy[key] = deepcopy(value)
        except Exception:
            # A script may keep anything there: a lock, a client, an open file.
            copy[key] = value
    return copy
