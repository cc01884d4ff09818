"""Secrets: what must not reach a recording, and the placeholder that stands for it there.

Law: a value is replaced before anything of it is written anywhere. What the API knows for a secret, and
what has the form of one, is replaced without a word; what only looks like one is replaced as well and has
to be declared, by its name.
"""

from __future__ import annotations

import base64
import json
import math
import re
from collections import Counter
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, quote_plus

from emulator.recording.references import REFERENCE, holds_an_id
from emulator.recording.words import is_ordinary
from emulator.redaction import names_a_secret

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

PLACEHOLDER: Final = re.compile(r"\{\{secret:([A-Za-z0-9_]+)\}\}")

# Shorter ones are withheld where they are the whole value, and not looked for elsewhere.
_LEAST: Final = 6
_LONGEST_NAME: Final = 60

# Texts that are a credential by their form. The group, if there is one, is the secret part.
_FORMS: Final = tuple(
    re.compile(pattern)
    for pattern in (
        r"-----BEGIN [A-Z0-9 ]+-----(?:(?!-----BEGIN )[\s\S])+?-----END [A-Z0-9 ]+-----",
        r"eyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]*",
        r"gbr_pat_[A-Za-z0-9_\-.~+/=]+",
        r"whsec_[A-Za-z0-9_\-+/=]{8,}",
        r"(?<![A-Za-z0-9])(?:sk|xai|rk|pk)[-_][A-Za-z0-9_\-]{16,}",
        r"(?<![A-Za-z0-9])(?:ghp|gho|ghu|ghs|ghr|github_pat|glpat|hf|npm|pypi|xox[abeprs]|dop_v1)[-_][A-Za-z0-9_\-]{10,}",
        r"(?<![A-Za-z0-9])(?:AKIA|ASIA)[A-Z0-9]{12,}",
        r"(?<![A-Za-z0-9])AIza[A-Za-z0-9_\-]{20,}",
        r"(?<![A-Za-z0-9])SG\.[A-Za-z0-9_\-]{10,}\.[A-Za-z0-9_\-]{10,}",
        r"(?<=://)([^/?#\s@:]*:[^/?#\s@]+)@",
        r"(?i)\b(?:bearer|basic)\s+((?=[^\s\"',;]*[0-9])[A-Za-z0-9._~+/=\-]{8,})",
    )
)
# What is said to be a secret beside it.
_TOLD: Final = re.compile(
    r"(?i)(?<!\{\{)(?:passw[a-z]*|secret|token|api[_-]?key|credential)[\"']?\s*[=:]\s*[\"']?"
    r"((?=[^\s\"'&,;<>{}]{0,200}[0-9])[^\s\"'&,;<>{}]{8,})"
)
_CANDIDATE: Final = re.compile(r"(?:[A-Za-z0-9_\-+/=.~]|%[0-9A-Fa-f]{2}){20,}")
_BETWEEN: Final = re.compile(r"[-_+/=.~]|%[0-9A-Fa-f]{2}")
_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
# The parts of names people give to things: words in one case, humps, numbers, a word and a number.
_WORDLIKE: Final = re.compile(
    r"(?:[A-Z]?[a-z]{1,20}|[A-Z]{1,20}|(?:[A-Z][a-z]{2,14}){1,5}|[a-z]{3,14}(?:[A-Z][a-z]{2,14}){1,5}"
    r"|[0-9]{1,10}|[A-Za-z]{1,12}[0-9]{1,4}|[0-9]{1,4}[A-Za-z]{1,3})"
)
_CREDENTIAL_LENGTH: Final = 20
_OPAQUE: Final = 16
# A longer run is data in base64, and as such one thing.
_LONGEST_PATH: Final = 256
_ENTROPY: Final = 3.0


def looks_like_a_credential(text: str) -> bool:
    """Whether a run of characters looks drawn rather than written: long, of several kinds, and no words."""
    if len(text) < _CREDENTIAL_LENGTH or _UUID.fullmatch(text):
        return False
    opaque = "".join(part for part in _BETWEEN.split(text) if part and not _WORDLIKE.fullmatch(part))
    kinds = sum(any(test(character) for character in opaque) for test in (str.islower, str.isupper, str.isdigit))
    if len(opaque) < _OPAQUE or kinds < 2:
        return False
    counts = Counter(opaque)
    entropy = -sum(n / len(opaque) * math.log2(n / len(opaque)) for n in counts.values())
    return entropy >= _ENTROPY


