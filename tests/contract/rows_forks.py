"""Forks: sessions that begin where another one is (contract §6)."""

from __future__ import annotations

from typing import Final

from tests.contract.manifest import Row

_SOURCE: Final = "contract §6"

ROWS: Final = (
    Row("forks.answer", _SOURCE, "A fork answers 201 with the new session, forked_from and workspace_copied."),
    Row("forks.parent", _SOURCE, "A fork's parent is what it was forked from, which stands in forked_from as well."),
    Row("forks.untouched", _SOURCE, "The source is left as it was, whatever happens in the fork."),
    Row(
        "forks.transcript",
        _SOURCE,
        "The fork's items begin with the source's, under ids and a session_id of its own, and go on from there.",
    ),
    Row("forks.transcript-stays", _SOURCE, "A fork keeps its transcript when the source is deleted."),
    Row(
        "forks.events",
        _SOURCE,
        "The fork's event stream begins with the fork: nothing of the source is replayed on it.",
        "The sources say that the transcript comes along, which is the items. Events tell what happened in a session, "
        "and each has one place in the organization's sequence.",
    ),
    Row("forks.workspace", _SOURCE, "The fork's workspace begins with a copy of the source's files."),
    Row(
        "forks.snapshot",
        _SOURCE,
        "The copy can be read at once, as the snapshot it is.",
        "The sources do not say whether a fork has a snapshot; a copied workspace was archived to be copied.",
    ),
    Row(
        "forks.of-a-fork",
        _SOURCE,
        "A fork that never started has its copy to pass on.",
        "The sources do not say; a fork starts where the original is, and there the original has these files.",
    ),
    Row(
        "forks.workspace-none",
        _SOURCE,
        "A fork of a session whose workspace never came up, or was reclaimed, has workspace_copied false.",
        "The sources say that a fork without its workspace exists, not when: there is nothing to copy.",
    ),
    Row(
        "forks.workspace-failed",
        _SOURCE,
        "A workspace that could not be copied gives a fork all the same, with workspace_copied false.",
        "Scripted by the setting workspace_copy, as nothing else makes it fail.",
    ),
    Row(
        "forks.paused",
        _SOURCE,
        "A paused session is forked without being woken.",
        "The sources do not say; what is on disk is there to be copied.",
    ),
    Row(
        "forks.state",
        _SOURCE,
        "The fork's own workspace starts with its first message; until then its state is unknown.",
        "The sources do not say; unknown is the state of a session that was just created.",
    ),
    Row(
        "forks.repo",
        _SOURCE,
        "The repository comes along with its branch; what was copied is not cloned again, until it is rebuilt.",
        "The sources do not say; the checkout is part of the workspace that was copied.",
    ),
    Row(
        "forks.seeds",
        _SOURCE,
        "Seeded files belong to the fork as well: they never overwrite what was copied, and come back after a rebuild.",
        "The sources do not say; they are part of how a session was defined.",
    ),
    Row(
        "forks.agent",
        _SOURCE,
        "The fork has the source's agent: connection, instructions, mode, rules, tools and text.",
        "The sources do not say; where the original is includes what runs in it.",
    ),
    Row("forks.secrets", _SOURCE, "The tools' secrets come along and are shown no more than the source shows them."),
    Row(
        "forks.labels",
        _SOURCE,
        "Title and metadata come along.",
        "The sources do not say; both can be changed with PATCH.",
    ),
    Row(
        "forks.left-behind",
        _SOURCE,
        "Turns, artifacts, the preview and its address stay with the source; the fork reads idle, whatever that reads.",
        "The sources name the workspace and the transcript as what is copied.",
    ),
    Row("forks.token", _SOURCE, "The fork was created by the token that forked, over the API."),
    Row("forks.slot", _SOURCE, "A fork takes a slot, and past the last one it is refused with project_limit_exceeded."),
    Row("forks.mid-turn", _SOURCE, "A session in the middle of a turn, waiting or not, is refused with conflict."),
    Row("forks.queued", _SOURCE, "A session with queued messages is refused with conflict, which says so."),
    Row("forks.afterwards", _SOURCE, "Once the work in flight has finished, the fork is made."),
    Row("forks.again", _SOURCE, "A fork can be forked; its tree is the source's."),
    Row(
        "forks.rate",
        "contract §13",
        "A fork is charged to the general bucket.",
        "The limits page names POST /v1/sessions alone for the other one.",
    ),
    Row(
        "forks.script-state",
        _SOURCE,
        "What a script keeps for its session is copied as well, and turns are numbered from 1.",
        "Ours alone: scripts are no part of the API.",
    ),
)
