"""What is written of a server, in its normal form."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from emulator.domain import outages
from emulator.domain.outages import CallEntry, ConnectEntry, ServerPlan, plan_of
from emulator.domain.servers import SimulatedTool, Unusable
from emulator.wire import servers as wire

LOST = "the connection was lost during the call"


@pytest.mark.parametrize(
    ("written", "plan"),
    [
        ({}, ServerPlan()),
        ({"state": "up"}, ServerPlan(ConnectEntry())),
        ({"state": "down"}, ServerPlan(ConnectEntry("refuse"))),
        ({"state": "down", "fault": "hang", "times": 2}, ServerPlan(ConnectEntry("hang"), 2)),
        ({"fault": "slow", "seconds": 3}, ServerPlan(ConnectEntry("slow", seconds=3))),
        (
            {"script": [{"state": "up"}, {"tools": {"a": {}}}]},
            ServerPlan(connects=(ConnectEntry(), ConnectEntry(tools={"a": SimulatedTool()}))),
        ),
        (
            {"calls": [{"fault": "ok", "tool": "a"}, {"fault": "error", "text": "no"}]},
            ServerPlan(calls=(CallEntry(tool="a"), CallEntry("error", text="no"))),
        ),
    ],
)
def test_a_plan_is_read(written: dict[str, Any], plan: ServerPlan) -> None:
    assert plan_of(written) == plan


def test_a_problem_is_found_at_its_key() -> None:
    with pytest.raises(Unusable) as caught:
        plan_of({"calls": [{"fault": "ok"}, {"tools": {"a": {"text": "x", "content": []}}}]})
    assert caught.value.where == ("calls", 1, "tools", "a")


@pytest.mark.parametrize(
    ("entry", "takes", "failure"),
    [
        (ConnectEntry(), 0, None),
        (ConnectEntry("slow", seconds=9.999), 9.999, None),
        (ConnectEntry("slow", seconds=10), 10, outages.DID_NOT_ANSWER),
        (ConnectEntry("slow", "busy", seconds=11), 10, "busy"),
        (ConnectEntry("hang", "busy"), 10, "busy"),
        (ConnectEntry("unauthorized"), 0, "the server answered 401"),
        (CallEntry(), 0, None),
        (CallEntry("slow", seconds=99), 99, None),
        (CallEntry("drop"), 0, LOST),
        (CallEntry("error"), 0, "the tool failed"),
        (CallEntry("time_out"), 60, "the server did not answer within 60s"),
    ],
)
def test_an_entry_has_its_time_and_its_failure(
    entry: ConnectEntry | CallEntry, takes: float, failure: str | None
) -> None:
    assert (entry.takes, entry.failure) == (takes, failure)


def test_what_can_be_written_is_what_can_be_read() -> None:
    assert get_args(wire.ConnectFault) == get_args(outages.ConnectFault)
    assert get_args(wire.CallFault) == ("ok", *get_args(outages.CallFault))
