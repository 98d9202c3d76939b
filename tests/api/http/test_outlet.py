"""The transport of a connection: data is buffered, sent together, and dropped on close."""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING, Any

import pytest

from tests.api.http.server import REQUEST, make_connections, read, serving
from tonlake.api.http.outlet import Outlet
from tonlake.api.http.pieces import Pieces
from tonlake.api.http.transit import Transit

if TYPE_CHECKING:
    from collections.abc import Callable


async def write_in_parts(act: Callable[[Outlet], None]) -> bytes:
    """Return what the other end of a connection reads after ``act`` until the connection ends."""
    ours, theirs = socket.socketpair()
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_connection(asyncio.Protocol, sock=ours)
    outlet = Outlet(transport, lambda _: None)
    act(outlet)
    outlet.close()
    reader, writer = await asyncio.open_connection(sock=theirs)
    received = await reader.read()
    writer.close()
    return received


def hold_two(outlet: Outlet) -> None:
    outlet.hold()
    outlet.write(b"head ")
    outlet.write(b"body ")
    assert outlet.get_write_buffer_size() == len(b"head body ")
    assert outlet.written == len(b"head body ")


def flush(outlet: Outlet) -> None:
    outlet.flush()
    assert outlet.get_write_buffer_size() == 0
    outlet.write(b"more")


@pytest.mark.parametrize(
    ("then", "received"),
    [
        (lambda _: None, b"head body "),
        (flush, b"head body more"),
        (lambda outlet: outlet.write_eof(), b"head body "),
        (lambda outlet: outlet.abort(), b""),
    ],
    ids=["close", "flush", "end", "abort"],
)
def test_what_is_held_is_sent_in_order_unless_it_is_dropped(
    then: Callable[[Outlet], None], received: bytes
) -> None:
    def act(outlet: Outlet) -> None:
        hold_two(outlet)
        then(outlet)

    assert asyncio.run(write_in_parts(act)) == received


def test_head_and_body_of_a_small_answer_are_one_write(monkeypatch: pytest.MonkeyPatch) -> None:
    writes: list[int] = []
    flush_outlet = Outlet.flush

    def count(outlet: Outlet) -> None:
        writes.append(outlet.get_write_buffer_size())
        flush_outlet(outlet)

    monkeypatch.setattr(Outlet, "flush", count)

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        del receive, scope
        headers = [(b"content-length", b"5")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"small"})

    async def run() -> bytes:
        connections = make_connections()
        transit = Transit(connections, most=1 << 20, max_of_address=1 << 20)
        layer = Pieces(answer, transit, answer, streams="/stream")  # type: ignore[arg-type]
        async with serving(layer, connections) as clients:
            return (await read(await clients.open(REQUEST % b"/")))[0]

    received = asyncio.run(run())
    assert received.endswith(b"small")
    assert writes[0] == len(received)
