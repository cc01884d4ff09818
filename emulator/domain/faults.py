"""HTTP faults: what is to go wrong with which requests.

Law: pure. Which fault a request meets is decided once, as it comes in, by what is known of it then: its verb, its
path and its token. A fault counts the requests that suit it, whichever of them meets another one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

from emulator.redaction import scrub
from emulator.refusals import CATALOGUE, did_you_mean, invalid

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from emulator.ids import Ids

# What becomes of a request: one of these, `delay` before it or alone, `retry` beside those of a stream or alone.
INSTEAD: Final = ("error", "html", "empty")
STREAM: Final = ("cut", "stall", "duplicate", "drip")
EFFECTS: Final = (*INSTEAD, "reset", "truncate", "twice", *STREAM)
# What goes with some of them only.
_NEEDS: Final[Mapping[str, tuple[str, ...]]] = {
    "message": ("error",),
    "retry_after": ("error",),
    "after_event": ("cut", "stall"),
    "after_bytes": ("cut", "stall"),
    "inside": ("cut", "stall"),
}
# How many kinds of request are known again, and how long the path of one may be.
_KINDS: Final = 1000
_LONGEST: Final = 200
_PLACES: Final = ("after_event", "after_bytes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """Which requests: all that have everything that is given. `token` and `session` are ids.

    In `path`, `*` and `{anything}` stand for one segment. `nth`: from how manieth of them on.
    """

    method: str | None = None
    path: str | None = None
    nth: int | None = None
    token: str | None = None
    session: str | None = None


@dataclass(slots=True, kw_only=True, eq=False)
class Fault:
    """One fault, as it was asked for, and what became of it.

    `matched` requests suited it, of which `taken` met it and `hits` went wrong. `begins` and `ends` are Unix
    milliseconds of the emulator's clock. Seconds of `delay`, `stall` and `drip` (`bytes` at a time, `seconds` between)
    are real ones.
    """

    id: str
    number: int
    match: Match
    error: str | None = None
    message: str | None = None
    retry_after: int | None = None
    html: int | None = None
    empty: bool | None = None
    reset: Literal["before", "during", "after"] | None = None
    truncate: int | None = None
    twice: bool | None = None
    cut: Literal["end", "close", "reset"] | None = None
    stall: float | Literal["forever"] | None = None
    after_event: int | None = None
    after_bytes: int | None = None
    inside: Literal["frame", "character"] | None = None
    duplicate: int | Literal["all"] | None = None
    drip: Mapping[str, Any] | None = None
    retry: int | Literal["absent"] | None = None
    delay: float | None = None
    times: int | None = None
    probability: float | None = None
    after: float | None = None
    until: float | None = None
    begins: int = 0
    ends: int | None = None
    matched: int = 0
    taken: int = 0
    hits: int = 0
    source: object = None

    @property
    def instead(self) -> bool:
        """Whether the request is not handled at all."""
        return self.reset == "before" or any(getattr(self, name) is not None for name in INSTEAD)

    @property
    def on_streams(self) -> bool:
        """Whether it is for event streams alone."""
        return any(getattr(self, name) is not None for name in (*STREAM, "retry"))

    def suits(self, verb: str, parts: Sequence[str], token: Callable[[], str | None], now: int) -> bool:
        """Whether a request of a suiting path is one of those it is for, now."""
        match = self.match
        if now < self.begins or (self.ends is not None and now >= self.ends):
            return False
        if match.session is not None and (len(parts) < 3 or parts[1] != "sessions" or parts[2] != match.session):
            return False
        if self.twice and verb in ("GET", "HEAD"):
            return False
        if (self.on_streams or self.truncate is not None) and self.on_streams != _is_stream(verb, parts):
            return False
        return match.token is None or token() == match.token

    def is_due(self, ids: Ids) -> bool:
        """Whether it happens to the request that was counted last."""
        nth = self.match.nth
        times = 1 if self.times is None and nth is not None else self.times
        if self.matched < (nth or 1) or (times is not None and self.taken >= times):
            return False
        return self.probability is None or ids.fraction("fault", self.id, self.matched) < self.probability

    def as_json(self) -> dict[str, Any]:
        """What was asked for, under the keys it was asked with, and how often it happened. Without secrets."""
        return {
            "id": self.id,
            "match": _given(self.match, ("method", "path", "nth", "token", "session")),
            **_given(self, ("delay", *EFFECTS, *_NEEDS, "retry", "times", "probability", "after", "until")),
            "matched": self.matched,
            "hits": self.hits,
        }


def _given(one: Any, names: Sequence[str]) -> dict[str, Any]:
    given = {name: value for name in names if (value := getattr(one, name)) is not None}
    return {name: scrub(value) if isinstance(value, str) else value for name, value in given.items()}


def _is_stream(verb: str, parts: Sequence[str]) -> bool:
    return verb == "GET" and parts[-1:] == ["events"] and len(parts) in (2, 4)


@dataclass(slots=True)
class _Node:
    """A place in the tree of paths: the faults of this path, and of all that begin with it."""

    names: dict[str, _Node] = field(default_factory=dict)
    any: _Node | None = None
    here: list[Fault] = field(default_factory=list)
    below: list[Fault] = field(default_factory=list)

    def node(self, parts: Sequence[str]) -> _Node:
        """The place of a pattern, made where there is none."""
        node = self
        for part in parts:
            if _is_any(part):
                node.any = node.any or _Node()
                node = node.any
            else:
                node = node.names.setdefault(part, _Node())
        return node

    def find(self, parts: Sequence[str]) -> list[Fault]:
        """The faults whose path a path is."""
        found = list(self.below)
        nodes = [self]
        for part in parts:
            nodes = [child for node in nodes for child in (node.names.get(part), part and node.any) if child]
            for node in nodes:
                found += node.below
        for node in nodes:
            found += node.here
        return found


class Faults:
    """The faults of one deployment, in the order they were added: a request meets the first that is due."""

    def __init__(self, ids: Ids, now: Callable[[], int]) -> None:
        self._ids = ids
        self._now = now
        self._faults: list[Fault] = []
        self._added = 0
        # A tree for each verb, and (`None`) one for those of any.
        self._trees: dict[str | None, _Node] = {}
        self._found: dict[tuple[str, bytes], Sequence[Fault]] = {}

    @property
    def any(self) -> bool:
        """Whether there is one at all."""
        return bool(self._faults)

    def __iter__(self) -> Iterator[Fault]:
        return iter(self._faults)

    def add(self, match: Mapping[str, Any], *, source: object = None, **asked: Any) -> Fault:
        """A fault from now on: the fields of a `Match` and of a `Fault` that were given. Raises 400.

        `source` is what it was loaded with, to be removed with it.
        """
        check(match, asked)
        self._added += 1
        now, until = self._now(), asked.get("until")
        fault = Fault(
            id=self._ids.derive("fault", "", self._added, length=8),
            number=self._added,
            match=Match(**match),
            source=source,
            begins=now + round(asked.get("after", 0) * 1000),
            ends=None if until is None else now + round(until * 1000),
            **asked,
        )
        self._faults.append(fault)
        self._plant(fault)
        return fault

    def remove(self, which: Callable[[Fault], bool]) -> int:
        """Take the faults away that are such. Gives how many there were."""
        before = len(self._faults)
        self._faults = [fault for fault in self._faults if not which(fault)]
        self._trees = {}
        for fault in self._faults:
            self._plant(fault)
        return before - len(self._faults)

    def on(self, verb: str, raw_path: bytes, split: Callable[[bytes], Sequence[str] | None]) -> Sequence[Fault]:
        """The faults whose verb and path a request has, in order; `split` gives the decoded segments of its path.

        What was found is kept for the next request of the same kind: most that are sent are sent again.
        """
        kind = (verb, raw_path)
        found = self._found.get(kind)
        if found is None:
            parts = split(raw_path) or ()
            trees = (self._trees.get(key) for key in (verb, None))
            suiting = [fault for tree in trees if tree is not None for fault in tree.find(parts)]
            found = tuple(sorted(suiting, key=lambda fault: fault.number))
            if len(self._found) >= _KINDS:
                self._found.clear()
            if len(raw_path) <= _LONGEST:
                self._found[kind] = found
        return found

    def meet(
        self, found: Sequence[Fault], verb: str, parts: Sequence[str], token: Callable[[], str | None]
    ) -> Fault | None:
        """Of the faults that were found, the one a request meets, if any. `token` gives its token's id."""
        met: Fault | None = None
        now = self._now()
        for fault in found:
            if fault.suits(verb, parts, token, now):
                fault.matched += 1
                if met is None and fault.is_due(self._ids):
                    met = fault
                    fault.taken += 1
        return met

    def _plant(self, fault: Fault) -> None:
        match = fault.match
        tree = self._trees.setdefault(match.method, _Node())
        if match.path is not None:
            tree.node(match.path.split("/")[1:]).here.append(fault)
        elif match.session is not None:
            tree.node(("v1", "sessions", match.session)).below.append(fault)
        else:
            tree.below.append(fault)
        self._found.clear()


