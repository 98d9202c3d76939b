"""Middleware that caches responses until the next commit.

A response is cached if its route states that it depends only on the snapshot and the request; it is
then sent again, headers included, without a query. Compressed forms are cached beside it
(`representation`). All cached responses belong to the newest snapshot; a commit drops them all.
Errors are never cached.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from typing import TYPE_CHECKING

import msgspec
from litestar.enums import ScopeType

from tonlake.api.http.content.coding import Packed
from tonlake.api.http.gate import REFUSAL
from tonlake.api.request.call import ANSWER_HEADERS, LASTING, VARYING, measure_ms, write_moment
from tonlake.api.request.table_format import WRITERS, choose_format

if TYPE_CHECKING:
    from collections.abc import Callable

    from litestar.types import ASGIApp, HTTPScope, Message, Receive, Scope, Send

SERVER_TIMING = b"server-timing"
OVERHEAD_BYTES = 1024
"""Overhead of a cached response: its Python objects and its cache entry."""

SMALL_PART = 8
"""Largest fraction (1/8) of the cache that one response may take."""

_KEY_HEADERS = ANSWER_HEADERS | {b"accept", b"origin", b"cookie"}

Key = tuple[str, bytes, tuple[tuple[bytes, bytes], ...]]
"""Path, raw query string, and the request headers that the response depends on."""


KEPT = "kept"
"""Key in the scope's state of the cached response being sent."""


class CachedResponse(msgspec.Struct, eq=False):
    """A response: its lasting headers, and its body around the part that varies."""

    headers: list[tuple[bytes, bytes]]
    before: bytes
    after: bytes | None
    """The body after the part that differs in every request; None if no part differs."""

    key: Key = ("", b"", ())
    """Its key in the cache."""

    packed: dict[str, Packed] = msgspec.field(default_factory=dict)
    """``before``, compressed, by coding."""

    @property
    def size(self) -> int:
        """Approximate size in bytes."""
        texts = (self.before, self.after or b"", *(part for pair in self.headers for part in pair))
        return OVERHEAD_BYTES + sum(map(len, texts))


class ResponseCache:
    """An LRU cache of responses of one snapshot, limited by bytes."""

    def __init__(self, max_bytes: int) -> None:
        """Create a cache of at most ``max_bytes``; 0 disables it."""
        self._max_bytes = max_bytes
        self._number = 0
        self._bytes = 0
        self._answers: OrderedDict[Key, tuple[CachedResponse, int]] = OrderedDict()
        self.keeps = max_bytes > 0
        self.hits = self.misses = 0

    def get(self, number: int | None, key: Key) -> CachedResponse | None:
        """Return the cached response of snapshot ``number``; None if there is none."""
        if number != self._number or key not in self._answers:
            self.misses += 1
            return None
        self.hits += 1
        self._answers.move_to_end(key)
        return self._answers[key][0]

    @property
    def size_bytes(self) -> int:
        """Approximate size of all responses in bytes."""
        return self._bytes

    def put(self, number: int, key: Key, answer: CachedResponse) -> None:
        """Add a response of snapshot ``number``, unless the cache holds a newer snapshot."""
        answer.key = key
        size = answer.size + sum(map(len, key[:2]))
        if number < self._number or size > self._max_bytes // SMALL_PART:
            return
        if number > self._number:
            self._answers.clear()
            self._number, self._bytes = number, 0
        self._bytes += size - self._answers.pop(key, (answer, 0))[1]
        self._answers[key] = answer, size
        self._shrink()

    def add_packed(self, answer: CachedResponse, packed: Packed) -> None:
        """Add the compressed form of a response, unless the response was dropped meanwhile."""
        found, size = self._answers.get(answer.key, (None, 0))
        if found is not answer or packed.coding in answer.packed:
            return
        answer.packed[packed.coding] = packed
        self._answers[answer.key] = answer, size + len(packed.head)
        self._bytes += len(packed.head)
        self._shrink()

    def _shrink(self) -> None:
        while self._bytes > self._max_bytes:
            self._bytes -= self._answers.popitem(last=False)[1][1]


