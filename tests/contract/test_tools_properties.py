"""Any valid tool set and any malformed body, by the thousand and always the same ones (contract §5).

Straight into the application: a socket would add nothing but time. What is valid is decided by
`tool_rules`, so a spoilt body that happens to be valid must be taken.
"""

from __future__ import annotations

import json
from random import Random
from typing import TYPE_CHECKING, Any, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.contract import tool_rules
from tests.contract.tool_strategies import CONFIGURATIONS, JSON, JUNK, NAMES, garbled, spoilt
from tests.support import Api

if TYPE_CHECKING:
    from emulator.server import Emulator
    from tests.support import Answer

# The same examples on every run, none of them kept on disk.
repeatable: Final = settings(
    derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck), print_blob=False
)
SEEDS: Final = st.integers(0, 2**32 - 1)


class Prober:
    """Sends bodies to both doors and holds every answer to the rules. `refused` counts the malformed ones."""

    def __init__(self, emulator: Emulator) -> None:
        self.api = Api(emulator, "in-process")
        self.session_id = self.api.session()
        self.path = f"/v1/sessions/{self.session_id}/tools"
        self.kept = self.api.get(self.path).json
        self.refused = 0

    def put(self, raw: bytes) -> None:
        """PUT a body: taken and read back if it is valid, else refused."""
        answer = self.api.put(self.path, raw=raw)
        if not self._valid(raw, tool_rules.takes_put):
            self._check_refused(answer, raw)
            return
        body = json.loads(raw)
        assert answer.status == 200, (raw, answer.raw)
        check_shown(answer.json, body, raw)
        self.kept = answer.json

    def create(self, raw: bytes) -> None:
        """The same on the creation of a session, which is deleted again."""
        answer = self.api.post("/v1/sessions", raw=raw)
        if not self._valid(raw, tool_rules.takes_create):
            self._check_refused(answer, raw)
            return
        assert answer.status == 201, (raw, answer.raw)
        path = f"/v1/sessions/{answer.json['id']}"
        check_shown(self.api.get(f"{path}/tools").json, json.loads(raw).get("agent", {}), raw)
        assert self.api.delete(path).status == 200

    def both(self, configuration: Any) -> None:
        """Send a configuration through both doors."""
        self.put(encoded(configuration))
        self.create(encoded({"agent": configuration}))

    def check_kept(self) -> None:
        """What was taken last is what is read back, whatever was refused since."""
        assert self.api.get(self.path).json == self.kept
        assert len(self.api.get("/v1/sessions").json["data"]) == 1

    @staticmethod
    def _valid(raw: bytes, takes: Any) -> bool:
        try:
            return bool(takes(tool_rules.parsed(raw)))
        except tool_rules.NotJson:
            return False

    def _check_refused(self, answer: Answer, raw: bytes) -> None:
        assert answer.status == 400, (answer.status, raw[:2000], answer.raw)
        assert list(answer.json) == ["error"]
        error = answer.json["error"]
        assert sorted(error) == ["code", "message", "request_id"]
        assert error["code"] == "invalid_request"
        assert error["request_id"] == answer.headers["x-request-id"]
        assert 10 < len(error["message"]) < 1500, error["message"]
        self.refused += 1


def check_shown(configuration: dict[str, Any], sent: dict[str, Any], raw: bytes) -> None:
    """A configuration is read back as it was sent, less its secrets."""
    for entry in configuration["tools"]:
        if "redacted" in entry:
            entry["redacted"].sort()
    assert configuration["tools"] == tool_rules.shown(sent.get("tools", [])), raw
    assert configuration["text"] == sent.get("text"), raw


def encoded(value: Any) -> bytes:
    return json.dumps(value).encode()


@pytest.fixture
def prober(gobare: Emulator) -> Prober:
    """One session to send everything to."""
    return Prober(gobare)


@pytest.mark.behaviour("tools.any-valid-set")
def test_any_valid_set_comes_back_equal_less_its_secrets(prober: Prober) -> None:
    taken = 0

    @settings(repeatable, max_examples=300)
    @given(configuration=CONFIGURATIONS)
    def check(configuration: dict[str, Any]) -> None:
        nonlocal taken
        assert tool_rules.takes_put(configuration)
        prober.both(configuration)
        prober.check_kept()
        taken += 1

    check()
    assert taken >= 300
    assert prober.refused == 0


