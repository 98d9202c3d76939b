"""Hostile clients: sockets that stay silent, do not read, or only stay open."""

import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress

SMALL_WINDOW = 4096
"""Bytes that the kernel takes for a client that does not read."""

BODY = (
    b"POST /api/v2/jsonRPC HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
    b"Content-Length: 1000\r\n\r\n{"
)
HEAD = b"GET /api/v3/masterchainInfo HTTP/1.1\r\nHost: a\r\nX-Slow: "
READER = b"GET /api/v3/traces?limit=1000&include_actions=true&offset=%d HTTP/1.1\r\nHost: a\r\n\r\n"
UPGRADE = (
    b"GET /api/streaming/v2/ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)


class Crowd:
    """Open sockets, from several addresses in turn."""

    def __init__(self, port: int, sources: Sequence[str]) -> None:
        """Take the port of the service, and the source addresses."""
        self._port, self._sources = port, sources
        self.sockets: list[socket.socket] = []

    def open(self, sent: bytes, *, window: int | None = None) -> None:
        """Open a socket, send something once, and read nothing."""
        client = socket.socket()
        if window is not None:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, window)
        client.bind((self._sources[len(self.sockets) % len(self._sources)], 0))
        client.settimeout(10)
        self.sockets.append(client)
        with suppress(ConnectionError):
            client.connect(("127.0.0.1", self._port))
            client.sendall(sent)

    def attack(
        self, *, bodies: int = 0, heads: int = 0, readers: int = 0, sockets: int = 0
    ) -> Iterator[None]:
        """Open sockets of all kinds, the kinds mixed; yields after each."""
        kinds = [(bodies, _send_body), (heads, _send_head), (readers, _ask), (sockets, _upgrade)]
        most = max(count for count, _ in kinds)
        for number in range(most):
            for count, write in kinds:
                if (number + 1) * count // most > number * count // most:
                    self.open(write(number), window=SMALL_WINDOW if write is _ask else None)
                    yield

    def count_open(self) -> int:
        """Return how many sockets the service has not closed."""
        return sum(map(_is_open, self.sockets))

    def close(self) -> None:
        """Close all sockets."""
        for client in self.sockets:
            client.close()
        self.sockets.clear()


def _send_body(_number: int) -> bytes:
    return BODY


def _send_head(_number: int) -> bytes:
    return HEAD


def _ask(number: int) -> bytes:
    return READER % number


def _upgrade(_number: int) -> bytes:
    return UPGRADE


def _is_open(client: socket.socket) -> bool:
    """Return whether the other end is still open; received data is discarded."""
    client.setblocking(False)  # noqa: FBT003 - as the module has it
    try:
        while client.recv(1 << 20):
            pass
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def ask(port: int, path: str, source: str = "127.0.0.1") -> tuple[int, float]:
    """Return the status and seconds of a request over a new connection; 0 without a response."""
    began_s = time.perf_counter()
    request = f"GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".encode()
    status = 0
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), 10, (source, 0)) as end:
        end.sendall(request)
        answer = b""
        while piece := end.recv(1 << 16):
            answer += piece
        status = int(answer.split(b" ", 2)[1]) if answer else 0
    return status, time.perf_counter() - began_s
