"""The few files that pages load: one style, one script, one mark."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING

from litestar import Response, get

if TYPE_CHECKING:
    from litestar.handlers import HTTPRouteHandler

TYPES = {
    "explorer.css": "text/css; charset=utf-8",
    "explorer.js": "text/javascript; charset=utf-8",
    "mark.svg": "image/svg+xml",
}
_HEADERS = {
    "Cache-Control": "no-cache",
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'",
}


def _make_route(name: str) -> HTTPRouteHandler:
    content = files("tonlake.api.explorer").joinpath("static", name).read_bytes()

    @get(f"/explorer/{name}", sync_to_thread=False)
    def answer_file() -> Response[bytes]:
        """Return a file that pages load."""
        return Response(content, media_type=TYPES[name], headers=_HEADERS)

    return answer_file


routes = [_make_route(name) for name in TYPES]