def check(match: Mapping[str, Any], asked: Mapping[str, Any]) -> None:
    """Raise 400 for what cannot be one fault. Both hold what was given, and nothing else."""
    if "path" in match:
        _check_path(match["path"])
    if "gbr_pat_" in match.get("token", ""):
        raise invalid("`match.token` takes the id of a token, as it is told where one is minted; a token was sent.")
    effects = [name for name in EFFECTS if name in asked]
    if len(effects) > 1:
        raise invalid(
            f"`{effects[0]}` and `{effects[1]}` are two faults; send one of {_listed(EFFECTS)}. `delay` goes with each."
        )
    if not effects and "delay" not in asked and "retry" not in asked:
        raise invalid(f"Nothing goes wrong by this. Send one of {_listed((*EFFECTS, 'delay', 'retry'))}.")
    for name, needed in _NEEDS.items():
        if name in asked and not set(needed) & set(effects):
            raise invalid(f"`{name}` goes with {_listed(needed, 'or')}, and only then.")
    if "retry" in asked and effects and effects[0] not in STREAM:
        raise invalid(f"`retry` is of event streams: it goes with {_listed(STREAM, 'or')}, or alone.")
    _check_error(asked)
    _check_kind(match, asked)
    if all(name in asked for name in _PLACES):
        raise invalid("`after_event` and `after_bytes` are two places; send one of them.")
    if "inside" in asked and "after_bytes" in asked:
        raise invalid("`inside` goes with `after_event`: `after_bytes` is to the byte already.")
    after, until = asked.get("after", 0), asked.get("until")
    if until is not None and until <= after:
        raise invalid(f"`until` must be more than `after`, which is {after:g}: both count seconds from now.")


