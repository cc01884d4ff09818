"""The ASGI application of /v1: one request from its first byte to its last.

Law: built once per process and immutable. The deployment a request is for is in the scope's state,
put there by whoever owns the socket it came in on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from emulator import render
from emulator.api import faulty, gates, parse, replies
from emulator.api.call import Call, Download, Stream
from emulator.api.operations import OPERATIONS
from emulator.api.routes import Routes
from emulator.clock import stopwatch
from emulator.redaction import scrub
from emulator.refusals import INTERNAL_MESSAGE, Refusal, reset_meanwhile
from emulator.runtime.journal import Entry

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from emulator.api.faulty import Meeting
    from emulator.api.operations import Operation
    from emulator.domain import idempotency
    from emulator.runtime.deployment import Deployment


class Holder(Protocol):
    """Whoever owns the socket: its present deployment changes when it is reset."""

    deployment: Deployment


class Api:
    """Serves /v1 for whatever deployment the scope's state holds."""

    def __init__(self) -> None:
        self._routes = Routes(OPERATIONS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        deployment: Deployment = scope["state"]["emulator"].deployment
        if deployment.faults.any and (fault := faulty.met(deployment, scope)) is not None:
            await faulty.serve(self._routes, self._answer, fault, deployment, scope, receive, send)
        else:
            await self._answer(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send, meeting: Meeting | None = None) -> None:
        """Handle one request. `meeting` is with the fault it met, if it met one."""
        started = stopwatch()
        holder: Holder = scope["state"]["emulator"]
        deployment = holder.deployment if meeting is None else meeting.deployment
        world = deployment.world
        request_id = world.ids.request()
        headers: replies.Headers = [(b"x-request-id", request_id.encode()), replies.LINK]
        entry = Entry(scope["method"], scrub(scope["path"]), {}, 0, request_id, world.now())
        if meeting is not None:
            started = meeting.begin(entry)
        operation: Operation | None = None
        call: Call | None = None
        key: idempotency.Scope | None = None
        write: int | None = None
        explored: int | None = None
        try:
            operation, values = self._routes.find(scope["method"], scope["raw_path"])
            call = Call(deployment, request_id, values, {}, dict(scope["headers"]))
            try:
                headers += gates.check_token(operation, call)
            except gates.Limited as limited:
                headers += limited.budget
                raise
            if holder.deployment is not deployment:
                # One that met a fault may have waited for long.
                raise reset_meanwhile()
            gates.check_scope(operation, call)
            key, answer = gates.claim_key(operation, call, scope["raw_path"])
            if answer is not None:
                key = None
                call.outcome = answer
                if deployment.watcher is not None:
                    await gates.compare_body(operation, call, receive)
                await replies.send_json(send, entry, headers, answer.status, answer.body)
                return
            if scope["query_string"]:
                call.query = parse.read_query(scope["query_string"], operation.query)
                entry.query = {name: replies.shown(value) for name, value in call.query.items()}
            if operation.writes:
                await gates.read_body(operation, call, receive)
            if deployment.exploring is not None and call.maybe_token is not None:
                explored = await deployment.exploring.before(
                    call.organization, scope["method"], scope["path"], call.sent, stream=operation.stream
                )
            if operation.writes:
                if holder.deployment is not deployment:
                    raise reset_meanwhile()
                write = deployment.deliveries.begin(call.token.organization)
            call.outcome = reply = await operation.handler(call)
            if isinstance(reply, Stream):
                # Noted as it opens: it may stay open for as long as the emulator runs.
                entry.status = 200
                replies.note(deployment, entry, operation, call, meeting)
                await replies.stream(receive, send, deployment, headers, reply.reader, meeting)
                return
            if isinstance(reply, Download):
                await replies.download(send, entry, headers, reply)
                return
            status = reply.status or operation.status
            content = reply.content if deployment.exploring is None else deployment.exploring.answer(reply.content)
            body = render.encode(content)
            if write is not None:
                await deployment.deliveries.overtake(call.token.organization, write)
            if key is not None:
                world.keys.finish(key, status, body, world.now())
                key = None
            await replies.send_json(send, entry, headers + reply.headers, status, body)
        except Refusal as refused:
            if call is not None:
                call.outcome = refused
            await replies.refuse(send, entry, headers, refused, deployment)
        except parse.Disconnected:
            pass
        except Exception as error:
            replies.log_fault("request", request_id, error)
            await replies.refuse(send, entry, headers, Refusal("internal_error", INTERNAL_MESSAGE), deployment)
        finally:
            if explored is not None and deployment.exploring is not None:
                deployment.exploring.after(explored)
            if key is not None:
                world.keys.finish(key, 0, b"", world.now())
            if write is not None and call is not None:
                # What the call caused is told of from here on: its client has the reply.
                deployment.deliveries.end(call.token.organization, write)
            if deployment.write_check is not None and entry.status and scope["method"] not in ("GET", "HEAD"):
                replies.check_write(deployment.write_check, scope, entry, call, meeting)
            entry.duration_ms = round((stopwatch() - started) * 1000, 3)
            if operation is None or not operation.stream or entry.status != 200:
                # After the answer has gone out: the client need not wait for it.
                replies.note(deployment, entry, operation, call, meeting)
