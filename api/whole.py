"""Answers that are sent whole: head and body in one message, and small ones in one write.

ASGI has the head and the body of an answer sent apart, and a server writes each when it comes.
This one offers an extension to those who have both at hand: it saves a packet, and much of the way.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle

if TYPE_CHECKING:
    from collections.abc import Sequence

    from litestar.types import HTTPScope, Send

ANSWER = "tonlake.http.answer"
"""Type of the message, and name of the extension: ``status``, ``headers`` and ``body``.

Names of headers are in small letters; ``content-length`` is among them.
"""

JOINED_BYTES = 1 << 16
"""A body up to this is copied behind its head."""

_UNSAFE = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
"""What no header may hold, as the server has it for all other answers."""


async def send_answer(
    scope: HTTPScope, send: Send, status: int, headers: Sequence[tuple[bytes, bytes]], body: bytes
) -> None:
    """Send an answer in one message where the server takes it, else in two."""
    if scope["method"] == "GET" and ANSWER in (scope.get("extensions") or ()):
        whole: Any = {"type": ANSWER, "status": status, "headers": headers, "body": body}
        await send(whole)
        return
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": False})


class WholeCycle(RequestResponseCycle):
    """A request and its answer, which may come whole."""

    async def send(self, message: Any) -> None:  # noqa: ANN401 - of ASGI, or ours
        """Send a whole answer as parts of one are sent; those are left to the server."""
        if message["type"] != ANSWER or self.response_started:
            await super().send(message)
            return
        if self.flow.write_paused and not self.disconnected:
            await self.flow.drain()
        if self.disconnected:
            return
        head = self._write_head(message["status"], message["headers"])
        self.response_started, self.waiting_for_100_continue = True, False
        body = message["body"]
        if len(body) <= JOINED_BYTES:
            self.transport.write(head + body)
        else:
            self.transport.write(head)
            self.transport.write(body)
        self.response_complete = True
        self.message_event.set()
        if not self.keep_alive:
            self.transport.close()
        self.on_response()

    def _write_head(self, status: int, headers: Sequence[tuple[bytes, bytes]]) -> bytes:
        pairs = [*self.default_headers, *headers]
        if not self.keep_alive:
            pairs.append((b"connection", b"close"))
        if _UNSAFE.search(b"".join([part for pair in pairs for part in pair])):
            raise RuntimeError("Invalid HTTP header.")
        lines = [b"%b: %b\r\n" % pair for pair in pairs]
        return b"".join([STATUS_LINE[status], *lines, b"\r\n"])


def offer(cycle: RequestResponseCycle) -> None:
    """Let a request be answered by one message."""
    scope: Any = cycle.scope
    scope["extensions"] = {ANSWER: {}}
    # The server makes its cycles itself. A method of this one alone would be a cycle of references.
    cycle.__class__ = WholeCycle
