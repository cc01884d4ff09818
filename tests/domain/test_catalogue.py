"""Connectors, saved agents and environment profiles."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from emulator.domain.catalogue import CONNECTOR_IDS, CONNECTORS, Agents, Profiles, SavedAgent, issuer_of, slug
from emulator.domain.tools import ToolSet
from emulator.ids import Ids
from emulator.refusals import Refusal
from emulator.settings import Profile, Provider


def agents() -> Agents:
    return Agents("acme", Ids(0))


def agent(name: str = "bot", **fields: Any) -> SavedAgent:
    return SavedAgent(id="", name=name, created_at=7, **({"instructions": "a"} | fields))


def test_requests_know_the_connectors_there_are() -> None:
    assert get_args(Provider) == CONNECTOR_IDS
    assert len(set(CONNECTOR_IDS)) == len(CONNECTORS) == 10


def test_every_connector_with_a_prefix_of_its_own_is_found_by_it() -> None:
    prefixes = [connector.key_prefix for connector in CONNECTORS]
    own = [connector for connector in CONNECTORS if connector.key_prefix and prefixes.count(connector.key_prefix) == 1]
    assert {issuer_of(f"{connector.key_prefix}x").id for connector in own} == {"anthropic", "xai", "openrouter"}


def test_a_slug_is_of_ascii_and_in_lower_case() -> None:
    assert slug("Bot-1.2_X") == "bot-1.2_x"
    for wrong in ("", "\u212a", "a b", "a\n", "x" * 65):
        with pytest.raises(Refusal) as refused:
            slug(wrong)
        assert refused.value.code == "invalid_request"


@pytest.mark.parametrize(
    ("fields", "empty"),
    [
        ({"instructions": None}, True),
        ({"instructions": None, "tools": ToolSet(())}, False),
        ({"instructions": None, "tools": ToolSet(None, {})}, False),
        ({"instructions": None, "model": "m"}, False),
        ({"instructions": None, "model_credential_id": "c"}, False),
        ({}, False),
    ],
)
def test_an_agent_is_empty_with_nothing_behind_its_name(fields: dict[str, Any], empty: bool) -> None:
    assert agent(**fields).empty is empty


def test_ids_are_the_same_for_the_same_seed_and_never_used_twice() -> None:
    def saved() -> list[str]:
        kept = agents()
        ids = [kept.save(agent(name), "").id for name in ("a", "b", "a")]
        kept.remove(ids[0])
        return [*ids, kept.save(agent("c"), "").id]

    first = saved()
    assert first == saved()
    assert (first[0], len(set(first))) == (first[2], 3)


def test_what_made_an_agent_first_is_remembered_of_it() -> None:
    kept = agents()
    kept.save(agent(request_id="first"), "")
    replaced = kept.save(SavedAgent(id="", name="bot", created_at=9, instructions="b", request_id="second"), "")
    assert (replaced.created_at, replaced.request_id, replaced.instructions) == (7, "first", "b")
    assert kept.listed == [replaced]


def test_an_agent_is_named_by_its_id_before_any_name() -> None:
    kept = agents()
    first = kept.save(agent("first"), "")
    second = kept.save(agent(first.id), "")
    assert kept.named(first.id, "agent.id") == first
    assert kept.named(second.id, "agent.id") == second
    assert kept.named("FIRST", "agent.id") == first


def test_profiles_are_checked_in_order() -> None:
    profiles = Profiles("acme", Ids(0), [Profile("a"), Profile("b", True, 3)])
    assert [(each.name, each.is_default, each.variable_count) for each in profiles.listed] == [
        ("a", False, 0),
        ("b", True, 3),
    ]
    profiles.check([])
    profiles.check([each.id for each in profiles.listed])
    with pytest.raises(Refusal, match=r"profiles\[1\]") as refused:
        profiles.check([profiles.listed[0].id, "envg_x", "envg_y"])
    assert refused.value.code == "not_found"
