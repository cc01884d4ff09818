"""Catalogue: what sessions are made from — model connectors, saved agents, environment profiles (contract §12).

Law: a session takes a copy; nothing here reaches into one that was made. Connectors are the same for
everybody; agents and profiles belong to one organization.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Literal

from emulator.domain.limits import AGENTS, NAME
from emulator.domain.tools import ToolSet
from emulator.refusals import invalid, not_found

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from emulator.ids import Ids
    from emulator.redaction import Secret
    from emulator.settings import Profile


@dataclass(frozen=True, slots=True)
class Connector:
    """A model provider that can be connected. `None` where it has no such thing."""

    id: str
    display_name: str
    default_model: str | None
    key_prefix: str | None
    key_url: str | None
    protocol: Literal["anthropic", "openai"]
    default_base_url: str | None


# The pages give the ten names, what anthropic looks like, minimax's model and protocol, and who shares `sk-`.
# The rest is ours: plausible, never called.
CONNECTORS: Final = (
    Connector(
        "anthropic",
        "Anthropic",
        "claude-sonnet-4-6",
        "sk-ant-",
        "https://console.anthropic.com/settings/keys",
        "anthropic",
        "https://api.anthropic.com",
    ),
    Connector(
        "openai",
        "OpenAI",
        "gpt-5",
        "sk-",
        "https://platform.openai.com/api-keys",
        "openai",
        "https://api.openai.com/v1",
    ),
    Connector("xai", "xAI", "grok-4", "xai-", "https://console.x.ai", "openai", "https://api.x.ai/v1"),
    Connector(
        "openrouter",
        "OpenRouter",
        "openrouter/auto",
        "sk-or-",
        "https://openrouter.ai/keys",
        "openai",
        "https://openrouter.ai/api/v1",
    ),
    Connector(
        "minimax",
        "MiniMax",
        "MiniMax-M3",
        None,
        "https://platform.minimax.io",
        "anthropic",
        "https://api.minimax.io/anthropic",
    ),
    Connector(
        "deepseek",
        "DeepSeek",
        "deepseek-chat",
        "sk-",
        "https://platform.deepseek.com/api_keys",
        "openai",
        "https://api.deepseek.com",
    ),
    Connector(
        "qwen",
        "Qwen",
        "qwen3-max",
        "sk-",
        "https://modelstudio.console.alibabacloud.com",
        "openai",
        "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
    ),
    Connector(
        "moonshot",
        "Kimi",
        "kimi-k2",
        "sk-",
        "https://platform.moonshot.ai/console/api-keys",
        "openai",
        "https://api.moonshot.ai/v1",
    ),
    Connector("glm", "GLM", "glm-4.6", None, "https://z.ai/manage-apikey/apikey-list", "openai", "https://api.z.ai/v4"),
    Connector("custom", "Custom", None, None, None, "openai", None),
)
CONNECTOR_IDS: Final = tuple(connector.id for connector in CONNECTORS)


def connector_named(provider: str) -> Connector:
    """The connector of that id. Raises `KeyError`: requests know only the ids there are."""
    for connector in CONNECTORS:
        if connector.id == provider:
            return connector
    raise KeyError(provider)


def issuer_of(key: str) -> Connector:
    """Whose key this is, by its prefix alone: nobody is asked. Raises 400 where the prefix does not say."""
    prefixes = [c.key_prefix for c in CONNECTORS if c.key_prefix is not None and key.startswith(c.key_prefix)]
    if not prefixes:
        raise invalid(
            "The beginning of `key` does not say which provider issued it. "
            f'Pass "provider" to say which: one of {", ".join(CONNECTOR_IDS)}.'
        )
    prefix = max(prefixes, key=len)
    candidates = [connector for connector in CONNECTORS if connector.key_prefix == prefix]
    if len(candidates) > 1:
        names = ", ".join(sorted(connector.id for connector in candidates))
        raise invalid(f'Several providers issue keys starting with "{prefix}": {names}. Pass "provider" to say which.')
    return candidates[0]


@dataclass(frozen=True, slots=True)
class EnvironmentProfile:
    """A named group of variables a session can be bound to."""

    id: str
    name: str
    is_default: bool
    variable_count: int | None
    variables: Mapping[str, Secret]


class Profiles:
    """The environment profiles of one organization, oldest first: those of the settings."""

    def __init__(self, organization_id: str, ids: Ids, seeds: Sequence[Profile]) -> None:
        self.listed = [
            EnvironmentProfile(
                ids.derive("envg", organization_id, n),
                seed.name,
                seed.is_default,
                seed.variable_count,
                seed.variables or {},
            )
            for n, seed in enumerate(seeds, start=1)
        ]

    def variables(self, profile_ids: Sequence[str] | None) -> dict[str, Secret]:
        """The variables of these profiles, of two with one name the later; `None` is the default group."""
        if profile_ids is None:
            bound = [profile for profile in self.listed if profile.is_default]
        else:
            by_id = {profile.id: profile for profile in self.listed}
            bound = [by_id[profile_id] for profile_id in profile_ids]
        return {name: value for profile in bound for name, value in profile.variables.items()}

    def check(self, profile_ids: Sequence[str]) -> None:
        """Raise 404 for the first id that is not one of them."""
        known = {profile.id for profile in self.listed}
        for n, profile_id in enumerate(profile_ids):
            if profile_id not in known:
                raise not_found(
                    f"No environment profile {profile_id!r}. `environment.profiles[{n}]` is the id of one that "
                    "GET /v1/environment-profiles lists."
                )


@dataclass(frozen=True, slots=True)
class SavedAgent:
    """A configuration that sessions start from. `request_id` is that of the request that made it."""

    id: str
    name: str
    created_at: int
    model: str | None = None
    model_credential_id: str | None = None
    instructions: str | None = None
    tools: ToolSet = field(default_factory=ToolSet)
    request_id: str | None = None

    @property
    def empty(self) -> bool:
        """Whether there is nothing behind the name. An empty list of tools is something: no way out."""
        asked = (self.model, self.model_credential_id, self.instructions, self.tools.tools, self.tools.text)
        return all(value is None for value in asked)


_SLUG: Final = re.compile(r"[A-Za-z0-9._-]+")


def slug(name: str) -> str:
    """An agent's name as it is kept: in lower case. Raises 400 for one that is no slug."""
    if len(name) > NAME:
        raise invalid(f"`name` takes at most {NAME} characters; {len(name)} were sent.")
    if not _SLUG.fullmatch(name):
        raise invalid("`name` takes letters, digits, dot, dash and underscore of ASCII, at least one, and no others.")
    return name.lower()


