"""Idempotency keys (contract §13)."""

from __future__ import annotations

from typing import Final

from tests.contract.manifest import Row

_SOURCE: Final = "contract §13"

ROWS: Final = (
    Row("idempotency.replay", _SOURCE, "A write sent again with its key is answered alike and not carried out again."),
    Row("idempotency.every-write", _SOURCE, "Every verb but GET takes a key."),
    Row(
        "idempotency.reads",
        _SOURCE,
        "On a GET a key means nothing, whatever it looks like.",
        "Some clients send it with every call.",
    ),
    Row("idempotency.headers", _SOURCE, "A replay is a response of its own: its request id and budget are its own."),
    Row("idempotency.scope", _SOURCE, "A key is one token's, for one verb and one path."),
    Row("idempotency.body", _SOURCE, "The body is not part of the key: another body replays the first answer."),
    Row(
        "idempotency.before-the-body",
        _SOURCE,
        "A replay is answered before query and body are looked at.",
        "It follows from the order of the checks in contract §2.",
    ),
    Row("idempotency.length", _SOURCE, "A key has up to 255 characters; a longer one is refused with both numbers."),
    Row(
        "idempotency.empty",
        _SOURCE,
        "An empty key is refused.",
        "Taking it as no key would act twice for a client that believes itself safe.",
    ),
    Row("idempotency.refusals", _SOURCE, "A refusal is not kept: the key works once the reason is gone."),
    Row("idempotency.failure", _SOURCE, "A call that failed releases its key."),
    Row(
        "idempotency.abandoned",
        _SOURCE,
        "A call whose client left before it was complete releases its key.",
        "The contract speaks of a failed call; this one failed on the way in.",
    ),
    Row("idempotency.race", _SOURCE, "Of calls that race with one key, one is carried out."),
    Row(
        "idempotency.in-flight",
        _SOURCE,
        "While the first call is in flight the second is a conflict that names the key.",
    ),
    Row("idempotency.in-flight-ends", _SOURCE, "Once the first call has ended, the key replays its answer."),
    Row("idempotency.day", _SOURCE, "An answer is kept for 24 hours of the emulator's clock."),
    Row("idempotency.deleted", _SOURCE, "A delete is replayed although what it deleted is gone."),
)
