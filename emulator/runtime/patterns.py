"""Patterns: a short text that a regular expression finds.

Law: best effort, and always brief. A pattern this small reader does not understand gives `None`; one
that could keep a search busy for ever is never searched with.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

LONGEST: Final = 2000
_TRIES: Final = 10_000_000
_SAMPLES: Final = {"d": "0", "w": "a", "s": " ", "D": "a", "W": "-", "S": "a"}
_CONTROLS: Final = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v", "0": "\0"}
_UNITS: Final = tuple("a0A_- .é") + tuple(chr(code) for code in range(33, 127))


class _Unknown(Exception):
    pass


def unusable(pattern: str) -> str | None:
    """What is wrong with a regular expression that somebody wrote to be searched with, or `None`."""
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError, Warning) as error:
        return f"is not a regular expression: {error}"
    # The search holds the interpreter: nothing could stop it, or even say what it is at.
    return "repeats a repetition, which may take for ever to match" if nested(pattern) else None


def matching(pattern: str, shortest: int = 0, longest: int | None = None) -> str | None:
    """A text in which `pattern` is found, within the lengths, or `None` when none was thought of."""
    for more in (0, 1, 2, max(0, shortest), max(0, shortest - 1)):
        reader = _Reader(pattern, min(more, LONGEST))
        try:
            text = reader.all()
        except (_Unknown, RecursionError, ValueError):
            return None
        if len(text) < shortest and not pattern.endswith("$"):
            text = text.ljust(min(shortest, LONGEST), text[-1:] or "a")
        fits = shortest <= len(text) and (longest is None or len(text) <= longest)
        if fits and found(pattern, text) is not False:
            return text
    return None


def found(pattern: str, text: str) -> bool | None:
    """Whether `pattern` is found in `text`; `None` when it cannot or had better not be tried."""
    reader = _Reader(pattern, 0)
    try:
        reader.all()
        careful = reader.nested or len(text[:LONGEST]) ** reader.loops > _TRIES
    except (_Unknown, RecursionError, ValueError):
        # Not understood, so not known to be harmless: tried on short texts only.
        careful = len(text) > 16 or pattern.count("+") + pattern.count("*") > 1
    if careful:
        return None
    try:
        return re.search(pattern, text[:LONGEST]) is not None
    except (re.error, RecursionError, OverflowError, Warning):
        return None


def nested(pattern: str) -> bool:
    """Whether a repetition in `pattern` is itself repeated: searching with it may take for ever."""
    reader = _Reader(pattern, 0)
    try:
        reader.all()
    except (_Unknown, RecursionError, ValueError):
        return False
    return reader.nested


@dataclass(slots=True)
class _Reader:
    """Reads a pattern once, from left to right, choosing the least it allows.

    `nested` turns true when a repeated group holds a repetition or a choice, whose search can take
    time exponential in the text; with `loops` repetitions beside each other it is a power of it.
    """

    pattern: str
    more: int
    at: int = 0
    nested: bool = False
    loops: int = 0
    _loose: bool = False

    def all(self) -> str:
        text = self._choice()
        if self.at < len(self.pattern):
            raise _Unknown
        return text

    def _peek(self) -> str:
        return self.pattern[self.at : self.at + 1]

    def _take(self) -> str:
        character = self._peek()
        if not character:
            raise _Unknown
        self.at += 1
        return character

    def _choice(self) -> str:
        first = self._sequence()
        while self._peek() == "|":
            self.at += 1
            self._loose = True
            self._sequence()
        return first

    def _sequence(self) -> str:
        text = ""
        while self._peek() not in ("", "|", ")"):
            outer, self._loose = self._loose, False
            unit = self._unit()
            least, most = self._repetition()
            if most is None or most > 1:
                self.nested |= self._loose
                self.loops += 1
                self._loose = True
            self._loose |= outer
            wanted = max(least, self.more) if most is None else min(max(least, self.more), most)
            text += unit * wanted
            if len(text) > LONGEST:
                raise _Unknown
        return text

    def _unit(self) -> str:
        character = self._take()
        match character:
            case "^" | "$":
                return ""
            case ".":
                return "a"
            case "(":
                return self._group()
            case "[":
                return self._class()
            case "\\":
                return self._escape()
            case "*" | "+" | "?" | "{" | "}":
                raise _Unknown
        return character

    def _group(self) -> str:
        if self._peek() == "?":
            match = re.compile(r"\?(?::|P?<[A-Za-z_]\w*>)").match(self.pattern, self.at)
            if match is None:
                raise _Unknown
            self.at = match.end()
        text = self._choice()
        if self._take() != ")":
            raise _Unknown
        return text

    def _escape(self) -> str:
        character = self._take()
        if character in "bBAZ":
            return ""
        if character == "x":
            self.at += 2
            return chr(int(self.pattern[self.at - 2 : self.at], 16))
        if character == "u":
            self.at += 4
            return chr(int(self.pattern[self.at - 4 : self.at], 16))
        if character in _SAMPLES or character in _CONTROLS:
            return _SAMPLES.get(character) or _CONTROLS[character]
        if character.isalnum():
            raise _Unknown
        return character

    def _class(self) -> str:
        start = self.at - 1
        self.at += self._peek() == "^"
        self.at += self._peek() == "]"
        while (character := self._take()) != "]":
            self.at += character == "\\"
        try:
            accepts: Callable[[str], object] = re.compile(self.pattern[start : self.at]).match
        except (re.error, Warning):
            raise _Unknown from None
        first = self.pattern[start + 1]
        for unit in (first, *_UNITS):
            if accepts(unit):
                return unit
        raise _Unknown

    def _repetition(self) -> tuple[int, int | None]:
        match = re.compile(r"(?:([*+?])|\{(\d*)(,?)(\d*)\})[?+]?").match(self.pattern, self.at)
        if match is None:
            return 1, 1
        self.at = match.end()
        sign, least, comma, most = match.groups()
        if sign is not None:
            return (1 if sign == "+" else 0), (1 if sign == "?" else None)
        if not (least or most):
            raise _Unknown
        low = min(int(least or 0), LONGEST + 1)
        return low, (min(int(most), LONGEST + 1) if most else None) if comma else low
