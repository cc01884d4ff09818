"""One event fanned out to 1,000 subscriptions, beside a client that posts 1,000 times to the same receiver."""

from __future__ import annotations

import asyncio
import json
from statistics import median
from typing import TYPE_CHECKING, Final

import httpx2

from tests.bench.harness import Child, Connection, Line, alternate, bare, emulator, now, request

if TYPE_CHECKING:
    from collections.abc import Iterator

_DELIVERIES: Final = 1000


def measure() -> Iterator[Line]:
    """Deliveries a second of both: from the event to the last one received."""
    with emulator("--pace", "instant") as ours, bare("bare_receiver") as receiver, Connection(ours.port) as client:
        for n in range(_DELIVERIES):
            url = f"http://127.0.0.1:{receiver.port}/hooks/{n}"
            body = json.dumps({"url": url, "events": ["session.created"]}).encode()
            status, answer = client.ask(request("POST", "/v1/webhooks", body))
            assert status == 201, answer
        _fan_out(client, receiver)
        mine, peer = alternate(
            40, 7, lambda: _fan_out(client, receiver), lambda: asyncio.run(_posts(receiver.port, _DELIVERIES))
        )
    yield Line(
        "webhooks / bare client loop",
        median(peer) / median(mine),
        0.5,
        "at least",
        f"{_DELIVERIES / median(mine):.0f} beside {_DELIVERIES / median(peer):.0f} deliveries a second",
    )


def _fan_out(client: Connection, receiver: Child) -> float:
    with Connection(receiver.port) as told:
        began = now()
        status, answer = client.ask(request("POST", "/v1/sessions", b"{}"))
        assert status == 201, answer
        status, _ = told.ask(request("GET", f"/wait/{_DELIVERIES}"))
        took = now() - began
        assert status == 200
    status, answer = client.ask(request("DELETE", f"/v1/sessions/{json.loads(answer)['id']}"))
    assert status == 200, answer
    return took


async def _posts(port: int, count: int) -> float:
    """The same library, the same size of body, one after the other."""
    session_id = "98e997bb-d64f-4e4e-9391-24b87f74fd04"
    event = {"object": "event", "type": "session.created", "created_at": 1767225600000}
    body = json.dumps({**event, "data": {"session_id": session_id}}, separators=(",", ":")).encode()
    headers = {
        "content-type": "application/json",
        "x-gobare-timestamp": "1767225600000",
        "x-gobare-signature": "0" * 64,
    }
    async with httpx2.AsyncClient(trust_env=False, verify=False) as client:
        began = now()
        for n in range(count):
            response = await client.post(f"http://127.0.0.1:{port}/hooks/{n}", headers=headers, content=body)
            assert response.status_code == 200
        took = now() - began
        await client.get(f"http://127.0.0.1:{port}/wait/{count}")
    return took
