"""Verdicts: what assertions about an emulator say when they do not hold.

Law: pure. What is read from the emulator is handed in; each function raises `AssertionError` or nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from emulator.client.timeline import of_request
from emulator.differences import difference_line, differences, short

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from emulator.client.requests import Requests
    from emulator.wire.control import RequestEntry

# How many requests an assertion that did not hold tells of.
_NEAREST: Final = 3
_LISTED: Final = 20
KINDS: Final = (
    "script_errors",
    "failed_expectations",
    "required_steps",
    "recording",
    "unmatched_messages",
    "unanswered_actions",
    "unreached_steps",
    "unused_rules",
    "running_turns",
    "open_streams",
    "undelivered_webhooks",
    "unused_faults",
    "unused_outages",
    "findings",
    "sessions",
    "forks",
    "agents",
    "webhooks",
    "previews",
)


def listed(lines: Sequence[Mapping[str, str]], most: int = _LISTED) -> str:
    """Lines of a verdict as a list, one below the other."""
    shown = [f"  - {entry['text']}" for entry in lines[:most]]
    return "\n".join([*shown, *([f"  … and {len(lines) - most} more"] if len(lines) > most else [])])


def check_clean(report: Mapping[str, Any], ignore: Iterable[str]) -> None:
    """Raise unless nothing failed and nothing is left over, `ignore` aside."""
    __tracebackhide__ = True
    ignored = {ignore} if isinstance(ignore, str) else set(ignore)
    if unknown := ignored.difference(KINDS):
        raise ValueError(f"nothing to ignore is called {sorted(unknown)[0]!r}. Accepted: {', '.join(KINDS)}")
    verdict = report["verdict"]
    lines = [entry for entry in verdict["failed"] + verdict["left"] if entry["kind"] not in ignored]
    if lines:
        raise AssertionError(f"{_things(len(lines))} left over or not as expected:\n{listed(lines)}")


def check_no_requests(requests: Requests) -> None:
    """Raise if anything was sent."""
    __tracebackhide__ = True
    if requests or requests.dropped:
        raise AssertionError(
            f"{_requests(len(requests) + requests.dropped)}, and none was expected:\n{_lines(requests)}"
        )


def check_sent(requests: Requests, method: str, path: str, body: Any, times: int | None) -> list[RequestEntry]:
    """The requests that fit; raise if there is none, or not `times` of them."""
    __tracebackhide__ = True
    found = _fitting(requests, method, path, body)
    if found if times is None else len(found) == times:
        return found
    wanted = _wanted(method, path, body)
    if found:
        raise AssertionError(f"{wanted} was sent {len(found)} times, not {times}:\n{_lines(found)}")
    if times == 0:
        return found
    told = "" if not requests.dropped else f" ({requests.dropped} older requests are no longer kept)"
    raise AssertionError(f"{wanted} was never sent{told}.{_nearest(requests, method, path, body)}")


def check_not_sent(requests: Requests, method: str, path: str, body: Any) -> None:
    """Raise if a request fits."""
    __tracebackhide__ = True
    if found := _fitting(requests, method, path, body):
        raise AssertionError(f"{_wanted(method, path, body)} was sent, and should not have been:\n{_lines(found)}")


def _fitting(requests: Iterable[RequestEntry], method: str, path: str, body: Any) -> list[RequestEntry]:
    return [entry for entry in requests if not _misses(entry, method, path, body)]


def _misses(entry: RequestEntry, method: str, path: str, body: Any) -> list[str]:
    """What of a request is not as wanted, a line each."""
    missed = []
    if entry.method != method.upper():
        missed.append(f"method: expected {method.upper()}, was {entry.method}")
    if not _same_path(path, entry.path):
        missed.append(f"path: expected {path}, was {entry.path}")
    if body is not None:
        found = differences(body, entry.body, ("body",), partial=True)
        missed += [difference_line(difference.as_json()) for difference in found]
    return missed


def _same_path(wanted: str, path: str) -> bool:
    """Whether a path is the wanted one; `*` and anything in braces stands for one segment."""
    ours, theirs = wanted.strip("/").split("/"), path.strip("/").split("/")
    return len(ours) == len(theirs) and all(
        one == other or one == "*" or (one.startswith("{") and one.endswith("}"))
        for one, other in zip(ours, theirs, strict=True)
    )


def _nearest(requests: Sequence[RequestEntry], method: str, path: str, body: Any) -> str:
    """The requests that come nearest, each with what is not as wanted."""
    if not requests:
        return " Nothing was sent at all."
    ranked = sorted(
        ((_rank(entry, method, path), _misses(entry, method, path, body), entry) for entry in requests), key=_key
    )
    lines = ["", "The nearest that were:"]
    for _, missed, entry in ranked[:_NEAREST]:
        lines.append(f"  {_line(entry)}")
        lines += [f"      {miss}" for miss in missed]
    return "\n".join(lines)


def _key(ranked: tuple[int, list[str], RequestEntry]) -> tuple[int, int]:
    return ranked[0], len(ranked[1])


def _rank(entry: RequestEntry, method: str, path: str) -> int:
    ours, theirs = path.strip("/").split("/"), entry.path.strip("/").split("/")
    apart = abs(len(ours) - len(theirs)) + sum(
        not _same_path(one, other) for one, other in zip(ours, theirs, strict=False)
    )
    return 2 * apart + (entry.method != method.upper())


def _wanted(method: str, path: str, body: Any) -> str:
    return f"{method.upper()} {path}" + ("" if body is None else f" with {short(body)}")


def _line(entry: RequestEntry) -> str:
    return of_request(vars(entry)).replace("\n", "\n      ")


def _lines(requests: Sequence[RequestEntry]) -> str:
    shown = [f"  {_line(entry)}" for entry in requests[:_LISTED]]
    return "\n".join([*shown, *([f"  … and {len(requests) - _LISTED} more"] if len(requests) > _LISTED else [])])


def _things(count: int) -> str:
    return "1 thing is" if count == 1 else f"{count} things are"


def _requests(count: int) -> str:
    return "1 request was sent" if count == 1 else f"{count} requests were sent"
