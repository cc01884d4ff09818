"""An MCP server that is a process, written by hand: it starts in 20 ms and misbehaves in every way.

Run as a script with the ways it is to misbehave. It imports nothing that is slow.
"""

from __future__ import annotations

import json
import os
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    # Slow to import.
    from typing import Any

WAYS = sys.argv[1:]


def tell(**message: Any) -> None:
    os.write(1, json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")


def tool(name: str, read_only: bool | None = None) -> dict[str, Any]:
    listed: dict[str, Any] = {
        "name": name,
        "description": f"{name} it",
        "inputSchema": {"type": "object", "title": name},
    }
    return listed if read_only is None else listed | {"annotations": {"readOnlyHint": read_only}}


def way(name: str) -> str | None:
    """What follows `name=` among the ways, if it is one of them."""
    return next((given.partition("=")[2] for given in WAYS if given.partition("=")[0] == name), None)


def nobody() -> int:
    """A process that nobody ends. It has this one's streams, and is a daemon where that is asked for."""
    pid = os.fork()
    if pid == 0:
        if way("daemon") is not None:
            os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        while True:
            signal.pause()
    return pid


def call(asked: dict[str, Any]) -> dict[str, Any] | None:
    """The result of a call, or `None` for none."""
    name, arguments = asked["name"], asked.get("arguments", {})
    text = {"type": "text", "text": json.dumps(arguments, sort_keys=True)}
    if name == "variables":
        return {
            "content": [{"type": "text", "text": " ".join(sorted(os.environ))}],
            "structuredContent": dict(os.environ),
        }
    if name == "die":
        os._exit(int(arguments.get("status", 9)))
    if name == "hang":
        return None
    if name == "malformed":
        return {"content": "nothing of the kind"}
    if name == "fail":
        return {"content": [text], "isError": True}
    if name == "grow":
        TOOLS.append(tool("grown"))
        tell(method="notifications/tools/list_changed")
    if name == "pid":
        text["text"] = str(os.getpid())
    return {"content": [text]}


TOOLS = [tool("read", True), tool("write", False)] + [
    tool(name) for name in ("variables", "die", "hang", "malformed", "fail", "grow", "pid")
]

if way("deaf") is not None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if (seconds := way("doom")) is not None:
    # Wherever it is by then, that is the end of it.
    signal.setitimer(signal.ITIMER_REAL, float(seconds))
if (path := way("child")) is not None:
    pid = nobody()
    with open(path, "a") as file:  # noqa: PTH123 - pathlib is slow to import
        file.write(f"{os.getpid()} {pid}\n")
if (status := way("exit")) is not None:
    os.write(2, b"a secret on standard error\n")
    sys.exit(int(status))
if way("garbage") is not None:
    os.write(1, b"ready to serve\n")

for line in sys.stdin:
    asked = json.loads(line)
    method, number = asked.get("method"), asked.get("id")
    if way("mute") is not None or number is None:
        continue
    if method == way("die"):
        os._exit(9)
    if method == "initialize":
        version = asked["params"]["protocolVersion"]
        result = {"protocolVersion": version, "capabilities": {"tools": {"listChanged": True}}}
        tell(id=number, result=result | {"serverInfo": {"name": "peer", "version": "1"}})
    elif method == "tools/list":
        page = int(asked.get("params", {}).get("cursor", 0))
        more = {"nextCursor": str(page + 1)} if page + 1 < len(TOOLS) else {}
        tell(id=number, result={"tools": TOOLS[page : page + 1], **more})
    elif method == "tools/call":
        if code := asked["params"].get("arguments", {}).get("code"):
            tell(id=number, error={"code": code, "message": "not today"})
        elif (answer := call(asked["params"])) is not None:
            tell(id=number, result=answer)
    else:
        tell(id=number, error={"code": -32601, "message": "no such method"})

if way("deaf") is not None:
    while True:
        signal.pause()
