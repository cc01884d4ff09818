"""Tokens, scopes, organizations (contract §3)."""

from __future__ import annotations

from typing import Final

from tests.contract.manifest import Row

_SOURCE: Final = "contract §3"

ROWS: Final = (
    Row("access.bearer", _SOURCE, "A token is sent as a Bearer token in the Authorization header."),
    Row("access.missing", _SOURCE, "A call without a token is a 401 on every operation that needs one."),
    Row("access.unknown", _SOURCE, "An unknown token is a 401 in the words clients match on."),
    Row("access.revoked", _SOURCE, "A revoked token is a 401 from the next request on."),
    Row("access.expired", _SOURCE, "An expired token is a 401 from the moment it expires on the emulator's clock."),
    Row(
        "access.malformed",
        _SOURCE,
        "A header of another form is a 401 whose challenge says invalid_request.",
        "The sources elide the error of the challenge; these are the words of RFC 6750.",
    ),
    Row("access.scope-message", _SOURCE, "A 403 names the missing scope in quotes, in the words clients match on."),
    Row(
        "access.cli",
        _SOURCE,
        "A token with only cli is refused, 403, by every operation but health.",
        "Two pages say 401 (FIDELITY); the OpenAPI document says 403, as do we.",
    ),
    Row("access.cli-and-more", _SOURCE, "Beside another scope cli takes nothing away."),
    Row("access.tool-result", _SOURCE, "Answering a call takes tools:respond; sessions:write does not."),
    Row("access.respond-only", _SOURCE, "A token with tools:respond answers calls and sends nothing else."),
    Row("access.write-events", _SOURCE, "Every event but a tool result takes sessions:write."),
    Row(
        "access.answers",
        _SOURCE,
        "Approvals and questions are answered with sessions:write.",
        "The pages name no scope for them; tools:respond is for tool results and nothing else.",
    ),
    Row("access.created-by", _SOURCE, "A session tells the id of the token that created it, never its text."),
    Row("access.organization-lists", _SOURCE, "Lists show the organization of the token that asks, and nothing else."),
    Row("access.organization-ids", _SOURCE, "A session of another organization cannot be named in a body or a query."),
    Row(
        "access.organization-streams",
        _SOURCE,
        "An organization's stream shows its own sessions, numbered by themselves.",
    ),
    Row("access.organization-shared", _SOURCE, "Two tokens of one organization see the same sessions."),
    Row("access.secret", _SOURCE, "A token's text stands in no answer, header, event or journal entry."),
)
