"""Crews: several sessions working on one thing, as a tree of ordinary sessions (contract §6)."""

from __future__ import annotations

from typing import Final

from tests.contract.manifest import Row

_SOURCE: Final = "contract §6"

ROWS: Final = (
    Row(
        "crews.tree",
        _SOURCE,
        "A crew is a tree of ordinary sessions: its list, its stream and its usage go by one root.",
    ),
    Row("crews.start-clean", _SOURCE, "A session created below another begins with nothing of it; a fork does."),
    Row("crews.slots", _SOURCE, "Each member takes a slot of its own."),
    Row(
        "crews.depth",
        _SOURCE,
        "The sixteenth level of a tree is in its list, its stream and its usage; the seventeenth is made, and in none.",
    ),
    Row(
        "crews.deleted-root",
        _SOURCE,
        "Once a root is deleted it is not found; its members go on and remember it.",
        "The sources say that the pointer is history and survives, not what root then answers: the session is gone.",
    ),
    Row(
        "crews.deleted-middle",
        _SOURCE,
        "What hangs below a deleted member is in no tree above it, and is a tree of its own.",
        "The sources do not say; a tree is walked through the sessions that are there.",
    ),
    Row(
        "crews.subagent",
        "contract §8",
        "subagent_id is null on every turn, whatever the crew.",
        "It is reserved for delegation, which no page offers.",
    ),
    Row(
        "crews.handoff",
        _SOURCE,
        "A call of one member is answered at once and its text sent to another, on one stream.",
    ),
)
