"""Actions: the person at the console, who decides approvals and answers questions, and lost calls.

Law: what is answered here goes the way an answer over /v1 goes. A function call is answered by the
program that owns the function, and by nobody here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from emulator.control.call import conflict
from emulator.domain.tools import FunctionTool
from emulator.refusals import invalid, not_found

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from emulator.control.call import Call
    from emulator.domain.action import Action
    from emulator.domain.session import Session
    from emulator.domain.world import Organization, World
    from emulator.wire import control as wire

    Place = tuple[Organization, Session, Action]

# What is sent -> the type of action it is for.
_FOR: Final[Mapping[str, str]] = {"approved": "approval", "answer": "question", "lose": "function_call"}
_WHAT: Final[Mapping[str, str]] = {
    "approval": "an approval, which `approved` decides",
    "question": "a question, which `answer` answers",
    "function_call": "a function call, which its own program answers over /v1 with input.tool_result",
}
_NAMED: Final[Mapping[str, str]] = {"approval": "approval", "question": "question", "function_call": "function call"}


async def decide_call(call: Call) -> Any:
    """Decide an approval, answer a question, or have a function call forgotten."""
    body: wire.CallDecision = call.body
    sent = _only(body, ("approved", "answer", "lose"))
    if body.lose is False:
        raise invalid("`lose` must be true; a lost call stays lost.")
    call_id = call.path["call_id"]
    places = [place for place in _actions(call.world) if place[2].call_id == call_id]
    if not places:
        raise not_found(f"No call {call_id!r}. {_open_ones(_open(call.world))}")
    place = next((place for place in places if place in _open(call.world)), places[-1])
    action = place[2]
    if action.type != _FOR[sent]:
        raise invalid(f"Call {call_id} is {_WHAT[action.type]}; `{sent}` was sent.")
    if action.state != "open":
        raise conflict(f"Call {call_id} is no longer pending: it is {action.state}.")
    return await _take(call, place, body, sent)


async def decide(call: Call) -> Any:
    """Decide the only open approval, or answer the only open question."""
    body: wire.Decision = call.body
    sent = _only(body, ("approved", "answer"))
    wanted = _FOR[sent]
    places = _open(call.world)
    of_type = [place for place in places if place[2].type == wanted]
    if not of_type:
        raise not_found(f"No {_NAMED[wanted]} is open now. {_open_ones(places)}")
    if len(of_type) > 1:
        raise conflict(f"{len(of_type)} are open; say which by its call id. {_open_ones(of_type)}")
    return await _take(call, of_type[0], body, sent)


async def lose_calls(call: Call) -> Any:
    """Have the sandbox forget the function calls a session is parked on."""
    _, session = call.session(call.path["session_id"])
    parked = [action for action in session.required_actions() if action.type == "function_call"]
    for action in parked:
        call.deployment.engine.actions.lose(action)
    return {"lost": [action.call_id for action in parked]}


async def get_effective_tools(call: Call) -> Any:
    """What the agent's next turn can reach: built-ins by the deployment's allowance, functions, servers."""
    _, session = call.session(call.path["session_id"])
    tools = call.deployment.engine.workspaces.tools(session)
    return {
        "configured": tools.tools is not None,
        "built_ins": tools.built_ins(call.world.settings.disabled_tools),
        "functions": [tool.name for tool in tools.tools or () if isinstance(tool, FunctionTool)],
        "servers": [tool.name for tool in tools.servers()],
    }


async def _take(call: Call, place: Place, body: Any, sent: str) -> Any:
    organization, session, action = place
    engine = call.deployment.engine
    match sent:
        case "approved":
            if body.code is not None and body.approved:
                raise invalid("`code` goes with `approved: false`: it is why the platform refused.")
            outcome = engine.actions.approval(organization, session, action.call_id, body.approved, body.code)
        case "answer":
            outcome = engine.actions.question_answer(organization, session, action.call_id, body.answer)
        case _:
            engine.actions.lose(action)
            outcome = "lost"
    if outcome == "no_longer_pending":
        raise conflict(f"Call {action.call_id} is no longer pending: nobody waits for it.")
    await engine.reply_when_ready(session, call.request_id)
    return {
        "call_id": action.call_id,
        "session_id": session.id,
        "turn_id": action.turn_id,
        "type": action.type,
        "outcome": outcome,
    }


def _only(body: wire.Decision, names: tuple[str, ...]) -> str:
    """The one field that was sent. Raises 400."""
    sent = [name for name in names if getattr(body, name, None) is not None]
    if body.code is not None and sent != ["approved"]:
        raise invalid("`code` goes with `approved: false`: it is why the platform refused.")
    if len(sent) != 1:
        listed = ", ".join(f"`{name}`" for name in names)
        raise invalid(f"Send exactly one of {listed}; {' and '.join(sent) + ' were' if sent else 'none was'} sent.")
    return sent[0]


def _actions(world: World) -> Iterable[Place]:
    for organization in world.organizations():
        for session in organization.sessions:
            for action in session.actions.values():
                yield organization, session, action


def _open(world: World) -> list[Place]:
    return [place for place in _actions(world) if place[2] in place[1].required_actions()]


def _open_ones(places: Iterable[Place]) -> str:
    listed = [f"{action.call_id} ({_NAMED[action.type]}, session {session.id})" for _, session, action in places]
    return f"Open: {', '.join(listed)}." if listed else "Nothing is waited for."
