"""Two organizations and five tokens at all operations at once: nothing of one ever reaches the other.

Calls that are right, that are refused, with ids of the other organization, garbage, streams opened and
cut, deletes. What is asked is drawn from a seed; how the threads interleave is not.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import random
import re
import threading
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlsplit

from tests.bench.harness import Line, now
from tests.contract.calls import CALLS, Place
from tests.served import Served, ask
from tests.support import WAIT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tests.contract.calls import Known

SECONDS: Final = 60.0
_ROUNDS: Final = 3
_DAY: Final = 90_000
_IDS: Final = re.compile(
    rb"\b(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?:turn|art|whsub|agt|cred|call|tok|envg)_[0-9a-f]{8,16})\b"
)
_KINDS: Final = {
    "session": "session_id",
    "turn": "turn_id",
    "artifact": "artifact_id",
    "agent": "agent_id",
    "model_credential": "credential_id",
    "webhook.subscription": "webhook_id",
}
_GARBAGE: Final = (b"", b"[", b"\xff\x00", b'{"nothing":{"at":["all"]}}', b'{"events":[{}]}', b"[" * 5000)


@dataclass
class Tenant:
    """An organization: its tokens, a word that nobody else may ever read, and what it was told of."""

    canary: str
    tokens: list[str]
    ids: dict[str, list[str]] = field(default_factory=dict)
    told: set[bytes] = field(default_factory=set)


@dataclass
class Outcome:
    """What came of it."""

    statuses: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)


def hammer(url: str, tenants: Sequence[Tenant], seconds: float, seed: int = 0) -> Outcome:
    """Call for so long, from one thread for each token. Gives what was wrong, if anything."""
    outcome = Outcome()
    until = now() + seconds
    threads = [
        threading.Thread(target=_Caller(url, tenant, tenants, token, f"{seed}{token}", outcome).run, args=(until,))
        for tenant in tenants
        for token in tenant.tokens
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for one in tenants:
        for other in tenants:
            if one is not other and one.told & other.told:
                outcome.faults.append(f"both were told of {sorted(one.told & other.told)[:3]}")
    return outcome


def clean(url: str, tenants: Sequence[Tenant]) -> None:
    """Delete everything there is."""
    for tenant in tenants:
        for path in ("sessions", "agents", "webhooks", "model-credentials"):
            while page := _asked(url, tenant.tokens[0], "GET", f"/v1/{path}?limit=100")["data"]:
                for thing in page:
                    _asked(url, tenant.tokens[0], "DELETE", f"/v1/{path}/{thing['id']}")
        tenant.ids.clear()


def _asked(url: str, token: str, verb: str, path: str, body: Any = None) -> Any:
    answer = ask(url, verb, path, body, authorization=f"Bearer {token}")
    assert answer.status < 300, (verb, path, answer.raw)
    return answer.json


class _Caller:
    """One token's thread."""

    def __init__(
        self, url: str, tenant: Tenant, tenants: Sequence[Tenant], token: str, seed: str, outcome: Outcome
    ) -> None:
        self._address = urlsplit(url).netloc
        self._tenant = tenant
        self._others = [other for other in tenants if other is not tenant]
        self._token = token
        self._drawn = random.Random(seed)
        self._outcome = outcome

    def run(self, until: float) -> None:
        try:
            while now() < until:
                self._call(self._drawn.choice(CALLS))
        except Exception as error:
            self._outcome.faults.append(f"{type(error).__name__}: {error}")

    def _call(self, known: Known) -> None:
        drawn, tenant = self._drawn, self._tenant
        # One in eight with ids of somebody else, and in eight with something that is wrong.
        whose = drawn.choice(self._others) if drawn.random() < 1 / 8 else tenant
        path = self._place(whose).fill(known.path) + known.query
        verb, body = known.verb, self._body(known)
        match drawn.randrange(32):
            case 0:
                body = drawn.choice(_GARBAGE)
            case 1:
                path += ("&" if "?" in path else "?") + f"nothing={tenant.canary}"
            case 2:
                verb = drawn.choice(("PUT", "OPTIONS", "DELETE", "POST"))
            case 3:
                path = path.replace("/v1/", f"/v1/{quote(tenant.canary)}/", 1)
        headers = {"authorization": f"Bearer {self._token}"}
        if known.writes and drawn.random() < 1 / 8:
            headers["idempotency-key"] = f"{self._token}-{drawn.randrange(50)}"
        if known.stream:
            path += f"?last_event_id={drawn.choice((0, 0, 10**9))}"
        connection = http.client.HTTPConnection(self._address, timeout=WAIT)
        try:
            connection.request(verb, path, body, headers)
            response = connection.getresponse()
            opened = response.status == 200 and "event-stream" in response.headers["content-type"]
            raw = response.read1(65536) if opened else response.read()
            if opened and path.endswith("=0"):
                # What was kept comes next, if there is anything; then it is cut.
                connection.sock.settimeout(0.05)
                with contextlib.suppress(TimeoutError):
                    raw += response.read1(65536)
            self._look(known, path, body or b"", response.status, raw)
        finally:
            connection.close()

    def _look(self, known: Known, path: str, body: bytes, status: int, raw: bytes) -> None:
        """Whether an answer is one this organization may have."""
        outcome, tenant = self._outcome, self._tenant
        asked = path.encode() + body
        outcome.statuses[f"{known} {status}"] += 1
        if status >= 500:
            outcome.faults.append(f"{known}: {status} {raw[:300]!r}")
        for other in self._others:
            if other.canary.encode() in raw and other.canary.encode() not in asked:
                outcome.faults.append(f"{known}: {status} tells {other.canary} of {tenant.canary}")
        tenant.told |= {found for found in _IDS.findall(raw) if found not in asked}
        if status < 300 and raw[:1] == b"{":
            answer = json.loads(raw)
            for thing in answer["data"] if isinstance(answer.get("data"), list) else [answer]:
                kind = _KINDS.get(thing.get("object", ""))
                if kind is not None:
                    # The newest few: most of what is called is there.
                    kept = tenant.ids.get(kind, [])[-20:]
                    tenant.ids[kind] = kept if thing["id"] in kept else [*kept, thing["id"]]

    def _place(self, tenant: Tenant) -> Place:
        return Place(**{kind: self._drawn.choice(ids) for kind, ids in list(tenant.ids.items())})

    def _body(self, known: Known) -> bytes | None:
        made = _BODIES.get((known.verb, known.path))
        body = known.body if made is None else made(self._tenant.canary, self._drawn)
        return None if body is None else json.dumps(body).encode()


