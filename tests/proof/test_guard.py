"""The guard stops what it is there to stop, before it happens."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from emulator import Emulator
from emulator.loops import BackgroundLoop
from tests import inner
from tests.proof.guard import Forbidden
from tests.served import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from tests.proof.guarded import Guarded

pytest_plugins = ("pytester",)

# No packet to it goes anywhere.
AWAY = ("192.0.2.1", 9)


@pytest.fixture(scope="module", params=["uvloop", "asyncio"])
def background(request: pytest.FixtureRequest) -> BackgroundLoop:
    """The loop of emulators, of both kinds. It ends with the process, as theirs does."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "asyncio":
            patch.setitem(sys.modules, "uvloop", None)
        made = BackgroundLoop()
    assert type(made.loop).__module__.partition(".")[0] == request.param
    return made


def loop() -> asyncio.AbstractEventLoop:
    return asyncio.get_running_loop()


async def sock_connect() -> None:
    with socket.socket() as sock:
        sock.setblocking(False)
        await loop().sock_connect(sock, AWAY)


def connect_ex() -> None:
    with socket.socket() as sock:
        sock.connect_ex(AWAY)


def sendto() -> None:
    with socket.socket(type=socket.SOCK_DGRAM) as sock:
        sock.sendto(b"x", AWAY)


async def in_a_thread() -> None:
    await loop().run_in_executor(None, os.system, "true")


ELSEWHERE: list[tuple[str, Callable[[], Coroutine[Any, Any, Any]]]] = [
    ("a connection to 192.0.2.1", lambda: loop().create_connection(asyncio.Protocol, *AWAY)),
    ("a connection to 192.0.2.1", sock_connect),
    (
        "a connection to 192.0.2.1",
        lambda: loop().create_datagram_endpoint(asyncio.DatagramProtocol, remote_addr=AWAY),
    ),
    ("a look-up of mcp.example", lambda: loop().create_connection(asyncio.Protocol, "mcp.example", 443)),
    ("a look-up of mcp.example", lambda: loop().getaddrinfo("mcp.example", 443)),
]
PROCESSES: list[Callable[[], Coroutine[Any, Any, Any]]] = [
    lambda: asyncio.create_subprocess_exec("true"),
    lambda: asyncio.create_subprocess_shell("true"),
    in_a_thread,
]


@pytest.mark.parametrize(("what", "reach"), ELSEWHERE)
def test_no_loop_of_an_emulator_reaches_beyond_this_machine(
    background: BackgroundLoop, guard: Guarded, what: str, reach: Callable[[], Coroutine[Any, Any, Any]]
) -> None:
    async def reached() -> None:
        await reach()

    with pytest.raises(Forbidden):
        background.run(reached())
    (told,) = guard.drain()
    assert told.startswith(f"{what}\n")
    assert "emulator/loops.py" in told or "concurrent/futures" in told


@pytest.mark.parametrize("start", PROCESSES)
def test_no_loop_of_an_emulator_starts_a_process(
    background: BackgroundLoop, guard: Guarded, start: Callable[[], Coroutine[Any, Any, Any]]
) -> None:
    async def started() -> None:
        await start()

    with pytest.raises(Forbidden):
        background.run(started())
    (told,) = guard.drain()
    assert told.startswith("a start of ")


@pytest.mark.parametrize(
    "reach",
    [
        lambda: socket.create_connection(AWAY, timeout=1),
        connect_ex,
        sendto,
        lambda: socket.getaddrinfo("mcp.example", 443),
        lambda: socket.gethostbyname("mcp.example"),
    ],
)
def test_no_test_reaches_beyond_this_machine(guard: Guarded, reach: Callable[[], object]) -> None:
    with pytest.raises(Forbidden):
        reach()
    (told,) = guard.drain()
    assert "test_guard.py" in told


def test_of_some_names_it_is_known_that_nobody_has_them(background: BackgroundLoop, guard: Guarded) -> None:
    async def looked_up() -> None:
        await loop().getaddrinfo("nobody.invalid", 80)

    with pytest.raises(socket.gaierror):
        background.run(looked_up())
    with pytest.raises(UnicodeError):
        socket.getaddrinfo("a..b", 80)
    assert guard.drain() == []


def test_where_the_setting_allows_it_processes_start(guard: Guarded) -> None:
    async def started() -> int:
        process = await asyncio.create_subprocess_exec("true")
        return await process.wait()

    with Emulator(allow_processes=True) as emulator:
        assert emulator.run(started()) == 0
    with Emulator() as emulator, pytest.raises(Forbidden):
        emulator.run(started())
    assert len(guard.drain()) == 1


CHILD = """
import asyncio
from emulator.loops import BackgroundLoop

async def go():
    for reach in (asyncio.open_connection("192.0.2.1", 9), asyncio.create_subprocess_exec("true")):
        try:
            await reach
        except PermissionError as error:
            print(error)

BackgroundLoop().run(go())
"""


def test_a_process_that_a_test_starts_is_guarded_too(guard: Guarded) -> None:
    done = subprocess.run([sys.executable, "-c", CHILD], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout.count("the guard of the tests does not allow"), done.stderr) == (0, 2, "")
    (told,) = guard.drain()
    assert "-c: a connection to 192.0.2.1\n" in told
    assert "-c: a start of true\n" in told


def test_the_test_it_happened_in_fails_with_the_stack(pytester: pytest.Pytester, guard: Guarded) -> None:
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    pytester.makepyfile("""
import socket

def test_quiet():
    pass

def test_loud():
    try:
        socket.getaddrinfo("mcp.example", 443)
    except OSError:
        pass
""")
    result = pytester.runpytest_inprocess(*inner.HERE, plugins=[guard])
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(
        ["*ERROR at teardown of test_loud*", "stopped by the guard:", "a look-up of mcp.example", "*in test_loud"]
    )
