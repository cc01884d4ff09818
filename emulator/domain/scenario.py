"""Scenario: which script answers a message, and what a simulated MCP server is like.

Law: choosing is a pure function of the rules and the facts of a turn. It plays nothing, and asking
twice gives the same rule.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known about a turn when its script is chosen.

    `turn` counts from 1 in its session. `tools` are the names the session declares: its functions, its
    MCP servers and its built-ins.
    """

    message: str
    turn: int = 1
    title: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    model: str | None = None
    tools: frozenset[str] = frozenset()


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


@dataclass(frozen=True, slots=True)
class Rule:
    """A script and when it answers. `play` is called with the turn and awaited.

    Without a condition a rule always holds; an `otherwise` rule waits until no other one does.
    """

    condition: Condition | None
    play: Callable[[Any], Awaitable[object]]
    name: str
    otherwise: bool = False


def choose(rules: Iterable[Rule], facts: Facts) -> Rule | None:
    """The first rule that holds; failing that the first `otherwise`, wherever it stands; else `None`."""
    fallback: Rule | None = None
    for rule in rules:
        if rule.otherwise:
            fallback = fallback or rule
        elif rule.condition is None or rule.condition.holds(facts):
            return rule
    return fallback


@dataclass(frozen=True, slots=True)
class SimulatedConnect:
    """How one connect to a simulated MCP server ends. `reason` belongs to `down`."""

    state: Literal["up", "down"]
    reason: str = "fetch failed"


@dataclass(frozen=True, slots=True)
class SimulatedTool:
    """A tool of a simulated MCP server, and the one result it gives whatever it is called with.

    `content` are MCP content blocks, whichever of the three was written: `text` is one block of them,
    and `structured` alone has its JSON as a text beside it.
    """

    description: str = ""
    read_only: bool = False
    text: str | None = None
    content: list[dict[str, Any]] = field(default_factory=list)
    structured: dict[str, Any] | None = None
    is_error: bool = False
    input_schema: dict[str, Any] = field(default_factory=lambda: {"type": "object"})


@dataclass(frozen=True, slots=True)
class SimulatedDescription:
    """A simulated MCP server as a scenario describes it (contract §5).

    `times` is how many connects fail before a `down` server comes up; `None` is for good. A `script`,
    when there is one, counts instead: how the first connects end, one entry each, then it is up.
    """

    state: Literal["up", "down"] = "up"
    reason: str = "fetch failed"
    times: int | None = None
    script: list[SimulatedConnect] = field(default_factory=list)
    tools: dict[str, SimulatedTool] = field(default_factory=dict)