def _check_error(asked: Mapping[str, Any]) -> None:
    code = asked.get("error")
    if code is None:
        return
    if code not in CATALOGUE:
        raise invalid(f"`error` must be one of {', '.join(CATALOGUE)}.{did_you_mean(code, CATALOGUE)}")
    waits = CATALOGUE[code].retry_after is not None or code == "conflict"
    if "retry_after" in asked and not waits:
        raise invalid(f"`retry_after` does not go with {code}: it comes without a Retry-After.")


def _check_kind(match: Mapping[str, Any], asked: Mapping[str, Any]) -> None:
    """Raise 400 where what goes wrong is of another kind of request than those that match."""
    verb, parts = match.get("method"), match.get("path", "/v1/events").split("/")[1:]
    can_stream = verb in (None, "GET") and len(parts) in (2, 4) and (parts[-1] == "events" or _is_any(parts[-1]))
    stream = next((name for name in (*STREAM, "retry") if name in asked), None)
    if stream is not None and not can_stream:
        raise invalid(
            f"`{stream}` is of event streams: `match` must leave room for GET /v1/events or /v1/sessions/*/events."
        )
    if "truncate" in asked and verb == "GET" and "path" in match and parts[-1] == "events":
        raise invalid("`truncate` is of answers with an end; an event stream ends with `cut` and `after_bytes`.")
    if "twice" in asked and verb in ("GET", "HEAD"):
        raise invalid(f"`twice` is of writes, and `match.method` is {verb}.")


def _check_path(path: str) -> None:
    parts = path.split("/")
    if parts[0] or len(parts) < 2 or not (parts[1] == "v1" or _is_any(parts[1])):
        raise invalid("`match.path` must be a path of the API, such as /v1/sessions/*/events; others never fail.")
    if "?" in path or "#" in path:
        raise invalid("`match.path` must be a path alone, without a query.")
    for part in parts[1:]:
        if "*" in part and part != "*":
            raise invalid("`match.path`: `*` stands for a whole segment, as in /v1/sessions/*/events.")


def _is_any(part: str) -> bool:
    return part == "*" or (part.startswith("{") and part.endswith("}"))


def _listed(names: Sequence[str], word: str = "and") -> str:
    quoted = [f"`{name}`" for name in names]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} {word} {quoted[-1]}"
