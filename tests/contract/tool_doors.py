"""The doors a tool set comes in by, which share every rule (contract §5).

`PUT …/tools` takes it as `tools`, the creation of a session as `agent.tools`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from tests.support import Answer, Api

FUNCTION: Final[dict[str, Any]] = {"type": "function", "name": "lookup_order"}
SERVER: Final[dict[str, Any]] = {"type": "mcp", "name": "docs", "url": "https://mcp.example.com/mcp"}
PROCESS: Final[dict[str, Any]] = {"type": "mcp", "name": "notes", "command": "notes-server"}
BUILT_INS: Final = ("web_search", "web_fetch", "image_search", "browse", "browser_act", "screenshot")


@dataclass(frozen=True)
class Door:
    """One way in. `prefix` stands before every field path in a refusal."""

    verb: str
    prefix: str

    def send(self, api: Api, **configuration: Any) -> Answer:
        """Send a configuration: `tools`, `text` or whatever a test has in mind."""
        if self.prefix:
            return api.post("/v1/sessions", {"agent": configuration})
        return api.put(f"/v1/sessions/{api.session()}/tools", configuration)

    def configured(self, api: Api, **configuration: Any) -> dict[str, Any]:
        """The `session.tools` object after a configuration that must be taken."""
        answer = self.send(api, **configuration)
        assert answer.status == (201 if self.prefix else 200), answer.raw
        session_id = answer.json["id" if self.prefix else "session_id"]
        read: dict[str, Any] = api.get(f"/v1/sessions/{session_id}/tools").json
        return read

    def refused(self, api: Api, **configuration: Any) -> str:
        """The message a configuration is refused with, its paths less the prefix of this door."""
        answer = self.send(api, **configuration)
        assert (answer.status, answer.json["error"].get("code")) == (400, "invalid_request"), answer.raw
        if not self.prefix:
            return answer.message
        assert f"`{self.prefix}" in answer.message, answer.message
        return answer.message.replace(f"`{self.prefix}", "`")

    def __str__(self) -> str:
        return self.verb


PUT: Final = Door("PUT", "")
POST: Final = Door("POST", "agent.")

DOORS: Final = (PUT, POST)

at_both_doors: Final = pytest.mark.parametrize("door", DOORS, ids=str)


def put(api: Api, session_id: str, *tools: dict[str, Any]) -> Answer:
    """Replace a session's tools, which must work."""
    answer = api.put(f"/v1/sessions/{session_id}/tools", {"tools": list(tools)})
    assert answer.status == 200, answer.raw
    return answer


def read(api: Api, session_id: str) -> dict[str, Any]:
    """A session's tools as they are read back."""
    configuration: dict[str, Any] = api.get(f"/v1/sessions/{session_id}/tools").json
    return configuration


def without(entry: dict[str, Any], *names: str) -> dict[str, Any]:
    """An entry less some of its fields."""
    return {key: value for key, value in entry.items() if key not in names}
