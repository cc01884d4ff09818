"""Previews: what an agent serves, published at an address that answers (contract §12)."""

from __future__ import annotations

import urllib.request
from typing import TYPE_CHECKING, Any

import pytest

from emulator.settings import SettingError, Settings, changed
from tests.contract.calls import NOWHERE, mint

if TYPE_CHECKING:
    from emulator import Turn
    from tests.support import Answer, Api

IDLE = 300
LIFE = 7200
PAGES = {
    "/": "<h1>Start</h1>",
    "/app.js": "run()",
    "data.json": "[1]",
    "/notes": "no type",
    "/docs/index.html": "docs",
    "/ü b.css": "p {}",
    "/logo.svg": "<svg/>",
}


@pytest.fixture(autouse=True)
def _agent(api: Api) -> None:
    """An agent that serves what the message says."""

    @api.emulator.agent
    async def agent(turn: Turn) -> None:
        match turn.message:
            case "pages":
                await turn.preview(8080, PAGES)
            case "silent":
                await turn.preview(4000)
            case "ask":
                await turn.ask("Which?")
            case "nothing":
                await turn.say("Nothing.")
            case body:
                await turn.preview(3000, body=body)


def publish(api: Api, session_id: str, body: Any = None, **options: Any) -> Answer:
    return api.post(f"/v1/sessions/{session_id}/preview", body, **options)


def unpublish(api: Api, session_id: str) -> Answer:
    return api.delete(f"/v1/sessions/{session_id}/preview")


def serving(api: Api, text: str = "orders: 42") -> str:
    """A session whose agent serves a text, or what the word stands for."""
    return api.session({"input": text})


def published(api: Api, text: str = "orders: 42", **body: Any) -> tuple[str, str]:
    """A published session, and the path of its address."""
    session_id = serving(api, text)
    answer = publish(api, session_id, body)
    assert answer.status == 201, answer.raw
    url: str = answer.json["url"]
    return session_id, url.removeprefix(api.emulator.url)


def preview(api: Api, session_id: str) -> dict[str, Any]:
    shown: dict[str, Any] = api.get(f"/v1/sessions/{session_id}").json["preview"]
    return shown


def state(api: Api, session_id: str) -> str:
    found: str = api.get(f"/v1/sessions/{session_id}").json["environment"]["state"]
    return found


def visit(api: Api, path: str, verb: str = "GET", **options: Any) -> Answer:
    return api.request(verb, path, token=None, **options)


@pytest.mark.behaviour("previews.served", "previews.private")
def test_what_the_agent_serves_is_on_the_session(api: Api) -> None:
    session_id = serving(api)
    shown = preview(api, session_id)
    [ready] = [event["payload"] for event in api.events(session_id) if event["type"] == "preview.ready"]
    assert ready == {"port": 3000, "url": shown["url"]}
    assert (shown["port"], shown["published_url"]) == (3000, None)
    address, _, name = shown["url"].removesuffix(".gobare.dev").partition("p-")
    assert (address, len(name)) == ("https://", 12)
    assert visit(api, f"/_preview/p-{name}").code == "not_found"


@pytest.mark.behaviour("previews.publish", "previews.default", "previews.address")
def test_publishing_gives_an_address_of_the_emulator(api: Api) -> None:
    session_id = serving(api)
    answer = publish(api, session_id, {})
    subdomain = f"s-{session_id.replace('-', '')[:20]}"
    address = f"{api.emulator.url}/_preview/{subdomain}"
    assert answer.status == 201
    assert answer.json == {
        "object": "preview",
        "subdomain": subdomain,
        "url": address,
        "published_url": address,
        "port": 3000,
    }
    assert preview(api, session_id)["published_url"] == address


@pytest.mark.behaviour("previews.publish", "previews.open")
def test_an_address_can_be_opened_with_any_client(api: Api) -> None:
    answer = publish(api, serving(api), {"subdomain": "acme-invoices"})
    assert answer.json["url"] == f"{api.emulator.url}/_preview/acme-invoices"
    with urllib.request.urlopen(answer.json["url"], timeout=10) as response:
        assert (response.status, response.read()) == (200, b"orders: 42")


@pytest.mark.behaviour("previews.no-body")
@pytest.mark.parametrize("raw", [b"", b"{}", None])
def test_publishing_needs_no_body(api: Api, raw: bytes | None) -> None:
    answer = publish(api, serving(api), raw=raw, headers={"content-type": "application/json"})
    assert answer.status == 201
    for body in (b" ", b"null", b"[]", b'{"subdomain":null}', b'{"port":3000}', b'{"subdomain":5}'):
        assert publish(api, serving(api), raw=body).code == "invalid_request"


