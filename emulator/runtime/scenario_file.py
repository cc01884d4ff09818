"""Scenario files: loading one into rules, players, what it says of MCP servers, and faults.

Law: everything that can be known to be wrong with a scenario is refused here, before anything of it
is played. Nothing is shared between two loadings; what was reached belongs to one of them.
"""

from __future__ import annotations

import keyword
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel, ValidationError

from emulator.domain.expectations import Expectation
from emulator.domain.faults import check as check_fault
from emulator.domain.outages import ServerPlan, plan_of
from emulator.domain.scenario import Condition, Rule
from emulator.domain.servers import Unusable
from emulator.refusals import CATALOGUE, Refusal, did_you_mean
from emulator.runtime.patterns import unusable
from emulator.runtime.player import GIVEN, Player, Step
from emulator.runtime.scenario_problems import problems_of
from emulator.scenario_source import Problem, ScenarioError, Where, path_of, read
from emulator.wire import scenario as wire
from emulator.wire.servers import McpServer

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from emulator.runtime.playback import WriteCheck
    from emulator.runtime.templates import Template, Templates
    from emulator.wire.faults import FaultRequest

__all__ = ["LoadedScenario", "ScenarioError", "condition", "load", "merge"]

# The argument a verb's bare value stands for.
_BARE: Final = {"say": "text", "think": "text", "wait": "seconds", "todos": "items"}
# Arguments that are JSON rather than text, so that a lone expression keeps its type.
_NATIVE: Final = frozenset(("arguments", "args"))
_RESERVED: Final = frozenset((*GIVEN, "range", "loop", "self", "caller", "varargs", "kwargs", "true", "false", "none"))


@dataclass(slots=True)
class LoadedScenario:
    """A scenario that was accepted.

    `document` is its content as JSON, `mcp` what it says of MCP servers by name. The `play` of each rule is a
    `Player`, which keeps count of the steps that were reached.
    """

    name: str
    document: dict[str, Any]
    rules: list[Rule]
    mcp: dict[str, ServerPlan]
    players: list[Player] = field(default_factory=list)
    # Makes what holds the client's writes against the recording this is, if it is one.
    check: Callable[[], WriteCheck] | None = None
    # How it is played, where that was said with it; else the setting says it.
    mode: str | None = None
    # HTTP faults: which requests, and what goes wrong with them.
    faults: list[tuple[dict[str, Any], dict[str, Any]]] = field(default_factory=list)

    def unreached(self) -> list[dict[str, Any]]:
        """The steps no turn has begun: each with `scenario`, `step` (its path), `verb` and `required`."""
        return [
            {"scenario": player.scenario, "step": step.path, "verb": step.verb, "required": step.required}
            for player in self.players
            for step in player.unreached()
        ]

    def fresh(self) -> LoadedScenario:
        """The same scenario with nothing reached. Turns that are playing keep this one's players."""
        players = [Player(player.scenario, player.steps) for player in self.players]
        rules = [
            Rule(rule.condition, player, rule.name, rule.otherwise, rule.times)
            for rule, player in zip(self.rules, players, strict=True)
        ]
        return LoadedScenario(
            self.name, self.document, rules, dict(self.mcp), players, self.check, self.mode, self.faults
        )


def load(source: str | os.PathLike[str] | Mapping[str, Any]) -> LoadedScenario:
    """The scenario in a file (YAML by its extension, else JSON), or in a mapping.

    Raises `ScenarioError`, which names the file, the place of every bad key and what belongs there.
    """
    origin, document = read(source)
    try:
        shape = wire.ScenarioFile.model_validate(document)
    except ValidationError as error:
        raise ScenarioError(origin, problems_of(error)) from None
    name = shape.scenario or (Path(origin).stem if origin else "scenario")
    builder = _Builder(name)
    rules = [builder.rule(rule, ("agent", n)) for n, rule in enumerate(shape.agent)]
    mcp = {server: builder.server(described, ("mcp", server)) for server, described in shape.mcp.items()}
    faults = [builder.fault(asked, ("faults", n)) for n, asked in enumerate(shape.faults)]
    if builder.problems:
        raise ScenarioError(origin, builder.problems)
    return LoadedScenario(name, document, rules, mcp, builder.players, faults=faults)


