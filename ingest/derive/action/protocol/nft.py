"""NFTs (TEP-62): mints, transfers, purchases by way of a sale or an auction, discoveries."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tonlake.ingest.derive.action.block import TRANSFER as TON_TRANSFER
from tonlake.ingest.derive.action.block import Block, Columns
from tonlake.ingest.derive.action.pattern import EXCESS_OPCODE, anything, built, call, one_of
from tonlake.ingest.derive.action.protocol.jetton import show_payload
from tonlake.ingest.derive.action.protocol.trade import (
    GETGEMS,
    closes_auction,
    find_item,
    is_telegram_item,
    split_fill_ups,
)
from tonlake.ingest.derive.action.rule import Draft, Rule

if TYPE_CHECKING:
    from tonlake.ingest.derive.action.body import Body
    from tonlake.ingest.derive.action.interface import Interfaces
    from tonlake.ingest.derive.action.model import Message
    from tonlake.ingest.derive.action.pattern import Match

TRANSFER, OWNERSHIP_ASSIGNED = 0x5FCC3D14, 0x05138D91
GET_STATIC_DATA, REPORT_STATIC_DATA = 0x2FCB26A2, 0x8B771735
FRAGMENT = "fragment"


class TransferBody(NamedTuple):
    """Body of 5fcc3d14. TL-B: transfer of TEP-62."""

    query_id: int
    new_owner: str | None
    response_destination: str | None
    custom_payload: Body | None
    forward_amount: int
    forward_payload: Body


def read_transfer(message: Message) -> TransferBody:
    """Read the body of a transfer."""
    body = message.arguments()
    return TransferBody(
        query_id=body.uint(64),
        new_owner=body.address(),
        response_destination=body.any_address(),
        custom_payload=body.maybe_ref(),
        forward_amount=body.coins(),
        forward_payload=body.either_ref(),
    )


class Seller(NamedTuple):
    """A sale or an auction that held the item: for whom, on which marketplace, at which price."""

    owner: str | None
    marketplace: str | None
    price: int | None


def _make_mint(match: Match, interfaces: Interfaces) -> Draft | None:
    """A mint: a message that deploys an item, and nothing else."""
    block = match.block
    (address,) = block.deployments
    item = interfaces.nft_item(address)
    if item is None:
        return None
    columns: Columns = {
        "source": block.columns["source"],
        "destination": address,
        "asset": item.collection,
        "asset_secondary": address,
        "opcode": block.message.opcode,
        "nft_mint_data": {"nft_item_index": item.item_index},
    }
    return Draft("nft_mint", columns, failed=block.failed)


def _make_transfer(match: Match, interfaces: Interfaces) -> Draft:
    """A transfer; by a sale or an auction to somebody else than its owner it is a purchase."""
    block, assigned = match.block, match.get("assigned")
    body = read_transfer(block.message)
    item = find_item(interfaces, block.message.destination)
    owner = block.message.source
    if assigned is not None:
        owner = assigned.message.arguments().skip(64).address() or owner
    seller = _find_seller(interfaces, block.message.source)
    is_purchase = seller is not None and seller.owner != body.new_owner
    data = _make_data(body) | {"is_purchase": is_purchase, "nft_item_index": item.item_index}
    if seller is not None and is_purchase:
        data |= {
            "price": seller.price,
            "marketplace": GETGEMS,
            "marketplace_address": seller.marketplace,
            "real_prev_owner": seller.owner,
        }
    more = [block.previous] if block.previous and is_purchase else []
    return Draft(
        "nft_transfer",
        {
            "source": owner,
            "destination": body.new_owner,
            "asset": item.collection,
            "asset_secondary": item.address,
            "nft_transfer_data": data,
            "nft_listing_data": {"marketplace_fee_address": None, "royalty_address": None},
        },
        failed=block.failed,
        notes={"seller": block.message.source, "payload": body.forward_payload},
        # The message that paid, or that closed the auction from outside; one from the chain that
        # closed it is for the rules of auctions.
        more=[each for each in more if not closes_auction(each)],
    )


def _make_data(body: TransferBody) -> Columns:
    return {
        "query_id": body.query_id,
        "price": None,
        "forward_amount": body.forward_amount,
        "custom_payload": show_payload(body.custom_payload),
        "forward_payload": show_payload(body.forward_payload),
        "response_destination": body.response_destination,
        "marketplace": None,
        "marketplace_address": None,
        "real_prev_owner": None,
        "payout_amount": None,
        "payout_comment": None,
        "payout_comment_encrypted": None,
        "payout_comment_encoded": None,
        "royalty_amount": None,
    }


def _find_seller(interfaces: Interfaces, account: str | None) -> Seller | None:
    sale = interfaces.nft_sale(account)
    if sale is not None:
        return Seller(sale.owner, sale.marketplace, sale.price)
    auction = interfaces.nft_auction(account)
    if auction is not None:
        return Seller(auction.owner, auction.marketplace, auction.last_bid)
    return None


def _make_telegram_purchase(match: Match, interfaces: Interfaces) -> Draft | None:
    """The end of an auction of a Telegram item, which hands itself over to the last bidder."""
    block = match.block
    item = find_item(interfaces, block.message.source)
    if not is_telegram_item(item):
        return None
    body = block.message.arguments()
    query_id, owner = body.uint(64), body.address()
    payload = body.either_ref()
    cause = block.previous
    fill_ups = split_fill_ups(block.siblings)
    price = cause["value"] if cause is not None and cause.type == TON_TRANSFER else None
    data: Columns = {
        "query_id": query_id,
        "is_purchase": True,
        "price": price,
        "nft_item_index": item.item_index,
        "forward_payload": show_payload(payload),
        "marketplace": FRAGMENT,
        "real_prev_owner": owner,
        "payout_amount": None if fill_ups.payout is None else fill_ups.payout.columns["value"],
        "royalty_amount": None if fill_ups.royalty is None else fill_ups.royalty.columns["value"],
    }
    columns: Columns = {
        "source": owner,
        "destination": block.message.destination,
        "asset": item.collection,
        "asset_secondary": item.address,
        "nft_transfer_data": data,
        "nft_listing_data": {
            "marketplace_fee_address": fill_ups.payout and fill_ups.payout.columns["destination"],
            "royalty_address": fill_ups.royalty and fill_ups.royalty.columns["destination"],
        },
    }
    more = [each for each in (fill_ups.payout, fill_ups.royalty) if each is not None]
    if cause is not None and price is not None:
        more.append(cause)
    return Draft("nft_transfer", columns, failed=block.failed, more=more)


def _make_purchase(match: Match, _interfaces: Interfaces) -> Draft | None:
    """A purchase on Getgems: the transfer, with what the real owner was paid."""
    transfer = match.block
    data = transfer.columns["nft_transfer_data"]
    payout = next(
        (
            block
            for block in (*transfer.following, *transfer.siblings)
            if block.type == TON_TRANSFER
            and block.columns["source"] == transfer["seller"]
            and block.columns["destination"] == data["real_prev_owner"]
        ),
        None,
    )
    if payout is None:
        return None
    paid = payout.columns["ton_transfer_data"]
    data = {name: value for name, value in data.items() if name != "royalty_amount"} | {
        "payout_amount": payout.columns["value"],
        "payout_comment": paid["content"],
        "payout_comment_encrypted": paid["encrypted"],
        "payout_comment_encoded": False,
    }
    columns = {
        name: transfer.columns[name]
        for name in ("source", "destination", "asset", "asset_secondary")
    }
    columns["nft_transfer_data"] = data
    return Draft(
        "nft_purchase", columns, failed=transfer.failed, notes=transfer.notes, more=[payout]
    )


def _make_discovery(match: Match, interfaces: Interfaces) -> Draft:
    """Somebody asks an item for its index and collection."""
    block, report = match.block, match["report"]
    body = report.message.arguments().skip(64)
    index, collection = body.uint(256), body.address()
    del interfaces
    columns = {
        "source": block.message.source,
        "asset": collection,
        "asset_secondary": block.message.destination,
        "nft_transfer_data": {"nft_item_index": index},
    }
    return Draft("nft_discovery", columns, failed=block.failed)


def _is_sold_on_getgems(block: Block) -> bool:
    data = block.columns["nft_transfer_data"]
    return bool(data["is_purchase"]) and data["marketplace"] == GETGEMS


MINT_RULE = Rule(
    "nft.mint", anything().where(lambda block: len(block.deployments) == 1), _make_mint
)
TRANSFER_RULE = Rule(
    "nft.transfer",
    call(TRANSFER).then(
        one_of(call(OWNERSHIP_ASSIGNED, name="assigned"), call(EXCESS_OPCODE)).maybe
    ),
    _make_transfer,
)
TELEGRAM_PURCHASE_RULE = Rule(
    "nft.telegram_purchase", call(OWNERSHIP_ASSIGNED), _make_telegram_purchase
)
PURCHASE_RULE = Rule(
    "nft.getgems_purchase", built("nft_transfer").where(_is_sold_on_getgems), _make_purchase
)
DISCOVERY_RULE = Rule(
    "nft.discovery",
    call(GET_STATIC_DATA).then(call(REPORT_STATIC_DATA, name="report")),
    _make_discovery,
)
