"""NFTs put on sale or on auction, changes of prices, and sales that are cancelled."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tonlake.ingest.derive.action.account.deployment import SALE_V4_CODE, read_deployment
from tonlake.ingest.derive.action.block import CALL
from tonlake.ingest.derive.action.block import TRANSFER as TON_TRANSFER
from tonlake.ingest.derive.action.interface import exact
from tonlake.ingest.derive.action.pattern import built, call
from tonlake.ingest.derive.action.protocol.trade import GETGEMS, find_item
from tonlake.ingest.derive.action.rule import Draft, Rule

if TYPE_CHECKING:
    from tonlake.ingest.derive.action.block import Block, Columns
    from tonlake.ingest.derive.action.interface import Interfaces
    from tonlake.ingest.derive.action.pattern import Match

UPDATE_SALE = 0x6C6C2080
CANCEL_SALE = 0x00000003
SALE, AUCTION = "NftSale", "NftAuction"
_FEES = ("marketplace_fee", "royalty_amount")
_TERMS = {
    SALE: (("full_price", *_FEES), "marketplace_fee_address", "royalty_address"),
    AUCTION: (
        ("mp_fee_factor", "mp_fee_base", "royalty_fee_base", "max_bid", "min_bid"),
        *("mp_fee_addr", "royalty_fee_addr"),
    ),
}
"""Numbers of a listing, and where the addresses of its fees stand, by interface."""


def _make_listing(match: Match, interfaces: Interfaces) -> Draft | None:
    """An item goes by way of the marketplace to the sale or auction that it deployed."""
    first, deployed = match.block, match["sale_init"].message
    address = match["to_sale"].columns["destination"]
    sale, auction = interfaces.nft_sale(address), interfaces.nft_auction(address)
    seller = sale or auction
    if seller is None or seller.owner != first.columns["source"]:
        return None
    if deployed.init_state is None or deployed.destination != address:
        return None
    item = find_item(interfaces, first.columns["asset_secondary"])
    kind = SALE if sale is not None else AUCTION
    columns = {
        "source": first.columns["source"],
        "source_secondary": first.columns["destination"],
        "destination": address,
        "asset": item.collection,
        "asset_secondary": item.address,
        "nft_transfer_data": {"marketplace": None, "marketplace_address": seller.marketplace},
        "nft_listing_data": {
            "nft_item_index": item.item_index,
            "marketplace": GETGEMS,
            **_read_terms(kind, address, deployed.init_state, interfaces),
        },
    }
    return Draft("nft_put_on_sale" if sale is not None else "nft_put_on_auction", columns)


def _read_terms(kind: str, address: str, init_state: bytes, interfaces: Interfaces) -> Columns:
    """Return price, bids and fees as deployed; as they are known where the code has no reader."""
    deployment = read_deployment(address, init_state)
    facts = interfaces.find(address, kind) or {}
    if deployment is not None:
        facts = deployment.interfaces.get(kind, facts)
    amounts, fee_address, royalty_address = _TERMS[kind]
    terms: Columns = {name: exact(facts.get(name)) for name in amounts}
    if deployment is not None and deployment.code_hash == SALE_V4_CODE:
        terms |= dict.fromkeys(_FEES)
    return terms | {
        "marketplace_fee_address": facts.get(fee_address),
        "royalty_address": facts.get(royalty_address),
    }


def _is_deployment(block: Block) -> bool:
    """Whether a message deploys a contract that an item is sent to next."""
    message = block.message
    return message.init_state is not None and any(
        each.type == "nft_transfer" and each.columns["destination"] == message.destination
        for each in block.siblings
    )


def _is_sent_on(block: Block) -> bool:
    """Whether the item is the one of the transfer before."""
    before = block.previous
    return before is not None and before["asset_secondary"] == block["asset_secondary"]


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
        built(TON_TRANSFER, CALL, name="sale_init").where(_is_deployment),
        built("nft_transfer", name="to_sale").where(_is_sent_on),
    ),
    _make_listing,
)
UPDATE_RULE = Rule("sale.update", call(UPDATE_SALE), _make_update)
CANCEL_RULE = Rule(
    "sale.cancel",
    call(CANCEL_SALE).then(built("nft_transfer", name="nft_transfer").apart),
    _make_cancel,
)
