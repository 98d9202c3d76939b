"""Operations about jettons and NFTs: masters and wallets, collections, items and their sales."""

from collections.abc import Mapping, Sequence
from typing import Annotated

import msgspec
from msgspec import UNSET

from tonlake.api.errors import RequestInvalid
from tonlake.api.request.call import Addresses, Call, Flag, Int32, OneAddress, Query, Text, Texts
from tonlake.api.text.encoding import Address, encode_account
from tonlake.api.v3.layout.build import Payload, decode_content, decode_payload, make_builder
from tonlake.api.v3.layout.field import (
    Bag,
    Base64,
    Column,
    Decimal,
    Kind,
    Omitted,
    RawAddress,
    Read,
    account,
)
from tonlake.api.v3.page.book import pair_addresses
from tonlake.api.v3.page.history import name_addresses, read_contracts, read_moves
from tonlake.api.v3.page.listed import (
    describe,
    find_addresses,
    list_addresses,
    render_moves,
    render_rows,
)
from tonlake.api.v3.page.operation import Page, SortedPage, SpanPage, operation
from tonlake.api.v3.resource.answer import Described
from tonlake.queries.reader import Row

Account = tuple[int, bytes]
CustomPayload = Annotated[Payload, Column("custom_payload"), Read(decode_payload)]
ForwardPayload = Annotated[Payload, Column("forward_payload"), Read(decode_payload)]


class NFTCollection(msgspec.Struct, gc=False):
    """An NFT collection with its TEP-64 content."""

    address: Annotated[RawAddress, account()]
    owner_address: Annotated[RawAddress, account("owner")] | None
    last_transaction_lt: Annotated[Decimal, Column("lt")]
    next_item_index: str
    collection_content: Annotated[dict[str, object], Column("content"), Read(decode_content)] | None
    data_hash: Base64 | None
    code_hash: Base64 | None


class NFTItem(msgspec.Struct, gc=False):
    """An item; ``real_owner`` is the seller while a contract sells it."""

    address: Annotated[RawAddress, account()]
    init: bool
    index: Annotated[str, Column("item_index")]
    collection_address: Annotated[RawAddress, account("collection")] | None
    owner_address: Annotated[RawAddress, account("owner")] | None
    content: Annotated[dict[str, object], Read(decode_content)] | None
    last_transaction_lt: Annotated[Decimal, Column("lt")]
    code_hash: Base64 | None
    data_hash: Base64 | None
    collection: Annotated[NFTCollection, Kind.EXTRA] | None
    on_sale: Annotated[bool, Kind.EXTRA]
    sale_contract_address: Annotated[str, Kind.EXTRA] | Omitted = UNSET
    auction_contract_address: Annotated[str, Kind.EXTRA] | Omitted = UNSET
    real_owner: Annotated[str, Kind.EXTRA] | Omitted = UNSET


def _read_details(text: str) -> dict[str, object]:
    """Return the details of a sale; fields that its contract has not set are left out."""
    details = msgspec.json.decode(text, type=dict[str, object])
    return {name: value for name, value in details.items() if value is not None}


class NFTSale(msgspec.Struct, gc=False):
    """A contract that sells an item; ``details`` depend on its type."""

    type: Annotated[str, Column("kind")]
    address: Annotated[RawAddress, account()]
    details: Annotated[dict[str, object], Read(_read_details)]
    nft_address: Annotated[RawAddress, account("nft")] | Omitted = UNSET
    nft_owner_address: Annotated[RawAddress, account("nft_owner")] | Omitted = UNSET
    marketplace_address: Annotated[RawAddress, account("marketplace")] | Omitted = UNSET
    created_at: int | Omitted = UNSET
    last_transaction_lt: Annotated[Decimal, Column("lt")] | Omitted = UNSET
    code_hash: Base64 | Omitted = UNSET
    data_hash: Base64 | Omitted = UNSET
    nft_item: Annotated[NFTItem, Kind.EXTRA] | Omitted = UNSET


class NFTTransfer(msgspec.Struct, gc=False, kw_only=True):
    """A transfer, as requested from the NFT item; ``nft_collection`` may be ""."""

    query_id: Decimal
    nft_address: Annotated[RawAddress, account()]
    nft_collection: Annotated[RawAddress, account("collection")] = ""
    transaction_hash: Annotated[Base64, Column("tx_hash")]
    transaction_lt: Annotated[Decimal, Column("lt")]
    transaction_now: Annotated[int, Column("now")]
    transaction_aborted: Annotated[bool, Column("aborted")]
    old_owner: Annotated[RawAddress, account("old_owner")] | None
    new_owner: Annotated[RawAddress, account("new_owner")] | None
    response_destination: Annotated[RawAddress, account("response_destination")] | None
    custom_payload: Bag | None
    decoded_custom_payload: CustomPayload | None
    forward_amount: Decimal | None
    forward_payload: Bag | None
    decoded_forward_payload: ForwardPayload | None
    trace_id: Annotated[str, Kind.EXTRA] | None


