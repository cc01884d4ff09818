"""What the pytest plugin tells of a test: its verdict, its timeline, its page, and the summary of the run.

Law: loaded when a test that used an emulator ends, not before. A test that failed by itself is given no
second failure, and telling of it never breaks the run.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from emulator.client.page import page
from emulator.client.verdict import listed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from emulator.embedded import Emulator

# What a test left over that was no failure, as lines of its verdict.
LEFT: Final = pytest.StashKey[list["Mapping[str, str]"]]()
# What fails a test with an exception of its own, or has failed it by then.
_TOLD: Final = ("script_errors", "failed_expectations")
# How many lines of a timeline a failed test shows, and how many tests the summary names.
_LINES: Final = 200
_TESTS: Final = 10
# How often the loop goes round for streams whose clients have just closed them.
_ROUNDS: Final = 50


def sections(emulator: Emulator) -> list[tuple[str, str]]:
    """The timeline of everybody, for the report of a failed test."""
    try:
        lines = str(emulator.timeline()).split("\n")
    except Exception as error:
        # A report must not break the run, whatever the test did to its emulator.
        return [("gobare", f"no timeline: {error}")]
    if len(lines) > _LINES:
        # What went wrong began early; where it led to is at the end.
        half = _LINES // 2
        lines = [*lines[:half], f"({len(lines) - 2 * half} lines are left out)", *lines[-half:]]
    return [("gobare timeline", "\n".join(lines)), *_unmatched(emulator)]


def _unmatched(emulator: Emulator) -> list[tuple[str, str]]:
    """Why no rule answered, where none did: what a test fails of next."""
    verdict = emulator.report()["verdict"]
    lines = [line for line in verdict["failed"] + verdict["left"] if line["kind"] == "unmatched_messages"]
    return [("gobare unmatched messages", listed(lines))] if lines else []


def expectations(missed: Sequence[Mapping[str, Any]]) -> str:
    """Answers that were not as expected, as the message of a failure."""
    from emulator.control.verdict import expectation

    count = "1 answer was" if len(missed) == 1 else f"{len(missed)} answers were"
    lines = [{"text": expectation(entry)} for entry in missed]
    return f"{count} not what the script expects:\n{listed(lines)}"


def judge(emulator: Emulator, item: pytest.Item, failed: bool) -> None:
    """Fail a test for what was not reached and, where that is strict, for what it left over."""
    __tracebackhide__ = True
    if not emulator.running or emulator.loop.stuck is not None:
        return
    emulator.run(let_streams_close(emulator))
    report = emulator.report()
    verdict = report["verdict"]
    lines = [] if failed else [line for line in verdict["failed"] if line["kind"] not in _TOLD]
    _write_page(emulator, item, report, failed=failed or bool(lines))
    if failed:
        return
    if lines:
        # What no rule answered is among the lines.
        for name, text in sections(emulator)[:1]:
            item.add_report_section("teardown", name, text)
        pytest.fail(f"not reached, or left over at the end of the test:\n{listed(lines)}", pytrace=False)
    item.stash.setdefault(LEFT, []).extend(verdict["left"])


async def let_streams_close(emulator: Emulator) -> None:
    """Let the loop see which clients have closed their streams."""
    feed = emulator.socket.deployment.feed
    for _ in range(_ROUNDS):
        if not feed.readers():
            return
        await asyncio.sleep(0)
    await asyncio.sleep(0.01)


def _write_page(emulator: Emulator, item: pytest.Item, report: Mapping[str, Any], *, failed: bool) -> None:
    folder = item.config.getoption("gobare_html")
    if not folder or not (failed or item.config.getoption("gobare_html_all")):
        return
    try:
        requests = [vars(entry) for entry in emulator.requests]
        text = page(item.nodeid, "failed" if failed else "passed", emulator.timeline(), requests, report)
        path = _free(Path(folder), item)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        item.warn(pytest.PytestWarning(f"--gobare-html: {error}"))


_PAGES: Final = pytest.StashKey[int]()


def _free(folder: Path, item: pytest.Item) -> Path:
    """Where the page of a test goes: the same place in every run."""
    number = item.stash[_PAGES] = item.stash.get(_PAGES, 0) + 1
    readable = re.sub(r"[^A-Za-z0-9.-]+", "_", item.nodeid).strip("_.")[-120:]
    digest = hashlib.sha256(item.nodeid.encode("utf-8", "replace")).hexdigest()[:8]
    return folder / f"{readable}-{digest}{f'-{number}' if number > 1 else ''}.html"


def left(lines: Sequence[Mapping[str, str]]) -> str:
    """What was left over, counted by kind: `2 sessions, 1 open stream`."""
    counts = Counter(line["kind"].replace("_", " ") for line in lines)
    return ", ".join(f"{count} {kind.removesuffix('s') if count == 1 else kind}" for kind, count in counts.items())


def summarise(terminal: pytest.TerminalReporter, reports: Sequence[Any]) -> None:
    """Name the tests that left something over, in one short section."""
    found = [report for report in reports if getattr(report, "gobare_left", None)]
    if not found:
        return
    terminal.section("gobare: left over by tests that passed")
    most = len(found) if terminal.config.get_verbosity() > 0 else _TESTS
    for report in found[:most]:
        terminal.line(f"{report.nodeid}: {report.gobare_left}")
    if len(found) > most:
        terminal.line(f"… and {len(found) - most} more tests")
    # Under that setting, these are tests whose marker took them out.
    hint = "" if terminal.config.getini("gobare_strict") else "With gobare_strict = true these fail; "
    terminal.line(f"{hint}gobare.report() has all of it.")
