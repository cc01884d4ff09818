"""The verdict: a report as lines for whoever reads why a test failed.

Law: it is made of the report alone, so nothing is in it that the report may not tell. `failed` is what
somebody wrote down and did not come true; `left` is what was left over, which fails too where that is strict.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from emulator.differences import difference_line, short

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

Line = dict[str, str]


def verdict(report: Mapping[str, Any], *, strict: bool) -> dict[str, Any]:
    """What failed and what was left, each line with its kind; with `strict` what was left has failed."""
    failed = [{"kind": kind, "text": text} for kind, text in _failed(report)]
    left = [{"kind": kind, "text": text} for kind, text in _left(report)]
    return {"strict": strict, "failed": failed + left if strict else failed, "left": [] if strict else left}


def _failed(report: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for entry in report["script_errors"]:
        yield "script_errors", f"the script failed at {entry['where']}: {entry['message']}"
    for entry in report["failed_expectations"]:
        yield "failed_expectations", expectation(entry)
    for entry in report["recording"]:
        yield "recording", entry["message"]
    for entry in report["unreached_steps"]:
        if entry["required"]:
            yield "required_steps", f"{_step(entry)} must be reached, and was not"


def _left(report: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for kind, line in _LEFT.items():
        for entry in report[kind]:
            # A step that must be reached has failed already.
            if not (kind == "unreached_steps" and entry["required"]):
                yield kind, line(entry)
    undeleted = report["undeleted"]
    for entry in undeleted["sessions"]:
        titled = f" ({short(entry['title'], 60)})" if entry["title"] else ""
        if entry["forked_from"] is None:
            yield "sessions", f"session {entry['id']}{titled} was not deleted{_made(entry)}"
        else:
            yield "forks", f"fork {entry['id']} of {entry['forked_from']}{titled} was not deleted{_made(entry)}"
    for entry in undeleted["agents"]:
        yield "agents", f"saved agent {entry['id']} ({short(entry['name'], 60)}) was not deleted{_made(entry)}"
    for entry in undeleted["webhooks"]:
        yield "webhooks", f"webhook {entry['id']} to {entry['url']} was not deleted{_made(entry)}"
    for entry in undeleted["previews"]:
        yield "previews", f"{entry['url']} of session {entry['session_id']} is still published"


def _made(entry: Mapping[str, Any]) -> str:
    return f"; request {entry['request_id']} made it" if entry["request_id"] else ""


def _step(entry: Mapping[str, Any]) -> str:
    return f"scenario {entry['scenario']!r}, {entry['step']} ({entry['verb']})"


_ASKED: Final = {"function_call": "call of", "question": "question", "approval": "approval of"}


def expectation(entry: Mapping[str, Any]) -> str:
    """An answer that was not as expected, told by someone who needs no debugger to see why."""
    scenario = "" if entry["scenario"] is None else f"scenario {entry['scenario']!r}, "
    call = "" if entry["call_id"] is None else f" [{entry['call_id']}]"
    match entry["answered_by"]:
        case "api":
            answered = f"the answer came with request {entry['request_id']}"
        case "console":
            answered = "the answer came from the console"
        case _:
            answered = "nobody answered" if entry["call_id"] else "a rule or the mode decided"
    lines = [
        f"{scenario}{entry['where']}: the {_ASKED[entry['type']]} {short(entry['name'], 80)}{call} was not answered "
        "as expected",
        f"in session {entry['session_id']}, turn {entry['turn_id']}; {answered}",
        *(difference_line(found) for found in entry["differences"]),
    ]
    return "\n    ".join(lines)


def _unmatched(entry: Mapping[str, Any]) -> str:
    head = f"no rule answered the message {short(entry['message'], 80)} of session {entry['session_id']}"
    return "\n    ".join([head, *(f"{miss['rule']}: {miss['reason']}" for miss in entry["rules"])])


def _stream(entry: Mapping[str, Any]) -> str:
    whose = f"session {entry['session_id']}" if entry["session_id"] else f"organization {entry['organization']}"
    return f"the event stream of {whose} was left open; request {entry['request_id']} opened it"


def _turn(entry: Mapping[str, Any]) -> str:
    state = {"queued": "still queued", "running": "still running", "waiting": "still waiting for somebody outside"}
    turn = f"turn {entry['turn_id']} (number {entry['number']} of session {entry['session_id']})"
    return f"{turn} is {state[entry['state']]}"


def _delivery(entry: Mapping[str, Any]) -> str:
    reason = f": {entry['last_error']}" if entry["last_error"] else ""
    return (
        f"{entry['type']} of session {entry['session_id']} did not reach {entry['url']}; the delivery {entry['id']} is "
        f"{entry['state']} after {entry['attempts']} attempts{reason}"
    )


def _unanswered(entry: Mapping[str, Any]) -> str:
    what = f"the {_ASKED[entry['type']]} {short(entry['name'], 80)} [{entry['call_id']}]"
    return f"nobody answered {what} of session {entry['session_id']}"


def _outage(entry: Mapping[str, Any]) -> str:
    counted = {"connect": entry["connects"], "call": entry["calls"]}
    left = " and ".join(f"{n} {what}{'s' if n > 1 else ''}" for what, n in counted.items() if n)
    return f"the MCP server {short(entry['server'], 80)} was to fail for {left} more"


def _fault(entry: Mapping[str, Any]) -> str:
    asked = {name: value for name, value in entry.items() if name not in ("id", "matched", "hits")}
    such = entry["matched"]
    met = f"{such} requests were such, and it was not due" if such else "no request was such"
    return f"the fault {entry['id']} never happened: {short(asked, 300)}; {met}"


# Kind of the report -> how an entry of it reads.
_LEFT: Final[Mapping[str, Callable[[Any], str]]] = {
    "unmatched_messages": _unmatched,
    "unanswered_actions": _unanswered,
    "unreached_steps": lambda entry: f"{_step(entry)} was never reached",
    "unused_rules": lambda entry: f"{entry['rule']} answered {entry['used']} of its {entry['times']} messages",
    "running_turns": _turn,
    "open_streams": _stream,
    "undelivered_webhooks": _delivery,
    "findings": lambda entry: f"{entry['id']}: {entry['message']} See {entry['link']}",
    "unused_faults": _fault,
    "unused_outages": _outage,
}
