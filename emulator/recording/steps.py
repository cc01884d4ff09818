"""Steps: the agent's side of a recording, as a scenario.

Law: a scenario made here says what the agent did, in the verbs it has, and asks nothing of the client. What
no verb can do (a diff beside a file, a call the sandbox never finished) is left out.
"""

from __future__ import annotations

import base64
import json
import keyword
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from emulator.domain.permissions import act_of, decide
from emulator.recording.document import content_of
from emulator.recording.mcp_tools import Tools
from emulator.recording.story import Story
from emulator.refusals import CATALOGUE
from emulator.wire.steps import PARALLEL

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from emulator.recording.document import Recording
    from emulator.recording.story import SessionStory

# Longer than any client goes on: where a recorded turn was stopped from outside, its agent waits for that.
_UNTIL_STOPPED: Final = 1_000_000
# One byte more than is published.
_TOO_LARGE: Final = 209_715_201
_RESERVED: Final = frozenset(("message", "turn", "session", "state", "range", "loop", "self", "caller"))
_ASKS: Final = ("tool.required", "approval.requested", "question.asked")
# The reasons a scenario can have the platform refuse for.
_REFUSED: Final = ("approval_timeout", "credential_inspection_denied")

_NUMBER: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.inf|\.nan")

Step = dict[str, Any]


def scenario_of(recording: Recording, name: str = "recording") -> dict[str, Any]:
    """A scenario document that plays what the agent of a recording did, turn by turn."""
    story = Story(recording)
    tools = Tools(story)
    agent = [rule for rule, _ in _rules(story, tools)]
    mcp: dict[str, Any] = {}
    for server in story.servers:
        described: dict[str, Any] = {}
        script = story.outages.get(server, [])
        while script and script[-1]["state"] == "up":
            script = script[:-1]
        if script:
            described["script"] = script
        if server in tools.described:
            described["tools"] = tools.described[server]
        if server in tools.calls:
            described["calls"] = tools.calls[server]
        if described:
            mcp[server] = described
    return {"scenario": name, **({"mcp": mcp} if mcp else {}), "agent": agent}


def _rules(story: Story, tools: Tools) -> list[tuple[dict[str, Any], str | None]]:
    """A rule for each turn, with the message it answered."""
    labels = [(session.title, session.metadata) for session in story.sessions]
    rules: list[tuple[dict[str, Any], str | None]] = []
    for session, label in zip(story.sessions, labels, strict=True):
        when: dict[str, Any] = {"session": session.number}
        if story.by_labels and any(label) and labels.count(label) == 1:
            when = {name: value for name, value in zip(("title", "metadata"), label, strict=True) if value}
        for number, turn in enumerate(_turns(story, session, tools), start=1):
            message = session.messages[number - 1] if number <= len(session.messages) else None
            rules.append(({"when": {**when, "turn": number}, "do": turn or [{"wait": 0}]}, message))
    return rules


def _turns(story: Story, session: SessionStory, tools: Tools) -> list[list[Step]]:
    turns: list[list[Step]] = []
    playing: _Playing | None = None
    for event in session.events:
        match event["event"]:
            case "turn.started":
                number = len(turns) + 1
                playing = _Playing(story, session, tools, number, str(event["payload"].get("turnId")), event)
            case "turn.ended" if playing is not None:
                turns.append(playing.ended(event))
                playing = None
            case _ if playing is not None:
                playing.take(event)
    if playing is not None:
        turns.append(playing.left_open())
    return turns


