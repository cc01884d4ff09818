"""Sessions with real MCP servers that crash at moments drawn from a seed, and what is left of it all."""

from __future__ import annotations

import asyncio
import os
import select
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final

from emulator import Emulator
from tests.support import WAIT, Api

if TYPE_CHECKING:
    from collections.abc import Sequence

PEER: Final = Path(__file__).parent / "mcp_peer.py"
# What a session does with its server, beside the server's own death.
_ENDS: Final = ("leave", "delete", "tools", "cancel", "die", "raise")
_THREADS: Final = 8


@dataclass(frozen=True)
class Left:
    """What is left after the emulator has stopped, and how long stopping took."""

    started: int
    processes: list[int]
    files: list[str]
    tasks: list[str]
    threads: list[str]
    temporary: list[str]
    stopping: float


def entry(*ways: str, **fields: Any) -> dict[str, Any]:
    """The tool entry of a process that misbehaves in these ways."""
    return {"type": "mcp", "name": "docs", "command": sys.executable, "args": ["-SE", str(PEER), *ways], **fields}


def crash(sessions: int, seed: int, folder: Path) -> Left:
    """Run that many sessions, each with a server and a process of that, which die when they are drawn to."""
    draws = [Random(f"{seed} {n}") for n in range(sessions)]
    pids, temporary = folder / "pids", folder / "temporary"
    temporary.mkdir()
    usual, tempfile.tempdir = tempfile.tempdir, str(temporary)
    try:
        return _crash(draws, pids, temporary)
    finally:
        tempfile.tempdir = usual


def _crash(draws: Sequence[Random], pids: Path, temporary: Path) -> Left:
    with Emulator(mcp="connect", allow_processes=True) as emulator:
        # What the first connection of a process leaves open is not left by a crash.
        Api(emulator).session({"agent": {"tools": [entry()]}, "input": "hello"})
    files, threads, tasks = open_files(), threading.enumerate(), emulator.loop.run(_tasks())
    with Emulator(mcp="connect", allow_processes=True, session_limit=len(draws), mcp_seconds=WAIT) as emulator:

        @emulator.agent
        async def agent(turn: Any) -> None:
            await turn.mcp("docs", "read")
            if turn.message == "raise":
                raise RuntimeError("drawn to")
            await turn.mcp("docs", {"die": "die", "cancel": "hang"}.get(turn.message, "write"))

        api = Api(emulator)
        emulator.settings.update(rest_seconds=0.2)
        with ThreadPoolExecutor(_THREADS) as pool:
            list(pool.map(lambda draw: _one(api, draw, pids), draws))
        began = time.monotonic()
    stopping = time.monotonic() - began
    started = [int(pid) for pid in pids.read_text().split()]
    return Left(
        len(started) // 2,
        [pid for pid in started if not gone(pid)],
        sorted(open_files() - files),
        [repr(task) for task in emulator.loop.run(_tasks()) - tasks],
        [thread.name for thread in threading.enumerate() if thread not in threads],
        [file.name for file in temporary.iterdir()],
        stopping,
    )


def _one(api: Api, draw: Random, pids: Path) -> None:
    """One session, from its beginning to whatever end it is drawn to have."""
    ways = [f"child={pids}"]
    if draw.random() < 0.6:
        ways.append(f"doom={draw.uniform(0.001, 0.15):.4f}")
    ways += [way for way in ("deaf", "daemon") if draw.random() < 0.3]
    end = draw.choice(_ENDS)
    session = api.session({"agent": {"tools": [entry(*ways, required=draw.random() < 0.5)]}})
    api.say(session, end)
    match end:
        case "delete":
            api.delete(f"/v1/sessions/{session}")
        case "tools":
            api.put(f"/v1/sessions/{session}/tools", {"tools": [entry(*ways)]})
            api.say(session, "again")
        case "cancel":
            api.send(session, {"type": "input.cancel"})
        case _:
            pass


async def _tasks() -> set[asyncio.Task[Any]]:
    """The tasks on this loop, but for this one."""
    return {task for task in asyncio.all_tasks() if task is not asyncio.current_task()}


def open_files() -> set[str]:
    """What this process has open, by number and by what it is."""
    found = set()
    for number in Path("/proc/self/fd").iterdir():
        try:
            found.add(f"{number.name} {number.readlink()}")
        except FileNotFoundError:
            # The listing's own.
            continue
    return found


def gone(pid: int) -> bool:
    """Whether a process ends, in a moment at the latest."""
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([process], [], [], 1.0)[0])
    finally:
        os.close(process)


def running(pid: int) -> bool:
    """Whether there is a process of that number."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
