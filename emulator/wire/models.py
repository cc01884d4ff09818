"""Model connectors and model credentials (contract §12)."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from emulator.settings import Provider
from emulator.wire.common import ADDRESS, NOT_BLANK, Deleted, Maybe, Page, Request, Response, Withheld


class ModelConnector(Response):
    """A provider that can be connected."""

    object: Literal["model_connector"]
    id: Provider = Field(description="What `provider` takes.")
    display_name: str
    default_model: str | None = Field(description="What runs when `model` is left out.")
    key_prefix: str | None = Field(description="How its keys begin; several may share one.")
    key_url: str | None = Field(description="Where its keys are made.")
    protocol: Literal["anthropic", "openai"]
    default_base_url: str | None


class ModelConnectorCatalog(Response):
    """Every provider there is; not paged."""

    object: Literal["list"]
    data: list[ModelConnector]


class ModelCredentialCreateRequest(Request):
    """A model to connect, with the key of its provider."""

    key: Withheld = Field(
        min_length=1, description="The provider's key. It is shown nowhere afterwards.", json_schema_extra=NOT_BLANK
    )
    provider: Maybe[Provider] = Field(default=None, description="Where the beginning of the key does not say.")
    model: Maybe[str] = Field(default=None, min_length=1, description="The provider's default one when absent.")
    base_url: Maybe[Withheld] = Field(
        default=None, description="For custom, and for endpoints of your own.", json_schema_extra=ADDRESS
    )
    label: Maybe[str] = Field(default=None, min_length=1, description="The id of the provider when absent.")
    default: Maybe[bool] = Field(default=None, description="Whether sessions that name none use it.")


class ModelCredential(Response):
    """A connection to a model, less its key and its address."""

    object: Literal["model_credential"]
    id: str
    label: str
    connector: str
    model: str = Field(description="The one model it runs.")
    is_default: bool
    last4: Maybe[str] = Field(default=None, description="The end of the key; in the answer to a create only.")
    verified: Maybe[bool] = Field(default=None, description="In the answer to a create only.")


class ModelCredentialList(Page[ModelCredential]):
    """A page of model credentials."""


class ModelCredentialDeleted(Deleted):
    """A connection is gone, and its sessions run on another."""

    object: Literal["model_credential.deleted"]
    sessions_moved: int
    moved_to: str | None = Field(description="null when no connection is left.")
