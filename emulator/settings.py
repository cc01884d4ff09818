"""Settings: everything that can be set, once, with its default and its meaning.

The command line's flags, the `GOBARE_EMULATOR_*` variables, the fixture's marker and ini option and
`PATCH /_emulator/settings` are all made from the fields below. Importing this module is cheap; the
parser is built when first needed.
"""

from __future__ import annotations

import dataclasses
import json
import re
import types
import typing
from dataclasses import dataclass, field
from functools import cache
from math import isfinite
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from emulator.redaction import WITHHELD, Secret
from emulator.refusals import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Mapping

PREFIX: Final = "GOBARE_EMULATOR_"


class SettingError(ValueError):
    """A setting that does not exist, or a value it does not take. The message names it."""


BuiltIn: TypeAlias = Literal["web_search", "web_fetch", "image_search", "browse", "browser_act", "screenshot"]
Provider: TypeAlias = Literal[
    "anthropic", "openai", "xai", "openrouter", "minimax", "deepseek", "qwen", "moonshot", "glm", "custom"
]


@dataclass(frozen=True, slots=True)
class Connection:
    """A model connection a fresh organization has (contract §12)."""

    label: str
    connector: Provider
    model: str


@dataclass(frozen=True, slots=True)
class Profile:
    """An environment profile a fresh organization has (contract §12).

    `variables` are what MCP servers that are processes can be given; where they are told, they are the count.
    """

    name: str
    is_default: bool = False
    variable_count: int = 0
    variables: dict[str, Secret] | None = None

    def __post_init__(self) -> None:
        if self.variable_count < 0:
            raise SettingError(f"`profiles` have no fewer than 0 variables, not {self.variable_count}.")
        if self.variables is not None:
            if self.variable_count not in (0, len(self.variables)):
                raise SettingError(
                    f"`profiles`: {self.name!r} has {len(self.variables)} variables, not {self.variable_count}. "
                    "Leave `variable_count` out."
                )
            object.__setattr__(self, "variable_count", len(self.variables))


