"""Environment profiles (contract §12)."""

from __future__ import annotations

from typing import Final

from tests.contract.manifest import Row

_S: Final = "contract §12"

ROWS: Final = (
    Row("profiles.none", _S, "A fresh organization has no profiles."),
    Row("profiles.seeded", _S, "A setting gives every organization profiles, each with ids of its own."),
    Row("profiles.list", _S, "Profiles are listed newest first, in pages, without an order parameter."),
    Row("profiles.bind", "contract §6", "A session takes the ids of profiles, none, or nothing at all; it shows none."),
    Row(
        "profiles.unknown",
        "contract §6",
        "An unknown profile and another organization's are 404 in the same words, and no session is made.",
    ),
)
