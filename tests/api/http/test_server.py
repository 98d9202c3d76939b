"""The server's limit for the head of a request."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosedError

from tests.api.http.server import make_connections, serving
from tonlake.api.http.server import HEAD_BYTES, MAX_HEADERS, REQUEST_BYTES

PIECE = 1 << 16


async def _echo(scope: dict[str, Any], _receive: Any, send: Callable[..., Any]) -> None:
    """Answer with the path and the length of the query."""
    body = f"{scope['path']} {len(scope['query_string'])}".encode()
    headers = [(b"x-query", scope["query_string"].replace(b"!", b"\n"))]
    headers = headers if scope["path"] == "/echo" else []
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def _ask(*pieces: bytes, app: Any = None, apart: bool = False) -> bytes:
    """Send pieces over one connection to a server, and return all that comes back."""
    served: Any = app or _echo
    async with serving(served, make_connections(most=10, of_address=10)) as clients:
        reader, writer = await asyncio.open_connection("127.0.0.1", clients.port)
        try:
            for piece in pieces:
                writer.write(piece)
                await asyncio.sleep(0.2 * apart)
            await writer.drain()
            return await asyncio.wait_for(reader.read(), 60)
        except ConnectionError:
            return b"reset"
        finally:
            writer.close()


def _request(target: bytes, *headers: bytes) -> bytes:
    lines = (b"GET " + target + b" HTTP/1.1", b"host: x", b"connection: close", *headers)
    return b"\r\n".join((*lines, b"", b""))


@pytest.mark.parametrize("size", [0, 70_000, HEAD_BYTES - 1000])
def test_long_queries_are_accepted(size: int) -> None:
    request = _request(b"/a?" + b"x" * size)
    assert asyncio.run(_ask(request)).count(b"\r\n/a %d\r\n" % size) == 1
    assert asyncio.run(_ask(request[:20], request[20:])).count(b"\r\n/a %d\r\n" % size) == 1


def test_a_fragment_is_no_part_of_the_query() -> None:
    assert asyncio.run(_ask(_request(b"/a?xy#z?z"))).count(b"\r\n/a 2\r\n") == 1


@pytest.mark.parametrize("start", [b"GET /?", b"GET / HTTP/1.1\r\nx: "])
def test_a_head_without_end_is_refused(start: bytes) -> None:
    pieces = [start, *[b"y" * PIECE] * (4 * HEAD_BYTES // PIECE)]
    answer = asyncio.run(_ask(*pieces))
    assert answer == b"reset" or b" 400 " in answer


@pytest.mark.parametrize("is_trailer", [False, True])
def test_headers_are_limited_in_number(is_trailer: bool) -> None:  # noqa: FBT001
    def ask(count: int) -> bytes:
        headers = [b"a: b"] * count
        request = _request(b"/", *([b"transfer-encoding: chunked"] if is_trailer else headers))
        trailer = b"1\r\nx\r\n0\r\n%b\r\n" % b"".join(b"a: b\r\n" for _ in headers)
        return asyncio.run(_ask(request + trailer * is_trailer))

    taken = MAX_HEADERS - 2 - is_trailer
    assert b" 200 " in ask(taken)
    assert b" 400 " in ask(taken + 1)


@pytest.mark.parametrize("start", [b"0\r\na: ", b"1;a="])
def test_what_is_no_body_is_limited(start: bytes) -> None:
    async def receive_all(_scope: Any, receive: Any, _send: Any) -> None:
        while (await receive()).get("more_body"):
            pass

    head = _request(b"/", b"transfer-encoding: chunked")
    pieces = [head, start, *[b"y" * PIECE] * (4 * HEAD_BYTES // PIECE)]
    answer = asyncio.run(_ask(*pieces, app=receive_all))
    assert answer == b"reset" or b" 400 " in answer


def test_a_long_query_arrives_as_it_was_sent() -> None:
    async def measure(scope: Any, _receive: Any, send: Callable[..., Any]) -> None:
        assert dict(scope["headers"]) == {b"host": b"x", b"connection": b"close", b"a": b"b"}
        await _echo(scope, _receive, send)

    query = bytes(range(0x24, 0x7F)) * 1000
    answer = asyncio.run(_ask(_request(b"/a?" + query, b"a: b"), app=measure))
    assert answer.count(b"\r\n/a %d\r\n" % len(query)) == 1


@pytest.mark.parametrize("size", [0, 70_000])
@pytest.mark.parametrize("piece", [7_000, 1 << 20])
def test_requests_of_one_connection_are_answered_in_turn(size: int, piece: int) -> None:
    body = b"z" * 100
    first = b"POST /a?%b HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n%b" % (
        b"x" * size,
        body,
    )
    sent = first + first.replace(b"/a", b"/b") + _request(b"/c?1")
    pieces = [sent[at : at + piece] for at in range(0, len(sent), piece)]
    counts = (b"/a %d" % size, b"/b %d" % size, b"/c 1")
    answer = asyncio.run(_ask(*pieces))
    assert [answer.count(one) for one in counts] == [1] * len(counts)


def test_a_header_that_would_begin_another_is_not_sent() -> None:
    answer = asyncio.run(_ask(_request(b"/echo?a!x-other:%201")))
    assert answer == b""


async def test_a_message_too_large_closes_its_socket() -> None:
    async def measure(_scope: Any, receive: Any, send: Callable[..., Any]) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        while (message := await receive())["type"] == "websocket.receive":
            await send({"type": "websocket.send", "text": str(len(message["text"]))})

    async with (
        serving(measure, make_connections()) as clients,
        connect(f"ws://127.0.0.1:{clients.port}/") as socket,
    ):
        assert socket.response is not None
        assert "Sec-WebSocket-Extensions" not in socket.response.headers
        await socket.send("x" * REQUEST_BYTES)
        assert await socket.recv() == str(REQUEST_BYTES)
        await socket.send("x" * (REQUEST_BYTES + 1))
        with pytest.raises(ConnectionClosedError, match="1009"):
            await socket.recv()
