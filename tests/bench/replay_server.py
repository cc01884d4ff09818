"""An emulator whose agent fills the log, as a process of its own. It runs until it is ended."""

from __future__ import annotations

import asyncio
import signal
import sys
from typing import TYPE_CHECKING

from emulator import Emulator
from tests.bench.replay_peer import EVENTS

if TYPE_CHECKING:
    from emulator.runtime.turn import Turn

# What a first turn records beside what its agent says: the message, the sandbox, its start and end.
_AROUND = 4


async def fill(turn: Turn) -> None:
    """Say as much as there is to replay, letting others in now and then."""
    for n in range(EVENTS - _AROUND):
        await turn.say(f"This is what the agent says for the {n}th time.")
        if n % 500 == 0:
            await asyncio.sleep(0)


def main() -> None:
    """Serve until a signal."""
    with Emulator(rest_seconds=60.0) as emulator:
        emulator.agent(fill)
        sys.stdout.write(f"{emulator.url}\n")
        sys.stdout.flush()
        signal.sigwait({signal.SIGTERM, signal.SIGINT})


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    main()
