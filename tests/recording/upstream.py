"""An upstream that answers whatever a test says, for answers no emulator gives."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import TracebackType

Answer = tuple[int, dict[str, str], "bytes | Iterator[bytes]"]


class Request:
    """What arrived."""

    def __init__(self, handler: BaseHTTPRequestHandler) -> None:
        self.verb = handler.command
        self.target = handler.path
        self.headers = [(name.lower(), value) for name, value in handler.headers.items()]
        self.header = dict(self.headers)
        self.body = _body(handler, self.header)


class Scripted:
    """Serves while it is entered; `answer` is called with each request, on a thread of its own."""

    def __init__(self, answer: Callable[[Request], Answer]) -> None:
        self.requests: list[Request] = []
        scripted = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _serve(self) -> None:
                request = Request(self)
                scripted.requests.append(request)
                status, headers, body = answer(request)
                self.send_response_only(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                if isinstance(body, bytes):
                    self.send_header("content-length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)
                    return
                self.send_header("transfer-encoding", "chunked")
                self.end_headers()
                for chunk in body:
                    self.wfile.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
                    self.wfile.flush()
                self.wfile.write(b"0\r\n\r\n")

            def __getattr__(self, name: str) -> Any:
                if name.startswith("do_"):
                    return self._serve
                raise AttributeError(name)

            def handle(self) -> None:
                try:
                    super().handle()
                except (ConnectionError, OSError):
                    self.close_connection = True

            def log_message(self, format: str, *arguments: Any) -> None:
                """Nothing is printed."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=lambda: self._server.serve_forever(0.01), daemon=True)

    def __enter__(self) -> Scripted:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def _body(handler: BaseHTTPRequestHandler, headers: dict[str, str]) -> bytes:
    if headers.get("transfer-encoding") == "chunked":
        parts = []
        while size := int(handler.rfile.readline().strip(), 16):
            parts.append(handler.rfile.read(size))
            handler.rfile.readline()
        handler.rfile.readline()
        return b"".join(parts)
    return handler.rfile.read(int(headers.get("content-length", "0")))
