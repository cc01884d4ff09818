"""Permissions: what modes and rules decide about each thing an agent does (contract §6)."""

from __future__ import annotations

from typing import Final

from tests.contract.manifest import Row

_SOURCE: Final = "contract §6"

ROWS: Final = (
    Row("permissions.acts", _SOURCE, "Mode and rules let the agent use a tool, have it ask, or refuse it."),
    Row(
        "permissions.refused",
        _SOURCE,
        "What is refused has not happened: the one event is approval.resolved with name, code and reason.",
        "From the pages. The script is told by a false result and goes on, as an agent would.",
    ),
    Row(
        "permissions.asked",
        _SOURCE,
        "What is asked about is an approval named after the tool; approved it is done, denied it is not.",
        "The pages show no call of a tool before its approval; we show it once it is made.",
    ),
    Row(
        "permissions.files",
        _SOURCE,
        "A file is written by the tool write, with its absolute path and its text, and deleted by the tool delete.",
        "The events show write so. No tool of the sandbox's agent deletes (it would use bash); a name of its own "
        "lets rules on paths reach it. A content that is no text is left out of the approval.",
    ),
    Row(
        "permissions.per-step",
        _SOURCE,
        "per_step asks about every tool, also one that only reads.",
        "The pages say each step. What the agent says is none, nor is a call of a function: its client decides that.",
    ),
    Row(
        "permissions.read-only-tools",
        _SOURCE,
        "read_only lets tools through that only read, and no other one of the sandbox's.",
        "The pages name the tools and not which read: read, grep, find, ls, and all of the network but browser_act. "
        "bash does not, whatever its command; nor does a tool nobody knows. One of an MCP server's does where it is "
        "marked so, whichever verb names it.",
    ),
    Row(
        "permissions.plan",
        _SOURCE,
        "plan refuses what read_only refuses, with the same code and a reason that tells of the plan.",
        "The pages say that a plan is made without carrying it out, and give no code of its own.",
    ),
    Row(
        "permissions.sensitive",
        _SOURCE,
        "An approval that mode or rule ask for is sensitive, unless the tool only reads.",
        "The sources show the field once, true for a command that restarts something, and do not define it.",
    ),
    Row(
        "permissions.once",
        _SOURCE,
        "What was approved is done without another approval, once; a write approved is also the change of its file.",
        "A person is asked about each step, and that is one: the sources gate calls of tools, not files that change.",
    ),
    Row(
        "permissions.path",
        _SOURCE,
        "A rule's path is a file, a folder with all in it, or a glob, of the place that a path leads to.",
        "The sources show a folder only. Relative is to /workspace; `*` also stands for folders; case counts. "
        "What a command does to a path is not looked at.",
    ),
    Row(
        "permissions.command",
        _SOURCE,
        "A rule's command is a glob of the whole command, or its first words; blanks count as one.",
        "The sources do not define it. What a shell would make of a command is not looked at.",
    ),
    Row(
        "permissions.domain",
        _SOURCE,
        "A rule's domain is a host or a glob of hosts, compared with that of the tool's `url` as a browser reads it.",
        "The sources show a host only. `example.com` is not its subdomains, `*.example.com` only those; capitals, "
        "user, port, a dot at the end and IDNA do not count.",
    ),
    Row(
        "permissions.default-agent",
        _SOURCE,
        "The agent that nobody scripted is held to mode and rules as well, and says what it was not allowed.",
        "Ours; so that a product meets refusals and approvals without a script.",
    ),
)
