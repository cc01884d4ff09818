"""Secrets: what goes in and comes out nowhere (contract §2, §3, §5)."""

from __future__ import annotations

from typing import Final

from tests.contract.manifest import Row

_S: Final = "contract §5"

ROWS: Final = (
    Row(
        "secrets.journal-keeps-little",
        "contract §5",
        "Of file contents, a command's arguments and long texts the journal keeps the size, of an address the place.",
        "Any of them may hold a secret, and a journal that is bounded by count must be bounded in bytes too.",
    ),
    Row(
        "secrets.tool-credentials", _S, "`authorization` and header values of a server appear nowhere once they are in."
    ),
    Row("secrets.agent", _S, "The agent's script sees a session's tools as a client reads them."),
    Row(
        "secrets.refused-values",
        _S,
        "A secret of the wrong kind is not repeated by its refusal or kept by the journal.",
    ),
    Row("secrets.misspelt-fields", _S, "A secret behind a field the API does not know is not kept either."),
    Row(
        "secrets.misplaced",
        _S,
        "A whole entry in the wrong place, with its secrets, is not kept either.",
        "No source has a journal; ours keeps only what the API knows at that place.",
    ),
    Row("secrets.unreadable-bodies", _S, "Nothing of a body that cannot be read is repeated or kept."),
    Row("secrets.unwanted-bodies", _S, "Nothing of a body sent where none belongs is repeated or kept."),
    Row("secrets.query", _S, "The value of an unknown query parameter is not repeated or kept."),
    Row(
        "secrets.token-shaped",
        "contract §3, §5",
        "An access token in a path, a query, a field's name or an id is withheld wherever that is repeated or kept.",
        "Ids and names are repeated in refusals; text shaped like a token is replaced there.",
    ),
    Row("secrets.access-tokens", "contract §3, §5", "The token of a request is in no answer to it, known or not."),
    Row("secrets.other-headers", _S, "No other request header, an idempotency key among them, is kept or repeated."),
    Row(
        "secrets.address-of-a-server",
        _S,
        "A server's `url` is returned as sent; the journal withholds the user and password in it.",
        "Only `authorization` and headers are withheld on read; a journal is read by more people.",
    ),
    Row(
        "secrets.internal-errors",
        "contract §2, §5",
        "A fault of ours is logged by its place and type, never by its values.",
    ),
    Row("secrets.scripts", _S, "A token in a script's own error is withheld in the transcript and the report."),
    Row("secrets.minted-tokens", "contract §3, §5", "A token's text is told where it is minted and nowhere else."),
    Row("secrets.idempotent-replays", "contract §5, §13", "A replayed answer withholds what the first one did."),
)
