"""A TLS server with a certificate from its own authority."""

from __future__ import annotations

import ssl
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest
import trustme

if TYPE_CHECKING:
    Answer = Callable[["Handler"], None]


NAMES = ("localhost", "meta.example", "other.example", "127.0.0.1", "::1")


class Handler(BaseHTTPRequestHandler):
    """Sends the configured response for the path."""

    protocol_version = "HTTP/1.1"
    server: Host

    def do_GET(self) -> None:
        self.server.seen.append((self.path, dict(self.headers)))
        self.server.count[self.path] += 1
        with suppress(OSError):  # The client may have read enough.
            self.server.answers.get(self.path, send(b"", status=404))(self)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - a name of theirs
        pass


class Host(ThreadingHTTPServer):
    """A local server; ``connections`` counts incoming ones, before any TLS."""

    daemon_threads = True

    def __init__(self, address: str, context: ssl.SSLContext) -> None:
        super().__init__((address, 0), Handler)
        self.context = context
        self.answers: dict[str, Answer] = {}
        self.seen: list[tuple[str, dict[str, str]]] = []
        self.count = Counter[str]()
        self.connections = 0

    def finish_request(self, request: Any, client_address: object) -> None:
        """Speak TLS, in the thread of the connection."""
        self.connections += 1
        with suppress(OSError), self.context.wrap_socket(request, server_side=True) as secure:
            super().finish_request(secure, client_address)

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    def url(self, path: str, name: str = "localhost") -> str:
        return f"https://{name}:{self.port}{path}"


def send(
    body: bytes, kind: str = "application/json", *, status: int = 200, **headers: str
) -> Answer:
    def answer(handler: Handler) -> None:
        handler.send_response(status)
        handler.send_header("Content-Type", kind)
        handler.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(body)

    return answer


def redirect(target: str, status: int = 302) -> Answer:
    return send(b"", status=status, Location=target)


def drip(head: bytes, part: bytes) -> Answer:
    """Return an endless response: a head, then a part again and again."""

    def answer(handler: Handler) -> None:
        handler.wfile.write(head)
        while True:
            handler.wfile.write(part)
            handler.wfile.flush()

    return answer


def be_silent(handler: Handler) -> None:
    """Send nothing for as long as the client waits."""
    handler.connection.recv(1)


@pytest.fixture(scope="session")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="session")
def trust(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


@pytest.fixture
def make_host(authority: trustme.CA) -> Iterator[Callable[[str], Host]]:
    """Start servers on local addresses."""
    hosts: list[Host] = []

    def make(address: str) -> Host:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        authority.issue_cert(*NAMES).configure_cert(context)
        host = Host(address, context)
        threading.Thread(target=host.serve_forever, args=(0.01,), daemon=True).start()
        hosts.append(host)
        return host

    yield make
    for host in hosts:
        host.shutdown()
        host.server_close()


@pytest.fixture
def host(make_host: Callable[[str], Host]) -> Host:
    return make_host("127.0.0.1")
