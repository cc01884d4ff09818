"""Publishing a preview, and the pages that are served at its address (contract §12)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from emulator import render
from emulator.api.call import Reply
from emulator.domain.previews import check_subdomain, default_subdomain
from emulator.refusals import Refusal

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from emulator.api.call import Call
    from emulator.wire import previews as wire

_VERBS: Final = ("GET", "HEAD")


async def publish_preview(call: Call) -> Reply:
    """Put what the agent serves at a public address."""
    body: wire.PreviewPublishRequest = call.body
    session_id = call.path["session_id"]
    subdomain = default_subdomain(session_id) if body.subdomain is None else check_subdomain(body.subdomain, session_id)
    session = call.session
    new = call.deployment.engine.previews.publish(call.organization, session, subdomain)
    return Reply(render.preview(session), status=None if new else 200)


async def unpublish_preview(call: Call) -> Reply:
    """Take a session's public address away; doing it again changes nothing."""
    session = call.session
    call.deployment.engine.previews.unpublish(session)
    return Reply(render.deleted("preview", session.id))


class Pages:
    """The application that answers at published addresses: to anybody, for whatever deployment is in the scope."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        deployment = scope["state"]["emulator"].deployment
        verb = scope["method"]
        try:
            if verb not in _VERBS:
                allowed = ", ".join(_VERBS)
                raise Refusal("method_not_allowed", f"This address takes {allowed}.", headers={"Allow": allowed})
            # "/_preview/SUBDOMAIN/PATH", of which all behind the first may be missing.
            subdomain, slash, path = unquote(scope["raw_path"].decode("latin-1"))[1:].partition("/")[2].partition("/")
            page = deployment.engine.previews.open(subdomain, f"/{path}")
            status, content, content_type = 200, page.content, page.content_type
            headers: list[tuple[bytes, bytes]] = [(b"cache-control", b"no-store")]
            if not slash and any(name == b"accept" and b"text/html" in value for name, value in scope["headers"]):
                # A browser resolves the page's own links against the address, which must then end in a slash.
                status = 307
                headers.append((b"location", scope["raw_path"] + b"/"))
        except Refusal as refused:
            status, content_type = refused.status, "application/json"
            content = render.encode(render.refusal(refused, deployment.world.ids.request()))
            headers = render.refusal_headers(refused)
        headers += [(b"content-type", content_type.encode()), (b"content-length", b"%d" % len(content))]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if verb == "HEAD" else content})
