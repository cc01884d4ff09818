"""A turn that does nothing but write down what a script asked of it, for tests of scripts made of data."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from emulator.runtime.run import CallResult, Failed
from emulator.runtime.tool_server import ToolResult

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping, Sequence


@dataclass
class RecordedSession:
    """The session of a recording turn."""

    id: str = "ses-1"
    title: str | None = "Support"
    metadata: dict[str, str] = field(default_factory=lambda: {"tenant": "acme"})
    model: str | None = "MiniMax-M3"
    tools: list[dict[str, Any]] = field(default_factory=list)
    text: dict[str, Any] | None = None


@dataclass
class RecordingTurn:
    """Satisfies `Verbs`. `done` is what was asked, in order; `replies` are given in order by verbs that wait.

    A reply that is an exception is raised.
    """

    message: str = "Where is order A-4471?"
    number: int = 1
    session: RecordedSession = field(default_factory=RecordedSession)
    state: dict[str, Any] = field(default_factory=dict)
    steers: list[str] = field(default_factory=list)
    replies: deque[Any] = field(default_factory=deque)
    done: list[tuple[Any, ...]] = field(default_factory=list)

    def _next(self, default: Any) -> Any:
        reply = self.replies.popleft() if self.replies else default
        if isinstance(reply, BaseException):
            raise reply
        return reply

    def did(self, verb: str) -> list[tuple[Any, ...]]:
        return [entry[1:] for entry in self.done if entry[0] == verb]

    async def say(self, text: str) -> None:
        self.done.append(("say", text))

    async def think(self, text: str) -> None:
        self.done.append(("think", text))

    async def call_with(
        self, function: str, arguments: dict[str, Any], *, lose: bool = False, **options: Any
    ) -> CallResult:
        self.done.append(("call", function, arguments, lose))
        reply: CallResult = self._next(CallResult(True, json.dumps({"status": "shipped"})))
        return reply

    async def ask(
        self, question: str, options: Sequence[str] | None = None, allow_freeform: bool = True, **more: Any
    ) -> str:
        self.done.append(("ask", question, options, allow_freeform))
        return str(self._next("eu"))

    async def approve(
        self, tool: str, args: dict[str, Any] | None = None, sensitive: bool = False, **options: Any
    ) -> bool:
        self.done.append(("approve", tool, args, sensitive))
        return bool(self._next(True))

    async def use(
        self,
        tool: str,
        args: dict[str, Any] | None = None,
        summary: str = "",
        is_error: bool = False,
        exit_code: int | None = None,
    ) -> bool:
        self.done.append(("use", tool, args, summary, is_error, exit_code))
        return True

    async def mcp(self, server: str, tool: str, arguments: dict[str, Any] | None = None) -> ToolResult:
        self.done.append(("mcp", server, tool, arguments))
        reply: ToolResult = self._next(ToolResult([{"type": "text", "text": "3 pages"}], {"pages": 3}))
        return reply

    async def write(self, path: str, content: str | bytes, size: int | None = None) -> bool:
        self.done.append(("write", path, content) if size is None else ("write", path, content, size))
        return True

    async def delete(self, path: str) -> bool:
        self.done.append(("delete", path))
        return True

    async def todos(self, items: list[dict[str, str]]) -> None:
        self.done.append(("todos", items))

    async def compact(self, before: int, after: int) -> None:
        self.done.append(("compact", before, after))

    async def preview(self, port: int, body: str | Mapping[str, str] | None = None) -> str:
        self.done.append(("preview", port, body))
        return "https://p-1.gobare.dev"

    async def together(self, *verbs: Coroutine[Any, Any, Any]) -> list[Any]:
        self.done.append(("together", len(verbs)))
        return await asyncio.gather(*verbs)

    async def wait(self, seconds: float) -> None:
        self.done.append(("wait", seconds))

    async def fail(self, code: str, message: str) -> None:
        self.done.append(("fail", code, message))
        raise Failed(code, message)
