"""The timeline as it prints, and the page made of it."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

from emulator.client.page import page
from emulator.client.timeline import Timeline, of_request

if TYPE_CHECKING:
    from emulator import Emulator
    from tests.support import Api

REQUEST: dict[str, Any] = {
    "method": "POST",
    "path": "/v1/sessions/s-1/events",
    "query": {},
    "status": 202,
    "code": None,
    "message": None,
    "request_id": "0a1b2c3d",
    "at": 5,
    "token_id": "tok_1",
    "duration_ms": 1.0,
    "body": None,
}


def test_what_clients_sent_and_what_the_agent_did_stand_below_each_other(gobare: Emulator, api: Api) -> None:
    gobare.load({"agent": [{"otherwise": [{"call": {"function": "lookup", "arguments": {"id": 7}}}, {"say": "ok"}]}]})
    session_id = api.session({"input": "go", "agent": {"tools": [{"type": "function", "name": "lookup"}]}})
    (action,) = api.actions(session_id)
    api.answer(session_id, action, "{}")
    api.get("/v1/sessions/nobody")
    lines = str(gobare.timeline()).splitlines()
    assert [re.sub(r"(?<= )[0-9a-f]{8}(?= |$)", "…", line, count=1) for line in lines] == [
        '   +0.000 s  client    201 POST /v1/sessions … input="go" '
        'agent={"tools": [{"type": "function", "name": "lookup"}]}',
        "   +0.001 s  user      go",
        f"   +0.004 s  agent     calls lookup(id=7)  [{action['call_id']}]",
        f"   +0.004 s  client    200 GET /v1/sessions/{session_id} …",
        f"   +0.004 s  client    202 POST /v1/sessions/{session_id}/events … input.tool_result "
        f'turn_id="{action["turn_id"]}" call_id="{action["call_id"]}" success=true output="{{}}"',
        f"   +0.005 s  client    lookup succeeded  [{action['call_id']}]",
        "   +0.006 s  agent     ok",
        "   +0.007 s  turn      ends",
        "   +0.007 s  client    404 not_found GET /v1/sessions/nobody …",
        "                           No session 'nobody'.",
    ]
    assert str(gobare.timeline(session_id)).count("client") < len(lines)


def test_events_of_several_sessions_say_whose_they_are(gobare: Emulator, api: Api) -> None:
    first, second = api.session({"input": "one"}), api.session({"input": "two"})
    told = str(gobare.timeline())
    assert f"user      one  ({first[:8]}…)" in told
    assert f"user      two  ({second[:8]}…)" in told


def test_a_request_is_told_by_what_its_body_says_shortly() -> None:
    body = {"events": [{"type": "input.message", "content": "x" * 100}]}
    assert of_request({**REQUEST, "body": body}).endswith(f' input.message content="{"x" * 58}…')
    assert of_request({**REQUEST, "body": {"output": '{"a": "b"}'}}).endswith(' output=\'{"a": "b"}\'')
    assert of_request({**REQUEST, "body": "[text of 3 characters]"}).endswith(' "[text of 3 characters]"')
    assert of_request({**REQUEST, "body": []}).endswith(" []")
    assert of_request({**REQUEST, "query": {"limit": "5"}}) == "202 POST /v1/sessions/s-1/events?limit=5 0a1b2c3d"


def test_nothing_that_happened_is_said_to_be_so() -> None:
    assert str(Timeline()) == "(nothing happened)"


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()
        self.links: list[str | None] = []
        self.text = ""
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.add(tag)
        self.links += [value for name, value in attrs if name in ("src", "href") or name.startswith("on")]
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_a_page_is_one_file_in_which_every_text_is_escaped(gobare: Emulator, api: Api) -> None:
    evil = "<script>alert(1)</script><img src=x onerror=y>&amp;\x00 \"quoted\" 'too'"
    gobare.load({"scenario": evil, "agent": [{"otherwise": [{"ask": {"question": evil}}, {"say": "x"}]}]})
    api.session({"input": evil.replace("\x00", ""), "title": "<b>"})
    requests = [vars(entry) for entry in gobare.requests]
    made = page(f"test_it.py::test[{evil}]", "failed", gobare.timeline(), requests, gobare.report())
    tags = _Tags()
    tags.feed(made)
    assert tags.open == []
    assert not tags.found & {"script", "img", "link", "b"}
    assert tags.links == []
    assert "<script>alert(1)</script>" in tags.text
    assert "\x00" not in made
    assert "http://" not in made.replace(gobare.url, "")
    assert "prefers-color-scheme: dark" in made
    for told in ("asks: <script>", "nobody answered the question", "201 POST /v1/sessions", "unreached_steps"):
        assert told in tags.text


def test_a_page_of_nothing_is_a_page(gobare: Emulator) -> None:
    made = page("t", "passed", gobare.timeline(), [], gobare.report())
    tags = _Tags()
    tags.feed(made)
    assert "none" in tags.text


def test_of_reads_that_are_alike_the_first_is_printed_and_how_many_followed(gobare: Emulator, api: Api) -> None:
    session_id = api.session({"input": "go"})
    for _ in range(3):
        api.get(f"/v1/sessions/{session_id}")
    for _ in range(400):
        api.get(f"/v1/sessions/{session_id}/turns")
    api.get("/v1/sessions/nobody")
    for _ in range(5):
        api.say(session_id, "again")
    told = str(gobare.timeline())
    assert told.count(f"200 GET /v1/sessions/{session_id} ") == 3
    assert told.count(f"200 GET /v1/sessions/{session_id}/turns ") == 1
    assert told.count("  client    … the same 399 times more") == 1
    assert told.count("404 not_found GET /v1/sessions/nobody") == 1
    assert told.count("202 POST") == 5
    assert len(list(gobare.timeline().lines())) > 400
