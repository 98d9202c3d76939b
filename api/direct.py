"""The short way from a request to its handler, for what needs nothing of the framework.

To find one of a hundred routes, to pass the layers around it and to bind arguments costs more than
a small answer does. A GET request on a fixed path goes to its handler at once; everything else, and
every page of another web origin, goes the framework's way, which gives the same answer.
"""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any

from litestar import Litestar, Request, Response
from litestar.routes import HTTPRoute

from api.access.gate import check_refusal
from api.call import AT_ONCE
from api.whole import send_answer
from queries.errors import QueryNeeded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from litestar.types import HTTPScope, Receive, Scope, Send

    from api.call import ApiRequest
    from api.lane import Lanes

    Handle = Callable[[ApiRequest], Response[bytes]]

Header = tuple[bytes, bytes]
DIRECT = "direct"
"""Option of a route: the function that answers GET requests, given the request alone."""

UNWAITING = "unwaiting"
"""Option of a route: it waits for nothing but what its reader does, no other process, no lock."""

_HOST = re.compile(rb"[0-9A-Za-z.:\-\[\]]*")
"""What the header says in earnest; the framework decides on everything else."""


class DirectRoutes:
    """Handlers by path."""

    def __init__(
        self,
        app: Litestar,
        explain: Callable[[ApiRequest, Exception], Response[Any]],
        complete_headers: Callable[[Iterable[Header], Scope], list[Header]],
    ) -> None:
        """Take the routes of an application, what answers an error, and what adds headers."""
        self._app, self._explain, self._complete_headers = app, explain, complete_headers
        handlers = {
            route.path: handler
            for route in app.routes
            if isinstance(route, HTTPRoute)
            for handler in route.route_handlers
            if DIRECT in handler.opt
        }
        self._handles: dict[str, Handle] = {
            path: handler.opt[DIRECT] for path, handler in handlers.items()
        }
        self._unwaiting = {path for path, one in handlers.items() if one.opt.get(UNWAITING)}

    def find(self, scope: HTTPScope) -> Handle | None:
        """Return what answers a request; None where the framework has to be asked."""
        handle = self._handles.get(scope["path"])
        if handle is None or scope["method"] != "GET" or scope["root_path"]:
            return None
        for name, value in scope["headers"]:
            if name == b"origin" or (name == b"host" and not _HOST.fullmatch(value)):
                return None
        return handle

    async def answer(
        self,
        handle: Handle,
        scope: HTTPScope,
        receive: Receive,
        send: Send,
        lanes: Lanes,
    ) -> None:
        """Answer a request here or in a thread of a lane, and its errors as the framework would."""
        scope["litestar_app"] = self._app
        request: ApiRequest = Request(scope, receive, send)
        try:
            check_refusal(scope)
            response = self._answer_at_once(handle, request, lanes)
            if response is None:
                response = await asyncio.to_thread(handle, request)
        except Exception as error:  # noqa: BLE001 - every error has an answer, and some are logged
            response = self._explain(request, error)
        body: bytes = response.content
        own = [
            (b"content-type", _name_type(str(response.media_type))),
            (b"content-length", b"%d" % len(body)),
            *((name.lower().encode(), text.encode()) for name, text in response.headers.items()),
        ]
        headers = self._complete_headers(own, scope)
        status = response.status_code or 200
        await send_answer(scope, send, status, headers, body)

    def _answer_at_once(
        self, handle: Handle, request: ApiRequest, lanes: Lanes
    ) -> Response[bytes] | None:
        """Answer a small request in the thread of the event loop; None where that would take long.

        What is read then is in memory, or mapped into it.
        """
        scope = request.scope
        if scope["path"] not in self._unwaiting or not lanes.is_small(scope):
            return None
        state = scope["state"]
        before = dict(state)
        state[AT_ONCE] = True
        try:
            found: Response[bytes] = lanes.do_at_once(lambda: handle(request), scope)
        except QueryNeeded:
            state.clear()
            state.update(before)
            return None
        return found


def _name_type(media_type: str) -> bytes:
    return (
        f"{media_type}; charset=utf-8" if media_type.startswith("text/") else media_type
    ).encode()
