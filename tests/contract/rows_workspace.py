"""The life of a workspace on the clock (contract §6, §13)."""

from __future__ import annotations

from typing import Final

from tests.contract.manifest import Row

_SOURCE: Final = "contract §13"

ROWS: Final = (
    Row(
        "workspace.unknown",
        "contract §6",
        "A session that was just created has no workspace yet: its state is unknown.",
    ),
    Row("workspace.start", _SOURCE, "The first message starts the workspace; what needs none does not."),
    Row("workspace.started-once", _SOURCE, "A running workspace is not started again."),
    Row("workspace.pause", _SOURCE, "After five idle minutes the workspace is paused, and sandbox.paused says so."),
    Row("workspace.idle-again", _SOURCE, "The five minutes count from the end of the last turn."),
    Row(
        "workspace.idle-after-refusal",
        _SOURCE,
        "A message from the queue that could not start leaves the workspace idle, to be paused like any other.",
    ),
    Row("workspace.busy", _SOURCE, "A turn that runs, waits or is queued keeps the workspace from being paused."),
    Row("workspace.resume", _SOURCE, "The next message wakes a paused workspace, and sandbox.resumed says so."),
    Row(
        "workspace.sleeps-on",
        _SOURCE,
        "Reads, context, patches, cancels and refused inputs do not wake a paused workspace.",
        "The next input wakes it: that is one the agent has to act on. Context says so by delivered: false.",
    ),
    Row("workspace.reclaim", _SOURCE, "Two hours after its start the workspace is reclaimed: its state is destroyed."),
    Row(
        "workspace.reclaim-turn",
        _SOURCE,
        "A turn still open when the workspace is reclaimed fails, the session with it, and nothing is waited for.",
    ),
    Row(
        "workspace.reclaim-code",
        _SOURCE,
        "The turn's error is sandbox_unavailable.",
        "No page names the code; it is the one for a workspace that is gone and comes back with the next input.",
    ),
    Row("workspace.reclaim-queue", _SOURCE, "A message queued behind that turn runs in a workspace of its own."),
    Row("workspace.paused-time", _SOURCE, "Time paused does not count towards the two hours."),
    Row(
        "workspace.recover", _SOURCE, "The next message builds a reclaimed workspace again, with two hours of its own."
    ),
    Row(
        "workspace.recovery-failed",
        _SOURCE,
        "If it cannot be built again the input is refused, the state is recovery_failed and an event says why.",
        "Scripted by the setting workspace_recovery, as nothing else makes it fail.",
    ),
    Row("workspace.recovery-retried", _SOURCE, "After a failed recovery the next message tries again."),
    Row(
        "workspace.cycle",
        "contract §10",
        "From start to rebuilding: a pause keeps everything, a rebuilt workspace has its clone and its seeds again and "
        "what else was written no more.",
    ),
    Row(
        "workspace.connections",
        "contract §5",
        "Connections to MCP servers are closed when the workspace is reclaimed, when its session is deleted and when "
        "its tools are replaced; a pause keeps them, and a turn keeps those it began with.",
        "The sources do not say what becomes of connections; a paused workspace is the same one when it wakes.",
    ),
    Row(
        "workspace.replaced-while-connecting",
        "contract §5",
        "Tools replaced while their servers are being connected to are those the turn begins with.",
        "The sources do not say; a PUT that was answered must not be lost.",
    ),
    Row("workspace.deleted", _SOURCE, "Nothing falls due for a deleted session."),
    Row("workspace.each-its-own", _SOURCE, "Each session's workspace has its own time."),
)
