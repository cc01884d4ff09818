"""The judge: every rule over one record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from emulator.domain.access import SCOPES
from emulator.domain.findings import reads, streams, writes
from emulator.domain.findings.view import POLLS, Finding, View

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from emulator.domain.access import Token
    from emulator.domain.findings.record import Record

RULES: Final = (
    writes.project_limit,
    writes.too_soon,
    writes.twice,
    writes.key_reused,
    writes.answers,
    writes.tools_reached,
    reads.previous_answer,
    reads.polled_turn,
    reads.not_delivered,
    reads.empty_artifacts,
    streams.missed,
    streams.unread_outages,
)


def findings(record: Record, notices: Sequence[tuple[str, str, int]], minted: Iterable[Token]) -> list[Finding]:
    """What clients did wrong. `notices` are webhooks that arrived (session, type, time); `minted` the tokens made
    for a purpose. Changes nothing."""
    view = View(record, notices)
    return [*(found for rule in RULES for found in rule(view)), *_unused_scopes(view, minted)]


def _unused_scopes(view: View, minted: Iterable[Token]) -> Iterator[Finding]:
    """Scopes of a token that was used, and not for them."""
    for token in minted:
        unused = token.scopes - token.used
        asked = [exchange.request_id for exchange in view.exchanges if exchange.token_id == token.id and exchange.ok]
        if unused and len(asked) >= POLLS:
            yield Finding(
                "scopes-unused", asked[-1:], token_id=token.id, scopes=[scope for scope in SCOPES if scope in unused]
            )
