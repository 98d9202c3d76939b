"""Middleware that answers conditional requests with 304, caches responses, and compresses them.

A response is cached if its route states that it depends only on the snapshot and the request; it is
then sent again, headers included, without a query, and its compressed forms are kept beside it. All
cached responses belong to the newest snapshot; a commit drops them all. Errors are never cached.
Streams and formats that are already compressed pass unchanged.

An entity tag names the snapshot, by the digest of its last commit, and the request: a lasting
response depends on nothing else. The tag is weak: compressed bodies share it, and it ignores the
time in a response of version 2, which a cached one repeats.
"""

import asyncio
import gzip
import hashlib
import re
import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
from litestar.enums import ScopeType
from litestar.types import ASGIApp, HTTPScope, Receive, Scope, Send

from tonlake.api.errors import ServiceBusy
from tonlake.api.http.gate import REFUSAL, STREAMS, is_free
from tonlake.api.http.transit import hold
from tonlake.api.request.call import (
    ANSWER_HEADERS,
    LASTING,
    PINNED,
    TAGGED,
    Header,
    Written,
    measure_ms,
)
from tonlake.api.request.table_format import WRITERS, choose_format, read_accept, read_weights
from tonlake.api.settings import Settings
from tonlake.lake.cache import Cache

GZIP, ZSTD, IDENTITY = "gzip", "zstd", "identity"
PREFERRED = (ZSTD, GZIP)
"""Order among codings of equal weight: for 3 MB zstd takes a tenth of the time of gzip."""

GZIP_LEVEL = 5

KNOWN_BYTES = 256
"""Longest Accept-Encoding whose choice is cached."""

_ALIASES = {"x-gzip": GZIP}


class Coding(NamedTuple):
    """The coding to send, and whether the client refuses an uncompressed body."""

    coding: str | None
    refuses_identity: bool = False


@lru_cache(maxsize=1024)
def choose_coding(accepted: bytes) -> Coding:
    """Return the coding to send for an Accept-Encoding header.

    A coding that is not listed has the weight of ``*``; an invalid weight counts as 0. ``identity``
    has the lowest preference unless it is listed.
    """
    weights: dict[str, float] = {}
    for listed, weight in read_weights(accepted.decode("latin-1")):
        name = _ALIASES.get(listed, listed)
        weights[name] = max(weight, weights.get(name, 0.0))
    others = weights.get("*", 0.0)
    best = max(PREFERRED, key=lambda coding: weights.get(coding, others))
    refuses = weights.get(IDENTITY, weights.get("*", 1.0)) == 0
    weight = weights.get(best, others)
    is_accepted = weight > 0 and weight >= weights.get(IDENTITY, 0.0)
    return Coding(best if is_accepted else None, is_accepted and refuses)


def pack(coding: str, body: bytes) -> bytes:
    """Compress a body."""
    if coding == ZSTD:
        packed: bytes = pa.compress(body, ZSTD, asbytes=True)
        return packed
    return gzip.compress(body, GZIP_LEVEL, mtime=0)


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
SERVER_TIMING = b"server-timing"
OVERHEAD_BYTES = 1024
"""Overhead of a cached response: its Python objects and its cache entry."""

SMALL_PART = 16
"""Largest fraction (1/16) of the cache that one response may take: few large ones would evict all
others, and 48 MiB of them stayed after 200 clients that read nothing."""

PINNED_CONTROL = "max-age=31536000, immutable"
"""For requests that name a snapshot: the response never changes."""

TIP_CONTROL = "no-cache"
"""For responses of the newest snapshot: caches may store them, and revalidate every time."""

UNKEPT = (b"cache-control", b"no-store")
"""For errors, and responses of the API that depend on more than the snapshot."""

VARY = b", ".join(
    [b"Accept", b"Accept-Encoding", b"Origin", *sorted(name.title() for name in ANSWER_HEADERS)]
)
_TAG = re.compile(rb'(?:W/)?("[^"]*")')
_KEY_HEADERS = ANSWER_HEADERS | {b"origin", b"cookie"}
_OF_BODY = frozenset({b"content-length", b"content-type", b"content-encoding"})
_OK, _NOT_MODIFIED = 200, 304
_NO_BODY = (204, _NOT_MODIFIED)

