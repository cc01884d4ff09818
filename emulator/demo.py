"""The demonstration: the main job of the API over HTTP, shown as it happens, and checked.

Law: nothing here is told what to expect by the emulator's own code. Requests go through a socket,
what is printed as an answer is the answer, and a secret that was sent is printed nowhere.
"""

from __future__ import annotations

import http.client
import io
import json
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from emulator import Emulator, __version__
from emulator.redaction import WITHHELD

if TYPE_CHECKING:
    from collections.abc import Iterator

    from emulator.runtime.turn import Turn
    from emulator.settings import Settings

WIDTH: Final = 100
TIMEOUT: Final = 10.0

AUTHORIZATION: Final = "Bearer docs-secret-7Q2x"
HEADER_VALUE: Final = "team-secret-9Vk1"

LOOKUP: Final = {
    "type": "function",
    "name": "lookup_order",
    "description": "Where an order is.",
    "parameters": {
        "type": "object",
        "properties": {"order_id": {"type": "string"}},
        "required": ["order_id"],
        "additionalProperties": False,
    },
    "timeout_seconds": 60,
}
DOCS: Final = {
    "type": "mcp",
    "name": "docs",
    "url": "https://docs.example.com/mcp",
    "authorization": AUTHORIZATION,
    "headers": {"x-team": HEADER_VALUE},
    "required": False,
}


class Unexpected(Exception):
    """An answer that is not what the API promises. The message says which and why."""


async def assistant(turn: Turn) -> None:
    """The agent of the demonstration: it looks the order up with the program's own function."""
    order = await turn.call("lookup_order", order_id="A-4471")
    if order.success:
        await turn.write("/workspace/outputs/order.json", json.dumps({"order_id": "A-4471", **order.json()}))
    await turn.say(f"It is {order.json()['status']}." if order.success else "I could not look it up.")


