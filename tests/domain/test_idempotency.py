"""Idempotency keys: one answer a key, none while it is in flight, and nothing kept past its day."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from emulator.domain.idempotency import Answer, Keys
from emulator.domain.limits import KEY_SECONDS
from emulator.refusals import Refusal

if TYPE_CHECKING:
    from emulator.domain.idempotency import Scope

KEY: Final[Scope] = ("tok_1", "POST", "/v1/sessions", "a")
DAY: Final = KEY_SECONDS * 1000
MOST: Final = 1000


def kept(keys: Keys) -> int:
    """How many keys are held. Nothing outside needs to know, but that it is bounded."""
    return len(keys._answers)


def answered(keys: Keys, scope: Scope, now: int, body: bytes = b"{}", status: int = 201) -> None:
    assert keys.begin(scope, now) is None
    keys.finish(scope, status, body, now)


def test_an_answer_is_replayed_until_its_day_is_over() -> None:
    keys = Keys()
    answered(keys, KEY, 5, b'{"id":1}')
    for now in (5, 4 + DAY):
        assert keys.begin(KEY, now) == Answer(201, b'{"id":1}', 5 + DAY)
    assert keys.begin(KEY, 5 + DAY) is None


def test_a_key_whose_day_is_over_is_in_flight_again() -> None:
    keys = Keys()
    answered(keys, KEY, 0)
    assert keys.begin(KEY, DAY) is None
    with pytest.raises(Refusal):
        keys.begin(KEY, DAY)
    keys.finish(KEY, 200, b"new", DAY)
    again = keys.begin(KEY, DAY)
    assert again is not None
    assert (again.status, again.body) == (200, b"new")


def test_a_key_in_flight_is_a_conflict_worth_a_second() -> None:
    keys = Keys()
    keys.begin(KEY, 0)
    with pytest.raises(Refusal, match='Idempotency-Key "a" is already in flight') as refused:
        keys.begin(KEY, 0)
    assert (refused.value.code, refused.value.retry_after) == ("conflict", 1)


@pytest.mark.parametrize("place", range(4))
def test_the_same_key_elsewhere_is_another(place: int) -> None:
    keys = Keys()
    keys.begin(KEY, 0)
    other = [*KEY]
    other[place] += "x"
    assert keys.begin((other[0], other[1], other[2], other[3]), 0) is None


@pytest.mark.parametrize(("status", "is_kept"), [(200, True), (299, True), (300, False), (199, False), (409, False)])
def test_only_success_is_kept(status: int, is_kept: bool) -> None:
    keys = Keys()
    answered(keys, KEY, 0, status=status)
    assert (keys.begin(KEY, 0) is not None) is is_kept


def test_a_key_that_was_never_claimed_can_be_freed() -> None:
    keys = Keys()
    keys.finish(KEY, 0, b"", 0)
    assert keys.begin(KEY, 0) is None


def test_answers_past_their_day_are_dropped_and_what_is_in_flight_is_not() -> None:
    keys = Keys()
    keys.begin(KEY, 0)
    for n in range(MOST - 2):
        answered(keys, ("tok_1", "POST", "/old", str(n)), 0)
    answered(keys, ("tok_1", "POST", "/young", "y"), 1)
    assert kept(keys) == MOST
    assert keys.begin(("tok_1", "POST", "/next", "n"), DAY) is None
    assert kept(keys) == 3
    assert keys.begin(("tok_1", "POST", "/young", "y"), DAY) is not None
    with pytest.raises(Refusal):
        keys.begin(KEY, DAY)


def test_while_everything_is_young_nothing_is_dropped_and_the_next_look_comes_at_twice_as_many() -> None:
    keys = Keys()
    for n in range(2 * MOST):
        answered(keys, ("tok_1", "POST", "/", str(n)), 0)
    assert kept(keys) == 2 * MOST
    keys.begin(KEY, DAY)
    assert kept(keys) == 1
