"""MCP servers that are really connected to: what no source tells of a sandbox's own client (contract §5)."""

from __future__ import annotations

from typing import Final

from tests.contract.manifest import Row

_S: Final = "contract §5"

ROWS: Final = (
    Row("connect.url", _S, "`authorization` and `headers` go to the server's `url`, and to nothing else."),
    Row(
        "connect.url.authorization",
        _S,
        "`authorization` is the value of the Authorization header, whole.",
        "The page does not say how it is written; nothing is put before it, so that every scheme can be used.",
    ),
    Row(
        "connect.url.redirects",
        _S,
        "A redirect is followed on the same host only; any other is an unreachable server, by its status.",
        "A credential is for the address it was given with.",
    ),
    Row(
        "connect.url.proxies",
        _S,
        "A connection goes where its `url` says, whatever proxies the environment names.",
        "As for webhooks: an emulator reaches what it was told to reach, on every machine alike.",
    ),
    Row(
        "connect.reasons",
        _S,
        "Refused, unknown to DNS, cut off or not trusted is `fetch failed`; a status is `the server answered 401`; "
        "what answers otherwise is `the server does not speak MCP`.",
        "The sources have `fetch failed` and `the server did not answer within 10s`; the others are worded alike.",
    ),
    Row(
        "connect.timeout",
        _S,
        "A server that does not answer in time is told by the seconds it had, which are real ones (`mcp_seconds`).",
        "Real servers take real time; a clock that stands still moves by as much.",
    ),
    Row(
        "connect.handshake",
        _S,
        "The conversation begins with `initialize`.",
        "Every published server speaks it, and with it says by itself that its tools have changed.",
    ),
    Row(
        "connect.command.allowed",
        _S,
        "A `command` is started only where `allow_processes` is set; else its server is unreachable and says so.",
        "The sandbox starts it inside; here it would be a process of the machine the emulator runs on.",
    ),
    Row(
        "connect.command.variables",
        _S,
        "A process is given PATH, HOME, LOGNAME, SHELL, TERM, USER, the variables `env_refs` names, and "
        "GOBARE_MCP_SERVER, by which what it starts is found again.",
        "Programs do not start without the first; the rest of the emulator's environment is not the sandbox's.",
    ),
    Row(
        "connect.command.missing",
        _S,
        "A variable that no profile of the session has leaves the server unreachable, by the variable's name.",
        "A server without its key would start, and fail later and elsewhere.",
    ),
    Row(
        "connect.command.reasons",
        _S,
        "A command that does not start or ends at once is unreachable, with the status it ended with; what it wrote "
        "to its standard error is told nowhere.",
        "No source has a reason for it.",
    ),
    Row(
        "connect.tools",
        _S,
        "The tools of all pages are offered, with their annotations, and anew after the server said they changed.",
    ),
    Row(
        "connect.calls",
        _S,
        "A call that the server refuses, breaks off or answers with something else is an error result.",
        "The turn goes on: what to do about it is the agent's to decide.",
    ),
    Row(
        "connect.calls.time",
        _S,
        "A call has 60 real seconds.",
        "As other MCP clients have it; no source gives a number.",
    ),
    Row(
        "connect.once",
        _S,
        "A server is connected to once in a workspace's life, and every call of every turn uses that connection.",
    ),
    Row(
        "connect.own",
        _S,
        "A `url` at which this emulator itself serves an MCP server is connected to whatever `mcp` says.",
        "It is on this very socket: nothing goes out. What others wait for in real time passes on the clock.",
    ),
    Row(
        "connect.ends",
        _S,
        "The connection ends with the session, the workspace, the tools or the emulator, and the process with all it "
        "started.",
        "A daemon among them is found by its environment, where there is a /proc to look in.",
    ),
)
