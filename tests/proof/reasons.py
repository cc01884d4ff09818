"""What the suite cannot reach, and why. A reason for a cell that was reached is an error."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

# Patterns of cells (`*` stands for anything), each with the reason.
REASONS: Final[Mapping[str, str]] = {
    "*.source cli": "sessions are only made through the API here, never by the command line tool",
    "*.source console": "nor in a console",
    "*.source null": "nor before sources were told",
    "*.approval_mode null": "every session has a mode; the API's own document lets it be null",
    "SessionEnvironment.state recovering": "a workspace is built again in one step, which nobody can read in between",
    "Fork.status working": "a fork takes no message along, so nothing runs in it when it is told of",
    "Fork.status failed": "a fork has had no turn of its own, and so none that failed",
    "Fork.status requires_action": "nor one that waits",
    "action approval expired": "only calls have a deadline (contract §8)",
    "action question expired": "only calls have a deadline (contract §8)",
    "action approval lost": "only calls are held by the sandbox and can be lost",
    "action question lost": "only calls are held by the sandbox and can be lost",
}


def explained(cells: Iterable[str]) -> dict[str, str]:
    """Those of the cells that have a reason, with the pattern it is under."""
    return {cell: pattern for cell in cells for pattern in REASONS if fnmatchcase(cell, pattern)}


# What a request may have wrong with it that no JSON Schema can say: words of the refusal, each with the reason.
UNSAYABLE: Final[Mapping[str, str]] = {
    "must be an integer; a number was sent": "JSON Schema takes 1.0 for an integer; nothing is coerced here",
    "does not parse|must be an absolute https address": "a pattern of what an address is would be no better read",
    "must not have a user name or a password": "the same",
    "plain http is accepted": "which hosts are of this machine is a setting",
    "no model connection with id": "which there are is not known to the document",
    "selected connection runs": "what each connection runs is not known to it either",
    "is the most it may have": "how many there are is a state",
    "does not say which provider|Several providers issue keys": "it would have to hold every prefix of a key",
    "is required with `provider`": "which connectors have no model of their own is told by GET /v1/model-connectors",
    "says whether to add up a tree": "one parameter must be equal to another",
    "a name the platform reserves": "there are some, and which is not told",
    "which `.*` already is": "names are unique across entries of different kinds",
    "must name a file inside /workspace": "where a path leads is known once it is resolved",
    "send each file once": "paths are unique once they are resolved",
    "name two different agents": "one field must be equal to another",
}
