"""NFTs as version 3 writes them: collections, items, sales, and transfers of items."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET

from api.address import render_raw
from api.encoding import encode_account, encode_bytes, encode_number, encode_optional
from api.v3.layout.field import Omitted
from api.v3.payload import Payload, decode_content, decode_payload, encode_payload

if TYPE_CHECKING:
    from collections.abc import Mapping

Row = dict[str, Any]
Account = tuple[int, bytes]


class NFTCollection(msgspec.Struct, gc=False):
    """A collection, and what it says of itself (TEP-64)."""

    address: str
    owner_address: str | None
    last_transaction_lt: str
    next_item_index: str
    collection_content: dict[str, object] | None
    data_hash: str | None
    code_hash: str | None


class NFTItem(msgspec.Struct, gc=False):
    """An item; ``real_owner`` is the seller while a contract sells it."""

    address: str
    init: bool
    index: str
    collection_address: str | None
    owner_address: str | None
    content: dict[str, object] | None
    last_transaction_lt: str
    code_hash: str | None
    data_hash: str | None
    collection: NFTCollection | None
    on_sale: bool
    sale_contract_address: str | Omitted = UNSET
    auction_contract_address: str | Omitted = UNSET
    real_owner: str | Omitted = UNSET


class NFTSale(msgspec.Struct, gc=False):
    """A contract that sells an item; ``details`` depend on its type."""

    type: str
    address: str
    details: dict[str, object]
    nft_address: str | Omitted = UNSET
    nft_owner_address: str | Omitted = UNSET
    marketplace_address: str | Omitted = UNSET
    created_at: int | Omitted = UNSET
    last_transaction_lt: str | Omitted = UNSET
    code_hash: str | Omitted = UNSET
    data_hash: str | Omitted = UNSET
    nft_item: NFTItem | Omitted = UNSET


class NFTTransfer(msgspec.Struct, gc=False):
    """A transfer, as the item was told to make it; ``nft_collection`` may be ""."""

    query_id: str
    nft_address: str
    nft_collection: str
    transaction_hash: str
    transaction_lt: str
    transaction_now: int
    transaction_aborted: bool
    old_owner: str | None
    new_owner: str | None
    response_destination: str | None
    custom_payload: str | None
    decoded_custom_payload: Payload | None
    forward_amount: str | None
    forward_payload: str | None
    decoded_forward_payload: Payload | None
    trace_id: str | None


def render_collection(row: Row) -> NFTCollection:
    """Return the collection of a row of ``nft_collections``."""
    return NFTCollection(
        address=render_raw(row["workchain"], row["account"]),
        owner_address=encode_account(row["owner_workchain"], row["owner"]),
        last_transaction_lt=str(row["lt"]),
        next_item_index=row["next_item_index"],
        collection_content=decode_content(row["content"]),
        data_hash=encode_optional(row["data_hash"]),
        code_hash=encode_optional(row["code_hash"]),
    )


def render_item(
    row: Row, collections: Mapping[Account, NFTCollection], sales: Mapping[Account, Row]
) -> NFTItem:
    """Return the item of a row of ``nft_items``.

    Args:
        row: The row.
        collections: Collections by workchain and account id, that of the item among them.
        sales: Rows of ``nft_sales`` by the account of the contract; one counts if it owns the item
            and names it.
    """
    item = NFTItem(
        address=render_raw(row["workchain"], row["account"]),
        init=row["init"],
        index=row["item_index"],
        collection_address=encode_account(row["collection_workchain"], row["collection"]),
        owner_address=encode_account(row["owner_workchain"], row["owner"]),
        content=decode_content(row["content"]),
        last_transaction_lt=str(row["lt"]),
        code_hash=encode_optional(row["code_hash"]),
        data_hash=encode_optional(row["data_hash"]),
        collection=collections.get((row["collection_workchain"], row["collection"])),
        on_sale=False,
    )
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


def render_sale(row: Row, items: Mapping[Account, NFTItem]) -> NFTSale:
    """Return the sale of a row of ``nft_sales``; ``items`` by workchain and account id."""
    return NFTSale(
        type=row["kind"],
        address=render_raw(row["workchain"], row["account"]),
        details=_read_details(row["details"]),
        nft_address=encode_account(row["nft_workchain"], row["nft"]) or UNSET,
        nft_owner_address=encode_account(row["nft_owner_workchain"], row["nft_owner"]) or UNSET,
        marketplace_address=(
            encode_account(row["marketplace_workchain"], row["marketplace"]) or UNSET
        ),
        created_at=UNSET if row["created_at"] is None else row["created_at"],
        last_transaction_lt=str(row["lt"]),
        code_hash=encode_optional(row["code_hash"]) or UNSET,
        data_hash=encode_optional(row["data_hash"]) or UNSET,
        nft_item=items.get((row["nft_workchain"], row["nft"]), UNSET),
    )


def _read_details(text: str) -> dict[str, object]:
    """Return the details of a sale; what its contract has not set is left out."""
    details = msgspec.json.decode(text, type=dict[str, object])
    return {name: value for name, value in details.items() if value is not None}


def render_nft_transfer(row: Row, trace_ids: Mapping[bytes, bytes]) -> NFTTransfer:
    """Return the transfer of a row of ``nft_transfers``; trace ids by transaction hash."""
    return NFTTransfer(
        query_id=str(row["query_id"]),
        nft_address=render_raw(row["workchain"], row["account"]),
        nft_collection=encode_account(row["collection_workchain"], row["collection"]) or "",
        transaction_hash=encode_bytes(row["tx_hash"]),
        transaction_lt=str(row["lt"]),
        transaction_now=row["now"],
        transaction_aborted=row["aborted"],
        old_owner=encode_account(row["old_owner_workchain"], row["old_owner"]),
        new_owner=encode_account(row["new_owner_workchain"], row["new_owner"]),
        response_destination=encode_account(
            row["response_destination_workchain"], row["response_destination"]
        ),
        custom_payload=encode_payload(row["custom_payload"]),
        decoded_custom_payload=decode_payload(row["custom_payload"]),
        forward_amount=encode_number(row["forward_amount"]),
        forward_payload=encode_payload(row["forward_payload"]),
        decoded_forward_payload=decode_payload(row["forward_payload"]),
        trace_id=encode_optional(trace_ids.get(row["tx_hash"])),
    )
