"""A bare server with three models, as anybody would write it: the floor of a start."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, Field
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

if TYPE_CHECKING:
    from starlette.requests import Request


class Tool(BaseModel):
    """Something the agent can call."""

    type: Literal["function"]
    name: str = Field(min_length=1, max_length=64)
    description: str | None = None


class Agent(BaseModel):
    """Who answers."""

    model: str
    tools: list[Tool] = []


class Session(BaseModel):
    """A conversation."""

    title: str | None = None
    agent: Agent


async def models(request: Request) -> JSONResponse:
    """The names of the models."""
    return JSONResponse([model.__name__ for model in (Tool, Agent, Session)])


async def create(request: Request) -> JSONResponse:
    """Take a session and give it back."""
    return JSONResponse(Session.model_validate_json(await request.body()).model_dump(), status_code=201)


app = Starlette(routes=[Route("/models", models), Route("/sessions", create, methods=["POST"])])
