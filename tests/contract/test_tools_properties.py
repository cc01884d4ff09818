"""Any valid tool set and any malformed body, by the thousand and always the same ones (contract §5).

Straight into the application: a socket would add nothing but time. What is valid is decided by
`tool_rules`, so a spoilt body that happens to be valid must be taken. More than ten thousand are malformed.
"""

from __future__ import annotations

import json
from random import Random
from typing import TYPE_CHECKING, Any, Final

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.contract import tool_rules
from tests.contract.tool_strategies import CONFIGURATIONS, JSON, JUNK, NAMES, garbled, spoilt
from tests.support import Api, _bridged

if TYPE_CHECKING:
    from collections.abc import Callable

    from emulator import Emulator
    from tests.support import Answer

# The same examples on every run, none of them kept on disk. Nothing is shrunk: a failure shows the body that
# was sent, and a smaller seed would not make that smaller.
repeatable: Final = settings(
    derandomize=True,
    database=None,
    deadline=None,
    phases=[Phase.generate],
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
)
SEEDS: Final = st.integers(0, 2**32 - 1)


class Prober:
    """Sends bodies to both doors and holds every answer to the rules. `refused` counts the malformed ones.

    What is put and created waits until `check`, which sends all of it in one visit to the emulator's loop.
    """

    def __init__(self, emulator: Emulator) -> None:
        self.emulator = emulator
        self.api = Api(emulator, "in-process")
        self.path = f"/v1/sessions/{self.api.session()}/tools"
        self.kept = sorted_names(self.api.get(self.path).json)
        self.refused = 0
        self._waiting: list[tuple[str, bytes]] = []

    def put(self, raw: bytes) -> None:
        """PUT a body."""
        self._waiting.append(("PUT", raw))

    def create(self, raw: bytes) -> None:
        """Create a session with a body; it is deleted again if there is one."""
        self._waiting.append(("POST", raw))

    def both(self, configuration: Any) -> None:
        """Send a configuration through both doors."""
        self.put(encoded(configuration))
        self.create(encoded({"agent": configuration}))

    def check(self) -> None:
        """Each body is taken and read back if it is valid, else refused; what was taken last is what is kept."""
        for (verb, raw), answer in zip(self._waiting, self.emulator.run(self._send()), strict=True):
            if verb == "PUT" and self._taken(answer, raw, tool_rules.takes_put, 200):
                check_shown(answer.json, json.loads(raw), raw)
                self.kept = sorted_names(answer.json)
            elif verb == "POST" and self._taken(answer, raw, tool_rules.takes_create, 201):
                path = f"/v1/sessions/{answer.json['id']}"
                check_shown(self.api.get(f"{path}/tools").json, json.loads(raw).get("agent", {}), raw)
                assert self.api.delete(path).status == 200
        self._waiting.clear()
        assert sorted_names(self.api.get(self.path).json) == self.kept
        assert len(self.api.get("/v1/sessions").json["data"]) == 1

    async def _send(self) -> list[Answer]:
        headers = {"authorization": f"Bearer {self.emulator.token}"}
        paths = {"PUT": self.path, "POST": "/v1/sessions"}
        return [await _bridged(self.emulator, verb, paths[verb], raw, dict(headers)) for verb, raw in self._waiting]

    def _taken(self, answer: Answer, raw: bytes, takes: Callable[[Any], bool], status: int) -> bool:
        """Whether a body was taken, which must be as the rules say."""
        try:
            body = tool_rules.parsed(raw)
        except tool_rules.NotJson:
            self._check_refused(answer, raw)
            return False
        if answer.status != status and (not takes(body) or tool_rules.doubtful(body)):
            self._check_refused(answer, raw)
            return False
        assert answer.status == status, (answer.status, raw[:2000], answer.raw[:2000])
        assert takes(body) or tool_rules.doubtful(body), (raw[:2000], answer.raw[:2000])
        return True

    def _check_refused(self, answer: Answer, raw: bytes) -> None:
        assert answer.status == 400, (answer.status, raw[:2000], answer.raw[:2000])
        assert list(answer.json) == ["error"]
        error = answer.json["error"]
        assert sorted(error) == ["code", "message", "request_id"]
        assert error["code"] == "invalid_request"
        assert error["request_id"] == answer.headers["x-request-id"]
        assert 10 < len(error["message"]) < 1500, error["message"]
        self.refused += 1


