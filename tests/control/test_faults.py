"""Asking for HTTP faults: over HTTP, by the handles and in scenario files; and what is told of them."""

from __future__ import annotations

import asyncio
import re
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from emulator import Emulator
from emulator.client import ControlError, EmulatorClient
from emulator.runtime.scenario_file import ScenarioError, load, merge
from tests.support import Api

if TYPE_CHECKING:
    from pathlib import Path

LIST = {"method": "GET", "path": "/v1/sessions"}


def test_over_http_under_the_keys_of_the_handle(gobare: Emulator, api: Api) -> None:
    asked = {"match": LIST, "error": "directory_unavailable", "times": 1}
    made = api.post("/_emulator/faults", asked, token=None)
    assert made.status == 201
    assert made.json == {"id": made.json["id"], **asked, "matched": 0, "hits": 0}
    assert api.get("/v1/sessions").code == "directory_unavailable"
    assert api.get("/v1/sessions").status == 200
    (listed,) = api.get("/_emulator/faults", token=None).json["faults"]
    assert listed == {**made.json, "matched": 2, "hits": 1}
    assert gobare.faults.list()[0].hits == 1
    gone = api.delete(f"/_emulator/faults/{listed['id']}", token=None)
    assert (gone.json, gobare.faults.list()) == (listed, [])
    assert api.delete(f"/_emulator/faults/{listed['id']}", token=None).status == 404
    assert api.delete("/_emulator/faults", token=None).json == {"faults": []}


def test_every_spelling_of_the_handle(gobare: Emulator) -> None:
    async def awaited() -> list[Any]:
        faults = gobare.aio.faults
        made = await faults.add(LIST, delay=0.5, until=60)
        listed = await faults.list()
        await faults.clear(made.id)
        return [made.delay, [fault.until for fault in listed], await faults.list()]

    assert asyncio.run(awaited()) == [0.5, [60.0], []]
    with EmulatorClient(gobare.url) as client:
        first = client.faults.add(stall="forever", after_event=1)
        second = client.faults.add({"nth": 2}, drip={"bytes": 3, "seconds": 0.1}, retry="absent", times=4)
        assert [fault.id for fault in client.faults.list()] == [first.id, second.id]
        assert (first.stall, second.match, second.drip) == ("forever", {"nth": 2}, {"bytes": 3, "seconds": 0.1})
        client.faults.clear()
        assert client.faults.list() == []


def test_a_token_is_named_by_its_id(gobare: Emulator, api: Api) -> None:
    minted = gobare.tokens.mint(scopes=["sessions:read"])
    gobare.faults.add({"token": minted.id}, error="internal_error")
    assert api.get("/v1/sessions", token=minted.token).code == "internal_error"
    assert api.get("/v1/sessions").status == 200
    assert api.get("/v1/sessions", token="gbr_pat_nobody").status == 401
    assert api.get("/v1/sessions", token=None).status == 401
    for text in (minted.token, "sesame-open"):
        with pytest.raises(ControlError, match=r"`match\.token`.*id") as refused:
            gobare.faults.add({"token": text}, error="internal_error")
        assert text not in str(refused.value)


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"eror": "conflict"}, r"Unknown field `eror`.*Did you mean `error`"),
    ({"match": {"metod": "GET"}, "delay": 1}, r"Unknown field `match\.metod`.*Did you mean `method`"),
    ({"match": {"method": "get"}, "delay": 1}, r"`match\.method` must be one of GET.*Did you mean `GET`"),
    ({"match": {"nth": 0}, "delay": 1}, r"`match\.nth` must be at least 1"),
    ({"match": ["GET"], "delay": 1}, r"`match` must be an object; a list was sent"),
    ({"match": {"path": 7}, "delay": 1}, r"`match\.path` must be a string"),
    ({"match": {"path": "/v1/sess*"}, "delay": 1}, r"`match\.path`: `\*` stands for a whole segment"),
    ({"error": 503}, r"`error` must be a string"),
    ({"error": "directory-unavailable"}, r"Did you mean `directory_unavailable`"),
    ({"reset": "befor"}, r"`reset` must be one of before, during, after.*Did you mean `before`"),
    ({"html": True}, r"`html` must be an integer; a boolean was sent\. It is the status"),
    ({"html": 200}, r"`html` must be at least 400; 200 was sent"),
    ({"empty": False}, r"`empty` must be true"),
    ({"delay": -1}, r"`delay` must be at least 0"),
    ({"delay": "1"}, r"`delay` must be a number; a string was sent"),
    ({"truncate": True}, r"`truncate` must be an integer; a boolean was sent\. It is how many bytes come"),
    ({"stall": "for ever"}, r"`stall` must be one of a number, forever.*Did you mean `forever`"),
    ({"duplicate": 0}, r"`duplicate` must be"),
    ({"retry": -1}, r"`retry` must be"),
    ({"retry": 10**400}, r"`retry` must be"),
    ({"truncate": 10**400}, r"`truncate` must be"),
    ({"cut": "end", "after_event": 10**400}, r"`after_event` must be"),
    ({"cut": "end", "after_bytes": 10**400}, r"`after_bytes` must be"),
    ({"cut": 2}, r"`cut` must be one of end.*; an integer was sent\. .*`after_event`.* where"),
    ({"count": 2, "error": "conflict"}, r"`count` is not accepted\. `times`"),
    ({"seed": 2, "error": "conflict"}, r"`seed` is not accepted\. .*the setting `seed`"),
    ({"status": 503, "error": "conflict"}, r"`status` is not accepted\. `error` .* `html`"),
    ({"at": 30, "error": "conflict"}, r"`at` is not accepted\. `after`"),
    ({"drip": {"bytes": 1}}, r"`drip\.seconds` is required"),
    ({"drip": {"bytes": 0, "seconds": 0}}, r"`drip\.bytes` must be from 1"),
    ({"delay": 1, "times": 0}, r"`times` must be"),
    ({"delay": 1, "times": None}, r"`times` must be an integer; null was sent"),
    ({"delay": 1, "probability": 1.5}, r"`probability` must be at most 1"),
    ({"error": "conflict", "html": 502}, r"`error` and `html` are two faults"),
]


