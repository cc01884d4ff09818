"""Refusals: their shape, their codes, their order, and what they say (contract §2)."""

from __future__ import annotations

from typing import Final

from tests.contract.manifest import Row

_SOURCE: Final = "contract §2"

ROWS: Final = (
    Row("refusals.envelope", _SOURCE, "A refusal's body is error with code, message and request_id, and nothing else."),
    Row("refusals.codes", _SOURCE, "Each code has its status, and Retry-After exactly where waiting can help."),
    Row(
        "refusals.conflict-retry",
        _SOURCE,
        "A conflict says when to retry only if waiting can help.",
        "A key in flight ends by itself, so it does; steering without a turn does not.",
    ),
    Row("refusals.challenge", _SOURCE, "A 401 carries a Bearer challenge with the realm gobare and an error."),
    Row("refusals.allow", _SOURCE, "A verb the path does not take is a 405, and Allow lists those it takes."),
    Row("refusals.post-tools", _SOURCE, "POST on a session's tools is 400 and says that PUT replaces the set."),
    Row(
        "refusals.internal",
        _SOURCE,
        "A fault of the server's own is a fixed 500 that leaks nothing, also not in the log.",
    ),
    Row(
        "refusals.foreign-is-unknown",
        _SOURCE,
        "An id of another organization is refused in the words of an unknown one.",
    ),
    Row("refusals.unknown-field", _SOURCE, "An unknown body field is refused at every level, by its full path."),
    Row("refusals.accepted", _SOURCE, "The refusal of an unknown field lists what is accepted there."),
    Row(
        "refusals.unknown-parameter", _SOURCE, "An unknown query parameter is refused by its name, on every operation."
    ),
    Row(
        "refusals.repeated-parameter",
        _SOURCE,
        "A query parameter sent twice is refused.",
        "Taking the first or the last would ignore the other.",
    ),
    Row(
        "refusals.near-miss", _SOURCE, "A near miss in a field, a value or a parameter is told what was probably meant."
    ),
    Row("refusals.misplaced-field", _SOURCE, "A field that belongs one level down is told where it belongs."),
    Row("refusals.types", _SOURCE, "Nothing is coerced: a value of another type is refused by its path and kind."),
    Row("refusals.null", _SOURCE, "null is refused where it does not mean clearing."),
    Row("refusals.ceilings", _SOURCE, "Past a ceiling the refusal names the field, the ceiling and what was sent."),
    Row("refusals.at-the-ceiling", _SOURCE, "What is exactly at a ceiling is taken."),
    Row(
        "refusals.query-values",
        _SOURCE,
        "A query value of the wrong form is refused by the parameter's name and what it takes.",
    ),
    Row(
        "refusals.long-values",
        _SOURCE,
        "A refusal that repeats what was sent has at most 4,096 characters, and still ends with what to do.",
        "No page says; a message is for people, and journals keep it.",
    ),
    Row("refusals.not-json", _SOURCE, "A body that is not a JSON object in UTF-8 is a 400."),
    Row("refusals.not-a-number", _SOURCE, "NaN, Infinity and numbers too large to be represented are a 400."),
    Row("refusals.surrogates", _SOURCE, "Lone surrogates are a 400, in values and in keys."),
    Row("refusals.nesting", _SOURCE, "Absurd nesting is a 400, never a 500."),
    Row(
        "refusals.huge-integers",
        _SOURCE,
        "An integer of thousands of digits is a 400 where a number is expected or carried, never a 500.",
        "JSON sets no limit; we refuse what cannot be read back as it was sent.",
    ),
    Row("refusals.any-body", _SOURCE, "No body whatever makes the server fail."),
    Row("refusals.body-ceiling", _SOURCE, "A body past 1 MiB is a 400 that names the ceiling."),
    Row("refusals.create-ceiling", _SOURCE, "Creating a session takes a body of 16 MiB."),
    Row("refusals.chunked-ceiling", _SOURCE, "The ceiling holds for a body that announces no length."),
    Row(
        "refusals.content-type",
        _SOURCE,
        "The content type of a body is not looked at.",
        "The API says nothing of it, and some clients send none.",
    ),
    Row(
        "refusals.order",
        _SOURCE,
        "Of several things wrong the first is refused, in the order path, verb, token, rate, scope, idempotency key, "
        "query, body, shape, existence, state.",
        "The sources give no order; this one reveals nothing to who may not know.",
    ),
    Row(
        "refusals.order-events",
        _SOURCE,
        "Sending input needs either of its scopes before the body is read, and the exact one before its shape is.",
        "Which scope an event needs is only known from its type.",
    ),
)
