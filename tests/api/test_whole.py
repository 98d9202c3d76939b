"""Answers sent whole are those sent in parts, byte for byte; nothing unsafe gets into a head."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
import uvicorn

from api.server import BoundedProtocol, configure_server
from api.whole import ANSWER, JOINED_BYTES, send_answer

if TYPE_CHECKING:
    from collections.abc import Callable

HEADERS = [(b"content-type", b"text/plain"), (b"x-tab", b"a\tb\xff")]
BODIES = {b"/small": b"body", b"/none": b"", b"/large": b"y" * (JOINED_BYTES + 1)}


class _App:
    """Answers paths with their bodies; notes the types of messages that it sent."""

    def __init__(self, *, whole: bool) -> None:
        self.whole = whole
        self.sent: list[str] = []

    async def __call__(self, scope: Any, _receive: Any, send: Callable[..., Any]) -> None:
        if not self.whole:
            del scope["extensions"]
        body = BODIES.get(scope["path"].encode(), b"odd")
        status = 200 if body != b"odd" else 404
        headers = [*HEADERS, (b"content-length", b"%d" % len(body))]
        if scope["query_string"]:
            headers.append((b"x-query", scope["query_string"].replace(b"!", b"\n")))

        async def note(message: Any) -> None:
            self.sent.append(message["type"])
            await send(message)

        shown = b"" if scope["method"] == "HEAD" else body
        await send_answer(scope, note, status, headers, shown)


async def _ask(app: _App, request: bytes) -> bytes:
    """Return all that comes back over a connection that the server closes."""
    config = configure_server(app)  # type: ignore[arg-type]
    config.lifespan = "off"
    config.load()
    state = uvicorn.server.ServerState()
    state.default_headers = [(b"date", b"today")]

    def connect() -> BoundedProtocol:
        return BoundedProtocol(config=config, server_state=state, app_state={})

    server = await asyncio.get_running_loop().create_server(connect, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname()[:2])
    try:
        writer.write(request)
        await writer.drain()
        return await asyncio.wait_for(reader.read(), 60)
    finally:
        writer.close()
        server.close()


def _request(
    path: bytes, method: bytes = b"GET", *, last: bool = True, version: bytes = b"1.1"
) -> bytes:
    lines = [method + b" " + path + b" HTTP/" + version, b"host: x"]
    return b"\r\n".join([*lines, *([b"connection: close"] if last else []), b"", b""])


@pytest.mark.parametrize(
    "request_bytes",
    [
        *(_request(path) for path in (*BODIES, b"/odd", b"/small?query")),
        _request(b"/small", b"HEAD"),
        _request(b"/large", last=False, version=b"1.0"),
        b"".join([*(_request(path, last=False) for path in BODIES), _request(b"/small")]),
    ],
)
def test_whole_answers_are_those_in_parts(request_bytes: bytes) -> None:
    whole, parts = _App(whole=True), _App(whole=False)
    answers = [asyncio.run(_ask(app, request_bytes)) for app in (whole, parts)]
    assert answers[0] == answers[1]
    assert answers[0].count(b"HTTP/1.1 ") == request_bytes.count(b"HTTP/")
    assert set(parts.sent) == {"http.response.start", "http.response.body"}
    assert (ANSWER in whole.sent) == request_bytes.startswith(b"GET")


def test_a_header_that_would_begin_another_is_refused() -> None:
    answer = asyncio.run(_ask(_App(whole=True), _request(b"/small?a!x-other:%201")))
    assert answer.startswith(b"HTTP/1.1 500 ")
    assert b"x-other" not in answer


def test_an_answer_is_sent_once() -> None:
    class Twice(_App):
        async def __call__(self, scope: Any, receive: Any, send: Callable[..., Any]) -> None:
            await super().__call__(scope, receive, send)
            await super().__call__(scope, receive, send)

    answer = asyncio.run(_ask(Twice(whole=True), _request(b"/small")))
    assert answer.count(b"HTTP/1.1 ") == 1
