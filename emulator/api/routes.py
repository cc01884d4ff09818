"""Routes: from a path to what the operation table has there."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from emulator.api.parse import segments
from emulator.refusals import Refusal, invalid, not_found

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class Routed(Protocol):
    """What routing looks at in an operation."""

    @property
    def verb(self) -> str: ...
    @property
    def path(self) -> str: ...
    @property
    def instead(self) -> Mapping[str, str]: ...


Operation = TypeVar("Operation", bound=Routed)


@dataclass(slots=True)
class _Node(Generic[Operation]):
    names: dict[str, _Node[Operation]] = field(default_factory=dict)
    any: _Node[Operation] | None = None
    any_name: str = ""
    operations: dict[str, Operation] = field(default_factory=dict)
    instead: dict[str, str] = field(default_factory=dict)


class Routes(Generic[Operation]):
    """The paths of a table of operations, as a tree of segments."""

    def __init__(self, operations: Iterable[Operation]) -> None:
        self._root: _Node[Operation] = _Node()
        for operation in operations:
            node = self._node(operation.path)
            node.operations[operation.verb] = operation
            node.instead.update(operation.instead)

    def _node(self, path: str) -> _Node[Operation]:
        node = self._root
        for segment in path.split("/")[1:]:
            if segment.startswith("{"):
                node.any = node.any or _Node()
                node.any_name = segment[1:-1]
                node = node.any
            else:
                node = node.names.setdefault(segment, _Node())
        return node

    def verbs(self, raw_path: bytes) -> tuple[str, ...]:
        """The verbs a raw path takes; none where there is no such path."""
        try:
            self.find("", raw_path)
        except Refusal as refused:
            return tuple(filter(None, refused.headers.get("Allow", "").split(", ")))
        return ()

    def find(self, verb: str, raw_path: bytes) -> tuple[Operation, dict[str, str]]:
        """The operation of a verb and a raw path, with the path's parameters.

        Raises 404 for a path that is not there, then 405 with `Allow` for a verb that is not.
        """
        node: _Node[Operation] | None = self._root
        values: dict[str, str] = {}
        for segment in segments(raw_path) or ("",):
            assert node is not None
            child = node.names.get(segment)
            if child is None and segment and node.any is not None:
                values[node.any_name] = segment
                child = node.any
            node = child
            if node is None:
                break
        if node is None or not node.operations:
            raise not_found("There is no such endpoint. GET /v1/openapi.json lists them.")
        operation = node.operations.get(verb)
        if operation is not None:
            return operation, values
        if verb in node.instead:
            raise invalid(node.instead[verb])
        allowed = ", ".join(node.operations)
        raise Refusal("method_not_allowed", f"This path takes {allowed}.", headers={"Allow": allowed})
