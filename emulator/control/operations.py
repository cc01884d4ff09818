"""The table of control operations, each declared once.

Routing, `Allow`, `GET /_emulator/openapi.json` and the calls from within the process follow from it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from emulator.api.parse import Parameter
from emulator.control import actions, faults, records, script, served, webhooks, world
from emulator.wire import Named

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from emulator.control.call import Call


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One control operation. `open`: needs no control token. `optional`: an absent body is an empty one.

    The rest is what `api.routes` and `api.openapi` look at in an operation: these have no scopes, no
    streams and no idempotency keys.
    """

    verb: str
    path: str
    summary: str
    handler: Callable[[Call], Awaitable[Any]]
    response: Named
    status: int = 200
    also: int | None = None
    media: str = "application/json"
    refusals: tuple[str, ...] = ("invalid_request", "not_found", "conflict", "internal_error")
    request: Named | None = None
    query: tuple[Parameter, ...] = ()
    open: bool = False
    optional: bool = False
    scopes: tuple[str, ...] = ()
    public: bool = True
    stream: bool = False
    deprecated: bool = False
    writes: bool = False
    instead: Mapping[str, str] = field(default_factory=dict)


_SESSION: Final = Parameter("session_id", "text", "Only this session.")

OPERATIONS: Final[tuple[Operation, ...]] = (
    Operation(
        verb="GET",
        path="/_emulator/health",
        summary="Check that the emulator serves",
        handler=world.get_health,
        response=Named("control.Alive"),
        open=True,
    ),
    Operation(
        verb="POST",
        path="/_emulator/reset",
        summary="Start over",
        handler=world.reset,
        response=Named("control.Done"),
    ),
    Operation(
        verb="GET",
        path="/_emulator/scenario",
        summary="Read the scenario",
        handler=script.get_scenario,
        response=Named("control.ScenarioDocument"),
    ),
    Operation(
        verb="PUT",
        path="/_emulator/scenario",
        summary="Load a scenario, or a recording",
        handler=script.put_scenario,
        request=Named("control.PlayedDocument"),
        response=Named("control.ScenarioDocument"),
    ),
    Operation(
        verb="DELETE",
        path="/_emulator/scenario",
        summary="Unload the scenario",
        handler=script.delete_scenario,
        response=Named("control.Done"),
    ),
    Operation(
        verb="GET",
        path="/_emulator/mcp",
        summary="Read what is scripted for MCP servers",
        handler=script.get_servers,
        response=Named("control.Servers"),
    ),
    Operation(
        verb="PUT",
        path="/_emulator/mcp/{server}",
        summary="Script an MCP server's connects and calls",
        handler=script.put_server,
        request=Named("control.ServerRequest"),
        response=Named("control.Server"),
    ),
    Operation(
        verb="DELETE",
        path="/_emulator/mcp/{server}",
        summary="Forget what was scripted for an MCP server",
        handler=script.delete_server,
        response=Named("control.Server"),
    ),
    Operation(
        verb="PUT",
        path="/_emulator/mcp/{server}/served",
        summary="Serve an MCP server",
        handler=served.put_served,
        request=Named("served.ServedPlan"),
        optional=True,
        response=Named("served.Serving"),
    ),
    Operation(
        verb="GET",
        path="/_emulator/mcp/{server}/served",
        summary="Read what a served MCP server was sent",
        handler=served.get_served,
        response=Named("served.Served"),
    ),
    Operation(
        verb="DELETE",
        path="/_emulator/mcp/{server}/served",
        summary="Serve an MCP server no longer",
        handler=served.delete_served,
        response=Named("served.Serving"),
    ),
    Operation(
        verb="GET",
        path="/_emulator/faults",
        summary="Read the HTTP faults",
        handler=faults.get_faults,
        response=Named("faults.FaultList"),
    ),
    Operation(
        verb="POST",
        path="/_emulator/faults",
        summary="Have requests go wrong",
        handler=faults.post_fault,
        request=Named("faults.FaultRequest"),
        response=Named("faults.Fault"),
        status=201,
    ),
    Operation(
        verb="DELETE",
        path="/_emulator/faults",
        summary="Forget the HTTP faults",
        handler=faults.delete_faults,
        response=Named("faults.FaultList"),
    ),
    Operation(
        verb="DELETE",
        path="/_emulator/faults/{fault_id}",
        summary="Forget one HTTP fault",
        handler=faults.delete_fault,
        response=Named("faults.Fault"),
    ),
    Operation(
        verb="GET",
        path="/_emulator/clock",
        summary="Read the clock",
        handler=world.get_clock,
        response=Named("control.Now"),
    ),
    Operation(
        verb="POST",
        path="/_emulator/clock/advance",
        summary="Move the clock forward",
        handler=world.advance_clock,
        request=Named("control.Advance"),
        response=Named("control.Now"),
    ),
    Operation(
        verb="POST",
        path="/_emulator/tokens",
        summary="Mint an access token",
        handler=world.mint_token,
        request=Named("control.TokenRequest"),
        response=Named("control.MintedToken"),
        status=201,
        optional=True,
    ),
    Operation(
        verb="DELETE",
        path="/_emulator/tokens/{token_id}",
        summary="Revoke an access token",
        handler=world.revoke_token,
        response=Named("control.RevokedToken"),
    ),
    Operation(
        verb="GET",
        path="/_emulator/settings",
        summary="Read the settings",
        handler=world.get_settings,
        response=Named("control.SettingsDocument"),
    ),
    Operation(
        verb="PATCH",
        path="/_emulator/settings",
        summary="Change settings",
        handler=world.patch_settings,
        request=Named("control.SettingsChange"),
        response=Named("control.SettingsDocument"),
    ),
    Operation(
        verb="GET",
        path="/_emulator/exploration",
        summary="Read what this run can be explored with",
        handler=world.get_exploration,
        response=Named("control.Exploration"),
    ),
    Operation(
        verb="GET",
        path="/_emulator/requests",
        summary="Read the journal of requests",
        handler=records.get_requests,
        response=Named("control.Requests"),
    ),
    Operation(
        verb="GET",
        path="/_emulator/events",
        summary="Read the persisted events",
        handler=records.get_events,
        response=Named("control.Events"),
        query=(_SESSION,),
    ),
    Operation(
        verb="GET",
        path="/_emulator/transcript",
        summary="Read a whole transcript",
        handler=records.get_transcript,
        response=Named("control.TranscriptRead"),
        query=(Parameter("session_id", "text", "Whose; the session created last when absent."),),
    ),
    Operation(
        verb="GET",
        path="/_emulator/timeline",
        summary="Read requests and events in the order they happened",
        handler=records.get_timeline,
        response=Named("control.TimelineRead"),
        query=(_SESSION,),
    ),
    Operation(
        verb="POST",
        path="/_emulator/settle",
        summary="Wait for the agent to come to rest",
        handler=world.settle,
        request=Named("control.SettleRequest"),
        response=Named("control.AtRest"),
        optional=True,
    ),
    Operation(
        verb="POST",
        path="/_emulator/actions",
        summary="Answer the only open approval or question",
        handler=actions.decide,
        request=Named("control.Decision"),
        response=Named("control.DecidedCall"),
    ),
    Operation(
        verb="POST",
        path="/_emulator/actions/{call_id}",
        summary="Answer an approval or a question, or lose a call",
        handler=actions.decide_call,
        request=Named("control.CallDecision"),
        response=Named("control.DecidedCall"),
    ),
    Operation(
        verb="POST",
        path="/_emulator/sessions/{session_id}/lose",
        summary="Lose the calls a session is parked on",
        handler=actions.lose_calls,
        response=Named("control.LostCalls"),
    ),
    Operation(
        verb="GET",
        path="/_emulator/sessions/{session_id}/tools",
        summary="Read what a session's agent can reach",
        handler=actions.get_effective_tools,
        response=Named("control.EffectiveTools"),
    ),
    Operation(
        verb="GET",
        path="/_emulator/webhooks/deliveries",
        summary="Read the webhook deliveries",
        handler=webhooks.get_deliveries,
        response=Named("deliveries.Deliveries"),
    ),
    Operation(
        verb="POST",
        path="/_emulator/webhooks/deliveries/{delivery_id}/redeliver",
        summary="Send a webhook delivery again",
        handler=webhooks.redeliver,
        response=Named("deliveries.Delivery"),
    ),
    Operation(
        verb="GET",
        path="/_emulator/webhooks/script",
        summary="Read what is scripted for deliveries",
        handler=webhooks.get_script,
        response=Named("deliveries.Missteps"),
    ),
    Operation(
        verb="PUT",
        path="/_emulator/webhooks/script",
        summary="Have the next deliveries go wrong",
        handler=webhooks.put_script,
        request=Named("deliveries.MisstepsRequest"),
        response=Named("deliveries.Missteps"),
    ),
    Operation(
        verb="DELETE",
        path="/_emulator/webhooks/script",
        summary="Forget what was scripted for deliveries",
        handler=webhooks.delete_script,
        response=Named("deliveries.Missteps"),
    ),
    Operation(
        verb="GET",
        path="/_emulator/report",
        summary="Read what is left over",
        handler=records.get_report,
        response=Named("report.Report"),
    ),
    Operation(
        verb="GET",
        path="/_emulator/openapi.json",
        summary="Retrieve this document",
        handler=records.get_openapi,
        response=Named("common.OpenApiDocument"),
    ),
)
