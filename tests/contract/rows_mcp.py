"""MCP servers: coming up, being down, and what the agent sees of them (contract §5)."""

from __future__ import annotations

from typing import Final

from tests.contract.manifest import Row

_S: Final = "contract §5"

ROWS: Final = (
    # When they are connected to
    Row(
        "mcp.start.on-first-need",
        _S,
        "Servers are connected to by the first call that needs the workspace, not before.",
    ),
    Row(
        "mcp.start.once",
        _S,
        "Once a workspace runs its servers stay connected; a pause and a resume connect to none.",
        "The page says when a workspace comes up; a paused one has kept its processes.",
    ),
    Row("mcp.start.again-with-a-new-workspace", _S, "A workspace that is built again connects to its servers again."),
    Row(
        "mcp.start.again-after-put",
        _S,
        "A PUT on a running workspace counts as a new start of its servers, by the next call that needs it.",
    ),
    # Optional servers
    Row(
        "mcp.optional.skipped", _S, "An unreachable server with `required: false`, or none, is skipped; the turn runs."
    ),
    Row(
        "mcp.optional.event",
        _S,
        "A skipped server leaves a persisted mcp.unavailable event with `server`, `name` and `reason`.",
        "The Tools page shows `server`, the OpenAPI examples `name`: both are there, with the same value.",
    ),
    Row(
        "mcp.optional.item",
        _S,
        "And an mcp_unavailable item with both at its top and, with `event` and `name`, in `detail`.",
        "The Tools page shows them at the top, the item examples in `detail`: both.",
    ),
    Row(
        "mcp.optional.before-the-turn",
        _S,
        "The event comes after sandbox.created and before turn.started.",
        "No source gives its place; it belongs to the workspace coming up, which is before the turn.",
    ),
    Row(
        "mcp.optional.once-a-start",
        _S,
        "It is written once per server per start of the workspace, not once per message.",
        "No source counts them.",
    ),
    Row("mcp.optional.several", _S, "Each of several servers that are down is told of, in declared order."),
    Row(
        "mcp.optional.called", _S, "A tool of a skipped server that the agent calls all the same fails with the reason."
    ),
    # Required servers
    Row(
        "mcp.required.refused", _S, "The call that needed a required server is 400 with the exact words, not retryable."
    ),
    Row(
        "mcp.required.several",
        _S,
        "Several required servers that are down are joined by `; ` in declared order.",
        "The page shows one only.",
    ),
    Row("mcp.required.only-those", _S, "Servers that are up, or optional, are not named in the refusal."),
    Row("mcp.required.no-turn", _S, "No turn opens, no message is kept, and the session reads `failed`."),
    Row("mcp.required.error-item", _S, "An error item says what failed, with `detail.origin` sandbox."),
    Row(
        "mcp.required.tries-again",
        _S,
        "Every later such call tries again, and works once the server is reachable.",
        "The page only says waiting will not help; a configuration or a server that was mended must.",
    ),
    Row(
        "mcp.required.mended-by-put",
        _S,
        "A PUT that makes the server optional or takes it away lets the session go on.",
    ),
    Row("mcp.required.opening-input", _S, "With an opening `input` the creation is refused so and no session remains."),
    Row("mcp.required.creation-alone", _S, "A creation without input needs no workspace and works."),
    Row("mcp.required.other-calls", _S, "Calls that need no workspace go on as if the server were up."),
    Row(
        "mcp.required.queued",
        _S,
        "A message that waited behind a turn fails its own turn so, as its reply has long been sent.",
        "The page knows only the refused call; the queue has no call left to refuse.",
    ),
    # Outages
    Row("mcp.reason.default", _S, "The reason is `fetch failed` unless another is scripted."),
    Row("mcp.reason.timeout", _S, "A server that does not answer is `the server did not answer within 10s`."),
    Row(
        "mcp.timeout.jumps-the-clock",
        "contract §5, §13",
        "Each connect that times out moves the emulator's clock ten seconds; one that is refused does not.",
        "Nobody could advance it: the caller sits inside its own request.",
    ),
    Row(
        "mcp.timeout.deadlines-follow",
        "contract §5, §13",
        "What falls due within the jump happens right after it.",
        "The clock may not pass a deadline by.",
    ),
    Row("mcp.outage.down-and-up", _S, "A server that is scripted down stays so until it is up again."),
    Row("mcp.outage.times", _S, "`times` connects fail, then the server is up."),
    Row("mcp.outage.script", _S, "A script gives each of the next connects its end, then the server is up."),
    Row("mcp.outage.by-name", _S, "An outage is of the server of that name, in every session, and of no other."),
    Row("mcp.outage.scenario", _S, "A scenario's outages are those of the handle, and go with it."),
    Row(
        "mcp.fault.connect",
        _S,
        "A connect that is refused, times out, hangs, is unauthorized or meets what is not MCP fails with its reason.",
        "The page words a refusal and the ten seconds. 401 and 403 are `the server answered 401`, as any other HTTP "
        "error by its number; what is not MCP at all is `the server does not speak MCP`.",
    ),
    Row(
        "mcp.fault.connect-slow",
        "contract §5, §13",
        "A connect that takes less than ten seconds works and moves the clock by them; from ten on it times out.",
        "No source says how long a server may take but by the reason `the server did not answer within 10s`.",
    ),
    Row(
        "mcp.fault.call",
        _S,
        "A call that fails gives the agent an error result that says what happened, and the turn goes on.",
        "No source says what an agent sees of a server that fails a call. An error result is what MCP clients give "
        "their models, and only the agent can say whether its turn is worth going on with. The call is not passed on.",
    ),
    Row(
        "mcp.fault.call-seconds",
        "contract §5, §13",
        "A slow call takes its seconds of the clock, one that times out 60, while the reply is not held up.",
        "No source gives the limit of a call; 60 s is what MCP clients wait.",
    ),
    Row(
        "mcp.fault.call-hangs",
        _S,
        "A call that hangs is shown without a result and ends with its turn: by a cancel, a delete or the two hours.",
        "A hang is what the limit of a call is there to prevent, but a server can defeat it by sending progress.",
    ),
    Row(
        "mcp.fault.call-of-a-tool",
        _S,
        "A scripted call of one tool waits for that tool; each call takes the first entry that suits it.",
        "How outages are scripted is ours.",
    ),
    Row(
        "mcp.outage.counts-attempts",
        _S,
        "`times` counts every connect, those of calls that a required server has refused too.",
        "Every later call tries again, so each is an attempt.",
    ),
    Row(
        "mcp.outage.flapping",
        _S,
        "A server that comes and goes is told of once for each start of the workspace at which it was down.",
        "The sources know one start only.",
    ),
    # Tools
    Row("mcp.tools.name", _S, "A server's tool is `mcp_<server>_<tool>` to the agent and in events and items."),
    Row("mcp.tools.allowed", _S, "With `allowed_tools` only those exist for the agent; an empty list leaves none."),
    Row("mcp.tools.all", _S, "Without `allowed_tools` every tool of the server is there."),
    Row("mcp.tools.own-servers-only", _S, "A session has the servers it declares and no other."),
    Row(
        "mcp.tools.change",
        _S,
        "A server may offer other tools from a connect or a call on; the agent sees its list at each call.",
        "No source says when a list is read again; a session would otherwise never see a tool that came up.",
    ),
    Row(
        "mcp.tools.gone",
        _S,
        "A call of a tool the server has no more gives an error result; one it never had is a mistake of the script.",
        "An agent may well call what it was offered a moment ago; what it was never offered it cannot know of.",
    ),
)
