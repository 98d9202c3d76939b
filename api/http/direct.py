"""The layer that calls handlers of fixed paths without the framework.

Finding one of a hundred routes, passing the layers around it and binding arguments costs more than
a small response does. A GET request on a fixed path goes to its handler at once; everything else,
and every page of another web origin, goes to the framework, which gives the same response.
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
"""Option of a route: the function that answers GET requests, given the request alone."""

UNWAITING = "unwaiting"
"""Option of a route: it waits for nothing but what its reader does, no other process, no lock."""

_HOST = re.compile(rb"[0-9A-Za-z.:\-\[\]]*")
"""A Host header without a path or other characters; the framework handles all others."""


class Direct:
    """Middleware that answers GET requests on fixed paths."""

    def __init__(
        self,
        app: Litestar,
        explain: Callable[[ApiRequest, Exception], Response[Any]],
        complete_headers: Callable[[Iterable[Header], Scope, int], list[Header]],
    ) -> None:
        """Take the application with its routes, what answers an error, and what adds headers."""
        self._app, self._explain, self._complete_headers = app, explain, complete_headers
        self._handlers: dict[str, tuple[Handle, bool]] = {
            route.path: (handler.opt[DIRECT], bool(handler.opt.get(UNWAITING)))
            for route in app.routes
            if isinstance(route, HTTPRoute)
            for handler in route.route_handlers
            if DIRECT in handler.opt
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on."""
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
        """Return whether a request is answered here."""
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
