"""Strays: processes that a server started and that left its process group, as daemons and browsers do.

Law: they are known by a mark in the environment they were started with, which they have from the server. Only a
process that was given another environment is out of reach, and, where there is no /proc, all of them.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import Final

MARK: Final = "GOBARE_MCP_SERVER"
# Looks around, at most: a process may start another while it is being looked at.
_LOOKS: Final = 5


def end_strays(mark: str) -> None:
    """End every process whose mark begins with this one, at once."""
    wanted = f"\0{MARK}={mark}".encode()
    for _ in range(_LOOKS):
        found = [pid for pid in _processes() if wanted in b"\0" + _environment(pid)]
        for pid in found:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if not found:
            return


def _processes() -> list[int]:
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208 - far quicker
    except OSError:
        return []


def _environment(pid: int) -> bytes:
    """What a process was started with; nothing for one that is gone or somebody else's."""
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""
