"""Sessions, their turns and their items (contract §6, §8)."""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from emulator import render
from emulator.api.call import Reply
from emulator.api.files import sent_files
from emulator.api.tools import tool_set
from emulator.domain.catalogue import SavedAgent
from emulator.domain.pages import cut, cut_by_id
from emulator.domain.session import Agent, Session
from emulator.domain.tools import ToolSet
from emulator.refusals import Refusal, invalid, not_found

if TYPE_CHECKING:
    from emulator.api.call import Call
    from emulator.domain.index import Label
    from emulator.wire import sessions as wire

# Neither name is of dots alone: those are ways through directories.
_REPO: Final = re.compile(r"\.*[A-Za-z0-9_-][A-Za-z0-9._-]*/\.*[A-Za-z0-9_-][A-Za-z0-9._-]*")


async def create_session(call: Call) -> Reply:
    """Open a session, with a first message if there is one: all of it or none."""
    body: wire.SessionCreateRequest = call.body
    organization, world = call.organization, call.world
    # First what the request has wrong in itself, then what it names and is not there.
    text = None if body.input is None else content_text(body.input, "input")
    inline = ToolSet() if body.agent is None else tool_set(body.agent.tools, body.agent.text, "agent.tools")
    repo = _repo(call, body.environment)
    seeds = sent_files(None if body.environment is None else body.environment.files, "environment.files")
    agent = _agent(call, body, inline)
    profiles = None if body.environment is None else body.environment.profiles
    if profiles is not None:
        organization.profiles.check(profiles)
    if body.parent_session_id is not None:
        organization.session(body.parent_session_id)
    organization.check_room(world.settings.session_limit)
    session = Session(
        organization.next_session_id(),
        log=organization.log,
        ids=world.ids,
        now=world.now(),
        agent=agent,
        title=body.title,
        metadata=body.metadata,
        created_by_token=call.token.id,
        parent_session_id=body.parent_session_id,
        repo=repo,
        seeds=seeds,
        profiles=profiles,
        request_id=call.request_id,
    )
    call.deployment.engine.create(organization, session)
    if text is not None:
        await _open_with(call, session, text)
    return Reply(render.session(session))


async def list_sessions(call: Call) -> Reply:
    """A page of the organization's sessions."""
    organization, query = call.organization, call.query
    labels: list[Label] = [(name, query[name]) for name in ("status", "source") if name in query]
    if (creator := query.get("created_by_token")) is not None:
        labels.append(("created_by_token", call.token.id if creator == "me" else creator))
    if (pair := query.get("metadata")) is not None:
        labels.append(("metadata", *pair))
    numbers = organization.among(labels, query.get("root"))

    def place(session_id: str) -> int | None:
        number = organization.number(session_id)
        if number is None:
            return None
        # One that the filter has left behind still has a place between its neighbours.
        at = bisect_left(numbers, number)
        there = at < len(numbers) and numbers[at] == number
        return at if there or query.get("order") != "asc" else at - 1

    page = cut(numbers, place, lambda number: organization.numbered(number).id, **call.paging)
    return Reply(render.page(page, lambda number: render.session(organization.numbered(number))))


async def get_session(call: Call) -> Reply:
    """Read one session; the only read that carries its tools."""
    return Reply(render.session(call.session, disabled=call.world.settings.disabled_tools))


async def patch_session(call: Call) -> Reply:
    """Change what can be changed of a session, all of it or none."""
    body: wire.SessionPatchRequest = call.body
    changes = body.agent.model_fields_set if body.agent is not None else set()
    if not (body.model_fields_set - {"agent"}) and not changes:
        raise invalid(
            "Nothing to change: send any of `title`, `metadata`, `agent.model` with `agent.model_credential_id`, "
            "`agent.instructions`, `agent.approval_mode` or `agent.permission_rules`."
        )
    if ("model" in changes) != ("model_credential_id" in changes):
        raise invalid("`agent.model` and `agent.model_credential_id` are changed together: send both or neither.")
    session = call.session
    agent = session.agent
    if body.agent is not None:
        if "model" in changes:
            connections = call.organization.connections
            connection = connections.choose(body.agent.model, body.agent.model_credential_id, "agent.")
            agent.model, agent.model_credential_id = connection.model, connection.id
        if "instructions" in changes:
            agent.instructions = body.agent.instructions or None
        if body.agent.approval_mode is not None:
            agent.approval_mode = body.agent.approval_mode
        if body.agent.permission_rules is not None:
            agent.permission_rules = [_rule(rule) for rule in body.agent.permission_rules]
    if "title" in body.model_fields_set:
        session.title = body.title
    if "metadata" in body.model_fields_set:
        session.metadata = dict(body.metadata or {})
        call.organization.relabel(session)
    session.touch(call.world.now())
    return Reply(render.session(session))


async def delete_session(call: Call) -> Reply:
    """Destroy a session and free its place."""
    session = call.session
    await call.deployment.engine.delete(call.organization, session)
    return Reply(render.deleted("session", session.id))


