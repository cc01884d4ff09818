"""The control routes over HTTP, and the same operations without it.

Law: built once and immutable. An operation gives the same answer both ways: what is sent is read from
its JSON, what is given is JSON.
"""

from __future__ import annotations

from hmac import compare_digest
from typing import TYPE_CHECKING, Any, Final

from emulator import render
from emulator.api import parse
from emulator.api.replies import log_fault
from emulator.api.routes import Routes
from emulator.control.call import Call, Host
from emulator.control.operations import OPERATIONS, Operation
from emulator.refusals import INTERNAL_MESSAGE, Refusal, invalid, not_found
from emulator.scenario_source import RECORDING_BYTES, not_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.types import Receive, Scope, Send

__all__ = ["Control", "Host", "dispatch"]

# As much as a recording may have.
_BODY_LIMIT: Final = RECORDING_BYTES
_HEADERS: Final = (
    (b"content-type", b"application/json"),
    (b"link", b'</_emulator/openapi.json>; rel="service-desc"'),
)

_ROUTES: Final = Routes(OPERATIONS)


class Control:
    """Serves /_emulator for whatever host the scope's state holds."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        host: Host = scope["state"]["emulator"]
        request_id = host.deployment.world.ids.request()
        headers: list[tuple[bytes, bytes]] = []
        try:
            operation, values = _find(scope["method"], scope["raw_path"])
            sent = dict(scope["headers"])
            if not operation.open:
                _check_token(host, sent)
            query = parse.read_query(scope["query_string"], operation.query)
            call = Call(host, host.deployment, request_id, values, query)
            if operation.verb != "GET":
                _take_body(operation, call, await parse.read_body(receive, sent, _BODY_LIMIT))
            status, body = operation.status, render.encode(await operation.handler(call))
        except parse.Disconnected:
            return
        except Refusal as refused:
            status, body = refused.status, render.encode(render.refusal(refused, request_id))
            headers = render.refusal_headers(refused)
        except Exception as error:
            log_fault("control request", request_id, error)
            fault = Refusal("internal_error", INTERNAL_MESSAGE)
            status, body = fault.status, render.encode(render.refusal(fault, request_id))
            headers = render.refusal_headers(fault)
        headers += [(b"content-length", b"%d" % len(body)), (b"x-request-id", request_id.encode()), *_HEADERS]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})


async def dispatch(host: Host, verb: str, path: str, body: Any = None) -> Any:
    """Carry out an operation without HTTP, on the loop of `host`, and give its answer as a JSON value.

    `path` is as in a request: percent-encoded, with its query. `body` is a JSON value, `None` for none.
    Needs no control token. Raises `Refusal`.
    """
    raw_path, _, query = path.encode().partition(b"?")
    operation, values = _find(verb, raw_path)
    request_id = host.deployment.world.ids.request()
    call = Call(host, host.deployment, request_id, values, parse.read_query(query, operation.query))
    if operation.verb != "GET":
        try:
            sent = b"" if body is None else render.encode(body)
        except ValueError:
            raise invalid(not_json(body)) from None
        _take_body(operation, call, sent)
    return render.decode(render.encode(await operation.handler(call)))


def _find(verb: str, raw_path: bytes) -> tuple[Operation, dict[str, str]]:
    try:
        operation, values = _ROUTES.find(verb, raw_path)
    except Refusal as refused:
        if refused.code == "not_found":
            raise not_found("There is no such control route. GET /_emulator/openapi.json lists them.") from None
        raise
    return operation, values


def _check_token(host: Host, headers: Mapping[bytes, bytes]) -> None:
    if host.control_token is None:
        return
    kind, _, text = headers.get(b"authorization", b"").partition(b" ")
    wanted = host.control_token.reveal().encode("utf-8", "surrogateescape")
    if kind.lower() != b"bearer" or not compare_digest(text.strip(), wanted):
        raise Refusal(
            "authentication_error",
            "This emulator was started with a control token. Send it as `Authorization: Bearer …`; "
            "it is not an access token of the API.",
            headers={"WWW-Authenticate": 'Bearer realm="gobare-emulator"'},
        )


def _take_body(operation: Operation, call: Call, sent: bytes) -> None:
    """Put the body on the call as the operation's shape. Raises 400."""
    empty = not sent.strip()
    if operation.request is None:
        parse.check_no_body(sent)
        return
    value = {} if empty and operation.optional else parse.read_json(sent)
    call.body = parse.shaped(operation.request.model, value)
