"""The operation table: what the API can do, each operation declared once.

Routing, scope checks, refusals of unknown parameters, `Allow`, the OpenAPI document, the journal's
allowlist and the contract tests all follow from it (contract §4).
"""

from __future__ import annotations

from typing import Final

from emulator.api.operation import Operation
from emulator.api.tables import organization, sessions, workspace

__all__ = ["OPERATIONS", "Operation"]

OPERATIONS: Final[tuple[Operation, ...]] = (
    *sessions.OPERATIONS,
    *workspace.OPERATIONS,
    *organization.OPERATIONS,
)