def merge(scenarios: Sequence[LoadedScenario]) -> LoadedScenario:
    """Several scenarios as one: their rules in order, their servers together.

    Steps keep the name and paths of the scenario they were written in. Raises `ScenarioError` when two
    describe one server.
    """
    if len(scenarios) == 1:
        return scenarios[0]
    merged = LoadedScenario(" + ".join(one.name for one in scenarios), {}, [], {})
    agent: list[Any] = []
    mcp: dict[str, Any] = {}
    faults: list[Any] = []
    for one in scenarios:
        for server in one.mcp:
            if server in merged.mcp:
                other = next(known.name for known in scenarios if server in known.mcp)
                text = f"is described twice, in {other!r} and in {one.name!r}. Keep one"
                raise ScenarioError(None, [Problem(("mcp", server), text)])
        merged.rules += one.rules
        merged.players += one.players
        merged.mcp |= one.mcp
        merged.faults += one.faults
        faults += one.document.get("faults", [])
        merged.check, merged.mode = merged.check or one.check, merged.mode or one.mode
        agent += one.document.get("agent", [])
        mcp |= one.document.get("mcp", {})
    with_faults = {"faults": faults} if faults else {}
    merged.document = {"scenario": merged.name, "mcp": mcp, **with_faults, "agent": agent} if scenarios else {}
    return merged


def condition(when: Mapping[str, Any]) -> Condition:
    """A condition from the `when` of a rule, as Python agents give it. Raises `ScenarioError`."""
    builder = _Builder("")
    document = {"agent": [{"when": when, "do": [{"wait": 0}]}]}
    try:
        _, plain = read(document)
        shape = wire.ScenarioFile.model_validate(plain)
    except ScenarioError as error:
        raise _from_when(error.problems) from None
    except ValidationError as error:
        raise _from_when(problems_of(error)) from None
    rule = builder.rule(shape.agent[0], ("agent", 0))
    if builder.problems:
        raise _from_when(builder.problems)
    assert rule.condition is not None
    return rule.condition


def _from_when(problems: Iterable[Problem]) -> ScenarioError:
    return ScenarioError(None, [Problem(problem.where[2:], problem.text) for problem in problems])


