"""The verbs of a turn: everything an agent can do, for a Python script and a scenario alike.

Law: a verb shows what the API shows and nothing else. One that breaks a rule of the API raises
`ScriptError`; one used after the turn has ended raises `TurnOver` and emits nothing.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from emulator.domain.expectations import Outcome
from emulator.domain.files import Blob, UnusablePath
from emulator.domain.tools import BUILT_INS
from emulator.refusals import CATALOGUE
from emulator.runtime.expected import expected_of
from emulator.runtime.leave import Leave
from emulator.runtime.misfits import misfits
from emulator.runtime.run import CallResult, Failed, ScriptError, SessionView
from emulator.runtime.tool_server import NoSuchTool, ToolResult
from emulator.runtime.verbs import need, need_number, need_texts

if TYPE_CHECKING:
    from collections.abc import Awaitable, Sequence

    from emulator.domain.action import Action
    from emulator.runtime.engine import Engine
    from emulator.runtime.player import Expected
    from emulator.runtime.run import Run

_WORDS: Final = re.compile(r"\S*\s*", re.DOTALL)
_WORDS_A_DELTA: Final = 4
# Bytes of a file, beyond what any disk of a workspace holds.
_LARGEST: Final = 10**12


class Turn:
    """One turn, as its script sees it. Every verb is awaited."""

    def __init__(self, engine: Engine, run: Run) -> None:
        self._engine = engine
        self._run = run
        self._leave = Leave(engine, run, self._record)
        session = run.session
        self.message = run.turn.text
        self.number = run.turn.number
        self.state = run.state
        self.steers = run.steers
        self.session = SessionView(
            session.id,
            session.title,
            dict(session.metadata),
            session.agent.model,
            run.tools.text,
            run.tools,
            engine.world.settings.disabled_tools,
        )

    async def say(self, text: str) -> None:
        """Say something: `agent.text` deltas, then `agent.message` and a message item."""
        need("say", str, text=text)
        await self._deltas("agent.text", text)
        await self._record("agent.message", {"text": text})

    async def think(self, text: str) -> None:
        """Show reasoning: `agent.thinking` deltas, kept nowhere."""
        need("think", str, text=text)
        await self._deltas("agent.thinking", text)

    async def call(self, function: str, /, *, lose: bool = False, **arguments: Any) -> CallResult:
        """Call a declared function and wait for the client's answer.

        `lose`: the sandbox has forgotten the call, so that an answer is `not_delivered`.
        Raises `ScriptError` for a function the session does not declare.
        """
        return await self.call_with(function, arguments, lose=lose)

    async def call_with(
        self,
        function: str,
        arguments: dict[str, Any],
        *,
        lose: bool = False,
        expires: bool = False,
        expect: Expected | Mapping[str, Any] | None = None,
    ) -> CallResult:
        """`call` with the arguments as an object, whatever they are named. `expect` is as in `CallResult.expect`.

        `expires`: its time runs out at once, whether it has any or not.
        """
        run = self._run
        run.check()
        run.require(function)
        need("call", dict, arguments=arguments)
        expected = expected_of("call", "function_call", expect)
        declared = run.tools.function(function)
        assert declared is not None
        action = run.session.ask(
            run.turn,
            "function_call",
            function,
            arguments,
            ("tool.required", {"name": function, "arguments": arguments}),
            timeout_seconds=declared.timeout_seconds,
            lost=lose,
        )
        at_once = partial(self._engine.actions.expire, run.session, action) if expires else None
        answer: CallResult = await self._engine.actions.park(run, action, at_once)
        run.check()
        outcome = Outcome(success=answer.success, output=answer.output, error=answer.error)
        about = ("function_call", function, action)
        self._check(expected, outcome, about)
        return replace(
            answer,
            check=lambda given: self._check(expected_of("expect", "function_call", given), outcome, about),
        )

    async def ask(
        self,
        question: str,
        options: Sequence[str] | None = None,
        allow_freeform: bool = True,
        *,
        console: str | None = None,
        expect: Expected | Mapping[str, Any] | None = None,
    ) -> str:
        """Ask the person a question and wait for the answer. `console` is what somebody there answers at once.

        `expect` says what it must be like: `answer`, the whole of it, or `matches`, a regular expression.
        """
        run = self._run
        run.check()
        need("ask", str, question=question)
        need("ask", bool, allow_freeform=allow_freeform)
        if options is not None:
            need_texts("ask", "options", options)
        expected = expected_of("ask", "question", expect)
        labels = list(options or ())
        event: dict[str, Any] = {"question": question}
        if options is not None:
            event["options"] = labels
        event["allowFreeform"] = allow_freeform
        arguments = {"options": [{"label": label} for label in labels], "allowFreeform": allow_freeform}
        action = run.session.ask(run.turn, "question", question, arguments, ("question.asked", event))
        at_once = None
        if console is not None:
            answering = self._engine.actions.question_answer
            at_once = partial(answering, run.organization, run.session, action.call_id, console)
        answer: str = await self._engine.actions.park(run, action, at_once)
        run.check()
        self._check(expected, Outcome(answer=answer), ("question", question, action))
        return answer

    async def approve(
        self,
        tool: str,
        args: dict[str, Any] | None = None,
        sensitive: bool = False,
        *,
        console: bool | None = None,
        refused: str | None = None,
        expect: Expected | Mapping[str, Any] | None = None,
    ) -> bool:
        """Ask for leave to use a tool and wait for the decision, unless the mode or a rule decides.

        What was approved may then be done once, with these arguments, without being asked about again.
        `console` is what somebody there decides at once, `refused` the code by which the platform does.
        `expect` says what must be decided: `approved`.
        """
        need("approve", str, tool=tool)
        need("approve", dict, args=args or {})
        need("approve", bool, sensitive=sensitive)
        expected = expected_of("approve", "approval", expect)
        at_once = (console, refused) if console is not None or refused is not None else None
        reads = await self._reads(tool)
        decision = await self._leave.ask(
            tool, args or {}, sensitive=sensitive, read_only=reads, asks=True, at_once=at_once
        )
        self._check(expected, Outcome(approved=decision.granted), ("approval", tool, decision.asked))
        return decision.granted

    async def use(
        self,
        tool: str,
        args: dict[str, Any] | None = None,
        summary: str = "",
        is_error: bool = False,
        exit_code: int | None = None,
    ) -> bool:
        """Use one of the sandbox's own tools, if the mode and the rules let the agent: its call and its result.

        Gives whether it was used. Raises `ScriptError` for a built-in the session does not have.
        """
        need("use", str, tool=tool, summary=summary)
        need("use", dict, args=args or {})
        need("use", bool, is_error=is_error)
        if exit_code is not None:
            need("use", int, exit_code=exit_code)
        disabled = self._engine.world.settings.disabled_tools
        if tool in BUILT_INS and tool not in self._run.tools.built_ins(disabled):
            raise ScriptError(f"the agent used {tool!r}, which this session does not have")
        if tool == "bash" and exit_code is None:
            exit_code = 1 if is_error else 0
        args = args or {}
        if not (await self._leave.ask(tool, args, read_only=await self._reads(tool))).granted:
            return False
        if tool in ("write", "edit") and isinstance(args.get("path"), str):
            # The file that changes by it is no step of its own.
            self._leave.give("write", args)
        await self._tool_call(tool, args, summary, is_error=is_error, exit_code=exit_code)
        return True

    async def mcp(self, server: str, tool: str, arguments: dict[str, Any] | None = None) -> ToolResult:
        """Call a tool of a declared MCP server, if the mode and the rules let the agent.

        A server that was skipped because it is down gives an error result, as does a denial, a call that fails, and
        a tool that is gone. Raises `ScriptError` for a server the session does not declare, a tool outside
        `allowed_tools`, and one the server has never had.
        """
        run = self._run
        run.check()
        need("mcp", str, server=server, tool=tool)
        need("mcp", dict, arguments=arguments or {})
        declared = next((entry for entry in run.tools.servers() if entry.name == server), None)
        if declared is None:
            raise ScriptError(f"the agent called a tool of {server!r}, which this session does not declare")
        if not declared.allows(tool):
            raise ScriptError(f"the agent called {tool!r} of {server!r}, which `allowed_tools` leaves out")
        name = f"mcp_{server}_{tool}"
        arguments = arguments or {}
        if (connected := run.servers.get(server)) is None:
            reason = run.unreachable.get(server, "it is not connected")
            result = ToolResult.of(f"{server} is unavailable: {reason}", is_error=True)
        else:
            offered = next((entry for entry in await connected.tools() if entry.name == tool), None)
            if offered is not None:
                decision = await self._leave.ask(name, arguments, read_only=offered.read_only)
                if decision.refused is not None:
                    return ToolResult.of(decision.refused, is_error=True)
                call_id = await self._called(name, arguments)
                result = await connected.call(tool, arguments)
                if result.seconds != 0:
                    await self._engine.wait(run, result.seconds)
                await self._resulted(call_id, name, result.text[:500], is_error=result.is_error)
                return result
            try:
                result = await connected.call(tool, arguments)
            except NoSuchTool as unknown:
                raise ScriptError(
                    f"the agent called {tool!r} of {server!r}, which has no such tool ({unknown})"
                ) from None
        await self._tool_call(name, arguments, result.text[:500], is_error=result.is_error)
        return result

    async def write(self, path: str, content: str | bytes, size: int | None = None) -> bool:
        """Write a file of the workspace, if the mode and the rules let the agent use `write` there.

        Gives whether it was written. One under /workspace/outputs is published when the turn settles.
        `size` in bytes makes it as large as that: what `content` lacks reads as zeros, and takes no memory.
        """
        self._run.check()
        need("write", str, path=path)
        if not isinstance(content, bytes):
            need("write", str, content=content)
        data = content.encode() if isinstance(content, str) else content
        if size is not None:
            need("write", int, size=size)
            need_number("write", "size", size, len(data), _LARGEST)
        files = self._run.session.workspace.files
        if not await self._leave.to_change("write", path, files.place, data):
            return False
        try:
            absolute, kind = files.write(path, Blob.of(data, size))
        except UnusablePath as refused:
            raise ScriptError(f"the agent could not write {path!r}: {refused}") from None
        await self._record("file.changed", {"path": absolute, "changeType": kind, "kind": kind})
        return True

    async def delete(self, path: str) -> bool:
        """Delete a file of the workspace, if the mode and the rules let the agent use `delete` there.

        Gives whether it was deleted.
        """
        self._run.check()
        need("delete", str, path=path)
        files = self._run.session.workspace.files
        if not await self._leave.to_change("delete", path, files.find):
            return False
        try:
            absolute = files.delete(path)
        except (UnusablePath, FileNotFoundError) as refused:
            raise ScriptError(f"the agent could not delete {path!r}: {refused}") from None
        await self._record("file.changed", {"path": absolute, "changeType": "deleted", "kind": "deleted"})
        return True

    async def todos(self, items: Sequence[dict[str, str]]) -> None:
        """Show the list of what is to be done: each with `label` and `status`."""
        for item in items:
            need("todos", dict, items=item)
            if set(item) != {"label", "status"}:
                raise ScriptError(f"todos: each of `items` has `label` and `status`, not {', '.join(map(str, item))}")
            need("todos", str, **item)
        await self._record("agent.todos", {"items": [dict(item) for item in items]})

    async def compact(self, before: int, after: int) -> None:
        """Say that the context was compacted, in tokens before and after."""
        need("compact", int, before=before, after=after)
        await self._record("agent.compaction", {"before": before, "after": after})

    async def preview(self, port: int, body: str | Mapping[str, str] | None = None) -> str:
        """Serve something on a port and give its address, which is private until it is published.

        `body` is what it answers with, once published: a text, or texts by path.
        """
        run = self._run
        run.check()
        need("preview", int, port=port)
        need_number("preview", "port", port, 1, 65_535)
        if isinstance(body, Mapping):
            need("preview", dict, body=dict(body))
            for path, text in body.items():
                need("preview", str, **{f"body[{path}]": text})
            body = dict(body)
        elif body is not None:
            need("preview", str, body=body)
        digits = self._engine.world.ids.derive("preview", run.session.id, port, length=12).removeprefix("preview_")
        preview = run.session.preview
        preview.url, preview.port, preview.body = f"https://p-{digits}.gobare.dev", port, body
        await self._record("preview.ready", {"port": port, "url": preview.url})
        return preview.url

    async def together(self, *verbs: Awaitable[Any]) -> list[Any]:
        """Do several verbs at once and give their results in order; a failure cancels the others."""
        tasks = [asyncio.ensure_future(verb) for verb in verbs]
        try:
            return await asyncio.gather(*tasks)
        except BaseException:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            raise

    async def wait(self, seconds: float) -> None:
        """Let time pass on the emulator's clock."""
        self._run.check()
        need_number("wait", "seconds", seconds, 0, 10**9)
        await self._engine.wait(self._run, seconds)
        self._run.check()

    async def fail(self, code: str, message: str) -> None:
        """End the turn as failed, with an error item. `code` is one of the API's error codes."""
        self._run.check()
        if code not in CATALOGUE:
            raise ScriptError(f"{code!r} is not an error code of the API ({', '.join(CATALOGUE)})")
        need("fail", str, message=message)
        raise Failed(code, message)

    async def _reads(self, tool: str) -> bool:
        """Whether an MCP server offers a tool that the agent sees by this name, as one that only reads."""
        self._run.check()
        named = [
            offered
            for server, connected in self._run.servers.items()
            if tool.startswith(f"mcp_{server}_")
            for offered in await connected.tools()
            if tool == f"mcp_{server}_{offered.name}"
        ]
        return bool(named) and all(offered.read_only for offered in named)

    def _check(self, expected: Expected | None, outcome: Outcome, about: tuple[str, str, Action | None]) -> bool:
        """Whether what came is as expected; keeps where it is not."""
        if expected is None:
            return True
        found = list(expected.expectation.misses(outcome, misfits))
        if found:
            engine, run = self._engine, self._run
            engine.answers.miss(run.session, run.turn, about, expected, found, engine.clock.now())
        return not found

    async def _record(self, event_type: str, payload: dict[str, Any]) -> None:
        run, feed = self._run, self._engine.feed
        run.check()
        run.session.record(event_type, payload)
        feed.pump(run.organization)
        if feed.lags(run.organization, run.session.id):
            # A script that records without pause must not break a stream off that is being read.
            await asyncio.sleep(0)
            run.check()

    async def _tool_call(
        self, tool: str, args: dict[str, Any], summary: str, *, is_error: bool, exit_code: int | None = None
    ) -> None:
        call_id = await self._called(tool, args)
        await self._resulted(call_id, tool, summary, is_error=is_error, exit_code=exit_code)

    async def _called(self, tool: str, args: dict[str, Any]) -> str:
        self._run.check()
        call_id = self._run.session.next_call_id()
        await self._record("agent.tool_call", {"toolCallId": call_id, "toolName": tool, "args": args})
        return call_id

    async def _resulted(
        self, call_id: str, tool: str, summary: str, *, is_error: bool, exit_code: int | None = None
    ) -> None:
        result: dict[str, Any] = {"toolCallId": call_id, "toolName": tool, "isError": is_error, "cancelled": False}
        result["summary"] = summary
        if exit_code is not None:
            result["exitCode"] = exit_code
        await self._record("agent.tool_result", result)

    async def _deltas(self, event_type: str, text: str) -> None:
        """Show a text piece by piece to whoever is watching."""
        run, engine = self._run, self._engine
        run.check()
        realistic = engine.world.settings.pace == "realistic"
        if not realistic and not engine.feed.watched(run.organization, run.session.id):
            return
        words = _WORDS.findall(text)
        for n in range(0, len(words), _WORDS_A_DELTA):
            delta = "".join(words[n : n + _WORDS_A_DELTA])
            if not delta:
                continue
            engine.feed.transient(run.organization, run.session.id, event_type, {"delta": delta})
            if realistic:
                await engine.clock.pause(0.005 + 0.02 * engine.world.ids.fraction("delta", run.turn.id, n))
                run.check()
