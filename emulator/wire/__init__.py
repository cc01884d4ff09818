"""The wire: shapes of requests and responses, as pydantic models without behaviour.

Making models takes time, so a table of operations names its shapes and they are made when first used.
"""

from __future__ import annotations

from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import BaseModel


class Named:
    """A shape by its module and name: `tools.ToolsRequest`."""

    def __init__(self, path: str) -> None:
        self.path = path

    @cached_property
    def model(self) -> type[BaseModel]:
        """The shape itself. Raises `AttributeError` for a name that is not there."""
        module, _, name = self.path.partition(".")
        model: type[BaseModel] = getattr(import_module(f"emulator.wire.{module}"), name)
        return model
