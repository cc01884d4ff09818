"""Previews: the public addresses of what agents serve, and who holds each (contract §12).

Law: an address is held by one session of the whole world, whatever its organization, until it is let
go of or its session is deleted. A name is checked before anybody asks who holds it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from emulator.domain.artifacts import content_type
from emulator.refusals import Refusal, invalid

if TYPE_CHECKING:
    from collections.abc import Mapping

SUBDOMAIN_LEAST: Final = 2
SUBDOMAIN_MOST: Final = 63

# A name at either end of which a hyphen stands is not one that can be looked up.
_NAME: Final = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?")
# Forms that are given out from ids: nobody may take another's.
_DERIVED: Final = re.compile(r"s-[0-9a-f]{20}|p-[0-9a-f]{12}")

RESERVED: Final = (
    "admin",
    "api",
    "app",
    "assets",
    "auth",
    "billing",
    "blog",
    "cdn",
    "console",
    "dashboard",
    "docs",
    "gobare",
    "help",
    "login",
    "mail",
    "preview",
    "previews",
    "sandbox",
    "staging",
    "static",
    "status",
    "support",
    "www",
)
"""Names the platform keeps for itself. The sources say that there are some, not which."""

_HTML: Final = "text/html"


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds an address."""

    organization: str
    session_id: str


@dataclass(slots=True)
class Addresses:
    """Every published address of one emulator, by subdomain."""

    _holders: dict[str, Holder] = field(default_factory=dict)

    def holder(self, subdomain: str) -> Holder | None:
        """Who holds an address, or `None`."""
        return self._holders.get(subdomain)

    def take(self, subdomain: str, holder: Holder) -> None:
        """Give an address to a session. Raises 409 `conflict` when another has it, whoever that is."""
        if self._holders.setdefault(subdomain, holder) != holder:
            raise Refusal(
                "conflict",
                f"The subdomain {subdomain!r} is taken. Choose another, or leave `subdomain` out to have one made "
                "from the session's id.",
            )

    def free(self, subdomain: str) -> None:
        """Let go of an address."""
        self._holders.pop(subdomain, None)


def default_subdomain(session_id: str) -> str:
    """The name a session's address has when none is asked for: `s-` and 20 hex of its id."""
    return f"s-{session_id.replace('-', '')[:20]}"


def check_subdomain(sent: str, session_id: str) -> str:
    """The subdomain that was asked for. Raises 400 for one that cannot be used, saying why."""
    accepted = f"{SUBDOMAIN_LEAST} to {SUBDOMAIN_MOST} characters of a to z, 0 to 9 and -"
    if not SUBDOMAIN_LEAST <= len(sent) <= SUBDOMAIN_MOST:
        raise invalid(f"`subdomain` takes {accepted}; {len(sent)} were sent.")
    if not _NAME.fullmatch(sent):
        lower = re.sub(r"[^a-z0-9]+", "-", sent.lower()).strip("-")
        near = f" Did you mean `{lower}`?" if lower != sent and len(lower) >= SUBDOMAIN_LEAST else ""
        raise invalid(f"`subdomain` takes {accepted}, beginning and ending in a letter or a digit.{near}")
    if sent in RESERVED or (_DERIVED.fullmatch(sent) and sent != default_subdomain(session_id)):
        raise invalid(f"`subdomain` {sent!r} is a name the platform reserves. Choose another.")
    return sent


@dataclass(frozen=True, slots=True)
class Page:
    """What an address answers with."""

    content: bytes
    content_type: str


def page_at(body: str | Mapping[str, str] | None, port: int, path: str) -> Page | None:
    """What is served at a path, which begins with a slash; `None` where there is nothing.

    A text is served at every path; of a mapping, keys are paths, and `/` may be written `index.html`. An agent
    that did not say what it serves gets a line that tells the port.
    """
    if body is None:
        return Page(f"Port {port} answers; the script gave it no body.\n".encode(), "text/plain; charset=utf-8")
    if isinstance(body, str):
        return Page(body.encode(), _typed(path, body, sniff=True))
    for key, text in body.items():
        if f"/{key.removeprefix('/')}" in (path, f"{path}index.html" if path.endswith("/") else path):
            return Page(text.encode(), _typed(key, text))
    return None


def _typed(path: str, text: str, *, sniff: bool = False) -> str:
    kind = content_type(path)
    if sniff or kind == "application/octet-stream":
        kind = _sniffed(text)
    textual = kind.startswith("text/") or kind.rpartition("/")[2] in ("json", "xml", "yaml", "x-ndjson", "svg+xml")
    return f"{kind}; charset=utf-8" if textual else kind


def _sniffed(text: str) -> str:
    start = text.lstrip()[:1]
    if start == "<":
        return _HTML
    if start in ("{", "["):
        return "application/json"
    return "text/plain"
