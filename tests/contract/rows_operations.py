"""What is served where (contract §4)."""

from __future__ import annotations

from typing import Final

from tests.contract.manifest import Row

_SOURCE: Final = "contract §4"

ROWS: Final = (
    Row(
        "operations.health-nothing",
        _SOURCE,
        "A token without any scope is not usable either.",
        "Every other route refuses it as it refuses one with only cli.",
    ),
    Row("operations.table", _SOURCE, "Every operation that is served stands in the contract's table, and no other."),
    Row("operations.status", _SOURCE, "Each operation answers with the success status of its row."),
    Row("operations.scope", _SOURCE, "Each operation takes the scope of its row, alone, and is refused without it."),
    Row("operations.health", _SOURCE, "Health tells any valid token its scopes and that it is usable."),
    Row(
        "operations.health-cli",
        _SOURCE,
        "Health tells a token with only cli that it is not usable, and which scopes to mint.",
    ),
    Row("operations.openapi-public", _SOURCE, "The OpenAPI document needs no token."),
    Row(
        "operations.openapi-any-token",
        _SOURCE,
        "A public operation does not look at the token it is sent.",
        "Only the gates of an operation that needs a token read the header, so a bad one does no harm.",
    ),
    Row(
        "operations.openapi-table",
        _SOURCE,
        "The OpenAPI 3.1 document lists exactly the operations that are served, with their scopes and parameters.",
    ),
    Row(
        "operations.openapi-ids",
        _SOURCE,
        "Every operation id is the verb and the path after /v1, other characters run together to one underscore.",
        "The rule of the published document, on which generated clients name their methods.",
    ),
    Row(
        "operations.openapi-schemas",
        _SOURCE,
        "What is answered, success and refusal, is as the document's schemas say.",
    ),
    Row("operations.session-deleted", _SOURCE, "Deleting a session answers session.deleted with its id."),
    Row("operations.stream", _SOURCE, "Both event streams open with 200 and the type of an event stream."),
    Row(
        "operations.organization-stream",
        _SOURCE,
        "The organization's stream shows every session; the session's stream and ?root= show their own.",
    ),
)