@pytest.mark.behaviour("previews.again")
@pytest.mark.parametrize("body", [{}, {"subdomain": "acme-invoices"}])
def test_the_same_address_again_is_what_it_was(api: Api, body: dict[str, str]) -> None:
    session_id = serving(api)
    first, second = publish(api, session_id, body), publish(api, session_id, body)
    assert (first.status, second.status) == (201, 200)
    assert first.json == second.json


@pytest.mark.behaviour("previews.again", "previews.default")
def test_the_derived_name_may_be_asked_for_by_its_own_session(api: Api) -> None:
    session_id = serving(api)
    first = publish(api, session_id)
    assert publish(api, session_id, {"subdomain": first.json["subdomain"]}).status == 200


@pytest.mark.behaviour("previews.elsewhere", "previews.elsewhere-unnamed")
@pytest.mark.parametrize("body", [{"subdomain": "other"}, {}])
def test_a_published_preview_is_not_moved(api: Api, body: dict[str, str]) -> None:
    session_id, path = published(api, subdomain="acme-invoices")
    answer = publish(api, session_id, body)
    assert (answer.status, answer.code) == (409, "conflict")
    assert path in answer.message
    assert f"DELETE /v1/sessions/{session_id}/preview" in answer.message
    assert "retry-after" not in answer.headers
    assert visit(api, path).status == 200
    assert visit(api, "/_preview/other").status == 404
    unpublish(api, session_id)
    assert publish(api, session_id, body).status == 201


@pytest.mark.behaviour("previews.no-port")
def test_there_is_nothing_to_publish_before_something_is_served(api: Api) -> None:
    for session_id in (api.session(), serving(api, "nothing")):
        answer = publish(api, session_id)
        assert (answer.status, answer.code) == (409, "conflict")
        assert "preview(port)" in answer.message
        assert preview(api, session_id) == {"url": None, "port": None, "published_url": None}


@pytest.mark.behaviour("previews.taken", "previews.free")
def test_a_subdomain_is_held_by_one_session(api: Api) -> None:
    holder, path = published(api, "first", subdomain="acme-invoices")
    other = serving(api, "second")
    answer = publish(api, other, {"subdomain": "acme-invoices"})
    assert (answer.status, answer.code) == (409, "conflict")
    assert "'acme-invoices' is taken" in answer.message
    assert visit(api, path).raw == b"first"
    unpublish(api, holder)
    assert publish(api, other, {"subdomain": "acme-invoices"}).status == 201
    assert visit(api, path).raw == b"second"


@pytest.mark.behaviour("previews.taken-anywhere")
def test_another_organization_holds_it_just_as_well(api: Api) -> None:
    published(api, subdomain="acme-invoices")
    token = mint(api, organization="other")
    theirs = api.session({"input": "theirs"}, token=token)
    answer = publish(api, theirs, {"subdomain": "acme-invoices"}, token=token)
    own = publish(api, serving(api), {"subdomain": "acme-invoices"})
    assert (answer.status, answer.code, answer.message) == (409, "conflict", own.message)
    assert publish(api, theirs, token=token).status == 201


@pytest.mark.behaviour("previews.not-prepared")
@pytest.mark.gobare(preview_publish="fails")
def test_what_cannot_be_prepared_is_not_published(api: Api) -> None:
    session_id = serving(api)
    answer = publish(api, session_id, {"subdomain": "acme-invoices"})
    assert (answer.status, answer.code) == (409, "conflict")
    assert "could not be prepared" in answer.message
    assert preview(api, session_id)["published_url"] is None
    api.emulator.settings.update(preview_publish="works")
    assert publish(api, serving(api), {"subdomain": "acme-invoices"}).status == 201


@pytest.mark.behaviour("previews.characters")
@pytest.mark.parametrize("subdomain", ["", "a", "a" * 64, "Acme", "a_b", "a.b", "a b", "ümlaut", "a/b", "٣٤"])
def test_an_unusable_subdomain_is_refused(api: Api, subdomain: str) -> None:
    answer = publish(api, serving(api), {"subdomain": subdomain})
    assert (answer.status, answer.code) == (400, "invalid_request")
    assert "`subdomain` takes 2 to 63 characters of a to z, 0 to 9 and -" in answer.message


