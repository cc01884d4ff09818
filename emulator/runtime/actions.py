"""Actions: what turns wait for, and how an answer, a deadline or a loss ends the wait.

Law: an action closes once. The answer is on the record before the agent hears of it, and an answer
nobody can be given says so.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, Literal

from emulator.domain.action import CONSOLE, Attempt
from emulator.refusals import invalid, not_found
from emulator.runtime.run import CallResult

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from emulator.clock import Clock
    from emulator.domain.action import Action, Answerer
    from emulator.domain.session import Session
    from emulator.domain.world import Organization
    from emulator.runtime.answers import Answers
    from emulator.runtime.feed import Feed
    from emulator.runtime.run import Run

_ANSWERED_BY: Final = {
    "function_call": "input.tool_result",
    "approval": "input.approval",
    "question": "input.question_answer",
}
_REFUSED: Final = {
    "approval_timeout": "Nobody decided about {} in time, so it was refused.",
    "credential_inspection_denied": "{} would have looked at credentials, which is refused.",
}


class Actions:
    """The actions of one emulator. `runs` are the turns its agents are on, by session.

    Every answer is one of the person at the console, unless it is said whose.
    """

    def __init__(self, clock: Clock, feed: Feed, runs: Mapping[str, Run], answers: Answers) -> None:
        self._clock = clock
        self._answers = answers
        self._feed = feed
        self._runs = runs

    def tool_result(
        self,
        organization: Organization,
        session: Session,
        turn_id: str,
        call_id: str,
        result: CallResult,
        by: Answerer = CONSOLE,
    ) -> str:
        """Answer a function call. Gives the outcome; 404 for a pair nobody waits for (contract §7)."""
        outcome = self._tool_result(organization, session, turn_id, call_id, result)
        self._note(session.actions[call_id], by, outcome)
        return outcome

    def _tool_result(
        self, organization: Organization, session: Session, turn_id: str, call_id: str, result: CallResult
    ) -> str:
        action = session.actions.get(call_id)
        if action is None or action.turn_id != turn_id or action.state == "dropped":
            raise not_found(
                f"No pending action for turn {turn_id!r} and call {call_id!r}: "
                "it is not one of this session's, or its turn has moved on."
            )
        _check_type(action, "function_call")
        match action.state:
            case "expired" | "withdrawn":
                return "not_delivered"
            case "answered" | "lost":
                return "already_resolved"
            case _:
                pass
        waiting = self._waiting(session, action)
        if waiting is None or action.lost:
            session.close_action(action, "lost", None)
            action.closed_at = self._clock.now()
            self._feed.pump(organization)
            return "not_delivered"
        session.close_action(action, "answered", ("tool.resolved", {"name": action.name, "success": result.success}))
        self._feed.pump(organization)
        waiting.set_result(result)
        return "accepted"

    def approval(
        self,
        organization: Organization,
        session: Session,
        call_id: str,
        approved: bool,
        code: str | None = None,
        by: Answerer = CONSOLE,
    ) -> str:
        """Decide an approval (contract §7). A `code` says that the platform refused, and why (contract §9)."""
        decision: dict[str, Any] = {"approved": approved}
        action = session.actions.get(call_id)
        if code is not None and action is not None:
            decision |= {"name": action.name, "code": code, "reason": _REFUSED[code].format(action.name)}
        return self._decide(organization, session, call_id, "approval", ("approval.resolved", decision), approved, by)

    def question_answer(
        self, organization: Organization, session: Session, call_id: str, answer: str, by: Answerer = CONSOLE
    ) -> str:
        """Answer a question (contract §7)."""
        return self._decide(
            organization, session, call_id, "question", ("question.answered", {"answer": answer}), answer, by
        )

    def lose(self, action: Action) -> None:
        """Have the sandbox forget a call it is parked on: an answer is no longer delivered."""
        action.lost = True

    def expire(self, session: Session, action: Action) -> None:
        """Have a call's time run out now."""
        run = self._runs.get(session.id)
        if run is not None:
            self._expire(run, action)

    async def park(self, run: Run, action: Action, at_once: Callable[[], object] | None = None) -> Any:
        """Wait for an action to be answered, or for its deadline. `at_once` answers it as soon as it is waited for."""
        self._answers.asked(run.session, run.turn, action)
        if action.expires_at is not None:
            timer = self._clock.call_at(action.expires_at, lambda: self._expire(run, action))
        else:
            timer = None
        self._feed.pump(run.organization)
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        run.waits[action.call_id] = future
        run.steps.park(future)
        if at_once is not None:
            at_once()
        try:
            return await future
        except asyncio.CancelledError:
            self._withdraw(run, action)
            raise
        finally:
            if timer is not None:
                timer.cancel()

    def _note(self, action: Action, by: Answerer, outcome: str) -> None:
        """Keep who answered, and what became of the answer."""
        action.attempts.append(Attempt(by, outcome, self._clock.now()))

    def _waiting(self, session: Session, action: Action) -> asyncio.Future[Any] | None:
        run = self._runs.get(session.id)
        future = run.waits.get(action.call_id) if run is not None else None
        return None if future is None or future.done() else future

    def _decide(
        self,
        organization: Organization,
        session: Session,
        call_id: str,
        expected: Literal["approval", "question"],
        event: tuple[str, dict[str, Any]],
        value: bool | str,
        by: Answerer,
    ) -> str:
        action = session.actions.get(call_id)
        if action is None:
            return "no_longer_pending"
        _check_type(action, expected)
        waiting = self._waiting(session, action) if action.state == "open" else None
        if waiting is None:
            self._note(action, by, "no_longer_pending")
            return "no_longer_pending"
        self._note(action, by, "accepted")
        session.close_action(action, "answered", event)
        self._feed.pump(organization)
        waiting.set_result(value)
        return "accepted"

    def _withdraw(self, run: Run, action: Action) -> None:
        """The agent gave a verb up: nobody waits for its answer any more, and an answer is not delivered."""
        if action.state != "open" or run.turn.settled or run.session.deleted:
            return
        event = None
        if action.type == "approval":
            denial = {"approved": False, "name": action.name, "code": "aborted"}
            event = ("approval.resolved", {**denial, "reason": "The agent no longer wants to know."})
        run.session.close_action(action, "withdrawn", event)
        action.closed_at = action.closed_at or self._clock.now()
        self._feed.pump(run.organization)

    def _expire(self, run: Run, action: Action) -> None:
        if action.state != "open":
            return
        waiting = self._waiting(run.session, action)
        run.session.close_action(action, "expired", ("tool.resolved", {"name": action.name, "success": False}))
        self._feed.pump(run.organization)
        if waiting is not None and not action.lost:
            error = "Nobody answered this call in time. Do not call it again; go on without it."
            waiting.set_result(CallResult(success=False, error=error))


def _check_type(action: Action, expected: str) -> None:
    if action.type != expected:
        what = {"function_call": "a function call", "approval": "an approval", "question": "a question"}
        raise invalid(
            f"Call {action.call_id} is {what[action.type]}, not {what[expected]}, so it cannot be answered with "
            f"{_ANSWERED_BY[expected]}. Answer it with {_ANSWERED_BY[action.type]}."
        )
