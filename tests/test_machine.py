"""No test sees what the machine has it run with."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.inner import Run
from tests.machine import clean
from tests.proof.guard import VARIABLE

if TYPE_CHECKING:
    pass

pytest_plugins = ("pytester",)


@pytest.mark.parametrize(
    "variables",
    [
        {"CI": "true", "BUILD_NUMBER": "7", "GITHUB_ACTIONS": "true"},
        {"PYTEST_ADDOPTS": "--collect-only", "PYTEST_XDIST_WORKER": "gw0", "PYTHONWARNINGS": "ignore"},
        {"TERM": "dumb", "NO_COLOR": "1", "FORCE_COLOR": "1", "PY_COLORS": "1"},
        {"LANG": "C", "LC_ALL": "tr_TR.ISO-8859-9", "TZ": "Asia/Tokyo"},
        {"HTTP_PROXY": "http://192.0.2.1:9", "https_proxy": "x", "SSL_CERT_FILE": "x"},
        {"GOBARE_API": "x", "GOBARE_EMULATOR_SEED": "7", "GOBARE_BENCH_PEERS": "x"},
    ],
)
def test_what_a_machine_may_be_set_to_is_not_for_tests(variables: dict[str, str]) -> None:
    kept = {"PATH": "/bin", "COVERAGE_FILE": "x"}
    assert clean(variables | kept | {"COLUMNS": "40"}) == kept | {"COLUMNS": "80", "LINES": "24"}


@pytest.mark.parametrize("alone", [False, True], ids=["in this process", "in its own"])
def test_neither_this_test_nor_one_it_runs_sees_any_of_it(alone: bool, pytester: pytest.Pytester) -> None:
    seen = "\nimport os\ndef test_it():\n    print('SEEN', *sorted(os.environ))\n"
    result = Run(pytester, "")(seen, "-s", alone=alone)
    (line,) = (line for line in result.outlines if "SEEN" in line)
    ours = {
        "PYTEST_CURRENT_TEST",
        "PYTEST_VERSION",
        "PYTEST_DEBUG_TEMPROOT",
        "PYTHONPATH",
        VARIABLE,
        "PY_COLORS",
        "LC_CTYPE",
    }
    assert set(line.partition("SEEN ")[2].split()) <= set(clean(os.environ)) | ours
    assert set(os.environ) <= set(clean(os.environ)) | ours