def _complete_items(
    call: Call, rows: Sequence[Row], mc_seqno: int | None
) -> dict[Account, NFTItem]:
    """Return items by account, in the order of the rows, each with its collection and sale."""
    collections = _read_collections(call, rows, mc_seqno)
    owners = [Address(row["owner_workchain"], row["owner"]) for row in rows if row["owner"]]
    found = _read_at(call, "nft_sales", owners, mc_seqno)
    sales = {
        (sale["workchain"], sale["account"]): sale for sale in found if sale["kind"] != "telemint"
    }
    return {
        (row["workchain"], row["account"]): _render_item(row, collections, sales) for row in rows
    }


def _read_at(
    call: Call, name: str, addresses: Sequence[Address], mc_seqno: int | None
) -> list[Row]:
    """Return rows of contracts at these addresses, as of now or of a masterchain block."""
    if not addresses:
        return []
    place: Row = {"mc_seqno": mc_seqno, "limit": len(addresses)}
    return call.reader.rows(f"v3/{name}", **pair_addresses(addresses), **place)


def _read_collections(
    call: Call, rows: Sequence[Row], mc_seqno: int | None
) -> dict[Account, NFTCollection]:
    named = {
        Address(row["collection_workchain"], row["collection"]) for row in rows if row["collection"]
    }
    build = make_builder(NFTCollection)
    found = _read_at(call, "nft_collections", sorted(named), mc_seqno)
    return {(row["workchain"], row["account"]): build((row,)) for row in found}


def _render_item(
    row: Row, collections: Mapping[Account, NFTCollection], sales: Mapping[Account, Row]
) -> NFTItem:
    """Return the item of a row of ``nft_items``; a sale is valid if it owns and names the item."""
    collection = collections.get((row["collection_workchain"], row["collection"]))
    item = make_builder(NFTItem)((row,), collection=collection, on_sale=False)
    sale = sales.get((row["owner_workchain"], row["owner"]))
    if sale is None or (sale["nft_workchain"], sale["nft"]) != (row["workchain"], row["account"]):
        item.real_owner = item.owner_address or UNSET
        return item
    item.on_sale = True
    seller = encode_account(sale["nft_owner_workchain"], sale["nft_owner"])
    item.real_owner = seller or item.owner_address or UNSET
    if sale["kind"] == "getgems_auction":
        item.auction_contract_address = item.owner_address or UNSET
    else:
        item.sale_contract_address = item.owner_address or UNSET
    return item


class MastersQuery(Page, frozen=True, kw_only=True):
    """Masters by address and administrator, combined by AND."""

    address: Addresses = ()
    admin_address: Addresses = ()
    mc_seqno: Int32 = None


class WalletsQuery(SortedPage, frozen=True, kw_only=True):
    """Wallets by address, owner or jetton; ``sort`` orders by balance."""

    address: Addresses = ()
    owner_address: Addresses = ()
    jetton_address: Addresses = ()
    exclude_zero_balance: Flag = None
    mc_seqno: Int32 = None


class MovesQuery(SpanPage, frozen=True, kw_only=True):
    """Filters of transfers and burns; ``address`` is an alias of owner_address."""

    owner_address: Addresses = ()
    address: Addresses = ()
    jetton_wallet: Addresses = ()
    jetton_master: OneAddress = None


class TransfersQuery(MovesQuery, frozen=True, kw_only=True):
    """Filters of transfers; ``direction`` is relative to the owners: in, or else out."""

    direction: Text = None


class JettonMaster(msgspec.Struct, gc=False):
    """A jetton master: supply, administrator and TEP-64 content."""

    address: Annotated[RawAddress, account()]
    total_supply: Decimal
    mintable: bool
    admin_address: Annotated[RawAddress, account("admin")] | None
    jetton_content: Annotated[dict[str, object], Column("content"), Read(decode_content)] | None
    jetton_wallet_code_hash: Annotated[Base64, Column("wallet_code_hash")]
    code_hash: Base64 | None
    data_hash: Base64 | None
    last_transaction_lt: Annotated[Decimal, Column("lt")]


class JettonWallet(msgspec.Struct, gc=False):
    """A jetton wallet; the balance is in the smallest unit."""

    address: Annotated[RawAddress, account()]
    balance: Decimal
    owner: Annotated[RawAddress, account("owner")] | None
    jetton: Annotated[RawAddress, account("jetton")]
    last_transaction_lt: Annotated[Decimal, Column("lt")]
    code_hash: Base64 | None
    data_hash: Base64 | None


