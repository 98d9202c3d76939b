"""The API reference: the OpenAPI document, and Swagger UI to read and try it.

Swagger UI is served from an installed package; nothing is loaded from other hosts.
"""

from functools import cache
from importlib.util import find_spec
from pathlib import Path

import msgspec
from litestar import Response, get
from litestar.handlers import HTTPRouteHandler

from tonlake.api.explorer.frame import HEADERS, read_theme
from tonlake.api.openapi import describe_api
from tonlake.api.request.call import ApiRequest
from tonlake.api.v3.routes import described

_DAY = {"Cache-Control": "max-age=86400"}

_DOCS = """<!doctype html>
<html lang="en" data-theme="{theme}"><head><meta charset="utf-8"><title>tonlake: API</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="/docs/favicon-32x32.png">
<link rel="stylesheet" href="/docs/swagger-ui.css">
<link rel="stylesheet" href="/docs/docs.css"></head>
<body><nav aria-label="Main"><a href="/">tonlake</a> <a href="/blocks">Blocks</a>
<a href="/accounts">Accounts</a> <a href="/jettons">Tokens</a> <a href="/collections">NFTs</a>
<a href="/validators">Validators</a> <a href="/config">Config</a>
<a href="/lake">Lake</a> {sql}<a href="/docs" aria-current="page">API</a>
<a href="/openapi.json">openapi.json</a></nav>
<main><h1>API reference</h1><div id="ui"></div></main>
<script src="/docs/swagger-ui-bundle.js"></script>
<script src="/docs/start.js"></script></body></html>
"""
_START = """\
const plain = (link, {React}) => ({text}) => React.createElement("span", {}, text);
SwaggerUIBundle({
  url: "/openapi.json",
  dom_id: "#ui",
  deepLinking: true,
  docExpansion: "none",
  plugins: [{wrapComponents: {DeepLink: plain}}],
});
"""
"""Paths are plain text rather than links in buttons, which screen readers miss; clicks still
set the URL."""

_STYLE = """\
:root { color-scheme: light dark; --ground: #fff; --text: #17212c; --link: #0a55aa; --turn: none; }
:root[data-theme="light"] { color-scheme: light; }
@media (prefers-color-scheme: dark) {
  :root:not([data-theme="light"]) {
    --ground: #191919; --text: #e6edf3; --link: #7cbcff; --turn: invert(.9) hue-rotate(180deg);
  }
}
:root[data-theme="dark"] {
  color-scheme: dark;
  --ground: #191919; --text: #e6edf3; --link: #7cbcff; --turn: invert(.9) hue-rotate(180deg);
}
body { margin: 0; background: var(--ground); color: var(--text); }
nav { font: 16px/1.5 system-ui, sans-serif; }
nav { display: flex; flex-wrap: wrap; gap: .25rem 1.1rem; padding: .9rem 1rem; }
nav a { color: var(--link); }
nav a:first-child { font-weight: 700; color: var(--text); }
h1 { margin: 0; padding: 0 1rem; font: 700 1.6rem/1.3 system-ui, sans-serif; }
#ui .info { margin: 1.5rem 0; }
#ui { filter: var(--turn); color-scheme: light; background: #fff; }
#ui .info .title small { background: #545b68; }
#ui .info .title small.version-stamp { background: #456200; }
#ui .info .url { color: #0a55aa; }
#ui .opblock-get .opblock-summary-method { background: #0a5cad; }
#ui .opblock-post .opblock-summary-method { background: #136b3f; }
#ui .parameter__in, #ui .json-schema-2020-12-expand-deep-button { color: #545b68; }
#ui .btn.execute { background: #0a5cad; border-color: #0a5cad; }
#ui .btn.cancel { color: #b3261e; border-color: #b3261e; }
#ui .scheme-container { display: none; }
#ui .wrapper { padding: 0 1rem; }
@media (max-width: 40rem) {
  #ui .opblock-summary { flex-wrap: wrap; }
  #ui .opblock-summary-path { max-width: 100%; overflow-wrap: anywhere; }
  #ui .opblock-summary-description { text-align: left; }
  #ui .parameters-col_description input, #ui .parameters-col_description select { width: 100%; }
  #ui .table-container { overflow-x: auto; }
}
"""
"""Swagger UI has no dark theme: its colours are inverted, and the hues rotated back."""

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
    sql = '<a href="/sql">SQL</a> ' if request.app.state.settings.sql.enabled else ""
    page = _DOCS.format(theme=read_theme(request), sql=sql)
    return Response(page, media_type="text/html", headers=_HEADERS)


@get("/openapi.json", sync_to_thread=True)
def answer_openapi() -> Response[bytes]:
    """Return the OpenAPI document."""
    return Response(write_description(), media_type="application/json")


_OWN = {"start.js": _START.encode(), "docs.css": _STYLE.encode()}
_FILES = {
    "start.js": "text/javascript",
    "docs.css": "text/css",
    "swagger-ui.css": "text/css",
    "swagger-ui-bundle.js": "text/javascript",
    "favicon-32x32.png": "image/png",
}
"""Media types of the page's files; inline scripts are forbidden."""


def _make_route(name: str) -> HTTPRouteHandler:
    @get(f"/docs/{name}", sync_to_thread=True)
    def answer_file() -> Response[bytes]:
        """Return a file of the API reference."""
        content = _OWN.get(name) or _read_asset(name)
        return Response(content, media_type=_FILES[name], headers=_DAY)

    return answer_file


routes = [answer_docs, answer_openapi, *map(_make_route, _FILES)]
