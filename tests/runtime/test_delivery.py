"""Deliveries and the sender below the API: what is left when it stops, what it costs, what it is bounded by."""

from __future__ import annotations

import asyncio
import http.client
import socket
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest

from emulator import Emulator
from emulator.domain.notices import Notices
from emulator.runtime.sender import Sender
from tests.receiver import Receiver
from tests.support import WAIT, Api

if TYPE_CHECKING:
    from tests.receiver import Post


def test_http_is_imported_with_the_first_delivery() -> None:
    program = (
        "import sys\n"
        "from emulator import Emulator\n"
        "with Emulator() as gobare:\n"
        "    gobare.settle()\n"
        "    assert 'emulator.runtime.delivery' in sys.modules\n"
        "    print('httpx2' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "False\n", done.stderr


def test_stopping_leaves_nothing_of_a_delivery_under_way(api: Api) -> None:
    answer, came = threading.Event(), threading.Event()

    def hang(post: Post) -> None:
        came.set()
        answer.wait(WAIT)

    with Receiver() as receiver:
        receiver.on_post = hang
        with Emulator() as other:
            theirs = Api(other)
            theirs.post("/v1/webhooks", {"url": receiver.url})
            theirs.session({"input": "hello"})
            assert came.wait(WAIT)
            loop = other.loop
        left = loop.run(_tasks())
        answer.set()
    assert [name for name in left if "Deliveries" in name or "httpx" in name] == []


async def _tasks() -> list[str]:
    return [repr(task.get_coro()) for task in asyncio.all_tasks()]


def test_a_reset_ends_what_is_under_way(gobare: Emulator, api: Api) -> None:
    answer, came = threading.Event(), threading.Event()

    def hang(post: Post) -> None:
        came.set()
        answer.wait(WAIT)

    with Receiver() as receiver:
        receiver.on_post = hang
        api.post("/v1/webhooks", {"url": receiver.url})
        api.session({"input": "hello"})
        assert came.wait(WAIT)
        gobare.reset()
        answer.set()
        assert gobare.settle()
        assert len(receiver.posts) == 1


def test_attempts_at_once_are_bounded(gobare: Emulator, api: Api) -> None:
    answer, full = threading.Event(), threading.Event()
    lock = threading.Lock()
    inside: list[int] = []

    def hang(post: Post) -> None:
        with lock:
            inside.append(1)
            if len(inside) == 16:
                full.set()
        answer.wait(WAIT)

    with Receiver() as receiver:
        receiver.on_post = hang
        for n in range(20):
            api.post("/v1/webhooks", {"url": f"{receiver.url}/{n}", "events": ["session.created"]})
        api.session()
        assert full.wait(WAIT)
        assert gobare.settle(0.1) is False
        assert len(inside) == 16
        answer.set()
        assert gobare.settle()
        assert len(receiver.posts) == 20


def test_an_advance_does_not_wait_for_ever_for_a_receiver(gobare: Emulator, api: Api) -> None:
    answer = threading.Event()
    gobare.settings.update(rest_seconds=0.1)
    with Receiver() as receiver:
        receiver.on_post = lambda post: answer.wait(WAIT)
        api.post("/v1/webhooks", {"url": receiver.url, "events": ["session.created"]})
        api.session()
        before = gobare.clock.now()
        gobare.clock.advance(600)
        assert gobare.clock.now() == before + 600_000
        answer.set()
        assert gobare.settle()
        assert gobare.report()["agent_not_at_rest"] == []


def test_replies_do_not_wait_for_a_body_that_never_ends(gobare: Emulator, api: Api) -> None:
    """A write whose body is on its way holds nothing up: it has caused nothing yet."""
    with Receiver() as receiver:
        api.post("/v1/webhooks", {"url": receiver.url, "events": ["session.created"]})
        connection = http.client.HTTPConnection(gobare.url.removeprefix("http://"), timeout=WAIT)
        connection.putrequest("POST", "/v1/sessions")
        connection.putheader("authorization", f"Bearer {gobare.token}")
        connection.putheader("content-length", "100")
        connection.endheaders(b"{")
        api.session()
        assert gobare.settle()
        assert len(receiver.posts) == 1
        connection.close()


def test_a_reader_of_the_log_reads_nothing_twice(gobare: Emulator, api: Api) -> None:
    async def read() -> list[list[str]]:
        world = gobare.socket.deployment.world
        organization = world.organization("default")
        notices = Notices()
        return [[notice.type for notice in notices.read(organization)] for _ in range(2)]

    api.post("/v1/webhooks", {"url": "https://you.example.com/"})
    api.session({"input": "hello"})
    assert gobare.run(read()) == [["session.created", "session.working", "session.idle", "turn.completed"], []]


@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.1:1/", "https://127.0.0.1:1/", "http://a..b/", "nonsense"],
)
def test_the_sender_says_why_there_is_no_answer(url: str) -> None:
    async def send() -> tuple[int | None, str | None]:
        sender = Sender()
        try:
            return await sender.send(url, {}, b"{}", 5)
        finally:
            await sender.close()

    status, found = asyncio.run(send())
    assert status is None
    assert found


def test_nobody_logs_the_query_of_an_address(gobare: Emulator, api: Api, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(1)
    with Receiver() as receiver:
        api.post("/v1/webhooks", {"url": f"{receiver.url}?token=canary"})
        api.session({"input": "hello"})
        assert gobare.settle()
        assert len(receiver.posts) == 4
    assert "canary" not in caplog.text


def test_an_answer_that_is_no_http_is_not_told_whole() -> None:
    async def send(url: str) -> tuple[int | None, str | None]:
        sender = Sender()
        try:
            return await sender.send(url, {"content-type": "application/json"}, b"{}", 5)
        finally:
            await sender.close()

    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(65_536)
                connection.sendall(b"x" * 50_000 + b"\r\n\r\n")

        thread = threading.Thread(target=serve)
        thread.start()
        status, found = asyncio.run(send(f"http://127.0.0.1:{listening.getsockname()[1]}/"))
        thread.join(WAIT)
    assert status is None
    assert found is not None
    assert len(found) == 200


def test_a_long_answer_is_not_read_to_its_end() -> None:
    async def send(url: str) -> list[tuple[int | None, str | None]]:
        sender = Sender()
        try:
            return [await sender.send(url, {"content-type": "application/json"}, b"{}", 5) for _ in range(2)]
        finally:
            await sender.close()

    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            for _ in range(2):
                connection, _ = listening.accept()
                with connection:
                    connection.settimeout(WAIT)
                    connection.recv(65_536)
                    try:
                        connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 100000000\r\n\r\n")
                        while True:
                            connection.sendall(b"x" * 65_536)
                    except OSError:
                        continue

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        found = asyncio.run(send(f"http://127.0.0.1:{listening.getsockname()[1]}/"))
        thread.join(WAIT)
    assert found == [(200, None), (200, None)]
    assert not thread.is_alive()
