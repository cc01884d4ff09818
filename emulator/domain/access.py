"""Access: tokens, the organizations they belong to, and what their scopes allow.

Law: a token's text is never kept; it is looked up by its digest (contract §3).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from emulator.refusals import Refusal

if TYPE_CHECKING:
    from collections.abc import Iterable

SCOPES: Final = ("cli", "sessions:read", "sessions:write", "tools:respond", "artifacts:read", "credentials:write")
DEFAULT_SCOPES: Final = tuple(scope for scope in SCOPES if scope != "cli")
DEFAULT_TOKEN: Final = "gbr_pat_emulator"
DEFAULT_ORGANIZATION: Final = "default"

UNRECOGNISED: Final = "This access token is not recognized"


@dataclass(slots=True)
class Token:
    """An access token as the server knows it. `expires_at` is in Unix milliseconds.

    `used` are the scopes it turned out to need; `chosen`: somebody named its scopes when minting it.
    """

    id: str
    organization: str
    scopes: frozenset[str]
    expires_at: int | None = None
    revoked: bool = False
    chosen: bool = False
    used: set[str] = field(default_factory=set)

    @property
    def cli_only(self) -> bool:
        """Whether it has nothing but cli, if that: every route but health refuses it (contract §3)."""
        return self.scopes <= {"cli"}

    def require(self, *any_of: str) -> None:
        """Raise 403 `permission_denied` unless the token has one of these scopes."""
        if not self.scopes.isdisjoint(any_of):
            if len(any_of) == 1:
                self.used.update(any_of)
            return
        if len(any_of) == 1:
            raise Refusal("permission_denied", f'This token does not have the "{any_of[0]}" scope.')
        names = " or ".join(f'"{scope}"' for scope in any_of)
        raise Refusal("permission_denied", f"This token does not have the {names} scope.")


class Access:
    """The tokens of one world."""

    def __init__(self) -> None:
        self._by_digest: dict[bytes, Token] = {}
        self._by_id: dict[str, Token] = {}

    def add(self, text: str, token: Token) -> None:
        """Recognise `text` as `token` from now on; the same text again replaces its token."""
        known = self._by_digest.get(_digest(text))
        if known is not None:
            del self._by_id[known.id]
        self._by_digest[_digest(text)] = token
        self._by_id[token.id] = token

    def chosen(self) -> list[Token]:
        """The tokens whose scopes somebody named."""
        return [token for token in self._by_id.values() if token.chosen]

    def knows(self, token_id: str) -> bool:
        """Whether there is a token of that id."""
        return token_id in self._by_id

    def revoke(self, token_id: str) -> Token | None:
        """Have a token refused from its next request on. Gives it back, or `None`."""
        token = self._by_id.get(token_id)
        if token is not None:
            token.revoked = True
        return token

    def authenticate(self, header: str | None, now: int) -> Token:
        """The token an `Authorization` header names. Raises 401 `authentication_error`."""
        if header is None:
            raise unauthorized("This request has no access token. Send `Authorization: Bearer gbr_pat_…`.", "")
        kind, _, text = header.partition(" ")
        if kind.lower() != "bearer" or not text.strip():
            raise unauthorized("The Authorization header is not of the form `Bearer gbr_pat_…`.", "invalid_request")
        token = self._by_digest.get(_digest(text.strip()))
        if token is None or token.revoked or (token.expires_at is not None and token.expires_at <= now):
            raise unauthorized(UNRECOGNISED, "invalid_token")
        return token


def check_scopes(scopes: Iterable[str]) -> frozenset[str]:
    """`scopes` as a set. Raises `ValueError` naming the first that does not exist."""
    for scope in scopes:
        if scope not in SCOPES:
            raise ValueError(f"{scope!r} is not a scope; the scopes are {', '.join(SCOPES)}")
    return frozenset(scopes)


def _digest(text: str) -> bytes:
    return sha256(text.encode("utf-8", "surrogateescape")).digest()


def unauthorized(message: str, error: str) -> Refusal:
    """A 401 with its challenge."""
    challenge = f'Bearer realm="gobare", error="{error or "invalid_token"}"'
    return Refusal("authentication_error", message, headers={"WWW-Authenticate": challenge})