@dataclass(frozen=True, slots=True)
class ProviderAnswer:
    """What a model provider says of the keys that match a pattern, with `*` for anything (contract §12)."""

    key: str
    outcome: Literal["ok", "rejected", "no_model", "unreachable"]
    message: str = ""


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository that can be named. `clone_error` is what its clone fails with; `files` are texts by path."""

    full_name: str
    branch: str = "main"
    clone_error: str | None = None
    files: dict[str, str] | None = None

    def __post_init__(self) -> None:
        owner, slash, name = self.full_name.partition("/")
        if not (owner and slash and name) or "/" in name:
            raise SettingError(f"`repositories` are named as owner/name, not {self.full_name!r}.")


def _setting(default: Any, doc: str, *, at_start: bool = False) -> Any:
    return field(default=default, metadata={"doc": doc, "at_start": at_start})


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of one emulator. A change makes a new object; `World` holds the current one."""

    seed: int = _setting(0, "every id and every drawn number is derived from it", at_start=True)
    clock: Literal["virtual", "real"] = _setting(
        "virtual", "virtual stands still but for events and advance; real follows the machine", at_start=True
    )
    pace: Literal["instant", "realistic"] = _setting(
        "instant", "instant replies once the agent is at rest; realistic lets clients subscribe first"
    )
    rates: Literal["off", "published"] = _setting("off", "published refuses past the published rates")
    disabled_tools: tuple[BuiltIn, ...] = _setting((), "built-in tools this deployment has switched off")
    tools_reach: Literal["next_turn", "next_workspace"] = _setting(
        "next_turn", "when a PUT of tools reaches the agent of a running workspace"
    )
    mcp: Literal["simulated", "connect"] = _setting(
        "simulated", "simulated plays MCP servers without a network; connect connects to the real ones"
    )
    mcp_except: tuple[str, ...] = _setting((), "names of MCP servers for which mcp is the other way round")
    mcp_seconds: float = _setting(10.0, "real seconds an MCP server that is connected to has to answer")
    # Not while it runs: who reaches its control routes is not to have commands run.
    allow_processes: bool = _setting(
        False, "whether MCP servers with a command are started, on this machine", at_start=True
    )
    connections: tuple[Connection, ...] = _setting(
        (Connection("MiniMax", "minimax", "MiniMax-M3"),),
        "model connections of an organization; the first is default",
        at_start=True,
    )
    profiles: tuple[Profile, ...] = _setting((), "environment profiles of an organization", at_start=True)
    provider_answers: tuple[ProviderAnswer, ...] = _setting(
        (), "what model providers say of keys that match a pattern; the first match decides, and others are accepted"
    )
    github: bool = _setting(True, "whether organizations have GitHub connected")
    repositories: tuple[Repository, ...] = _setting(
        (), "repositories that can be cloned (full_name, branch, clone_error, files); every one while the list is empty"
    )
    workspace_copy: Literal["works", "fails"] = _setting("works", "whether a fork gets a copy of the workspace")
    preview_publish: Literal["works", "fails"] = _setting("works", "whether a preview can be prepared for publishing")
    public_url: str = _setting("", "where clients reach the emulator, for addresses it gives out; where it listens")
    usage_reconciled_seconds: float = _setting(3600.0, "seconds until a stretch of sandbox time is reconciled")
    usage_review_intervals: int = _setting(0, "finished stretches of each session that usage cannot account for")
    workspace_recovery: Literal["works", "fails"] = _setting(
        "works", "whether a reclaimed workspace can be built again"
    )
    orphan_sessions: bool = _setting(
        False, "a session whose opening input was refused cannot be removed, and the refusal names it"
    )
    session_limit: int = _setting(25, "sessions per organization")
    queue_limit: int = _setting(5, "messages waiting behind a running turn")
    streams_per_token: int = _setting(5, "event streams open at once per token")
    streams_per_organization: int = _setting(20, "event streams open at once per organization")
    replay_limit: int = _setting(50_000, "persisted events one stream replays before it is cut short")
    ping_seconds: float = _setting(15.0, "real seconds between pings on an event stream")
    retry_ms: int = _setting(2000, "reconnect delay an event stream tells its reader")
    webhook_hosts: tuple[str, ...] = _setting(
        (), "hosts beside this machine that webhooks are sent to, over http too; * is any"
    )
    webhook_seconds: float = _setting(10.0, "real seconds a webhook's receiver has to answer")
    deliveries_limit: int = _setting(1000, "webhook deliveries the journal keeps")
    rest_seconds: float = _setting(5.0, "real seconds a reply waits for the agent to come to rest")
    unwritable_files: tuple[str, ...] = _setting((), "paths that a seeded file cannot be written to")
    tools_restart_seconds: float = _setting(
        0.0, "seconds after a PUT of tools on a running workspace in which files cannot be written to it"
    )
    publication: Literal["works", "fails"] = _setting("works", "whether what a turn left can be published")
    publication_seconds: float = _setting(
        0.0, "seconds of the emulator's clock from a turn's end to its artifacts; 0 leaves it to the pace"
    )
    lost_artifacts: tuple[str, ...] = _setting((), "paths of artifacts whose stored copy is gone")
    artifacts_outlive_sessions: bool = _setting(True, "artifacts of a deleted session can still be read")
    body_limit: int = _setting(1_048_576, "bytes of a request body")
    files_body_limit: int = _setting(1_048_576, "bytes of a request body that writes files")
    create_body_limit: int = _setting(16_777_216, "bytes of a request body that creates a session")
    journal_limit: int = _setting(1000, "requests the journal keeps")
    mode: Literal["script", "strict"] = _setting(
        "script", "how a recording is played: the agent's side alone, or strict, the client's writes held to it too"
    )
    findings: Literal["on", "off"] = _setting(
        "on", "whether the report tells which rules of good use a client broke", at_start=True
    )
    strict: bool = _setting(False, "what a test leaves over fails it")
    explore: tuple[str, ...] = _setting(
        (), "what tests are run again with: resume_everywhere, race, future_proof, or variants of these by their names"
    )
    explore_limit: int = _setting(100, "times that one test is run again at most, a sample where there is more to try")
    explore_seconds: float = _setting(60.0, "real seconds that running one test again may take in all")


