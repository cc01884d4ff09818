"""Limits: rate budgets that refill continuously, and the published ceilings (contract §13)."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor
from typing import Final

GENERAL_PER_MINUTE: Final = 120
SESSIONS_PER_MINUTE: Final = 10

TOOLS: Final = 32
NAME: Final = 64
TIMEOUT_SECONDS: Final = 7200
INSTRUCTIONS: Final = 32_000
RULES: Final = 50
RULE_FIELD: Final = 500
METADATA_KEYS: Final = 16
METADATA_KEY: Final = 64
METADATA_VALUE: Final = 512
PAGE: Final = 100
DEFAULT_PAGE: Final = 20
KEY: Final = 255
TREE_DEPTH: Final = 16
AGENTS: Final = 25
CONNECTIONS: Final = 25
FILE_BYTES: Final = 5 * 1024 * 1024
FILES_BYTES: Final = 10 * 1024 * 1024
FILES: Final = 50
PATH_BYTES: Final = 4096
NAME_BYTES: Final = 255
PATH_NAMES: Final = 128
TEXT_BYTES: Final = 256 * 1024
BINARY_BYTES: Final = 5 * 1024 * 1024
SNAPSHOT_BYTES: Final = 300_000_000
ARTIFACT_BYTES: Final = 200 * 1024 * 1024
ARTIFACTS_BYTES: Final = 500 * 1024 * 1024
IDLE_SECONDS: Final = 300
WORKSPACE_SECONDS: Final = 7200
KEY_SECONDS: Final = 86_400


@dataclass(slots=True)
class Budget:
    """What one token may still do in one bucket. Times are Unix milliseconds."""

    resource: str
    per_minute: int
    left: float
    at: int
    fixed: tuple[tuple[bytes, bytes], ...] = ()

    @classmethod
    def full(cls, resource: str, per_minute: int, now: int) -> Budget:
        fixed = ((b"x-ratelimit-limit", b"%d" % per_minute), (b"x-ratelimit-resource", resource.encode()))
        return cls(resource, per_minute, float(per_minute), now, fixed)

    def take(self, now: int) -> int | None:
        """Spend one call. `None`, or the whole seconds to wait where there was none; that costs nothing."""
        self.refill(now)
        if self.left < 1:
            return max(1, ceil((1 - self.left) * 60 / self.per_minute))
        self.left -= 1
        return None

    def refill(self, now: int) -> None:
        """Count in what time has given back."""
        self.left = min(self.per_minute, self.left + max(0, now - self.at) * self.per_minute / 60_000)
        self.at = now

    def headers(self) -> tuple[tuple[bytes, bytes], ...]:
        """The four budget headers, as of the last `take` or `refill` (contract §1)."""
        reset = ceil((self.per_minute - self.left) * 60 / self.per_minute)
        return (
            *self.fixed,
            (b"x-ratelimit-remaining", b"%d" % floor(self.left)),
            (b"x-ratelimit-reset", b"%d" % reset),
        )