@pytest.mark.behaviour("previews.characters")
def test_a_near_miss_is_told_what_was_meant(api: Api) -> None:
    answer = publish(api, serving(api), {"subdomain": "Acme Invoices"})
    assert answer.message.endswith("Did you mean `acme-invoices`?")
    assert "64 were sent" in publish(api, serving(api), {"subdomain": "a" * 64}).message


@pytest.mark.behaviour("previews.characters", "previews.hyphens")
def test_the_edges_of_what_is_accepted(api: Api) -> None:
    for subdomain in ("ab", "a" * 63, "a-b", "42", "a--b", "xn--bcher-kva"):
        assert publish(api, serving(api), {"subdomain": subdomain}).status == 201, subdomain
    for subdomain in ("-ab", "ab-", "--"):
        assert publish(api, serving(api), {"subdomain": subdomain}).code == "invalid_request", subdomain


@pytest.mark.behaviour("previews.reserved")
def test_reserved_names_are_refused(api: Api) -> None:
    session_id = serving(api)
    for subdomain in ("www", "api", "app", "console", "gobare", "s-00000000000000000000", "p-4f1c8e02a7b1"):
        answer = publish(api, session_id, {"subdomain": subdomain})
        assert (answer.status, answer.code) == (400, "invalid_request"), subdomain
        assert "reserves" in answer.message
    assert publish(api, session_id, {"subdomain": "my-api"}).status == 201


@pytest.mark.behaviour("previews.refusal-order")
def test_the_shape_is_looked_at_before_the_session(api: Api) -> None:
    assert publish(api, NOWHERE.session_id, {"subdomain": "www"}).code == "invalid_request"
    assert publish(api, NOWHERE.session_id, {"subdomain": "fine"}).code == "not_found"


@pytest.mark.behaviour("previews.unpublish", "previews.unpublish-id", "previews.unpublish-again")
def test_unpublishing_takes_the_address_alone(api: Api) -> None:
    session_id, path = published(api)
    before = preview(api, session_id)
    answers = [unpublish(api, session_id) for _ in range(2)]
    assert [answer.status for answer in answers] == [200, 200]
    assert answers[0].json == answers[1].json == {"object": "preview.deleted", "id": session_id, "deleted": True}
    assert preview(api, session_id) == {**before, "published_url": None}
    assert visit(api, path).status == 404
    assert unpublish(api, NOWHERE.session_id).code == "not_found"
    assert unpublish(api, api.session()).status == 200


@pytest.mark.behaviour("previews.free", "previews.publish")
def test_publishing_again_is_ordinary(api: Api) -> None:
    session_id, path = published(api)
    unpublish(api, session_id)
    assert publish(api, session_id).status == 201
    assert visit(api, path).status == 200


@pytest.mark.behaviour("previews.delete")
def test_deleting_the_session_frees_its_address(api: Api) -> None:
    session_id, path = published(api, subdomain="acme-invoices")
    assert api.emulator.report()["undeleted"]["previews"] == [
        {"session_id": session_id, "url": f"{api.emulator.url}{path}"}
    ]
    api.delete(f"/v1/sessions/{session_id}")
    assert visit(api, path).status == 404
    assert api.emulator.report()["undeleted"]["previews"] == []
    assert published(api, "next", subdomain="acme-invoices")[1] == path


@pytest.mark.behaviour("previews.public-url")
@pytest.mark.parametrize("address", ["http://emulator.test:4747", "https://edge.test/gobare/"])
def test_the_address_is_where_clients_reach_the_emulator(api: Api, address: str) -> None:
    api.emulator.settings.update(public_url=address)
    answer = publish(api, serving(api), {"subdomain": "acme"})
    assert answer.json["url"] == f"{address.rstrip('/')}/_preview/acme"
    assert visit(api, "/_preview/acme").status == 200


@pytest.mark.behaviour("previews.public-url")
def test_what_is_no_address_is_refused_where_it_is_set() -> None:
    with pytest.raises(SettingError, match="`public_url` is an http or https address"):
        changed(Settings(), {"public_url": "emulator.test"})


