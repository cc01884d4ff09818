"""Ids: derived from a seed and a place, so that nothing else shifts them."""

from __future__ import annotations

import re
from uuid import UUID

import pytest

from emulator.ids import Ids


def test_the_same_seed_and_place_give_the_same_id_in_whatever_order_they_are_asked() -> None:
    places = [(kind, parent, n) for kind in ("turn", "item") for parent in ("a", "b") for n in range(5)]
    there, back = Ids(3), Ids(3)
    back.request()
    forward = [there.derive(*place) for place in places]
    assert [back.derive(*place) for place in reversed(places)] == forward[::-1]
    assert [there.derive(*place) for place in places] == forward
    assert len(set(forward)) == len(places)


@pytest.mark.parametrize(
    ("seed", "kind", "parent", "ordinal"),
    [(1, "turn", "a", 1), (0, "item", "a", 1), (0, "turn", "b", 1), (0, "turn", "a", 2), (0, "tur", "na", 1)],
)
def test_another_seed_kind_parent_or_ordinal_gives_another_id(seed: int, kind: str, parent: str, ordinal: int) -> None:
    ids = (Ids(0).derive("turn", "a", 1), Ids(seed).derive(kind, parent, ordinal))
    assert ids[0].partition("_")[2] != ids[1].partition("_")[2]


@pytest.mark.parametrize("length", [1, 8, 16, 32])
def test_a_derived_id_has_its_kind_and_so_many_hex_characters(length: int) -> None:
    assert re.fullmatch(rf"gbr_pat_[0-9a-f]{{{length}}}", Ids(0).derive("gbr_pat", "a", 1, length=length))
    assert re.fullmatch(r"turn_[0-9a-f]{16}", Ids(0).derive("turn", "a", 1))


def test_the_id_of_a_session_is_a_random_uuid_that_is_not_random() -> None:
    ids = [Ids(0).session("default", n) for n in range(200)]
    assert len(set(ids)) == 200
    for text in ids:
        parsed = UUID(text)
        assert (parsed.version, parsed.variant, str(parsed)) == (4, "specified in RFC 4122", text)
    assert ids == [Ids(0).session("default", n) for n in range(200)]
    assert not set(ids) & {Ids(0).session("other", n) for n in range(200)}


def test_request_ids_are_unique_and_come_in_the_same_order() -> None:
    one, same, other = Ids(0), Ids(0), Ids(1)
    # More than half the digits could number by themselves.
    ids = [one.request() for _ in range(70_000)]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"[0-9a-f]{8}", request_id) for request_id in ids[::100])
    assert [same.request() for _ in range(100)] == ids[:100]
    assert other.request() != ids[0]


def test_a_drawn_number_belongs_to_its_place() -> None:
    draws = [Ids(0).fraction("delta", "turn_1", n) for n in range(1000)]
    assert all(0 <= draw < 1 for draw in draws)
    assert 0.45 < sum(draws) / len(draws) < 0.55
    assert draws[7] == Ids(0).fraction("delta", "turn_1", 7)
    assert draws[7] not in (Ids(1).fraction("delta", "turn_1", 7), Ids(0).fraction("start", "turn_1", 7))
