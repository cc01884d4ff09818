"""The scenario and the MCP servers: what is scripted by data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from emulator.redaction import scrub
from emulator.refusals import invalid, not_found
from emulator.runtime.outages import Condition
from emulator.runtime.tool_server import FETCH_FAILED

if TYPE_CHECKING:
    from emulator.control.call import Call
    from emulator.wire import control as wire


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
    """The condition of every server that something was scripted for."""
    return {"servers": {name: _shown(one) for name, one in call.deployment.outages.conditions().items()}}


async def put_server(call: Call) -> Any:
    """Script how a server answers connects from the next one on. One that is connected stays connected."""
    body: wire.ServerRequest = call.body
    outages, name = call.deployment.outages, call.path["server"]
    if (body.state is None) == (body.script is None):
        sent = "neither was" if body.state is None else "both were"
        raise invalid(f"Send exactly one of `state` and `script`; {sent} sent.")
    if body.script is not None:
        outages.script(name, [_condition(entry, f"script[{n}]") for n, entry in enumerate(body.script)])
    else:
        outages.set(name, _condition(body, ""))
    return _shown(outages.conditions()[name])


async def delete_server(call: Call) -> Any:
    """Forget what was scripted for a server: it can be reached again."""
    call.deployment.outages.clear(call.path["server"])
    return _shown(Condition("up"))


def _condition(sent: wire.ServerRequest | wire.Connect, at: str) -> Condition:
    if sent.state == "up":
        for name in ("reason", "times", "script"):
            if getattr(sent, name, None) is not None:
                raise invalid(f"`{at}{at and '.'}{name}` goes with `state: down`; `up` was sent.")
        return Condition("up")
    return Condition("down", sent.reason or FETCH_FAILED, getattr(sent, "times", None))


def _shown(condition: Condition) -> dict[str, Any]:
    if condition.state == "up":
        return {"state": "up", "reason": None, "times": None}
    return {"state": "down", "reason": condition.reason, "times": condition.times}
