"""Auctions of NFTs: bids, refunds of those who were outbid, ends and cancellations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tonlake.ingest.derive.action.block import TRANSFER as TON_TRANSFER
from tonlake.ingest.derive.action.pattern import Pattern, built, call, one_of
from tonlake.ingest.derive.action.protocol.trade import (
    CANCEL_AUCTION,
    CLOSE_AUCTION,
    FINISH_AUCTION,
    GETGEMS,
    OUTBID,
    closes_auction,
    comment_of,
    find_item,
    is_domain,
    is_telegram_item,
)
from tonlake.ingest.derive.action.rule import Draft, Rule

if TYPE_CHECKING:
    from tonlake.ingest.derive.action.block import Block, Columns
    from tonlake.ingest.derive.action.interface import Interfaces, NftItem
    from tonlake.ingest.derive.action.pattern import Match

START_TELEGRAM, CANCEL_TELEGRAM = 0x487A8E81, 0x371638AE
TELEGRAM_OK = 0xA37A0983
_OUTBID_TEXT = "outbid"


def _make_bid(match: Match, interfaces: Interfaces) -> Draft | None:
    """A bid: coins to an auction, or to an item that is its own auction."""
    block = match.block
    address = block.message.destination
    if block.deployments or closes_auction(block):
        return None
    auction = interfaces.nft_auction(address)
    item = find_item(interfaces, address if auction is None else auction.nft)
    is_open_domain = is_domain(interfaces, item) and _is_on_auction(block, item)
    if auction is None and not is_telegram_item(item) and not is_open_domain:
        return None
    columns = {
        "source": block.message.source,
        "destination": address,
        "asset": item.collection,
        "asset_secondary": item.address or None,
        "value": block.message.value,
        "nft_transfer_data": {"nft_item_index": item.item_index},
    }
    return Draft("auction_bid", columns, failed=block.failed)


def _is_on_auction(block: Block, item: NftItem) -> bool:
    """Whether coins for a domain were a bid: it has no owner yet, or somebody was outbid."""
    return item.owner is None or any(after.opcode == OUTBID for after in block.next)


def _make_outbid(match: Match, interfaces: Interfaces) -> Draft:
    """The coins that the bidder before got back."""
    refund, bid = match.block, match.block.previous
    if bid is None:
        raise LookupError("a refund without a bid")
    auction = interfaces.nft_auction(refund.columns["source"])
    columns = {
        "source": refund.columns["source"],
        "source_secondary": bid.columns["source"],
        "destination": refund.columns["destination"],
        "asset": bid.columns["asset"],
        "asset_secondary": bid.columns["asset_secondary"],
        "amount": refund.columns["value"],
        "nft_transfer_data": {
            "marketplace": None if auction is None else GETGEMS,
            "marketplace_address": None if auction is None else auction.marketplace,
        },
    }
    return Draft("auction_outbid", columns, failed=refund.failed)


def _is_refund(block: Block) -> bool:
    """Whether a block pays back what an earlier bidder had given."""
    bid = block.previous
    if bid is None or bid.type != "auction_bid":
        return False
    return block.opcode == OUTBID or _OUTBID_TEXT in (comment_of(block) or "")


def _make_finish(match: Match, interfaces: Interfaces) -> Draft:
    """Somebody ends an auction, and the item goes to the last bidder."""
    return _draft_end("nft_finish_auction", match, match["nft_purchase"], interfaces)


def _make_end(match: Match, interfaces: Interfaces) -> Draft | None:
    """Somebody ends an auction: the item goes back to its owner, or to a bidder."""
    transfer = match["nft_transfer"]
    address = match.block.message.destination
    if transfer["seller"] != address:
        return None
    auction = interfaces.nft_auction(address)
    new_owner = transfer.columns["destination"]
    returns = new_owner == (match.block.message.source if auction is None else auction.owner)
    kind = "nft_cancel_auction" if returns else "nft_finish_auction"
    return _draft_end(kind, match, transfer, interfaces)


def _draft_end(kind: str, match: Match, transfer: Block, interfaces: Interfaces) -> Draft:
    block = match.block
    auction = interfaces.nft_auction(block.message.destination)
    data = transfer.columns["nft_transfer_data"]
    owner = None if auction is None else auction.owner
    columns: Columns = {
        "source": owner or data.get("real_prev_owner") or block.message.source,
        "destination": block.message.destination,
        "asset": transfer.columns["asset"],
        "asset_secondary": transfer.columns["asset_secondary"],
        "nft_transfer_data": {
            "marketplace": GETGEMS,
            "marketplace_address": None if auction is None else auction.marketplace,
        },
    }
    return Draft(kind, columns, failed=block.failed)


def _make_telegram_start(match: Match, interfaces: Interfaces) -> Draft:
    """The owner of a Telegram item lets it be auctioned."""
    block = match.block
    item = find_item(interfaces, block.message.destination)
    config = block.message.arguments().skip(64).ref()
    config.address()
    columns: Columns = {
        "source": block.message.source,
        "destination": item.address,
        "asset": item.collection,
        "asset_secondary": item.address,
        "nft_listing_data": {
            "nft_item_index": item.item_index,
            "min_bid": config.coins(),
            "max_bid": config.coins(),
        },
    }
    return Draft("teleitem_start_auction", columns, failed=block.failed)


def _make_telegram_cancel(match: Match, interfaces: Interfaces) -> Draft:
    """The owner of a Telegram item ends its auction, to which nobody has bidden."""
    block = match.block
    item = find_item(interfaces, block.message.destination)
    columns: Columns = {
        "source": block.message.source,
        "destination": item.address,
        "asset": item.collection,
        "asset_secondary": item.address,
    }
    return Draft("teleitem_cancel_auction", columns, failed=block.failed)


def _commented(*comments: str) -> Pattern:
    return built(TON_TRANSFER).where(lambda block: comment_of(block) in comments)


_OK = call(TELEGRAM_OK, name="teleitem_ok").maybe

TELEGRAM_START_RULE = Rule(
    "auction.telegram_start", call(START_TELEGRAM).then(_OK), _make_telegram_start
)
TELEGRAM_CANCEL_RULE = Rule(
    "auction.telegram_cancel", call(CANCEL_TELEGRAM).then(_OK), _make_telegram_cancel
)
BID_RULE = Rule("auction.bid", built(TON_TRANSFER), _make_bid)
OUTBID_RULE = Rule(
    "auction.outbid",
    one_of(built(TON_TRANSFER), call(OUTBID)).where(_is_refund),
    _make_outbid,
)
FINISH_RULE = Rule(
    "auction.finish",
    one_of(_commented("finish", "stop"), call(FINISH_AUCTION, CLOSE_AUCTION)).then(
        built("nft_purchase", name="nft_purchase")
    ),
    _make_finish,
)
END_RULE = Rule(
    "auction.end",
    one_of(
        _commented("cancel", "stop", "finish"), call(CANCEL_AUCTION, CLOSE_AUCTION, FINISH_AUCTION)
    ).then(built("nft_transfer", name="nft_transfer")),
    _make_end,
)
