"""Connections: the model credentials of one organization, and which of them a session runs on (contract §6, §12).

Law: one connection runs one model, and where there is a connection there is a default. Whether a
provider takes a key is scripted; nobody is ever asked over the network. A key is a `Secret` and leaves
by its last four characters only.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

from emulator.domain.catalogue import Connector, connector_named, issuer_of
from emulator.domain.limits import CONNECTIONS
from emulator.domain.tools import is_address
from emulator.redaction import WITHHELD, Secret
from emulator.refusals import Refusal, invalid, not_found

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from emulator.domain.session import Session
    from emulator.ids import Ids
    from emulator.settings import Connection, ProviderAnswer

# A key of fewer characters than this shows none of them.
_LONG_ENOUGH: Final = 8
# What a turn fails with whose session lost its connection and got no other.
NO_MODEL: Final = (
    "This session has no model: its connection was deleted and no other was left. Connect one with "
    "POST /v1/model-credentials, then set `agent.model` and `agent.model_credential_id` of the session."
)


@dataclass(frozen=True, slots=True)
class ModelConnection:
    """A model credential. One of the settings has no key; `base_url` is where it would be called."""

    id: str
    label: str
    connector: str
    model: str
    key: Secret | None = None
    base_url: Secret | None = None

    @property
    def last4(self) -> str:
        """The end of the key, all that is ever shown of it; empty where that would be much of it."""
        key = "" if self.key is None else self.key.reveal()
        return key[-4:] if len(key) >= _LONG_ENOUGH else ""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A connection as it was asked for."""

    key: Secret
    provider: str | None = None
    model: str | None = None
    base_url: Secret | None = None
    label: str | None = None
    default: bool = False


class Connections:
    """The connections of one organization, oldest first; those of the settings come first."""

    def __init__(self, organization_id: str, ids: Ids, seeds: Sequence[Connection]) -> None:
        self._organization_id = organization_id
        self._ids = ids
        self._made = 0
        self.listed = [ModelConnection(self._next_id(), seed.label, seed.connector, seed.model) for seed in seeds]
        self.default = self.listed[0] if self.listed else None

    def connect(self, wanted: Wanted, answers: Iterable[ProviderAnswer]) -> tuple[ModelConnection, bool]:
        """Keep a connection, once its provider has accepted the key. Gives it, and whether it is new.

        The same key, model and address again give the connection there is. `answers` script the providers.
        Raises 400 for what is wrong with the request or the key, 502 for a provider that cannot be reached.
        """
        key = wanted.key.reveal()
        if not key.strip():
            raise invalid("`key` must not be empty.")
        connector = issuer_of(key) if wanted.provider is None else connector_named(wanted.provider)
        model = wanted.model or connector.default_model
        if model is None:
            raise invalid(f"`model` is required with `provider` {connector.id}: it has no model of its own.")
        base_url = _base_url(wanted.base_url, connector)
        for connection in self.listed:
            if (connection.key, connection.model, connection.base_url) == (wanted.key, model, base_url):
                return connection, False
        if len(self.listed) >= CONNECTIONS:
            raise invalid(
                f"This organization has {len(self.listed)} model connections, and {CONNECTIONS} is the most it may "
                "have. Delete one with DELETE /v1/model-credentials/{credential_id}."
            )
        _verify(key, model, connector, answers)
        connection = ModelConnection(
            self._next_id(), wanted.label or connector.id, connector.id, model, wanted.key, base_url
        )
        self.listed.append(connection)
        if wanted.default or self.default is None:
            self.default = connection
        return connection, True

    def disconnect(
        self, credential_id: str, sessions: Iterable[Session], now: int
    ) -> tuple[int, ModelConnection | None]:
        """Forget a connection and move its sessions to the default one, else the newest, which becomes the default.

        Gives how many were moved, and where to. With no connection left they have no model. Raises 404.
        """
        gone = self.find(credential_id)
        if gone is None:
            raise not_found(f"No model credential {credential_id!r}.")
        self.listed.remove(gone)
        if self.default == gone:
            self.default = self.listed[-1] if self.listed else None
        heir = self.default
        moved = 0
        for session in sessions:
            if session.agent.model_credential_id == gone.id:
                session.agent.model = None if heir is None else heir.model
                session.agent.model_credential_id = None if heir is None else heir.id
                session.touch(now)
                moved += heir is not None
        return moved, heir

    def find(self, credential_id: str) -> ModelConnection | None:
        """The connection of that id, if it is one of these."""
        return next((connection for connection in self.listed if connection.id == credential_id), None)

    def choose(self, model: str | None, credential_id: str | None, path: str) -> ModelConnection:
        """The connection a session runs on. Three distinct refusals (contract §6).

        `path` is where the two fields stand in the request, with its dot: `agent.`.
        """
        if self.default is None:
            raise invalid("This organization has no model connected. Connect one with POST /v1/model-credentials.")
        chosen = self.default if credential_id is None else self.find(credential_id)
        if chosen is None:
            raise invalid(
                f"This organization has no model connection with id {credential_id}. "
                f"`{path}model_credential_id` is one that GET /v1/model-credentials lists."
            )
        if model is not None and model != chosen.model:
            raise invalid(
                f"This organization's selected connection runs {chosen.model}, not {model}. "
                f"Send `{path}model_credential_id` of a connection that runs it, or leave `{path}model` out."
            )
        return chosen

    def _next_id(self) -> str:
        self._made += 1
        return self._ids.derive("cred", self._organization_id, self._made)


def _base_url(sent: Secret | None, connector: Connector) -> Secret | None:
    """Where a connection would be called. Raises 400 for what is no address, and where there must be one."""
    if sent is None:
        if connector.id == "custom":
            raise invalid("`base_url` is required with `provider` custom: the address of your endpoint.")
        return None if connector.default_base_url is None else Secret(connector.default_base_url)
    if not is_address(sent.reveal()):
        raise invalid("`base_url` does not parse: an http or https address with a host is accepted.")
    return sent


def _verify(key: str, model: str, connector: Connector, answers: Iterable[ProviderAnswer]) -> None:
    """Let the provider, as scripted, take the key or not. Raises the refusal that follows."""
    answer = next((answer for answer in answers if fnmatchcase(key, answer.key)), None)
    if answer is None or answer.outcome == "ok":
        return
    words = answer.message.replace(key, WITHHELD)
    match answer.outcome:
        case "rejected":
            raise invalid(f"{connector.display_name} rejected this key: {words or 'invalid api key'}")
        case "no_model":
            told = f" {connector.display_name} says: {words}" if words else ""
            raise invalid(f"The model {model!r} is not available on this key. Send another `model`.{told}")
        case "unreachable":
            told = f": {words}" if words else ""
            raise Refusal("provider_error", f"{connector.display_name} could not be reached{told}. Try again.")