class Secrets:
    """The secrets of one recording. `safe` and `declared` are names: kept in clear, and known to be secret. `*` in
    one stands for anything.

    `suspected` has the names that were found and not declared, each with where it was found first.
    """

    def __init__(self, safe: Collection[str] = (), declared: Collection[str] = ()) -> None:
        self.suspected: dict[str, str] = {}
        self._safe = frozenset(safe)
        self._declared = frozenset(declared)
        self._names: dict[str, str] = {}
        self._by_name: dict[str, str] = {}
        self._known: set[str] = set()
        self._counted: Counter[str] = Counter()

    def unused(self) -> list[str]:
        """The declared names that nothing was found under."""
        return sorted(
            pattern
            for pattern in self._safe | self._declared
            if not any(_is_one_of(name, (pattern,)) for name in self._by_name)
        )

    def field(self, value: str, place: Iterable[str]) -> str:
        """The placeholder of the value of a field that holds a secret. Empty text is none."""
        if not value:
            return value
        name = self._name(value, place)
        self._remember(value)
        # The word in front of it is no secret, and what is sent elsewhere comes without.
        for prefix in ("bearer ", "basic ", "token "):
            if value[: len(prefix)].lower() == prefix:
                self._names.setdefault(value[len(prefix) :], name)
                self._remember(value[len(prefix) :])
        return f"{{{{secret:{name}}}}}"

    def text(self, text: str, place: tuple[str, ...], key: str = "") -> str:
        """A text with every secret in it replaced. `key` is what it stands under, as somebody chose it."""
        if found := sorted((form for form in self._known if form in text), key=len, reverse=True):
            # The longest first, which a shorter one may be a part of. What stands for an id is none of them,
            # and what was put for one is not looked at again.
            text = re.sub("|".join([REFERENCE.pattern, *map(re.escape, found)]), self._put, text)
        if "{{secret:" not in text:
            return self._found(text, place, key)
        # What was put there is left alone; what somebody else wrote like it is not.
        parts: list[str] = []
        at = 0
        for match in PLACEHOLDER.finditer(text):
            if match[1] in self._by_name:
                parts += [self._found(text[at : match.start()], place), match[0]]
                at = match.end()
        return "".join([*parts, self._found(text[at:], place)])

    def _put(self, match: re.Match[str]) -> str:
        name = self._names.get(match[0])
        return match[0] if name is None else f"{{{{secret:{name}}}}}"

    def _found(self, text: str, place: tuple[str, ...], key: str = "") -> str:
        """A text without what has the form of a secret, or looks like one."""
        if len(text) < _LEAST:
            return text
        if key and names_a_secret(key) and not holds_an_id(key) and _opaque_value(text):
            known = any(form.fullmatch(text) for form in _FORMS)
            return self._placeholder(text, place, suspected=not known)
        for form in _FORMS:
            text = self._replaced(form, text, place, suspected=False)
        text = self._replaced(_TOLD, text, place, suspected=True)
        return _CANDIDATE.sub(lambda match: self._candidate(match, place), text)

    def data(self, data: bytes, place: tuple[str, ...]) -> bytes:
        """Bytes with every secret in them replaced, whatever else they are."""
        try:
            return self.text(data.decode("utf-8"), place).encode("utf-8")
        except UnicodeDecodeError:
            return self.text(data.decode("latin-1"), place).encode("latin-1", "replace")

    def _candidate(self, match: re.Match[str], place: tuple[str, ...]) -> str:
        found = match[0]
        if match.string.endswith("{{secret:", 0, match.start()) and found in self._by_name:
            return found
        if not looks_like_a_credential(found):
            return found
        # A sentence's full stop, or a path around it, is not part of it.
        parts = re.split(r"([/.=~]+)", found)
        single = [part for part in parts if looks_like_a_credential(part)]
        if single and len(found) <= _LONGEST_PATH and sum(map(len, single)) > len(found) / 2:
            return "".join(self._placeholder(p, place, suspected=True) if p in single else p for p in parts)
        return self._placeholder(found, place, suspected=True)

    def _replaced(self, form: re.Pattern[str], text: str, place: tuple[str, ...], *, suspected: bool) -> str:
        def put(match: re.Match[str]) -> str:
            group = form.groups
            value = match[group]
            whole, start = match[0], match.start(group) - match.start()
            return whole[:start] + self._placeholder(value, place, suspected=suspected) + whole[start + len(value) :]

        return form.sub(put, text)

    def _placeholder(self, value: str, place: tuple[str, ...], *, suspected: bool) -> str:
        name = self._name(value, place)
        if _is_one_of(name, self._safe):
            return value
        if suspected and value not in self._known and not _is_one_of(name, self._declared):
            shown = ["…" if self._tells(part) else part for part in place]
            self.suspected.setdefault(name, " › ".join(shown))
        self._remember(value)
        return f"{{{{secret:{name}}}}}"

    def _remember(self, value: str) -> None:
        if len(value) >= _LEAST and value not in self._known and not is_ordinary(value):
            for form in (value, *_encoded(value)):
                self._names.setdefault(form, self._names[value])
                self._known.add(form)

    def _tells(self, part: str) -> bool:
        return (
            any(value in part for value in self._known)
            or any(form.search(part) for form in _FORMS)
            or any(looks_like_a_credential(match[0]) for match in _CANDIDATE.finditer(part))
        )

    def _name(self, value: str, place: Iterable[str]) -> str:
        name = self._names.get(value)
        if name is not None:
            return name
        # A name is not hidden itself: what it is made of must not be a secret.
        parts = ["hidden" if self._tells(part) else part for part in place]
        base = re.sub(r"[^A-Za-z0-9]+", "_", "_".join(parts)).strip("_").lower()
        if len(base) > _LONGEST_NAME:
            # The last of it says most.
            base = base[-_LONGEST_NAME:].partition("_")[2]
        name = base = base or "secret"
        while name in self._by_name:
            self._counted[base] += 1
            name = f"{base}_{self._counted[base] + 1}"
        self._names[value] = name
        self._by_name[name] = value
        return name


def _is_one_of(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _encoded(value: str) -> set[str]:
    """What a secret looks like inside of an address, of JSON in a text, and in base64."""
    data = value.encode("utf-8", "replace")
    forms = {
        quote(data, safe=""),
        quote(data),
        quote_plus(data),
        json.dumps(value)[1:-1],
        json.dumps(value, ensure_ascii=False)[1:-1],
        base64.b64encode(data).decode("ascii"),
    }
    return forms - {value}


def _opaque_value(text: str) -> bool:
    """Whether what stands under the name of a secret can be one: no word, no sentence."""
    return len(text) >= 8 and " " not in text and not text.isalpha()
