"""Served MCP servers: serving a description for real, and what it was sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from emulator.control.script import read_plan
from emulator.domain.outages import ServerPlan
from emulator.refusals import invalid, not_found

if TYPE_CHECKING:
    from emulator.control.call import Call
    from emulator.runtime.served import Kept, ServedServer
    from emulator.wire import served as wire

# As long as a declared server's name may be.
_LONGEST: Final = 64


async def put_served(call: Call) -> Any:
    """Serve an MCP server, or change one that is served: its tools, and what it does wrong on the wire."""
    body: wire.ServedPlan = call.body
    name = call.path["server"]
    if len(name) > _LONGEST:
        raise invalid(f"The name of an MCP server has at most {_LONGEST} characters; {len(name)} were sent.")
    plan = read_plan(body) if body.written() else ServerPlan()
    for at, entry in [("", plan.standing), *((f"script[{n}].", entry) for n, entry in enumerate(plan.connects or ()))]:
        if entry is not None and entry.reason is not None:
            raise invalid(f"`{at}reason` is not for a server that is served: who connects finds its own words.")
    served = call.deployment.served
    server = served.find(name)
    if server is None:
        server = served.serve(name)
        # Until it is said otherwise, what a scenario says the simulated one has.
        server.offer(call.deployment.described(name) or {})
    server.plan(plan)
    return _serving(call, server)


async def get_served(call: Call) -> Any:
    """What a served server was sent, credentials included, as long as it is served."""
    server = _server(call)
    return {**_serving(call, server), "requests": _kept(server.requests), "calls": _kept(server.calls)}


async def delete_served(call: Call) -> Any:
    """Serve an MCP server no longer. Its records go with it."""
    server = _server(call)
    call.deployment.served.stop(server.name)
    return _serving(call, server)


def _server(call: Call) -> ServedServer:
    name = call.path["server"]
    server = call.deployment.served.find(name)
    if server is None:
        raise not_found(f"No MCP server {name!r} is served. Serve it with PUT /_emulator/mcp/{{server}}/served.")
    return server


def _serving(call: Call, server: ServedServer) -> dict[str, Any]:
    return {"server": server.name, "url": call.deployment.served.address(server.name), "tools": list(server.tools)}


def _kept(records: Kept[Any]) -> dict[str, Any]:
    return {"data": [record.as_json() for record in records], "dropped": records.dropped}