@dataclass(slots=True)
class _Playing:
    """One turn, as its steps are made of its events."""

    story: Story
    session: SessionStory
    tools: Tools
    number: int
    turn: str
    before: dict[str, Any]
    steps: list[Step] = field(default_factory=list)
    group: list[Step] = field(default_factory=list)
    after: list[Step] = field(default_factory=list)
    open: dict[str, Step] = field(default_factory=dict)
    uses: dict[str, tuple[list[Step], Step]] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)
    asked: dict[str, dict[str, Any]] = field(default_factory=dict)
    granted: list[tuple[Step, dict[str, Any]]] = field(default_factory=list)
    error: str | None = None

    def take(self, event: dict[str, Any]) -> None:
        """Add what an event shows."""
        kind, payload = event["event"], event["payload"]
        if kind.startswith("agent.") or kind in (*_ASKS, "file.changed", "preview.ready"):
            self._wait_until(event)
        if event.get("time") is not None:
            self.before = event
        call_id = str(payload.get("toolCallId"))
        match kind:
            case "agent.message" if payload.get("text"):
                self._add({"say": payload["text"]})
            case "agent.thinking" if payload.get("text"):
                self._add({"think": payload["text"]})
            case "tool.required":
                lost = {"lose": True} if call_id in self.story.lost else {}
                step = {"function": payload["name"], "arguments": payload.get("arguments") or {}, **lost}
                self._ask(call_id, {"call": {**step, "as": self._name(payload["name"])}})
            case "question.asked":
                step = {"question": payload["question"]}
                if isinstance(options := payload.get("options"), list):
                    step["options"] = [_label(option) for option in options]
                if payload.get("allowFreeform") is False:
                    step["allow_freeform"] = False
                self._ask(call_id, {"ask": {**step, "as": self._name("answer")}})
            case "approval.requested":
                step = {"tool": payload["name"], "args": payload.get("args") or {}}
                if payload.get("sensitive"):
                    step["sensitive"] = True
                self.asked[call_id] = step
                self._ask(call_id, {"approve": {**step, "as": self._name("approved")}})
            case "approval.resolved" if call_id not in self.open and payload.get("name"):
                args = self.story.denied_args(self.session, self.number, str(payload["name"]), payload.get("code"))
                self._add({"approve": {"tool": payload["name"], "args": args}})
            case "tool.resolved" | "question.answered" | "approval.resolved":
                self._resolved(call_id, kind, payload)
            case "agent.tool_call":
                self._use(call_id, str(payload.get("toolName")), payload.get("args") or {})
            case "agent.tool_result":
                self._used(call_id, payload)
            case "file.changed":
                self._file(payload)
            case "agent.todos":
                self._add({"todos": [{"label": i["label"], "status": i["status"]} for i in payload.get("items", ())]})
            case "agent.compaction":
                self._add({"compact": {"before": int(payload["before"]), "after": int(payload["after"])}})
            case "preview.ready":
                self._add({"preview": payload["port"]})
            case "agent.error":
                self.error = str(payload.get("message"))

    def ended(self, event: dict[str, Any]) -> list[Step]:
        """The steps of a turn that settled."""
        settled = self.story.settled.get(self.turn, {})
        status = settled.get("status") or ("failed" if self.error is not None else "completed")
        waits = bool(self.open)
        if not waits:
            self._wait_until(event)
        self._finish()
        if waits:
            # Whatever ended it came from outside, while it waited.
            return self.steps
        if status == "failed":
            error = settled.get("error") or {}
            code = error.get("code") if error.get("code") in CATALOGUE else "provider_error"
            message = str(error.get("message") or self.error or "The turn failed.")
            self.steps.append({"fail": {"code": code, "message": _plain(message)}})
        elif status == "cancelled":
            self.steps.append({"wait": _UNTIL_STOPPED})
        return self.steps

    def left_open(self) -> list[Step]:
        """The steps of a turn that had not settled when the recording ended."""
        waits = bool(self.open)
        self._finish()
        if not waits:
            self.steps.append({"wait": _UNTIL_STOPPED})
        return self.steps

    # Inside

    def _add(self, step: Step) -> None:
        step = _plain_step(step)
        if not self.open:
            self.steps.append(step)
        elif next(iter(step)) in PARALLEL:
            self.group.append(step)
        else:
            self.after.append(step)

    def _ask(self, call_id: str, step: Step) -> None:
        step = _plain_step(step)
        self.group.append(step)
        self.open[call_id] = step

    def _resolved(self, call_id: str, kind: str, payload: dict[str, Any]) -> None:
        """An answer came. What the client did not give, and will not give again, the step has with it."""
        step = self.open.pop(call_id, None)
        # On a clock that has to be moved, whoever moves it, or plays the console, does so again.
        if step is not None and not self.story.virtual and call_id not in self.story.answered:
            (given,) = step.values()
            match kind:
                case "tool.resolved" if not payload.get("success"):
                    given["expires"] = True
                case "question.answered" if payload.get("answer"):
                    given["console"] = _plain(payload["answer"])
                case "approval.resolved" if payload.get("code") in _REFUSED:
                    given["refused"] = payload["code"]
                case "approval.resolved" if payload.get("code") is None:
                    given["console"] = bool(payload.get("approved"))
        if step is not None and kind == "approval.resolved" and payload.get("approved"):
            self.granted.append((step, self.asked[call_id]))
        self._close_group()

    def _close_group(self) -> None:
        if self.open or not self.group:
            return
        self.steps.append(self.group[0] if len(self.group) == 1 else {"together": self.group})
        self.steps += self.after
        self.group, self.after = [], []

    def _finish(self) -> None:
        self.open.clear()
        self._close_group()
        for steps, step in self.uses.values():
            # Its result never came, and it cannot be played without one.
            steps[:] = [one for one in steps if one is not step]

    def _use(self, call_id: str, tool: str, args: dict[str, Any]) -> None:
        step = self.tools.step(tool, args) or {"use": {"tool": tool, **({"args": args} if args else {})}}
        plain = _plain_step(step)
        steps = self._act(plain, tool, args)
        if not self.tools.lasts(call_id):
            self.uses[call_id] = (steps, plain)
        elif steps is not self.after:
            # It is waited for like an answer, and others may go on beside it.
            if steps is self.steps:
                self.group.append(steps.pop())
            self.open[call_id] = plain

    def _act(self, step: Step, tool: str, args: dict[str, Any]) -> list[Step]:
        """Put a step where the agent did what it does, which may have been approved. Gives the list it is in."""
        target = self.group if self.open else self.steps
        for n, (approval, asked) in enumerate(self.granted):
            if act_of(asked["tool"], asked["args"]) != act_of(tool, args):
                continue
            place = next((at for at, one in enumerate(target) if one is approval), None)
            if place is None or (target is self.steps and place != len(target) - 1):
                continue
            del self.granted[n]
            if asked["args"] == args and self._asks(approval["approve"], tool, args):
                target[place] = step
                return target
            # It has to come after its approval, whatever else is still waited for.
            target = self.after if self.open else self.steps
            break
        target.append(step)
        return target

    def _asks(self, approval: dict[str, Any], tool: str, args: dict[str, Any]) -> bool:
        """Whether an act asks for just that approval by itself, and for nobody at the console to decide it."""
        mode, rules = self.session.governed_by(self.number)
        reads = self.tools.reads(tool)
        by_itself = decide(mode, rules, tool, args, read_only=reads).decision == "ask"
        return by_itself and "console" not in approval and bool(approval.get("sensitive")) is not reads

    def _used(self, call_id: str, payload: dict[str, Any]) -> None:
        if self.open.pop(call_id, None) is not None:
            self._close_group()
            return
        _, step = self.uses.pop(call_id, ([], {}))
        if (use := step.get("use")) is None:
            return
        if payload.get("summary"):
            use["summary"] = _plain(str(payload["summary"]))
        if payload.get("isError"):
            use["is_error"] = True
        if isinstance(code := payload.get("exitCode"), int):
            use["exit_code"] = code

    def _file(self, payload: dict[str, Any]) -> None:
        path = str(payload.get("path"))
        if (payload.get("changeType") or payload.get("kind")) == "deleted":
            self._act(_plain_step({"delete": path}), "delete", {"path": path})
            return
        found = self.story.content(self.session.ref, self.turn, path)
        step: dict[str, Any] = {"path": path, "content": ""}
        if found is not None:
            data = content_of(found)
            if data is None:
                step["size"] = found.get("size") or 0
            elif "base64" in found:
                step |= {"content": base64.b64encode(data).decode("ascii"), "encoding": "base64"}
            else:
                step["content"] = data.decode("utf-8")
        elif self.story.skipped(self.turn, path):
            step["size"] = _TOO_LARGE
        shown = [asked["args"] for _, asked in self.granted if act_of(asked["tool"], asked["args"]) == ("write", path)]
        if shown and isinstance(content := shown[0].get("content"), str):
            step["content"] = content
        args = {"path": path} if "encoding" in step else {"path": path, "content": step["content"]}
        self._act(_plain_step({"write": step}), "write", args)

    def _wait_until(self, event: dict[str, Any]) -> None:
        """On a clock that only moves when it is told to, time that passed inside a turn was waited for."""
        if not self.story.virtual or self.open or "time" not in event or "time" not in self.before:
            return
        passed = event["time"] - self.before["time"] - self.story.between(self.before, event)
        if passed > 0:
            self._add({"wait": passed / 1000})

    def _name(self, wanted: Any) -> str:
        base = re.sub(r"\W", "_", str(wanted), flags=re.ASCII) or "result"
        if not base.isidentifier() or keyword.iskeyword(base) or base in _RESERVED or base.lower() in ("true", "none"):
            base = f"result_{base}"
        name, n = base, 1
        while name in self.names:
            n += 1
            name = f"{base}_{n}"
        self.names.add(name)
        return name