@pytest.mark.behaviour("previews.type", "previews.everywhere")
@pytest.mark.parametrize(
    ("text", "content_type"),
    [
        ("orders: 42", "text/plain; charset=utf-8"),
        ("  <!doctype html><p>hi", "text/html; charset=utf-8"),
        ('{"a": "ü"}', "application/json; charset=utf-8"),
        ("[1]", "application/json; charset=utf-8"),
    ],
)
def test_a_text_is_served_as_what_it_looks_like_at_every_path(api: Api, text: str, content_type: str) -> None:
    _, path = published(api, text)
    for rest in ("", "/", "/a/b.css", "/?a=b"):
        answer = visit(api, f"{path}{rest}")
        assert (answer.status, answer.headers["content-type"]) == (200, content_type)
        assert answer.raw == text.encode()
        assert answer.headers["content-length"] == str(len(text.encode()))


@pytest.mark.behaviour("previews.browser")
def test_a_browser_is_sent_to_where_relative_links_work(api: Api) -> None:
    _, path = published(api, "pages")
    browser = {"accept": "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8"}
    sent_on = visit(api, path, headers=browser)
    assert (sent_on.status, sent_on.headers["location"]) == (307, f"{path}/")
    for there, headers in ((f"{path}/", browser), (path, {"accept": "*/*"}), (path, {})):
        assert visit(api, there, headers=headers).status == 200
    assert visit(api, "/_preview/nobody", headers=browser).status == 404


@pytest.mark.behaviour("previews.pages", "previews.not-found")
def test_each_page_answers_at_its_own_path(api: Api) -> None:
    _, path = published(api, "pages")
    for rest, text, content_type in (
        ("", "<h1>Start</h1>", "text/html; charset=utf-8"),
        ("/", "<h1>Start</h1>", "text/html; charset=utf-8"),
        ("/app.js", "run()", "text/javascript; charset=utf-8"),
        ("/data.json", "[1]", "application/json; charset=utf-8"),
        ("/notes", "no type", "text/plain; charset=utf-8"),
        ("/docs/", "docs", "text/html; charset=utf-8"),
        ("/docs/index.html", "docs", "text/html; charset=utf-8"),
        ("/%C3%BC%20b.css", "p {}", "text/css; charset=utf-8"),
        ("/logo.svg", "<svg/>", "image/svg+xml; charset=utf-8"),
    ):
        answer = visit(api, f"{path}{rest}")
        assert (answer.status, answer.raw.decode(), answer.headers["content-type"]) == (200, text, content_type)
    for rest in ("/docs", "/none", "/app.js/", "/%00", "/%ff"):
        answer = visit(api, f"{path}{rest}")
        assert (answer.status, answer.code) == (404, "not_found"), rest


@pytest.mark.behaviour("previews.silent")
def test_a_port_without_a_body_says_which_it_is(api: Api) -> None:
    _, path = published(api, "silent")
    answer = visit(api, path)
    assert (answer.status, answer.headers["content-type"]) == (200, "text/plain; charset=utf-8")
    assert answer.raw.startswith(b"Port 4000 ")


@pytest.mark.behaviour("previews.not-found")
def test_nobody_is_at_an_address_that_was_not_given_out(api: Api) -> None:
    serving(api)
    for path in ("/_preview", "/_preview/", "/_preview/acme", "/_preview//", "/_preview/%2e%2e", "/_preview/ACME/x"):
        answer = visit(api, path)
        assert (answer.status, answer.code) == (404, "not_found"), path
        assert answer.headers["content-type"] == "application/json"


@pytest.mark.behaviour("previews.verbs")
def test_addresses_take_get_and_head(api: Api) -> None:
    _, path = published(api)
    head = visit(api, path, "HEAD")
    assert (head.status, head.raw, head.headers["content-length"]) == (200, b"", "10")
    assert visit(api, f"{path}x", "HEAD").status == 404
    for verb in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
        answer = visit(api, path, verb)
        assert (answer.status, answer.code) == (405, "method_not_allowed")
        assert answer.headers["allow"] == "GET, HEAD"


@pytest.mark.behaviour("previews.latest")
def test_a_later_preview_is_served_at_the_same_address(api: Api) -> None:
    session_id, path = published(api, "first")
    api.say(session_id, "silent")
    assert preview(api, session_id)["port"] == 4000
    assert visit(api, path).raw.startswith(b"Port 4000 ")
    assert publish(api, session_id).json["port"] == 4000
    api.say(session_id, "second")
    assert visit(api, path).raw == b"second"


@pytest.mark.behaviour("previews.hosts")
def test_only_known_host_names_are_served(api: Api) -> None:
    _, path = published(api)
    request = urllib.request.Request(f"{api.emulator.url}{path}", headers={"Host": "evil.example.com"})
    with pytest.raises(urllib.request.HTTPError) as refused:
        urllib.request.urlopen(request, timeout=10)
    refused.value.close()
    assert refused.value.code == 403


