"""The API reference: the OpenAPI document, and Swagger UI to read and try it.

Swagger UI is served from an installed package; nothing is loaded from other hosts.
"""

from functools import cache
from importlib.util import find_spec
from pathlib import Path

import msgspec
from litestar import Response, get
from litestar.handlers import HTTPRouteHandler
from litestar.response import Redirect

from tonlake.api.explorer.frame import HEADERS, fill_template, read_theme
from tonlake.api.openapi import describe_api
from tonlake.api.request.call import ApiRequest
from tonlake.api.v3.routes import described

_DAY = {"Cache-Control": "max-age=86400"}

_POLICY = "Content-Security-Policy"
_HEADERS = {**HEADERS, _POLICY: f"{HEADERS[_POLICY]}; img-src 'self' data:"}
"""The headers of the explorer's pages; Swagger UI's style contains images."""


@cache
def write_description() -> bytes:
    """Return the OpenAPI document as JSON."""
    return msgspec.json.encode(describe_api(described))


@cache
def _read_asset(name: str) -> bytes:
    """Return a file of Swagger UI."""
    spec = find_spec("swagger_ui")
    if spec is None or not spec.submodule_search_locations:
        return b""
    return (Path(spec.submodule_search_locations[0]) / "static" / name).read_bytes()


@get("/docs", sync_to_thread=False)
def answer_docs(request: ApiRequest) -> Response[str]:
    """Return the API reference in the theme of the explorer."""
    with_sql = request.app.state.settings.sql.enabled
    values = {"theme": read_theme(request), "with_sql": with_sql, "here": "/docs"}
    return Response(fill_template("docs.html", values), media_type="text/html", headers=_HEADERS)


@get("/openapi.json", sync_to_thread=True)
def answer_openapi() -> Response[bytes]:
    """Return the OpenAPI document."""
    return Response(write_description(), media_type="application/json")


_FILES = {
    "swagger-ui.css": "text/css",
    "swagger-ui-bundle.js": "text/javascript",
    "favicon-32x32.png": "image/png",
}
"""Media types of the files of Swagger UI that the page uses."""


def _make_route(name: str) -> HTTPRouteHandler:
    @get(f"/docs/{name}", sync_to_thread=True)
    def answer_file() -> Response[bytes]:
        """Return a file of the API reference."""
        return Response(_read_asset(name), media_type=_FILES[name], headers=_DAY)

    return answer_file


@get("/api/v3/index.html", status_code=301, sync_to_thread=False)
def redirect_to_docs() -> Redirect:
    """Redirect from the path that TON Center's reference has."""
    return Redirect("/docs", status_code=301)


@get(["/api/v2/openapi.json", "/api/v3/doc.json"], status_code=301, sync_to_thread=False)
def redirect_to_openapi() -> Redirect:
    """Redirect from the paths that TON Center's documents have, which generators of code ask."""
    return Redirect("/openapi.json", status_code=301)


routes = [answer_docs, answer_openapi, redirect_to_docs, redirect_to_openapi]
routes += map(_make_route, _FILES)
