"""Renders the pages of jettons, NFT items and NFT collections."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from tonlake.api.errors import AnswerNotFound
from tonlake.api.explorer.frame import (
    Question,
    Redirect,
    Shown,
    ask_or_say,
    link,
    read_address,
    read_offset,
)
from tonlake.api.v3.page.metadata import NOT_FETCHED, Fetched, read_fetched
from tonlake.api.v3.page.operation import check_no_contract_missing
from tonlake.api.v3.route import token as token_routes

if TYPE_CHECKING:
    from collections.abc import Callable

    from tonlake.api.text.encoding import Address
    from tonlake.api.v3.page.nft import NFTCollection, NFTItem

Listed = tuple[list[Any], str, str]
"""Rows, path of the newest rows ("" if shown) and of older ones ("" if none)."""

ROWS = 25
MAX_CONTENT_CHARACTERS = 2000
"""Maximum length of one field of a token's content; longer ones are cut."""


def show_jetton(question: Question) -> Shown:
    """Show a jetton: its supply, holders, transfers and burns.

    Raises:
        AnswerNotFound: the account is not a jetton master.
        NotDerived, NotCovered: the lake cannot know.
    """
    address = read_address(question)
    found = token_routes.get_masters(
        question.call, token_routes.MastersQuery(address=(address,), limit=1, offset=0)
    )
    if not found.jetton_masters:
        check_no_contract_missing(question.call.reader)
        raise AnswerNotFound(f"{question.names.friendly(str(address))} is not a jetton master")
    question.names.learn(found.address_book, found.metadata)
    shown = question.argument("show")
    shown = shown if shown in LISTS else next(iter(LISTS))
    master = found.jetton_masters[0]
    values = {
        "master": master,
        "content": clip_content(master.jetton_content),
        "fetched": find_fetched(question, master.jetton_content),
        "show": shown,
        "lists": {name: title for name, (title, _) in LISTS.items()},
        "listed": ask_or_say(lambda: LISTS[shown][1](question, address)),
        "supply": int(master.total_supply),
    }
    return Shown("jetton.html", f"Jetton {question.names.label(master.address)}", values)


def _list_holders(question: Question, address: Address) -> Listed:
    offset = read_offset(question)
    query = token_routes.WalletsQuery(
        jetton_address=(address,), exclude_zero_balance=True, sort="desc", limit=ROWS, offset=offset
    )
    found = question.ask(token_routes.get_wallets, query)
    return _page(question, "jetton", address, found.jetton_wallets)


def _list_transfers(question: Question, address: Address) -> Listed:
    offset = read_offset(question)
    query = token_routes.TransfersQuery(jetton_master=address, limit=ROWS, offset=offset)
    found = question.ask(token_routes.get_transfers, query)
    return _page(question, "jetton", address, found.jetton_transfers)


def _list_burns(question: Question, address: Address) -> Listed:
    offset = read_offset(question)
    query = token_routes.MovesQuery(jetton_master=address, limit=ROWS, offset=offset)
    found = question.ask(token_routes.get_burns, query)
    return _page(question, "jetton", address, found.jetton_burns)


LISTS: dict[str, tuple[str, Callable[[Question, Address], Listed]]] = {
    "holders": ("Holders", _list_holders),
    "transfers": ("Transfers", _list_transfers),
    "burns": ("Burns", _list_burns),
}
"""The tabs of a jetton page: title and the function that returns the rows."""


def show_nft(question: Question) -> Shown | Redirect:
    """Show an NFT with its transfers, or a collection with its items.

    Raises:
        AnswerNotFound: the account is neither.
        NotDerived, NotCovered: the lake cannot know.
    """
    address = read_address(question)
    query = token_routes.ItemsQuery(address=(address,), limit=1, offset=0)
    items = question.ask(token_routes.get_items, query)
    if items.nft_items:
        return _show_item(question, address, items.nft_items[0])
    by_address = token_routes.CollectionsQuery(collection_address=(address,), limit=1, offset=0)
    found = question.ask(token_routes.get_collections, by_address)
    if found.nft_collections:
        return _show_collection(question, address, found.nft_collections[0])
    check_no_contract_missing(question.call.reader)
    raise AnswerNotFound(
        f"{question.names.friendly(str(address))} is not an NFT item or collection"
    )


def _show_item(question: Question, address: Address, item: NFTItem) -> Shown:
    values = {
        "item": item,
        "content": clip_content(item.content),
        "fetched": find_fetched(question, item.content),
        "listed": ask_or_say(lambda: _list_moves(question, address)),
    }
    return Shown("nft.html", f"NFT {question.names.label(item.address)}", values)


def _show_collection(question: Question, address: Address, collection: NFTCollection) -> Shown:
    values = {
        "collection": collection,
        "content": clip_content(collection.collection_content),
        "fetched": find_fetched(question, collection.collection_content),
        "listed": ask_or_say(lambda: _list_items(question, address)),
    }
    title = f"Collection {question.names.label(collection.address)}"
    return Shown("collection.html", title, values)


def _list_moves(question: Question, address: Address) -> Listed:
    offset = read_offset(question)
    query = token_routes.ItemTransfersQuery(item_address=(address,), limit=ROWS, offset=offset)
    found = question.ask(token_routes.get_item_transfers, query)
    return _page(question, "nft", address, found.nft_transfers)


def _list_items(question: Question, address: Address) -> Listed:
    offset = read_offset(question)
    query = token_routes.ItemsQuery(collection_address=(address,), limit=ROWS, offset=offset)
    found = question.ask(token_routes.get_items, query)
    return _page(question, "nft", address, found.nft_items)


def _page(question: Question, kind: str, address: Address, rows: list[Any]) -> Listed:
    offset, show = read_offset(question), question.argument("show")
    path = f"/{kind}/{quote(question.names.friendly(str(address)))}"
    older = link(path, show=show, offset=offset + ROWS) if len(rows) == ROWS else ""
    return rows, link(path, show=show) if offset else "", older


def find_fetched(question: Question, content: dict[str, object] | None) -> Fetched | None:
    """Return the off-chain content fetched from a token's URI; None if it has no URI."""
    if content is None or "uri" not in content:
        return None
    found = read_fetched(question.call, [content]).get(str(content["uri"]), NOT_FETCHED)
    return found._replace(content=clip_content(dict(found.content)) or {})


def clip_content(content: dict[str, object] | None) -> dict[str, str] | None:
    """Return the content of a token as text, with long fields cut."""
    if content is None:
        return None
    return {name: str(value)[:MAX_CONTENT_CHARACTERS] for name, value in content.items()}
