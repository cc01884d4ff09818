"""Usage: intervals, and what they add up to."""

from __future__ import annotations

from emulator.domain.usage import Meter, Usage, usage


def meter(*spans: tuple[int, int | None]) -> Meter:
    made = Meter()
    for start, end in spans:
        made.begin(start)
        if end is not None:
            made.end(end)
    return made


def test_an_interval_begins_once_and_ends_once() -> None:
    made = Meter()
    made.end(5)
    assert made.intervals == []
    made.begin(10)
    made.begin(20)
    assert made.running
    made.end(30)
    made.end(40)
    assert [(interval.started_at, interval.ended_at) for interval in made.intervals] == [(10, 30)]
    assert not made.running


def test_nothing_adds_up_to_nothing() -> None:
    assert usage([], 1000) == Usage(0, 1000, 0, 0, 0, 0)
    assert usage([Meter()], 1000) == Usage(1, 1000, 0, 0, 0, 0)


def test_what_runs_counts_until_now_and_is_never_chargeable() -> None:
    assert usage([meter((0, 2000), (5000, None))], 9000) == Usage(1, 9000, 6, 2, 0, 2)


def test_what_is_over_is_chargeable_after_the_lag() -> None:
    made = [meter((0, 2000))]
    assert usage(made, 11_999, reconciled_after=10).chargeable_seconds == 0
    assert usage(made, 12_000, reconciled_after=10).chargeable_seconds == 2


def test_each_session_has_its_own_intervals_in_review() -> None:
    made = [meter((0, 1000), (2000, 4000)), meter((0, 8000)), meter((0, None))]
    assert usage(made, 9000, in_review=1) == Usage(3, 9000, 11, 2, 2, 4)


def test_the_chargeable_part_is_never_the_larger_one() -> None:
    for end in range(0, 3000, 37):
        used = usage([meter((0, end), (5000, 5000 + end))], 10_000)
        assert used.chargeable_seconds == used.sandbox_seconds == 2 * end // 1000
