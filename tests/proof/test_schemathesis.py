"""Every operation, with data made from our own document: what it allows and what it does not.

It is made the same way every time, from a seed. `--proof-examples` has more of it made.
"""

from __future__ import annotations

import copy
import re
from typing import TYPE_CHECKING, Any, Final

import hypothesis
import pytest
import requests
import schemathesis
from hypothesis import Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.config import SchemathesisConfig
from schemathesis.core.result import Ok
from schemathesis.core.transport import Response
from schemathesis.generation.modes import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    ensure_resource_availability,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
    use_after_free,
)

from emulator import Emulator
from emulator.api import openapi
from tests.contract.calls import Place, place
from tests.proof.reasons import UNSAYABLE
from tests.support import WAIT, Api

if TYPE_CHECKING:
    from collections.abc import Iterator

    from schemathesis.generation.case import Case

CONFIG: Final = {
    "seed": 1,
    "generation": {"with-security-parameters": False, "deterministic": True},
    "warnings": False,
}
CHECKS: Final[list[Any]] = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
# A few of each; `--proof-examples` says how many else.
EXAMPLES: Final = 6
SCENARIOS, STEPS, LED = 6, 20, 4


def loaded() -> Any:
    """The document as schemathesis has it. It learns from what it sees, so each use has one of its own."""
    return schemathesis.openapi.from_dict(
        copy.deepcopy(openapi.document()), config=SchemathesisConfig.from_dict(CONFIG)
    )


OPERATIONS: Final = {
    result.ok().label: result.ok() for result in loaded().get_all_operations() if isinstance(result, Ok)
}
# What there is to get wrong: the path is given.
OPEN: Final = sorted(
    label for label, found in OPERATIONS.items() if found.body or any(found.query) or any(found.headers)
)


@pytest.fixture(scope="module")
def connection() -> Iterator[requests.Session]:
    with requests.Session() as session:
        yield session


@pytest.fixture
def examples(request: pytest.FixtureRequest) -> int:
    wanted: int | None = request.config.getoption("--proof-examples")
    return wanted or EXAMPLES


def settled(examples: int, **more: Any) -> settings:
    """How data is made: the same every time, however long it takes, and shown as it is."""
    return settings(
        max_examples=examples,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
        **more,
    )


def sayable(response: requests.Response) -> bool:
    """Whether a refusal is of something the document could have said."""
    error = response.json()["error"]
    return error["code"] == "invalid_request" and not any(re.search(words, error["message"]) for words in UNSAYABLE)


@pytest.mark.gobare(session_limit=100_000, streams_per_token=1000, streams_per_organization=1000)
@pytest.mark.parametrize("label", sorted(OPERATIONS))
def test_what_the_document_allows_is_served(
    gobare: Emulator, connection: requests.Session, examples: int, label: str
) -> None:
    where = ids(place(Api(gobare)), label)

    @settled(examples)
    @given(case=loaded().find_operation_by_label(label).as_strategy(GenerationMode.POSITIVE, path_parameters=where))
    def run(case: Case[Any]) -> None:
        response = send(gobare, connection, case)
        case.validate_response(response, checks=CHECKS)
        if response.status_code == 400:
            assert not sayable(response), response.json()["error"]["message"]

    run()


@pytest.mark.gobare(session_limit=100_000, streams_per_token=1000, streams_per_organization=1000)
@pytest.mark.parametrize("label", OPEN)
def test_what_the_document_does_not_allow_is_refused(
    gobare: Emulator, connection: requests.Session, examples: int, label: str
) -> None:
    where = ids(place(Api(gobare)), label)

    @settled(examples)
    @given(case=loaded().find_operation_by_label(label).as_strategy(GenerationMode.NEGATIVE, path_parameters=where))
    def run(case: Case[Any]) -> None:
        response = send(gobare, connection, case)
        case.validate_response(response, checks=[*CHECKS, negative_data_rejection])

    run()


def send(gobare: Emulator, connection: requests.Session, case: Case[Any]) -> requests.Response:
    """Send a case. Of a stream that opens, which would not end, only what it begins with is read."""
    headers = {"authorization": f"Bearer {gobare.token}"}
    request = case.as_transport_kwargs(base_url=gobare.url, headers=headers)
    response: requests.Response = connection.request(**request, stream=True, timeout=WAIT)
    with response:
        if response.headers["content-type"].startswith("text/event-stream"):
            response._content = next(response.iter_content(None))
        assert response.content is not None
    return response


def ids(where: Place, label: str) -> dict[str, str]:
    """What the path of an operation is filled with."""
    names: list[str] = re.findall(r"\{(\w+)\}", label)
    return {name: where.fill(f"{{{name}}}") for name in names}


@pytest.mark.gobare(session_limit=100_000, artifacts_outlive_sessions=False)
def test_what_one_call_makes_another_finds_until_it_is_deleted(
    gobare: Emulator, connection: requests.Session, examples: int
) -> None:
    found: set[tuple[str, int]] = set()

    class Machine(loaded().as_state_machine()):  # type: ignore[misc]
        def setup(self) -> None:
            gobare.reset()

        def call(self, case: Case[Any], **_: Any) -> Response:
            response = Response.from_any(send(gobare, connection, case))
            found.add((case.operation.label, response.status_code))
            return response

        def validate_response(self, response: Response, case: Case[Any], **_: Any) -> None:
            checks = [*CHECKS, use_after_free, ensure_resource_availability]
            case.validate_response(response, checks=checks, recorder=self.recorder)

    Machine.run(settings=settled(max(SCENARIOS, examples // 4), stateful_step_count=STEPS))
    # What takes an id has been given ones of what is there.
    led = {label for label, status in found if status < 300 and "{" in label}
    assert len(led) >= LED, sorted(led)