def demo(settings: Settings, record: str | None = None) -> int:
    """Run it, print it, and give 0 if every check held, else 1. With `record` it is recorded into that file."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A terminal that cannot show a character must not end the demonstration.
        sys.stdout.reconfigure(errors="backslashreplace")
    walk = None
    try:
        with Emulator(settings=settings) as emulator:
            emulator.agent(assistant)
            with _recorded(emulator, record) as url:
                walk = Walk(url, emulator.token)
                main_job(walk)
    except Unexpected as error:
        return _failed(walk, str(error))
    except BrokenPipeError:
        # Whoever read along has seen enough.
        raise
    except (OSError, http.client.HTTPException, RuntimeError, LookupError, TypeError, ValueError) as error:
        return _failed(walk, f"{type(error).__name__}: {error}")
    show(f"\nAll {walk.checks} checks held.")
    if record is not None:
        show(f"What was sent and answered is in {record}: play it with --scenario, or in a test.")
    return 0


@contextmanager
def _recorded(emulator: Emulator, path: str | None) -> Iterator[str]:
    """Where to send requests: to the emulator, or through a recorder of them."""
    if path is None:
        yield emulator.url
        return
    from emulator.recording.server import RecordingServer
    from emulator.server import bind

    recorder = RecordingServer(bind("127.0.0.1", 0), emulator.url, path)
    emulator.run(recorder.start())
    try:
        yield recorder.url
    finally:
        emulator.run(recorder.stop())


def _failed(walk: Walk | None, why: str) -> int:
    where = f"step {walk.steps}, {walk.title}" if walk is not None and walk.steps else "the start"
    sys.stderr.write(f"gobare-emulator: the demonstration failed at {where}: {_hidden(why)}\n")
    return 1


def main_job(walk: Walk) -> None:
    """The main job: a session with tools, a turn that calls a function of ours, and its answer."""
    show(f"The Gobare Agent API, emulated by gobare-emulator {__version__} on {walk.url}")
    show("Each request below was sent over HTTP with an access token; each answer is what came back, in full.")

    walk.step("The API answers")
    health = walk.send("GET", "/v1/health", status=200)
    walk.check(health["usable"] and not health["missing_scopes"], "the token is usable and lacks no scope")

    walk.step("Create a session")
    body: dict[str, Any] = {"title": "Order desk", "metadata": {"tenant": "acme"}}
    session = walk.send("POST", "/v1/sessions", body, status=201)
    path = f"/v1/sessions/{session['id']}"
    walk.check(session["status"] == "idle", "it is idle")
    walk.check(session["metadata"] == body["metadata"], "its metadata came back unchanged")

    walk.step("Have an MCP server be down (the emulator's own route, for tests)")
    walk.send("PUT", "/_emulator/mcp/docs", {"state": "down", "reason": "fetch failed"}, status=200)

    walk.step("Give the session its tools: a function of ours, and that MCP server, which it can do without")
    tools = walk.send("PUT", f"{path}/tools", {"tools": [LOOKUP, DOCS]}, status=200)
    walk.check([tool["name"] for tool in tools["tools"]] == ["lookup_order", "docs"], "both are set, in order")

    walk.step("Make a mistake: a field that is spelled another way")
    mistaken = {"tools": [LOOKUP, DOCS | {"allowedTools": ["search"]}]}
    refused = walk.refused("PUT", f"{path}/tools", mistaken, status=400, code="invalid_request")
    walk.check("tools[1].allowedTools" in refused, "the refusal names the field by its path")
    walk.check("`allowed_tools`" in refused, "and what was probably meant")

    walk.step("Read the tools back")
    again = walk.send("GET", f"{path}/tools", status=200)
    walk.check(again == tools, "the refused request changed nothing")
    function, server = again["tools"]
    walk.check(function == LOOKUP, "the function came back as it was sent")
    hidden = sorted(server["redacted"])
    walk.check(hidden == ["authorization", "headers.x-team"], "both secrets are withheld, and named as withheld")

    walk.step("Send a message")
    message = {"events": [{"type": "input.message", "content": "Where is order A-4471?"}]}
    sent = walk.send("POST", f"{path}/events", message, status=202)
    walk.check(sent["object"] == "input.accepted" and not sent["queued"], "it was accepted and not queued")

    walk.step("See that the MCP server was missed, and that the turn runs without it")
    items = walk.send("GET", f"{path}/items?order=asc", status=200)["data"]
    missed = [item for item in items if item["type"] == "mcp_unavailable"]
    walk.check(
        [(item["server"], item["reason"]) for item in missed] == [("docs", "fetch failed")],
        "one mcp_unavailable item says so",
    )

    walk.step("Find the call that waits for us")
    waiting = walk.send("GET", path, status=200)
    walk.check(waiting["status"] == "requires_action", "the session requires an action")
    walk.check(len(waiting["required_actions"]) == 1, "exactly one")
    action = waiting["required_actions"][0]
    walk.check(
        (action["type"], action["name"], action["arguments"])
        == ("function_call", "lookup_order", {"order_id": "A-4471"}),
        "a call of lookup_order with the order's number",
    )

    walk.step("Answer it")
    answer = {
        "type": "input.tool_result",
        "turn_id": action["turn_id"],
        "call_id": action["call_id"],
        "success": True,
        "output": '{"status": "shipped"}',
    }
    outcome = walk.send("POST", f"{path}/events", {"events": [answer]}, status=202)["outcome"]
    walk.check(outcome == "accepted", "the answer was accepted")

    walk.step("Answer it once more, as a program that retries does")
    outcome = walk.send("POST", f"{path}/events", {"events": [answer]}, status=202)["outcome"]
    walk.check(outcome == "already_resolved", "the second answer was discarded")

    walk.step("The turn has ended")
    turn = walk.send("GET", f"{path}/turns/{action['turn_id']}", status=200)
    walk.check(turn["status"] == "completed" and turn["error"] is None, "it completed")

    walk.step("Fetch the file it left behind")
    artifacts = walk.send("GET", f"{path}/artifacts?turn_id={turn['id']}", status=200)["data"]
    walk.check([artifact["path"] for artifact in artifacts] == ["/workspace/outputs/order.json"], "it was published")
    order = walk.send("GET", f"{path}/artifacts/{artifacts[0]['id']}/content", status=200)
    walk.check(order == {"order_id": "A-4471", "status": "shipped"}, "its bytes are what the agent wrote")

    walk.step("Read the conversation")
    items = walk.send("GET", f"{path}/items?order=asc", status=200)["data"]
    spoken = [(item["role"], item["content"]) for item in items if item["type"] == "message"]
    walk.check(
        spoken == [("user", "Where is order A-4471?"), ("assistant", "It is shipped.")],
        "the agent made our answer its own: “It is shipped.”",
    )

    walk.step("Delete the session")
    deleted = walk.send("DELETE", path, status=200)
    walk.check(deleted["object"] == "session.deleted" and deleted["deleted"] is True, "it is deleted")
    walk.refused("GET", path, status=404, code="not_found")

    walk.step("Ask the emulator what was left behind")
    report = walk.send("GET", "/_emulator/report", status=200)
    walk.check(report["unanswered_actions"] == [], "no call is unanswered")
    walk.check(report["undeleted"]["sessions"] == [], "no session is left")
    walk.check(walk.leaks == 0, f"no secret came back in any of the {walk.answers} answers")


class Walk:
    """One walk through the API: sends, shows and checks. `steps`, `checks` and `answers` count."""

    def __init__(self, url: str, token: str) -> None:
        self.url = url
        self.steps = 0
        self.checks = 0
        self.answers = 0
        self.leaks = 0
        self.title = ""
        self._authority = urlsplit(url).netloc
        self._token = token
        self._requests: set[str] = set()

    def step(self, title: str) -> None:
        """Begin the next step."""
        self.steps += 1
        self.title = title
        show(f"\n{self.steps}. {title}")

    def send(self, verb: str, path: str, body: Any = None, *, status: int) -> Any:
        """Send a request and give the body of its answer. Raises `Unexpected` for another status."""
        show(f"\n   {verb} {path}")
        if body is not None:
            show(_indented(_hidden(pretty(body))))
        headers = {"authorization": f"Bearer {self._token}"}
        content = None
        if body is not None:
            content = json.dumps(body).encode()
            headers["content-type"] = "application/json"
        connection = http.client.HTTPConnection(self._authority, timeout=TIMEOUT)
        try:
            connection.request(verb, path, content, headers)
            response = connection.getresponse()
            text = response.read().decode()
        finally:
            connection.close()
        request_id = response.getheader("x-request-id")
        self.answers += 1
        self.leaks += _hidden(text) != text
        try:
            answer = json.loads(text)
        except ValueError:
            raise Unexpected(f"the answer, {response.status}, is not JSON") from None
        show(f"   {response.status} {response.reason}   x-request-id: {request_id}")
        show(_indented(_hidden(pretty(answer))))
        if response.status != status:
            raise Unexpected(f"the answer is {response.status}, and {status} was expected")
        if path.startswith("/v1/"):
            if request_id is None or request_id in self._requests:
                raise Unexpected("the answer has no request id of its own")
            self._requests.add(request_id)
        return answer

    def refused(self, verb: str, path: str, body: Any = None, *, status: int, code: str) -> str:
        """Send a request that must be refused with `code`, and give the refusal's message."""
        error = self.send(verb, path, body, status=status)["error"]
        self.check(error["code"] == code, f"it is refused as {code}")
        return str(error["message"])

    def check(self, holds: bool, words: str) -> None:
        """Count and show a check. Raises `Unexpected` when it does not hold."""
        if not holds:
            raise Unexpected(f"it does not hold that {words}")
        self.checks += 1
        show(f"   ok: {words}")


def show(text: str) -> None:
    """Print, at once, so that a pipe sees each step when it happens."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def pretty(value: Any, indent: str = "") -> str:
    """JSON for people: an object or a list stays on one line where it fits."""
    line = json.dumps(value, ensure_ascii=False)
    if len(indent) + len(line) <= WIDTH or not isinstance(value, dict | list) or not value:
        return line
    deeper = f"{indent}  "
    if isinstance(value, dict):
        entries = [f"{json.dumps(key, ensure_ascii=False)}: {pretty(entry, deeper)}" for key, entry in value.items()]
    else:
        entries = [pretty(entry, deeper) for entry in value]
    first, last = "{}" if isinstance(value, dict) else "[]"
    return f"{first}\n{deeper}" + f",\n{deeper}".join(entries) + f"\n{indent}{last}"


def _indented(text: str) -> str:
    return "\n".join(f"     {line}" for line in text.split("\n"))


def _hidden(text: str) -> str:
    for secret in (AUTHORIZATION, HEADER_VALUE):
        text = text.replace(secret, WITHHELD)
    return text
