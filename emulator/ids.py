"""Ids: where every identifier and every drawn number comes from.

Law: nothing else draws randomness. An id is derived from (seed, kind, parent, ordinal), never from
a shared stream, so that a client that polls more or less often shifts none of them (design, "Time,
rest and ids").
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

# Odd, so that multiplying by it permutes the 32-bit numbers: unique until they have all been used.
_STRIDE: Final = 0x9E3779B1
_MASK: Final = 0xFFFFFFFF


class Ids:
    """Derives ids from one seed. Two with the same seed give the same ids."""

    __slots__ = ("_requests", "_start", "seed")

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._start = int(self._digest("request", "", 0)[:8], 16)
        self._requests = 0

    def session(self, organization: str, ordinal: int) -> str:
        """The id of an organization's n-th session, in the form of a version 4 UUID."""
        digits = self._digest("session", organization, ordinal)
        variant = "89ab"[int(digits[16], 16) % 4]
        return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:32]}"

    def derive(self, kind: str, parent: str, ordinal: int, *, length: int = 16) -> str:
        """`<kind>_` and `length` hex characters: the n-th of its kind under `parent` (contract §1)."""
        return f"{kind}_{self._digest(kind, parent, ordinal)[:length]}"

    def fraction(self, kind: str, parent: str, ordinal: int) -> float:
        """A number in [0, 1) for this place: the same seed draws the same number."""
        return int(self._digest(f"draw {kind}", parent, ordinal)[:13], 16) / 16**13

    def request(self) -> str:
        """The next request id: 8 lowercase hex characters, unique, a permuted counter (contract §1)."""
        self._requests += 1
        return f"{(self._start + self._requests * _STRIDE) & _MASK:08x}"

    def _digest(self, kind: str, parent: str, ordinal: int) -> str:
        return blake2b(f"{self.seed}\0{kind}\0{parent}\0{ordinal}".encode(), digest_size=16).hexdigest()
