"""The script: which agent answers which message.

Law: matching looks at the message and the session, never at what was said before; what an agent
wants to remember is in the session's own state.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from emulator.domain.scenario import Condition, Facts, Miss, Rule, choose, misses

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

    def add(
        self, play: Callable[[Turn], Awaitable[object]], condition: Condition | None, times: int | None = None
    ) -> None:
        """Have a coroutine function answer the messages for which `condition` holds, `times` of them if it is given.

        Without either it answers what nothing else does; the latest such agent wins.
        """
        name = getattr(play, "__qualname__", repr(play)).rpartition("<locals>.")[2]
        otherwise = condition is None and times is None
        rule = Rule(condition=condition, play=play, name=f"agent {name}", otherwise=otherwise, times=times)
        if otherwise:
            self._agents = [known for known in self._agents if not known.otherwise]
        self._agents.append(rule)

    def choose(self, facts: Facts) -> Part | None:
        """Who plays this turn, using its rule once: the first that holds; the default agent if nothing is scripted."""
        rules = self.rules
        if not rules:
            from emulator.runtime.default_agent import default_agent

            return Part("the default agent", default_agent)
        rule = choose(rules, facts)
        if rule is None:
            return None
        rule.used += 1
        return Part(rule.name, rule.play)

    @property
    def rules(self) -> list[Rule]:
        """Every rule in the order they are asked."""
        return [*self._agents, *(self.scenario.rules if self.scenario is not None else ())]

    def misses(self, facts: Facts) -> list[Miss]:
        """Why no rule answers a message, rule by rule."""
        return misses(self.rules, facts)
