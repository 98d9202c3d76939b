"""NFT collections, items with their collection and sale, and sales, in the form of version 3."""

from collections.abc import Mapping, Sequence
from typing import Annotated

import msgspec
from msgspec import UNSET

from tonlake.api.request.call import Call
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
from tonlake.api.v3.page.history import name_addresses
from tonlake.queries.reader import Row

Account = tuple[int, bytes]


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
    decoded_custom_payload: (
        Annotated[Payload, Column("custom_payload"), Read(decode_payload)] | None
    )
    forward_amount: Decimal | None
    forward_payload: Bag | None
    decoded_forward_payload: (
        Annotated[Payload, Column("forward_payload"), Read(decode_payload)] | None
    )
    trace_id: Annotated[str, Kind.EXTRA] | None


def complete_items(call: Call, rows: Sequence[Row], mc_seqno: int | None) -> dict[Account, NFTItem]:
    """Return items by account, in the order of the rows, each with its collection and sale."""
    collections = _read_collections(call, rows, mc_seqno)
    owners = [Address(row["owner_workchain"], row["owner"]) for row in rows if row["owner"]]
    found: list[Row] = []
    if owners:
        place: Row = {"mc_seqno": mc_seqno, "limit": len(owners)}
        found = call.reader.rows("v3/nft_sales", **pair_addresses(owners), **place)
    sales = {
        (sale["workchain"], sale["account"]): sale for sale in found if sale["kind"] != "telemint"
    }
    return {
        (row["workchain"], row["account"]): _render_item(row, collections, sales) for row in rows
    }


def read_items(call: Call, addresses: Sequence[Address], mc_seqno: int | None) -> list[Row]:
    """Return the rows of the items among the accounts, as of now or of a masterchain block."""
    if not addresses:
        return []
    return call.reader.rows(
        "v3/nft_items",
        **pair_addresses(addresses),
        **name_addresses("collection", ()),
        **name_addresses("owner", ()),
        indexes=[],
        mc_seqno=mc_seqno,
        limit=len(addresses),
    )


def _read_collections(
    call: Call, rows: Sequence[Row], mc_seqno: int | None
) -> dict[Account, NFTCollection]:
    named = {
        Address(row["collection_workchain"], row["collection"]) for row in rows if row["collection"]
    }
    if not named:
        return {}
    found = call.reader.rows(
        "v3/nft_collections",
        **pair_addresses(sorted(named)),
        **name_addresses("owner", ()),
        mc_seqno=mc_seqno,
        limit=len(named),
    )
    return {
        (row["workchain"], row["account"]): make_builder(NFTCollection)((row,)) for row in found
    }


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
