"""The server's bound on the head of a request."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
import uvicorn

from api.server import REQUEST_HEAD_BYTES, BoundedProtocol, configure_server

if TYPE_CHECKING:
    from collections.abc import Callable

PIECE = 1 << 16


async def _echo(scope: dict[str, Any], _receive: Any, send: Callable[..., Any]) -> None:
    """Answer with the path and the length of the query."""
    body = f"{scope['path']} {len(scope['query_string'])}".encode()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})


async def _ask(*pieces: bytes) -> bytes:
    """Send pieces over one connection to a server, and return all that comes back."""
    config = configure_server(_echo)  # type: ignore[arg-type]
    config.lifespan = "off"
    config.load()
    state = uvicorn.server.ServerState()

    def connect() -> BoundedProtocol:
        return BoundedProtocol(config=config, server_state=state, app_state={})

    server = await asyncio.get_running_loop().create_server(connect, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname()[:2])
    try:
        for piece in pieces:
            writer.write(piece)
        await writer.drain()
        return await asyncio.wait_for(reader.read(), 60)
    except ConnectionError:
        return b"reset"
    finally:
        writer.close()
        server.close()


def _request(target: bytes, *headers: bytes) -> bytes:
    lines = (b"GET " + target + b" HTTP/1.1", b"host: x", b"connection: close", *headers)
    return b"\r\n".join((*lines, b"", b""))


@pytest.mark.parametrize("size", [0, 70_000, REQUEST_HEAD_BYTES - 1000])
def test_long_queries_are_taken_whole(size: int) -> None:
    request = _request(b"/a?" + b"x" * size)
    assert asyncio.run(_ask(request)).count(b"\r\n/a %d\r\n" % size) == 1
    assert asyncio.run(_ask(request[:20], request[20:])).count(b"\r\n/a %d\r\n" % size) == 1


def test_a_fragment_is_no_part_of_the_query() -> None:
    assert asyncio.run(_ask(_request(b"/a?xy#z?z"))).count(b"\r\n/a 2\r\n") == 1


@pytest.mark.parametrize("start", [b"GET /?", b"GET / HTTP/1.1\r\nx: "])
def test_a_head_without_end_is_refused(start: bytes) -> None:
    pieces = [start, *[b"y" * PIECE] * (4 * REQUEST_HEAD_BYTES // PIECE)]
    answer = asyncio.run(_ask(*pieces))
    assert answer == b"reset" or b" 400 " in answer
