"""Middleware that answers conditional requests with 304 and compresses responses.

A request with neither a condition nor accepted codings costs one scan of its headers. Streams and
formats that are already compressed pass unchanged.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from litestar.enums import ScopeType

from tonlake.api.http.content.cache import KEPT
from tonlake.api.http.content.coding import choose_coding, pack
from tonlake.api.http.content.validators import matches
from tonlake.api.http.gate import is_free

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from litestar.types import ASGIApp, HTTPScope, Message, Receive, Scope, Send

    from tonlake.api.http.content.cache import CachedResponse, ResponseCache
    from tonlake.api.http.content.coding import Choice, Packed

MIN_BYTES = 1024
"""Smaller bodies are not compressed: they fit in one packet with their head."""

THREAD_BYTES = 64 << 10
"""Larger bodies take more than 0.1 ms to compress and are compressed in a thread."""

FILES_KEPT = 64
"""Compressed static files that are kept: page assets and the OpenAPI document never change."""

COMPRESSIBLE = frozenset(
    {
        *(b"application/json", b"application/javascript", b"image/svg+xml"),
        *(b"text/html", b"text/css", b"text/javascript", b"text/plain", b"text/csv"),
        b"application/vnd.apache.arrow.stream",
    }
)
_OF_BODY = frozenset({b"content-length", b"content-type", b"content-encoding"})
_OK, _NOT_MODIFIED = 200, 304
_NO_BODY = (204, _NOT_MODIFIED)


class Representations:
    """Middleware that sends either a 304 without a body, or a compressed body."""

    def __init__(
        self, app: ASGIApp, cache: ResponseCache, *, max_bytes: int, streams: str | tuple[str, ...]
    ) -> None:
        """Store the next layer.

        Args:
            app: The next layer.
            cache: Keeps compressed bodies beside its responses.
            max_bytes: Bytes being compressed at one time; bodies beyond that go uncompressed.
            streams: Path prefixes of streams.
        """
        self._app, self._cache, self._streams = app, cache, streams
        self._max_bytes, self._under_way_bytes = max_bytes, 0
        self._files: OrderedDict[tuple[str, str], tuple[bytes, Packed]] = OrderedDict()

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Forward the request, and send the response in the requested form."""
        if scope["type"] == ScopeType.HTTP:
            accepted = condition = b""
            for name, value in scope["headers"]:
                if name == b"accept-encoding":
                    accepted = b"%b,%b" % (accepted, value) if accepted else value
                elif name == b"if-none-match":
                    condition = b"%b,%b" % (condition, value) if condition else value
            if (accepted or condition) and not scope["path"].startswith(self._streams):
                choice = choose_coding(accepted)
                condition = condition if scope["method"] in ("GET", "HEAD") else b""
                send = _Sender(self, scope, send, choice, condition).send
        return self._app(scope, receive, send)

    async def pack(self, scope: HTTPScope, coding: str, body: bytes) -> bytes | None:
        """Return the compressed body; None if too many bodies are being compressed."""
        kept: CachedResponse | None = scope["state"].get(KEPT)
        if kept is not None:
            packed = kept.packed.get(coding)
            if packed is None:
                packed = await self._compress(coding, kept.before)
                if packed is not None:
                    self._cache.add_packed(kept, packed)
            return None if packed is None else packed.seal(body[len(kept.before) :])
        packed = await (self._pack_file if is_free(scope) else self._pack_once)(scope, coding, body)
        return None if packed is None else packed.seal(b"")

    async def _pack_once(self, _scope: HTTPScope, coding: str, body: bytes) -> Packed | None:
        return await self._compress(coding, body)

    async def _pack_file(self, scope: HTTPScope, coding: str, body: bytes) -> Packed | None:
        key = scope["path"], coding
        known, packed = self._files.get(key, (None, None))
        if known == body:
            return packed
        packed = await self._compress(coding, body)
        if packed is not None:
            self._files[key] = body, packed
            while len(self._files) > FILES_KEPT:
                self._files.popitem(last=False)
        return packed

    async def _compress(self, coding: str, body: bytes) -> Packed | None:
        if len(body) <= THREAD_BYTES:
            return pack(coding, body)
        if self._under_way_bytes + len(body) > self._max_bytes:
            return None
        self._under_way_bytes += len(body)
        try:
            return await asyncio.to_thread(pack, coding, body)
        finally:
            self._under_way_bytes -= len(body)


