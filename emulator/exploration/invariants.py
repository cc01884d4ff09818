"""Invariants: what a user says must hold at the end of every run of a test."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from emulator.embedded import Emulator


@dataclass(frozen=True, slots=True)
class Run:
    """A run of a test, as an invariant is told of it.

    `variant` is what it was explored with, the setting that brings it about again; empty where it was an ordinary
    run. `error` is what the test raised, if it did.
    """

    variant: str
    error: BaseException | None = None

    @property
    def mode(self) -> str:
        """The mode of the variant; empty where it was an ordinary run."""
        return self.variant.partition(":")[0]


def hold(emulator: Emulator, run: Run) -> None:
    """Check an emulator's invariants. Each is given the emulator and the run, as far as it takes arguments."""
    __tracebackhide__ = True
    for invariant in emulator.invariants:
        invariant(*(emulator, run)[: _takes(invariant)])


def _takes(invariant: Callable[..., object]) -> int:
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = inspect.signature(invariant).parameters.values()
    if any(parameter.kind is inspect.Parameter.VAR_POSITIONAL for parameter in parameters):
        return 2
    # What has a default is the user's own: `def holds(seen=seen)`.
    return sum(parameter.kind in kinds and parameter.default is inspect.Parameter.empty for parameter in parameters)
