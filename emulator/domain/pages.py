"""Pages: one way to cut a list, for every list (contract §13)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeVar

from emulator.domain.limits import DEFAULT_PAGE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

T = TypeVar("T")


class Identified(Protocol):
    """An entry of a list that says its own id."""

    @property
    def id(self) -> str: ...


Entry = TypeVar("Entry", bound=Identified)


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """A slice of a list, in the order asked for. `last_id` is the cursor of the next page."""

    data: list[T]
    has_more: bool
    last_id: str | None


def cut(
    oldest_first: Sequence[T],
    position: Callable[[str], int | None],
    identify: Callable[[T], str],
    *,
    limit: int = DEFAULT_PAGE,
    order: Literal["asc", "desc"] = "desc",
    after: str | None = None,
) -> Page[T]:
    """A page of `oldest_first`. A cursor that cannot be placed gives an empty page.

    `position` places an id in the list. Reads only as far as the page needs.
    """
    step = 1 if order == "asc" else -1
    index = 0 if order == "asc" else len(oldest_first) - 1
    if after is not None:
        place = position(after)
        if place is None:
            return Page([], has_more=False, last_id=None)
        index = place + step
    places = range(index, len(oldest_first), 1) if step == 1 else range(index, -1, -1)
    data = [oldest_first[place] for place in places[:limit]]
    return Page(data, has_more=len(places) > limit, last_id=identify(data[-1]) if data else None)


def cut_by_id(oldest_first: Sequence[Entry], **asked: Any) -> Page[Entry]:
    """A page of entries that say their own ids; `asked` is as for `cut`. They are searched for a cursor only."""

    def position(entry_id: str) -> int | None:
        return next((n for n, entry in enumerate(oldest_first) if entry.id == entry_id), None)

    return cut(oldest_first, position, lambda entry: entry.id, **asked)
