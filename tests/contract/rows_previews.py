"""Previews: what an agent serves, published at an address that answers (contract §12)."""

from __future__ import annotations

from typing import Final

from tests.contract.manifest import Row

_SOURCE: Final = "contract §12"

ROWS: Final = (
    Row("previews.served", _SOURCE, "What the agent serves is on the session: preview.url and its port."),
    Row(
        "previews.private",
        _SOURCE,
        "preview.url is an address of the API's own form, which the emulator does not serve.",
        "The API's answers only with a token, and anybody else gets the Console's page: nothing of an agent can be "
        "seen there. It is in the event log, where an address of this machine would change from run to run.",
    ),
    Row("previews.publish", _SOURCE, "Publishing answers 201 with the address; it is on the session as published_url."),
    Row("previews.default", _SOURCE, "Without a subdomain the address is s- and the first 20 hex of the session's id."),
    Row("previews.no-body", _SOURCE, "Publishing takes an empty object or no body at all."),
    Row("previews.again", _SOURCE, "Publishing at the same address again answers 200 with the same body."),
    Row(
        "previews.elsewhere",
        _SOURCE,
        "Published at another address already: conflict, which names that and how to unpublish.",
    ),
    Row(
        "previews.elsewhere-unnamed",
        _SOURCE,
        "No subdomain asks for the derived address, also of a session that is published at another one.",
        "The sources do not say; an answer with another address than the documented one would be a silent choice.",
    ),
    Row("previews.no-port", _SOURCE, "Before anything is served publishing is refused with conflict."),
    Row("previews.taken", _SOURCE, "A subdomain another session holds is refused with conflict."),
    Row("previews.taken-anywhere", _SOURCE, "It is taken whichever organization holds it, and nothing tells which."),
    Row(
        "previews.not-prepared",
        _SOURCE,
        "A preview that could not be prepared is refused with conflict and holds no address.",
        "Scripted by the setting preview_publish, as nothing else makes it fail.",
    ),
    Row("previews.characters", _SOURCE, "A subdomain is 2 to 63 of a-z, 0-9 and -; others are refused with 400."),
    Row(
        "previews.hyphens",
        _SOURCE,
        "A subdomain neither begins nor ends in a hyphen.",
        "The sources name the characters alone; such a name cannot be looked up.",
    ),
    Row(
        "previews.reserved",
        _SOURCE,
        "Names the platform reserves are refused with 400, as are those made from another session's id.",
        "The sources say that there are reserved names, not which: ours are the usual ones (admin, api, app, …, www).",
    ),
    Row(
        "previews.refusal-order", "contract §2", "An unusable subdomain is refused before anybody looks for a session."
    ),
    Row("previews.unpublish", _SOURCE, "Unpublishing takes the address away and leaves the session and its port."),
    Row(
        "previews.unpublish-id",
        _SOURCE,
        "The id an unpublish answers with is the session's.",
        "The sources do not say whose it is; a preview has no id of its own.",
    ),
    Row("previews.unpublish-again", _SOURCE, "Unpublishing what is not published answers 200 with the same body."),
    Row("previews.free", _SOURCE, "An address that was let go of can be taken by others, and by the same one again."),
    Row("previews.delete", _SOURCE, "Deleting the session takes its address away, and others can have it."),
    Row(
        "previews.address",
        _SOURCE,
        "The address is one of the emulator: http://HOST:PORT/_preview/SUBDOMAIN.",
        "Names below gobare.dev would leave this machine, and names below localhost do not resolve everywhere.",
    ),
    Row(
        "previews.public-url",
        _SOURCE,
        "Where clients reach the emulator at another address than it listens on, a setting says so.",
        "Ours alone: behind a published port of a container, say.",
    ),
    Row("previews.open", _SOURCE, "The address answers anybody, without a token, with what the script serves."),
    Row("previews.type", _SOURCE, "A text is served as HTML or JSON where it is that, and as plain text else."),
    Row(
        "previews.browser",
        _SOURCE,
        "A browser is sent on from the bare address to the same with a slash, where a page's relative links work.",
        "The API's addresses are hosts of their own and need none; other clients get the page at once.",
    ),
    Row("previews.pages", _SOURCE, "Of several pages each answers at its own path, with the type its name says."),
    Row("previews.everywhere", _SOURCE, "A single text is served at every path."),
    Row(
        "previews.silent",
        _SOURCE,
        "An agent that serves a port and no body is served as a line that tells the port.",
        "Ours alone: a script need not say what it serves.",
    ),
    Row("previews.not-found", _SOURCE, "A path without a page and an address nobody holds answer 404, in JSON."),
    Row("previews.verbs", _SOURCE, "Addresses take GET and HEAD; other verbs are refused with 405 and Allow."),
    Row("previews.latest", _SOURCE, "A later preview is served at the same address."),
    Row(
        "previews.hosts", _SOURCE, "Addresses are served under the host names the emulator was told of, and no others."
    ),
    Row("previews.wakes", _SOURCE, "A visit wakes a paused workspace, and sandbox.resumed says so."),
    Row(
        "previews.visits",
        _SOURCE,
        "The five idle minutes count from the last visit.",
        "The page on waking shows a workspace paused five minutes after its last visitor.",
    ),
    Row("previews.pauses", _SOURCE, "A published workspace pauses like any other."),
    Row("previews.not-reclaimed", _SOURCE, "A published workspace is not reclaimed, and no turn fails of it."),
    Row(
        "previews.countdown",
        _SOURCE,
        "What was left of the two hours counts again once it is unpublished.",
        "The sources do not say; time published is time that does not count, like time paused.",
    ),
    Row("previews.reclaimed", _SOURCE, "A workspace that is reclaimed serves nothing any more: url and port are null."),
    Row("previews.scenario", _SOURCE, "A scenario file serves a text, or texts by path."),
)
