"""Answers that hold until the next commit, kept as they were sent.

An answer whose route says that it follows from the snapshot and the request alone is kept with
its headers, and sent again without asking anything. All answers kept are of one snapshot, the
newest: a commit lets go of them together. Errors are never kept.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, NamedTuple

from litestar import Litestar

from api.access.gate import REFUSAL
from api.call import ANSWER_HEADERS, LASTING, VARYING, measure_ms, write_moment
from api.table_format import WRITERS, choose_format
from api.whole import ANSWER, send_answer

if TYPE_CHECKING:
    from collections.abc import Callable

    from litestar.types import HTTPScope, Message, Send

SERVER_TIMING = b"server-timing"
OVERHEAD_BYTES = 1024
"""What an answer takes beside its text: Python's objects, and its place in the cache."""

SMALL_PART = 8
"""No answer takes more than one part of so many of the cache."""

Key = tuple[str, bytes, tuple[tuple[bytes, bytes], ...]]
"""Path, query as it was sent, and the headers that answers depend on."""


class KeptAnswer(NamedTuple):
    """One answer: its headers but those of the moment, and its body around what varies."""

    headers: list[tuple[bytes, bytes]]
    before: bytes
    after: bytes | None
    """What follows the part that is written anew for every request; None where nothing is."""

    @property
    def size(self) -> int:
        """Bytes, about."""
        texts = (self.before, self.after or b"", *(part for pair in self.headers for part in pair))
        return OVERHEAD_BYTES + sum(map(len, texts))


class AnswerCache:
    """Answers of one snapshot, those used last, within a bound of bytes."""

    def __init__(self, most_bytes: int) -> None:
        """Keep no more than ``most_bytes``; 0 keeps nothing."""
        self._most_bytes = most_bytes
        self._number = 0
        self._bytes = 0
        self._answers: OrderedDict[Key, tuple[KeptAnswer, int]] = OrderedDict()
        self.keeps = most_bytes > 0
        self.hits = self.misses = 0

    def get(self, number: int | None, key: Key) -> KeptAnswer | None:
        """Return the answer that snapshot ``number`` gave, if it is kept."""
        if number != self._number or key not in self._answers:
            self.misses += 1
            return None
        self.hits += 1
        self._answers.move_to_end(key)
        return self._answers[key][0]

    @property
    def size_bytes(self) -> int:
        """Bytes that all answers take, about."""
        return self._bytes

    def put(self, number: int, key: Key, answer: KeptAnswer) -> None:
        """Keep an answer of snapshot ``number``, unless a newer one is known already."""
        size = answer.size + sum(map(len, key[:2]))
        if number < self._number or size > self._most_bytes // SMALL_PART:
            return
        if number > self._number:
            self._answers.clear()
            self._number, self._bytes = number, 0
        self._bytes += size - self._answers.pop(key, (answer, 0))[1]
        self._answers[key] = answer, size
        while self._bytes > self._most_bytes:
            self._bytes -= self._answers.popitem(last=False)[1][1]


class CachingApp(Litestar):
    """An application that sends kept answers before anything else is done for a request."""

    def keep_answers(
        self, cache: AnswerCache, newest: Callable[[], int | None], *, any_origin: bool = True
    ) -> None:
        """Take the cache, and the way to ask which snapshot answers are made from now.

        ``any_origin`` says that pages of every web origin get the same answer.
        """
        self._any_origin = any_origin
        self._cache = cache
        self._newest = newest

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:  # noqa: ANN401
        """Answer one request, or serve the events of the process."""
        is_kept = scope["type"] == "http" and self._cache.keeps
        key = read_key(scope, self._any_origin) if is_kept else None
        if key is None:
            await self.answer_anew(scope, receive, send)
            return
        started_s = time.perf_counter()
        found = self._cache.get(self._newest(), key)
        if found is None:
            await self.answer_anew(scope, receive, _Recorder(self._cache, key, scope, send).send)
            return
        body = found.before
        if found.after is not None:
            body += write_moment(started_s).encode() + found.after
        headers = [
            *found.headers,
            (b"content-length", b"%d" % len(body)),
            (SERVER_TIMING, b"app;dur=%.1f" % measure_ms(started_s)),
        ]
        await send_answer(scope, send, 200, headers, b"" if scope["method"] == "HEAD" else body)

    async def answer_anew(self, scope: Any, receive: Any, send: Any) -> None:  # noqa: ANN401
        """Answer a request of which no answer is kept."""
        await super().__call__(scope, receive, send)


def read_key(scope: HTTPScope, any_origin: bool) -> Key | None:  # noqa: FBT001
    """Return what an answer depends on beside the snapshot; None where none would be kept."""
    if scope["method"] not in ("GET", "HEAD") or REFUSAL in scope.get("state", {}):
        return None
    given = []
    for name, value in scope["headers"]:
        if name in ANSWER_HEADERS:
            given.append((name, value))
        elif name == b"accept":
            form = choose_format(value.decode("latin-1"))
            if form in WRITERS:
                given.append((name, form.encode()))
        elif name == b"origin":
            given.append((name, b"" if any_origin else value))
        elif name == b"cookie":
            return None  # A browser that sends one is answered with its origin by name.
    return scope["path"], scope["query_string"], tuple(given)


_HEADS = ("http.response.start", ANSWER)
_BODIES = ("http.response.body", ANSWER)


class _Recorder:
    """Passes an answer on, and keeps it if its route has said that it lasts."""

    def __init__(self, cache: AnswerCache, key: Key, scope: HTTPScope, send: Send) -> None:
        self._cache, self._key, self._scope, self._send = cache, key, scope, send
        self._headers: list[tuple[bytes, bytes]] | None = None

    async def send(self, message: Message) -> None:
        await self._send(message)
        number = self._scope["state"].get(LASTING)
        if number is None or self._scope["method"] != "GET":
            return
        part: Any = message
        if part["type"] in _HEADS and part["status"] == 200:  # noqa: PLR2004
            of_moment = (b"content-length", SERVER_TIMING)
            self._headers = [
                (name.lower(), value)
                for name, value in part["headers"]
                if name.lower() not in of_moment
            ]
        if part["type"] in _BODIES and self._headers is not None:
            if not part.get("more_body"):
                self._cache.put(number, self._key, self._take(part["body"], self._headers))
            self._headers = None

    def _take(self, body: bytes, headers: list[tuple[bytes, bytes]]) -> KeptAnswer:
        varying: str | None = self._scope["state"].get(VARYING)
        if varying is None:
            return KeptAnswer(headers, body, None)
        before, _, after = body.rpartition(varying.encode())
        return KeptAnswer(headers, before, after)
