"""The watch: what the recorder reads for itself, so that nothing is lost because the client did not look.

With the client's own token, as far as its scopes go, it follows the events of the organization, reads each
turn once it has settled, and fetches the bytes of what was published and written. What it cannot have is
said in the recording.
"""

from __future__ import annotations

import asyncio
import base64
import json
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from emulator.recording.references import REFERENCE
from emulator.recording.upstream import Decoder, Frames

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from emulator.recording.recorder import Recorder
    from emulator.recording.references import REFERENCE
from emulator.recording.upstream import Upstream

# The largest artifact or file whose bytes are kept.
CEILING: Final = 5 * 1024 * 1024
_JSON_CEILING: Final = 16 * 1024 * 1024
# How long a first request waits for the stream to be open, and a last one for what is still owed.
_OPEN_SECONDS: Final = 5.0
_CATCH_UP_SECONDS: Final = 5.0
_PUBLISH_SECONDS: Final = 35.0
_AGAIN_SECONDS: Final = 0.2
_QUIET_SECONDS: Final = 0.1
_TOGETHER: Final = 50
_UNSEEN: Final = "the events the client does not read itself"
_SETTLED: Final = ("completed", "failed", "cancelled")


class Watch:
    """Reads along. One stream for each token the client uses."""

    def __init__(self, recorder: Recorder, upstream: Upstream, ceiling: int = CEILING) -> None:
        self._recorder = recorder
        self._upstream = upstream
        self._ceiling = ceiling
        # The Authorization header of each token -> whether its stream is open, once that is known.
        self._opened: dict[str, asyncio.Future[bool]] = {}
        # Until when requests wait for it: a stream that does not open holds up the first ones only.
        self._patience: dict[str, float] = {}
        self._live: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._owed: dict[str, set[asyncio.Task[None]]] = {}
        self._changed: dict[str, list[str]] = {}
        self._ended: set[str] = set()
        self._moved = asyncio.Event()
        self._said: set[str] = set()
        recorder.listeners.append(self._see)

    def live(self, authorization: str) -> bool:
        """Whether the events of that token's organization are being followed."""
        return authorization in self._live

    async def follow(self, authorization: str) -> None:
        """Follow the events a token may see; returns once its stream is open, or is known not to be."""
        loop = asyncio.get_running_loop()
        opened = self._opened.get(authorization)
        if opened is None:
            opened = self._opened[authorization] = loop.create_future()
            self._patience[authorization] = loop.time() + _OPEN_SECONDS
            self._spawn(self._read(authorization, opened))
        if not opened.done() and (left := self._patience[authorization] - loop.time()) > 0:
            await asyncio.wait([opened], timeout=left)

    async def catch_up(self, session_id: str) -> None:
        """Wait, not for long, until everything of a session's settled turns is in the recording."""
        try:
            async with asyncio.timeout(_CATCH_UP_SECONDS):
                if self._live and session_id not in self._recorder.deleted:
                    page = await self._json(f"/v1/sessions/{session_id}/turns?limit=100")
                    settled = [turn["id"] for turn in (page or {}).get("data", ()) if turn.get("status") in _SETTLED]
                    while not self._ended.issuperset(settled):
                        self._moved.clear()
                        await self._moved.wait()
                while owed := self._owed.get(session_id):
                    await asyncio.wait(owed)
        except TimeoutError:
            self._incomplete(f"the end of session {session_id}", "its last events did not arrive in time")
        except self._upstream.unreachable:
            pass

    async def close(self) -> None:
        """Wait for what is owed, then stop reading."""
        if not all(opened.done() for opened in self._opened.values()):
            self._incomplete(_UNSEEN, "its stream was never opened")
        sessions = list(self._recorder.sessions)
        # Together: an upstream that answers nothing any more is waited for once, not once for each session.
        for n in range(0, len(sessions), _TOGETHER):
            await asyncio.gather(*map(self.catch_up, sessions[n : n + _TOGETHER]))
        if self._live:
            await asyncio.sleep(_QUIET_SECONDS)
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # The stream

    async def _read(self, authorization: str, opened: asyncio.Future[bool]) -> None:
        cursor: int | None = None
        while True:
            try:
                cursor = await self._stream(authorization, opened, cursor)
            except self._upstream.unreachable:
                if not opened.done():
                    # The client's own request will say so.
                    self._opened.pop(authorization, None)
                    opened.set_result(False)
                    return
            if opened.done() and not opened.result():
                return
            self._live.discard(authorization)
            await asyncio.sleep(_AGAIN_SECONDS)

    async def _stream(self, authorization: str, opened: asyncio.Future[bool], cursor: int | None) -> int | None:
        headers = [(b"authorization", authorization.encode("latin-1")), (b"accept", b"text/event-stream")]
        if cursor is not None:
            headers.append((b"last-event-id", str(cursor).encode()))
        response = await self._upstream.send("GET", b"/v1/events", headers, None)
        try:
            if response.status_code != 200:
                if response.status_code != 401:
                    self._incomplete(_UNSEEN, f"its stream was refused with status {response.status_code}")
                if not opened.done():
                    opened.set_result(False)
                return cursor
            self._live.add(authorization)
            if not opened.done():
                opened.set_result(True)
            frames, decoder = Frames(), Decoder(response.headers.get("content-encoding", ""))
            async for chunk in response.aiter_raw():
                for event in frames.feed(decoder.feed(chunk)):
                    if isinstance(event.get("seq"), int):
                        cursor = event["seq"]
                    try:
                        self._recorder.frame(event)
                    except Exception as error:
                        self._incomplete("an event", f"it could not be kept ({type(error).__name__})")
        finally:
            await response.aclose()
        return cursor

    # What is fetched

    def _see(self, event: dict[str, Any]) -> None:
        session_id, payload = event["session_id"], event["payload"]
        if event["type"] == "file.changed" and payload.get("changeType") != "deleted":
            self._changed.setdefault(session_id, []).append(str(payload.get("path")))
        elif event["type"] == "turn.ended" and isinstance(turn_id := payload.get("turnId"), str):
            changed = list(dict.fromkeys(self._changed.pop(session_id, ())))
            task = self._spawn(self._finish(session_id, turn_id, changed))
            owed = self._owed.setdefault(session_id, set())
            owed.add(task)
            task.add_done_callback(owed.discard)
            self._ended.add(turn_id)
            self._moved.set()

    async def _finish(self, session_id: str, turn_id: str, changed: list[str]) -> None:
        """Keep how a turn settled, what it published and what else it wrote."""
        try:
            turn = await self._settled(session_id, turn_id)
            if turn is None:
                return
            published = set()
            if turn.get("artifacts") in ("ready", "partial"):
                published = await self._artifacts(session_id, turn_id)
            for path in changed:
                if path not in published:
                    await self._file(session_id, turn_id, path)
            self._recorder.turn(session_id, turn)
        except self._upstream.unreachable as error:
            self._incomplete(f"turn {turn_id}", type(error).__name__)

    async def _settled(self, session_id: str, turn_id: str) -> dict[str, Any] | None:
        path = f"/v1/sessions/{session_id}/turns/{turn_id}"
        for _ in range(round(_PUBLISH_SECONDS / _AGAIN_SECONDS)):
            turn = await self._json(path)
            if turn is None or turn.get("artifacts") not in (None, "pending"):
                return turn
            await asyncio.sleep(_AGAIN_SECONDS)
        return turn

    async def _artifacts(self, session_id: str, turn_id: str) -> set[str]:
        """Keep the bytes of what a turn published. Gives its paths."""
        published: set[str] = set()
        after = ""
        while True:
            path = f"/v1/sessions/{session_id}/artifacts?turn_id={turn_id}&limit=100&order=asc{after}"
            page = await self._json(path)
            if page is None:
                return published
            for artifact in page.get("data", ()):
                artifact_id, size = artifact["id"], artifact["size_bytes"]
                published.add(artifact["path"])
                data = None
                if self._recorder.has(artifact_id):
                    continue
                if size <= self._ceiling:
                    data = await self._bytes(f"/v1/sessions/{session_id}/artifacts/{artifact_id}/content")
                self._recorder.artifact(artifact_id, session_id, data, size, artifact["path"], turn_id)
            if not page.get("has_more"):
                return published
            after = f"&after={page['last_id']}"

    async def _file(self, session_id: str, turn_id: str, path: str) -> None:
        """Keep the bytes of a file that was written and not published, as the last snapshot has it."""
        found = await self._json(f"/v1/sessions/{session_id}/files/content?path={quote(path, safe='')}", said=False)
        data: bytes | None = None
        if found is not None and not found.get("truncated"):
            text = str(found.get("content", ""))
            data = base64.b64decode(text) if found.get("encoding") == "base64" else text.encode("utf-8", "replace")
        self._recorder.file(session_id, turn_id, path, data, None if data is None else len(data))

    async def _json(self, path: str, *, said: bool = True) -> dict[str, Any] | None:
        data = await self._bytes(path, _JSON_CEILING, said=said)
        value = None if data is None else json.loads(data)
        return value if isinstance(value, dict) else None

    async def _bytes(self, path: str, ceiling: int | None = None, *, said: bool = True) -> bytes | None:
        """What a GET gives, with the first token that may; `None`, and a note, where none may."""
        status = 0
        for authorization in list(self._opened):
            status, data, _ = await self._upstream.get(path, authorization, ceiling or self._ceiling)
            if status == 200:
                return data
        if said and status:
            place = REFERENCE.sub("…", self._recorder.references.text(path.split("?")[0]))
            self._incomplete(f"GET {place}", f"refused with status {status}")
        return None

    def _incomplete(self, what: str, why: str) -> None:
        # Once for each thing: a token without the scope is refused every time.
        if what not in self._said:
            self._said.add(what)
            self._recorder.incomplete(what, why)

    def _spawn(self, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task
