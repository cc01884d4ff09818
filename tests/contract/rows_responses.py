"""What every response has (contract §1)."""

from __future__ import annotations

from typing import Final

from tests.contract.manifest import Row

_SOURCE: Final = "contract §1"

ROWS: Final = (
    Row("responses.json", _SOURCE, "Answers and refusals are JSON in UTF-8, with application/json as their type."),
    Row("responses.unknown-path", _SOURCE, "A path that does not exist under /v1 answers a refusal in JSON."),
    Row(
        "responses.request-id",
        _SOURCE,
        "Every response, stream and refusal carries x-request-id, 8 lowercase hex, equal to error.request_id.",
    ),
    Row("responses.request-id-unique", _SOURCE, "No two requests have the same id."),
    Row(
        "responses.link", _SOURCE, "Every response under /v1 links to the OpenAPI document as its service description."
    ),
    Row(
        "responses.foreign-host",
        _SOURCE,
        "A request for a host name that is not served is refused, 403, in the same envelope and with the same headers.",
        "The emulator serves only the hosts it was told of, so that no page reaches it through a name of its own.",
    ),
    Row(
        "responses.foreign-origin",
        _SOURCE,
        "So is a request of a page whose origin is not served; a page of this machine is answered.",
        "The same reason: a page elsewhere must not drive an emulator that runs here.",
    ),
    Row(
        "responses.budget",
        _SOURCE,
        "An authenticated response, stream or refusal carries the budget of the bucket it used in four headers.",
    ),
    Row("responses.budget-resource", _SOURCE, "Creating a session uses the bucket sessions; every other call general."),
    Row("responses.budget-rounding", _SOURCE, "What remains is rounded down, the seconds until full are rounded up."),
    Row(
        "responses.no-budget",
        _SOURCE,
        "A response to nobody in particular carries no budget.",
        "The document, a path or verb that is not there and a 401 know no token, or did not look for one.",
    ),
    Row("responses.times", _SOURCE, "Times are integer Unix milliseconds."),
    Row("responses.no-cors", _SOURCE, "No CORS header is sent, whoever asks."),
    Row("responses.session-id", _SOURCE, "A session id is a UUID."),
    Row(
        "responses.ids",
        _SOURCE,
        "Turn and credential ids have their prefix and 16 hex after it, call ids 8.",
        "The prefixes are the API's; how long the rest is we chose.",
    ),
    Row("responses.item-id", _SOURCE, "Item ids are unique in their session and serve as cursors."),
    Row(
        "responses.path-decoding",
        _SOURCE,
        "A path is split first and its segments are percent-decoded after, so that a%2Fb is one segment.",
    ),
    Row(
        "responses.bodyless",
        _SOURCE,
        "A write without a body is taken with and without a content type, with an empty object too.",
    ),
    Row(
        "responses.bodyless-body",
        _SOURCE,
        "A body on a write that takes none is refused.",
        "Nothing that is sent is silently ignored; only nothing, null and an empty object say nothing.",
    ),
    Row("responses.plain-integers", _SOURCE, "Retry-After and the budget headers are plain integers."),
)
