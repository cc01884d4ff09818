"""Which requests meet which faults."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from emulator.domain.faults import Fault, Faults
from emulator.ids import Ids
from emulator.refusals import Refusal

if TYPE_CHECKING:
    from collections.abc import Sequence


class Bench:
    """Faults, and a clock to move."""

    def __init__(self, seed: int = 0) -> None:
        self.now = 1_000_000
        self.faults = Faults(Ids(seed), lambda: self.now)

    def add(self, match: dict[str, Any] | None = None, **asked: Any) -> Fault:
        return self.faults.add(match or {}, **(asked or {"error": "conflict"}))

    def meet(self, verb: str = "GET", path: str = "/v1/sessions", token: str | None = "tok_1") -> Fault | None:
        return self.faults.meet(self.on(verb, path), verb, path.split("/")[1:], lambda: token)

    def on(self, verb: str, path: str) -> Sequence[Fault]:
        return self.faults.on(verb, path.encode(), lambda raw: raw.decode().split("/")[1:])


@pytest.fixture
def bench() -> Bench:
    return Bench()


MATCHES: list[tuple[dict[str, Any], str, str, bool]] = [
    ({}, "DELETE", "/v1/nothing/at/all", True),
    ({"method": "GET"}, "GET", "/v1/sessions", True),
    ({"method": "GET"}, "HEAD", "/v1/sessions", False),
    ({"path": "/v1/sessions"}, "POST", "/v1/sessions", True),
    ({"path": "/v1/sessions"}, "POST", "/v1/sessions/", False),
    ({"path": "/v1/sessions"}, "POST", "/v1/sessions/s", False),
    ({"path": "/v1/sessions/*"}, "GET", "/v1/sessions/s", True),
    ({"path": "/v1/sessions/{session_id}"}, "GET", "/v1/sessions/s", True),
    ({"path": "/v1/sessions/*"}, "GET", "/v1/sessions/", False),
    ({"path": "/v1/sessions/*"}, "GET", "/v1/sessions/s/events", False),
    ({"path": "/v1/*/s/*"}, "GET", "/v1/sessions/s/events", True),
    ({"path": "/*/sessions"}, "GET", "/v1/sessions", True),
    ({"path": "/v1/größe/ü b"}, "GET", "/v1/größe/ü b", True),
    ({"session": "s"}, "GET", "/v1/sessions/s", True),
    ({"session": "s"}, "POST", "/v1/sessions/s/events", True),
    ({"session": "s"}, "GET", "/v1/agents/s", False),
    ({"session": "s"}, "GET", "/v1/sessions", False),
    ({"session": "s", "path": "/v1/sessions/*/events"}, "GET", "/v1/sessions/s/events", True),
    ({"session": "s", "path": "/v1/sessions/*/events"}, "GET", "/v1/sessions/t/events", False),
    ({"session": "s", "path": "/v1/sessions/*/events"}, "GET", "/v1/sessions/s/items", False),
    ({"token": "tok_1"}, "GET", "/v1/sessions", True),
    ({"token": "tok_2"}, "GET", "/v1/sessions", False),
]


@pytest.mark.parametrize(("match", "verb", "path", "suits"), MATCHES)
def test_a_request_is_matched_by_all_that_is_given(
    bench: Bench, match: dict[str, Any], verb: str, path: str, suits: bool
) -> None:
    fault = bench.add(match)
    assert (bench.meet(verb, path) is fault) is suits
    assert fault.matched == suits


def test_nobody_asks_for_a_token_that_no_fault_is_about(bench: Bench) -> None:
    bench.add({"path": "/v1/sessions"})

    def token() -> str:
        raise AssertionError

    found = bench.on("GET", "/v1/sessions")
    assert bench.faults.meet(found, "GET", ["v1", "sessions"], token) is not None


def test_what_was_found_for_a_path_is_found_anew_with_every_change(bench: Bench) -> None:
    assert bench.meet() is None
    first = bench.add({"path": "/v1/sessions"}, error="conflict", times=1)
    assert (bench.meet(), bench.meet()) == (first, None)
    second = bench.add({"method": "GET"})
    assert bench.meet() is second
    bench.faults.remove(lambda fault: fault is second)
    assert bench.meet() is None


def test_of_many_paths_each_is_told_from_the_others(bench: Bench) -> None:
    fault = bench.add({"path": "/v1/sessions/*/items"})
    for n in range(2500):
        assert (bench.meet(path=f"/v1/sessions/{n}/items") is fault, bench.meet(path=f"/v1/{n}")) == (True, None)
    assert bench.meet(path=f"/v1/sessions/{'x' * 5000}/items") is fault


def test_the_first_that_is_due_is_met_and_each_counts_for_itself(bench: Bench) -> None:
    once, third, rest = bench.add(error="conflict", times=1), bench.add({"nth": 3}), bench.add({"method": "GET"})
    assert [bench.meet() for _ in range(4)] == [once, rest, third, rest]
    assert [(fault.matched, fault.taken) for fault in (once, third, rest)] == [(4, 1), (4, 1), (4, 2)]


def test_from_the_nth_on_as_often_as_it_says(bench: Bench) -> None:
    fault = bench.add({"nth": 2}, error="conflict", times=2)
    assert [bench.meet() is fault for _ in range(5)] == [False, True, True, False, False]


@pytest.mark.parametrize(
    ("asked", "met"),
    [
        ({"cut": "end"}, {"GET /v1/events", "GET /v1/sessions/s/events"}),
        ({"retry": 5}, {"GET /v1/events", "GET /v1/sessions/s/events"}),
        ({"truncate": 5}, {"POST /v1/sessions/s/events", "GET /v1/sessions"}),
        ({"twice": True}, {"POST /v1/sessions/s/events"}),
        (
            {"delay": 1},
            {"GET /v1/events", "GET /v1/sessions/s/events", "POST /v1/sessions/s/events", "GET /v1/sessions"},
        ),
    ],
)
def test_what_is_for_streams_or_writes_leaves_others_alone(bench: Bench, asked: dict[str, Any], met: set[str]) -> None:
    bench.add(None, **asked)
    requests = ["GET /v1/events", "GET /v1/sessions/s/events", "POST /v1/sessions/s/events", "GET /v1/sessions"]
    assert {request for request in requests if bench.meet(*request.split()) is not None} == met


def test_it_begins_and_ends_on_the_clock(bench: Bench) -> None:
    fault = bench.add(error="conflict", after=10, until=30)
    met = []
    for seconds in (0, 9.999, 10, 29.999, 30):
        bench.now = 1_000_000 + round(seconds * 1000)
        met.append(bench.meet() is fault)
    assert (met, fault.matched) == ([False, False, True, True, False], 2)


def drawn(seed: int, *, between: int = 0) -> list[bool]:
    bench = Bench(seed)
    bench.add({"method": "GET"}, error="conflict", probability=0.3)
    found = []
    for _ in range(200):
        found.append(bench.meet() is not None)
        for _ in range(between):
            bench.meet("POST")
    return found


def test_chance_is_drawn_from_the_seed_and_by_nothing_else() -> None:
    assert drawn(7) == drawn(7, between=3)
    assert drawn(7) != drawn(8)
    assert 40 <= sum(drawn(7)) <= 80
    bench = Bench()
    one, other = (bench.add({"method": method}, error="conflict", probability=0.5) for method in ("GET", "POST"))
    both = [(bench.meet() is one, bench.meet("POST") is other) for _ in range(50)]
    assert any(first != second for first, second in both)


@pytest.mark.parametrize(("probability", "met"), [(0, 0), (1, 20)])
def test_never_and_always(bench: Bench, probability: float, met: int) -> None:
    bench.add(error="conflict", probability=probability)
    assert sum(bench.meet() is not None for _ in range(20)) == met


def test_a_thousand_of_them(bench: Bench) -> None:
    faults = [bench.add({"path": f"/v1/sessions/{n}/items"}) for n in range(1000)]
    everything = bench.add({"path": "/v1/sessions/*/items"})
    assert bench.meet(path="/v1/sessions/617/items") is faults[617]
    assert bench.meet(path="/v1/sessions/none/items") is everything
    assert bench.meet(path="/v1/sessions/617") is None
    assert bench.faults.remove(lambda fault: fault is not everything) == 1000
    assert bench.meet(path="/v1/sessions/617/items") is everything
    bench.faults.remove(lambda fault: True)
    assert not bench.faults.any


def test_ids_tell_them_apart_for_good(bench: Bench) -> None:
    first = bench.add()
    bench.faults.remove(lambda fault: True)
    assert bench.add().id != first.id
    assert Bench().add().id == first.id


def test_it_is_told_under_the_keys_it_was_asked_with(bench: Bench) -> None:
    match = {"method": "GET", "path": "/v1/events", "nth": 1}
    asked = {"stall": "forever", "after_event": 0, "retry": "absent", "delay": 0.5, "times": 2, "until": 60}
    fault = bench.add(match, **asked)
    assert fault.as_json() == {"id": fault.id, "match": match, **asked, "matched": 0, "hits": 0}
    told = bench.add(error="conflict", message="see gbr_pat_abcdef").as_json()
    assert told["message"] == "see [withheld]"


WRONG: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({}, {}, "Nothing goes wrong by this"),
    ({}, {"times": 3}, "Nothing goes wrong by this"),
    ({}, {"error": "conflict", "reset": "before"}, "`error` and `reset` are two faults"),
    ({}, {"cut": "end", "stall": 1}, "`cut` and `stall` are two faults"),
    ({}, {"error": "conflit"}, "Did you mean `conflict`"),
    ({}, {"html": 502, "message": "x"}, "`message` goes with `error`"),
    ({}, {"error": "not_found", "retry_after": 1}, "`retry_after` does not go with not_found"),
    ({}, {"delay": 1, "retry_after": 1}, "`retry_after` goes with `error`"),
    ({}, {"drip": {"bytes": 1, "seconds": 0}, "after_event": 1}, "`after_event` goes with `cut` or `stall`"),
    ({}, {"cut": "end", "after_event": 1, "after_bytes": 1}, "two places"),
    ({}, {"cut": "end", "inside": "frame", "after_bytes": 1}, "`inside` goes with `after_event`"),
    ({}, {"html": 502, "retry": 1}, "`retry` is of event streams"),
    ({}, {"delay": 1, "until": 0}, "`until` must be more than `after`, which is 0"),
    ({"path": "v1/sessions"}, {"delay": 1}, "must be a path of the API"),
    ({"path": "/"}, {"delay": 1}, "must be a path of the API"),
    ({"path": "/_emulator/reset"}, {"delay": 1}, "must be a path of the API"),
    ({"path": "/v1/sessions?limit=1"}, {"delay": 1}, "without a query"),
    ({"path": "/v1/sess*"}, {"delay": 1}, "a whole segment"),
    ({"method": "POST"}, {"cut": "end"}, "`cut` is of event streams"),
    ({"path": "/v1/sessions"}, {"retry": 1}, "`retry` is of event streams"),
    ({"path": "/v1/sessions/*/turns"}, {"drip": {"bytes": 1, "seconds": 0}}, "`drip` is of event streams"),
    ({"path": "/v1/*/*/*/events"}, {"stall": 1}, "`stall` is of event streams"),
    ({"method": "GET", "path": "/v1/events"}, {"truncate": 1}, "`truncate` is of answers with an end"),
    ({"method": "GET"}, {"twice": True}, "`twice` is of writes"),
    ({"token": "gbr_pat_abcdef"}, {"delay": 1}, "takes the id of a token"),
]


@pytest.mark.parametrize(("match", "asked", "words"), WRONG)
def test_what_cannot_be_is_refused(bench: Bench, match: dict[str, Any], asked: dict[str, Any], words: str) -> None:
    with pytest.raises(Refusal, match=words) as refused:
        bench.faults.add(match, **asked)
    assert (refused.value.status, list(bench.faults)) == (400, [])
    assert "abcdef" not in refused.value.message
