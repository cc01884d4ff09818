"""Environment profiles (contract §12)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from tests.contract.calls import mint

if TYPE_CHECKING:
    from tests.support import Api

PATH = "/v1/environment-profiles"
THREE = [
    {"name": "default", "is_default": True, "variable_count": 2},
    {"name": "staging", "variable_count": 4},
    {"name": "empty"},
]


def ids(api: Api, **options: Any) -> list[str]:
    """The ids of the profiles, oldest first."""
    return [entry["id"] for entry in api.get(PATH, **options).json["data"]][::-1]


@pytest.mark.behaviour("profiles.none")
def test_a_fresh_organization_has_no_profiles(api: Api) -> None:
    assert api.get(PATH).json == {"object": "list", "data": [], "has_more": False, "last_id": None}


@pytest.mark.behaviour("profiles.seeded", "profiles.list")
@pytest.mark.gobare(profiles=THREE)
def test_the_profiles_of_the_settings_are_listed(api: Api) -> None:
    fields = ("object", "name", "is_default", "variable_count")
    data = [
        dict(zip(("id", *fields), (profile_id, "environment_profile", *told), strict=True))
        for profile_id, told in zip(
            ids(api), (("default", True, 2), ("staging", False, 4), ("empty", False, 0)), strict=True
        )
    ]
    page = api.get(PATH).json
    assert page == {"object": "list", "data": data[::-1], "has_more": False, "last_id": data[0]["id"]}
    assert all(re.fullmatch("envg_[0-9a-f]{16}", profile_id) for profile_id in ids(api))
    assert not set(ids(api)) & set(ids(api, token=mint(api, organization="other")))


@pytest.mark.behaviour("profiles.list")
@pytest.mark.gobare(profiles=THREE)
def test_profiles_come_in_pages(api: Api) -> None:
    oldest_first = ids(api)
    first = api.get(f"{PATH}?limit=2").json
    assert ([entry["name"] for entry in first["data"]], first["has_more"]) == (["empty", "staging"], True)
    last = api.get(f"{PATH}?limit=2&after={first['last_id']}").json
    assert ([entry["id"] for entry in last["data"]], last["has_more"]) == (oldest_first[:1], False)
    assert api.get(f"{PATH}?after=envg_nowhere").json["data"] == []
    for query in ("order=asc", "limit=0", "limit=101", "after=", "name=x"):
        answer = api.get(f"{PATH}?{query}")
        assert (answer.status, answer.code) == (400, "invalid_request")
        assert f"`{query.partition('=')[0]}`" in answer.message


@pytest.mark.behaviour("profiles.bind")
@pytest.mark.gobare(profiles=THREE)
def test_a_session_is_bound_to_profiles_and_shows_none(api: Api) -> None:
    first, second, _ = ids(api)
    environment: dict[str, Any]
    for environment in ({}, {"profiles": []}, {"profiles": [second]}, {"profiles": [second, first, second]}):
        answer = api.post("/v1/sessions", {"environment": environment})
        assert answer.status == 201
        assert "envg_" not in answer.raw.decode()
        assert "envg_" not in api.get(f"/v1/sessions/{answer.json['id']}").raw.decode()


@pytest.mark.behaviour("profiles.unknown")
@pytest.mark.gobare(profiles=THREE)
def test_no_session_is_bound_to_anothers_profile(api: Api) -> None:
    theirs = ids(api, token=mint(api, organization="other"))[0]
    messages = set()
    for unknown in (theirs, "envg_0000000000000000", "staging", ""):
        answer = api.post("/v1/sessions", {"environment": {"profiles": [ids(api)[0], unknown]}})
        assert (answer.status, answer.code) == (404, "not_found")
        assert "`environment.profiles[1]`" in answer.message
        messages.add(answer.message.replace(repr(unknown), "it"))
    assert len(messages) == 1
    assert api.get("/v1/sessions").json["data"] == []
