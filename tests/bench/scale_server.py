"""An emulator without ceilings whose agent says as much as it is told to, as a process of its own."""

from __future__ import annotations

import signal
import sys
from typing import TYPE_CHECKING

from emulator import Emulator

if TYPE_CHECKING:
    from emulator.runtime.turn import Turn


async def talk(turn: Turn) -> None:
    """Say as many things as the message says."""
    for n in range(int(turn.message)):
        await turn.say(f"This is what the agent says for the {n}th time.")


def main() -> None:
    """Serve until a signal."""
    ceilings = {"session_limit": 100_000, "streams_per_token": 1000, "streams_per_organization": 1000}
    with Emulator(settings=ceilings, clock="real", rest_seconds=60.0) as emulator:
        emulator.agent(talk)
        sys.stdout.write(f"{emulator.url}\n")
        sys.stdout.flush()
        signal.sigwait({signal.SIGTERM, signal.SIGINT})


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    main()
