"""The report: what is left over at the end of a test.

Law: it only reads, asking twice gives the same, and no secret is in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from emulator.control.verdict import verdict
from emulator.domain.findings.catalogue import MESSAGES, link
from emulator.domain.findings.judge import findings
from emulator.redaction import address, scrub_value

if TYPE_CHECKING:
    from emulator.domain.session import Session
    from emulator.domain.world import World
    from emulator.runtime.deployment import Deployment
    from emulator.runtime.engine import Engine


def report(deployment: Deployment) -> dict[str, Any]:
    """Everything left over, by kind; each a list of objects with the ids of what they are about."""
    world, engine, scenario = deployment.world, deployment.engine, deployment.script.scenario
    found: dict[str, Any] = {
        "answers": engine.answers.as_json(),
        "failed_expectations": list(engine.answers.missed),
        "unanswered_actions": _unanswered(world),
        "unreached_steps": [] if scenario is None else scenario.unreached(),
        "unused_rules": _unused_rules(deployment),
        "unmatched_messages": list(engine.unmatched),
        "undeleted": _undeleted(world),
        "open_streams": _open_streams(deployment),
        "running_turns": _running(engine),
        "undelivered_webhooks": _undelivered(deployment),
        "unused_outages": _unused_outages(deployment),
        "agent_not_at_rest": list(engine.rest.missed),
        "script_errors": _script_errors(engine),
        "recording": deployment.unmatched_writes(),
        "findings": _findings(deployment),
    }
    cleaned: dict[str, Any] = scrub_value(found)
    # The id of a token stands in it under a name that is one of secrets elsewhere; it is without them.
    cleaned["unused_faults"] = [fault.as_json() for fault in deployment.faults if not fault.hits]
    return {**cleaned, "verdict": verdict(cleaned, strict=world.settings.strict)}


def _unused_rules(deployment: Deployment) -> list[dict[str, Any]]:
    return [
        {"rule": rule.name, "times": rule.times, "used": rule.used}
        for rule in deployment.script.rules
        if rule.times is not None and not rule.used_up
    ]


def _unused_outages(deployment: Deployment) -> list[dict[str, Any]]:
    """The servers of which something was counted out that never came; one that is down for good need not be met."""
    scripted = [*deployment.outages.scripted.items(), *((one.name, one.scripted) for one in deployment.served)]
    unmet = [(server, *ahead.unmet) for server, ahead in scripted]
    return [
        {"server": server, "connects": connects, "calls": calls}
        for server, connects, calls in unmet
        if connects or calls
    ]


def _findings(deployment: Deployment) -> list[dict[str, Any]]:
    """The rules of good use that clients broke."""
    if deployment.watcher is None:
        return []
    notices = [
        (delivery.session_id, delivery.type, delivery.created_at)
        for delivery in deployment.deliveries
        if any(attempt.succeeded for attempt in delivery.attempts)
    ]
    return [
        {"id": found.id, "message": MESSAGES[found.id], "evidence": found.evidence(), "link": link(found.id)}
        for found in findings(deployment.watcher.seen(), notices, deployment.world.access.chosen())
    ]


def _unanswered(world: World) -> list[dict[str, Any]]:
    return [
        {
            "session_id": session.id,
            "turn_id": action.turn_id,
            "call_id": action.call_id,
            "type": action.type,
            "name": action.name,
            "request_id": turn.request_id,
        }
        for session in world.sessions()
        for action in session.required_actions()
        if (turn := session.turn(action.turn_id)) is not None
    ]


def _undeleted(world: World) -> dict[str, list[dict[str, Any]]]:
    return {
        "sessions": [
            {
                "id": session.id,
                "title": session.title,
                "organization": organization.id,
                "request_id": session.request_id,
                "forked_from": session.forked_from,
            }
            for organization in world.organizations()
            for session in organization.sessions
        ],
        "agents": [
            {"id": agent.id, "name": agent.name, "organization": organization.id, "request_id": agent.request_id}
            for organization in world.organizations()
            for agent in organization.agents.listed
        ],
        "webhooks": [
            {
                "id": subscription.id,
                "url": address(subscription.url),
                "organization": organization.id,
                "request_id": subscription.request_id,
            }
            for organization in world.organizations()
            for subscription in organization.webhooks.subscriptions
        ],
        "previews": [
            {"session_id": session.id, "url": session.preview.published_url}
            for session in world.sessions()
            if session.preview.published_url is not None
        ],
        "artifacts": [
            {"id": artifact.id, "session_id": session.id, "path": artifact.path}
            for session in world.sessions()
            for artifact in session.artifacts
        ],
    }


def _undelivered(deployment: Deployment) -> list[dict[str, Any]]:
    return [
        {
            "id": delivery.id,
            "webhook_id": delivery.subscription.id,
            "session_id": delivery.session_id,
            "type": delivery.type,
            "url": address(delivery.subscription.url),
            "state": delivery.state,
            "attempts": len(delivery.attempts),
            "last_error": delivery.error,
        }
        for delivery in deployment.deliveries
        if delivery.state in ("pending", "dead", "held")
    ]


def _open_streams(deployment: Deployment) -> list[dict[str, Any]]:
    readers = sorted(deployment.feed.readers(), key=lambda reader: str((reader.key, reader.request_id)))
    return [
        {
            "organization": reader.key[0],
            "session_id": reader.key[1],
            "token_id": reader.token_id,
            "request_id": reader.request_id,
        }
        for reader in readers
    ]


def _running(engine: Engine) -> list[dict[str, Any]]:
    return [
        {
            "session_id": session.id,
            "turn_id": turn.id,
            "number": turn.number,
            "state": state,
            "request_id": turn.request_id,
        }
        for session in engine.world.sessions()
        for turn, state in _turns_of(engine, session)
    ]


def _turns_of(engine: Engine, session: Session) -> list[tuple[Any, str]]:
    queued = [(turn, "queued") for turn in session.queue]
    if session.current is None:
        return queued
    return [(session.current, "waiting" if engine.rest.has(session) else "running"), *queued]


def _script_errors(engine: Engine) -> list[dict[str, Any]]:
    blocked = [
        {"session_id": None, "turn_id": None, "request_id": None, "where": "the event loop", "message": text}
        for text in engine.blocked
    ]
    return [*(fault.as_json() for fault in engine.script_errors), *blocked]
