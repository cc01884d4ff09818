"""A receiver of webhooks, written from the API's documentation: it checks and deduplicates as a product would.

It knows nothing of the emulator. The three rules: the signature is over the raw body with the timestamp in
front, a timestamp far from now is refused, and what arrives twice is handled once.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_SKEW_MS: Final = 5 * 60_000
# Not `time.time`: a test may have frozen it.
_now: Final = time.time


def verify(secret: str, timestamp: str, body: bytes, presented: str) -> bool:
    """Whether a delivery is what it says it is, and recent."""
    expected = hmac.new(secret.encode(), timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(expected, presented) and abs(_now() * 1000 - int(timestamp)) <= _SKEW_MS


@dataclass
class Post:
    """One request as it came in, and what it was answered with."""

    headers: dict[str, str]
    body: bytes
    answer: int = 0

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def type(self) -> str:
        kind: str = self.json["type"]
        return kind


@dataclass
class Receiver:
    """Listens on a port of its own. `answers` are the next statuses; then the signature decides, if there is a secret.

    `posts` is everything that came in, `handled` what was new and genuine. `on_post` is called before the answer.
    """

    answers: list[int] = field(default_factory=list)
    secrets: list[str] = field(default_factory=list)
    posts: list[Post] = field(default_factory=list)
    handled: list[Any] = field(default_factory=list)
    on_post: Callable[[Post], object] | None = None
    location: str | None = None
    _seen: set[tuple[int, bytes]] = field(default_factory=set)

    def __enter__(self) -> Receiver:
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                post = Post({name.lower(): value for name, value in self.headers.items()}, body)
                receiver.posts.append(post)
                if receiver.on_post is not None:
                    receiver.on_post(post)
                post.answer = receiver.decide(post)
                self.send_response(post.answer)
                if receiver.location is not None:
                    self.send_header("location", receiver.location)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *arguments: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            # Many may come at once; one that finds no place would try again a second later.
            request_queue_size = 128

        self._server = Server(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.block_on_close = False
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/hooks"

    @property
    def types(self) -> list[str]:
        """What came in, in order."""
        return [post.type for post in self.posts]

    def decide(self, post: Post) -> int:
        """The status a post is answered with; what is genuine and new is handled."""
        if self.answers:
            return self.answers.pop(0)
        if self.secrets:
            timestamp, presented = post.headers["x-gobare-timestamp"], post.headers["x-gobare-signature"]
            if not any(verify(secret, timestamp, post.body, presented) for secret in self.secrets):
                return 401
        key = (post.json["created_at"], post.body)
        if key not in self._seen:
            self._seen.add(key)
            self.handled.append(post.json)
        return 200
