"""Saved agents, their older name, and the sessions made from them (contract §12)."""

from __future__ import annotations

from typing import Final

from tests.contract.manifest import Row

_S: Final = "contract §12"

ROWS: Final = (
    Row("agents.create", _S, "An agent is saved and answered with every field, those left out null or empty."),
    Row("agents.id", _S, "An agent's id begins with agt_ and is ours."),
    Row("agents.name-slug", _S, "A name is a slug of a–z 0–9 . - _, at most 64 characters; anything else is refused."),
    Row(
        "agents.name-case",
        _S,
        "A name is put into lower case, and so is one that names an agent to a session.",
        "The page says lowercased; only ASCII letters are, so that no other letter becomes one of the slug's.",
    ),
    Row("agents.something", _S, "An agent with nothing behind its name is refused with what there could be."),
    Row(
        "agents.nothing",
        _S,
        "Empty instructions are nothing; an empty list of tools and an empty text configuration are something.",
        "The page saves an agent with tools []; what would be a no-op is refused, and [] means no way out.",
    ),
    Row(
        "agents.no-mode",
        _S,
        "approval_mode and permission_rules are refused, and told to belong to each session.",
        "One published guide sends approval_mode here; the newest page on agents says it is no field of one.",
    ),
    Row("agents.replace", _S, "The same name again replaces the agent in place: its id stays, what is left out goes."),
    Row(
        "agents.replace-status",
        _S,
        "A replacement answers 201 as well, and keeps its time of creation and its place in the list.",
        "The OpenAPI document knows no other success; no page says more, and in place is what they call it.",
    ),
    Row(
        "agents.ceiling",
        _S,
        "At most 25 agents: past it 400 names the DELETE that frees one; replacing is free.",
        "No page gives the code; it is no rate, and the same is said of model connections.",
    ),
    Row("agents.tools", _S, "Tools and text are held to the rules of a session's, told by the path tools[n]."),
    Row(
        "agents.redacted",
        _S,
        "Tools are read back without their secrets, which redacted names; sent back it is refused.",
    ),
    Row(
        "agents.model", _S, "A model or a connection is checked when the agent is saved, with the same three refusals."
    ),
    Row("agents.list", _S, "Agents are listed newest first, in pages, without an order parameter."),
    Row(
        "agents.by-id",
        _S,
        "An agent is read and deleted by its id; its name is not one.",
        "The page says that a session names either; the object's own page calls the name no identifier.",
    ),
    Row("agents.unknown", _S, "An unknown agent and another organization's are 404 in the same words."),
    Row("agents.delete", _S, "A deleted agent is gone; sessions made from it keep everything, agent.id too."),
    Row("agents.reported", "contract §4", "The report lists agents that were not deleted, until they are."),
    Row("agents.templates", _S, "An environment template is an agent under its older name: same rows, fewer fields."),
    Row(
        "agents.templates-deleted",
        _S,
        "A delete under the older name answers environment_template.deleted.",
        "The older OpenAPI revision called every deleted thing a session.",
    ),
    Row("agents.templates-deprecated", _S, "The older name's operations are marked deprecated in the document."),
    Row("agents.session", _S, "A session made from an agent, named by id or name, has its configuration and its id."),
    Row("agents.session-copy", _S, "It is a copy: replacing the agent does not reach sessions made before."),
    Row("agents.session-mode", _S, "A session made from an agent starts in the mode auto unless it says otherwise."),
    Row("agents.session-per-field", _S, "Inline model, model_credential_id and instructions override one by one."),
    Row("agents.session-clear", _S, "Inline instructions of null or nothing clear the agent's."),
    Row("agents.session-whole", _S, "Inline tools replace the agent's whole, and never merge."),
    Row(
        "agents.session-text",
        _S,
        "Inline tools and text replace one each: text without tools leaves the agent's tools; a null text clears.",
        "The page says each is replaced whole and nothing of the two together; absent is not sent.",
    ),
    Row(
        "agents.session-pair",
        _S,
        "Model and connection are checked as they stand after the overrides: one alone may not fit the agent's other.",
        "Per field is what the page says; nothing is dropped silently to make a pair.",
    ),
    Row(
        "agents.session-connection-gone",
        _S,
        "An agent whose connection was deleted stays as it is; a session from it is refused until it names another.",
        "Pages say that sessions are moved and nothing of agents.",
    ),
    Row("agents.session-template", _S, "environment.template_id names an agent too, by id or name."),
    Row(
        "agents.session-both",
        _S,
        "agent.id and environment.template_id may name the same agent; two different ones are refused.",
        "No page says which wins; neither is ignored.",
    ),
)
