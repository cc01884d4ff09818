"""What a transport notices about its server: why it cannot be reached, in the words a client is told (contract §5).

Law: a reason is made from what happened and never from what the server or the system said: that may have a
secret in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

NO_START: Final = "the command could not be started"
NO_PROCESSES: Final = "this emulator is not allowed to start processes (set allow_processes)"


@dataclass(slots=True)
class Noticed:
    """The reason of the moment; `None` while all is well."""

    reason: str | None = None


def did_not_answer(seconds: float) -> str:
    """The reason of a server that took longer than that."""
    return f"the server did not answer within {seconds:g}s"


def ended(status: int) -> str:
    """The reason of a command that ended, by its exit status; minus the number of the signal that ended it."""
    return f"the command ended with status {status}" if status >= 0 else f"the command was ended by signal {-status}"