class JettonTransfer(msgspec.Struct, gc=False):
    """A transfer, as requested from the sender's jetton wallet."""

    query_id: Decimal
    source: Annotated[RawAddress, account("source")] | None
    destination: Annotated[RawAddress, account("destination")] | None
    amount: Decimal
    source_wallet: Annotated[RawAddress, account()]
    jetton_master: Annotated[RawAddress, account("jetton")]
    transaction_hash: Annotated[Base64, Column("tx_hash")]
    transaction_lt: Annotated[Decimal, Column("lt")]
    transaction_now: Annotated[int, Column("now")]
    transaction_aborted: Annotated[bool, Column("aborted")]
    response_destination: Annotated[RawAddress, account("response_destination")] | None
    custom_payload: Bag | None
    decoded_custom_payload: CustomPayload | None
    forward_ton_amount: Decimal | None
    forward_payload: Bag | None
    decoded_forward_payload: ForwardPayload | None
    trace_id: Annotated[str, Kind.EXTRA] | None


class JettonBurn(msgspec.Struct, gc=False):
    """A burn, as requested from the owner's jetton wallet."""

    query_id: Decimal
    owner: Annotated[RawAddress, account("owner")] | None
    jetton_wallet: Annotated[RawAddress, account()]
    jetton_master: Annotated[RawAddress, account("jetton")]
    transaction_hash: Annotated[Base64, Column("tx_hash")]
    transaction_lt: Annotated[Decimal, Column("lt")]
    transaction_now: Annotated[int, Column("now")]
    transaction_aborted: Annotated[bool, Column("aborted")]
    amount: Decimal
    response_destination: Annotated[RawAddress, account("response_destination")] | None
    custom_payload: Bag | None
    decoded_custom_payload: CustomPayload | None
    trace_id: Annotated[str, Kind.EXTRA] | None


class JettonMasters(Described):
    """A page of jetton masters."""

    jetton_masters: list[JettonMaster]


class JettonWallets(Described):
    """A page of jetton wallets."""

    jetton_wallets: list[JettonWallet]


class JettonTransfers(Described):
    """A page of transfers of jettons."""

    jetton_transfers: list[JettonTransfer]


class JettonBurns(Described):
    """A page of burns of jettons."""

    jetton_burns: list[JettonBurn]


def get_masters(call: Call, query: MastersQuery) -> JettonMasters:
    """List jetton masters, in order of first appearance."""
    rows = read_contracts(
        call,
        "jetton_masters",
        query.address,
        **name_addresses("admin", query.admin_address),
        **query.filters(),
    )
    shown = render_rows(JettonMaster, rows)
    return JettonMasters(shown, **describe(call, list_addresses(JettonMaster, rows)))


def get_wallets(call: Call, query: WalletsQuery) -> JettonWallets:
    """List jetton wallets."""
    if len(query.jetton_address) > 1 and len(query.owner_address) != 1:
        raise RequestInvalid("exact one owner_address required for multiple jetton_address")
    rows = read_contracts(
        call,
        "jetton_wallets",
        query.address,
        **name_addresses("owner", query.owner_address),
        **name_addresses("jetton", query.jetton_address),
        exclude_zero=bool(query.exclude_zero_balance),
        by_account=bool(query.address),
        by_owner=bool(query.owner_address) and not query.address,
        by_balance=query.sort is not None and not query.address,
        **query.filters(),
    )
    shown = render_rows(JettonWallet, rows)
    return JettonWallets(shown, **describe(call, list_addresses(JettonWallet, rows)))


def get_transfers(call: Call, query: TransfersQuery) -> JettonTransfers:
    """List jetton transfers, newest first, without aborted ones."""
    rows = read_moves(
        call,
        "jetton_transfers",
        query,
        **_filter_moves(query),
        incoming=query.direction in (None, "in"),
        outgoing=query.direction != "in",
    )
    moves = render_moves(call, JettonTransfer, rows)
    return JettonTransfers(moves, **describe(call, list_addresses(JettonTransfer, rows)))


def get_burns(call: Call, query: MovesQuery) -> JettonBurns:
    """List jetton burns, newest first, including aborted ones."""
    rows = read_moves(call, "jetton_burns", query, **_filter_moves(query))
    moves = render_moves(call, JettonBurn, rows)
    return JettonBurns(moves, **describe(call, list_addresses(JettonBurn, rows)))