async def list_turns(call: Call) -> Reply:
    """A page of a session's turns."""
    return Reply(render.page(cut_by_id(call.session.turns, **call.paging), render.turn))


async def get_turn(call: Call) -> Reply:
    """Read one turn."""
    turn = call.session.turn(call.path["turn_id"])
    if turn is None:
        raise not_found(f"No turn {call.path['turn_id']!r} in this session.")
    return Reply(render.turn(turn))


async def list_items(call: Call) -> Reply:
    """A page of a session's items."""
    transcript = call.organization.transcript(call.session)
    page = cut(transcript.refresh(), transcript.position, lambda item_id: item_id, **call.paging)
    return Reply(render.page(page, lambda item_id: transcript.item(transcript.position(item_id) or 0)))


def content_text(content: str | list[wire.InputText], path: str) -> str:
    """The text of a message. Raises 400 when there is none."""
    text = content if isinstance(content, str) else "".join(part.text for part in content)
    if not text.strip():
        raise invalid(f"`{path}` must not be empty.")
    return text


async def _open_with(call: Call, session: Session, text: str) -> None:
    engine = call.deployment.engine
    try:
        await engine.message(call.organization, session, text, call.request_id)
    except Refusal as refused:
        if not call.world.settings.orphan_sessions:
            await engine.delete(call.organization, session)
            call.deployment.deliveries.withdraw(call.organization, session)
            raise
        raise Refusal(
            refused.code,
            f"{refused.message} We also could not remove the session we had created for it, so {session.id} still "
            "exists and still holds one of this organization's session slots — delete it with DELETE "
            f"/v1/sessions/{session.id}.",
            retry_after=refused.retry_after,
        ) from None
    await engine.reply_when_ready(session, call.request_id)


def _agent(call: Call, body: wire.SessionCreateRequest, inline: ToolSet) -> Agent:
    """What is to run: a copy of the saved agent, if one is named, with what is sent beside it put over it."""
    sent = body.agent
    changes = sent.model_fields_set if sent is not None else set()
    saved = _saved(call, body)
    if sent is None:
        connection = call.organization.connections.choose(saved.model, saved.model_credential_id, "agent.")
        return Agent(connection.model, connection.id, saved.id or None, saved.instructions, tools=saved.tools)
    connection = call.organization.connections.choose(
        sent.model if "model" in changes else saved.model,
        sent.model_credential_id if "model_credential_id" in changes else saved.model_credential_id,
        "agent.",
    )
    return Agent(
        connection.model,
        connection.id,
        saved.id or None,
        instructions=(sent.instructions or None) if "instructions" in changes else saved.instructions,
        approval_mode=sent.approval_mode or "auto",
        permission_rules=[_rule(rule) for rule in sent.permission_rules or ()],
        tools=ToolSet(
            inline.tools if "tools" in changes else saved.tools.tools,
            inline.text if "text" in changes else saved.tools.text,
        ),
    )


def _saved(call: Call, body: wire.SessionCreateRequest) -> SavedAgent:
    """The saved agent to start from; an empty one where none is named. Raises 404, and 400 for two different ones."""
    agents = call.organization.agents
    named = [
        agents.named(name, path)
        for name, path in (
            (None if body.agent is None else body.agent.id, "agent.id"),
            (None if body.environment is None else body.environment.template_id, "environment.template_id"),
        )
        if name is not None
    ]
    if len({agent.id for agent in named}) > 1:
        raise invalid(
            "`agent.id` and its older name `environment.template_id` name two different agents. Send `agent.id` alone."
        )
    return named[0] if named else SavedAgent(id="", name="", created_at=0)


def _rule(rule: wire.PermissionRule) -> dict[str, Any]:
    return rule.model_dump(exclude_unset=True)


def _repo(call: Call, environment: wire.EnvironmentConfig | None) -> str | None:
    repo = None if environment is None else environment.repo
    if repo is None or _REPO.fullmatch(repo):
        if repo is not None and not call.world.settings.github:
            raise invalid(
                "`environment.repo` needs GitHub, which this organization has not connected. Connect it in the "
                "Console under Settings, App integrations, then create the session again."
            )
        return repo
    corrected = _names_in(repo)
    if _REPO.fullmatch(corrected) and corrected != repo:
        raise invalid(f"`environment.repo` is a repository as owner/name, not an address. Send `{corrected}`.")
    raise invalid("`environment.repo` is a repository as owner/name.")


def _names_in(address: str) -> str:
    """The owner/name an address probably means, or anything else where it means none."""
    # An address over https or ssh, or a host without either, may go on behind the two names.
    try:
        path = urlsplit(address).path if "://" in address else address.rpartition(":")[2]
    except ValueError:
        return ""
    parts = [part for part in path.split("/") if part]
    if len(parts) > 2 and "." in parts[0] and "://" not in address:
        del parts[0]
    return "/".join(parts[:2]).removesuffix(".git")
