"""Lists and their pages (contract §13)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.support import Api

LISTS = ["sessions", "turns", "items"]


def filled(api: Api, which: str, count: int) -> tuple[str, list[str]]:
    """A list with that many entries: its path, and their ids, oldest first."""
    if which == "sessions":
        return "/v1/sessions", [api.session() for _ in range(count)]
    session_id = api.session()
    path = f"/v1/sessions/{session_id}/{which}"
    for n in range(count):
        if which == "turns":
            api.say(session_id, f"message {n}")
        else:
            api.send(session_id, {"type": "input.context", "content": f"context {n}"})
    return path, [entry["id"] for entry in api.get(f"{path}?limit=100&order=asc").json["data"]]


def add(api: Api, path: str) -> None:
    """One more entry in a list."""
    if path == "/v1/sessions":
        api.session()
    else:
        api.say(path.split("/")[3], "one more")


def ids(page: dict[str, Any]) -> list[str]:
    return [entry["id"] for entry in page["data"]]


@pytest.mark.behaviour("lists.shape", "lists.empty")
@pytest.mark.parametrize("which", LISTS)
def test_a_list_has_its_shape(api: Api, which: str) -> None:
    path, made = filled(api, which, 0)
    assert api.get(path).json == {"object": "list", "data": [], "has_more": False, "last_id": None}
    path, made = filled(api, which, 2)
    page = api.get(path).json
    assert set(page) == {"object", "data", "has_more", "last_id"}
    assert (page["object"], page["has_more"], page["last_id"]) == ("list", False, made[0])
    assert {entry["object"] for entry in page["data"]} == {which.removesuffix("s")}


@pytest.mark.behaviour("lists.default", "lists.order")
@pytest.mark.parametrize("which", LISTS)
def test_a_page_has_twenty_entries_newest_first(api: Api, which: str) -> None:
    path, made = filled(api, which, 21)
    page = api.get(path).json
    assert ids(page) == made[:0:-1]
    assert (page["has_more"], page["last_id"]) == (True, made[1])
    assert ids(api.get(f"{path}?order=desc").json) == ids(page)
    assert ids(api.get(f"{path}?order=asc").json) == made[:20]


@pytest.mark.behaviour("lists.limit")
@pytest.mark.parametrize("which", LISTS)
def test_a_limit_is_taken_or_refused(api: Api, which: str) -> None:
    path, made = filled(api, which, 3)
    assert ids(api.get(f"{path}?limit=1").json) == made[-1:]
    assert ids(api.get(f"{path}?limit=2").json) == made[:0:-1]
    assert ids(api.get(f"{path}?limit=100").json) == made[::-1]
    for limit in ("0", "101", "1000", "-1"):
        answer = api.get(f"{path}?limit={limit}")
        assert (answer.status, answer.code, set(answer.json)) == (400, "invalid_request", {"error"})


@pytest.mark.behaviour("lists.pages", "lists.last-page")
@pytest.mark.parametrize("which", LISTS)
@pytest.mark.parametrize("order", ["asc", "desc"])
@pytest.mark.parametrize("limit", [1, 2, 3, 6])
def test_following_the_cursor_gives_every_entry_once(api: Api, which: str, order: str, limit: int) -> None:
    path, made = filled(api, which, 6)
    found: list[str] = []
    after = ""
    while len(found) < 6:
        page = api.get(f"{path}?order={order}&limit={limit}{after}").json
        found += ids(page)
        assert page["has_more"] == (len(found) < 6)
        assert page["last_id"] == found[-1]
        after = f"&after={page['last_id']}"
    assert found == (made if order == "asc" else made[::-1])
    assert api.get(f"{path}?order={order}{after}").json == {
        "object": "list",
        "data": [],
        "has_more": False,
        "last_id": None,
    }


@pytest.mark.behaviour("lists.unplaceable")
@pytest.mark.parametrize("which", LISTS)
@pytest.mark.parametrize("order", ["asc", "desc"])
def test_a_cursor_that_cannot_be_placed_gives_an_empty_page(api: Api, which: str, order: str) -> None:
    path, _ = filled(api, which, 2)
    _, elsewhere = filled(api, "turns" if which == "items" else "items", 1)
    for after in ("nowhere", "turn_0000000000000000", elsewhere[0], "%2e%2e"):
        page = api.get(f"{path}?order={order}&after={after}").json
        assert (page["data"], page["has_more"]) == ([], False)


@pytest.mark.behaviour("lists.unplaceable")
def test_the_cursor_of_a_deleted_session_cannot_be_placed(api: Api) -> None:
    path, made = filled(api, "sessions", 3)
    api.delete(f"{path}/{made[1]}")
    page = api.get(f"{path}?after={made[1]}").json
    assert (page["data"], page["has_more"]) == ([], False)


@pytest.mark.behaviour("lists.empty-cursor")
@pytest.mark.parametrize("which", LISTS)
def test_an_empty_cursor_is_refused(api: Api, which: str) -> None:
    path, _ = filled(api, which, 1)
    answer = api.get(f"{path}?after=")
    assert (answer.status, answer.code) == (400, "invalid_request")
    assert "`after`" in answer.message


@pytest.mark.behaviour("lists.cursor-stays")
@pytest.mark.parametrize("which", LISTS)
def test_what_is_added_does_not_shift_the_next_page(api: Api, which: str) -> None:
    path, made = filled(api, which, 4)
    first = api.get(f"{path}?limit=2").json
    add(api, path)
    assert ids(api.get(f"{path}?limit=2&after={first['last_id']}").json) == made[1::-1]
