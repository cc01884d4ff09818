"""An index: which entries of a list have a label, kept in the list's order.

Law: it holds places, not entries; whoever owns the list tells it of every change. Looking a label up
costs the same however long the list is.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Label: TypeAlias = tuple[str, ...]


class Index:
    """Labels of numbered entries. Numbers only grow, so that an order by number is one by age."""

    def __init__(self) -> None:
        self._numbers: dict[Label, list[int]] = {}
        # Tuples: a session has few labels, and a set of few is large.
        self._labels: dict[int, tuple[Label, ...]] = {}

    def put(self, number: int, labels: Iterable[Label]) -> None:
        """Say which labels an entry has now; those it had before and has no more are forgotten."""
        now = tuple(dict.fromkeys(labels))
        before = self._labels.get(number, ())
        for label in before:
            if label not in now:
                self._drop(label, number)
        for label in now:
            if label in before:
                continue
            numbers = self._numbers.setdefault(label, [])
            if numbers and numbers[-1] > number:
                insort(numbers, number)
            else:
                numbers.append(number)
        self._labels[number] = now

    def remove(self, number: int) -> None:
        """Forget an entry."""
        for label in self._labels.pop(number, ()):
            self._drop(label, number)

    def numbers(self, label: Label) -> Sequence[int]:
        """The entries with a label, oldest first. A live view: do not change it."""
        return self._numbers.get(label, ())

    def has(self, number: int, label: Label) -> bool:
        """Whether an entry has a label."""
        return label in self._labels.get(number, ())

    def _drop(self, label: Label, number: int) -> None:
        numbers = self._numbers[label]
        del numbers[bisect_left(numbers, number)]
        if not numbers:
            del self._numbers[label]