@pytest.mark.parametrize(("asked", "words"), WRONG)
def test_what_is_wrong_is_refused_by_its_name_and_changes_nothing(api: Api, asked: Any, words: str) -> None:
    api.emulator.faults.add(LIST, delay=0)
    answer = api.post("/_emulator/faults", asked, token=None)
    assert (answer.status, answer.code) == (400, "invalid_request")
    assert re.search(words, answer.message), answer.message
    assert len(api.emulator.faults.list()) == 1


def test_what_a_handle_sends_is_refused_in_the_same_words(gobare: Emulator) -> None:
    with pytest.raises(ControlError, match="Did you mean `error`"):
        gobare.faults.add(LIST, eror="conflict")  # type: ignore[call-arg]


def test_control_routes_never_fail(gobare: Emulator, api: Api) -> None:
    gobare.faults.add(error="internal_error")
    assert api.get("/_emulator/health", token=None).status == 200
    with EmulatorClient(gobare.url) as client:
        assert client.clock.now() == gobare.clock.now()
    assert api.get("/v1/health").status == 500


def test_a_reset_forgets_them(gobare: Emulator, api: Api) -> None:
    gobare.faults.add(error="internal_error")
    gobare.reset()
    assert (gobare.faults.list(), api.get("/v1/sessions").status) == ([], 200)


def test_of_requests_that_race_as_many_fail_as_was_said(gobare: Emulator, api: Api) -> None:
    fault = gobare.faults.add(LIST, error="internal_error", times=3)
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: api.get("/v1/sessions").status, range(24)))
    assert sorted(answers) == [200] * 21 + [500] * 3
    assert [(one.id, one.matched, one.hits) for one in gobare.faults.list()] == [(fault.id, 24, 3)]


def test_one_that_never_happened_is_reported_and_fails_where_that_is_strict(gobare: Emulator, api: Api) -> None:
    used = gobare.faults.add(LIST, delay=0, times=1)
    token_id = gobare.tokens.mint().id
    spared = gobare.faults.add({"session": "none", "token": token_id}, error="conflict")
    late = gobare.faults.add(LIST, delay=0, after=3600)
    api.get("/v1/sessions")
    report = gobare.report()
    assert [entry["id"] for entry in report["unused_faults"]] == [spared.id, late.id]
    assert report["unused_faults"][0]["match"] == {"token": token_id, "session": "none"}
    lines = [line["text"] for line in report["verdict"]["left"] if line["kind"] == "unused_faults"]
    assert lines[0].startswith(f"the fault {spared.id} never happened")
    assert "no request was such" in lines[0]
    assert used.id not in str(lines)
    with pytest.raises(AssertionError, match="never happened"):
        gobare.assert_clean()
    gobare.assert_clean(ignore=("unused_faults",))
    gobare.settings.update(strict=True)
    assert {"unused_faults"} == {line["kind"] for line in gobare.report()["verdict"]["failed"]}
    gobare.faults.clear()
    gobare.assert_clean()


