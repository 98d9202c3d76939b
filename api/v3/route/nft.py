"""Operations about NFTs: collections, items, transfers and sales."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from tonlake.api.errors import RequestInvalid
from tonlake.api.request.params import Addresses, Flag, Int32, OneAddress, Query, Text, Texts
from tonlake.api.text.address import Address
from tonlake.api.v3.page.book import pair_addresses
from tonlake.api.v3.page.history import name_addresses, read_contracts, read_moves
from tonlake.api.v3.page.listed import (
    describe,
    find_addresses,
    list_addresses,
    render_moves,
    render_rows,
)
from tonlake.api.v3.page.nft import (
    NFTCollection,
    NFTItem,
    NFTSale,
    NFTTransfer,
    complete_items,
    read_items,
    render_sale,
)
from tonlake.api.v3.page.operation import Page, SpanPage, operation
from tonlake.api.v3.resource.answer import AddressBook, Metadata

if TYPE_CHECKING:
    from tonlake.api.request.call import Call

Row = dict[str, Any]
MAX_SALES = 1000
"""Limit of sale contracts in one request, as in TON Center."""


class CollectionsQuery(Page, frozen=True, kw_only=True):
    """Collections by address and owner, combined by AND."""

    collection_address: Addresses = ()
    owner_address: Addresses = ()
    mc_seqno: Int32 = None


class ItemsQuery(Page, frozen=True, kw_only=True):
    """Items by address, owner, or collection and index, combined by AND."""

    address: Addresses = ()
    owner_address: Addresses = ()
    collection_address: Addresses = ()
    index: Texts = ()
    include_on_sale: Flag = None
    sort_by_last_transaction_lt: Flag = None
    mc_seqno: Int32 = None


class TransfersQuery(SpanPage, frozen=True, kw_only=True):
    """Transfers of items; ``direction`` is relative to the owners: in, or else out."""

    owner_address: Addresses = ()
    address: Addresses = ()
    item_address: Addresses = ()
    collection_address: OneAddress = None
    direction: Text = None


class SalesQuery(Query, frozen=True, kw_only=True):
    """Sale contracts."""

    address: Addresses = ()
    mc_seqno: Int32 = None


class NFTCollections(msgspec.Struct):
    """A page of collections."""

    nft_collections: list[NFTCollection]
    address_book: AddressBook
    metadata: Metadata


class NFTItems(msgspec.Struct):
    """A page of items."""

    nft_items: list[NFTItem]
    address_book: AddressBook
    metadata: Metadata


class NFTTransfers(msgspec.Struct):
    """A page of transfers of items."""

    nft_transfers: list[NFTTransfer]
    address_book: AddressBook
    metadata: Metadata


class NFTSales(msgspec.Struct):
    """The requested sale contracts, unknown ones omitted."""

    nft_sales: list[NFTSale]
    address_book: AddressBook
    metadata: Metadata


def get_collections(call: Call, query: CollectionsQuery) -> NFTCollections:
    """List NFT collections, in order of first appearance.

    Raises:
        NotDerived, NotCovered: the lake may lack the requested rows.
    """
    rows = read_contracts(
        call,
        "nft_collections",
        query.collection_address,
        mc_seqno=query.mc_seqno,
        **name_addresses("owner", query.owner_address),
        limit=query.limit,
        offset=query.offset,
    )
    shown = render_rows(NFTCollection, rows)
    return NFTCollections(shown, *describe(call, list_addresses(NFTCollection, rows)))


def get_items(call: Call, query: ItemsQuery) -> NFTItems:
    """List NFT items.

    Raises:
        RequestInvalid: an index without its collection, or several collections without one owner.
        NotDerived, NotCovered: the lake may lack the requested rows.
    """
    _check_items(query)
    by_collection = len(query.collection_address) == 1
    by_owner = bool(query.owner_address) and not by_collection
    by_lt = bool(query.sort_by_last_transaction_lt)
    plain = not (query.address or by_owner or by_collection or by_lt)
    rows = read_contracts(
        call,
        "nft_items",
        query.address,
        mc_seqno=query.mc_seqno,
        **name_addresses("collection", query.collection_address),
        **name_addresses("owner", query.owner_address),
        indexes=[str(int(index)) for index in query.index],
        include_on_sale=bool(query.include_on_sale),
        by_lt=by_lt,
        by_owner=by_owner and not by_lt and not query.address,
        by_collection=by_collection and not by_lt and not query.address,
        by_first=plain,
        limit=query.limit,
        offset=query.offset,
    )
    items = complete_items(call, rows, query.mc_seqno)
    return NFTItems([*items.values()], *describe(call, list_addresses(NFTItem, rows)))


def get_transfers(call: Call, query: TransfersQuery) -> NFTTransfers:
    """List NFT transfers, newest first, including aborted ones.

    Raises:
        NotDerived, NotCovered: the lake may lack the requested rows.
    """
    collection = () if query.collection_address is None else (query.collection_address,)
    rows = read_moves(
        call,
        "nft_transfers",
        query,
        **pair_addresses(query.item_address),
        **name_addresses("collection", collection),
        **name_addresses("owner", (*query.owner_address, *query.address)),
        incoming=query.direction in (None, "in"),
        outgoing=query.direction != "in",
    )
    moves = render_moves(call, NFTTransfer, rows)
    return NFTTransfers(moves, *describe(call, list_addresses(NFTTransfer, rows)))


def get_sales(call: Call, query: SalesQuery) -> NFTSales:
    """List NFT sale contracts with their items.

    Raises:
        RequestInvalid: no address, or too many.
        NotDerived, NotCovered: the lake may lack the requested rows.
    """
    if not query.address:
        raise RequestInvalid("at least 1 address required")
    if len(query.address) > MAX_SALES:
        raise RequestInvalid(f"maximum {MAX_SALES} addresses allowed")
    at_block = query.mc_seqno
    rows = read_contracts(call, "nft_sales", query.address, mc_seqno=at_block, limit=MAX_SALES)
    sold = {Address(row["nft_workchain"], row["nft"]) for row in rows if row["nft"]}
    items = complete_items(call, read_items(call, sorted(sold), at_block), at_block)
    shown = [render_sale(row, items) for row in rows]
    return NFTSales(shown, *describe(call, find_addresses(shown)))


def _check_items(query: ItemsQuery) -> None:
    if not all(index.isascii() and index.isdecimal() for index in query.index):
        raise RequestInvalid("index should contain digits only")
    if query.index and not query.collection_address:
        raise RequestInvalid("index parameter is not allowed without the collection_address")
    if len(query.collection_address) > 1 and len(query.owner_address) != 1:
        raise RequestInvalid("exact one owner_address required for multiple collection_address")


routes = [
    operation("/nft/collections", CollectionsQuery, get_collections),
    operation("/nft/items", ItemsQuery, get_items),
    operation("/nft/transfers", TransfersQuery, get_transfers),
    operation("/nft/sales", SalesQuery, get_sales),
]
