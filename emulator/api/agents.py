"""Saved agents, and the same under their older name, environment templates (contract §12)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from emulator import render
from emulator.api.call import Reply
from emulator.api.tools import tool_set
from emulator.domain.catalogue import SavedAgent, slug
from emulator.domain.pages import cut_by_id

if TYPE_CHECKING:
    from collections.abc import Callable

    from emulator.api.call import Call
    from emulator.wire import agents as wire

_AGENT: Final = "/v1/agents/{agent_id}"
_TEMPLATE: Final = "/v1/environment-templates/{template_id}"
_TEMPLATE_WORDS: Final = "environment template"


async def create_agent(call: Call) -> Reply:
    """Save an agent; one of the same name is replaced whole and keeps its id."""
    return Reply(render.agent(_save(call, _AGENT), call.world.settings.disabled_tools))


async def list_agents(call: Call) -> Reply:
    """A page of the organization's agents, newest first."""
    return _page(call, render.agent)


async def get_agent(call: Call) -> Reply:
    """Read one agent."""
    agent = call.organization.agents.get(call.path["agent_id"])
    return Reply(render.agent(agent, call.world.settings.disabled_tools))


async def delete_agent(call: Call) -> Reply:
    """Forget an agent. Sessions made from it stay as they are."""
    agent_id = call.path["agent_id"]
    call.organization.agents.remove(agent_id)
    return Reply(render.deleted("agent", agent_id))


async def create_template(call: Call) -> Reply:
    """Save an agent under its older name. Use POST /v1/agents instead."""
    return Reply(render.environment_template(_save(call, _TEMPLATE), call.world.settings.disabled_tools))


async def list_templates(call: Call) -> Reply:
    """A page of the organization's agents under their older name. Use GET /v1/agents instead."""
    return _page(call, render.environment_template)


async def get_template(call: Call) -> Reply:
    """Read one agent under its older name. Use GET /v1/agents/{agent_id} instead."""
    agent = call.organization.agents.get(call.path["template_id"], _TEMPLATE_WORDS)
    return Reply(render.environment_template(agent, call.world.settings.disabled_tools))


async def delete_template(call: Call) -> Reply:
    """Forget an agent under its older name. Use DELETE /v1/agents/{agent_id} instead."""
    template_id = call.path["template_id"]
    call.organization.agents.remove(template_id, _TEMPLATE_WORDS)
    return Reply(render.deleted("environment_template", template_id))


def _save(call: Call, delete_path: str) -> SavedAgent:
    body: wire.AgentCreateRequest = call.body
    organization = call.organization
    agent = SavedAgent(
        id="",
        name=slug(body.name),
        created_at=call.world.now(),
        model=body.model,
        model_credential_id=body.model_credential_id,
        instructions=body.instructions or None,
        tools=tool_set(body.tools, body.text, "tools"),
        request_id=call.request_id,
    )
    if agent.model is not None or agent.model_credential_id is not None:
        organization.connections.choose(agent.model, agent.model_credential_id, "")
    return organization.agents.save(agent, delete_path)


def _page(call: Call, render_one: Callable[[SavedAgent, tuple[str, ...]], dict[str, Any]]) -> Reply:
    page = cut_by_id(call.organization.agents.listed, **call.paging)
    disabled = call.world.settings.disabled_tools
    return Reply(render.page(page, lambda agent: render_one(agent, disabled)))
