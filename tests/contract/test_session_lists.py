"""Lists of sessions: their filters, and trees (contract §6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

if TYPE_CHECKING:
    from tests.support import Api


def listed(api: Api, query: str = "", **options: Any) -> list[str]:
    """The ids of a page of sessions."""
    answer = api.get(f"/v1/sessions?{query}", **options)
    assert answer.status == 200, answer.raw
    return [session["id"] for session in answer.json["data"]]


def chain(api: Api, length: int) -> list[str]:
    """Sessions each of which is the parent of the next."""
    ids = [api.session()]
    while len(ids) < length:
        ids.append(api.session({"parent_session_id": ids[-1]}))
    return ids


@pytest.mark.behaviour("sessions.list-order")
def test_sessions_are_listed_newest_first(api: Api) -> None:
    ids = [api.session() for _ in range(4)]
    assert listed(api) == ids[::-1] == listed(api, "order=desc")
    assert listed(api, "order=asc") == ids


@pytest.mark.behaviour("sessions.list-entries")
def test_a_listed_session_carries_what_it_waits_for(api: Api) -> None:
    @api.emulator.agent
    async def agent(turn: Any) -> None:
        await turn.ask("Which?", ["a"])

    session_id = api.session({"input": "go"})
    [entry] = api.get("/v1/sessions").json["data"]
    read = api.get(f"/v1/sessions/{session_id}").json
    del read["agent"]["tools"]
    assert entry == read
    assert [action["name"] for action in entry["required_actions"]] == ["Which?"]


@pytest.mark.behaviour("sessions.list-status")
def test_a_list_is_narrowed_to_a_status(api: Api) -> None:
    @api.emulator.agent
    async def agent(turn: Any) -> None:
        match turn.message:
            case "ask":
                await turn.ask("Which?")
            case "fail":
                await turn.fail("provider_error", "no")
            case "wait":
                await turn.wait(60)

    made = {text: api.session({"input": text}) for text in ("ask", "fail", "wait", "done")}
    wanted = {"requires_action": "ask", "failed": "fail", "working": "wait", "idle": "done"}
    for status, text in wanted.items():
        assert listed(api, f"status={status}") == [made[text]]


@pytest.mark.behaviour("sessions.list-source")
def test_a_list_is_narrowed_to_a_source(api: Api) -> None:
    session_id = api.session()
    assert listed(api, "source=api") == [session_id]
    assert listed(api, "source=console") == []


@pytest.mark.behaviour("sessions.list-token")
def test_a_list_is_narrowed_to_who_created(api: Api) -> None:
    minted = api.emulator.tokens.mint()
    mine, theirs = api.session(), api.session(token=minted.token)
    assert listed(api, "created_by_token=me") == [mine]
    assert listed(api, "created_by_token=me", token=minted.token) == [theirs]
    assert listed(api, f"created_by_token={minted.id}") == [theirs]
    assert listed(api, "created_by_token=tok_nobody") == []
    assert listed(api, f"created_by_token={minted.token}") == []


@pytest.mark.behaviour("sessions.list-metadata")
@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ("job:8842", True),
        ("job:88", False),
        ("job:", False),
        ("8842:job", False),
        ("url:http://a:80/x", True),
        ("url:http", False),
        ("empty:", True),
        ("empty:x", False),
        ("ключ:з н&а=ч", True),
        ("none:", False),
    ],
)
def test_a_list_is_narrowed_to_a_label(api: Api, wanted: str, found: bool) -> None:
    session_id = api.session({"metadata": {"job": "8842", "url": "http://a:80/x", "empty": "", "ключ": "з н&а=ч"}})
    api.session()
    assert listed(api, f"metadata={quote(wanted)}") == ([session_id] if found else [])


@pytest.mark.behaviour("sessions.list-metadata")
def test_a_plus_in_a_query_is_a_space(api: Api) -> None:
    session_id = api.session({"metadata": {"a b": "c d"}})
    assert listed(api, "metadata=a+b%3Ac+d") == [session_id]


@pytest.mark.behaviour("sessions.list-filters")
def test_filters_all_hold(api: Api) -> None:
    root = api.session({"metadata": {"job": "1"}})
    child = api.session({"parent_session_id": root, "metadata": {"job": "1"}})
    api.session({"parent_session_id": root})
    api.session({"metadata": {"job": "1"}})
    assert listed(api, f"root={root}&metadata=job:1&status=idle&source=api&created_by_token=me") == [child, root]
    assert listed(api, f"root={root}&metadata=job:1&status=failed") == []


@pytest.mark.behaviour("sessions.list-filters")
def test_pages_are_cut_from_what_filters_leave(api: Api) -> None:
    ids = [api.session({"metadata": {"odd": str(n % 2)}}) for n in range(10)]
    odd = ids[1::2][::-1]
    found: list[str] = []
    after = ""
    for _ in range(3):
        page = api.get(f"/v1/sessions?metadata=odd:1&limit=2{after}").json
        found += [session["id"] for session in page["data"]]
        after = f"&after={page['last_id']}"
        assert page["has_more"] == (len(found) < 5)
    assert found == odd
    # A cursor need not be of what the filter leaves.
    assert listed(api, f"metadata=odd:1&after={ids[4]}") == [ids[3], ids[1]]


@pytest.mark.behaviour("sessions.root")
def test_root_lists_the_whole_tree_and_nothing_else(api: Api) -> None:
    root = api.session()
    left, right = (api.session({"parent_session_id": root}) for _ in range(2))
    leaf = api.session({"parent_session_id": left})
    other = api.session()
    api.session({"parent_session_id": other})
    assert listed(api, f"root={root}&order=asc") == [root, left, right, leaf]
    assert listed(api, f"root={left}&order=asc") == [left, leaf]
    assert listed(api, f"root={leaf}") == [leaf]
    page = api.get(f"/v1/sessions?root={root}&limit=3").json
    assert (page["has_more"], page["last_id"]) == (True, left)


@pytest.mark.behaviour("sessions.root-depth")
def test_a_tree_is_read_sixteen_levels_deep(api: Api) -> None:
    ids = chain(api, 18)
    assert listed(api, f"root={ids[0]}&order=asc&limit=100") == ids[:16]
    assert listed(api, f"root={ids[2]}&order=asc&limit=100") == ids[2:]


@pytest.mark.behaviour("sessions.root-unknown")
def test_an_unknown_root_is_named(api: Api) -> None:
    gone = api.session()
    api.delete(f"/v1/sessions/{gone}")
    for root in ("nobody", gone):
        answer = api.get(f"/v1/sessions?root={root}")
        assert (answer.status, answer.code) == (404, "not_found")
        assert f"'{root}'" in answer.message
