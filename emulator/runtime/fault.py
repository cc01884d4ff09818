"""Faults: what went wrong in a script, and where in it."""

from __future__ import annotations

import sys
import traceback
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from emulator.redaction import encodable, scrub

if TYPE_CHECKING:
    from types import FrameType

    from emulator.runtime.run import Run

_HERE: Final = str(Path(__file__).parent.parent)


@dataclass(slots=True)
class Fault:
    """A script error as the report and the test see it."""

    session_id: str
    turn_id: str
    request_id: str | None
    where: str
    message: str
    error: BaseException

    def as_json(self) -> dict[str, str | None]:
        return {
            "session_id": self.session_id,
            "turn_id": self.turn_id,
            "request_id": self.request_id,
            "where": self.where,
            "message": self.message,
        }


def fault_of(run: Run, error: BaseException) -> Fault:
    """The fault of a run that an error makes."""
    text = str(error)
    message = encodable(scrub(f"{type(error).__name__}: {text}" if text else type(error).__name__))
    return Fault(run.session.id, run.turn.id, run.turn.request_id, _where(error), message, error)


def script_place() -> str:
    """The place in a script that the running code was called from: `test_it.py:12 in agent`."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if code.co_filename.startswith(_library_folders()):
            break
        if not code.co_filename.startswith(_HERE):
            return f"{Path(code.co_filename).name}:{frame.f_lineno} in {code.co_name}"
        frame = frame.f_back
    # A task of its own: nobody called it.
    return "the agent"


@cache
def _library_folders() -> tuple[str, ...]:
    import sysconfig

    paths = sysconfig.get_paths()
    return (*{paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")}, "<frozen ")


def _where(error: BaseException) -> str:
    """The place in the script an error came from: the innermost frame that is neither ours nor a library's."""
    step = getattr(error, "step", None)
    if isinstance(step, str):
        return step
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not f.filename.startswith(_HERE)]
    own = [frame for frame in frames if not frame.filename.startswith(_library_folders())]
    if not (own or frames):
        return "the agent"
    frame = (own or frames)[-1]
    return f"{Path(frame.filename).name}:{frame.lineno} in {frame.name}"