class _Builder:
    """Makes rules of shapes and collects what is wrong with them on the way."""

    def __init__(self, scenario: str) -> None:
        self.scenario = scenario
        self.problems: list[Problem] = []
        self.players: list[Player] = []
        self._templates: Templates | None = None

    def server(self, shape: McpServer, where: Where) -> ServerPlan:
        try:
            return plan_of(shape.written())
        except Unusable as unusable:
            self._wrong((*where, *unusable.where), unusable.text)
            return ServerPlan()

    def fault(self, shape: FaultRequest, where: Where) -> tuple[dict[str, Any], dict[str, Any]]:
        match, asked = shape.given()
        try:
            check_fault(match, asked)
        except Refusal as refused:
            self._wrong(where, f"cannot be: {refused.message.removesuffix('.')}")
        return match, asked

    def rule(self, shape: wire.WhenRule | wire.OtherwiseRule, where: Where) -> Rule:
        otherwise = isinstance(shape, wire.OtherwiseRule)
        holds = None if isinstance(shape, wire.OtherwiseRule) else self._condition(shape.when, (*where, "when"))
        written = shape.otherwise if isinstance(shape, wire.OtherwiseRule) else shape.do
        player = Player(self.scenario, self._steps(written, (*where, "otherwise" if otherwise else "do")))
        self.players.append(player)
        return Rule(holds, player, f"scenario {self.scenario!r}, {path_of(where)}", otherwise, shape.times)

    def _condition(self, shape: wire.When, where: Where) -> Condition:
        message = shape.message or wire.MessageCondition.model_construct()
        self._pattern((*where, "message", "matches"), message.matches)
        return Condition(
            contains=message.contains,
            equals=message.equals,
            matches=message.matches,
            turn=shape.turn,
            session=shape.session,
            metadata=shape.metadata,
            title=shape.title,
            model=shape.model,
            tool=shape.tool,
        )

    def _pattern(self, where: Where, pattern: str | None) -> None:
        if pattern is not None and (wrong := unusable(pattern)) is not None:
            self._wrong(where, wrong)

    def _expectation(self, shape: BaseModel, where: Where, bound: set[str]) -> Expectation:
        """What a step expects. Its `output` and `answer` may hold templates."""
        given: dict[str, Any] = {
            name.removesuffix("_"): _plain(getattr(shape, name)) for name in shape.model_fields_set
        }
        for name in ("matches", "error"):
            self._pattern((*where, name), given.get(name))
        for name in ("output", "answer"):
            if name in given:
                given[name] = self._value(given[name], (*where, name), bound, native=name == "output")
        return Expectation(**given)

    def _steps(self, written: Sequence[BaseModel], where: Where) -> list[Step]:
        bound: set[str] = set()
        steps: list[Step] = []
        for n, shape in enumerate(written):
            if steps and steps[-1].verb == "fail":
                self._wrong((*where, n), "can never be reached: `fail` ends the turn before it")
            step = self._step(shape, (*where, n), bound)
            bound.update(inner.bind for inner in step.and_within() if inner.bind is not None)
            steps.append(step)
        return steps

    def _step(self, shape: BaseModel, where: Where, bound: set[str]) -> Step:
        verb, value = next(pair for pair in shape if pair[0] != wire.REQUIRED)
        required: bool = getattr(shape, wire.REQUIRED)
        at = (*where, verb)
        if verb == "together":
            return self._together(value, at, bound, required=required)
        if isinstance(value, BaseModel):
            written: dict[str, Any] = dict(value)
            places = {name: (*at, name) for name in written}
        else:
            written, places = {_BARE[verb]: value}, {_BARE[verb]: at}
        expected = written.pop("expect", None)
        expect = None if expected is None else self._expectation(expected, (*at, "expect"), bound)
        bind = written.pop("as_", None)
        if bind is not None:
            self._name((*at, "as"), bind)
        arguments = {
            name: self._value(_plain(entry), places[name], bound, native=name in _NATIVE)
            for name, entry in written.items()
        }
        code = arguments.get("code")
        if isinstance(code, str) and code not in CATALOGUE:
            accepted = f"Accepted: {', '.join(CATALOGUE)}.{did_you_mean(code, CATALOGUE)}"
            self._wrong(places["code"], f"is {code!r}, which is no error code of the API. {accepted}")
        return Step(verb, path_of(where), arguments, bind, expect=expect, required=required)

    def _together(self, written: Sequence[BaseModel], where: Where, bound: set[str], *, required: bool) -> Step:
        steps = tuple(self._step(shape, (*where, n), bound) for n, shape in enumerate(written))
        names: set[str] = set()
        for n, step in enumerate(steps):
            if step.bind in names:
                self._wrong((*where, n, step.verb, "as"), f"is {step.bind!r}, which a step beside it gives as well")
            names |= {step.bind} if step.bind is not None else set()
        return Step("together", path_of(where[:-1]), steps=steps, required=required)

    def _name(self, where: Where, name: str) -> None:
        if name in _RESERVED:
            self._wrong(where, f"is {name!r}, which templates use for something else. Choose another name")
        elif not name.isidentifier() or keyword.iskeyword(name):
            self._wrong(where, f"is {name!r}. A name is letters, digits and _, and does not begin with a digit")

    def _value(self, value: Any, where: Where, bound: set[str], *, native: bool) -> Any:
        match value:
            case dict():
                return {key: self._value(entry, (*where, key), bound, native=native) for key, entry in value.items()}
            case list():
                return [self._value(entry, (*where, n), bound, native=native) for n, entry in enumerate(value)]
            case str() if "{{" in value or "{%" in value:
                return self._template(value, where, bound, native=native)
        return value

    def _template(self, source: str, where: Where, bound: set[str], *, native: bool) -> Template | str:
        # Imported here: a scenario without templates does without Jinja.
        from emulator.runtime.templates import TemplateProblem, Templates

        self._templates = self._templates or Templates()
        try:
            template = self._templates.compile(source, native=native)
        except TemplateProblem as error:
            self._wrong(where, f"is not a template that can be rendered: {error}")
            return source
        known = [*GIVEN, *sorted(bound)]
        for name in sorted(template.names.difference(known)):
            hint = did_you_mean(name, known)
            self._wrong(where, f"uses `{name}`, which no step before it gives. Known: {', '.join(known)}.{hint}")
        return template

    def _wrong(self, where: Where, text: str) -> None:
        self.problems.append(Problem(where, text))


def _plain(value: Any) -> Any:
    match value:
        case BaseModel():
            return {name: _plain(entry) for name, entry in value}
        case list():
            return [_plain(entry) for entry in value]
    return value
