"""Large responses: sent in chunks as fast as they are read, with total and per-address limits."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from tests.api.http.server import REQUEST, Clock, make_connections, read, serving
from tonlake.api.http.connection import PRESSED_S
from tonlake.api.http.gate import REFUSAL
from tonlake.api.http.pieces import PIECE_BYTES, Pieces
from tonlake.api.http.transit import Transit

if TYPE_CHECKING:
    import socket

LARGE = 16 << 20


async def answer(scope: Any, receive: Any, send: Any) -> None:
    """Answer with as many bytes as the path names."""
    del receive
    size = int(scope["path"].rpartition("/")[2])
    headers = [(b"content-length", b"%d" % size)]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": bytes(range(256)) * (size // 256)})


async def refuse(scope: Any, receive: Any, send: Any, error: Exception) -> None:
    """Answer with the text of an error."""
    del receive
    assert scope["state"][REFUSAL] is error
    headers = [(b"content-length", b"%d" % len(str(error)))]
    await send({"type": "http.response.start", "status": 503, "headers": headers})
    await send({"type": "http.response.body", "body": str(error).encode()})


def make_layer(
    connections: Any = None, most: int = 3 * LARGE, share: int = LARGE
) -> tuple[Pieces, Transit]:
    transit = Transit(connections or make_connections(), most=most, max_of_address=share)
    return Pieces(answer, transit, refuse, streams="/stream"), transit


@pytest.mark.parametrize("path", ["/256", f"/{PIECE_BYTES}", "/stream/1048576", "/1048576"])
def test_an_answer_arrives_complete(path: str) -> None:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    layer, transit = make_layer()
    scope = {"type": "http", "path": path, "state": {}, "client": ("192.0.2.1", 1)}
    asyncio.run(layer(scope, None, send))  # type: ignore[arg-type]
    size = int(path.rpartition("/")[2])
    assert sent[0]["status"] == 200
    assert b"".join(message["body"] for message in sent[1:]) == bytes(range(256)) * (size // 256)
    in_pieces = size > PIECE_BYTES and "stream" not in path
    assert len(sent) == 1 + (size // PIECE_BYTES if in_pieces else 1)
    assert [message.get("more_body", False) for message in sent[1:]] == [
        *[True] * (len(sent) - 2),
        False,
    ]
    assert transit.held == 0


def ask(clock: Clock, after_s: float, *sources: str) -> tuple[list[bytes], int]:
    """Return statuses of answers that are not read, and the bytes held after the last one."""

    async def run() -> tuple[list[bytes], int]:
        connections = make_connections(clock)
        layer, transit = make_layer(connections)
        async with serving(layer, connections) as clients:
            opened: list[socket.socket] = []
            for source in sources:
                opened.append(await clients.open(REQUEST % b"/%d" % LARGE, source))
                await asyncio.sleep(0.1)
                connections.sweep()
                clock.now_s += after_s
            statuses = []
            held = transit.held
            loop = asyncio.get_running_loop()
            for client in opened:
                try:
                    statuses.append((await loop.sock_recv(client, 12))[9:])
                except ConnectionError:
                    statuses.append(b"")
        return statuses, held

    return asyncio.run(run())


def test_an_address_has_a_share() -> None:
    sources = ["127.0.0.1", "127.0.0.1", "127.0.0.2"]
    assert ask(Clock(), 0, *sources) == ([b"200", b"503", b"200"], 2 * LARGE)


def test_bytes_are_bounded_in_all() -> None:
    sources = [f"127.0.0.{host}" for host in range(1, 6)]
    assert ask(Clock(), 0, *sources) == ([*[b"200"] * 3, *[b"503"] * 2], 3 * LARGE)


def test_those_that_do_not_read_give_way() -> None:
    statuses, held = ask(Clock(), PRESSED_S + 1, *["127.0.0.1"] * 3)
    assert statuses[-1] == b"200"
    assert held == LARGE


def test_small_answers_are_sent_whatever_waits() -> None:
    async def run() -> None:
        connections = make_connections()
        layer, transit = make_layer(connections, most=LARGE)
        async with serving(layer, connections) as clients:
            await clients.open(REQUEST % b"/%d" % LARGE)
            assert transit.held == LARGE
            for path, status in ((b"/256", b"200"), (b"/1048576", b"503")):
                client = await clients.open(REQUEST % path, "127.0.0.7")
                assert (await read(client))[0][9:12] == status

    asyncio.run(run())
