"""Rules about writes: how they are retried, keyed and answered."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from emulator.domain.findings.view import EVENTS, SESSION, SESSIONS, SHOWN, Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from emulator.domain.findings.record import Exchange
    from emulator.domain.findings.view import SessionSeen, View

# How much sooner than it was told to a timer may ring, in milliseconds.
_EARLY: Final = 20
_SHORT: Final = 60_000

# A trace of Python, JavaScript or the JVM; or the name of an exception before what it says.
_EXCEPTION: Final = re.compile(
    r"Traceback \(most recent call last\)|^\s*File \"[^\"\n]+\", line \d+"
    r"|^\s+at \S.*[:(]\S+:\d+\)?\s*$|^\s*Caused by: [\w.$]+|^goroutine \d+ \[|\A\s*panic: "
    r"|\A\s*(?:Uncaught |Exception in thread \S+ )?(?:[A-Za-z_][\w$]*\.)*[A-Z]\w*(?:Error|Exception)"
    r"(?:\([^)\n]*\)|: |\s*\Z)",
    re.MULTILINE,
)


def is_exception(text: str) -> bool:
    """Whether a text is what a runtime says of an exception, and not a sentence for an agent."""
    return _EXCEPTION.search(text) is not None


def project_limit(view: View) -> Iterator[Finding]:
    """The same write refused again with `project_limit_exceeded`, nothing deleted in between."""
    runs: dict[tuple[str, str, int, int], list[Exchange]] = {}
    for exchange in view.exchanges:
        if exchange.verb == "DELETE" and exchange.path == SESSION and exchange.ok:
            for run in [run for run in runs if run[0] == exchange.organization]:
                yield from _refused_twice(runs.pop(run))
        elif exchange.code == "project_limit_exceeded":
            run = (exchange.organization, exchange.token_id, exchange.place, exchange.digest)
            runs.setdefault(run, []).append(exchange)
    for refused in runs.values():
        yield from _refused_twice(refused)


def _refused_twice(refused: list[Exchange]) -> Iterator[Finding]:
    if len(refused) > 1:
        ids = [exchange.request_id for exchange in refused[:SHOWN]]
        yield Finding("project-limit-retried", ids, session_id=refused[0].session_id)


def too_soon(view: View) -> Iterator[Finding]:
    """A call repeated before the `Retry-After` of its refusal had passed, and nothing having come to help it."""
    waiting: dict[tuple[str, str, int], Exchange] = {}
    early: dict[tuple[str, str, int], list[Exchange]] = {}
    for exchange in view.exchanges:
        call = (exchange.token_id, exchange.verb, exchange.place)
        refused = waiting.get(call)
        # A body that was not read, because the budget was spent, cannot be told from another.
        if refused is not None and refused.digest in (0, exchange.digest):
            if exchange.arrived[0] < refused.answered[0]:
                continue
            del waiting[call]
            left = (refused.retry_after or 0) * 1000 - exchange.after(refused)
            if left > _EARLY and not _helped(view, refused, exchange):
                tries = early.setdefault(call, [])
                tries += [refused, exchange] if refused not in tries[-1:] else [exchange]
        if exchange.retry_after is not None:
            waiting[call] = exchange
    for tries in early.values():
        ids = [exchange.request_id for exchange in tries[:SHOWN]]
        yield Finding("retry-too-soon", ids, session_id=tries[0].session_id)


def _helped(view: View, refused: Exchange, again: Exchange) -> bool:
    """Whether what the refusal was for was over by the time of the retry."""
    if refused.code == "queue_full" and refused.session_id is not None:
        turns = view.sessions[refused.session_id].turns
        return any(turn.end is not None and refused.n < turn.end.n < again.n for turn in turns)
    if refused.code == "rate_limit_exceeded" and refused.path in (EVENTS, "/v1/events") and refused.verb == "GET":
        return any(watch.end is not None and refused.n < watch.end < again.n for watch in view.watches)
    # What it collided with may have gone sooner.
    return refused.code == "conflict" and again.code != "conflict"


def twice(view: View) -> Iterator[Finding]:
    """A write that was done again because it was sent again, without a key.

    Told from one that was meant twice: a message that is sent to a session while its like is still worked on,
    and a session that is created with the input and the labels of one that is there.
    """
    for session in view.sessions.values():
        yield from _said_twice(view, session)
    made: dict[tuple[str, int], Exchange] = {}
    for exchange in view.exchanges:
        if exchange.verb == "DELETE" and exchange.path == SESSION and exchange.ok:
            made = {call: first for call, first in made.items() if first.session_id != exchange.session_id}
        elif exchange.verb == "POST" and exchange.path == SESSIONS and exchange.ok and exchange.key is None:
            if not exchange.facts.labelled:
                continue
            call = (exchange.token_id, exchange.digest)
            first = made.get(call)
            if first is not None and exchange.after(first) < _SHORT:
                ids = [first.request_id, exchange.request_id]
                yield Finding("written-twice", ids, session_id=exchange.session_id)
            made[call] = exchange


def _said_twice(view: View, session: SessionSeen) -> Iterator[Finding]:
    said = [sent for sent in session.sends("input.message") if sent.key is None]
    for first, again in pairwise(said):
        if (first.token_id, first.digest) != (again.token_id, again.digest) or again.after(first) >= _SHORT:
            continue
        # The documentation's way on from a lost call is a new message, which may be the same.
        if any(between.facts.lost for between in session.later(0, again.n)):
            continue
        turn = view.turns.get(first.facts.turn_id or "")
        worked_on = turn is None or turn.end is None or turn.end.at > again.arrived[1]
        if again.arrived[0] < first.answered[0] or worked_on:
            ids = [first.request_id, again.request_id]
            yield Finding("written-twice", ids, session_id=session.id, turn_id=again.facts.turn_id)


def key_reused(view: View) -> Iterator[Finding]:
    """A key that brought back the answer to another body."""
    used: dict[tuple[str, str, int, int], list[Exchange]] = {}
    for exchange in view.exchanges:
        if exchange.key is not None and exchange.ok:
            scope = (exchange.token_id, exchange.verb, exchange.place, exchange.key)
            used.setdefault(scope, []).append(exchange)
    for first, *again in used.values():
        others = [exchange.request_id for exchange in again if exchange.digest != first.digest]
        if others:
            yield Finding("key-reused", [first.request_id, *others][:SHOWN], session_id=first.session_id)


def answers(view: View) -> Iterator[Finding]:
    """What is wrong with an answer, or a configuration, in itself."""
    for exchange in view.exchanges:
        facts = exchange.facts
        for broken, finding_id in (
            (facts.wrong_answer, "answered-with-tool-result"),
            (facts.exception, "exception-in-error"),
            (facts.read_back, "read-back-sent"),
        ):
            if broken:
                yield Finding(
                    finding_id,
                    [exchange.request_id],
                    session_id=exchange.session_id,
                    turn_id=facts.turn_id,
                    call_id=facts.call_id,
                )


def tools_reached(view: View) -> Iterator[Finding]:
    """A turn that ran with the old tools after they had been replaced, or that used what came with the new ones."""
    for session in view.sessions.values():
        for put in session.exchanges:
            if not put.facts.differs:
                continue
            started = [happening.n for happening in session.happenings if happening.type == "sandbox.created"]
            started += [later.n for later in session.later(put.n) if later.ok and later.facts.differs]
            until = min((n for n in started if n > put.n), default=float("inf"))
            for turn in session.turns:
                # The workspace a turn needs comes up between its message and its start.
                if turn.begin.n < put.n or turn.started.n > until:
                    continue
                used = any(
                    _is_of(happening.name, put.facts.gained)
                    for happening in turn.inside
                    if happening.type in ("tool.required", "agent.tool_call")
                )
                if put.facts.waits or used:
                    ids = [put.request_id, *_sent(session, turn.id)]
                    yield Finding("tools-not-reached", ids, session_id=session.id, turn_id=turn.id)
                    break


def _is_of(name: str | None, names: frozenset[str]) -> bool:
    return name is not None and any(name == own or name.startswith(f"mcp_{own}_") for own in names)


def _sent(session: SessionSeen, turn_id: str) -> list[str]:
    """The request a turn's message came in."""
    return [sent.request_id for sent in session.exchanges if sent.facts.event and sent.facts.turn_id == turn_id][:1]
