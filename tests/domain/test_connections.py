"""The connections of an organization."""

from __future__ import annotations

from typing import Any

import pytest

from emulator.domain.connections import Connections, ModelConnection, Wanted
from emulator.ids import Ids
from emulator.redaction import Secret
from emulator.refusals import Refusal
from emulator.settings import Connection, ProviderAnswer

SEEDS = [Connection("MiniMax", "minimax", "MiniMax-M3"), Connection("Claude", "anthropic", "claude-sonnet-4-6")]


def connections(seeds: list[Connection] = SEEDS) -> Connections:
    return Connections("acme", Ids(0), seeds)


def wanted(key: str = "sk-ant-1", **fields: Any) -> Wanted:
    return Wanted(Secret(key), **fields)


def test_the_first_of_the_settings_is_the_default() -> None:
    kept = connections()
    assert kept.default == kept.listed[0]
    assert connections([]).default is None


def test_a_connection_prints_no_secret() -> None:
    kept = connections([])
    made, new = kept.connect(wanted("sk-ant-secret", base_url=Secret("https://secret.example.com")), ())
    assert new
    assert "secret" not in f"{made!r} {made} {kept.listed!r} {wanted('sk-ant-secret')!r}"


def test_the_first_answer_that_matches_decides() -> None:
    kept = connections([])
    answers = [ProviderAnswer("*-1", "ok"), ProviderAnswer("sk-*", "rejected", "no")]
    kept.connect(wanted("sk-ant-1"), answers)
    with pytest.raises(Refusal, match="no"):
        kept.connect(wanted("sk-ant-2"), answers)
    with pytest.raises(Refusal, match="Several"):
        kept.connect(wanted("sk-2"), answers)


def test_patterns_keep_upper_and_lower_case_apart() -> None:
    kept = connections([])
    kept.connect(wanted("sk-ant-ABC"), [ProviderAnswer("*abc", "rejected")])
    assert len(kept.listed) == 1


def test_a_provider_is_asked_only_about_what_could_be_kept() -> None:
    kept = connections([])
    for n in range(25):
        kept.connect(wanted(f"sk-ant-{n}"), ())
    with pytest.raises(Refusal) as refused:
        kept.connect(wanted("sk-ant-25"), [ProviderAnswer("*", "unreachable")])
    assert refused.value.code == "invalid_request"


def test_ids_go_on_after_those_of_the_settings() -> None:
    kept = connections()
    made, _ = kept.connect(wanted("sk-ant-1"), ())
    kept.disconnect(made.id, (), 0)
    again, _ = kept.connect(wanted("sk-ant-1"), ())
    assert len({*(each.id for each in kept.listed), made.id}) == 4
    assert made.id != again.id
    assert [each.id for each in connections().listed] == [each.id for each in kept.listed[:2]]


@pytest.mark.parametrize(
    ("gone", "default"),
    [(0, 2), (1, 0), (2, 0)],
    ids=["the default", "another", "the newest"],
)
def test_the_default_outlives_others_and_is_replaced_by_the_newest(gone: int, default: int) -> None:
    kept = connections()
    kept.connect(wanted(), ())
    before = list(kept.listed)
    _, heir = kept.disconnect(before[gone].id, (), 0)
    assert heir == kept.default == before[default]


def test_what_runs_is_chosen_in_the_contracts_order() -> None:
    kept = connections()
    first, second = kept.listed

    def refusal(model: str | None, credential_id: str | None, of: Connections = kept) -> str:
        with pytest.raises(Refusal) as refused:
            of.choose(model, credential_id, "agent.")
        assert refused.value.code == "invalid_request"
        return refused.value.message

    assert kept.choose(None, None, "agent.") == kept.choose("MiniMax-M3", first.id, "") == first
    assert kept.choose(None, second.id, "") == second
    assert refusal("m", None).startswith("This organization's selected connection runs MiniMax-M3, not m.")
    assert refusal("m", "cred_x").startswith("This organization has no model connection with id cred_x.")
    assert refusal("m", "cred_x", connections([])).startswith("This organization has no model connected.")


def test_a_key_shows_its_end_only_if_there_is_more_of_it() -> None:
    def last4(key: str | None) -> str:
        return ModelConnection("c", "l", "glm", "m", None if key is None else Secret(key)).last4

    assert [last4(key) for key in (None, "", "1234567", "12345678", "123456789")] == ["", "", "", "5678", "6789"]