def _events(canary: str, drawn: random.Random) -> dict[str, Any]:
    text = {"content": f"{canary}: write /workspace/outputs/{canary}.txt, then call preview(3000)."}
    ids = {"call_id": "call_00000000"}
    return {
        "events": [
            drawn.choice(
                [
                    *[{"type": "input.message", **text}] * 4,
                    {"type": "input.context", **text},
                    {"type": "input.steer", **text},
                    {"type": "input.cancel"},
                    {"type": "input.tool_result", "turn_id": "turn_0", **ids, "success": True, "output": canary},
                    {"type": "input.question_answer", **ids, "answer": canary},
                ]
            )
        ]
    }


# What is sent where it can hold the word; elsewhere what suits the operation.
_BODIES: Final[dict[tuple[str, str], Callable[[str, random.Random], dict[str, Any]]]] = {
    ("POST", "/v1/sessions"): lambda canary, drawn: {
        "title": canary,
        "metadata": {canary: canary},
        "agent": {
            "instructions": canary,
            "tools": [{"type": "function", "name": "f"}] if drawn.random() < 1 / 2 else [],
        },
        **({"input": f"{canary}: write /workspace/outputs/{canary}.txt"} if drawn.random() < 1 / 2 else {}),
    },
    ("PATCH", "/v1/sessions/{session_id}"): lambda canary, _: {"title": f"{canary}!"},
    ("POST", "/v1/sessions/{session_id}/events"): _events,
    ("POST", "/v1/sessions/{session_id}/files"): lambda canary, _: {"files": [{"path": canary, "data": "YQ=="}]},
    ("POST", "/v1/agents"): lambda canary, drawn: {
        "name": f"{canary}-{drawn.randrange(30)}",
        "instructions": canary,
    },
    ("POST", "/v1/model-credentials"): lambda canary, drawn: {
        "key": f"sk-ant-{canary}-{drawn.randrange(30)}",
        "label": canary,
    },
    ("POST", "/v1/webhooks"): lambda canary, drawn: {"url": f"https://{canary}.example.com/{drawn.randrange(30)}"},
}


def measure() -> Iterator[Line]:
    """Rounds of it against a server of its own, everything deleted after each, and what the server then holds."""
    held: list[int] = []
    outcome = Outcome()
    with Served("--pace", "instant", "--clock", "virtual") as served:
        tenants = [Tenant(f"canary-{name}", _tokens(served.url, name, n)) for name, n in (("one", 3), ("two", 2))]
        for n in range(_ROUNDS):
            came = hammer(served.url, tenants, SECONDS / _ROUNDS, n)
            outcome.statuses += came.statuses
            outcome.faults += came.faults
            clean(served.url, tenants)
            # Past the day that answers to idempotency keys are kept for, and the hours of what is still to be sent.
            ask(served.url, "POST", "/_emulator/clock/advance", {"seconds": _DAY})
            pages = int(Path(f"/proc/{served.process.pid}/statm").read_text().split()[1])
            held.append(pages * 4096)
    called = len({what.rpartition(" ")[0] for what in outcome.statuses})
    detail = f"{sum(outcome.statuses.values())} calls in {SECONDS:.0f} s"
    wrong = outcome.faults[0] if outcome.faults else "no leak between the organizations, no fault"
    yield Line("operations called at once", called, len(CALLS), "at least", detail, "")
    yield Line("leaks and faults", len(outcome.faults), 0, "at most", wrong, "")
    sizes = ", ".join(f"{size / 2**20:.1f}" for size in held)
    yield Line("memory after the last deletes", held[-1] / held[0], 1.1, "at most", f"of the first: {sizes} MiB")


def _tokens(url: str, organization: str, count: int) -> list[str]:
    made = [ask(url, "POST", "/_emulator/tokens", {"organization": organization}).json for _ in range(count)]
    return [token["token"] for token in made]
