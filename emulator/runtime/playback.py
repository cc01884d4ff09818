"""Playback: what a recording that is played strictly is told of the client's writes.

Law: it watches and changes nothing: a write that is not as it was recorded is answered all the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from emulator.domain.world import Organization


@dataclass(frozen=True, slots=True)
class Written:
    """A write that was answered. `path` is decoded; `body` is the JSON that was sent, `answer` what it was answered.

    `organization` is whose token was sent, `None` where there was none.
    """

    verb: str
    path: str
    values: dict[str, str]
    body: Any
    status: int
    answer: Any
    key: str | None
    request_id: str
    organization: Organization | None


class WriteCheck(Protocol):
    """Holds the client's writes against recorded ones."""

    def wrote(self, written: Written) -> None:
        """A write was answered."""

    def findings(self) -> list[dict[str, Any]]:
        """Every difference so far, and the writes that have not come; asking twice gives the same."""
