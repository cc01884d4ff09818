"""The server: whom it serves, how it writes, and that a stop or a reset leaves nothing behind."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, Final, cast

import pytest

from emulator import Emulator
from emulator.runtime.stepping import Holder
from emulator.server import Corked, Socket, bind, host_name
from emulator.settings import Settings
from tests.support import WAIT, Api

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from emulator import Turn
    from tests.support import Frames

HEALTH: Final = "/v1/health"
CONTROL_HEALTH: Final = "/_emulator/health"


@pytest.fixture(scope="module")
def named() -> Iterator[Api]:
    """A client of an emulator that was told of one more host."""
    with Emulator(allow_hosts=["Gobare.Test"]) as emulator:
        yield Api(emulator)


async def tasks() -> set[asyncio.Task[Any]]:
    """The tasks of this loop, but for the one that asks."""
    current = asyncio.current_task()
    return {task for task in asyncio.all_tasks() if task is not current}


async def left(before: set[asyncio.Task[Any]]) -> list[str]:
    """The tasks that were not there before, once they had their time to end."""
    more = await tasks() - before
    if more:
        await asyncio.wait(more, timeout=1)
    return [task.get_name() for task in more if not task.done()]


# Hosts and pages


@pytest.mark.parametrize(
    ("host", "served"),
    [
        ("localhost", True),
        ("LOCALHOST:4747", True),
        ("127.0.0.1", True),
        ("127.0.0.1:1", True),
        ("[::1]", True),
        ("[::1]:4747", True),
        ("gobare.test:80", True),
        ("GOBARE.test", True),
        ("", False),
        ("evil.example.com", False),
        ("localhost.evil.example.com", False),
        ("evil.example.com:127.0.0.1", False),
        ("127.0.0.1@evil.example.com", False),
        ("127.0.0.1.evil.example.com:80", False),
        ("0.0.0.0", False),
        ("[::2]:80", False),
        ("gobare.test.evil.example.com", False),
    ],
)
def test_only_the_hosts_it_was_told_of_are_served(named: Api, host: str, served: bool) -> None:
    answer = named.get(HEALTH, headers={"host": host})
    assert answer.status == (200 if served else 403)
    if not served:
        assert answer.code == "permission_denied"
        assert answer.message == (
            "This emulator does not serve that host name. Start it with --allow-host NAME to have it do so."
        )
        assert answer.headers["x-request-id"] == answer.json["error"]["request_id"]


@pytest.mark.parametrize(
    ("origin", "served"),
    [
        ("http://localhost:3000", True),
        ("https://127.0.0.1", True),
        ("http://[::1]:5173", True),
        ("https://gobare.test", True),
        ("null", False),
        ("", False),
        ("https://evil.example.com", False),
        ("http://localhost.evil.example.com:3000", False),
        ("localhost", False),
    ],
)
@pytest.mark.parametrize("path", [HEALTH, CONTROL_HEALTH, "/nowhere"])
def test_only_pages_of_those_hosts_are_served(named: Api, path: str, origin: str, served: bool) -> None:
    answer = named.get(path, headers={"origin": origin})
    assert (answer.status == 403) is not served
    if not served:
        assert "does not serve pages of that origin" in answer.message


def test_a_foreign_page_of_a_foreign_host_is_told_of_the_host(named: Api) -> None:
    answer = named.post("/_emulator/reset", headers={"host": "evil.test", "origin": "http://evil.test"})
    assert (answer.status, "that host name" in answer.message) == (403, True)


@pytest.mark.parametrize(
    ("header", "name"),
    [
        ("a.test", "a.test"),
        ("A.test:80", "a.test"),
        ("a.test:", "a.test:"),
        ("a.test:x", "a.test:x"),
        ("[::1]", "::1"),
        ("[FE80::1]:80", "fe80::1"),
        ("", ""),
        (":80", ""),
    ],
)
def test_the_name_of_a_host_is_without_port_and_brackets(header: str, name: str) -> None:
    assert host_name(header) == name


# Addresses


class Bound:
    """Something bound that only tells its address."""

    def __init__(self, *address: Any) -> None:
        self._address = address

    def getsockname(self) -> tuple[Any, ...]:
        return self._address


@pytest.mark.parametrize(
    ("address", "url"),
    [
        (("127.0.0.1", 4747), "http://127.0.0.1:4747"),
        (("127.0.0.2", 1), "http://127.0.0.2:1"),
        (("0.0.0.0", 4747), "http://127.0.0.1:4747"),
        (("::", 4747, 0, 0), "http://127.0.0.1:4747"),
        (("::1", 4747, 0, 0), "http://[::1]:4747"),
        (("fe80::1", 4747, 0, 2), "http://[fe80::1]:4747"),
    ],
)
def test_the_url_is_one_that_can_be_called(address: tuple[Any, ...], url: str) -> None:
    listening = Socket(cast("socket.socket", Bound(*address)), settings=Settings(), holder=Holder())
    assert listening.url == url
    assert address[0] in listening.hosts


def has_ipv6() -> bool:
    """Whether this machine has an IPv6 loopback; a container may not."""
    try:
        bind("::1", 0).close()
    except OSError:
        return False
    return True


@pytest.mark.skipif(not has_ipv6(), reason="no IPv6 loopback here")
def test_an_ipv6_address_is_served() -> None:
    with Emulator(host="::1") as emulator:
        port = int(emulator.url.removeprefix("http://[::1]:"))
        connection = http.client.HTTPConnection("::1", port, timeout=WAIT)
        try:
            connection.request("GET", CONTROL_HEALTH)
            assert connection.getresponse().status == 200
        finally:
            connection.close()


def test_the_lowest_level_of_logging_has_no_addresses() -> None:
    program = (
        "import http.client, logging\n"
        "logging.basicConfig(level=1)\n"
        "from emulator import Emulator\n"
        "with Emulator() as gobare:\n"
        "    connection = http.client.HTTPConnection(gobare.url.removeprefix('http://'), timeout=10)\n"
        "    connection.request('GET', '/v1/health?name=canary')\n"
        "    connection.getresponse().read()\n"
        "    connection.close()\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert "canary" not in done.stdout + done.stderr


def test_a_port_that_is_taken_is_an_error_and_leaves_nothing_open() -> None:
    with bind("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match="in use"):
            bind("127.0.0.1", port)
        emulator = Emulator(port=port)
        with pytest.raises(OSError, match="in use"):
            emulator.start()
        emulator.stop()
    with Emulator(port=port) as second:
        assert second.url == f"http://127.0.0.1:{port}"


def test_port_zero_is_any_that_is_free() -> None:
    with bind("127.0.0.1", 0) as one, bind("127.0.0.1", 0) as other:
        assert one.getsockname()[1] != other.getsockname()[1]
        assert one.getblocking() is False


# The end


def test_a_stop_ends_a_request_in_flight_whose_agent_is_not_at_rest() -> None:
    began, unwound = threading.Event(), threading.Event()
    outcome: list[object] = []

    async def agent(turn: Turn) -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            unwound.set()

    def send(api: Api, session: str) -> None:
        try:
            outcome.append(api.say(session, "Go.").status)
        except (OSError, http.client.HTTPException) as error:
            outcome.append(error)

    emulator = Emulator(rest_seconds=60).start()
    try:
        before = emulator.run(tasks())
        emulator.agent(agent)
        api = Api(emulator)
        caller = threading.Thread(target=send, args=(api, api.session()))
        caller.start()
        assert began.wait(WAIT)
    finally:
        started = time.monotonic()
        emulator.stop()
    assert time.monotonic() - started < 3
    assert unwound.is_set()
    caller.join(WAIT)
    assert not caller.is_alive()
    assert len(outcome) == 1
    assert emulator.loop.run(left(before)) == []
    with pytest.raises(ConnectionRefusedError):
        api.get(HEALTH)


def test_a_stop_closes_connections_that_are_kept_open() -> None:
    with Emulator() as emulator:
        connection = http.client.HTTPConnection(emulator.url.removeprefix("http://"), timeout=WAIT)
        connection.request("GET", CONTROL_HEALTH)
        assert json.loads(connection.getresponse().read())["status"] == "ok"
        assert connection.sock is not None
        idle = connection.sock
    with idle:
        assert idle.recv(1) == b""


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\n",
        b"POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer gbr_pat_emulator\r\n"
        b"Content-Type: application/json\r\nContent-Length: 9\r\n\r\n{",
    ],
    ids=["nothing", "half a head", "half a body"],
)
def test_a_stop_lets_go_of_whoever_has_not_sent_everything(sent: bytes) -> None:
    emulator = Emulator().start()
    try:
        before = emulator.run(tasks())
        address = ("127.0.0.1", int(emulator.url.rpartition(":")[2]))
        with socket.create_connection(address, timeout=WAIT) as connection:
            connection.sendall(sent)
            # Another request is answered after this one was read.
            assert Api(emulator).get(HEALTH).status == 200
            emulator.stop()
            assert gone(connection)
        assert emulator.loop.run(left(before)) == []
    finally:
        emulator.stop()


def gone(connection: socket.socket) -> bool:
    """Whether the other side has closed, in whatever manner."""
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def read_to_the_end(streams: Iterable[Frames]) -> None:
    for frames in streams:
        with frames:
            while frames.next() is not None:
                pass


@pytest.mark.parametrize("ending", ["reset", "stop"])
def test_open_streams_end_and_leave_no_task(ending: str) -> None:
    emulator = Emulator().start()
    try:
        api = Api(emulator)
        before = emulator.run(tasks())
        session = api.session()
        paths = ["/v1/events", f"/v1/sessions/{session}/events", "/v1/events?last_event_id=0"]
        streams = [api.stream(path) for path in paths]
        api.say(session, "Hello")
        assert len(emulator.report()["open_streams"]) == 3
        if ending == "reset":
            emulator.reset()
        else:
            emulator.stop()
        read_to_the_end(streams)
        assert emulator.loop.run(left(before)) == []
    finally:
        emulator.stop()


def test_a_reset_leaves_no_task_of_a_turn_and_answers_at_once() -> None:
    with Emulator() as emulator:
        api = Api(emulator)
        before = emulator.run(tasks())

        @emulator.agent
        async def agent(turn: Turn) -> None:
            await asyncio.gather(turn.ask("Sure?"), turn.wait(60), asyncio.sleep(3600))

        session = api.session()
        api.say(session, "Go.")
        old = emulator.socket.deployment
        assert len(emulator.run(tasks()) - before) == 4
        emulator.reset()
        assert emulator.run(left(before)) == []
        assert emulator.socket.deployment is not old
        assert api.get(f"/v1/sessions/{session}").status == 404
        assert api.session() == session


# Writing


class Wire(asyncio.Transport):
    """A transport that keeps what it is given to write, write by write."""

    def __init__(self) -> None:
        super().__init__({"peername": ("127.0.0.1", 1)})
        self.sent: list[bytes | str] = []

    def write(self, data: Any) -> None:
        self.sent.append(data)

    def close(self) -> None:
        self.sent.append("closed")


HEAD: Final = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n"


def corked(*data: bytes, passes: int = 0, close: bool = False) -> list[bytes | str]:
    """What goes out when `data` is written, after so many passes of the loop."""

    async def write() -> list[bytes | str]:
        wire = Wire()
        transport = Corked(wire, asyncio.get_running_loop())
        for part in data:
            transport.write(part)
        if close:
            transport.close()
        for _ in range(passes):
            await asyncio.sleep(0)
        return list(wire.sent)

    return asyncio.run(write())


def test_a_head_and_its_body_are_one_write() -> None:
    assert corked(HEAD, b"{}") == [HEAD + b"{}"]
    assert corked(HEAD, b"{}", passes=3) == [HEAD + b"{}"]


def test_a_head_alone_goes_out_at_the_next_pass_of_the_loop() -> None:
    assert corked(HEAD) == []
    assert corked(HEAD, passes=1) == [HEAD]


def test_what_follows_the_first_of_a_body_is_written_as_it_comes() -> None:
    assert corked(HEAD, b"a", b"b", b"c") == [HEAD + b"a", b"b", b"c"]
    assert corked(b"b", HEAD, b"{}", HEAD, b"[]", passes=2) == [b"b", HEAD + b"{}", HEAD + b"[]"]


def test_an_interim_answer_is_not_lost_before_the_final_one() -> None:
    interim = b"HTTP/1.1 100 Continue\r\n\r\n"
    assert corked(interim, HEAD, b"{}", passes=2) == [interim + HEAD, b"{}"]


def test_a_close_sends_what_is_kept_first() -> None:
    assert corked(HEAD, close=True, passes=2) == [HEAD, "closed"]
    assert corked(HEAD, b"{}", close=True) == [HEAD + b"{}", "closed"]
    assert corked(close=True) == ["closed"]


def test_everything_else_is_the_transports() -> None:
    transport = Corked(Wire(), cast("asyncio.AbstractEventLoop", None))
    assert transport.get_extra_info("peername") == ("127.0.0.1", 1)
    with pytest.raises(AttributeError):
        transport.no_such_thing  # noqa: B018
