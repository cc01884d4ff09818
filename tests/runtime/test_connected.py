"""Real MCP connections: what is left of them, who waits for whom, and what is told nowhere."""

from __future__ import annotations

import asyncio
import logging
import ssl
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import pytest

from emulator.clock import Clock
from emulator.domain.tools import McpTool
from emulator.loops import new_loop
from emulator.redaction import Secret
from emulator.runtime.connected import Connections
from emulator.runtime.deployment import Deployment
from emulator.runtime.stepping import Holder
from emulator.runtime.tool_server import ServerUnreachable
from emulator.settings import Settings, changed
from tests.crashes import crash, entry, gone
from tests.mcp_web import SECRET, Web, at, connected, session
from tests.support import WAIT, Api

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from emulator import Emulator

CONNECT: Final = changed(Settings(), {"mcp": "connect", "allow_processes": True})


def test_sessions_whose_servers_crash_at_random_moments_leave_nothing(tmp_path: Path) -> None:
    left = crash(10, 7, tmp_path)
    assert left.started >= 7
    assert (left.processes, left.files, left.tasks, left.threads, left.temporary) == ([], [], [], [], [])
    assert left.stopping < 1


@pytest.mark.parametrize("loop", [new_loop, asyncio.new_event_loop], ids=["the emulator's", "plain"])
def test_a_process_is_connected_to_called_and_ended_on_every_loop(
    loop: Callable[[], asyncio.AbstractEventLoop], tmp_path: Path
) -> None:
    described = entry("deaf", f"child={tmp_path / 'pids'}")

    async def use() -> set[asyncio.Task[Any]]:
        deployment = Deployment(CONNECT, Holder())
        connections = deployment.connections
        tool = McpTool("docs", command=described["command"], args=described["args"])
        server = connections.to(tool, {}, CONNECT)
        await server.connect()
        assert (await server.call("read", {"n": 1})).text == '{"n": 1}'
        hanging = asyncio.create_task(server.call("hang", {}))
        await asyncio.sleep(0)
        await deployment.close()
        assert (await hanging).is_error
        with pytest.raises(ServerUnreachable):
            await connections.to(tool, {}, CONNECT).connect()
        return asyncio.all_tasks() - {asyncio.current_task()}

    with asyncio.Runner(loop_factory=loop) as runner:
        assert runner.run(use()) == set()
    assert all(gone(int(pid)) for pid in (tmp_path / "pids").read_text().split())


@connected
def test_servers_are_connected_to_at_the_same_time_and_told_of_in_declared_order(gobare: Emulator, web: Web) -> None:
    web.meeting = threading.Barrier(2)
    api = Api(gobare)
    names = ("first", "second", "third", "fourth")
    entries = [
        at(f"{web.url}/{path}", name=name) for name, path in zip(names, ("mcp", "404", "mcp", "401"), strict=True)
    ]
    session_id = session(api, *entries)
    api.say(session_id, "hello")
    told = [event["payload"] for event in api.events(session_id) if event["type"] == "mcp.unavailable"]
    assert [(one["server"], one["reason"]) for one in told] == [
        ("second", "the server answered 404"),
        ("fourth", "the server answered 401"),
    ]


@connected
@pytest.mark.parametrize("end", ["delete", "reset"])
def test_a_connect_is_given_up_with_the_session_or_the_emulator(gobare: Emulator, web: Web, end: str) -> None:
    web.hangs.add("initialize")
    api = Api(gobare)
    session_id = session(api, at(f"{web.url}/mcp", required=True))
    with ThreadPoolExecutor(1) as pool:
        saying = pool.submit(api.say, session_id, "hello")
        assert web.asked.wait(WAIT)
        if end == "delete":
            assert api.delete(f"/v1/sessions/{session_id}").status == 200
        else:
            gobare.reset()
        answer = saying.result(5)
    assert answer.status == (404 if end == "delete" else 503), answer.raw