NAMES: Final[tuple[str, ...]] = tuple(f.name for f in dataclasses.fields(Settings))


def as_json(settings: Settings) -> dict[str, Any]:
    """The settings by name, as JSON values; secrets are withheld."""
    return json.loads(json.dumps(settings, default=_shown))  # type: ignore[no-any-return]


def _shown(value: Any) -> Any:
    if isinstance(value, Secret):
        return WITHHELD
    return {entry.name: getattr(value, entry.name) for entry in dataclasses.fields(value)}


def changed(settings: Settings, values: Mapping[str, Any], *, running: bool = False) -> Settings:
    """`settings` with `values` (JSON values by name) put in.

    Raises `SettingError` for an unknown name, a value of the wrong type or range, and, while
    `running`, for what can only be set at the start.
    """
    check_names(values)
    if running:
        for definition in dataclasses.fields(Settings):
            if definition.name in values and definition.metadata["at_start"]:
                raise SettingError(f"`{definition.name}` can only be set when the emulator starts.")
    return dataclasses.replace(settings, **{name: _check(name, value) for name, value in values.items()})


def from_texts(settings: Settings, texts: Mapping[str, str]) -> Settings:
    """`settings` with values given as text (flags, variables, ini lines) put in.

    Lists are comma-separated or JSON; booleans are true or false. Raises `SettingError`.
    """
    check_names(texts)
    return changed(settings, {name: _from_text(name, text) for name, text in texts.items()})


def from_environment(environment: Mapping[str, str], *, others: tuple[str, ...] = ()) -> dict[str, str]:
    """The `GOBARE_EMULATOR_*` variables, by setting name, as text.

    `others` are names the caller understands beside the settings. What Kubernetes and Compose
    inject for a service of that name is passed over. Raises `SettingError` for any other.
    """
    found: dict[str, str] = {}
    for variable, text in environment.items():
        if not variable.startswith(PREFIX) or _injected(variable, text):
            continue
        name = variable.removeprefix(PREFIX).lower()
        if name not in NAMES and name not in others:
            raise SettingError(f"{variable} is not a setting.{did_you_mean(name, (*NAMES, *others))}")
        # An empty setting is one that is not set: Compose passes those on.
        if text or name not in NAMES:
            found[name] = text
    return found


def check_names(values: Mapping[str, Any]) -> None:
    """Raise `SettingError` for the first name that is not a setting."""
    for name in values:
        if name not in NAMES:
            raise SettingError(
                f"`{name}` is not a setting.{did_you_mean(name, NAMES)} The settings are {', '.join(NAMES)}."
            )


def _injected(variable: str, text: str) -> bool:
    rest = variable.removeprefix(PREFIX)
    return (
        rest.endswith(("SERVICE_HOST", "SERVICE_PORT"))
        or "_SERVICE_PORT_" in f"_{rest}"
        or rest == "NAME"
        or rest.startswith("ENV_")
        or text.startswith(("tcp://", "udp://"))
        or rest.startswith("PORT_")
    )


def _from_text(name: str, text: str) -> Any:
    kind = _kinds()[name]
    if kind is bool:
        if text.lower() not in ("true", "false", "1", "0", "yes", "no", "on", "off"):
            raise SettingError(f"`{name}` is true or false, not {text!r}.")
        return text.lower() in ("true", "1", "yes", "on")
    if typing.get_origin(kind) is tuple:
        if text.lstrip().startswith("["):
            try:
                return json.loads(text)
            except ValueError:
                raise SettingError(f"`{name}` is not valid JSON.") from None
        return [part.strip() for part in text.split(",") if part.strip()]
    if kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            raise SettingError(f"`{name}` is a number, not {text!r}.") from None
    return text


