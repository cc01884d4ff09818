"""What every test may use, and the proof every test is a part of."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

import pytest

from tests import machine
from tests.mcp_web import Web
from tests.proof.guarded import Guarded
from tests.proof.suite import Proof
from tests.support import Api

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from emulator import Emulator

PROOF = pytest.StashKey[Proof]()
GUARD = pytest.StashKey[Guarded]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--proof-examples", type=int, help="how much data tests/proof makes for each operation")


def pytest_configure(config: pytest.Config) -> None:
    config.add_cleanup(machine.keep_bytecode())
    proof = config.stash[PROOF] = Proof(config)
    config.pluginmanager.register(proof)
    guard = config.stash[GUARD] = Guarded()
    config.pluginmanager.register(guard)
    config.add_cleanup(guard.close)


def pytest_collection_finish() -> None:
    # What is there by now stays. To go through it for garbage again and again takes a tenth of the run.
    # Hypothesis asks at its import who refers to what, which is not told of what is frozen.
    import hypothesis  # noqa: F401

    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtestloop(session: pytest.Session) -> Generator[None, object, object]:
    with machine.forgotten(session.config.stash[GUARD].variables):
        return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    # Half of these tests leave something over, as they are meant to: nobody needs to be told in each run.
    vars(report).pop("gobare_left", None)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    """Every answer given while a test ran is as the OpenAPI document says. No fixture: each costs every test time."""
    try:
        return (yield)
    finally:
        wrong = item.config.stash[PROOF].check(
            alone="domain" in item.path.parts, row=item.get_closest_marker("behaviour") is not None
        )
        if wrong and item.get_closest_marker("rigged") is None:
            pytest.fail("\n".join(dict.fromkeys(wrong)), pytrace=False)


@pytest.fixture
def guard(request: pytest.FixtureRequest) -> Guarded:
    """What the guard has stopped, for tests that try it."""
    return request.config.stash[GUARD]


@pytest.fixture
def api(gobare: Emulator) -> Api:
    """A client of the test's emulator, over a real socket."""
    return Api(gobare)


@pytest.fixture
def web() -> Iterator[Web]:
    """An MCP server on loopback."""
    with Web() as web:
        yield web
