"""Streams over HTTP: server-sent events and a WebSocket, with the same events."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Any

import msgspec
from litestar import WebSocket, get, post, websocket
from litestar.exceptions import WebSocketDisconnect
from litestar.params import RawBody
from litestar.response import Stream
from uvicorn.protocols.utils import ClientDisconnected

from tonlake.api.errors import ApiError, RequestInvalid
from tonlake.api.http.gate import STREAMS
from tonlake.api.request.call import (
    ApiRequest,
    ConversionError,
    converters_of,
    read_known,
    read_query,
)
from tonlake.api.stream.event import (
    Client,
    StreamQuery,
    cut,
    make_subscription,
    parse_cursor,
    read_json_query,
)

if TYPE_CHECKING:
    from tonlake.api.stream.hub import Hub

LOG = logging.getLogger("tonlake.api")
PREFIX = STREAMS[0]
KEEP_ALIVE_S = 15.0
"""An idle client is sent its position after this long."""

PIECE_BYTES = 64 << 10
"""Most bytes of events written to a connection at once, unless one has more."""

_CLOSE_TRY_AGAIN = 1013
_HANG_UPS = (WebSocketDisconnect, ClientDisconnected)
"""What the next receive, and what a send, raises after a client has hung up."""


@get(f"{PREFIX}/sse", sync_to_thread=False)
def answer_query(request: ApiRequest) -> Stream:
    """Stream the events that match the parameters, until the client disconnects."""
    arguments = read_known(request, converters_of(StreamQuery))
    return _stream(request, read_query(StreamQuery, arguments))


@post(f"{PREFIX}/sse", sync_to_thread=False, status_code=200)
def answer_body(request: ApiRequest, body: RawBody) -> Stream:
    """Stream the events that match a JSON object, until the client disconnects."""
    return _stream(request, read_json_query(_decode(body)))


def _stream(request: ApiRequest, query: StreamQuery) -> Stream:
    hub: Hub = request.app.state.hub
    header = request.headers.get("last-event-id")
    cursor = query.last_event_id
    if header:
        try:
            cursor = parse_cursor(header)
        except ConversionError as error:
            raise RequestInvalid("the header Last-Event-ID is not an event id") from error
    client = hub.join(make_subscription(query), cursor)
    headers = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
    return Stream(_write_frames(hub, client), media_type="text/event-stream", headers=headers)


async def _write_frames(hub: "Hub", client: Client) -> AsyncIterator[bytes]:
    """Yield the frames of server-sent events for a client."""
    state = {"status": "subscribed", "last_event_id": str(client.sent)}
    try:
        yield b"id: %s\nevent: subscribed\ndata: %b\n\n" % (
            str(client.sent).encode(),
            msgspec.json.encode(state),
        )
        async with aclosing(hub.follow(client, KEEP_ALIVE_S)) as batches:
            async for events in batches:
                if not events:
                    yield b"id: %s\n\n" % str(client.sent).encode()
                for part in cut(events, lambda event: len(event.body), PIECE_BYTES):
                    yield b"".join(event.frame for event in part)
                    client.pass_over(max(event.cursor or client.sent for event in part))
        yield b"event: error\ndata: %b\n\n" % _write_end(client)
    finally:
        hub.leave(client)  # it may be gone before it is followed


def _write_end(client: Client) -> bytes:
    state = {"type": "error", "error": client.fault, "last_event_id": str(client.sent)}
    return msgspec.json.encode(state)


def _decode(text: bytes | str) -> object:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RequestInvalid(f"failed to parse the request: {error}") from error


@websocket(f"{PREFIX}/ws")
async def serve_socket(socket: WebSocket[Any, Any, Any]) -> None:
    """Accept subscriptions over a WebSocket, and send the events of the newest one."""
    await socket.accept()
    session = _Session(socket)
    try:
        with suppress(*_HANG_UPS):
            while True:
                await session.take(await socket.receive_text())
    except Exception:
        LOG.exception("a WebSocket is closed by an error of the server")
        raise
    finally:
        await session.stop()


class _Session:
    """A WebSocket and its subscription."""

    def __init__(self, socket: WebSocket[Any, Any, Any]) -> None:
        self._socket = socket
        self._hub: Hub = socket.app.state.hub
        self._task: asyncio.Task[None] | None = None
        self._client: Client | None = None

    async def take(self, text: str) -> None:
        """Handle a message of the client and respond to it."""
        message: object = None
        client = None
        try:
            if not text:
                raise RequestInvalid("a message should be JSON as text, not bytes")
            message = _decode(text)
            answer, client = await self._execute(message)
        except ApiError as error:
            answer = {"error": str(error)}
        if isinstance(message, dict) and "id" in message:
            answer = {"id": message["id"]} | answer
        await self._send(answer)
        if client is not None:
            self._task = asyncio.create_task(self._run(client))

    async def _execute(self, message: object) -> tuple[dict[str, Any], Client | None]:
        name = message.get("operation") if isinstance(message, dict) else None
        if name == "ping":
            return {"status": "pong"}, None
        if name not in ("subscribe", "unsubscribe"):
            raise RequestInvalid("operation should be one of: subscribe, unsubscribe, ping")
        query = read_json_query(message)
        subscription, before = make_subscription(query), self._client
        await self.stop()
        if name == "subscribe":
            self._client = client = self._hub.join(subscription, query.last_event_id)
            return {"status": "subscribed", "last_event_id": str(client.sent)}, client
        if before is not None and (rest := before.subscription.without(subscription)) is not None:
            self._client = self._hub.join(rest, before.sent)
        return {"status": "unsubscribed"}, self._client

    async def stop(self) -> None:
        """End the subscription, if any."""
        if self._client is not None:  # its task may be missing, or end before its first step
            self._hub.leave(self._client)
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        self._task = self._client = None

    async def _run(self, client: Client) -> None:
        with suppress(*_HANG_UPS):
            async with aclosing(self._hub.follow(client, KEEP_ALIVE_S)) as batches:
                async for events in batches:
                    if not events:
                        await self._send({"type": "progress", "last_event_id": str(client.sent)})
                    for event in events:
                        await self._socket.send_text(event.message)
                        client.pass_over(event.cursor or client.sent)
            await self._socket.send_text(_write_end(client).decode())
            await self._socket.close(_CLOSE_TRY_AGAIN)

    async def _send(self, answer: dict[str, Any]) -> None:
        await self._socket.send_text(msgspec.json.encode(answer).decode())


routes = [answer_query, answer_body, serve_socket]
