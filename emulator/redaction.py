"""Redaction: secrets that cannot be printed, and text that may contain one.

Law: a secret that reaches this process is wrapped in `Secret` at the first door and only unwrapped
(`reveal`) where it is used on purpose. Everything that prints, formats, pickles or serialises a
`Secret` either sees a placeholder or raises.
"""

from __future__ import annotations

import re
from typing import Any, Final, NoReturn

WITHHELD: Final = "[withheld]"

# An access token wherever it turns up: a path, a query, a log line.
_TOKEN = re.compile(r"gbr_pat_[A-Za-z0-9_\-.~+/=]+")
# The key of a model provider, told from words by its length.
_PROVIDER_KEY = re.compile(r"(?<![A-Za-z0-9])(?:sk|xai)-[A-Za-z0-9_\-]{16,}")
_SECRET_NAME = re.compile(r"authorization|api[-_]?key|token(?!_id)|secret|passw|credential", re.IGNORECASE)
_USERINFO = re.compile(r"(?<=://)[^/?#\s]*@")


class Secret:
    """A string that is kept and compared but never shown.

    `str`, `repr` and `format` give `[withheld]`; pickling, JSON encoding and iteration raise
    `TypeError`. `reveal()` returns the text.
    """

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """The secret itself. Call it only where the secret is used."""
        return self._text

    def __repr__(self) -> str:
        return WITHHELD

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return WITHHELD

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._text == self._text

    def __hash__(self) -> int:
        return hash((Secret, self._text))

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        """In the document of what holds one it is a text."""
        return handler(str)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Secret is not serialised")


def encodable(text: str) -> str:
    """`text` with what no encoding has (half a surrogate pair) replaced."""
    return text.encode("utf-8", "replace").decode()


def scrub(text: str) -> str:
    """`text` with anything shaped like a token or a provider's key, and any user info of a URL, withheld."""
    if "gbr_pat_" in text:
        text = _TOKEN.sub(WITHHELD, text)
    if "sk-" in text or "xai-" in text:
        text = _PROVIDER_KEY.sub(WITHHELD, text)
    if "://" in text:
        text = _USERINFO.sub(f"{WITHHELD}@", text)
    return text


def address(text: str) -> str:
    """An address without its query and its user info: the place alone."""
    text = scrub(text.partition("?")[0].partition("#")[0])
    before, at, after = text.rpartition("@")
    return f"{WITHHELD}@{after}" if at and "/" not in before else text


def names_a_secret(key: str) -> bool:
    """Whether a key that anybody may choose is one people keep a secret under."""
    return _SECRET_NAME.search(key) is not None


def scrub_value(value: Any) -> Any:
    """`scrub` applied to every string of a JSON value; what a key says is a secret is withheld."""
    kind = type(value)
    if kind is str:
        return scrub(value)
    if kind is dict:
        return {
            scrub(key): WITHHELD if type(entry) is str and names_a_secret(key) else scrub_value(entry)
            for key, entry in value.items()
        }
    if kind is list:
        return [scrub_value(entry) for entry in value]
    return value


def size_of(value: Any) -> str:
    """How much was withheld, for a journal that keeps names and sizes: `text of 12 characters`."""
    match value:
        case str():
            return f"text of {len(value)} characters"
        case list():
            return f"list of {len(value)}"
        case dict():
            return f"object of {len(value)}"
        case bool():
            return "boolean"
        case None:
            return "null"
        case _:
            return "number"
