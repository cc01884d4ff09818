"""Lists and their pages (contract §13)."""

from __future__ import annotations

from typing import Final

from tests.contract.manifest import Row

_SOURCE: Final = "contract §13"

ROWS: Final = (
    Row("lists.shape", _SOURCE, "A list is object, data, has_more and last_id, and nothing else."),
    Row(
        "lists.empty",
        _SOURCE,
        "An empty list has no last_id.",
        "The pages show no empty list; null is the cursor that is none.",
    ),
    Row("lists.default", _SOURCE, "A page has 20 entries unless asked otherwise."),
    Row("lists.limit", _SOURCE, "A limit from 1 to 100 is taken; what is out of range is refused, without data."),
    Row("lists.order", _SOURCE, "A list is newest first, or oldest first with order=asc."),
    Row("lists.pages", _SOURCE, "Following last_id gives every entry once, in both orders."),
    Row("lists.last-page", _SOURCE, "has_more is false on the last page, also when that is full."),
    Row("lists.unplaceable", _SOURCE, "A cursor that cannot be placed gives an empty page with no more."),
    Row(
        "lists.empty-cursor",
        _SOURCE,
        "An empty cursor is refused.",
        "It is a client that lost its place, not one that starts.",
    ),
    Row("lists.cursor-stays", _SOURCE, "What is added after a page was read does not shift the pages that follow."),
)
