"""The API's description, readable and to try out.

Nothing is loaded from elsewhere: Swagger UI comes out of an installed package.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from litestar import Response, get

from tonlake.api.explorer.frame import HEADERS
from tonlake.api.openapi import describe_api
from tonlake.api.v3.routes import routes as v3_routes

if TYPE_CHECKING:
    from litestar.handlers import HTTPRouteHandler

_SCRIPT = "text/javascript"
_ASSETS = {
    "swagger-ui-bundle.js": _SCRIPT,
    "swagger-ui.css": "text/css",
    "favicon-32x32.png": "image/png",
}
_DAY = {"Cache-Control": "max-age=86400"}
_HTML = "text/html"

_DOCS = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>tonlake: API</title>
<link rel="icon" href="/docs/favicon-32x32.png">
<link rel="stylesheet" href="/docs/swagger-ui.css"></head>
<body><div id="ui"></div>
<script src="/docs/swagger-ui-bundle.js"></script>
<script src="/docs/start.js"></script></body></html>
"""
_START = """\
SwaggerUIBundle({url: "/openapi.json", dom_id: "#ui", deepLinking: true, docExpansion: "none"});
"""
_POLICY = "Content-Security-Policy"
_HEADERS = {**HEADERS, _POLICY: f"{HEADERS[_POLICY]}; img-src 'self' data:"}
"""Those of the explorer's pages; the style of Swagger UI has pictures in it."""


@cache
def write_description() -> bytes:
    """Return the OpenAPI document as JSON."""
    return msgspec.json.encode(describe_api(v3_routes))


@cache
def read_asset(name: str) -> bytes:
    """Return a file of Swagger UI."""
    spec = find_spec("swagger_ui")
    if spec is None or not spec.submodule_search_locations:
        return b""
    return (Path(spec.submodule_search_locations[0]) / "static" / name).read_bytes()


@get("/docs", sync_to_thread=False)
def answer_docs() -> Response[str]:
    """Show the API's description, to read and to try out."""
    return Response(_DOCS, media_type=_HTML, headers=_HEADERS)


@get("/docs/start.js", sync_to_thread=False)
def answer_start() -> Response[str]:
    """Return the script that shows the description: the page itself must have none."""
    return Response(_START, media_type=_SCRIPT, headers=_DAY)


@get("/openapi.json", sync_to_thread=True)
def answer_openapi() -> Response[bytes]:
    """Describe the API for programs."""
    return Response(write_description(), media_type="application/json")


def _make_asset_route(name: str) -> HTTPRouteHandler:
    @get(f"/docs/{name}", sync_to_thread=True)
    def answer_asset() -> Response[bytes]:
        """Return a file of Swagger UI."""
        return Response(read_asset(name), media_type=_ASSETS[name], headers=_DAY)

    return answer_asset


routes = [answer_docs, answer_start, answer_openapi, *map(_make_asset_route, _ASSETS)]
