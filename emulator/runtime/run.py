"""A run: one turn while the agent is on it, and what its script may know of the session.

Law: a run that is over emits nothing; whoever still holds it gets `TurnOver`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pydantic_core import from_json

from emulator import render
from emulator.domain.scenario import Facts
from emulator.domain.tools import FunctionTool

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Mapping, Sequence

    from emulator.domain.session import Session, Turn
    from emulator.domain.tools import ToolSet
    from emulator.domain.world import Organization
    from emulator.runtime.stepping import Steps
    from emulator.runtime.tool_server import ToolServer


class TurnOver(Exception):
    """A verb was used after its turn had ended."""


class ScriptError(Exception):
    """A script did something the API does not allow, or could not go on. Fails the turn, loudly."""


class Failed(Exception):
    """The script asked for the turn to fail, with a code and a message."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


@dataclass(frozen=True, slots=True)
class CallResult:
    """What came of a function call: `output` is text when it succeeded, `error` when it did not."""

    success: bool
    output: str | None = None
    error: str | None = None
    # Tells whether it is as a mapping expects; only where a script waits for it.
    check: Callable[[Mapping[str, Any]], bool] | None = field(default=None, repr=False, compare=False)

    def expect(self, **expected: Any) -> bool:
        """Say what this must be like, and learn whether it is. A miss fails the test, and not the turn.

        `success` is true or false; `output` equals the output read as JSON, or its text; `schema` is a JSON Schema
        of it; `matches` and `error` are regular expressions found in the output's text and in the error.
        """
        assert self.check is not None, "only what a script is given can be expected to be something"
        return self.check(expected)

    def json(self) -> Any:
        """`output` read as JSON. Raises `ValueError` when it is not JSON or there is none."""
        if self.output is None:
            raise ValueError(f"the call did not succeed, so it has no output: {self.error}")
        return from_json(self.output)


@dataclass(frozen=True)
class SessionView:
    """What a script may know of its session."""

    id: str
    title: str | None
    metadata: dict[str, str]
    model: str | None
    text: dict[str, Any] | None
    _tools: ToolSet = field(repr=False)
    _disabled: Sequence[str] = field(repr=False)

    @cached_property
    def tools(self) -> list[dict[str, Any]]:
        """Its tools, in the shape the API reads back."""
        return render.tools(self._tools, self._disabled)


@dataclass(slots=True)
class Run:
    """A turn the agent is on. `waits` holds the future of each parked call, by call id.

    Tools, mode and rules are those of its beginning: a change applies from the next turn.
    """

    organization: Organization
    session: Session
    turn: Turn
    tools: ToolSet
    servers: dict[str, ToolServer]
    unreachable: dict[str, str]
    steps: Steps
    state: dict[str, Any]
    approval_mode: str
    permission_rules: list[dict[str, Any]]
    over: bool = False
    steers: list[str] = field(default_factory=list)
    waits: dict[str, asyncio.Future[Any]] = field(default_factory=dict)

    @property
    def at_rest(self) -> bool:
        """Whether nothing of this turn can go on without somebody outside (design, "At rest")."""
        return self.turn.settled or (self.steps.parked and not self.steps.runnable)

    def facts(self, disabled: Sequence[str]) -> Facts:
        """What the rules of a script look at. `disabled` are the built-in tools that are switched off."""
        session = self.session
        return Facts(
            message=self.turn.text,
            turn=self.turn.number,
            title=session.title,
            metadata=session.metadata,
            model=session.agent.model,
            tools=self.tools.names(disabled),
            session=self.organization.number(session.id) or 0,
        )

    def check(self) -> None:
        """Raise `TurnOver` once the turn has ended."""
        if self.over or self.turn.settled or self.session.deleted:
            raise TurnOver("this turn has ended")

    def require(self, name: str) -> None:
        """Raise `ScriptError` unless a function of that name is declared."""
        if self.tools.function(name) is None:
            declared = sorted(tool.name for tool in self.tools.tools or () if isinstance(tool, FunctionTool))
            raise ScriptError(
                f"the agent called the function {name!r}, which this session does not declare "
                f"(declared: {', '.join(declared) or 'none'})"
            )
