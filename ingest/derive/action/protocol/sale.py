"""NFTs put on sale or on auction, changes of prices, and sales that are cancelled."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tonlake.ingest.derive.action.block import CALL
from tonlake.ingest.derive.action.block import TRANSFER as TON_TRANSFER
from tonlake.ingest.derive.action.interface import exact
from tonlake.ingest.derive.action.pattern import built, call
from tonlake.ingest.derive.action.protocol.trade import GETGEMS, find_item
from tonlake.ingest.derive.action.rule import Draft, Rule

if TYPE_CHECKING:
    from tonlake.ingest.derive.action.block import Columns
    from tonlake.ingest.derive.action.interface import Facts, Interfaces
    from tonlake.ingest.derive.action.pattern import Match

UPDATE_SALE = 0x6C6C2080
CANCEL_SALE = 0x00000003
_SALE_FIELDS = ("full_price", "marketplace_fee", "royalty_amount")
_AUCTION_FIELDS = ("mp_fee_factor", "mp_fee_base", "royalty_fee_base", "max_bid", "min_bid")


def _make_listing(match: Match, interfaces: Interfaces) -> Draft | None:
    """An item goes by way of the marketplace to the sale or auction that it deployed."""
    first, second = match.block, match["to_sale"]
    address = second.columns["destination"]
    if first.columns["asset_secondary"] != second.columns["asset_secondary"]:
        return None
    sale, auction = interfaces.find(address, "NftSale"), interfaces.find(address, "NftAuction")
    facts = sale if sale is not None else auction
    if facts is None:
        return None
    item = find_item(interfaces, first.columns["asset_secondary"])
    fields = _SALE_FIELDS if sale is not None else _AUCTION_FIELDS
    listing: Columns = {name: exact(facts.get(name)) for name in fields}
    listing |= {
        "nft_item_index": item.item_index,
        "marketplace": GETGEMS,
        "marketplace_fee_address": _find(facts, "marketplace_fee_address", "mp_fee_addr"),
        "royalty_address": _find(facts, "royalty_address", "royalty_fee_addr"),
    }
    columns = {
        "source": first.columns["source"],
        "source_secondary": first.columns["destination"],
        "destination": address,
        "asset": item.collection,
        "asset_secondary": item.address,
        "nft_listing_data": listing,
    }
    kind = "nft_put_on_sale" if sale is not None else "nft_put_on_auction"
    return Draft(kind, columns)


def _find(facts: Facts, *names: str) -> object:
    """Return the first of several fields that is there."""
    return next((facts[name] for name in names if facts.get(name) is not None), None)


def _make_update(match: Match, interfaces: Interfaces) -> Draft | None:
    """The owner changes the price of a sale."""
    block = match.block
    sale = interfaces.nft_sale(block.message.destination)
    if sale is None:
        return None
    body = block.message.arguments().skip(64)
    columns = {
        "source": block.message.source,
        "destination": block.message.destination,
        "asset_secondary": sale.nft,
        "nft_transfer_data": {"marketplace": None, "marketplace_address": sale.marketplace},
        "nft_listing_data": {
            "full_price": body.coins(),
            "marketplace_fee": body.coins(),
            "royalty_amount": body.coins(),
        },
    }
    extra = [sale.nft] if sale.nft is not None else []
    failed = block.transaction.aborted
    return Draft("nft_update_sale", columns, failed=failed, extra_accounts=extra)


def _make_cancel(match: Match, interfaces: Interfaces) -> Draft | None:
    """The owner takes an item back from its sale."""
    block, transfer = match.block, match["nft_transfer"]
    address = block.message.destination
    sale = interfaces.nft_sale(address)
    item = transfer.columns["asset_secondary"]
    if sale is None or sale.nft != item:
        return None
    columns = {
        "source": transfer.columns["destination"],
        "destination": address,
        "asset": transfer.columns["asset"],
        "asset_secondary": item,
        "nft_transfer_data": {"marketplace": None, "marketplace_address": sale.marketplace},
    }
    return Draft("nft_cancel_sale", columns, extra_accounts=[item])


LISTING_RULE = Rule(
    "sale.listing",
    built("nft_transfer").then(
        built(TON_TRANSFER, CALL, name="sale_init"), built("nft_transfer", name="to_sale")
    ),
    _make_listing,
)
UPDATE_RULE = Rule("sale.update", call(UPDATE_SALE), _make_update)
CANCEL_RULE = Rule(
    "sale.cancel",
    call(CANCEL_SALE).then(built("nft_transfer", name="nft_transfer").apart),
    _make_cancel,
)
