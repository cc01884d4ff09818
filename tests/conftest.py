"""What every test may use, and the proof every test is a part of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests import machine
from tests.proof.suite import Proof
from tests.support import Api

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from emulator import Emulator

PROOF = pytest.StashKey[Proof]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--proof-examples", type=int, help="how much data tests/proof makes for each operation")


def pytest_configure(config: pytest.Config) -> None:
    config.add_cleanup(machine.keep_bytecode())
    proof = config.stash[PROOF] = Proof(config)
    config.pluginmanager.register(proof)


@pytest.hookimpl(wrapper=True)
def pytest_runtestloop() -> Generator[None, object, object]:
    with machine.forgotten():
        return (yield)


@pytest.fixture(autouse=True)
def proven(request: pytest.FixtureRequest) -> Iterator[None]:
    """Every answer given while a test ran is as the OpenAPI document says."""
    yield
    wrong = request.config.stash[PROOF].check(
        alone="domain" in request.path.parts, row=request.node.get_closest_marker("behaviour") is not None
    )
    if wrong and request.node.get_closest_marker("rigged") is None:
        pytest.fail("\n".join(dict.fromkeys(wrong)), pytrace=False)


@pytest.fixture
def api(gobare: Emulator) -> Api:
    """A client of the test's emulator, over a real socket."""
    return Api(gobare)
