"""What every shape has in common."""

from __future__ import annotations

from functools import reduce
from operator import or_
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Generic, Literal, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pydantic import GetCoreSchemaHandler
    from pydantic.config import JsonDict
    from pydantic_core import CoreSchema

T = TypeVar("T")


class NotNull:
    """Marks `X | None` as: absent is `None`, but a `null` that was sent is refused."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return handler(reduce(or_, [kind for kind in get_args(source) if kind is not NoneType]))


Maybe = Annotated[T | None, NotNull()]
"""A field that may be left out and is not null when it is there."""

Withheld = Annotated[str, Field(json_schema_extra={"writeOnly": True})]
"""A string that is a secret, or may hold one: never shown, and marked `writeOnly` in the document."""

NOT_BLANK: JsonDict = {"pattern": "[^\\s\\x1c-\\x1f\\x85]|\ufeff"}
"""What the document says of a text that has to say something. As all that is said this way, it is not checked
by the shape: the refusal that is worth reading is made where the rule is."""

ADDRESS: JsonDict = {"pattern": r"^[Hh][Tt][Tt][Pp][Ss]?://[^\s/?#]"}
"""What the document says of an http or https address with a host."""

Milliseconds = Annotated[int, Field(description="Unix milliseconds.")]


class Request(BaseModel):
    """A shape that is sent to the API: nothing is coerced, nothing unknown is let through.

    `elsewhere` has fields that people put here, and what to do instead; of a field that is accepted, what to do
    instead of a value that is not.
    """

    elsewhere: ClassVar[dict[str, str]] = {}
    model_config = ConfigDict(strict=True, extra="forbid", defer_build=True, hide_input_in_errors=True)

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        # Anything that was sent may be a secret: what is there is told by its names.
        return [(None, name) for name in type(self).model_fields if name in self.model_fields_set]


class Response(BaseModel):
    """A shape the API answers with."""

    model_config = ConfigDict(extra="forbid", defer_build=True)


class ErrorBody(Response):
    """Why a request was refused."""

    code: Literal[
        "invalid_request",
        "context_length_exceeded",
        "authentication_error",
        "permission_denied",
        "not_found",
        "method_not_allowed",
        "conflict",
        "queue_full",
        "rate_limit_exceeded",
        "project_limit_exceeded",
        "internal_error",
        "sandbox_error",
        "workspace_recovery_failed",
        "bridge_incompatible",
        "provider_error",
        "provider_unauthorized",
        "sandbox_unavailable",
        "directory_unavailable",
    ] = Field(description="What kind of refusal this is. Branch on it, not on the message.")
    message: str = Field(description="What is wrong and what to do about it.")
    request_id: str = Field(pattern="^[0-9a-f]{8}$", description="The same value as the x-request-id header.")


class Error(Response):
    """Every refusal has this shape and nothing beside it."""

    error: ErrorBody


class Page(Response, Generic[T]):
    """A page of a list."""

    object: Literal["list"]
    data: list[T]
    has_more: bool = Field(description="Whether another page follows.")
    last_id: str | None = Field(description="The cursor to send as `after` for the next page.")


class Deleted(Response):
    """What a delete answers, beside the `object` that each kind names for itself."""

    id: str
    deleted: Literal[True]


def _as_bytes(schema: dict[str, Any]) -> None:
    """Make the schema of an object that of bytes: what they are of is for no schema to say."""
    description = schema["description"]
    schema.clear()
    schema.update(type="string", format="binary", description=description)


class Bytes(Response):
    """Bytes as they are, whatever their type."""

    model_config = ConfigDict(defer_build=True, json_schema_extra=_as_bytes)


class OpenApiDocument(Response):
    """An OpenAPI document."""

    model_config = ConfigDict(extra="allow", defer_build=True)

    openapi: str
    info: dict[str, Any]
    paths: dict[str, Any]


class Health(Response):
    """What a token is good for."""

    object: Literal["health"]
    status: Literal["ok"]
    version: Literal["v1"]
    scopes: list[str] = Field(description="What the token may do.")
    usable: bool = Field(description="False for a token that every other route refuses.")
    missing_scopes: list[str] = Field(description="What to mint instead, for a token that is not usable.")