@pytest.mark.behaviour("previews.wakes", "previews.pauses", "previews.visits")
def test_a_visit_wakes_a_paused_workspace(api: Api) -> None:
    session_id, path = published(api)
    api.emulator.clock.advance(IDLE)
    assert state(api, session_id) == "paused"
    api.emulator.clock.advance(10 * LIFE)
    assert visit(api, path).raw == b"orders: 42"
    assert state(api, session_id) == "running"
    assert api.events(session_id)[-1]["type"] == "sandbox.resumed"
    api.emulator.clock.advance(IDLE - 1)
    visit(api, path)
    api.emulator.clock.advance(IDLE - 1)
    assert state(api, session_id) == "running"
    api.emulator.clock.advance(1)
    assert state(api, session_id) == "paused"
    assert [event["type"] for event in api.events(session_id)].count("sandbox.resumed") == 1


@pytest.mark.behaviour("previews.visits")
def test_a_visit_during_a_turn_lets_nothing_pause_under_it(api: Api) -> None:
    session_id, path = published(api)
    api.say(session_id, "ask")
    assert visit(api, path).status == 200
    api.emulator.clock.advance(2 * IDLE)
    assert state(api, session_id) == "running"


@pytest.mark.behaviour("previews.not-reclaimed")
def test_a_published_workspace_is_not_reclaimed(api: Api) -> None:
    session_id, path = published(api)
    api.say(session_id, "ask")
    api.emulator.clock.advance(3 * LIFE)
    assert (state(api, session_id), api.turns(session_id)[-1]["status"]) == ("running", "working")
    api.emulator.answer("a")
    api.emulator.clock.advance(3 * LIFE)
    assert (state(api, session_id), visit(api, path).status) == ("paused", 200)


@pytest.mark.behaviour("previews.not-reclaimed")
def test_nor_is_one_that_was_woken(api: Api) -> None:
    session_id, path = published(api)
    api.emulator.clock.advance(IDLE)
    visit(api, path)
    api.say(session_id, "ask")
    api.emulator.clock.advance(2 * LIFE)
    assert (state(api, session_id), api.turns(session_id)[-1]["status"]) == ("running", "working")


@pytest.mark.behaviour("previews.countdown")
def test_the_two_hours_count_again_once_it_is_unpublished(api: Api) -> None:
    session_id = serving(api)
    api.say(session_id, "ask")
    api.emulator.clock.advance(LIFE - 100)
    publish(api, session_id)
    api.emulator.clock.advance(LIFE)
    unpublish(api, session_id)
    api.emulator.clock.advance(99)
    assert state(api, session_id) == "running"
    api.emulator.clock.advance(1)
    assert state(api, session_id) == "destroyed"


@pytest.mark.behaviour("previews.countdown", "previews.not-reclaimed")
def test_published_or_not_while_paused_nothing_is_lost(api: Api) -> None:
    session_id = serving(api)
    api.emulator.clock.advance(IDLE)
    publish(api, session_id)
    api.emulator.clock.advance(LIFE)
    unpublish(api, session_id)
    api.emulator.clock.advance(LIFE)
    assert state(api, session_id) == "paused"
    api.say(session_id, "ask")
    api.emulator.clock.advance(LIFE - IDLE - 1)
    assert state(api, session_id) == "running"
    api.emulator.clock.advance(1)
    assert state(api, session_id) == "destroyed"


@pytest.mark.behaviour("previews.reclaimed", "previews.no-port")
def test_a_reclaimed_workspace_serves_nothing(api: Api) -> None:
    session_id = serving(api)
    api.say(session_id, "ask")
    api.emulator.clock.advance(LIFE)
    assert preview(api, session_id) == {"url": None, "port": None, "published_url": None}
    assert publish(api, session_id).code == "conflict"


@pytest.mark.behaviour("previews.scenario")
def test_a_scenario_serves_texts(api: Api) -> None:
    steps = [{"preview": {"port": 3000, "body": {"/": "<p>{{ message }}</p>", "/a.json": "[]"}}}]
    api.emulator.load({"agent": [{"when": {"message": {"contains": "go"}}, "do": steps}]})
    _, path = published(api, "go")
    assert visit(api, path).raw == b"<p>go</p>"
    assert visit(api, f"{path}/a.json").headers["content-type"].startswith("application/json")