@connected
@pytest.mark.parametrize("end", ["", "delete"])
def test_others_are_served_while_what_a_first_connection_needs_is_imported(
    gobare: Emulator, web: Web, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    began, over = threading.Event(), threading.Event()

    def imported() -> None:
        began.set()
        assert over.wait(WAIT)

    monkeypatch.delitem(sys.modules, "emulator.runtime.mcp_http", raising=False)
    monkeypatch.setattr("emulator.runtime.connected._import", imported)
    api = Api(gobare)
    session_id = session(api, at(f"{web.url}/mcp"))
    with ThreadPoolExecutor(1) as pool:
        saying = pool.submit(api.say, session_id, "hello")
        assert began.wait(WAIT)
        try:
            assert api.get("/v1/sessions").status == 200
            if end == "delete":
                assert api.delete(f"/v1/sessions/{session_id}").status == 200
        finally:
            over.set()
        answer = saying.result(WAIT)
    assert (answer.status, bool(web.received)) == ((404, False) if end == "delete" else (202, True)), answer.raw


@connected
def test_a_server_that_does_not_take_its_leave_is_not_waited_for(gobare: Emulator, web: Web) -> None:
    api = Api(gobare)
    session_id = session(api, at(f"{web.url}/no-goodbye"))
    api.say(session_id, "hello")
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(api.delete, f"/v1/sessions/{session_id}").result(2).status == 200
    assert web.received[-1].method == "DELETE"


@connected
def test_a_fork_connects_for_itself(gobare: Emulator, web: Web) -> None:
    api = Api(gobare)
    source = session(api, at(f"{web.url}/mcp", authorization=SECRET))
    api.say(source, "hello")
    fork = api.post(f"/v1/sessions/{source}/fork").json["id"]
    assert web.methods().count("initialize") == 1
    api.say(fork, "hello")
    assert web.methods().count("initialize") == 2
    api.delete(f"/v1/sessions/{source}")
    results = []

    @gobare.agent
    async def agent(turn: Any) -> None:
        results.append(await turn.mcp("docs", "read"))

    api.say(fork, "call")
    assert not results[0].is_error
    assert {one.headers["authorization"] for one in web.received} == {SECRET}


@pytest.mark.gobare(mcp="connect", mcp_except=["docs"])
def test_one_server_may_be_simulated_among_real_ones(gobare: Emulator, web: Web) -> None:
    api = Api(gobare)
    api.say(session(api, at(f"{web.url}/401"), at(f"{web.url}/mcp", name="real")), "hello")
    assert {one.path for one in web.received} == {"/mcp"}


@pytest.mark.gobare(mcp_except=["docs"])
def test_one_server_may_be_real_among_simulated_ones(gobare: Emulator, web: Web) -> None:
    api = Api(gobare)
    api.say(session(api, at(f"{web.url}/mcp"), at(f"{web.url}/401", name="simulated")), "hello")
    assert {one.path for one in web.received} == {"/mcp"}


@connected
def test_outages_hold_for_real_servers_too(gobare: Emulator, web: Web) -> None:
    gobare.mcp.down("docs", reason="closed for the night")
    api = Api(gobare)
    session_id = session(api, at(f"{web.url}/mcp"))
    api.say(session_id, "hello")
    (told,) = [event["payload"] for event in api.events(session_id) if event["type"] == "mcp.unavailable"]
    assert (told["reason"], web.received) == ("closed for the night", [])


@connected
@pytest.mark.parametrize("path", ["mcp", "401", "html", "nothing", "half"])
def test_nothing_of_a_connection_is_logged_and_others_logs_stay(
    gobare: Emulator, web: Web, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(0):
        api = Api(gobare)
        api.say(session(api, at(f"{web.url}/{path}?key={SECRET}", authorization=SECRET)), "hello")
        # A recorder of another test may have had the HTTP library say nothing below a warning.
        logging.getLogger("httpx2").warning("somebody else's")
        logging.getLogger("mcp.client.streamable_http").info("somebody else's")
    told = [
        record for record in caplog.records if record.name.split(".")[0] in ("mcp", "client", "httpx2", "httpcore2")
    ]
    assert [record.message for record in told] == ["somebody else's"] * 2
    assert SECRET not in caplog.text


@connected
def test_a_certificate_that_nobody_vouches_for_is_not_trusted(gobare: Emulator, tmp_path: Path) -> None:
    with Web() as web:
        web.secure(self_signed(tmp_path))
        api = Api(gobare)
        session_id = session(api, at(f"{web.url}/mcp", authorization=SECRET))
        api.say(session_id, "hello")
        (told,) = [event["payload"] for event in api.events(session_id) if event["type"] == "mcp.unavailable"]
    assert (told["reason"], web.received) == ("fetch failed", [])


def self_signed(folder: Path) -> ssl.SSLContext:
    """What a server needs to speak TLS as `localhost`, vouched for by itself."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), 1, now - timedelta(1), now + timedelta(1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file = folder / "server.pem"
    file.write_bytes(secret + certificate.public_bytes(serialization.Encoding.PEM))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    return context


def test_a_connection_shows_no_secret(web: Web) -> None:
    tool = McpTool("docs", url=web.url, authorization=Secret(SECRET), headers={"x": Secret(SECRET)})

    async def make() -> str:
        return repr(vars(Connections(Clock(virtual=True)).to(tool, {"KEY": Secret(SECRET)}, CONNECT)))

    assert SECRET not in asyncio.run(make())
