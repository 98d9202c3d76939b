"""Items of a page with all that belongs to them: their collections, and who sells them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tonlake.api.text.address import Address
from tonlake.api.v3.page.book import pair_addresses
from tonlake.api.v3.page.history import name_addresses
from tonlake.api.v3.resource.nft import NFTCollection, NFTItem, render_collection, render_item

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tonlake.api.request.call import Call

Row = dict[str, Any]
Account = tuple[int, bytes]


def complete_items(call: Call, rows: Sequence[Row], mc_seqno: int | None) -> dict[Account, NFTItem]:
    """Return items by account, in their order, each with its collection and its sale."""
    collections = _read_collections(call, rows, mc_seqno)
    owners = [Address(row["owner_workchain"], row["owner"]) for row in rows if row["owner"]]
    sales = {
        (sale["workchain"], sale["account"]): sale
        for sale in _read_sales(call, owners, mc_seqno)
        if sale["kind"] != "telemint"
    }
    return {
        (row["workchain"], row["account"]): render_item(row, collections, sales) for row in rows
    }


def read_items(call: Call, addresses: Sequence[Address], mc_seqno: int | None) -> list[Row]:
    """Return the rows of the items among some accounts, now or after a masterchain block."""
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
    return {(row["workchain"], row["account"]): render_collection(row) for row in found}


def _read_sales(call: Call, addresses: Sequence[Address], mc_seqno: int | None) -> list[Row]:
    if not addresses:
        return []
    return call.reader.rows(
        "v3/nft_sales",
        **pair_addresses(addresses),
        mc_seqno=mc_seqno,
        limit=len(addresses),
    )
