"""Shape: what the shapes of a scenario file have in common.

Law: nothing is converted, no key is let through that is unknown, and a key that is there has a value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue
from pydantic_core import PydanticCustomError

if TYPE_CHECKING:
    from pydantic import GetJsonSchemaHandler
    from pydantic.json_schema import JsonSchemaValue
    from pydantic_core import CoreSchema

_Value = TypeVar("_Value")


def _given(value: Any) -> Any:
    # A key with nothing behind it is a slip of the pen in YAML, and must not read as "left out".
    if value is None:
        raise PydanticCustomError("null", "has no value")
    return value


class _NeverNull:
    """Keeps null out of the JSON Schema too: `None` only stands for what was left out."""

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        made = handler(schema)
        kept = [one for one in made.get("anyOf", ()) if one != {"type": "null"}]
        return kept[0] if len(kept) == 1 else made | {"anyOf": kept} if kept else made


Maybe = Annotated[_Value | None, BeforeValidator(_given), _NeverNull()]
Text = Annotated[str, Field(min_length=1)]
Name = Annotated[str, Field(min_length=1, max_length=64)]
Object = dict[str, JsonValue]


class Shape(BaseModel):
    """The base of every shape of a scenario."""

    model_config = ConfigDict(strict=True, extra="forbid", defer_build=True)


_Some = TypeVar("_Some", bound=Shape)


def not_empty(shape: _Some) -> _Some:
    """The shape, if anything was written in it."""
    if not shape.model_fields_set:
        raise PydanticCustomError("nothing_given", "is empty")
    return shape


def keys_of(shape: type[Shape]) -> list[str]:
    """The keys a shape accepts, as they are written in a file."""
    return [field.alias or name for name, field in shape.model_fields.items()]
