"""The layers around the application, in a server over sockets: each enforces its limit."""

import socket
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from tests.api.growth import Served, serve
from tests.attack.crowd import BODY, HEAD, READER, SMALL_WINDOW, UPGRADE
from tonlake.api.http import server, transit

INFO = b"GET /api/v3/masterchainInfo HTTP/1.1\r\nHost: x\r\n\r\n"
WAIT_S = 15.0
"""Less than limits allow that a test does not set."""


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transit, "GRACE_S", 2 * WAIT_S)


class Clients:
    """Sockets of clients of a server; all are closed at the end of a block."""

    def __init__(self, served: Served, opened: ExitStack) -> None:
        """Take a server, and what closes sockets."""
        self._port = int(served.url.rpartition(":")[2])
        self._opened = opened

    def open(self, sent: bytes, host: int = 1) -> socket.socket:
        """Return a socket that comes from a loopback address and has sent something."""
        client = self._opened.enter_context(closing(socket.socket()))
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL_WINDOW)
        client.settimeout(WAIT_S)
        client.bind((f"127.0.0.{host}", 0))
        client.connect(("127.0.0.1", self._port))
        client.sendall(sent)
        return client

    def ask(self, sent: bytes, host: int = 1) -> bytes:
        """Return the status of an answer, of which the kernel takes little and nothing is read."""
        return self.open(sent, host).recv(12)[9:]


def test_a_request_counts_once_its_body_is_complete(demo_lake: Path) -> None:
    with serve(demo_lake, http={"requests_in_flight": 1}) as served, ExitStack() as opened:
        clients = Clients(served, opened)
        silent = [clients.open(BODY, host) for host in (2, 3, 4)]
        assert [clients.ask(INFO, host) for host in (5, 6, 7)] == [b"200"] * 3
        second = clients.open(BODY, 2)
        assert silent[0].recv(12)[9:] == b"408"  # one body is the share of an address here
        second.setblocking(False)  # noqa: FBT003 - as the module has it
        with pytest.raises(BlockingIOError):
            second.recv(1)


def test_a_silent_body_is_answered_at_its_deadline(demo_lake: Path) -> None:
    with serve(demo_lake, http={"body_timeout_ms": 100}) as served, ExitStack() as opened:
        client = Clients(served, opened).open(BODY)
        answer = b"".join(iter(lambda: client.recv(1 << 16), b""))
        assert answer.startswith(b"HTTP/1.1 408 ")


def test_a_head_without_end_is_closed(demo_lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "HEAD_S", 0.1)
    with serve(demo_lake) as served, ExitStack() as opened:
        assert Clients(served, opened).open(HEAD).recv(1) == b""


def test_an_address_has_a_share_of_connections(demo_lake: Path) -> None:
    with serve(demo_lake, http={"requests_in_flight": 1}) as served, ExitStack() as opened:
        clients = Clients(served, opened)
        first, *_later = [clients.open(HEAD) for _ in range(3)]
        assert first.recv(1) == b""


def test_an_address_has_a_share_of_streams(demo_lake: Path) -> None:
    with serve(demo_lake, stream={"clients": 2}) as served, ExitStack() as opened:
        clients = Clients(served, opened)
        found = [clients.ask(UPGRADE, host) for host in (1, 1, 2, 3)]
        assert found == [b"101", b"403", b"101", b"403"]


def test_an_address_has_a_share_of_answers_that_are_not_read(demo_lake: Path) -> None:
    with serve(demo_lake, http={"response_bytes": 8 << 20}) as served, ExitStack() as opened:
        clients = Clients(served, opened)
        found = [clients.ask(READER % offset) for offset in range(2)]
        assert found == [b"200", b"503"]
        assert clients.ask(READER % 2, 2) == b"200"
