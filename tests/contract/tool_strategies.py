"""What the property tests send: valid tool configurations, and ways of spoiling them (contract §5)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from hypothesis import strategies as st

from tests.contract.tool_doors import BUILT_INS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

_WORDS: Final = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz0123456789"

# Any JSON value, small; numbers stay within what a float holds exactly, so that they compare equal.
JSON: Final = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | _WORDS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_WORDS, inner, max_size=4),
    max_leaves=10,
)
OBJECT: Final = st.dictionaries(_WORDS, JSON, max_size=4)

NAME: Final = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=64)
_HOST: Final = st.lists(st.text(_LETTERS, min_size=1, max_size=10), min_size=1, max_size=4).map(".".join)
ADDRESSES: Final = st.builds(
    "{}://{}{}{}".format,
    st.sampled_from(["http", "https"]),
    _HOST | st.just("[::1]"),
    st.just("") | st.integers(1, 9999).map(":{}".format),
    st.just("") | st.text(_LETTERS + "/_.-", max_size=20).map("/{}".format),
)


def _entry(kind: str, required: dict[str, st.SearchStrategy[Any]], optional: dict[str, st.SearchStrategy[Any]]) -> Any:
    return st.fixed_dictionaries({"type": st.just(kind), **required}, optional=optional)


FUNCTIONS: Final = _entry(
    "function",
    {"name": NAME},
    {"description": st.text(st.characters(exclude_categories=["Cs"])), "parameters": OBJECT}
    | {"timeout_seconds": st.integers(1, 7200)},
)
_SERVER: Final = {"allowed_tools": st.lists(_WORDS, max_size=4), "required": st.booleans()}
SERVERS: Final = _entry(
    "mcp",
    {"name": NAME, "url": ADDRESSES},
    {"authorization": _WORDS, "headers": st.dictionaries(_WORDS, _WORDS, max_size=4), **_SERVER},
)
PROCESSES: Final = _entry(
    "mcp",
    {"name": NAME, "command": _WORDS.filter(lambda command: bool(command.strip()))},
    {
        "args": st.lists(_WORDS, max_size=4),
        "env_refs": st.lists(_WORDS, max_size=3) | st.dictionaries(_WORDS, _WORDS, max_size=3),
        **_SERVER,
    },
)
TOOLS: Final = st.lists(
    FUNCTIONS | SERVERS | PROCESSES | st.sampled_from(BUILT_INS).map(lambda kind: {"type": kind}),
    max_size=6,
    unique_by=lambda tool: tool.get("name", id(tool)),
)
TEXT: Final = st.fixed_dictionaries(
    {},
    optional={
        "verbosity": st.sampled_from(["low", "medium", "high"]),
        "format": st.fixed_dictionaries({"type": st.just("json_schema"), "schema": OBJECT}),
    },
)
CONFIGURATIONS: Final = st.fixed_dictionaries({"tools": TOOLS}, optional={"text": TEXT | st.none()})


# Spoiling


def _deep(depth: int, *, of: str) -> Any:
    value: Any = {} if of == "objects" else []
    for _ in range(depth):
        value = {"x": value} if of == "objects" else [value]
    return value


# In the place of any value: every kind, the ends of ranges, odd Unicode, what other languages would coerce.
JUNK: Final[tuple[Any, ...]] = (
    *(None, True, False, 0, 1, -1, 2, 33, 7201, 2**31, 2**63, 2**64, -(10**40), 0.0, 1.0, -0.5, 1e308),
    *("", " ", "x", "true", "false", "yes", "0", "1", "null", "[]", "{}", "NaN", "function", "mcp", "browse"),
    *("\u0000", "\ufeff", "\u202e", "\ud83d\ude00", "\ud800", "\udfff\ud800", "é", "e\u0301", "\u2028", "ß", "İ", "ﬀ"),
    *("x" * 65, "x" * 4096, "\U0001f600" * 65, "\u0301" * 300, "x\ny\r\n\tz", "'\";--", "{{7*7}}", "../..", "%00"),
    *("ftp://x.y", "//x.y", "javascript:1", "x.y/mcp"),
    *([], [[]], [None], ["x"], ["x", 1], [{}], {}, {"": None}, {"x": "y"}, {"type": "mcp"}, {"type": ["mcp"]}),
    *(_deep(40, of="objects"), _deep(40, of="lists"), _deep(400, of="objects"), _deep(400, of="lists")),
    *([{"type": "browse"}] * 40, {"type": "function", "name": "x"}, {"$ref": "#"}, ["\ud800"], {"\ud800": 1}),
)
NAMES: Final = (
    *("type", "name", "description", "parameters", "timeout_seconds", "url", "authorization", "headers", "command"),
    *("args", "env_refs", "allowed_tools", "required", "redacted", "tools", "text", "verbosity", "format", "schema"),
    *("allowedTools", "cmd", "timeout", "Authorization", "Name", "TYPE", " name", "name ", "name\u0000", "__proto__"),
    *("", " ", "$ref", "x" * 200, "\ud800", "\u202e", "[key]", "0", "tools[0]", "a.b", "`name`", "schema_", "é"),
)


def spoilt(random: Random, value: Any) -> Any:
    """A copy of a JSON value with one to three things changed, wherever they are."""
    copy = [json.loads(json.dumps(value))]
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        places = list(_places(copy[0], copy, 0))
        owner, key = random.choice(places[:2] if random.random() < 0.1 else places)
        _spoil(random, owner, key)
    return copy[0]


def _places(value: Any, owner: Any, key: Any, depth: int = 0) -> Iterator[tuple[Any, Any]]:
    yield owner, key
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for inner_key, inner in pairs if depth < 20 else ():
        yield from _places(inner, value, inner_key, depth + 1)


def _junk(random: Random) -> Any:
    return json.loads(json.dumps(random.choice(JUNK)))


def _spoil(random: Random, owner: Any, key: Any) -> None:
    value = owner[key]
    match random.randrange(8):
        case 0 | 1 | 2:
            owner[key] = _junk(random)
        case 3 if isinstance(owner, dict):
            owner[random.choice(NAMES)] = owner.pop(key)
        case 4 if isinstance(owner, dict):
            del owner[key]
        case 5 if isinstance(owner, list):
            owner.append(json.loads(json.dumps(value)))
        case 6 if isinstance(value, list):
            value.extend(_junk(random) for _ in range(random.choice((1, 2, 33))))
        case _:
            inner = value if isinstance(value, dict) else owner if isinstance(owner, dict) else {}
            inner[random.choice(NAMES)] = _junk(random)


def garbled(random: Random, raw: bytes) -> bytes:
    """A copy of a body with some of its bytes changed, taken away or put in."""
    body = bytearray(raw)
    for _ in range(random.choice((1, 1, 2, 5))):
        at = random.randrange(len(body) + 1)
        match random.randrange(5):
            case 0:
                body[at : at + 1] = bytes([random.randrange(256)])
            case 1:
                del body[at : at + random.choice((1, 1, 3, len(body)))]
            case 2:
                body[at:at] = random.choice((b",", b"}", b"]", b'"', b"\\", b"\x00", b"\xff", b"\xed\xa0\x80", b"\n"))
            case 3:
                body[at:at] = random.choice(
                    (b"NaN", b"-Infinity", b"1e999", b"01", b"1.", b"'x'", b"//", b"\xef\xbb\xbf")
                )
            case _:
                body[at:at] = bytes(body[: random.randrange(len(body) + 1)])
    return bytes(body)
