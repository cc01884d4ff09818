"""A client that reads one session again and again, as a process of its own, until its input closes.

It says `ready`, then, at the end, how many reads there were and how long the slowest took.
"""

from __future__ import annotations

import json
import select
import sys
from statistics import median

from tests.bench.harness import Connection, now, request


def main(port: int, path: str) -> None:
    """Read with a pause of a millisecond in between."""
    raw = request("GET", path)
    took: list[float] = []
    with Connection(port) as client:
        client.ask(raw)
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        while not select.select([sys.stdin], [], [], 0.001)[0]:
            began = now()
            status, _ = client.ask(raw)
            took.append((now() - began) * 1000)
            assert status == 200
    sys.stdout.write(json.dumps({"count": len(took), "slowest": max(took), "median": median(took)}) + "\n")


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
