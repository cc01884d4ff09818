"""The scenario and the MCP servers: what is scripted by data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from emulator.domain.outages import plan_of
from emulator.domain.servers import Unusable
from emulator.redaction import scrub
from emulator.refusals import invalid, not_found
from emulator.runtime.outages import Scripted
from emulator.scenario_source import path_of

if TYPE_CHECKING:
    from emulator.control.call import Call
    from emulator.domain.outages import CallEntry, ServerPlan
    from emulator.wire import control as wire
    from emulator.wire.servers import McpServer


async def get_scenario(call: Call) -> Any:
    """The scenario in place, as JSON; 404 when there is none. Python agents are not part of it."""
    scenario = call.deployment.script.scenario
    if scenario is None:
        raise not_found("No scenario is loaded. Load one with PUT /_emulator/scenario.")
    return scenario.document


async def put_scenario(call: Call) -> Any:
    """Put a scenario in place of the present one. A bad one changes nothing; a running turn keeps its script."""
    from emulator.recording import load
    from emulator.scenario_source import ScenarioError

    try:
        loaded = load(call.body.model_extra)
    except ScenarioError as error:
        raise invalid(scrub(str(error))) from None
    call.deployment.load(loaded)
    return loaded.document


async def delete_scenario(call: Call) -> Any:
    """Take the scenario away, with the outages it brought, if there is one."""
    call.deployment.unload()
    return {"status": "ok"}


async def get_servers(call: Call) -> Any:
    """What every server that something was scripted for meets next."""
    return {"servers": {name: _shown(ahead) for name, ahead in call.deployment.outages.scripted.items()}}


async def put_server(call: Call) -> Any:
    """Script how a server's connects and calls go from the next one on. One that is connected stays connected."""
    body: wire.ServerRequest = call.body
    plan = read_plan(body)
    return _shown(call.deployment.outages.plan(call.path["server"], plan))


def read_plan(body: McpServer) -> ServerPlan:
    """What was sent of a server. Raises 400 for what does not go together, and for nothing at all."""
    written = body.written()
    if not written:
        raise invalid(f"Send what is to happen: at least one of {', '.join(type(body).model_fields)}.")
    try:
        return plan_of(written)
    except Unusable as unusable:
        raise invalid(f"`{path_of(unusable.where)}` {unusable.text}.") from None


async def delete_server(call: Call) -> Any:
    """Forget what was scripted for a server: it is as its description says."""
    call.deployment.outages.clear(call.path["server"])
    return _shown(Scripted())


def _shown(ahead: Scripted) -> dict[str, Any]:
    connect = ahead.next_connect
    return {
        "state": "up" if connect.failure is None else "down",
        "reason": connect.failure,
        "times": ahead.times,
        "fault": connect.fault,
        "seconds": connect.takes,
        "connects": len(ahead.connects),
        "calls": [_call(entry) for entry in ahead.calls],
        "tools": None if ahead.tools is None else list(ahead.tools),
    }


def _call(entry: CallEntry) -> dict[str, Any]:
    text = None if entry.takes is None else entry.failure
    return {"fault": entry.fault or "ok", "tool": entry.tool, "seconds": entry.takes, "text": text}
