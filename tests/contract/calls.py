"""The operations as the contract lists them, written out once more: tests hold the served table against this one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tests.support import Answer, Api

ALL_SCOPES: Final = (
    "cli",
    "sessions:read",
    "sessions:write",
    "tools:respond",
    "artifacts:read",
    "credentials:write",
)
"""In the order the API lists them."""


@dataclass(frozen=True)
class Known:
    """One row of contract §4. No scope: any valid token, or, where it is `public`, none. `also`: another success.
    `optional`: no body is an empty one."""

    verb: str
    path: str
    scope: str | None
    status: int = 200
    body: Mapping[str, Any] | None = None
    public: bool = False
    stream: bool = False
    optional: bool = False
    also: int | None = None
    query: str = ""
    media: str = "application/json"

    def __str__(self) -> str:
        return f"{self.verb} {self.path}"

    @property
    def writes(self) -> bool:
        return self.verb != "GET"


def _events(**event: Any) -> dict[str, Any]:
    return {"events": [event]}


CALLS: Final = (
    Known("GET", "/v1/health", None),
    Known("GET", "/v1/openapi.json", None, public=True),
    Known("GET", "/v1/sessions", "sessions:read"),
    Known("POST", "/v1/sessions", "sessions:write", 201, {}),
    Known("GET", "/v1/sessions/{session_id}", "sessions:read"),
    Known("PATCH", "/v1/sessions/{session_id}", "sessions:write", 200, {"title": "new"}),
    Known("DELETE", "/v1/sessions/{session_id}", "sessions:write"),
    Known("GET", "/v1/sessions/{session_id}/turns", "sessions:read"),
    Known("GET", "/v1/sessions/{session_id}/turns/{turn_id}", "sessions:read"),
    Known("GET", "/v1/sessions/{session_id}/items", "sessions:read"),
    Known("POST", "/v1/sessions/{session_id}/fork", "sessions:write", 201),
    Known("GET", "/v1/sessions/{session_id}/usage", "sessions:read"),
    Known("POST", "/v1/sessions/{session_id}/preview", "sessions:write", 201, {}, optional=True, also=200),
    Known("DELETE", "/v1/sessions/{session_id}/preview", "sessions:write"),
    Known("PUT", "/v1/sessions/{session_id}/tools", "sessions:write", 200, {"tools": []}),
    Known("GET", "/v1/sessions/{session_id}/tools", "sessions:read"),
    Known("GET", "/v1/sessions/{session_id}/events", "sessions:read", stream=True),
    Known(
        "POST",
        "/v1/sessions/{session_id}/events",
        "sessions:write",
        202,
        _events(type="input.message", content="hello"),
    ),
    Known("GET", "/v1/events", "sessions:read", stream=True),
    Known("POST", "/v1/sessions/{session_id}/files", "sessions:write", 200, {"files": [{"path": "a.txt", "data": ""}]}),
    Known("GET", "/v1/sessions/{session_id}/files", "sessions:read"),
    Known("GET", "/v1/sessions/{session_id}/files/content", "sessions:read", query="?path=outputs/hello.txt"),
    Known("POST", "/v1/sessions/{session_id}/files/refresh", "sessions:write"),
    Known("GET", "/v1/sessions/{session_id}/artifacts", "artifacts:read"),
    Known("GET", "/v1/sessions/{session_id}/artifacts/archive", "artifacts:read", media="application/x-tar"),
    Known("GET", "/v1/sessions/{session_id}/artifacts/{artifact_id}", "artifacts:read"),
    Known("DELETE", "/v1/sessions/{session_id}/artifacts/{artifact_id}", "sessions:write"),
    Known("GET", "/v1/sessions/{session_id}/artifacts/{artifact_id}/content", "artifacts:read", media="*/*"),
    Known("POST", "/v1/agents", "sessions:write", 201, {"name": "reviewer", "instructions": "Read only."}),
    Known("GET", "/v1/agents", "sessions:read"),
    Known("GET", "/v1/agents/{agent_id}", "sessions:read"),
    Known("DELETE", "/v1/agents/{agent_id}", "sessions:write"),
    Known("POST", "/v1/environment-templates", "sessions:write", 201, {"name": "reviewer", "tools": []}),
    Known("GET", "/v1/environment-templates", "sessions:read"),
    Known("GET", "/v1/environment-templates/{template_id}", "sessions:read"),
    Known("DELETE", "/v1/environment-templates/{template_id}", "sessions:write"),
    Known("GET", "/v1/environment-profiles", "sessions:read"),
    Known("GET", "/v1/model-connectors", None, public=True),
    Known("POST", "/v1/model-credentials", "credentials:write", 201, {"key": "sk-ant-api03-x9f2"}, also=200),
    Known("GET", "/v1/model-credentials", "sessions:read"),
    Known("DELETE", "/v1/model-credentials/{credential_id}", "credentials:write"),
    Known("POST", "/v1/webhooks", "sessions:write", 201, {"url": "https://you.example.com/hooks"}),
    Known("GET", "/v1/webhooks", "sessions:read"),
    Known("DELETE", "/v1/webhooks/{webhook_id}", "sessions:write"),
)

OF_A_SESSION: Final = tuple(known for known in CALLS if "{session_id}" in known.path)
GONE_WITH_A_SESSION: Final = tuple(known for known in OF_A_SESSION if "{artifact_id}" not in known.path)
WITH_A_BODY: Final = tuple(known for known in CALLS if known.body is not None)
WITH_JSON: Final = tuple(known for known in CALLS if known.media == "application/json" and not known.stream)
WITH_A_TOKEN: Final = tuple(known for known in CALLS if not known.public)
WITH_A_SCOPE: Final = tuple(known for known in CALLS if known.scope is not None)


@dataclass(frozen=True)
class Place:
    """The ids that paths are filled with: by default of things that do not exist."""

    session_id: str = "00000000-0000-4000-8000-000000000000"
    turn_id: str = "turn_0000000000000000"
    agent_id: str = "agt_0000000000000000"
    credential_id: str = "cred_0000000000000000"
    artifact_id: str = "art_0000000000000000"
    webhook_id: str = "whsub_0000000000000000"

    def fill(self, path: str) -> str:
        return path.format(
            session_id=self.session_id,
            turn_id=self.turn_id,
            agent_id=self.agent_id,
            template_id=self.agent_id,
            credential_id=self.credential_id,
            artifact_id=self.artifact_id,
            webhook_id=self.webhook_id,
        )


NOWHERE: Final = Place()


def place(api: Api) -> Place:
    """A session with a turn, an agent and a model connection, to call the operations on."""
    session_id = api.session({"input": "Write /workspace/outputs/hello.txt, then call preview(3000)."})
    artifacts = api.get(f"/v1/sessions/{session_id}/artifacts").json["data"]
    return Place(
        session_id,
        api.turns(session_id)[0]["id"],
        agent_id=api.post("/v1/agents", {"name": "place", "instructions": "Be brief."}).json["id"],
        credential_id=api.get("/v1/model-credentials").json["data"][0]["id"],
        artifact_id=artifacts[0]["id"] if artifacts else Place.artifact_id,
        webhook_id=api.post("/v1/webhooks", {"url": "https://place.example.com/hooks"}).json["id"],
    )


def call(api: Api, known: Known, where: Place = NOWHERE, query: str = "", **options: Any) -> Answer:
    """Call an operation with a body that suits it. Not for a stream that opens."""
    body = options.pop("body", known.body)
    return api.request(known.verb, where.fill(known.path) + (query or known.query), body, **options)


def mint(api: Api, *scopes: str, organization: str | None = None) -> str:
    """The text of a new token; with no scopes named it has all but cli."""
    wanted: Iterable[str] | None = scopes or None
    return api.emulator.tokens.mint(scopes=wanted, organization=organization).token
