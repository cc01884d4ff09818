"""The recorder as a server: a socket, the proxy on it, and the file behind it."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from emulator.listening import hang_up
from emulator.recording.document import Writer
from emulator.recording.proxy import Proxy
from emulator.recording.recorder import Recorder
from emulator.recording.secrets import Secrets
from emulator.recording.upstream import Upstream
from emulator.recording.watch import CEILING, Watch

if TYPE_CHECKING:
    import os
    import socket
    from collections.abc import Sequence

# What the HTTP server has to say about a connection may have an address in it, and that a secret.
_QUIET: Final = logging.getLogger("emulator.http")
_QUIET.addHandler(logging.NullHandler())
_QUIET.propagate = False


class RecordingServer:
    """Records what passes between `bound` and `upstream` into the file `out`, from `start` to `stop`.

    `safe` and `secret` are names of placeholders, `free` paths of body fields that strict playback does not
    compare, `ceiling` the largest artifact, in bytes, whose content is kept. `match` is as for
    `Recorder`.
    """

    def __init__(
        self,
        bound: socket.socket,
        upstream: str,
        out: str | os.PathLike[str],
        *,
        safe: Sequence[str] = (),
        secret: Sequence[str] = (),
        free: Sequence[str] = (),
        match: str | None = None,
        ceiling: int = CEILING,
    ) -> None:
        self.bound = bound
        address, port = bound.getsockname()[:2]
        shown = "127.0.0.1" if address in ("0.0.0.0", "::") else address
        self.url = f"http://[{shown}]:{port}" if ":" in shown else f"http://{shown}:{port}"
        self._to = upstream
        self._ceiling = ceiling
        self.secrets = Secrets(safe, secret)
        # Open from here to `stop`.
        self._writer = Writer(Path(out).open("wb"))  # noqa: SIM115
        self._recorder = Recorder(self._writer, self.secrets, free, match)

    def incomplete(self) -> list[tuple[str, str]]:
        """What could not be recorded, and why."""
        return self._recorder.missing

    def failed(self) -> str | None:
        """Why the file ends before the recording did, if it does: the disk is full, for one."""
        return self._writer.failed

    async def start(self) -> None:
        """Begin to serve, and to record."""
        from uvicorn.config import Config
        from uvicorn.server import ServerState

        self._upstream = Upstream(self._to)
        self._watch = Watch(self._recorder, self._upstream, self._ceiling)
        app: Any = Proxy(self._upstream, self._recorder, self._watch)
        config = Config(
            app,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,
            proxy_headers=False,
        )
        config.load()
        self._state = ServerState()
        loop = asyncio.get_running_loop()
        protocol_class: Any = config.http_protocol_class

        def protocol() -> asyncio.Protocol:
            made: Any = protocol_class(config=config, server_state=self._state, app_state={}, _loop=loop)
            made.logger = _QUIET
            made.access_log = False
            return made  # type: ignore[no-any-return]

        self._server = await loop.create_server(protocol, sock=self.bound, backlog=512)

    async def stop(self) -> None:
        """Stop serving, once what was begun is in the recording."""
        self._server.close()
        await self._watch.close()
        await hang_up(self._state)
        await self._upstream.close()
        self._recorder.end()
