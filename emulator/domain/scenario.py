"""Scenario: which script answers a message.

Law: choosing is a pure function of the rules and the facts of a turn. It plays nothing, and asking
twice gives the same rule.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from emulator.differences import short
from emulator.redaction import WITHHELD, encodable, names_a_secret, scrub, scrub_value

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known about a turn when its script is chosen.

    `turn` counts from 1 in its session, `session` in its organization by creation. `tools` are the names the
    session declares: its functions, its MCP servers and its built-ins.
    """

    message: str
    turn: int = 1
    title: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    model: str | None = None
    tools: frozenset[str] = frozenset()
    session: int = 1


@dataclass(frozen=True, slots=True)
class Condition:
    """The `when` of a rule. Every part that is given must hold; one without parts always holds.

    `contains` looks for a piece of the message and ignores case; `equals` and `matches` (a regular
    expression, searched for anywhere in the message) do not. `metadata` is what the session's metadata
    must have at least. `tool` is a name from `Facts.tools`. An invalid `matches` raises `re.error`
    when asked, so check it first.
    """

    contains: str | None = None
    equals: str | None = None
    matches: str | None = None
    turn: int | None = None
    metadata: Mapping[str, str] | None = None
    title: str | None = None
    model: str | None = None
    tool: str | None = None
    session: int | None = None

    def holds(self, facts: Facts) -> bool:
        """Whether every given part is true of `facts`."""
        return not self.failures(facts)

    def failures(self, facts: Facts) -> list[tuple[str, Any, Any]]:
        """The parts that are not true of `facts`, each as (name, wanted, actual), in a fixed order."""
        found: list[tuple[str, Any, Any]] = []
        message = facts.message
        if self.contains is not None and self.contains.casefold() not in message.casefold():
            found.append(("message.contains", self.contains, message))
        if self.equals is not None and self.equals != message:
            found.append(("message.equals", self.equals, message))
        if self.matches is not None and re.search(self.matches, message) is None:
            found.append(("message.matches", self.matches, message))
        if self.session is not None and self.session != facts.session:
            found.append(("session", self.session, facts.session))
        if self.turn is not None and self.turn != facts.turn:
            found.append(("turn", self.turn, facts.turn))
        for key, wanted in (self.metadata or {}).items():
            actual = facts.metadata.get(key)
            if actual != wanted:
                found.append((f"metadata.{key}", wanted, actual))
        if self.title is not None and self.title != facts.title:
            found.append(("title", self.title, facts.title))
        if self.model is not None and self.model != facts.model:
            found.append(("model", self.model, facts.model))
        if self.tool is not None and self.tool not in facts.tools:
            found.append(("tool", self.tool, sorted(facts.tools)))
        return found


@dataclass(slots=True, eq=False)
class Rule:
    """A script and when it answers. `play` is called with the turn and awaited.

    Without a condition a rule always holds; an `otherwise` rule waits until no other one does. One that has
    answered `times` messages is used up; whoever plays it counts in `used`.
    """

    condition: Condition | None
    play: Callable[[Any], Awaitable[object]]
    name: str
    otherwise: bool = False
    times: int | None = None
    used: int = 0

    @property
    def used_up(self) -> bool:
        return self.times is not None and self.used >= self.times


def choose(rules: Iterable[Rule], facts: Facts) -> Rule | None:
    """The first rule that holds and is not used up; failing that the first `otherwise`; else `None`."""
    fallback: Rule | None = None
    for rule in rules:
        if rule.used_up:
            continue
        if rule.otherwise:
            fallback = fallback or rule
        elif rule.condition is None or rule.condition.holds(facts):
            return rule
    return fallback


@dataclass(frozen=True, slots=True)
class Miss:
    """Why a rule did not answer a message: what of its condition failed, as (name, wanted, actual), or it was used up.

    Where both are so, both are told.
    """

    rule: Rule
    failures: list[tuple[str, Any, Any]]

    @property
    def reason(self) -> str:
        """In a line, with both values of each part that failed."""
        said = [] if not self.rule.used_up else [f"used up after {self.rule.times}"]
        said += [f"{name}: wanted {short(wanted)}, was {short(actual)}" for name, wanted, actual in self._shown()]
        return "; ".join(said)

    def as_json(self) -> dict[str, Any]:
        return {
            "rule": self.rule.name,
            "reason": self.reason,
            "used_up": self.rule.used_up,
            "times": self.rule.times,
            "used": self.rule.used,
            "failed": [
                {"condition": name, "wanted": wanted, "actual": actual} for name, wanted, actual in self._shown()
            ],
        }

    def _shown(self) -> list[tuple[str, Any, Any]]:
        """The parts that failed, without secrets."""
        return [
            (
                scrub(name),
                *((WITHHELD, WITHHELD) if names_a_secret(name) else (scrub_value(wanted), scrub_value(actual))),
            )
            for name, wanted, actual in self.failures
        ]


def misses(rules: Iterable[Rule], facts: Facts) -> list[Miss]:
    """For each rule, in order, why it does not answer: for a message that `choose` found nothing for."""
    return [Miss(rule, [] if rule.condition is None else rule.condition.failures(facts)) for rule in rules]


# How many rules the error of a turn tells of.
_TOLD: Final = 4


def unanswered(misses: Sequence[Miss]) -> str:
    """Why nothing of the script answers a message, for the error of its turn."""
    told = [f"{miss.rule.name}: {scrub(miss.reason)}" for miss in misses[:_TOLD]]
    told += [f"And {len(misses) - _TOLD} more rules"] if len(misses) > _TOLD else []
    return encodable(f"No rule of the script answers this message. {'. '.join(told)}.")