def _label(option: Any) -> str:
    return str(option.get("label")) if isinstance(option, dict) else str(option)


def _plain_step(step: Step) -> Step:
    verb, value = next(iter(step.items()))
    return {verb: _plain(value)}


def _plain(value: Any) -> Any:
    """A value as a scenario has to have it for nothing in it to be taken for a template."""
    match value:
        case str() if "{{" in value or "{%" in value:
            return f"{{{{ {json.dumps(value, ensure_ascii=False)} }}}}"
        case dict():
            return {key: _plain(entry) for key, entry in value.items()}
        case list():
            return [_plain(entry) for entry in value]
    return value


def messages(recording: Recording) -> list[str | None]:
    """The recorded message each rule of its scenario answers."""
    story = Story(recording)
    return [message for _, message in _rules(story, Tools(story))]


def as_yaml(document: Mapping[str, Any], told: Sequence[str | None]) -> str:
    """A scenario as a file to be edited. `told` has the recorded message of each rule."""
    # Imported here: it costs a start that has no YAML file a tenth of a second.
    import yaml

    class Dumper(yaml.SafeDumper):
        """Texts of several lines as several lines."""

    def text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
        # A number to whoever reads YAML 1.2, which this writer does not take it for.
        style = "|" if "\n" in value else "'" if _NUMBER.fullmatch(value) else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)

    Dumper.add_representer(str, text)

    def dumped(value: Any) -> str:
        written: str = yaml.dump(value, Dumper=Dumper, allow_unicode=True, sort_keys=False, width=110)
        return written

    head = {key: value for key, value in document.items() if key != "agent"}
    parts = [dumped(head), "agent:\n" if document["agent"] else "agent: []\n"]
    for rule, message in zip(document["agent"], told, strict=True):
        if message is not None:
            line = " ".join(message.split())
            parts.append(f"  # {line if len(line) <= 100 else line[:99] + '…'}\n")
        parts.append("".join(f"  {line}\n" if line else "\n" for line in dumped([rule]).split("\n")[:-1]))
    return "".join(parts)
