"""Large artifacts go through in pieces. Over a socket alone: the bridge of the other way keeps what it is sent."""

from __future__ import annotations

import gc
import http.client
import tracemalloc
from typing import TYPE_CHECKING, Any

import pytest

from tests.support import WAIT, Api

if TYPE_CHECKING:
    from emulator import Emulator

MEBIBYTE = 1024 * 1024


@pytest.mark.behaviour("artifacts.content-memory")
@pytest.mark.parametrize("route", ["artifacts/{artifact_id}/content", "artifacts/archive"])
def test_a_large_artifact_is_downloaded_without_being_held_again(gobare: Emulator, route: str) -> None:
    size = 150 * MEBIBYTE

    @gobare.agent
    async def agent(turn: Any) -> None:
        await turn.write("outputs/large.bin", b"x", size=size)

    api = Api(gobare)
    session_id = api.session({"input": "go"})
    [artifact] = api.get(f"/v1/sessions/{session_id}/artifacts").json["data"]
    connection = http.client.HTTPConnection(gobare.url.removeprefix("http://"), timeout=WAIT)
    path = f"/v1/sessions/{session_id}/{route.format(artifact_id=artifact['id'])}"
    tracemalloc.start()
    try:
        connection.request("GET", path, headers={"authorization": f"Bearer {gobare.token}"})
        response = connection.getresponse()
        received = 0
        while part := response.read(MEBIBYTE):
            received += len(part)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        connection.close()
    assert received == int(response.headers["content-length"]) >= size
    # The emulator and this client are one process: what both of them held at once, buffers included.
    assert peak < 16 * MEBIBYTE


@pytest.mark.behaviour("artifacts.freed")
def test_what_is_deleted_is_freed_at_once(gobare: Emulator) -> None:
    size = 20 * MEBIBYTE

    @gobare.agent
    async def agent(turn: Any) -> None:
        await turn.write("outputs/large.bin", bytes(size))
        await turn.write("large.bin", bytes(size))

    api = Api(gobare)
    gc.collect()
    gc.disable()
    tracemalloc.start()
    try:
        session_id = api.session({"input": "go"})
        [artifact] = api.get(f"/v1/sessions/{session_id}/artifacts").json["data"]
        held = [tracemalloc.get_traced_memory()[0]]
        for path in (f"/v1/sessions/{session_id}", f"/v1/sessions/{session_id}/artifacts/{artifact['id']}"):
            assert api.delete(path).status == 200
            held.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
        gc.enable()
    assert [round(amount / size) for amount in held] == [2, 1, 0]
