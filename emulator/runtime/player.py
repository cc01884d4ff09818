"""The player: plays the steps of a scenario through the verbs of a turn.

Law: a scenario can do nothing that a Python script could not; each step is one verb of the turn,
called with what its templates gave at that moment. The player knows no file format and no template
language: a template is anything with `render`.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, NoReturn, Protocol, TypeAlias

from emulator.domain.expectations import Expectation, parsed
from emulator.runtime.run import Failed, ScriptError, TurnOver

# What a template sees beside the names that `as` gave.
GIVEN: Final = ("message", "turn", "session", "state")

Scope: TypeAlias = dict[str, Any]


class CallOutcome(Protocol):
    """What came of a host function: `output` is text when it succeeded, `error` when it did not."""

    @property
    def success(self) -> bool: ...
    @property
    def output(self) -> str | None: ...
    @property
    def error(self) -> str | None: ...


class ToolOutcome(Protocol):
    """What an MCP tool gave."""

    @property
    def text(self) -> str: ...
    @property
    def content(self) -> Sequence[Mapping[str, Any]]: ...
    @property
    def structured(self) -> Any: ...
    @property
    def is_error(self) -> bool: ...


class SessionFacts(Protocol):
    """What a script may know of its session. `tools` and `text` are as the API reads them back."""

    @property
    def id(self) -> str: ...
    @property
    def title(self) -> str | None: ...
    @property
    def metadata(self) -> Mapping[str, str]: ...
    @property
    def model(self) -> str | None: ...
    @property
    def tools(self) -> Sequence[Mapping[str, Any]]: ...
    @property
    def text(self) -> Mapping[str, Any] | None: ...


class Verbs(Protocol):
    """A turn, as far as scripts made of data need one (the verbs are the design's)."""

    @property
    def message(self) -> str: ...
    @property
    def number(self) -> int: ...
    @property
    def session(self) -> SessionFacts: ...
    @property
    def state(self) -> dict[str, Any]: ...
    @property
    def steers(self) -> Sequence[str]: ...

    async def say(self, text: str, /) -> object: ...
    async def think(self, text: str, /) -> object: ...
    async def call_with(
        self,
        function: str,
        arguments: dict[str, Any],
        /,
        *,
        lose: bool = False,
        expires: bool = False,
        expect: Expected | None = None,
    ) -> CallOutcome: ...
    async def ask(
        self,
        question: str,
        options: list[str] | None = None,
        allow_freeform: bool = True,
        /,
        *,
        console: str | None = None,
        expect: Expected | None = None,
    ) -> str: ...
    async def approve(
        self,
        tool: str,
        args: dict[str, Any] | None = None,
        sensitive: bool = False,
        /,
        *,
        console: bool | None = None,
        refused: str | None = None,
        expect: Expected | None = None,
    ) -> bool: ...
    async def use(
        self,
        tool: str,
        args: dict[str, Any] | None = None,
        summary: str = "",
        is_error: bool = False,
        exit_code: int | None = None,
        /,
    ) -> bool: ...
    async def mcp(self, server: str, tool: str, arguments: dict[str, Any] | None = None, /) -> ToolOutcome: ...
    async def write(self, path: str, content: str | bytes, size: int | None = None, /) -> bool: ...
    async def delete(self, path: str, /) -> bool: ...
    async def todos(self, items: list[dict[str, str]], /) -> object: ...
    async def compact(self, before: int, after: int, /) -> object: ...
    async def preview(self, port: int, body: str | Mapping[str, str] | None = None, /) -> object: ...
    async def together(self, *verbs: Coroutine[Any, Any, Any]) -> Sequence[Any]: ...
    async def wait(self, seconds: float, /) -> object: ...
    async def fail(self, code: str, message: str, /) -> object: ...


@dataclass(frozen=True, slots=True)
class Expected:
    """What an answer must be like, and where that is written: the path of a step, a place in a Python script."""

    expectation: Expectation
    where: str
    scenario: str | None = None


class Renders(Protocol):
    """A template: `render` gives its text or JSON value. Raises `ValueError` saying why it cannot."""

    def render(self, scope: Mapping[str, Any], /) -> Any: ...


class ScenarioStepError(ScriptError):
    """A step that could not be carried out. `step` is its path, `agent[0].do[1]`."""

    def __init__(self, scenario: str, step: str, message: str) -> None:
        super().__init__(f"scenario {scenario!r}, {step}: {message}")
        self.scenario = scenario
        self.step = step
        self.message = message


@dataclass(frozen=True, slots=True)
class Step:
    """One verb of a play. `arguments` may hold templates at any depth; `bind` is the name of its result.

    `steps` are those of a `together`. `expect` is what the answer must be like; a `required` step must be reached.
    """

    verb: str
    path: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    bind: str | None = None
    steps: tuple[Step, ...] = ()
    expect: Expectation | None = None
    required: bool = False

    def and_within(self) -> list[Step]:
        """This step and those inside it."""
        return [self, *(inner for step in self.steps for inner in step.and_within())]


# What arguments are where a step says nothing by them; else `None`.
_UNSAID: Final[Mapping[str, Any]] = {"expires": False}

# Verb -> how a turn is made to do it, and how a template sees the result.
_Do: TypeAlias = Callable[[Verbs, Mapping[str, Any], Mapping[str, Any]], Awaitable[Any]]
_DO: Final[Mapping[str, _Do]] = {
    "say": lambda turn, a, e: turn.say(a["text"]),
    "think": lambda turn, a, e: turn.think(a["text"]),
    "call": lambda turn, a, e: turn.call_with(
        a["function"], a["arguments"], lose=a["lose"], **_given(a, "expires"), **e
    ),
    "ask": lambda turn, a, e: turn.ask(a["question"], a["options"], a["allow_freeform"], **_given(a, "console"), **e),
    "approve": lambda turn, a, e: turn.approve(
        a["tool"], a["args"], a["sensitive"], **_given(a, "console", "refused"), **e
    ),
    "use": lambda turn, a, e: turn.use(a["tool"], a["args"], a["summary"], a["is_error"], a["exit_code"]),
    "mcp": lambda turn, a, e: turn.mcp(a["server"], a["tool"], a["arguments"]),
    "write": lambda turn, a, e: turn.write(a["path"], _content(a["content"], a["encoding"]), a["size"]),
    "delete": lambda turn, a, e: turn.delete(a["path"]),
    "todos": lambda turn, a, e: turn.todos(a["items"]),
    "compact": lambda turn, a, e: turn.compact(a["before"], a["after"]),
    "preview": lambda turn, a, e: turn.preview(a["port"], a["body"]),
    "wait": lambda turn, a, e: turn.wait(a["seconds"]),
    "fail": lambda turn, a, e: turn.fail(a["code"], a["message"]),
}


class Player:
    """An agent made of steps. Await it with a turn; it may play several turns at once.

    `reached` holds the paths of the steps that any of them has begun.
    """

    def __init__(self, scenario: str, steps: Sequence[Step]) -> None:
        self.scenario = scenario
        self.steps = tuple(steps)
        self.reached: set[str] = set()

    async def __call__(self, turn: Verbs) -> None:
        """Play every step in order. Raises `ScenarioStepError`, and what ends a turn as it comes."""
        bound: Scope = {}
        for step in self.steps:
            await self._play(turn, step, bound)

    def unreached(self) -> list[Step]:
        """The steps no turn has begun so far, in the order they are written."""
        return [step for whole in self.steps for step in whole.and_within() if step.path not in self.reached]

    async def _play(self, turn: Verbs, step: Step, bound: Scope) -> None:
        self.reached.add(step.path)
        if step.steps:
            await turn.together(*(self._play(turn, inner, bound) for inner in step.steps))
            return
        arguments, expected = self._render(turn, step, bound)
        try:
            result = await _DO[step.verb](turn, arguments, expected)
        except (TurnOver, Failed, ScenarioStepError):
            raise
        except Exception as error:
            self._stop(step, error)
        if step.bind is not None:
            bound[step.bind] = _SEEN.get(step.verb, _itself)(result)

    def _render(self, turn: Verbs, step: Step, bound: Scope) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        """The arguments of a verb, and beside them what it is to expect, if anything."""
        # Made for the first template there is: most steps have none.
        scope = cache(lambda: _scope(turn) | bound)
        try:
            arguments = {name: _rendered(value, scope) for name, value in step.arguments.items()}
            if step.expect is None:
                return arguments, {}
            given = {
                name: _rendered(value, scope) if name in ("output", "answer") else value
                for name in step.expect.given()
                for value in (getattr(step.expect, name),)
            }
            return arguments, {"expect": Expected(Expectation(**given), step.path, self.scenario)}
        except Exception as error:
            self._stop(step, error)

    def _stop(self, step: Step, error: Exception) -> NoReturn:
        message = str(error) or type(error).__name__
        raise ScenarioStepError(self.scenario, step.path, message) from error


def _rendered(value: Any, scope: Callable[[], Scope]) -> Any:
    match value:
        case dict():
            return {key: _rendered(entry, scope) for key, entry in value.items()}
        case list():
            return [_rendered(entry, scope) for entry in value]
        case None | bool() | int() | float() | str():
            return value
    return value.render(scope())


def _scope(turn: Verbs) -> Scope:
    """What templates read: plain values, so that no template holds the turn itself."""
    session = turn.session
    return {
        "message": turn.message,
        "turn": {"message": turn.message, "number": turn.number, "steers": list(turn.steers)},
        "session": {
            "id": session.id,
            "title": session.title,
            "metadata": dict(session.metadata),
            "model": session.model,
            "tools": [dict(tool) for tool in session.tools],
        },
        "state": turn.state,
    }


def _given(arguments: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """The arguments of those names that a step has, and says something by."""
    return {name: arguments[name] for name in names if arguments.get(name, _UNSAID.get(name)) != _UNSAID.get(name)}


def _content(written: str, encoding: str) -> str | bytes:
    return b64decode(written, validate=True) if encoding == "base64" else written


def _itself(result: Any) -> Any:
    return result


def _call_seen(result: CallOutcome) -> dict[str, Any]:
    text = result.output
    return {"success": result.success, "output": parsed(text), "text": text, "error": result.error}


def _tool_seen(result: ToolOutcome) -> dict[str, Any]:
    return {
        "text": result.text,
        "content": [dict(block) for block in result.content],
        "structured": result.structured,
        "is_error": result.is_error,
    }


_SEEN: Final[Mapping[str, Callable[[Any], Any]]] = {"call": _call_seen, "mcp": _tool_seen}