class _Sender:
    """Sends one response; its head is held back until its body begins."""

    __slots__ = ("_choice", "_condition", "_layer", "_scope", "_send", "_start")

    def __init__(
        self, layer: Representations, scope: HTTPScope, send: Send, choice: Choice, condition: bytes
    ) -> None:
        self._layer, self._scope, self._send = layer, scope, send
        self._choice, self._condition = choice, condition
        self._start: Any = None

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._start = message
            return
        start, self._start = self._start, None
        if start is None:
            await self._send(message)
            return
        if not self._condition and self._is_small(message):
            await self._send(start)
            await self._send(message)
            return
        headers = {name.lower(): value for name, value in start["headers"]}
        if self._is_known(start["status"], headers):
            start = start | {
                "status": _NOT_MODIFIED,
                "headers": [pair for pair in start["headers"] if pair[0].lower() not in _OF_BODY],
            }
            message = {"type": "http.response.body", "body": b"", "more_body": False}
        elif self._choice.coding and self._is_packable(start["status"], headers, message):
            start, message = await self._pack(self._choice.coding, start, headers, message)
        await self._send(start)
        await self._send(message)

    def _is_small(self, message: Any) -> bool:  # noqa: ANN401 - any message
        """Return whether a body is too small to compress, whatever its head says."""
        return 0 < len(message.get("body", b"")) <= MIN_BYTES and not self._choice.refuses_identity

    def _is_known(self, status: int, headers: dict[bytes, bytes]) -> bool:
        """Return whether the client already has this response."""
        tag = headers.get(b"etag")
        return bool(self._condition and tag and status == _OK and matches(self._condition, tag))

    def _is_packable(self, status: int, headers: dict[bytes, bytes], message: Any) -> bool:  # noqa: ANN401 - any message
        media_type = headers.get(b"content-type", b"").partition(b";")[0].strip()
        if media_type not in COMPRESSIBLE or b"content-encoding" in headers:
            return False
        if message.get("more_body") or status in _NO_BODY:
            return False
        # The response to HEAD states only the length of its body.
        size = len(message.get("body", b"")) or int(headers.get(b"content-length", b"0"))
        return size > MIN_BYTES or (self._choice.refuses_identity and size > 0)

    async def _pack(
        self,
        coding: str,
        start: dict[str, Any],
        headers: dict[bytes, bytes],
        message: Any,  # noqa: ANN401 - any message
    ) -> tuple[Any, Any]:
        """Return the compressed head and body; for HEAD only the head, without a length."""
        body = message.get("body", b"")
        packed = None if not body else await self._layer.pack(self._scope, coding, body)
        if packed is None and self._scope["method"] != "HEAD":
            return start, message
        changed = {b"content-encoding": coding.encode(), b"vary": _name_coding(headers)}
        if packed is not None:
            changed[b"content-length"] = b"%d" % len(packed)
            message = message | {"body": packed}
        dropped = {b"content-length", *changed}
        kept = [pair for pair in start["headers"] if pair[0].lower() not in dropped]
        return start | {"headers": [*kept, *changed.items()]}, message


def _name_coding(headers: dict[bytes, bytes]) -> bytes:
    """Return ``Vary`` with Accept-Encoding added."""
    vary = headers.get(b"vary", b"")
    if b"accept-encoding" in vary.lower():
        return vary
    return b"%b, Accept-Encoding" % vary if vary else b"Accept-Encoding"