class Agents:
    """The saved agents of one organization, oldest first. A name belongs to one of them."""

    def __init__(self, organization_id: str, ids: Ids) -> None:
        self.listed: list[SavedAgent] = []
        self._organization_id = organization_id
        self._ids = ids
        self._saved = 0

    def save(self, agent: SavedAgent, delete_path: str) -> SavedAgent:
        """Keep an agent, in place of the one of its name if there is one: that id, age and place stay.

        Raises 400 for one with nothing behind it, and past the ceiling, where `delete_path` makes room.
        """
        if agent.empty:
            raise invalid(
                "An agent needs at least one of `model`, `model_credential_id`, `instructions`, `tools` and `text`."
            )
        for n, other in enumerate(self.listed):
            if other.name == agent.name:
                self.listed[n] = agent = replace(
                    agent, id=other.id, created_at=other.created_at, request_id=other.request_id
                )
                return agent
        if len(self.listed) >= AGENTS:
            raise invalid(
                f"This organization has {len(self.listed)} agents, and {AGENTS} is the most it may have. "
                f"Delete one with DELETE {delete_path}, or save under a name that is there: that replaces."
            )
        self._saved += 1
        agent = replace(agent, id=self._ids.derive("agt", self._organization_id, self._saved))
        self.listed.append(agent)
        return agent

    def get(self, agent_id: str, what: str = "agent") -> SavedAgent:
        """The agent of that id. Raises 404."""
        for agent in self.listed:
            if agent.id == agent_id:
                return agent
        raise not_found(f"No {what} {agent_id!r}.")

    def named(self, id_or_name: str, path: str) -> SavedAgent:
        """The agent a session is to start from, by its id or else its name. Raises 404; `path` is the field."""
        name = id_or_name.lower()
        found = [agent for agent in self.listed if agent.id == id_or_name]
        found += [agent for agent in self.listed if agent.name == name]
        if not found:
            raise not_found(
                f"No agent {id_or_name!r}. `{path}` is the id or the name of one that GET /v1/agents lists."
            )
        return found[0]

    def remove(self, agent_id: str, what: str = "agent") -> None:
        """Forget an agent. What was made from it stays as it is. Raises 404."""
        self.listed.remove(self.get(agent_id, what))