Key = tuple[str, bytes, tuple[Header, ...]]
"""Path, raw query string, and the request headers that the response depends on."""


class CachedResponse(msgspec.Struct, eq=False):
    """A response: its lasting headers, and its body."""

    headers: list[Header]
    body: bytes
    key: Key

    packed: dict[str, bytes] = msgspec.field(default_factory=dict)
    """The body, compressed, by coding."""

    @property
    def size(self) -> int:
        """Approximate size in bytes."""
        headers = (*self.headers, *self.key[2])
        texts = (self.body, *self.key[:2], *(part for pair in headers for part in pair))
        return OVERHEAD_BYTES + sum(map(len, (*texts, *self.packed.values())))

    def write(self, started_s: float, method: str) -> Written:
        """Return the response to a request that began at a reading of the performance counter."""
        headers = [*self.headers, (SERVER_TIMING, b"app;dur=%.1f" % measure_ms(started_s))]
        return Written(_OK, headers, b"" if method == "HEAD" else self.body)


Kept = CachedResponse | None


class ResponseCache:
    """A cache of responses of one snapshot, limited by bytes."""

    def __init__(self, max_bytes: int) -> None:
        """Create a cache of at most ``max_bytes``; 0 disables it."""
        self._max_bytes = max_bytes
        self._number = 0
        self._answers = self._begin()
        self.keeps = max_bytes > 0
        self.hits = self.misses = 0

    def get(self, number: int | None, key: Key) -> CachedResponse | None:
        """Return the cached response of snapshot ``number``; None if there is none."""
        found = self._answers.get(key) if number == self._number else None
        self.hits += found is not None
        self.misses += found is None
        return found

    def put(self, number: int, answer: CachedResponse) -> None:
        """Add a response of snapshot ``number``, unless the cache holds a newer snapshot."""
        if number < self._number or answer.size > self._max_bytes // SMALL_PART:
            return
        if number > self._number:
            self._number, self._answers = number, self._begin()
        self._answers.put(answer.key, answer)

    def add_packed(self, answer: CachedResponse, coding: str, packed: bytes) -> None:
        """Add the compressed form of a response, unless the response was dropped meanwhile."""
        if self._answers.get(answer.key) is answer and coding not in answer.packed:
            self._answers.pop(answer.key)
            answer.packed[coding] = packed
            self._answers.put(answer.key, answer)

    @property
    def size_bytes(self) -> int:
        """Approximate size of all responses."""
        return self._answers.weight

    def _begin(self) -> Cache[Key, CachedResponse]:
        return Cache(self._max_bytes, lambda _key, answer: answer.size)


class _Wish(NamedTuple):
    """How a client wants a response: as a coding, only if changed, and its key in the cache."""

    choice: Coding
    condition: bytes
    key: Key | None


