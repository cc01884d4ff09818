"""Leave: whether the agent may do what it is about to, by the rules, the mode, and who is asked.

Law: what is refused has not happened, and shows as `approval.resolved`. What was approved may be done once
without asking again: a step is asked about once.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from emulator.domain.files import UnusablePath, spelled_out
from emulator.domain.permissions import READING, act_of, decide
from emulator.runtime.run import ScriptError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from emulator.domain.action import Action
    from emulator.domain.permissions import Verdict
    from emulator.runtime.engine import Engine
    from emulator.runtime.run import Run


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether the agent may, `refused` being why it may not; and what was asked of the client, if anything was."""

    refused: str | None = None
    asked: Action | None = None

    @property
    def granted(self) -> bool:
        """Whether it may."""
        return self.refused is None


class Leave:
    """The leave an agent has and gets in one turn. `record` shows an event of it."""

    def __init__(self, engine: Engine, run: Run, record: Callable[[str, dict[str, Any]], Awaitable[None]]) -> None:
        self._engine = engine
        self._run = run
        self._record = record
        self._given: list[tuple[str, Any]] = []

    def give(self, tool: str, args: Mapping[str, Any]) -> None:
        """Let the agent do that once without asking."""
        self._given.append(act_of(tool, args))

    async def ask(
        self,
        tool: str,
        args: dict[str, Any],
        *,
        sensitive: bool | None = None,
        read_only: bool = False,
        asks: bool = False,
        at_once: tuple[bool | None, str | None] | None = None,
    ) -> Decision:
        """Decide on `tool` with `args`, and wait where the client has to.

        `asks`: the agent asks by itself, and does not act. `read_only`: the tool is said to change nothing.
        `sensitive` is what an approval says of itself; by itself it is where the tool could change something.
        `at_once` is what somebody at the console decides, or else the code by which the platform refuses.
        """
        engine, run = self._engine, self._run
        run.check()
        verdict = self._verdict(tool, args, read_only=read_only, asks=asks)
        if verdict.decision == "allow" or (verdict.decision == "ask" and not asks and self._take(tool, args)):
            return Decision()
        if verdict.decision == "deny":
            denial = {"approved": False, "name": tool, "code": verdict.code, "reason": verdict.reason}
            await self._record("approval.resolved", {"toolCallId": run.session.next_call_id(), **denial})
            return Decision(verdict.reason)
        if sensitive is None:
            sensitive = not read_only and tool not in READING
        event = {"name": tool, "args": args, "sensitive": sensitive}
        action = run.session.ask(run.turn, "approval", tool, args, ("approval.requested", event))
        decide_at_once = None
        if at_once is not None:
            console, code = at_once
            deciding = partial(engine.actions.approval, run.organization, run.session, action.call_id)
            decide_at_once = partial(deciding, bool(console) and code is None, code)
        approved: bool = await engine.actions.park(run, action, decide_at_once)
        run.check()
        if not approved:
            return Decision(f"{tool} was not approved.", action)
        if asks:
            self.give(tool, args)
        return Decision(asked=action)

    async def to_change(self, tool: str, path: str, place: Callable[[str], str], data: bytes | None = None) -> bool:
        """Whether the agent may change the file at a path, by `write` with `data` or by `delete`.

        `place` raises for a path that cannot be: the script's error, unless the agent is refused.
        """
        args: dict[str, Any] = {"path": spelled_out(path)}
        verdict = self._verdict(tool, args)
        if verdict.decision != "deny":
            try:
                place(path)
            except (UnusablePath, FileNotFoundError) as unusable:
                raise ScriptError(f"the agent could not {tool} {path!r}: {unusable}") from None
        if verdict.decision == "ask" and data is not None:
            with suppress(UnicodeDecodeError):
                args["content"] = data.decode()
        return (await self.ask(tool, args)).granted

    def _verdict(self, tool: str, args: Mapping[str, Any], *, read_only: bool = False, asks: bool = False) -> Verdict:
        run = self._run
        return decide(run.approval_mode, run.permission_rules, tool, args, read_only=read_only, asks=asks)

    def _take(self, tool: str, args: Mapping[str, Any]) -> bool:
        """Use up the leave for an act, if there is any."""
        act = act_of(tool, args)
        if act not in self._given:
            return False
        self._given.remove(act)
        return True
