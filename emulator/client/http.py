"""Handles over HTTP: for an emulator in another process, or on another machine.

Law: nothing is asked for that a client in another language could not ask for.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NoReturn

from emulator.client.handle import AsyncHandle, Handle
from emulator.client.requests import ControlError
from emulator.redaction import Secret
from emulator.scenario_source import not_json

if TYPE_CHECKING:
    from types import TracebackType

DEFAULT_TOKEN: Final = "gbr_pat_emulator"
# Longer than an emulator waits for anything that one request can ask of it.
_PATIENCE: Final = 180.0


class EmulatorClient(Handle):
    """The handle of an emulator at an address. Close it, or use it as a context manager.

    `token` is what `token` gives, for the code under test; `control_token` is the one the emulator
    was started with, if any. Raises `ConnectionError` when no emulator answers there.
    """

    def __init__(self, url: str, token: str = DEFAULT_TOKEN, control_token: str | None = None) -> None:
        self._http = _Http(url, control_token)
        super().__init__(self._http, url.rstrip("/"), token)

    def close(self) -> None:
        """Close the connections."""
        self._http.client.close()

    def agent(self, *arguments: Any, **options: Any) -> NoReturn:
        """Not over HTTP: raises `TypeError`."""
        _no_agents()

    def __enter__(self) -> EmulatorClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<EmulatorClient {self.url}>"


class AsyncEmulatorClient(AsyncHandle):
    """`EmulatorClient`, awaited; under asyncio and trio alike."""

    def __init__(self, url: str, token: str = DEFAULT_TOKEN, control_token: str | None = None) -> None:
        self._http = _AsyncHttp(url, control_token)
        super().__init__(self._http, url.rstrip("/"), token)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.client.aclose()

    def agent(self, *arguments: Any, **options: Any) -> NoReturn:
        """Not over HTTP: raises `TypeError`."""
        _no_agents()

    async def __aenter__(self) -> AsyncEmulatorClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        return f"<AsyncEmulatorClient {self.url}>"


class _Http:
    def __init__(self, url: str, control_token: str | None) -> None:
        # Imported here: a handle in the emulator's own process needs no HTTP.
        import httpx2

        self._url = url.rstrip("/")
        self._token = None if control_token is None else Secret(control_token)
        self._unreachable = httpx2.TransportError
        self.client = httpx2.Client(**_options(self._url))

    def send(self, verb: str, path: str, body: Any = None) -> Any:
        headers, content = _written(self._token, body)
        try:
            reply = self.client.request(verb, self._url + path, headers=headers, content=content)
        except self._unreachable as error:
            raise _nobody(self._url, error) from error
        return _read(self._url, reply.status_code, reply.content)


class _AsyncHttp:
    def __init__(self, url: str, control_token: str | None) -> None:
        import httpx2

        self._url = url.rstrip("/")
        self._token = None if control_token is None else Secret(control_token)
        self._unreachable = httpx2.TransportError
        self.client = httpx2.AsyncClient(**_options(self._url))

    async def send(self, verb: str, path: str, body: Any = None) -> Any:
        headers, content = _written(self._token, body)
        try:
            reply = await self.client.request(verb, self._url + path, headers=headers, content=content)
        except self._unreachable as error:
            raise _nobody(self._url, error) from error
        return _read(self._url, reply.status_code, reply.content)


def _options(url: str) -> dict[str, Any]:
    # A TLS context with the system's certificates takes 40 ms, and http:// has no use for one. The proxies of
    # the environment are for the world outside.
    return {"verify": url.startswith("https://"), "trust_env": False, "timeout": _PATIENCE}


def _written(token: Secret | None, body: Any) -> tuple[dict[str, str], bytes | None]:
    headers = {} if token is None else {"authorization": f"Bearer {token.reveal()}"}
    if body is None:
        return headers, None
    try:
        content = json.dumps(body, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError):
        raise ControlError("invalid_request", not_json(body), 400) from None
    return headers | {"content-type": "application/json"}, content


def _read(url: str, status: int, content: bytes) -> Any:
    try:
        answer = json.loads(content)
    except ValueError:
        answer = None
    if status < 300 and answer is not None:
        return answer
    match answer:
        case {"error": {"code": str(code), "message": str(message)}}:
            raise ControlError(code, message, status)
    raise ConnectionError(f"What answers at {url} is no Gobare emulator: it answered with status {status}.")


def _nobody(url: str, error: Exception) -> ConnectionError:
    return ConnectionError(f"No emulator answers at {url}: {str(error) or type(error).__name__}")


def _no_agents() -> NoReturn:
    raise TypeError(
        "A Python agent runs inside the emulator's process, so it cannot be given over HTTP. Use the fixture `gobare` "
        "or `Emulator` in this process, or describe the agent in a scenario and `load` it."
    )
