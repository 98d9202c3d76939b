"""Routes of the explorer and of its static files."""

from collections.abc import Callable
from http import HTTPStatus
from importlib.resources import files
from typing import Any
from urllib.parse import parse_qsl

from litestar import Response, Router, get, post
from litestar.handlers import HTTPRouteHandler

from tonlake.api.explorer import account, block, network, search, token, transaction
from tonlake.api.explorer.frame import HEADERS, THEME_COOKIE, THEMES, Shown, page, render
from tonlake.api.http.representation import tag_body
from tonlake.api.request.call import ApiRequest
from tonlake.ingest.settings import MetadataSettings

YEAR_S = 365 * 86400
RETRY_AFTER_S = "1"
TYPES = {
    "explorer.css": "text/css",
    "explorer.js": "text/javascript",
    "mark.svg": "image/svg+xml",
    "codemirror.js": "text/javascript",
    "docs.css": "text/css",
    "docs.js": "text/javascript",
    "sql.css": "text/css",
    "sql.js": "text/javascript",
}
_FILE_HEADERS = {
    "Cache-Control": "no-cache",
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'",
}


def _make_route(name: str) -> HTTPRouteHandler:
    content = files("tonlake.api.explorer").joinpath("static", name).read_bytes()
    headers = {**_FILE_HEADERS, "ETag": tag_body(content)}

    @get(f"/explorer/{name}", sync_to_thread=False)
    def answer_file() -> Response[bytes]:
        """Return a static file."""
        return Response(content, media_type=TYPES[name], headers=headers)

    return answer_file


@post("/theme", status_code=303)
async def choose_theme(request: ApiRequest) -> Response[bytes]:
    """Store the chosen theme in a cookie and redirect back."""
    form = dict(parse_qsl((await request.body()).decode("latin-1")))
    theme = form.get("theme")
    back = form.get("back", "/")
    is_ours = back.startswith("/") and not back.startswith(("//", "/\\"))
    headers = {**HEADERS, "Location": back if is_ours and back.isprintable() else "/"}
    answer: Response[bytes] = Response(b"", status_code=303, headers=headers)
    if theme in THEMES:
        answer.set_cookie(THEME_COOKIE, theme, max_age=YEAR_S, httponly=True, samesite="lax")
    return answer


def show_error(request: ApiRequest, status: int, text: str) -> Response[Any]:
    """Render an error page."""
    title = "Not found" if status == HTTPStatus.NOT_FOUND else f"Error {status}"
    here = "/" + f"{request.url.path}?{request.url.query}".strip("/?")  # on this host
    again = here if status == HTTPStatus.SERVICE_UNAVAILABLE else ""
    shown = Shown("error.html", title, {"text": text, "again": again}, status)
    notes = request.scope["state"].get("notes", ())
    answer = render(request, shown, {"notes": list(dict.fromkeys(notes))})
    if again:
        answer.headers["Retry-After"] = RETRY_AFTER_S
    return answer


def create_router(
    describe: Callable[[ApiRequest, Exception], tuple[int, str]], metadata: MetadataSettings
) -> Router:
    """Return the router of the explorer; ``describe`` returns status and text of an error."""

    def show(request: ApiRequest, error: Exception) -> Response[Any]:
        return show_error(request, *describe(request, error))

    return Router(
        "/",
        route_handlers=[
            page("/", block.show_start),
            page("/blocks", block.show_blocks),
            page("/blocks/rows", block.show_rows),
            page("/account/{address:str}", account.show_account),
            page("/account/{address:str}/history.csv", account.show_sheet),
            page("/search", search.show_search),
            page("/transaction/{hash:str}", transaction.show_transaction),
            page("/trace/{hash:str}", transaction.show_trace),
            page("/block/{id:str}", block.show_block),
            page("/jetton/{address:str}", token.show_jetton),
            page("/nft/{address:str}", token.show_nft),
            page("/lake", block.show_lake),
            page("/config", network.show_config),
            page("/validators", network.show_validators),
            page("/accounts", token.show_accounts),
            page("/jettons", token.show_jettons),
            page("/collections", token.show_collections),
            choose_theme,
            token.make_route(token.Pictures(metadata)),
            *map(_make_route, TYPES),
        ],
        exception_handlers={Exception: show},
    )
