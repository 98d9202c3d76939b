"""Middleware that calls handlers of fixed paths without the framework.

Routing among a hundred routes, the framework's middleware and argument binding cost more than a
small response. A GET request on a fixed path goes straight to its handler; all other requests, and
those from another web origin, go to the framework, which gives the same response.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any

from litestar import Litestar, Request, Response
from litestar.enums import ScopeType
from litestar.routes import HTTPRoute

from tonlake.api.http.content.cache import send_response
from tonlake.api.http.gate import check_refusal
from tonlake.api.http.lane import call_in_lane

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from litestar.types import HTTPScope, Receive, Scope, Send

    from tonlake.api.request.call import ApiRequest

    Handle = Callable[[ApiRequest], Response[bytes]]

Header = tuple[bytes, bytes]
DIRECT = "direct"
"""Route option: the function that answers GET requests; its only argument is the request."""

UNWAITING = "unwaiting"
"""Route option: the handler waits only for its reader, not for another process or a lock."""

_HOST = re.compile(rb"[0-9A-Za-z.:\-\[\]]*")
"""A plain Host header; requests with any other go to the framework."""


class Direct:
    """Middleware that answers GET requests on fixed paths."""

    def __init__(
        self,
        app: Litestar,
        explain: Callable[[ApiRequest, Exception], Response[Any]],
        complete_headers: Callable[[Iterable[Header], Scope, int], list[Header]],
    ) -> None:
        """Store the application with its routes, the error handler, and what completes headers."""
        self._app, self._explain, self._complete_headers = app, explain, complete_headers
        self._handlers: dict[str, tuple[Handle, bool]] = {
            route.path: (handler.opt[DIRECT], bool(handler.opt.get(UNWAITING)))
            for route in app.routes
            if isinstance(route, HTTPRoute)
            for handler in route.route_handlers
            if DIRECT in handler.opt
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the request, or forward it."""
        if scope["type"] != ScopeType.HTTP or not self.takes(scope):
            await self._app(scope, receive, send)
            return
        handle, unwaiting = self._handlers[scope["path"]]
        scope["litestar_app"] = self._app
        request: ApiRequest = Request(scope, receive, send)
        try:
            check_refusal(scope)
            response = await call_in_lane(partial(handle, request), scope, unwaiting=unwaiting)
        except Exception as error:  # noqa: BLE001 - every error has an answer, and some are logged
            response = self._explain(request, error)
        await self._send(response, scope, send)

    async def refuse(self, scope: Scope, receive: Receive, send: Send, error: Exception) -> None:
        """Answer a request with an error, in the form of its API version."""
        scope["litestar_app"] = self._app
        await self._send(self._explain(Request(scope, receive, send), error), scope, send)

    async def _send(self, response: Response[Any], scope: Scope, send: Send) -> None:
        body: bytes = response.content
        own = [
            (b"content-type", _name_type(str(response.media_type))),
            (b"content-length", b"%d" % len(body)),
            *((name.lower().encode(), text.encode()) for name, text in response.headers.items()),
        ]
        status = response.status_code or 200
        await send_response(send, status, self._complete_headers(own, scope, status), body)

    def takes(self, scope: HTTPScope) -> bool:
        """Return whether a request bypasses the framework."""
        if scope["method"] != "GET" or scope["path"] not in self._handlers or scope["root_path"]:
            return False
        return not any(
            name == b"origin" or (name == b"host" and not _HOST.fullmatch(value))
            for name, value in scope["headers"]
        )


def _name_type(media_type: str) -> bytes:
    return (
        f"{media_type}; charset=utf-8" if media_type.startswith("text/") else media_type
    ).encode()