_MINIMUM: Final[Mapping[str, float]] = {
    "usage_reconciled_seconds": 0,
    "usage_review_intervals": 0,
    "session_limit": 1,
    "queue_limit": 0,
    "streams_per_token": 1,
    "streams_per_organization": 1,
    "replay_limit": 1,
    "ping_seconds": 0.01,
    "retry_ms": 0,
    "webhook_seconds": 0.01,
    "mcp_seconds": 0.01,
    "deliveries_limit": 0,
    "rest_seconds": 0.01,
    "body_limit": 1,
    "create_body_limit": 1,
    "files_body_limit": 1,
    "tools_restart_seconds": 0,
    "publication_seconds": 0,
    "journal_limit": 0,
    "explore_limit": 0,
    "explore_seconds": 0,
}

# The ways to explore, and how a variant of each is named.
_OUTCOMES: Final = "accepted|already_resolved|not_delivered|deadline|cancelled"
EXPLORED: Final[Mapping[str, str]] = {
    "resume_everywhere": r"\d+",
    "race": rf"\d+:({_OUTCOMES})|order:[0-9a-f]{{8}}-[0-9a-f]{{8}}",
    "future_proof": "events|fields|items",
}


_MAXIMUM: Final = 10**9


@cache
def _kinds() -> dict[str, Any]:
    return typing.get_type_hints(Settings)


def _check(name: str, value: Any) -> Any:
    checked = _checked(name, value, _kinds()[name])
    if name == "explore":
        _check_explored(checked)
    if name == "public_url" and checked and not checked.startswith(("http://", "https://")):
        raise SettingError(f"`{name}` is an http or https address, not {value!r}.")
    low = _MINIMUM.get(name)
    if low is not None and not low <= checked <= _MAXIMUM:
        raise SettingError(f"`{name}` is from {low:g} to {_MAXIMUM}, not {checked:g}.")
    return checked


def _check_explored(entries: tuple[str, ...]) -> None:
    for entry in entries:
        mode, colon, variant = entry.partition(":")
        if mode not in EXPLORED:
            raise SettingError(f"`explore` is of {', '.join(EXPLORED)}, not {entry!r}.{did_you_mean(mode, EXPLORED)}")
        if colon and re.fullmatch(EXPLORED[mode], variant) is None:
            raise SettingError(
                f"`explore`: {entry!r} is no variant of {mode}. Send {mode!r} for all of them, or one as a failure "
                "names it."
            )


_KINDS: Final[Mapping[Any, str]] = {int: "an integer", float: "a number", bool: "true or false", str: "text"}


def _checked(name: str, value: Any, kind: Any) -> Any:
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is Literal:
        if value in arguments:
            return value
        raise SettingError(f"`{name}` is one of {', '.join(arguments)}, not {value!r}.")
    if origin is tuple:
        if isinstance(value, list | tuple):
            return tuple(_checked(f"{name}[{n}]", entry, arguments[0]) for n, entry in enumerate(value))
        raise SettingError(f"`{name}` is a list.")
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        kinds = typing.get_type_hints(kind)
        needed = {f.name for f in dataclasses.fields(kind) if f.default is dataclasses.MISSING}
        if not isinstance(value, dict) or not needed <= set(value) <= set(kinds):
            raise SettingError(f"`{name}` is an object of {', '.join(kinds)}.")
        return kind(**{key: _checked(f"{name}.{key}", entry, kinds[key]) for key, entry in value.items()})
    if types.NoneType in arguments:
        return None if value is None else _checked(name, value, arguments[0])
    if origin is dict:
        if isinstance(value, dict) and all(isinstance(text, str) for pair in value.items() for text in pair):
            texts = {_sendable(name, key): _sendable(name, text) for key, text in value.items()}
            return {key: Secret(text) for key, text in texts.items()} if arguments[1] is Secret else texts
        raise SettingError(f"`{name}` is an object of texts.")
    if kind is float and isinstance(value, int | float) and not isinstance(value, bool):
        if isfinite(value):
            return float(value)
    elif type(value) is kind:
        return _sendable(name, value) if kind is str else value
    raise SettingError(f"`{name}` is {_KINDS[kind]}, which {value!r} is not.")


def _sendable(name: str, text: str) -> str:
    """A text, which may end up in an answer. Raises `SettingError` for one that no JSON in UTF-8 can say."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise SettingError(f"`{name}` has half a surrogate pair, or came as bytes that are not UTF-8.") from None
    return text
