"""A client that uses everything the API has, and an agent that uses every verb.

The client is told nothing of whether it is recorded or played to: `walk` is the same both times.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from emulator import Emulator, Turn
    from tests.support import Api

FUNCTIONS: Final = [
    {"type": "function", "name": "lookup_order", "timeout_seconds": 60},
    {"type": "function", "name": "refund"},
    {"type": "mcp", "name": "docs", "url": "https://docs.test/mcp", "authorization": "Bearer docs-secret-7Q2x"},
    {"type": "mcp", "name": "wiki", "url": "https://wiki.test/mcp", "headers": {"x-team": "team-secret-9Vk1"}},
    {"type": "web_search"},
]
REQUIRED: Final = [{"type": "mcp", "name": "vault", "url": "https://vault.test/mcp", "required": True}]
BINARY: Final = bytes(range(256))
SCENARIO: Final = {
    "mcp": {
        "wiki": {
            "tools": {
                "search": {"text": "3 pages"},
                "write": {"text": "saved"},
                "count": {"text": "3", "read_only": True},
                "look": {"text": "a page", "read_only": True},
            }
        },
        "docs": {"tools": {"search": {"text": "found"}}},
        "vault": {},
    }
}


async def orders(turn: Turn) -> None:
    await turn.think("they want an order; the function knows, {{ braces }} or not")
    order = await turn.call("lookup_order", order_id="A-4471", note="{{ not a template }} {% nor this %}")
    await turn.say(f"It is {order.output}." if order.success else f"No luck: {order.error}.")
    both = await turn.together(turn.call("lookup_order", order_id="B"), turn.call("refund", order_id="C"))
    await turn.say(f"Both: {both[0].output}, {both[1].success}.")


async def gate(turn: Turn) -> None:
    approved = await turn.approve("bash", {"command": "./deploy"}, True)
    region = await turn.ask("Which region?", ["eu", "us"], False)
    who = await turn.ask("Anything else?")
    await turn.use("bash", {"command": f"./deploy {region}"}, "done", exit_code=3, is_error=True)
    await turn.use("web_search", {"query": "status"}, "two hits")
    found = await turn.mcp("wiki", "search", {"q": "deploy"})
    missed = await turn.mcp("docs", "search", {"q": "deploy"})
    await turn.todos([{"label": "deploy", "status": "done" if approved else "pending"}])
    await turn.compact(90_000, 12_000)
    await turn.wait(5)
    await turn.say(f"{approved} {region} {who} {found.text} {missed.text}")


async def files(turn: Turn) -> None:
    await turn.write("notes/plan.md", "# Plan\n")
    await turn.write("outputs/report.md", "# Report\n")
    await turn.write("outputs/image.png", BINARY)
    await turn.write("notes/plan.md", "# Plan, again\n")
    await turn.delete("notes/plan.md")
    await turn.preview(8080, "<h1>Hello</h1>")
    await turn.say("Written.")


async def trouble(turn: Turn) -> None:
    await turn.say("I try.")
    await turn.fail("provider_error", "the provider returned 502")


async def parked(turn: Turn) -> None:
    await turn.call("refund", order_id="never")


async def denied(turn: Turn) -> None:
    await turn.approve("bash", {"command": "rm -rf /"})
    await turn.approve("write_file", {"path": "/workspace/x"})
    await turn.mcp("wiki", "write", {"page": "x"})
    await turn.say("As far as I may.")


async def governed(turn: Turn) -> None:
    done = [await turn.use("bash", {"command": "make {{ all }}"}, "made") for _ in range(2)]
    done += [await turn.use("read", {"path": "a.md"}, "an A"), await turn.write("notes/a.md", "# {{ A }}\n")]
    done += [await turn.write("outputs/b.bin", BINARY), await turn.write("secrets/../secrets/key", "k")]
    done += [await turn.delete("notes/a.md"), await turn.use("web_search", {"url": "http://a.evil.test"})]
    if done[3]:
        done += [await turn.delete("notes/a.md")]
    for tool in ({2: "search", 3: "look"}.get(turn.number, "write"), "write"):
        done += [not (await turn.mcp("wiki", tool, {"q": "a"})).is_error]
    if await turn.approve("edit", {"path": "outputs/c.txt"}):
        done += [await turn.use("edit", {"path": "outputs/c.txt"}, "edited"), await turn.write("outputs/c.txt", "c")]
    counted = turn.mcp("wiki", "count" if turn.number == 1 else "search")
    done += await turn.together(
        turn.write("outputs/d.txt", "d"), turn.use("ls", {}, "d.txt"), turn.write("outputs/e.txt", "e"), counted
    )
    await turn.say(" ".join(map(str, done[:-1])))


async def large(turn: Turn) -> None:
    await turn.write("outputs/huge.bin", "", 209_715_201)
    await turn.write("outputs/small.txt", "small")


async def brief(turn: Turn) -> None:
    await turn.say(f"You said: {turn.message}")


def script(emulator: Emulator) -> None:
    """Put the agents in place, and the servers they meet."""
    emulator.load(SCENARIO)
    for word, agent in (
        ("order", orders),
        ("deploy", gate),
        ("files", files),
        ("trouble", trouble),
        ("park", parked),
        ("denied", denied),
        ("large", large),
        ("govern", governed),
    ):
        emulator.agent(agent, when={"message": {"matches": word}})
    emulator.agent(brief)
    # The fifth connect follows a PUT of tools and shows nothing; the sixth would meet its outage if it were not seen.
    emulator.mcp.script("docs", ["down", "up", "up", "up", "up", "down", "up"])
    emulator.mcp.script("vault", [{"state": "down", "reason": "fetch failed"}, "down", "up"])


def walk(api: Api, emulator: Emulator) -> list[str]:
    """Use everything. Gives the sessions there were, by their ids; those that are left are not deleted."""
    sessions = [_orders(api, emulator), _gate(api, emulator), _files(api)]
    sessions += [_ends(api, emulator), _denied(api), *_outage(api), _large(api), _governed(api)]
    _organization(api)
    return sessions


def _orders(api: Api, emulator: Emulator) -> str:
    session = api.session({"title": "Orders", "metadata": {"tenant": "acme"}, "agent": {"tools": FUNCTIONS}})
    api.send(session, {"type": "input.context", "content": "The customer is called Ada."})
    api.say(session, "Where is my order?")
    api.answer(session, api.actions(session)[0], "shipped")
    one, other = api.actions(session)
    api.say(session, "and then: be brief")
    api.send(session, {"type": "input.context", "content": "It is urgent."})
    api.send(session, {"type": "input.steer", "content": "quickly"})
    api.answer(session, other, "refunded")
    failed = {"type": "input.tool_result", "turn_id": one["turn_id"], "call_id": one["call_id"]}
    api.send(session, {**failed, "success": False, "error": "no such order"})
    api.answer(session, other, "again")
    # A call that nobody answers in time, and one whose answer comes too late.
    api.say(session, "Another order")
    late = api.actions(session)[0]
    emulator.clock.advance(61)
    api.answer(session, late, "too late")
    for action in api.actions(session):
        api.answer(session, action, "fine")
    return session


def _gate(api: Api, emulator: Emulator) -> str:
    session = api.session({"agent": {"tools": FUNCTIONS}})
    api.say(session, "deploy it")
    api.send(session, {"type": "input.approval", "call_id": api.actions(session)[0]["call_id"], "approved": True})
    for answer in ("eu", "nobody"):
        call_id = api.actions(session)[0]["call_id"]
        api.send(session, {"type": "input.question_answer", "call_id": call_id, "answer": answer})
    emulator.clock.advance(5)
    emulator.settle()
    return session


def _files(api: Api) -> str:
    seed = {"path": "seed.txt", "data": base64.b64encode(b"seeded").decode()}
    session = api.session({"environment": {"files": [seed], "repo": "acme/site"}, "input": "files, please"})
    api.post(f"/v1/sessions/{session}/files", {"files": [{"path": "more.txt", "data": seed["data"]}]})
    api.post(f"/v1/sessions/{session}/files/refresh")
    api.get(f"/v1/sessions/{session}/files")
    api.get(f"/v1/sessions/{session}/files/content?path=seed.txt")
    artifacts = api.get(f"/v1/sessions/{session}/artifacts").json["data"]
    api.get(f"/v1/sessions/{session}/artifacts/{artifacts[0]['id']}/content")
    api.get(f"/v1/sessions/{session}/artifacts/archive")
    assert api.post(f"/v1/sessions/{session}/preview", {"subdomain": "acme-report"}).status == 201
    fork = api.post(f"/v1/sessions/{session}/fork").json["id"]
    api.say(fork, "hello, fork")
    api.delete(f"/v1/sessions/{session}/preview")
    api.delete(f"/v1/sessions/{session}/artifacts/{artifacts[1]['id']}")
    return session


def _ends(api: Api, emulator: Emulator) -> str:
    session = api.session({"agent": {"tools": FUNCTIONS}})
    api.say(session, "trouble")
    api.say(session, "park there")
    emulator.clock.advance(3)
    api.send(session, {"type": "input.cancel"})
    api.patch(f"/v1/sessions/{session}", {"title": "Ended", "agent": {"instructions": "Be brief."}})
    api.say(session, "hello")
    emulator.clock.advance(400)
    api.say(session, "after a pause")
    return session


def _denied(api: Api) -> str:
    rules = [{"decision": "deny", "tool": "bash", "command": "rm *"}]
    agent = {"approval_mode": "per_step", "permission_rules": rules, "tools": FUNCTIONS}
    session = api.session({"agent": agent})
    api.say(session, "denied, mostly")
    for approved in (False, True):
        call_id = api.actions(session)[0]["call_id"]
        api.send(session, {"type": "input.approval", "call_id": call_id, "approved": approved})
    api.patch(f"/v1/sessions/{session}", {"agent": {"approval_mode": "read_only", "permission_rules": []}})
    api.say(session, "denied altogether")
    return session


def _governed(api: Api) -> str:
    rules = [
        {"decision": "deny", "path": "secrets/**"},
        {"decision": "deny", "domain": "*evil.test"},
        {"decision": "allow", "tool": "ls"},
    ]
    agent = {"approval_mode": "per_step", "permission_rules": rules, "tools": FUNCTIONS}
    session = api.session({"agent": agent})
    api.say(session, "governed, step by step")
    # In turn, and the two side by side from the last.
    approved = iter([True, False, True, True, True, False, True, True, False, True, True, True, True])
    while waiting := api.actions(session):
        answer = {"type": "input.approval", "call_id": waiting[-1]["call_id"], "approved": next(approved, True)}
        api.send(session, answer)
    assert next(approved, None) is None
    for mode in ("read_only", "plan"):
        api.patch(f"/v1/sessions/{session}", {"agent": {"approval_mode": mode}})
        api.say(session, f"governed, to {mode}")
    return session


def _outage(api: Api) -> list[str]:
    refused = api.post("/v1/sessions", {"agent": {"tools": REQUIRED}, "input": "hello"})
    assert refused.status == 400
    session = api.session({"agent": {"tools": REQUIRED}})
    assert api.say(session, "hello").status == 400
    assert api.say(session, "hello again").status == 202
    api.put(f"/v1/sessions/{session}/tools", {"tools": FUNCTIONS})
    api.say(session, "with other tools")
    return [session]


def _large(api: Api) -> str:
    session = api.session({"input": "large"})
    assert api.turns(session)[0]["artifacts"] == "partial"
    return session


def _organization(api: Api) -> None:
    agent = api.post("/v1/agents", {"name": "desk", "instructions": "Answer.", "tools": FUNCTIONS}).json
    session = api.session({"agent": {"id": "desk"}, "input": "from a saved agent"})
    hook = api.post("/v1/webhooks", {"url": "http://127.0.0.1:9/hook", "events": ["turn.failed"]}).json
    key = {"key": "sk-ant-abcdef0123456789abcdef", "model": "claude-sonnet-4-6", "label": "mine"}
    credential = api.post("/v1/model-credentials", key).json
    api.delete(f"/v1/sessions/{session}")
    for path in (f"agents/{agent['id']}", f"webhooks/{hook['id']}", f"model-credentials/{credential['id']}"):
        assert api.delete(f"/v1/{path}", headers={"idempotency-key": "once"}).status == 200
    for path in ("agents", "webhooks", "model-credentials", "environment-profiles", "sessions"):
        api.get(f"/v1/{path}")
    wrong: Callable[..., Any] = api.post
    assert wrong("/v1/sessions", {"titel": "x"}).status == 400
