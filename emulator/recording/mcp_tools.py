"""MCP tools: what a recording shows of the tools that were called, as a scenario describes servers.

Law: a tool that gave one result is described with it, and with the calls that went otherwise: those that took
time on a virtual clock, those that never ended, and failures. What no description can do, a `use` step does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from emulator.domain.outages import CALL_DID_NOT_ANSWER, CALL_SECONDS
from emulator.domain.permissions import READING, decide

if TYPE_CHECKING:
    from collections.abc import Iterator

    from emulator.recording.story import SessionStory, Story

Named: TypeAlias = tuple[str, str]


@dataclass(slots=True)
class Called:
    """One call of a tool. `result` is its text and whether it failed; `None` where whoever stopped the turn stopped it.

    `seconds` is what it took on a virtual clock.
    """

    call_id: str
    line: int
    began: dict[str, Any]
    result: tuple[str, bool] | None = None
    seconds: float = 0.0

    @property
    def lasts(self) -> bool:
        return self.result is None or self.seconds > 0


class Tools:
    """The MCP tools that were called. `described` and `calls` are theirs by server, as a scenario has them."""

    def __init__(self, story: Story) -> None:
        self._story = story
        self._servers = sorted(story.servers, key=len, reverse=True)
        self._freely: set[Named] = set()
        self._by_use: set[Named] = set()
        self._lasting: set[str] = set()
        self.described: dict[str, dict[str, Any]] = {}
        self.calls: dict[str, list[dict[str, Any]]] = {}
        found: dict[Named, list[Called]] = {}
        for session in story.sessions:
            for named, called in self._follow(session):
                found.setdefault(named, []).append(called)
        for named, all_of_it in found.items():
            self._describe(named, sorted(all_of_it, key=lambda called: called.line))

    def named(self, tool_name: Any) -> Named | None:
        """The server and the tool that an agent's tool name means."""
        for server in self._servers:
            prefix = f"mcp_{server}_"
            if isinstance(tool_name, str) and tool_name.startswith(prefix) and len(tool_name) > len(prefix):
                return server, tool_name[len(prefix) :]
        return None

    def reads(self, tool_name: str) -> bool:
        """Whether a tool only reads, as far as is known."""
        return tool_name in READING or self.named(tool_name) in self._freely

    def lasts(self, call_id: str) -> bool:
        """Whether the `mcp` step of a call takes time, so that others go on beside it."""
        return call_id in self._lasting

    def step(self, tool_name: str, args: dict[str, Any]) -> dict[str, Any] | None:
        """The `mcp` step that does what was recorded; `None` where only `use` can."""
        named = self.named(tool_name)
        if named is None or named in self._by_use:
            return None
        return {"mcp": {"server": named[0], "tool": named[1], **({"arguments": args} if args else {})}}

    # Inside

    def _follow(self, session: SessionStory) -> Iterator[tuple[Named, Called]]:
        """The calls of one session that came to their server."""
        number, turn = 0, ""
        running: dict[str, tuple[Named, Called]] = {}
        for event in session.events:
            payload = event["payload"]
            named = self.named(payload.get("toolName") or payload.get("name"))
            match event["event"]:
                case "turn.started":
                    number, turn = number + 1, str(payload.get("turnId"))
                case "turn.ended":
                    if self._stopped(turn):
                        yield from running.values()
                    running.clear()
                case "approval.requested" if named is not None:
                    if not payload.get("sensitive") or self._denied(session, number, payload):
                        # As it is by itself where the tool only reads.
                        self._freely.add(named)
                case "agent.tool_call" if named is not None:
                    call_id = str(payload.get("toolCallId"))
                    running[call_id] = named, Called(call_id, event["line"], event)
                    if self._denied(session, number, payload):
                        self._freely.add(named)
                case "agent.tool_result" if named is not None:
                    _, called = running.pop(str(payload.get("toolCallId")), (named, None))
                    text, is_error = str(payload.get("summary", "")), bool(payload.get("isError"))
                    if called is not None and not (is_error and text.startswith(f"{named[0]} is unavailable: ")):
                        called.result, called.seconds = (text, is_error), self._seconds(called.began, event)
                        yield named, called
        yield from running.values()

    def _stopped(self, turn: str) -> bool:
        """Whether a turn was ended from outside, as it will be again: by the client, or by the clock that it moves."""
        settled = self._story.settled.get(turn, {})
        reclaimed = self._story.virtual and (settled.get("error") or {}).get("code") == "sandbox_unavailable"
        return settled.get("status") == "cancelled" or reclaimed

    def _denied(self, session: SessionStory, number: int, payload: dict[str, Any]) -> bool:
        """Whether a tool that changes something would have been denied."""
        tool = str(payload.get("toolName") or payload.get("name"))
        return decide(*session.governed_by(number), tool, payload.get("args") or {}).decision == "deny"

    def _seconds(self, began: dict[str, Any], event: dict[str, Any]) -> float:
        """What a call took beyond the millisecond of each event."""
        if not self._story.virtual or "time" not in event or "time" not in began:
            return 0.0
        passed = event["time"] - began["time"]
        return (passed - 1) / 1000 if passed > self._story.between(began, event) else 0.0

    def _describe(self, named: Named, found: list[Called]) -> None:
        server, tool = named
        results = list(dict.fromkeys(called.result for called in found if called.result is not None))
        usual = next((result for result in results if not result[1]), results[0] if results else ("", False))
        entries = [_entry(called, usual, tool, server) for called in found]
        lasting = [called.call_id for called in found if called.lasts]
        if len(results) > 1 and (not lasting or None in entries):
            # Each step has its own result, wherever in the conversation it comes.
            self._by_use.add(named)
            if named not in self._freely:
                return
        described: dict[str, Any] = {"text": usual[0]}
        if usual[1]:
            described["is_error"] = True
        if named in self._freely:
            described["read_only"] = True
        self.described.setdefault(server, {})[tool] = described
        if named not in self._by_use and lasting:
            self._lasting.update(lasting)
            calls = [entry for entry in entries if entry is not None]
            while calls[-1]["fault"] == "ok":
                del calls[-1]
            self.calls.setdefault(server, []).extend(calls)


def _entry(called: Called, usual: tuple[str, bool], tool: str, server: str) -> dict[str, Any] | None:
    """How a call goes, where the tool usually gives `usual`; `None` for one that cannot be said."""
    timed_out = (f"{server}: {CALL_DID_NOT_ANSWER}", True)
    match called.result, called.seconds:
        case None, _:
            return {"fault": "hang", "tool": tool}
        case result, seconds if result == usual:
            return {"fault": "slow", "seconds": seconds, "tool": tool} if seconds else {"fault": "ok", "tool": tool}
        case result, seconds if result == timed_out and seconds == CALL_SECONDS:
            return {"fault": "time_out", "tool": tool}
        case (text, True), 0 if text:
            return {"fault": "error", "text": text, "tool": tool}
    return None