@pytest.mark.behaviour("tools.any-malformed-body", "tools.put.changes-nothing-when-refused")
def test_any_value_in_the_place_of_any_other_is_refused_or_taken_by_the_rules(prober: Prober) -> None:
    function, server = {"type": "function", "name": "f"}, {"type": "mcp", "name": "s", "url": "https://x.y"}
    fields = [name for name in NAMES if name.isidentifier()]

    def send(value: Any) -> None:
        prober.put(encoded(value))
        prober.create(encoded(value))
        prober.create(encoded({"agent": value}))
        for configuration in (
            {"tools": value},
            {"text": value},
            {"tools": [function, value]},
            {"tools": [value] * 33},
            {"tools": [{"type": value, "name": "x"}]},
            {"text": {"format": value}},
        ):
            prober.both(configuration)

    def send_fields(value: Any) -> None:
        for entry in (function, server):
            for field in fields:
                prober.put(encoded({"tools": [entry | {field: value}]}))

    @settings(repeatable, max_examples=100)
    @given(value=JSON)
    def check(value: Any) -> None:
        send(value)
        prober.check_kept()

    check()
    for value in JUNK:
        send(value)
        send_fields(value)
    prober.check_kept()
    assert prober.refused >= 4000


@pytest.mark.behaviour("tools.any-malformed-body", "tools.put.changes-nothing-when-refused")
def test_any_spoilt_configuration_is_refused_or_taken_by_the_rules(prober: Prober) -> None:
    @settings(repeatable, max_examples=120)
    @given(configuration=CONFIGURATIONS, seed=SEEDS)
    def check(configuration: dict[str, Any], seed: int) -> None:
        random = Random(seed)
        for _ in range(20):
            prober.both(spoilt(random, configuration))
        prober.check_kept()

    check()
    assert prober.refused >= 4000


@pytest.mark.behaviour("tools.any-malformed-body", "tools.put.changes-nothing-when-refused")
def test_any_garbled_body_is_refused_or_taken_by_the_rules(prober: Prober) -> None:
    @settings(repeatable, max_examples=120)
    @given(configuration=CONFIGURATIONS, seed=SEEDS, noise=st.binary(max_size=64))
    def check(configuration: dict[str, Any], seed: int, noise: bytes) -> None:
        random = Random(seed)
        prober.put(noise)
        for _ in range(10):
            prober.put(garbled(random, encoded(configuration)))
            prober.create(garbled(random, encoded({"agent": configuration})))
        prober.check_kept()

    check()
    assert prober.refused >= 2000


@pytest.mark.behaviour("tools.any-malformed-body")
@pytest.mark.parametrize("size", [100_000, 1_000_000, 1_100_000])
def test_huge_strings_anywhere_are_refused_in_few_words(prober: Prober, size: int) -> None:
    huge = "x" * size
    server = {"type": "mcp", "name": "s", "url": "https://x.y"}

    for configuration in (
        {"tools": huge},
        {huge: []},
        {"tools": [huge]},
        {"tools": [{"type": huge}]},
        {"tools": [{"type": "mcp", "name": huge}]},
        {"tools": [server | {"name": huge}]},
        {"tools": [server | {huge: 1}]},
        {"tools": [server | {"required": huge}]},
        {"tools": [server | {"url": huge}]},
        {"tools": [server | {"headers": {huge: 1}}]},
        {"tools": [server, server | {"command": huge}]},
        {"text": {"verbosity": huge}},
        {"text": {"format": {"type": huge, "schema": {}}}},
    ):
        prober.both(configuration)

    prober.check_kept()
    assert prober.refused == 26


@pytest.mark.behaviour("tools.any-malformed-body")
@pytest.mark.parametrize("depth", [250, 1000, 100_000])
@pytest.mark.parametrize("brackets", [b"[]", b'{"x":}'], ids=["lists", "objects"])
def test_absurd_nesting_is_refused(prober: Prober, depth: int, brackets: bytes) -> None:
    opening, closing = brackets[:-1], brackets[-1:]
    inside = opening * depth + b"1" + closing * depth

    for raw in (
        inside,
        opening * depth,
        b'{"tools":' + inside + b"}",
        b'{"tools":[{"type":"function","name":"f","parameters":{"x":' + inside + b"}}]}",
        b'{"text":{"format":{"type":"json_schema","schema":{"x":' + inside + b"}}}}",
    ):
        prober.put(raw)
        prober.create(b'{"agent":' + raw + b"}")

    prober.check_kept()
    assert prober.refused == 10
