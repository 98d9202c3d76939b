"""Renders jettons, NFTs and collections, lists the top ones, and serves their pictures.

Pictures are fetched if the operator allows it, and cached. A browser never contacts another host,
and a client cannot choose the URL to fetch: it comes from a token in the lake.
"""

import asyncio
import time
from collections.abc import Callable
from functools import cached_property
from itertools import count
from typing import Any

from litestar import Response
from litestar.handlers import HTTPRouteHandler

from tonlake.api.errors import AnswerNotFound, ServiceBusy
from tonlake.api.explorer.frame import (
    HEADERS,
    ListPage,
    PageRequest,
    Shown,
    ask_or_say,
    choose,
    list_page,
    name_path,
    read_address,
    read_offset,
)
from tonlake.api.http.admission import in_queue
from tonlake.api.request.call import ApiRequest, open_call, parse_if_address, read_arguments
from tonlake.api.text.encoding import Address
from tonlake.api.v3.page.book import describe_addresses
from tonlake.api.v3.page.history import check_derived
from tonlake.api.v3.page.metadata import NOT_FETCHED, describe_tokens, read_fetched, read_metadata
from tonlake.api.v3.page.operation import check_no_contract_missing
from tonlake.api.v3.route import token as token_routes
from tonlake.ingest.errors import FetchError
from tonlake.ingest.metadata.download import Downloader, Picture
from tonlake.ingest.settings import MetadataSettings
from tonlake.lake.cache import Cache
from tonlake.lake.schema import JETTON_MASTERS, JETTON_WALLETS, NFT_COLLECTIONS, NFT_ITEMS

CACHE_BYTES = 1 << 26
"""Size of the cache in memory; the least recently used pictures are evicted."""

ENTRY_BYTES = 1 << 10
"""Added to the size of each entry, so that failures do not fill the memory either."""

RETRY_S = 600
"""Seconds before a failed fetch is retried."""

FETCHES = 4
"""Concurrent fetches; further ones wait."""

MAX_WAITING = 64
"""Requests that may wait for pictures; more are refused, so that no slow host blocks the server."""

PICTURE_HEADERS = {
    **HEADERS,
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "public, max-age=86400",
    "Vary": "Accept-Encoding",
}


