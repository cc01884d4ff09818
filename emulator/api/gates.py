"""The gates of a request, in the order the contract checks them (contract §2).

path → verb → token → rate → scope → idempotency key → query → body → shape; what follows (does the
object exist, does its state allow it) is the handler's.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from emulator.api import parse
from emulator.refusals import Refusal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.types import Receive

    from emulator.api.call import Call
    from emulator.api.operations import Operation
    from emulator.domain.access import Token
    from emulator.domain.idempotency import Answer, Scope
    from emulator.domain.limits import Budget
    from emulator.domain.world import World


def check_token(operation: Operation, call: Call) -> tuple[tuple[bytes, bytes], ...]:
    """Token, then rate. Gives the budget headers of the reply."""
    if operation.public:
        return ()
    world, budget = call.world, _budget(operation, call)
    wait = budget.take(world.now())
    if wait is not None and world.settings.rates == "published":
        raise Limited(budget.headers(), budget.per_minute, wait)
    return budget.headers()


def look(operation: Operation, call: Call) -> tuple[tuple[bytes, bytes], ...]:
    """Who asks, and the budget headers of a reply that costs nothing. Raises 401."""
    if operation.public:
        return ()
    budget = _budget(operation, call)
    budget.refill(call.world.now())
    return budget.headers()


def _budget(operation: Operation, call: Call) -> Budget:
    """What whoever asks has left. Raises 401."""
    call.maybe_token = token_of(call.world, call.headers)
    return call.world.budget(call.token, creates_session=operation.creates_session)


def token_of(world: World, headers: Mapping[bytes, bytes]) -> Token:
    """Who sends these headers. Raises 401."""
    header = headers.get(b"authorization")
    return world.access.authenticate(None if header is None else header.decode("latin-1"), world.now())


class Limited(Refusal):
    """A call past its budget; `budget` are the headers its refusal carries all the same."""

    def __init__(self, budget: tuple[tuple[bytes, bytes], ...], per_minute: int, wait: int) -> None:
        seconds = "second" if wait == 1 else "seconds"
        message = f"This token may make {per_minute} such calls a minute. Try again in {wait} {seconds}."
        super().__init__("rate_limit_exceeded", message, retry_after=wait)
        self.budget = budget


def check_scope(operation: Operation, call: Call) -> None:
    """The token must have one of the operation's scopes."""
    if operation.scopes:
        call.token.require(*operation.scopes)


def claim_key(operation: Operation, call: Call, raw_path: bytes) -> tuple[Scope | None, Answer | None]:
    """Claim the idempotency key of a write. Gives the scope to finish, or the answer to replay."""
    if not operation.writes or call.maybe_token is None:
        return None, None
    key = parse.idempotency_key(call.headers.get(b"idempotency-key"))
    if key is None:
        return None, None
    scope = (call.token.id, operation.verb, raw_path.decode("latin-1"), key)
    return scope, call.world.keys.begin(scope, call.world.now())


async def read_body(operation: Operation, call: Call, receive: Receive) -> None:
    """Read, size, decode and shape the body. What was sent is left on the call for the journal."""
    ceiling: int = getattr(call.world.settings, operation.body_limit)
    call.sent = body = await parse.read_body(receive, call.headers, ceiling)
    call.digest = hash(bytes(body))
    if operation.request is None:
        parse.check_no_body(body)
        return
    call.sent = value = parse.read_json(b"{}" if operation.optional and not body else body)
    if operation.narrow is not None and (scope := operation.narrow(value)) is not None:
        call.token.require(scope)
    call.body = parse.shaped(operation.request.model, value)


async def compare_body(operation: Operation, call: Call, receive: Receive) -> None:
    """Read a body whose answer is there already, for what tells it from the first one's. Refuses nothing."""
    if operation.request is not None:
        with suppress(Refusal):
            await read_body(operation, call, receive)


def kept_body(operation: Operation, call: Call) -> Any:
    """What the journal keeps of what was sent."""
    sent = call.sent
    if operation.request is None or not sent:
        return None
    if isinstance(sent, bytes):
        return f"[{len(sent)} bytes that are not a JSON object]"
    model = operation.request.model
    # Of the digest two bodies may be alike by chance alone, once in 2**64.
    return call.deployment.journal.body((model, call.digest), lambda: parse.kept(model, sent))
