"""Rest: waiting until no agent can go on without somebody outside (design, "At rest")."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from emulator.clock import monotonic

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from emulator.runtime.run import Run

# Passes of the loop that must find nothing to do before an agent counts as at rest: a finished task
# reaches whoever awaits it through a callback, and that one through another.
_QUIET_PASSES: Final = 3


async def until_rest(restless: Callable[[], Sequence[str]], runs: Mapping[str, Run], seconds: float) -> Sequence[str]:
    """Wait until `restless` names no session, at most real `seconds`. Gives those it names then.

    While an agent waits for something of its own this waits with it, and does not spin.
    """
    until = monotonic() + seconds
    quiet = 0
    while quiet < _QUIET_PASSES:
        names = restless()
        if not names:
            quiet += 1
            await asyncio.sleep(0)
            continue
        quiet = 0
        left = until - monotonic()
        if left <= 0:
            return names
        steps = [runs[name].steps for name in names if name in runs]
        if len(steps) < len(names) or any(step.runnable for step in steps):
            await asyncio.sleep(0)
        else:
            await asyncio.wait([step.moved() for step in steps], timeout=left, return_when=asyncio.FIRST_COMPLETED)
    return ()
