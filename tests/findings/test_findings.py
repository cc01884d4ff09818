"""What holds for every finding: it is explained, told without secrets, bounded, and can be switched off."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from emulator.domain.findings.catalogue import MESSAGES, link
from emulator.domain.findings.judge import findings
from emulator.domain.findings.record import NO_FACTS, Exchange, Happening, Record, Watch
from tests.findings.support import found, parked

if TYPE_CHECKING:
    from emulator import Emulator
    from tests.support import Api

README = (Path(__file__).parents[2] / "README.md").read_text()


def test_the_readme_explains_every_finding_and_no_other() -> None:
    assert re.findall(r'<a id="finding-([\w-]+)"></a>', README) == list(MESSAGES)
    assert {link(name) for name in MESSAGES} == {f"README.md#finding-{name}" for name in MESSAGES}


def test_every_finding_has_a_client_that_breaks_it_and_is_told_by_a_rule() -> None:
    tests = "".join(path.read_text() for path in Path(__file__).parent.glob("test_[rsw]*.py"))
    assert {name for name in MESSAGES if f'"{name}"' not in tests} == set()


@pytest.mark.parametrize("message", MESSAGES.values(), ids=MESSAGES)
def test_a_message_says_what_why_and_what_instead_in_a_few_lines(message: str) -> None:
    assert 2 <= message.count(". ") + message.count(": ") + 1 <= 5
    assert len(message) < 330


def test_nothing_that_was_sent_is_in_a_finding(gobare: Emulator, api: Api) -> None:
    _, session_id = parked(api)
    action = api.actions(session_id)[0]
    event = {"type": "input.tool_result", "turn_id": action["turn_id"], "call_id": action["call_id"], "success": False}
    api.send(session_id, {**event, "error": "KeyError: 'canary-1 sk-ant-1234567890abcdef1234'"})
    for text in ("canary-2", "canary-3"):
        api.post("/v1/sessions", {"title": text}, headers={"Idempotency-Key": "canary-4"})
    assert set(found(gobare)) == {"exception-in-error", "key-reused"}
    assert not re.search("canary|sk-ant", json.dumps(gobare.report()["findings"]))


def test_a_reset_starts_over(gobare: Emulator, api: Api) -> None:
    for title in ("one", "two"):
        api.post("/v1/sessions", {"title": title}, headers={"Idempotency-Key": "k"})
    assert set(found(gobare)) == {"key-reused"}
    gobare.reset()
    assert found(gobare) == {}


@pytest.mark.gobare(findings="off")
def test_nothing_is_found_where_it_is_switched_off(gobare: Emulator, api: Api) -> None:
    for title in ("one", "two"):
        api.post("/v1/sessions", {"title": title}, headers={"Idempotency-Key": "k"})
    assert found(gobare) == {}


def _exchange(request_id: str, **fields: object) -> Exchange:
    values: dict[str, object] = {
        "organization": "default",
        "token_id": "tok_1",
        "request_id": request_id,
        "verb": "GET",
        "path": "/v1/sessions",
        "place": 1,
        "session_id": None,
        "status": 200,
        "code": None,
        "arrived": (0.0, 0),
        "answered": (0.0, 0),
        "retry_after": None,
        "digest": 0,
        "key": None,
        "facts": NO_FACTS,
    }
    return Exchange(**(values | fields))  # type: ignore[arg-type]


def test_the_record_is_bounded_and_the_oldest_goes_first() -> None:
    record = Record(limit=3)
    for n in range(5):
        record.add(_exchange(str(n)))
    assert [entry.request_id for entry in record.kept() if isinstance(entry, Exchange)] == ["2", "3", "4"]
    assert record.dropped == 2


def test_what_nobody_can_be_said_to_have_missed_any_more_is_not_judged() -> None:
    record = Record(streams=1)
    first = Watch("default", "s", "1", None, cursor=False, start=0, sent=1)
    record.open(first)
    record.add(Happening("default", 1, "s", "mcp.unavailable", 1, ref="docs"))
    first.end = record.next()
    assert findings(record, [], []) == []
    record.open(Watch("default", "s", "2", None, cursor=True, start=1, sent=1))
    assert (findings(record, [], []), record.dropped) == ([], 1)
    record.add(Happening("default", 2, "s", "mcp.unavailable", 2, ref="docs"))
    assert [finding.id for finding in findings(record, [], [])] == ["mcp-outage-unread"]