class Pictures:
    """A cache of pictures by URI, for one event loop."""

    def __init__(
        self, settings: MetadataSettings, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Take the fetch settings and a clock in seconds."""
        self._settings, self._clock = settings, clock
        self._kept: Cache[str, tuple[float, Picture | None]] = Cache(CACHE_BYTES, _weigh)
        self._fetched: dict[str, asyncio.Task[Picture | None]] = {}
        self._waiting = 0
        self._turns = asyncio.Semaphore(FETCHES)

    async def find(self, uri: str) -> Picture | None:
        """Return the picture at ``uri``; None if it could not, or may not, be fetched.

        Concurrent requests share one fetch. A failed fetch is retried after ``RETRY_S``. Raises
        ServiceBusy if too many requests wait for pictures.
        """
        if not self._settings.enabled:
            return None
        kept = self._kept.get(uri)
        if kept is not None and (kept[1] is not None or self._clock() < kept[0] + RETRY_S):
            return kept[1]
        if self._waiting >= MAX_WAITING:
            raise ServiceBusy("too many requests wait for pictures")
        task = self._fetched.get(uri)
        if task is None:
            task = self._fetched[uri] = asyncio.create_task(self._fetch(uri))
            task.add_done_callback(lambda _: self._fetched.pop(uri))
        self._waiting += 1
        try:
            # Other requests wait for the task, too, if the first one is cancelled.
            return await asyncio.shield(task)
        finally:
            self._waiting -= 1

    async def _fetch(self, uri: str) -> Picture | None:
        async with self._turns:
            try:
                found = await asyncio.to_thread(self._downloader.fetch_picture, uri)
            except FetchError:
                found = None
        self._kept.put(uri, (self._clock(), found))
        return found

    @cached_property
    def _downloader(self) -> Downloader:
        return Downloader(self._settings)


def _weigh(uri: str, kept: tuple[float, Picture | None]) -> int:
    _at_s, picture = kept
    return ENTRY_BYTES + len(uri) + (len(picture.body) if picture else 0)


def find_picture(request: ApiRequest) -> str:
    """Return the picture URI of a token in the lake; raise AnswerNotFound without one."""
    call = open_call(request, read_arguments(request))
    account = parse_if_address(request.path_params["address"])
    if account is None:
        raise AnswerNotFound("not an address")
    for known in describe_tokens(call, [account]).values():
        for info in known.token_info:
            if isinstance(info.image, str) and info.image:
                return info.image
    raise AnswerNotFound("this account has no picture")


def make_route(pictures: Pictures) -> HTTPRouteHandler:
    """Return the route that serves pictures by token address."""
    look_up = in_queue(find_picture)

    async def show_picture(request: ApiRequest) -> Response[bytes]:
        """Return the picture of a token."""
        found = await pictures.find(await look_up(request=request))
        if found is None:
            raise AnswerNotFound("no picture")
        return Response(found.body, media_type=found.kind, headers=PICTURE_HEADERS)

    return HTTPRouteHandler("/picture/{address:str}", http_method="GET")(show_picture)


ROWS = 25
MAX_CONTENT_CHARACTERS = 2000
"""Maximum length of one field of a token's content; longer ones are cut."""


def show_jetton(question: PageRequest) -> Shown:
    """Show a jetton: its supply, holders, transfers and burns; AnswerNotFound if it is none."""
    address = read_address(question)
    query = token_routes.MastersQuery(address=(address,), limit=1, offset=0)
    masters = question.ask(token_routes.get_masters, query).jetton_masters
    if not masters:
        check_no_contract_missing(question.call.reader)
        raise AnswerNotFound(f"{question.names.friendly(str(address))} is not a jetton master")
    shown, master = choose(question, "show", LISTS), masters[0]
    values = {
        "master": master,
        **_describe_content(question, master.jetton_content),
        "show": shown,
        "lists": {name: title for name, (title, _) in LISTS.items()},
        "listed": _list_page(question, "jetton", address, LISTS[shown][1]),
        "supply": int(master.total_supply),
    }
    return Shown("jetton.html", f"Jetton {question.names.label(master.address)}", values)


def _list_holders(question: PageRequest, address: Address) -> list[Any]:
    query = token_routes.WalletsQuery(
        jetton_address=(address,), exclude_zero_balance=True, sort="desc", **_window(question)
    )
    return question.ask(token_routes.get_wallets, query).jetton_wallets


def _list_transfers(question: PageRequest, address: Address) -> list[Any]:
    query = token_routes.TransfersQuery(jetton_master=address, **_window(question))
    return question.ask(token_routes.get_transfers, query).jetton_transfers


def _list_burns(question: PageRequest, address: Address) -> list[Any]:
    query = token_routes.MovesQuery(jetton_master=address, **_window(question))
    return question.ask(token_routes.get_burns, query).jetton_burns


LISTS: dict[str, tuple[str, Callable[[PageRequest, Address], list[Any]]]] = {
    "holders": ("Holders", _list_holders),
    "transfers": ("Transfers", _list_transfers),
    "burns": ("Burns", _list_burns),
}
"""The tabs of a jetton page: title and the function that returns the rows."""


def show_nft(question: PageRequest) -> Shown:
    """Show an NFT with its transfers, or a collection with items; AnswerNotFound if it is none."""
    address = read_address(question)
    query = token_routes.ItemsQuery(address=(address,), limit=1, offset=0)
    for item in question.ask(token_routes.get_items, query).nft_items:
        listed = _list_page(question, "nft", address, _list_moves)
        values = {"item": item, "listed": listed, **_describe_content(question, item.content)}
        return Shown("nft.html", f"NFT {question.names.label(item.address)}", values)
    by_address = token_routes.CollectionsQuery(collection_address=(address,), limit=1, offset=0)
    for found in question.ask(token_routes.get_collections, by_address).nft_collections:
        values = {"collection": found, "listed": _list_page(question, "nft", address, _list_items)}
        values |= _describe_content(question, found.collection_content)
        title = f"Collection {question.names.label(found.address)}"
        return Shown("collection.html", title, values)
    check_no_contract_missing(question.call.reader)
    raise AnswerNotFound(f"{question.names.friendly(str(address))} is no NFT item or collection")


def _list_moves(question: PageRequest, address: Address) -> list[Any]:
    query = token_routes.ItemTransfersQuery(item_address=(address,), **_window(question))
    return question.ask(token_routes.get_item_transfers, query).nft_transfers


def _list_items(question: PageRequest, address: Address) -> list[Any]:
    query = token_routes.ItemsQuery(collection_address=(address,), **_window(question))
    return question.ask(token_routes.get_items, query).nft_items


def _window(question: PageRequest) -> dict[str, Any]:
    return {"limit": ROWS + 1, "offset": read_offset(question)}


def _list_page(
    question: PageRequest,
    kind: str,
    address: Address,
    list_rows: Callable[[PageRequest, Address], list[Any]],
) -> ListPage | str:
    """Return the list below a token, or why the lake cannot answer."""
    path, shown = name_path(question, kind, str(address)), question.argument("show")
    return ask_or_say(
        lambda: list_page(question, path, list_rows(question, address), ROWS, show=shown)
    )


def _describe_content(question: PageRequest, content: dict[str, object] | None) -> dict[str, Any]:
    """Return the content of a token, and what was fetched from its URI; None if it has no URI."""
    fetched = None
    if content is not None and "uri" in content:
        found = read_fetched(question.call, [content]).get(str(content["uri"]), NOT_FETCHED)
        fetched = found._replace(content=clip_content(dict(found.content)))
    return {"content": None if content is None else clip_content(content), "fetched": fetched}


def clip_content(content: dict[str, object]) -> dict[str, object]:
    """Return the content of a token as text, with long fields cut."""
    return {name: str(value)[:MAX_CONTENT_CHARACTERS] for name, value in content.items()}


RANKED_ROWS = 50
JETTON_SORTS = {"holders": "Holders", "transfers": "Transfers", "volume": "Volume"}
COLLECTION_SORTS = {"owners": "Owners", "items": "Items"} | {
    name: JETTON_SORTS[name] for name in ("transfers", "volume")
}


def show_accounts(question: PageRequest) -> Shown:
    """List the accounts with the highest balances."""
    offset = read_offset(question)
    rows = question.call.reader.rows("v3/accounts_by_balance", limit=RANKED_ROWS + 1, offset=offset)
    if not (rows or offset):
        check_no_contract_missing(question.call.reader)
    return _show(question, "accounts", "Accounts by balance", rows)


def show_jettons(question: PageRequest) -> Shown:
    """List jettons by holders, transfers or volume."""
    check_derived(question.call, JETTON_MASTERS.name, JETTON_WALLETS.name)
    return _rank(question, "jettons", "Jettons", JETTON_SORTS)


def show_collections(question: PageRequest) -> Shown:
    """List NFT collections by owners, items, transfers or volume."""
    check_derived(question.call, NFT_COLLECTIONS.name, NFT_ITEMS.name)
    return _rank(question, "collections", "NFT collections", COLLECTION_SORTS)


def _rank(question: PageRequest, name: str, title: str, sorts: dict[str, str]) -> Shown:
    sort = choose(question, "sort", sorts)
    rows = question.call.reader.rows(
        f"explorer/{name}", sort=sort, limit=RANKED_ROWS + 1, offset=read_offset(question)
    )
    if not rows:
        check_no_contract_missing(question.call.reader)
    return _show(question, name, title, rows, sort=sort, sorts=sorts)


def _show(
    question: PageRequest, name: str, title: str, rows: list[dict[str, Any]], **values: object
) -> Shown:
    """Return a list; its rows become (place from 1, raw address, row)."""
    addresses = [Address(row["workchain"], row["account"]) for row in rows]
    book = describe_addresses(question.call, addresses)
    metadata = read_metadata(question.call, set(addresses))
    question.names.learn({str(address): book[address] for address in addresses}, metadata)
    places = count(read_offset(question) + 1)
    ranked = list(zip(places, map(str, addresses), rows, strict=False))
    listed = list_page(question, f"/{name}", ranked, RANKED_ROWS, sort=values.get("sort"))
    return Shown(f"{name}.html", title, {**values, "listed": listed})