def _filter_moves(query: MovesQuery) -> dict[str, object]:
    master = () if query.jetton_master is None else (query.jetton_master,)
    return {
        **pair_addresses(query.jetton_wallet),
        **name_addresses("jetton", master),
        **name_addresses("owner", (*query.owner_address, *query.address)),
    }


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


class ItemTransfersQuery(SpanPage, frozen=True, kw_only=True):
    """Transfers of items; ``direction`` is relative to the owners: in, or else out."""

    owner_address: Addresses = ()
    address: Addresses = ()
    item_address: Addresses = ()
    collection_address: OneAddress = None
    direction: Text = None


class SalesQuery(Query, frozen=True, kw_only=True):
    """Sale contracts."""

    mandatory = ("address",)

    address: Addresses = ()
    mc_seqno: Int32 = None


class NFTCollections(Described):
    """A page of collections."""

    nft_collections: list[NFTCollection]


class NFTItems(Described):
    """A page of items."""

    nft_items: list[NFTItem]


class NFTTransfers(Described):
    """A page of transfers of items."""

    nft_transfers: list[NFTTransfer]


class NFTSales(Described):
    """The requested sale contracts, unknown ones omitted."""

    nft_sales: list[NFTSale]


def get_collections(call: Call, query: CollectionsQuery) -> NFTCollections:
    """List NFT collections, in order of first appearance."""
    rows = read_contracts(
        call,
        "nft_collections",
        query.collection_address,
        **name_addresses("owner", query.owner_address),
        **query.filters(),
    )
    shown = render_rows(NFTCollection, rows)
    return NFTCollections(shown, **describe(call, list_addresses(NFTCollection, rows)))


def get_items(call: Call, query: ItemsQuery) -> NFTItems:
    """List NFT items."""
    if not all(index.isascii() and index.isdecimal() for index in query.index):
        raise RequestInvalid("index should contain digits only")
    if query.index and not query.collection_address:
        raise RequestInvalid("index parameter is not allowed without the collection_address")
    if len(query.collection_address) > 1 and len(query.owner_address) != 1:
        raise RequestInvalid("exact one owner_address required for multiple collection_address")
    by_collection = len(query.collection_address) == 1
    by_owner = bool(query.owner_address) and not by_collection
    by_lt = bool(query.sort_by_last_transaction_lt)
    plain = not (query.address or by_owner or by_collection or by_lt)
    rows = read_contracts(
        call,
        "nft_items",
        query.address,
        **name_addresses("collection", query.collection_address),
        **name_addresses("owner", query.owner_address),
        indexes=[index.lstrip("0") or "0" for index in query.index],
        include_on_sale=bool(query.include_on_sale),
        by_lt=by_lt,
        by_owner=by_owner and not by_lt and not query.address,
        by_collection=by_collection and not by_lt and not query.address,
        by_first=plain,
        **query.filters(),
    )
    items = _complete_items(call, rows, query.mc_seqno)
    return NFTItems([*items.values()], **describe(call, list_addresses(NFTItem, rows)))


def get_item_transfers(call: Call, query: ItemTransfersQuery) -> NFTTransfers:
    """List NFT transfers, newest first, including aborted ones."""
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
    return NFTTransfers(moves, **describe(call, list_addresses(NFTTransfer, rows)))


def get_sales(call: Call, query: SalesQuery) -> NFTSales:
    """List NFT sale contracts with their items."""
    if not query.address:
        raise RequestInvalid("at least 1 address required")
    if len(query.address) > MAX_SALES:
        raise RequestInvalid(f"maximum {MAX_SALES} addresses allowed")
    at_block = query.mc_seqno
    rows = read_contracts(call, "nft_sales", query.address, mc_seqno=at_block, limit=MAX_SALES)
    sold = {Address(row["nft_workchain"], row["nft"]) for row in rows if row["nft"]}
    items = _complete_items(call, _read_at(call, "nft_items", sorted(sold), at_block), at_block)
    build = make_builder(NFTSale)
    named = ((row, (row["nft_workchain"], row["nft"])) for row in rows)
    shown = [build((row,), nft_item=items.get(name, UNSET)) for row, name in named]
    return NFTSales(shown, **describe(call, find_addresses(shown)))


routes = [
    operation("/jetton/masters", MastersQuery, get_masters),
    operation("/jetton/wallets", WalletsQuery, get_wallets),
    operation("/jetton/transfers", TransfersQuery, get_transfers),
    operation("/jetton/burns", MovesQuery, get_burns),
    operation("/nft/collections", CollectionsQuery, get_collections),
    operation("/nft/items", ItemsQuery, get_items),
    operation("/nft/transfers", ItemTransfersQuery, get_item_transfers),
    operation("/nft/sales", SalesQuery, get_sales),
]
