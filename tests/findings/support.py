"""What tests of findings begin with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from emulator import Emulator
    from tests.support import Answer, Api, Frames

LOOKUP: dict[str, Any] = {"type": "function", "name": "lookup"}


def found(gobare: Emulator) -> dict[str, dict[str, Any]]:
    """The evidence of each finding of the report, by id. Each id is there once, and asking again gives the same."""
    findings = gobare.report()["findings"]
    assert gobare.report()["findings"] == findings
    told = {finding["id"]: finding["evidence"] for finding in findings}
    assert len(told) == len(findings), findings
    return told


def evidence(request_ids: list[str], **about: Any) -> dict[str, Any]:
    """The evidence of a finding: what is not told about it is not there."""
    nothing = dict.fromkeys(("session_id", "turn_id", "call_id", "token_id", "server"))
    return {"request_ids": request_ids, **nothing, "scopes": [], **about}


def ids(*answers: Answer) -> list[str]:
    """The request ids of answers."""
    return [answer.headers["x-request-id"] for answer in answers]


def parked(api: Api, **agent: Any) -> tuple[Answer, str]:
    """A session with an agent that says something, then calls a function and waits; and what creating it answered."""
    api.emulator.load(
        {"agent": [{"otherwise": [{"say": "Looking."}, {"call": {"function": "lookup"}}, {"say": "Ok."}]}]}
    )
    created = api.post("/v1/sessions", {"input": "go", "agent": {"tools": [LOOKUP], **agent}})
    assert created.status == 201, created.raw
    return created, created.json["id"]


def close(gobare: Emulator, stream: Frames) -> None:
    """Close a stream, and wait until the emulator has seen that."""
    before = len(gobare.report()["open_streams"])
    stream.close()
    while len(gobare.report()["open_streams"]) == before:
        pass
