"""NFT auctions: bids, refunds to outbid bidders, completion and cancellation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tonlake.ingest.derive.action.block import TRANSFER as TON_TRANSFER
from tonlake.ingest.derive.action.pattern import built, call, comment, one_of
from tonlake.ingest.derive.action.protocol.trade import (
    CANCEL_AUCTION,
    CLOSE_AUCTION,
    FINISH_AUCTION,
    FRAGMENT,
    GETGEMS,
    OUTBID,
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
_OUTBID_TEXT = "Your bid has been outbid by another user"
_CLOSING_COMMENTS = {"finish", "stop", "cancel"}


def _make_bid(match: Match) -> Draft | None:
    """Draft a bid: coins sent to an auction, or to an item that is its own auction."""
    block = match.block
    address = block.message.destination
    if block.deployments or block.comment in _CLOSING_COMMENTS:
        return None
    auction = match.interfaces.nft_auction(address)
    item = find_item(match.interfaces, address if auction is None else auction.nft)
    if auction is None and not _is_own_auction(block, match.interfaces, item):
        return None
    marketplace = FRAGMENT if auction is None else GETGEMS
    columns = {
        "source": block.message.source,
        "destination": address,
        "asset": item.collection,
        "asset_secondary": item.address or None,
        "value": block.message.value,
        "nft_transfer_data": {"nft_item_index": item.item_index, "marketplace": marketplace},
    }
    extra = [item.address] if item.address else []
    return Draft("auction_bid", columns, failed=block.failed, extra_accounts=extra)


def _is_own_auction(block: Block, interfaces: Interfaces, item: NftItem) -> bool:
    """Return whether coins for an item are a bid; for a domain, if an earlier bid was refunded."""
    if is_telegram_item(item):
        return True
    return is_domain(interfaces, item) and any(after.opcode == OUTBID for after in block.next)


def _make_outbid(match: Match) -> Draft | None:
    """Draft an outbid: coins returned to the previous bidder; several refunds are not an outbid."""
    refund, bid = match.block, match["bid"]
    if sum(map(_is_refund, bid.next)) != 1:
        return None
    columns = {
        "source": refund.columns["source"],
        "source_secondary": bid.columns["source"],
        "destination": refund.columns["destination"],
        "asset": bid.columns["asset"],
        "asset_secondary": bid.columns["asset_secondary"],
        "amount": refund.columns["value"],
        "nft_transfer_data": {"marketplace": bid.columns["nft_transfer_data"]["marketplace"]},
        "ton_transfer_data": {"comment": refund.comment},
    }
    return Draft("auction_outbid", columns, extra_accounts=[bid.columns["asset_secondary"] or ""])


def _is_refund(block: Block) -> bool:
    """Return whether a block refunds the bid of an earlier bidder in the same auction."""
    bid = block.previous
    if bid is None or bid.type != "auction_bid":
        return False
    if bid.columns["nft_transfer_data"]["marketplace"] == FRAGMENT:
        return block.opcode == OUTBID
    return _OUTBID_TEXT in (block.comment or "")


def _make_finish(match: Match) -> Draft | None:
    """Draft the end of an auction that transfers the item to the last bidder."""
    return _draft_end("nft_finish_auction", match)


def _make_cancel(match: Match) -> Draft | None:
    """Draft the cancellation of an auction that returns the item."""
    return _draft_end("nft_cancel_auction", match)


def _draft_end(kind: str, match: Match) -> Draft | None:
    block, transfer = match.block, match["transfer"]
    auction = match.interfaces.nft_auction(block.message.destination)
    item = transfer.columns["asset_secondary"]
    if auction is None or auction.nft != item:
        return None
    is_purchase = transfer.type == "nft_purchase"
    columns: Columns = {
        "source": transfer.columns["destination"],
        "destination": block.message.destination,
        "asset": transfer.columns["asset"],
        "asset_secondary": item,
        "nft_transfer_data": {
            "marketplace": GETGEMS,
            "marketplace_address": None if is_purchase else auction.marketplace,
        },
    }
    return Draft(kind, columns, extra_accounts=[item])


def _make_telegram_start(match: Match) -> Draft | None:
    """Draft the start of an auction of a Telegram item by its owner.

    TL-B of the config: beneficiary_address:MsgAddress initial_min_bid:Coins max_bid:Coins.
    """
    block = match.block
    item = find_item(match.interfaces, block.message.destination)
    if not is_telegram_item(item):
        return None
    config = block.message.arguments().skip(64).ref()
    beneficiary = config.address()
    columns: Columns = {
        "source": block.message.source,
        "destination": item.address,
        "asset": item.collection,
        "asset_secondary": item.address,
        "nft_listing_data": {
            "nft_item_index": item.item_index,
            "mp_fee_factor": 0,
            "mp_fee_base": 0,
            "royalty_fee_base": 0,
            "marketplace": FRAGMENT,
            "marketplace_fee_address": beneficiary,
            "min_bid": config.coins(),
            "max_bid": config.coins(),
        },
    }
    return Draft("teleitem_start_auction", columns, failed=block.transaction.aborted)


def _make_telegram_cancel(match: Match) -> Draft | None:
    """Draft the cancellation of a Telegram item's auction by its owner, before any bid."""
    block = match.block
    item = find_item(match.interfaces, block.message.destination)
    if not is_telegram_item(item):
        return None
    columns: Columns = {
        "source": block.message.source,
        "destination": item.address,
        "asset": item.collection,
        "asset_secondary": item.address,
    }
    return Draft("teleitem_cancel_auction", columns, failed=block.transaction.aborted)


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
    one_of(built(TON_TRANSFER), call(OUTBID))
    .where(_is_refund)
    .after(built("auction_bid", name="bid").apart),
    _make_outbid,
)
_ENDED = built("nft_purchase", "nft_transfer", name="transfer").apart
FINISH_RULE = Rule(
    "auction.finish",
    one_of(comment("finish", "stop"), call(FINISH_AUCTION, CLOSE_AUCTION)).then(_ENDED),
    _make_finish,
)
CANCEL_RULE = Rule(
    "auction.cancel",
    one_of(comment("cancel"), call(CANCEL_AUCTION)).then(_ENDED),
    _make_cancel,
)
