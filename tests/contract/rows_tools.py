"""Tools: the configuration, its rules and its refusals (contract §5)."""

from __future__ import annotations

from typing import Final

from tests.contract.manifest import Row

_S: Final = "contract §5"

ROWS: Final = (
    # Replacing and reading
    Row("tools.put.replaces-all", _S, "PUT replaces the whole configuration; nothing of the one before is left."),
    Row("tools.put.answers-what-get-answers", _S, "PUT answers the session.tools object a GET answers."),
    Row(
        "tools.put.absent-half-resets",
        _S,
        "Of `tools` and `text` at least one is sent, and the absent one goes back to unconfigured or null.",
        "The body's halves are both optional in the sources, and none says what an absent one means: replaced whole.",
    ),
    Row("tools.put.text-null", _S, "`text: null` clears the text half."),
    Row("tools.put.changes-nothing-when-refused", _S, "A refused PUT changes nothing."),
    Row("tools.post-instead-of-put", _S, "POST …/tools is 400 invalid_request: the set is replaced with PUT."),
    Row("tools.read.as-sent", _S, "Everything but secrets comes back as it was sent, every field of every type."),
    Row("tools.read.order", _S, "Entries come back in the order they were sent in."),
    Row("tools.read.parameters-unexamined", _S, "`parameters` is carried unexamined and comes back equal."),
    Row("tools.read.on-the-session", _S, "A read of the session carries the same list as `agent.tools`."),
    Row(
        "tools.read.not-on-other-replies",
        _S,
        "`agent.tools` is on the single read only: not on lists nor on the replies to create and patch.",
    ),
    Row(
        "tools.read.never-configured",
        _S,
        "A session never configured reads `tools: []` and `text: null`.",
        "Putting `[]` reads the same although it means none; the control API tells the effective set.",
    ),
    Row(
        "tools.read.built-ins",
        _S,
        "A built-in that was declared reads back as its `type` alone.",
        "The OpenAPI read shape knows only mcp and function; the Tools page says the answer is what you have.",
    ),
    Row(
        "tools.read.built-ins-collapse",
        _S,
        "A built-in named twice is one entry.",
        "No source says what a repeated one is.",
    ),
    Row("tools.create.same-configuration", _S, "`agent.tools` with `agent.text` on create gives what PUT gives."),
    Row("tools.page.examples", _S, "The examples of the Tools page are taken and read back as it shows them."),
    # Rules of entries
    Row("tools.function.timeout", _S, "`timeout_seconds` is an integer from 1 to 7200."),
    Row("tools.function.waits-as-long", _S, "A call of the function expires `timeout_seconds` after it was asked."),
    Row("tools.mcp.one-transport", _S, "An mcp entry has exactly one of `url` and `command`."),
    Row("tools.mcp.url-parses", _S, "`url` is http or https, parses and has a host."),
    Row("tools.mcp.command-not-empty", _S, "`command` is a non-empty string."),
    Row(
        "tools.mcp.fields-of-the-other-transport",
        _S,
        "`authorization` and `headers` go with `url`, `args` and `env_refs` with `command`.",
        "The page gives each to one transport; sent with the other it would be carried along unused, so it is refused.",
    ),
    Row(
        "tools.mcp.env-refs",
        _S,
        "`env_refs` is an object of strings or a list of strings, and is returned.",
        "The Tools page has it without a shape and the newer revision dropped it; it names variables, no secret.",
    ),
    Row("tools.mcp.required-boolean", _S, "`required` must be a boolean and is false when absent."),
    Row("tools.built-in.type-alone", _S, "A built-in takes its `type` and no other field."),
    # Refusals
    Row("tools.refuse.count", _S, "More than 32 entries are refused, naming 32 and the count."),
    Row("tools.refuse.name", _S, "A name that is missing, empty or over 64 characters is refused."),
    Row("tools.refuse.duplicate", _S, "Two entries of one name are refused, naming it, across functions and servers."),
    Row("tools.refuse.unknown-field", _S, "An unknown field beside the list is refused by name."),
    Row(
        "tools.refuse.unknown-field-of-an-entry",
        _S,
        "An unknown field in an entry is refused with its path, what the entry accepts and what was probably meant.",
    ),
    Row("tools.refuse.field-of-another-type", _S, "A field that belongs to another type of entry is refused."),
    Row("tools.refuse.redacted", _S, "`redacted` sent back is refused: the secret itself is to be sent again."),
    Row("tools.refuse.unknown-type", _S, "An unknown or missing `type` is refused and the types are listed."),
    Row("tools.refuse.wrong-kind", _S, "A value of the wrong kind is refused with its path and what is accepted."),
    Row("tools.refuse.null", _S, "A field that is left out is not the same as null, which is refused."),
    Row("tools.refuse.envelope", _S, "Every refusal is the envelope with code, message and request id, and no more."),
    # Redaction
    Row("tools.redacted.names", _S, "`redacted` names `authorization` and each `headers.<name as sent>` withheld."),
    Row(
        "tools.redacted.absent",
        _S,
        "`redacted` is absent when nothing was withheld.",
        "The page shows it only on a server with credentials.",
    ),
    Row("tools.redacted.tells-apart", _S, "`redacted` tells a server with credentials from one without."),
    # Built-ins
    Row("tools.built-ins.named-narrow", _S, "Naming built-ins narrows the session to exactly those."),
    Row("tools.built-ins.none-named", _S, "Naming none leaves what the deployment allows."),
    Row("tools.built-ins.empty-list", _S, "`tools: []` means none of them."),
    Row(
        "tools.built-ins.switched-off",
        _S,
        "A built-in the deployment has switched off does not come back by being named; the read shows the rest.",
    ),
    Row("tools.built-ins.agent-held-to-it", _S, "The agent cannot use a built-in its session does not have."),
    # When a change reaches the agent
    Row(
        "tools.reach.next-turn",
        _S,
        "A PUT reaches the agent with its next turn, and the running one keeps what it began with.",
        "The Tools page and the page on restarts say so; the newest page says otherwise, hence the setting.",
    ),
    Row(
        "tools.reach.next-workspace",
        _S,
        "With `tools_reach: next_workspace` a PUT reads back at once and reaches the agent when a workspace is built.",
        "The newest Tools page, verified by its authors; a pause and a resume are not a new workspace.",
    ),
    # Text
    Row("tools.text.as-sent", _S, "`text` takes `verbosity` and `format`, each alone, and comes back as sent."),
    Row("tools.text.refused", _S, "Anything else in `text` is refused with its path."),
    Row("tools.text.asked-not-enforced", _S, "The agent is told of `text`, and what it answers is not held to it."),
    # Everything at once
    Row("tools.any-valid-set", _S, "Any valid set comes back equal less its secrets, each of which is named."),
    Row("tools.any-malformed-body", _S, "Whatever is wrong with a body, it is refused with a 400 and changes nothing."),
)
