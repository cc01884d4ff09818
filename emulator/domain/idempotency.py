"""Idempotency: one answer per key, kept for a day (contract §13).

Law: a key is in one of three states: unknown, in flight, or answered. Only a 2xx answer is kept;
anything else frees the key.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from emulator.domain.limits import KEY_SECONDS
from emulator.refusals import Refusal

Scope: TypeAlias = tuple[str, str, str, str]
"""Token id, verb, path, key."""


@dataclass(slots=True)
class Answer:
    """A stored answer: its status and its body, byte for byte."""

    status: int
    body: bytes
    expires_at: int


class Keys:
    """The idempotency keys of one world."""

    def __init__(self) -> None:
        self._answers: dict[Scope, Answer | None] = {}
        self._sweep_at = 1000

    def begin(self, scope: Scope, now: int) -> Answer | None:
        """Claim a key. Gives the stored answer if there is one; raises 409 while it is in flight."""
        if scope in self._answers:
            answer = self._answers[scope]
            if answer is None:
                raise Refusal(
                    "conflict",
                    f'A request with Idempotency-Key "{scope[3]}" is already in flight. Retry in a moment; '
                    "if it succeeded, the retry replays its answer rather than acting again.",
                    retry_after=1,
                )
            if answer.expires_at > now:
                return answer
        if len(self._answers) >= self._sweep_at:
            self._sweep(now)
        self._answers[scope] = None
        return None

    def finish(self, scope: Scope, status: int, body: bytes, now: int) -> None:
        """Keep a 2xx answer for a day; free the key after any other."""
        if 200 <= status < 300:
            self._answers[scope] = Answer(status, bytes(body), now + KEY_SECONDS * 1000)
        else:
            self._answers.pop(scope, None)

    def _sweep(self, now: int) -> None:
        """Drop answers past their day, so that what is kept stays bounded by what a day brings."""
        for scope in [s for s, answer in self._answers.items() if answer is not None and answer.expires_at <= now]:
            del self._answers[scope]
        self._sweep_at = max(1000, 2 * len(self._answers))
