"""A web server of one folder that can be made to fail."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class WebServer(ThreadingHTTPServer):
    """Serves the files of a folder.

    ``replaced`` are bodies by path, ``cut_after`` is the number of bytes after which each response
    is cut off, ``statuses`` are sent first, in order.
    """

    daemon_threads = True

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.folder = folder
        self.replaced: dict[str, bytes] = {}
        self.cut_after: int | None = None
        self.has_ranges = False
        self.statuses: list[int] = []
        self.asked: list[tuple[str, str | None, str | None]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/some/lake"

    def handle_error(self, *_: object) -> None:
        """Ignore clients that disconnected."""


class _Handler(BaseHTTPRequestHandler):
    server: WebServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        server = self.server
        path = self.path.removeprefix("/some/lake/")
        wanted = self.headers["Range"]
        server.asked.append((path, wanted, self.headers["X-API-Key"]))
        file = server.folder / path
        if server.statuses:
            self._send(server.statuses.pop(0), b"")
        elif path in server.replaced or file.is_file():
            data = server.replaced[path] if path in server.replaced else file.read_bytes()
            if wanted and server.has_ranges:
                begin = int(wanted.removeprefix("bytes=").removesuffix("-"))
                if begin >= len(data):
                    self._send(416, b"no such range")
                else:
                    self._send(206, data[begin:], f"bytes {begin}-{len(data) - 1}/{len(data)}")
            else:
                self._send(200, data)
        else:
            self._send(404, b"nothing here")

    def _send(self, status: int, body: bytes, part: str | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        if status in (429, 503):
            self.send_header("Retry-After", "0")
        if part:
            self.send_header("Content-Range", part)
        self.end_headers()
        cut = self.server.cut_after
        self.wfile.write(body[:cut])
        if cut is not None and cut < len(body):
            self.close_connection = True

    def log_message(self, *_: object) -> None:
        """Suppress the request log."""


@contextmanager
def serving_folder(folder: Path) -> Iterator[WebServer]:
    """Serve a folder while the block runs."""
    server = WebServer(folder)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def plain_server(folder: Path) -> Iterator[str]:
    """Serve a folder with Python's own server in a separate process; yields the URL."""
    command = [sys.executable, "-u", "-m", "http.server", "0", "-b", "127.0.0.1", "-d", str(folder)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        port = process.stdout.readline().split("port ")[1].split()[0]
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