class Cache:
    """Middleware that sends cached responses, and caches new ones."""

    def __init__(
        self,
        app: ASGIApp,
        cache: ResponseCache,
        newest: Callable[[], int | None],
        *,
        any_origin: bool,
    ) -> None:
        """Take the cache.

        Args:
            app: The next layer, for requests that are not cached.
            cache: The cache.
            newest: Returns the number of the snapshot now being served.
            any_origin: Whether pages of every web origin get the same response.
        """
        self._app, self._cache, self._newest = app, cache, newest
        self._any_origin = any_origin

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer from the cache, or forward the request."""
        if scope["type"] != ScopeType.HTTP or not self._cache.keeps:
            await self._app(scope, receive, send)
            return
        key = read_key(scope, self._any_origin)
        if key is None:
            await self._app(scope, receive, send)
            return
        started_s = time.perf_counter()
        found = self._cache.get(self._newest(), key)
        if found is None:
            await self._app(scope, receive, _Recorder(self._cache, key, scope, send).send)
            return
        scope["state"][KEPT] = found
        body = found.before
        headers = [*found.headers, (SERVER_TIMING, b"app;dur=%.1f" % measure_ms(started_s))]
        if found.after is not None:
            body += write_moment(started_s).encode() + found.after
            headers.append((b"content-length", b"%d" % len(body)))
        await send_response(send, 200, headers, b"" if scope["method"] == "HEAD" else body)


async def send_response(
    send: Send, status: int, headers: list[tuple[bytes, bytes]], body: bytes
) -> None:
    """Send a buffered response; ``content-length`` is among its headers."""
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": False})


def read_key(scope: HTTPScope, any_origin: bool) -> Key | None:  # noqa: FBT001
    """Return the cache key of a request; None if its response is not cached."""
    if scope["method"] not in ("GET", "HEAD") or REFUSAL in scope.get("state", {}):
        return None
    inputs = []
    for name, value in scope["headers"]:
        if name not in _KEY_HEADERS:
            continue
        if name in ANSWER_HEADERS:
            inputs.append((name, value))
        elif name == b"accept":
            form = choose_format(value.decode("latin-1"))
            if form in WRITERS:
                inputs.append((name, form.encode()))
        elif name == b"origin":
            inputs.append((name, b"" if any_origin else value))
        else:
            return None  # The response to a browser that sends Origin names that origin.
    return scope["path"], scope["query_string"], tuple(inputs)


class _Recorder:
    """Forwards a response, and caches it if its route marked it as lasting."""

    def __init__(self, cache: ResponseCache, key: Key, scope: HTTPScope, send: Send) -> None:
        self._cache, self._key, self._scope, self._send = cache, key, scope, send
        self._headers: list[tuple[bytes, bytes]] | None = None

    async def send(self, message: Message) -> None:
        number = self._scope["state"].get(LASTING)
        if number is not None and self._scope["method"] == "GET":
            self._record(message, number)
        await self._send(message)

    def _record(self, message: Message, number: int) -> None:
        if message["type"] == "http.response.start" and message["status"] == 200:  # noqa: PLR2004
            self._headers = [
                (name.lower(), value)
                for name, value in message["headers"]
                if name.lower() not in (b"content-length", SERVER_TIMING)
            ]
        elif message["type"] == "http.response.body" and self._headers is not None:
            if not message.get("more_body"):
                answer = self._take(message["body"], self._headers)
                self._scope["state"][KEPT] = answer
                self._cache.put(number, self._key, answer)
            self._headers = None

    def _take(self, body: bytes, headers: list[tuple[bytes, bytes]]) -> CachedResponse:
        varying: str | None = self._scope["state"].get(VARYING)
        if varying is None:
            return CachedResponse([*headers, (b"content-length", b"%d" % len(body))], body, None)
        before, _, after = body.rpartition(varying.encode())
        return CachedResponse(headers, before, after)
