"""Words of the API itself: what nobody's secret is, though it may stand where secrets do.

A header of an MCP server may say `application/json`, or `completed`. Looking for these elsewhere would hide
paths, event types and statuses, and leave a recording that cannot be played.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from emulator.api.openapi import document

if TYPE_CHECKING:
    from collections.abc import Iterator

_MADE_OF: Final = re.compile(r"[a-z]+(?:[._/\-][a-z]+){0,2}")
_WORD: Final = re.compile(r"[a-z]+")
# Of event types, which the document of the API does not list.
_EVENTS: Final = frozenset(("changed", "compaction", "dequeued", "resumed", "restored", "steered", "thinking", "todos"))


def is_ordinary(text: str) -> bool:
    """Whether a text is nothing but words of the API."""
    return _MADE_OF.fullmatch(text) is not None and _words().issuperset(_WORD.findall(text))


@cache
def _words() -> frozenset[str]:
    return _EVENTS.union(*(_WORD.findall(text.lower()) for text in _names(document())))


def _names(value: Any) -> Iterator[str]:
    """The names in a document, and the values its enums and constants allow; no prose."""
    if isinstance(value, dict):
        for name, entry in value.items():
            yield name
            if name in ("enum", "const", "type"):
                yield from (str(allowed) for allowed in (entry if isinstance(entry, list) else [entry]))
            else:
                yield from _names(entry)
    elif isinstance(value, list):
        for entry in value:
            yield from _names(entry)
