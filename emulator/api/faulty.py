"""Faulty: what becomes of a request that meets a fault.

Law: a fault comes before every check of the request. One that answers in place of the API, or ends the connection
before it is carried out, leaves nothing behind: no effect, no charge, no key. Every other leaves the request to
the API and changes what its client sees of the answer.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from emulator.api import gates, parse, replies
from emulator.api.call import Call
from emulator.api.dripping import altered
from emulator.clock import stopwatch
from emulator.domain.access import UNRECOGNISED, unauthorized
from emulator.redaction import scrub
from emulator.refusals import INTERNAL_MESSAGE, Refusal
from emulator.runtime.journal import Entry

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from starlette.types import Message, Receive, Scope, Send

    from emulator.api.operations import Operation
    from emulator.api.routes import Routes
    from emulator.domain.faults import Fault
    from emulator.listening import Connection
    from emulator.runtime.deployment import Deployment
    from emulator.runtime.feed import Reader

    Handle = Callable[[Scope, Receive, Send, "Meeting"], Awaitable[None]]

_TITLES: Final = {
    400: "Bad Request",
    403: "Forbidden",
    404: "Not Found",
    408: "Request Timeout",
    413: "Request Entity Too Large",
    429: "Too Many Requests",
    500: "Internal Server Error",
    502: "Bad Gateway",
    503: "Service Unavailable",
    504: "Gateway Timeout",
}


def met(deployment: Deployment, scope: Scope) -> Fault | None:
    """The fault a request meets, if any."""
    verb, raw_path = scope["method"], scope["raw_path"]
    found = deployment.faults.on(verb, raw_path, parse.segments)
    if not found:
        return None

    def token() -> str | None:
        with suppress(Refusal):
            return gates.token_of(deployment.world, dict(scope["headers"])).id
        return None

    return deployment.faults.meet(found, verb, parse.segments(raw_path) or (), token)


async def serve(
    routes: Routes[Operation],
    handle: Handle,
    fault: Fault,
    deployment: Deployment,
    scope: Scope,
    receive: Receive,
    send: Send,
) -> None:
    """Have a request meet a fault; `handle` is what handles it but for that."""
    meeting = Meeting(fault, deployment, scope, receive)
    try:
        if fault.delay is not None:
            meeting.acts()
            await deployment.clock.pause(fault.delay)
        if fault.instead:
            await _instead(routes, meeting, scope, receive, send)
        elif fault.twice:
            await _twice(handle, meeting, scope, receive, send)
        else:
            await handle(scope, receive, meeting.sending(send), meeting)
    except parse.Disconnected:
        pass
    finally:
        meeting.over()


class Meeting:
    """One request and the fault it meets.

    `lost`: what its client had of the answer is not to be used. `unknown`: its client knows nothing of it, as it
    is the first of two that a proxy made of one; of the second, `again` is true.
    """

    def __init__(self, fault: Fault, deployment: Deployment, scope: Scope, receive: Receive) -> None:
        self.fault = fault
        self.deployment = deployment
        self.lost = False
        self.unknown = False
        self.again = False
        # There is none where the application is called without a socket.
        self.connection: Connection | None = scope["state"].get("connection")
        self._receive = receive
        self._began = stopwatch()
        self._acted = False
        self._unseen = False
        self._entry: Entry | None = None

    def begin(self, entry: Entry) -> float:
        """The request is about to be handled under this entry of the journal. Gives when it came in."""
        self._entry = entry
        if self._acted:
            entry.fault = self.fault.id
        return self._began

    def acts(self) -> None:
        """It has gone wrong."""
        if not self._acted:
            self._acted = True
            self.fault.hits += 1
        if self._entry is not None:
            self._entry.fault = self.fault.id

    def over(self) -> None:
        """The request has ended. A fault that it was spared is there for the next one."""
        if not self._acted:
            self.fault.taken -= 1
        self.settle()

    def settle(self) -> None:
        """Have the journal tell what the client saw."""
        if self._unseen and self._entry is not None:
            self._entry.status = 0
        self._unseen = False

    def unseen(self) -> None:
        """Nothing of the answer reaches the client."""
        self.lost = self._unseen = True

    async def arrived(self) -> None:
        """Wait until the client's machine has all that it was sent: a connection that breaks drops the rest."""
        while self.connection is not None and self.connection.unsent and await self.deployment.clock.pause(0.001):
            pass

    async def end(self, *, reset: bool) -> None:
        """End the connection, and the request with it: raises `Disconnected`."""
        if self.connection is not None:
            if reset:
                await self.arrived()
                self.connection.reset()
            else:
                self.connection.close()
            await parse.left(self._receive)
        raise parse.Disconnected

    def sending(self, send: Send) -> Send:
        """What the answer is sent by."""
        fault = self.fault
        if fault.reset is None and fault.truncate is None:
            return send
        left = 0

        async def cut(message: Message) -> None:
            nonlocal left
            if message["type"] == "http.response.start":
                if fault.reset == "after":
                    self.acts()
                    self.unseen()
                    await self.end(reset=True)
                left = _kept(fault, message)
                await send(message)
                return
            body = message.get("body", b"")
            more = bool(message.get("more_body", False))
            kept = body[: len(body) // 2] if fault.reset is not None else body[:left]
            if more and (not body or (fault.reset is None and len(kept) == len(body))):
                left -= len(kept)
                await send(message)
                return
            self.acts()
            self.lost = True
            await send({**message, "body": kept, "more_body": True})
            await self.end(reset=fault.reset is not None)

        return cut

    def stream(self, reader: Reader, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """The bytes of an event stream as they are to be sent."""
        return altered(self, reader, chunks) if self.fault.on_streams else chunks


def _kept(fault: Fault, start: Message) -> int:
    """How many bytes of a body are sent that is to be shorter than it says."""
    length = next((int(value) for name, value in start["headers"] if name == b"content-length"), None)
    wanted = fault.truncate or 0
    return wanted if length is None else min(wanted, max(0, length - 1))


async def _twice(handle: Handle, meeting: Meeting, scope: Scope, receive: Receive, send: Send) -> None:
    """Have a request handled twice, as one that a proxy sends again since it lost the first answer."""
    told: list[Message] = []

    async def noted() -> Message:
        message = await receive()
        told.append(message)
        return message

    async def repeated() -> Message:
        return told.pop(0) if told else await receive()

    async def nowhere(message: Message) -> None:
        pass

    meeting.unknown = True
    meeting.unseen()
    await handle(scope, noted, nowhere, meeting)
    meeting.settle()
    if told and told[-1]["type"] == "http.disconnect":
        # It never came whole: there is nothing to send again.
        return
    meeting.acts()
    meeting.unknown = meeting.lost = False
    meeting.again = True
    await handle(scope, repeated, send, meeting)


async def _instead(routes: Routes[Operation], meeting: Meeting, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer in place of the API, or not at all."""
    fault, deployment = meeting.fault, meeting.deployment
    world = deployment.world
    entry = Entry(scope["method"], scrub(scope["path"]), {}, 0, world.ids.request(), world.now())
    began = meeting.begin(entry)
    operation: Operation | None = None
    call: Call | None = None
    budget: tuple[tuple[bytes, bytes], ...] = ()
    with suppress(Refusal):
        operation, values = routes.find(scope["method"], scope["raw_path"])
        call = Call(deployment, entry.request_id, values, {}, dict(scope["headers"]))
        budget = gates.look(operation, call)
        if scope["query_string"]:
            call.query = parse.read_query(scope["query_string"], operation.query)
            entry.query = {name: replies.shown(value) for name, value in call.query.items()}
    if operation is not None and call is not None and call.maybe_token is not None and operation.writes:
        # For the journal: whoever answers has seen all of it.
        await gates.compare_body(operation, call, receive)
    meeting.acts()
    try:
        if fault.error is not None:
            refused = _refusal(fault, operation, routes.verbs(scope["raw_path"]))
            headers = [(b"x-request-id", entry.request_id.encode()), replies.LINK]
            headers += budget if refused.status != 401 else ()
            if call is not None:
                call.outcome = refused
            await replies.refuse(send, entry, headers, refused, deployment)
        else:
            meeting.unknown = True
            if fault.html is None:
                await meeting.end(reset=fault.reset is not None)
            else:
                await _page(send, entry, fault.html)
    finally:
        entry.duration_ms = round((stopwatch() - began) * 1000, 3)
        replies.note(deployment, entry, operation, call, meeting)


async def _page(send: Send, entry: Entry, status: int) -> None:
    """A page of a proxy's: nothing in it is of the API."""
    entry.status = status
    title = f"{status} {_TITLES.get(status, 'Error')}"
    page = f"<html>\r\n<head><title>{title}</title></head>\r\n<body><center><h1>{title}</h1></center></body>\r\n</html>"
    await replies.send_whole(send, status, [(b"content-type", b"text/html")], page.encode())


def _refusal(fault: Fault, operation: Operation | None, verbs: tuple[str, ...]) -> Refusal:
    """The refusal a fault asks for, with all that goes with its code."""
    code = fault.error or "internal_error"
    headers: dict[str, str] = {}
    words = f"A fault that was scripted refuses this request with {code}."
    match code:
        case "authentication_error":
            headers, words = unauthorized(UNRECOGNISED, "invalid_token").headers, UNRECOGNISED
        case "permission_denied" if operation is not None and operation.scopes:
            words = f'This token does not have the "{operation.scopes[0]}" scope.'
        case "method_not_allowed":
            headers = {"Allow": ", ".join(verbs)}
        case "internal_error":
            words = INTERNAL_MESSAGE
    return Refusal(code, fault.message or words, retry_after=fault.retry_after, headers=headers)
