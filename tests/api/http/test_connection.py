"""Limits of connections, over sockets: silent clients, clients that do not read, shares."""

import asyncio
from typing import Any

import pytest

from tests.api.http.server import REQUEST, make_connections, read, serving
from tests.attack.crowd import UPGRADE
from tests.clock import Clock
from tonlake.api.http import server
from tonlake.api.http.server import CONNECTION, HEAD_S, PRESSED_S

LARGE = 32 << 20


async def answer(scope: Any, receive: Any, send: Any) -> None:
    """Answer at once, with as many bytes as the path names; no body is read."""
    del receive
    body = b"x" * int(scope["path"][1:] or 0)
    headers = [(b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def upgrade(scope: Any, receive: Any, send: Any) -> None:
    """Accept a WebSocket, and send it much without end."""
    assert scope["type"] == "websocket"
    await receive()
    await send({"type": "websocket.accept"})
    while True:
        await send({"type": "websocket.send", "text": "x" * (1 << 20)})


SILENT = {
    "nothing": b"",
    "line": b"GET /",
    "head": b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ",
    "after an answer": REQUEST % b"/1" + b"GET /",
    "empty lines": b"\r\n\r\n",
    "body that no handler reads": b"POST /1 HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nx",
}


def move(connections: Any, clock: Clock, seconds: float) -> None:
    """Let time pass for a registry."""
    clock.now_s = seconds
    connections.sweep()


@pytest.mark.parametrize("kind", SILENT)
async def test_what_stays_silent_is_closed(kind: str) -> None:
    connections = make_connections(clock := Clock())
    async with serving(answer, connections) as clients:
        client = await clients.open(SILENT[kind])
        move(connections, clock, HEAD_S - 5)
        assert not (await read(client))[1]
        move(connections, clock, HEAD_S + 1)
        assert (await read(client))[1]


async def test_a_connection_that_is_kept_stays_open_between_requests() -> None:
    connections = make_connections(clock := Clock())
    async with serving(answer, connections) as clients:
        client = await clients.open()
        for path in (b"/1", b"/2"):
            await asyncio.get_running_loop().sock_sendall(client, REQUEST % path)
            assert b" 200 " in (await read(client))[0]
            move(connections, clock, 10 * HEAD_S)
        assert not (await read(client))[1]


@pytest.mark.parametrize(("app", "sent"), [(answer, REQUEST % b"/%d" % LARGE), (upgrade, UPGRADE)])
async def test_a_client_that_does_not_read_is_closed(
    app: Any, sent: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "STALLED_S", 1)

    async with serving(app, make_connections()) as clients:
        client = await clients.open(sent)
        await asyncio.sleep(4)
        assert (await read(client, 10))[1]


async def test_unread_bytes_are_bounded_in_all() -> None:
    connections = make_connections(clock := Clock(), unsent=LARGE)
    async with serving(answer, connections) as clients:
        for _ in range(3):
            await clients.open(REQUEST % b"/%d" % LARGE)
        await asyncio.sleep(0.3)
        move(connections, clock, 0)
        assert len(connections._open) == 3
        move(connections, clock, PRESSED_S + 1)
        assert len(connections._open) == 1


@pytest.mark.parametrize("bounds", [{"most": 4}, {"of_address": 4}])
async def test_the_oldest_silent_connection_gives_way(bounds: dict[str, Any]) -> None:
    async with serving(answer, make_connections(**bounds)) as clients:
        opened = [await clients.open() for _ in range(5)]
        closed = [(await read(client, 0.1))[1] for client in opened]
        assert closed == [True, False, False, False, False]
        await asyncio.get_running_loop().sock_sendall(opened[4], REQUEST % b"/1")
        assert b" 200 " in (await read(opened[4]))[0]


async def test_a_connection_too_many_is_refused_where_all_are_in_use() -> None:
    async with serving(answer, make_connections(of_address=2)) as clients:
        sources = [*["127.0.0.1"] * 3, "127.0.0.9"]
        opened = [await clients.open(REQUEST % b"/1", source) for source in sources]
        answers = await asyncio.gather(*map(read, opened))
        assert [data[9:12] for data, _ in answers] == [b"200", b"200", b"429", b"200"]


async def test_connections_of_a_proxy_count_in_no_share() -> None:
    async def forwarded(scope: Any, receive: Any, send: Any) -> None:
        scope["state"][CONNECTION].leave_share()
        await answer(scope, receive, send)

    async with serving(forwarded, make_connections(of_address=2)) as clients:
        opened = [await clients.open(REQUEST % b"/1") for _ in range(5)]
        assert all(b" 200 " in data for data, _ in await asyncio.gather(*map(read, opened)))
