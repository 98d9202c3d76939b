"""The routes of the explorer, its search, and the files that pages load.

The search leads from an address, hash, block, seqno or domain to its page.
"""

from __future__ import annotations

import re
from http import HTTPStatus
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote

from litestar import Response, Router, get, post

from tonlake.api.chain.header import find_trace_ids
from tonlake.api.errors import AnswerNotFound, LakeUnavailable
from tonlake.api.explorer import account, block, token, transaction
from tonlake.api.explorer.frame import (
    HEADERS,
    THEME_COOKIE,
    THEMES,
    Elsewhere,
    Question,
    Shown,
    ask_or_say,
    page,
    render,
)
from tonlake.api.request.call import ApiRequest  # noqa: TC001 - Litestar reads the annotations
from tonlake.api.request.params import ConversionError, parse_any_address, parse_hash
from tonlake.api.text.address import Address
from tonlake.api.v3.page.book import read_accounts
from tonlake.api.v3.route.block import BlocksQuery, get_blocks
from tonlake.api.v3.route.name import DOMAIN, RecordsQuery, get_records

if TYPE_CHECKING:
    from collections.abc import Callable

    from litestar.handlers import HTTPRouteHandler

    from tonlake.api.request.call import Call

MOST_CHARACTERS = 300
INT32_MAX = (1 << 31) - 1
WORKCHAINS = (0, -1)
"""Where an account id alone is looked for."""

_BLOCK = re.compile(r"\(?(-?[0-9]{1,10})[,:] ?([0-9a-fA-F]{16})[,:] ?([0-9]{1,10})\)?")
_SEQNO = re.compile(r"[0-9]{1,10}")


def show_search(question: Question) -> Shown | Elsewhere:
    """Lead to the page of what was asked for, or show that nothing was found."""
    text = question.argument("q").strip()
    if not text:
        return Elsewhere("/")
    path = find_path(question.call, text[:MOST_CHARACTERS])
    if path is not None:
        return Elsewhere(path)
    values = {"asked": text[:MOST_CHARACTERS], "gaps": question.call.reader.snapshot.ranges}
    return Shown("search.html", "Nothing found", values, status=404)


def find_path(call: Call, text: str) -> str | None:
    """Return the path of the page about a text, or None."""
    try:
        return f"/account/{quote(str(parse_any_address(text)))}"
    except ConversionError:
        pass
    if match := _BLOCK.fullmatch(text):
        return f"/block/{match[1]}:{match[2].lower()}:{int(match[3])}"
    if _SEQNO.fullmatch(text):
        return f"/block/-1:8000000000000000:{int(text)}" if int(text) <= INT32_MAX else None
    try:
        return _find_hash(call, parse_hash(text))
    except ConversionError:
        return _find_domain(call, text.lower()) if DOMAIN.fullmatch(text) else None


def _find_hash(call: Call, digest: bytes) -> str | None:
    """Look among transactions, messages, blocks and account ids, in this order."""
    if call.reader.rows("v3/transaction_keys_by_hash", hashes=[digest]):
        return f"/transaction/{digest.hex()}"
    if find_trace_ids(call.reader, msg_hashes=[digest]):
        return f"/trace/{digest.hex()}"
    for query in (
        BlocksQuery(root_hash=digest, limit=1, offset=0),
        BlocksQuery(file_hash=digest, limit=1, offset=0),
    ):
        if path := _find_block(call, query):
            return path
    known = read_accounts(call, [Address(workchain, digest) for workchain in WORKCHAINS])
    return next((f"/account/{quote(str(address))}" for address in known), None)


def _find_block(call: Call, query: BlocksQuery) -> str | None:
    found = ask_or_say(lambda: get_blocks(call, query).blocks)
    if isinstance(found, str) or not found:
        return None
    block = found[0]
    return f"/block/{block.workchain}:{block.shard.lower()}:{block.seqno}"


def _find_domain(call: Call, domain: str) -> str | None:
    """Lead to the wallet that a domain names, or else to the domain itself, which is an NFT."""
    try:
        found = get_records(call, RecordsQuery(domain=domain, limit=1, offset=0)).records
    except (AnswerNotFound, LakeUnavailable) as error:
        call.warn(str(error))
        return None
    if not found:
        return None
    return f"/account/{quote(found[0].dns_wallet or found[0].nft_item_address)}"


YEAR_S = 365 * 86400
RETRY_AFTER_S = "1"
TYPES = {
    "explorer.css": "text/css; charset=utf-8",
    "explorer.js": "text/javascript; charset=utf-8",
    "mark.svg": "image/svg+xml",
}
_FILE_HEADERS = {
    "Cache-Control": "no-cache",
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'",
}


def _make_route(name: str) -> HTTPRouteHandler:
    content = files("tonlake.api.explorer").joinpath("static", name).read_bytes()

    @get(f"/explorer/{name}", sync_to_thread=False)
    def answer_file() -> Response[bytes]:
        """Return a file that pages load."""
        return Response(content, media_type=TYPES[name], headers=_FILE_HEADERS)

    return answer_file


@post("/theme", status_code=303)
async def choose_theme(request: ApiRequest) -> Response[bytes]:
    """Remember which colours the reader likes, and lead back."""
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
    """Show an error as a page."""
    shown = Shown("error.html", f"Error {status}", {"text": text}, status)
    answer = render(request, shown, {})
    if status == HTTPStatus.SERVICE_UNAVAILABLE:
        answer.headers["Retry-After"] = RETRY_AFTER_S
    return answer


def create_router(describe: Callable[[ApiRequest, Exception], tuple[int, str]]) -> Router:
    """Return the pages; ``describe`` returns status and text of an error."""

    def show(request: ApiRequest, error: Exception) -> Response[Any]:
        return show_error(request, *describe(request, error))

    return Router(
        "/",
        route_handlers=[
            page("/", block.show_start),
            page("/blocks", block.show_blocks),
            page("/blocks/rows", block.show_rows),
            page("/account/{address:str}", account.show_account),
            page("/search", show_search),
            page("/transaction/{hash:str}", transaction.show_transaction),
            page("/trace/{hash:str}", transaction.show_trace),
            page("/block/{id:str}", block.show_block),
            page("/jetton/{address:str}", token.show_jetton),
            page("/nft/{address:str}", token.show_nft),
            page("/lake", block.show_lake),
            choose_theme,
            *map(_make_route, TYPES),
        ],
        exception_handlers={Exception: show},
    )
