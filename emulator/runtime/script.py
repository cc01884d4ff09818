"""The script: which agent answers which message.

Law: matching looks at the message and the session, never at what was said before; what an agent
wants to remember is in the session's own state.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from emulator.domain.scenario import Condition, Facts, Rule, choose

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from emulator.runtime.scenario_file import LoadedScenario
    from emulator.runtime.turn import Turn


@dataclass(frozen=True, slots=True)
class Part:
    """The agent chosen for a turn, and the name it goes by in an error."""

    name: str
    play: Callable[[Turn], Awaitable[object]]


class Script:
    """Everything that was scripted on one emulator: Python agents, then the scenario."""

    def __init__(self) -> None:
        self.scenario: LoadedScenario | None = None
        self._agents: list[Rule] = []

    def add(self, play: Callable[[Turn], Awaitable[object]], condition: Condition | None) -> None:
        """Have a coroutine function answer the messages for which `condition` holds.

        Without a condition it answers what nothing else does; the latest such agent wins.
        """
        name = getattr(play, "__qualname__", repr(play))
        rule = Rule(condition=condition, play=play, name=f"agent {name}", otherwise=condition is None)
        if condition is None:
            self._agents = [known for known in self._agents if not known.otherwise]
        self._agents.append(rule)

    def choose(self, facts: Facts) -> Part | None:
        """Who plays this turn: the first rule that holds, else the default agent if nothing is scripted."""
        rules = [*self._agents, *(self.scenario.rules if self.scenario is not None else ())]
        if not rules:
            from emulator.runtime.default_agent import default_agent

            return Part("the default agent", default_agent)
        rule = choose(rules, facts)
        return None if rule is None else Part(rule.name, rule.play)