def test_the_timeline_tells_which_fault_it_was(gobare: Emulator, api: Api) -> None:
    refused = gobare.faults.add(LIST, error="directory_unavailable", times=1)
    gone = gobare.faults.add(LIST, empty=True, times=1)
    assert api.get("/v1/sessions?limit=3").status == 503
    with pytest.raises(ConnectionError):
        api.get("/v1/sessions")
    assert api.get("/v1/sessions").status == 200
    told = str(gobare.timeline())
    first, second, third = gobare.requests
    assert f"503 directory_unavailable GET /v1/sessions?limit=3 {first.request_id} [{refused.id}]" in told
    assert f"no answer GET /v1/sessions {second.request_id} [{gone.id}]" in told
    assert (third.fault, first.query) == (None, {"limit": "3"})
    assert first.duration_ms is not None
    assert first.token_id == third.token_id == second.token_id


# In scenario files


SCENARIO: dict[str, Any] = {
    "faults": [{"match": LIST, "error": "directory_unavailable", "times": 1}, {"cut": "reset", "after_event": 2}],
    "agent": [{"otherwise": [{"say": "Hello."}]}],
}


def test_a_scenario_brings_its_faults_and_takes_them_away(gobare: Emulator, api: Api) -> None:
    own = gobare.faults.add(LIST, delay=0)
    gobare.load(SCENARIO)
    assert [fault.error for fault in gobare.faults.list()] == [None, "directory_unavailable", None]
    gobare.load({**SCENARIO, "faults": SCENARIO["faults"][:1]})
    gobare.faults.clear(own.id)
    assert api.get("/v1/sessions").code == "directory_unavailable"
    assert api.get("/_emulator/scenario", token=None).json["faults"] == SCENARIO["faults"][:1]
    api.delete("/_emulator/scenario", token=None)
    assert gobare.faults.list() == []


def test_a_server_started_with_a_scenario_begins_again_with_its_faults() -> None:
    with Emulator(scenario=SCENARIO) as gobare:
        api = Api(gobare)
        for _ in range(2):
            assert [api.get("/v1/sessions").status for _ in range(2)] == [503, 200]
            gobare.reset()


def test_scenarios_bring_theirs_together(tmp_path: Path) -> None:
    merged = merge([load(SCENARIO), load({"faults": [{"delay": 1}]})])
    assert [asked for _, asked in merged.faults][-1] == {"delay": 1.0}
    assert merged.document["faults"] == [*SCENARIO["faults"], {"delay": 1}]
    assert len(merged.fresh().faults) == 3


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ({"eror": "x", "delay": 1}, r"faults\[0\]\.eror is not a key here.*Did you mean `error`"),
        ({"match": {"pth": "/v1"}, "delay": 1}, r"faults\[0\]\.match\.pth is not a key here.*Did you mean `path`"),
        ({"error": "conflit"}, r"faults\[0\] cannot be: `error` must be one of.*Did you mean `conflict`"),
        ({"cut": "end", "html": 502}, r"faults\[0\] cannot be: `html` and `cut` are two faults"),
        ({"stall": "x"}, r"faults\[0\]\.stall must be a number or 'forever', not 'x'"),
        ({"match": {"path": "/x"}, "delay": 1}, r"faults\[0\] cannot be: `match\.path` must be a path of the API"),
        ({"delay": 1, "times": None}, r"faults\[0\]\.times"),
        ({"cut": 3}, r"faults\[0\]\.cut must be .*, not 3\. .*`after_event`.* where"),
        ({"truncate": True}, r"faults\[0\]\.truncate must be a whole number, not .*\. It is how many bytes come"),
        ({"count": 2, "delay": 1}, r"faults\[0\]\.count is not a key here\. `times` says how often"),
        ({"path": "/v1/sessions", "delay": 1}, r"faults\[0\]\.path is not a key here\. It belongs at `match\.path`"),
    ],
)
def test_a_wrong_one_in_a_scenario_is_told_by_its_place(fault: dict[str, Any], words: str) -> None:
    with pytest.raises(ScenarioError, match=words):
        load({"faults": [fault]})