class Representations:
    """Middleware that sends cached responses, caches new ones, and chooses what is sent of each."""

    def __init__(
        self,
        app: ASGIApp,
        cache: ResponseCache,
        newest: Callable[[], int | None],
        *,
        any_origin: bool,
        max_bytes: int,
    ) -> None:
        """Store the next layer, and a function that returns the snapshot now being served.

        With ``any_origin`` pages of every web origin get the same response. Bodies beyond
        ``max_bytes`` being compressed at one time go uncompressed.
        """
        self._app, self._newest = app, newest
        self.cache, self._any_origin = cache, any_origin
        self._max_bytes, self._under_way_bytes = max_bytes, 0
        self._files: Cache[tuple[str, str], tuple[bytes, bytes]] = Cache(FILES_KEPT)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer from the cache, or forward the request, and send the response as wanted."""
        if scope["type"] != ScopeType.HTTP or scope["path"].startswith(STREAMS):
            await self._app(scope, receive, send)
            return
        wish = self._read_wish(scope)
        started_s = time.perf_counter()
        kept = None if wish.key is None else self.cache.get(self._newest(), wish.key)
        if kept is not None:
            try:
                hold(scope, len(kept.body))
            except ServiceBusy as error:
                scope["state"][REFUSAL], kept = error, None
        if kept is None:
            await self._app(scope, receive, _Recorder(self, scope, send, wish).send)
            return
        await self.send(scope, send, wish, kept.write(started_s, scope["method"]), kept)

    def _read_wish(self, scope: HTTPScope) -> _Wish:
        accepted = condition = b""
        for name, value in scope["headers"]:
            if name == b"accept-encoding":
                accepted = b"%b,%b" % (accepted, value) if accepted else value
            elif name == b"if-none-match":
                condition = b"%b,%b" % (condition, value) if condition else value
        if scope["method"] not in ("GET", "HEAD"):
            condition = b""
        key = read_key(scope, self._any_origin) if self.cache.keeps else None
        # A header of any length would stay in memory as a key.
        choose = choose_coding if len(accepted) <= KNOWN_BYTES else choose_coding.__wrapped__
        return _Wish(choose(accepted), condition, key)

    async def send(
        self, scope: HTTPScope, send: Send, wish: _Wish, response: Written, kept: Kept
    ) -> None:
        """Send a buffered response: a 304 without a body, a compressed body, or as it is."""
        choice = wish.choice
        is_small = 0 < len(response.body) <= MIN_BYTES and not choice.refuses_identity
        if not wish.condition and (choice.coding is None or is_small):
            await response(scope, None, send)
            return
        headers = {name.lower(): value for name, value in response.headers}
        tag = headers.get(b"etag")
        if tag and response.status == _OK and matches(wish.condition, tag):
            lasting = [pair for pair in response.headers if pair[0].lower() not in _OF_BODY]
            response = Written(_NOT_MODIFIED, lasting, b"")
        elif choice.coding and _is_packable(response, headers, choice):
            response = await self._pack(scope, choice.coding, response, headers, kept)
        await response(scope, None, send)

    async def _pack(
        self,
        scope: HTTPScope,
        coding: str,
        response: Written,
        headers: dict[bytes, bytes],
        kept: Kept,
    ) -> Written:
        """Return the compressed response; for HEAD only the head, without a length."""
        body = response.body
        packed = await self._pack_body(scope, coding, body, kept) if body else None
        if packed is None and scope["method"] != "HEAD":
            return response
        vary = headers.get(b"vary", b"")
        if b"accept-encoding" not in vary.lower():
            vary = b"%b, Accept-Encoding" % vary if vary else b"Accept-Encoding"
        changed = {b"content-encoding": coding.encode(), b"vary": vary}
        if packed is not None:
            changed[b"content-length"] = b"%d" % len(packed)
        dropped = {b"content-length", *changed}
        lasting = [pair for pair in response.headers if pair[0].lower() not in dropped]
        return Written(response.status, [*lasting, *changed.items()], packed or body)

    async def _pack_body(
        self, scope: HTTPScope, coding: str, body: bytes, kept: Kept
    ) -> bytes | None:
        """Return the compressed body; None if too many bodies are being compressed."""
        if kept is not None:
            packed = kept.packed.get(coding)
            if packed is None:
                packed = await self._compress(coding, body)
                if packed is not None:
                    self.cache.add_packed(kept, coding, packed)
            return packed
        file = (scope["path"], coding) if is_free(scope) else None
        known, packed = (file and self._files.get(file)) or (None, None)
        if packed is None or known != body:
            packed = await self._compress(coding, body)
            if packed is not None and file is not None:
                self._files.put(file, (body, packed))
        return packed

    async def _compress(self, coding: str, body: bytes) -> bytes | None:
        if len(body) <= THREAD_BYTES:
            return pack(coding, body)
        if self._under_way_bytes + len(body) > self._max_bytes:
            return None
        self._under_way_bytes += len(body)
        try:
            return await asyncio.to_thread(pack, coding, body)
        finally:
            self._under_way_bytes -= len(body)


class _Recorder:
    """Receives the response of the application; caches it if its route marked it as lasting."""

    __slots__ = ("_layer", "_scope", "_send", "_start", "_wish")

    def __init__(self, layer: Representations, scope: HTTPScope, send: Send, wish: _Wish) -> None:
        self._layer, self._scope, self._send, self._wish = layer, scope, send, wish
        self._start: Any = None

    async def send(self, message: Any) -> None:  # noqa: ANN401 - any message
        if message["type"] == "http.response.start":
            self._start = message
            return
        start, self._start = self._start, None
        if start is None or message.get("more_body"):
            for part in (start, message):
                if part is not None:
                    await self._send(part)
            return
        response = Written(start["status"], list(start["headers"]), message.get("body", b""))
        kept = self._keep(response)
        await self._layer.send(self._scope, self._send, self._wish, response, kept)

    def _keep(self, response: Written) -> Kept:
        state: dict[str, Any] = self._scope["state"]
        number: int | None = state.get(LASTING)
        key = self._wish.key if self._scope["method"] == "GET" else None
        if number is None or key is None or response.status != _OK:
            return None
        headers = [
            (name.lower(), value)
            for name, value in response.headers
            if name.lower() not in (b"content-length", SERVER_TIMING)
        ]
        headers.append((b"content-length", b"%d" % len(response.body)))
        kept = CachedResponse(headers, response.body, key)
        self._layer.cache.put(number, kept)
        return kept


def read_key(scope: HTTPScope, any_origin: bool) -> Key | None:  # noqa: FBT001
    """Return the cache key of a request; None if its response is not cached."""
    if scope["method"] not in ("GET", "HEAD") or REFUSAL in scope.get("state", {}):
        return None
    form = choose_format(read_accept(scope["headers"]))
    inputs = [(b"accept", form.encode())] if form in WRITERS else []
    for name, value in scope["headers"]:
        if name not in _KEY_HEADERS:
            continue
        if name in ANSWER_HEADERS:
            inputs.append((name, value))
        elif name == b"origin":
            inputs.append((name, b"" if any_origin else value))
        else:
            return None  # The response to a browser that sends Origin names that origin.
    return scope["path"], scope["query_string"], tuple(inputs)


def _is_packable(response: Written, headers: dict[bytes, bytes], choice: Coding) -> bool:
    media_type = headers.get(b"content-type", b"").partition(b";")[0].strip()
    if media_type not in COMPRESSIBLE or b"content-encoding" in headers:
        return False
    if response.status in _NO_BODY:
        return False
    # The response to HEAD states only the length of its body.
    size = len(response.body) or int(headers.get(b"content-length", b"0"))
    return size > MIN_BYTES or (choice.refuses_identity and size > 0)


def list_validators(scope: Scope, status: int, settings: Settings, version: str) -> list[Header]:
    """Return ``ETag``, ``Cache-Control`` and ``Vary`` of an API response; pages set their own.

    Responses depend on settings, too, and on the version of the service. If a key is required, no
    shared cache may store them.
    """
    state: dict[str, Any] = scope.get("state") or {}
    if status != _OK or LASTING not in state:
        return []
    control = PINNED_CONTROL if state[PINNED] else TIP_CONTROL
    visibility = "private" if settings.access.keys_required else "public"
    http = settings.http
    tagged = f"{state[TAGGED]} {version} {http.opcode_format} {http.testnet} {http.max_limit}"
    digest = hashlib.blake2b(tagged.encode(), digest_size=12)
    headers = scope["headers"]
    parts = [scope["path"].encode(), scope["query_string"]]
    parts.append((choose_format(read_accept(headers)) or "").encode())
    parts += sorted(name + b":" + value for name, value in headers if name in ANSWER_HEADERS)
    for part in parts:
        digest.update(b"%d:" % len(part) + part)
    return [
        (b"etag", b'W/"%b"' % digest.hexdigest().encode()),
        (b"cache-control", f"{visibility}, {control}".encode()),
        (b"vary", VARY),
    ]


def tag_body(body: bytes) -> str:
    """Return the entity tag of a response that depends on more than snapshot and request."""
    return f'W/"{hashlib.blake2b(body, digest_size=12).hexdigest()}"'


def matches(condition: bytes, tag: bytes) -> bool:
    """Return whether an If-None-Match header names a tag, compared weakly (RFC 9110, 13.1.2)."""
    if condition.strip() == b"*":
        return True
    found = _TAG.fullmatch(tag)
    return found is not None and found[1] in _TAG.findall(condition)