def sorted_names(configuration: dict[str, Any]) -> dict[str, Any]:
    """A configuration with what it withheld in a fixed order: the contract gives none."""
    for entry in configuration["tools"]:
        if "redacted" in entry:
            entry["redacted"].sort()
    return configuration


def check_shown(configuration: dict[str, Any], sent: dict[str, Any], raw: bytes) -> None:
    """A configuration is read back as it was sent, less its secrets."""
    sorted_names(configuration)
    assert configuration["tools"] == tool_rules.shown(sent.get("tools", [])), raw
    assert configuration["text"] == sent.get("text"), raw


def encoded(value: Any) -> bytes:
    return json.dumps(value).encode()


@pytest.fixture
def prober(gobare: Emulator) -> Prober:
    """One session to send everything to. What is created for a moment does not count against a ceiling."""
    gobare.settings.update(session_limit=1000)
    return Prober(gobare)


@pytest.mark.behaviour("tools.any-valid-set")
def test_any_valid_set_comes_back_equal_less_its_secrets(prober: Prober) -> None:
    taken = 0

    @settings(repeatable, max_examples=70)
    @given(configurations=st.lists(CONFIGURATIONS, min_size=3, max_size=3))
    def check(configurations: list[dict[str, Any]]) -> None:
        nonlocal taken
        for configuration in configurations:
            assert tool_rules.takes_put(configuration)
            prober.both(configuration)
            taken += 1
        prober.check()

    check()
    assert taken == 210
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
        prober.check()

    @settings(repeatable, max_examples=50)
    @given(value=JSON)
    def check(value: Any) -> None:
        send(value)

    check()
    for value in JUNK:
        send(value)
        for entry in (function, server):
            for field in fields:
                prober.put(encoded({"tools": [entry | {field: value}]}))
        prober.check()
    assert prober.refused >= 6000


@pytest.mark.behaviour("tools.any-malformed-body", "tools.put.changes-nothing-when-refused")
def test_any_spoilt_configuration_is_refused_or_taken_by_the_rules(prober: Prober) -> None:
    @settings(repeatable, max_examples=40)
    @given(configuration=CONFIGURATIONS, seed=SEEDS)
    def check(configuration: dict[str, Any], seed: int) -> None:
        random = Random(seed)
        for _ in range(40):
            prober.both(spoilt(random, configuration))
        prober.check()

    check()
    assert prober.refused >= 2500


@pytest.mark.behaviour("tools.any-malformed-body", "tools.put.changes-nothing-when-refused")
def test_any_garbled_body_is_refused_or_taken_by_the_rules(prober: Prober) -> None:
    @settings(repeatable, max_examples=50)
    @given(configuration=CONFIGURATIONS, seed=SEEDS, noise=st.binary(max_size=64))
    def check(configuration: dict[str, Any], seed: int, noise: bytes) -> None:
        random = Random(seed)
        prober.put(noise)
        for _ in range(25):
            prober.put(garbled(random, encoded(configuration)))
            prober.create(garbled(random, encoded({"agent": configuration})))
        prober.check()

    check()
    assert prober.refused >= 2000


@pytest.mark.behaviour("tools.any-malformed-body")
@pytest.mark.parametrize("size", [100_000, 1_100_000])
def test_huge_strings_anywhere_are_refused_in_few_words(prober: Prober, size: int) -> None:
    huge = "x" * size
    server = {"type": "mcp", "name": "s", "url": "https://x.y"}

    configurations: list[dict[str, Any]] = [
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
    ]
    for configuration in configurations:
        prober.both(configuration)

    prober.check()
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

    prober.check()
    assert prober.refused == 10
