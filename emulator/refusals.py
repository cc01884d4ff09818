"""Refusals: the one catalogue of error codes, and the exception that carries one to the client.

Law: a code is declared here once, with its status and whether `Retry-After` goes with it; nobody
else decides either. A message says what to fix and never contains a value that could be a secret.
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


@dataclass(frozen=True, slots=True)
class Code:
    """What a code means on the wire: its HTTP status, and the seconds of its `Retry-After`.

    `retry_after` is `None` where waiting cannot help; a code whose wait is computed or only
    sometimes useful is `None` here as well and the refusal brings its own number.
    """

    status: int
    retry_after: int | None = None


# contract §2. `conflict` and `rate_limit_exceeded` bring their wait along when there is one.
CATALOGUE: Final[Mapping[str, Code]] = {
    "invalid_request": Code(400),
    "context_length_exceeded": Code(400),
    "authentication_error": Code(401),
    "permission_denied": Code(403),
    "not_found": Code(404),
    "method_not_allowed": Code(405),
    "conflict": Code(409),
    "queue_full": Code(429, 5),
    "rate_limit_exceeded": Code(429, 1),
    "project_limit_exceeded": Code(429),
    "internal_error": Code(500, 5),
    "sandbox_error": Code(500, 5),
    "workspace_recovery_failed": Code(500),
    "bridge_incompatible": Code(500),
    "provider_error": Code(502, 5),
    "provider_unauthorized": Code(502),
    "sandbox_unavailable": Code(503, 5),
    "directory_unavailable": Code(503, 5),
}

# Characters of the longest message: a value that is repeated in one may have any length.
_LONGEST_MESSAGE: Final = 4096
_KEPT_AT_END: Final = 1024

INTERNAL_MESSAGE: Final = "Something went wrong on our side. Retry, and quote the request id if it goes on."


class Refusal(Exception):
    """A request that is not carried out. Renders to `{"error": {code, message, request_id}}`.

    `retry_after` is in whole seconds; `headers` are sent beside the body (`Allow`,
    `WWW-Authenticate`). Raised anywhere below the API, rendered in one place (contract §2).
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        retry_after: int | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        if len(message) > _LONGEST_MESSAGE:
            # In the middle stands what was sent; what to do about it stands at the end.
            message = f"{message[: _LONGEST_MESSAGE - _KEPT_AT_END - 1]}…{message[-_KEPT_AT_END:]}"
        super().__init__(message)
        self.code = code
        self.message = message
        self.status = CATALOGUE[code].status
        self.retry_after = CATALOGUE[code].retry_after if retry_after is None else retry_after
        self.headers = dict(headers or {})


def invalid(message: str) -> Refusal:
    """The refusal of a request that is wrong in itself: 400 `invalid_request`."""
    return Refusal("invalid_request", message)


def not_found(message: str) -> Refusal:
    """The refusal of an id that does not exist, or belongs to somebody else: 404 `not_found`."""
    return Refusal("not_found", message)


def reset_meanwhile() -> Refusal:
    """The refusal of a request that was on its way when the emulator was reset: 503, worth another try."""
    return Refusal("sandbox_unavailable", "The emulator was reset while this request was on its way. Send it again.")


# Words people bring from neighbouring APIs, which no spelling distance would find (tools page).
_OTHER_NAMES: Final[Mapping[str, str]] = {
    "cmd": "command",
    "timeout": "timeout_seconds",
    "allowed": "allowed_tools",
    "tools_allowed": "allowed_tools",
    "auth": "authorization",
    "env": "env_refs",
    "input_schema": "parameters",
    "schema": "parameters",
    "system": "instructions",
    "prompt": "instructions",
    "text": "content",
    "message": "content",
    "result": "output",
    "kimi": "moonshot",
    "claude": "anthropic",
}


_LONGEST: Final = 100


def suggest(sent: str, accepted: Iterable[str]) -> str | None:
    """The accepted name that `sent` probably meant, or `None`.

    Case and separators are ignored first (`allowedTools`, `read-only`), then names known from
    elsewhere (`cmd`), then spelling. Something much longer than any name is no near miss of one.
    """
    if len(sent) > _LONGEST:
        return None
    names = list(accepted)
    folded = {_fold(name): name for name in names}
    if (same := folded.get(_fold(sent))) is not None:
        return same
    other = _OTHER_NAMES.get(sent.lower())
    if other in names:
        return other
    close = get_close_matches(_fold(sent), list(folded), n=1, cutoff=0.75)
    return folded[close[0]] if close else None


def did_you_mean(sent: str, accepted: Iterable[str]) -> str:
    """A closing sentence with the suggestion, or an empty string."""
    found = suggest(sent, accepted)
    return f" Did you mean `{found}`?" if found is not None else ""


def _fold(name: str) -> str:
    return "".join(character for character in name.lower() if character.isalnum())
