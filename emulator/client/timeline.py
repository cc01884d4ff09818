"""The timeline: what clients sent and what the agent did, as it is read in a test and printed when one fails."""

from __future__ import annotations

import re
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from emulator.client.transcript import line, of_event
from emulator.differences import short

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_LONGEST: Final = 60
# So many reads that are alike are printed one by one; of more, the first is, and how many followed.
_ALIKE: Final = 3
# As much of a session's id as tells it from others.
_ID: Final = 8


class Timeline(list[dict[str, Any]]):
    """Requests and events interleaved, oldest first. Prints as lines, with times on the emulator's clock.

    Each entry has `at` (Unix milliseconds), `session_id`, and either `request` or `event`.
    """

    def __str__(self) -> str:
        return "\n".join(line(*told) for told in self._folded()) or "(nothing happened)"

    __repr__ = __str__

    def _folded(self) -> Iterator[tuple[float, str, str]]:
        """The lines, and of a read that was sent again and again the first: polls hide what happened."""
        for _, alike in groupby(enumerate(self._told()), key=lambda told: told[1][1] or told[0]):
            run = [line for _, (line, _) in alike]
            if len(run) <= _ALIKE:
                yield from run
                continue
            yield run[0]
            yield run[-1][0], "client", f"… the same {len(run) - 1} times more"

    def lines(self) -> Iterator[tuple[float, str, str]]:
        """Each thing worth telling: seconds since the first, who did it, and what."""
        return (line for line, _ in self._told())

    def _told(self) -> Iterator[tuple[tuple[float, str, str], str]]:
        """Each line; with that of a read, what it has in common with its like."""
        start = self[0]["at"] if self else 0
        several = len({entry["session_id"] for entry in self if entry["event"] is not None}) > 1
        for entry in self:
            seconds = (entry["at"] - start) / 1000
            if entry["request"] is not None:
                request = entry["request"]
                alike = of_request({**request, "request_id": ""}) if request["method"] == "GET" else ""
                yield (seconds, "client", of_request(request)), alike
            elif (told := of_event(entry["event"])) is not None:
                who, text = told
                yield (seconds, who, f"{text}  ({entry['session_id'][:_ID]}…)" if several else text), ""


def of_request(request: Mapping[str, Any]) -> str:
    """A request in a line: status, verb, path, request id and the main fields of its body; the refusal below."""
    fault = request.get("fault")
    query = "&".join(f"{name}={value}" for name, value in request["query"].items())
    parts = [
        str(request["status"]) if request["status"] else "no answer",
        request["code"],
        request["method"],
        f"{request['path']}?{query}" if query else request["path"],
        request["request_id"],
        # An emulator of an earlier version tells of none.
        fault and f"[{fault}]",
        *_fields(request["body"]),
    ]
    text = " ".join(part for part in parts if part)
    return f"{text}\n    {request['message']}" if request["message"] else text


def _fields(body: Any) -> Iterator[str]:
    """What a body says, shortly: of one input event, its type and its fields."""
    if isinstance(body, dict) and set(body) == {"events"} and isinstance(body["events"], list) and body["events"]:
        body = body["events"][0]
    if not isinstance(body, dict):
        if body is not None:
            yield _value(body)
        return
    if isinstance(body.get("type"), str):
        yield body["type"]
    for name, value in body.items():
        if name != "type":
            yield f"{re.sub(r'[^ -~]', '?', name)}={_value(value)}"


def _value(value: Any) -> str:
    text = short(value, _LONGEST)
    # JSON within text is read more easily without a backslash before every quote.
    if isinstance(value, str) and '\\"' in text and "'" not in text and "\\\\" not in text:
        return "'" + text[1:].removesuffix('"').replace('\\"', '"') + "'"
    return text
