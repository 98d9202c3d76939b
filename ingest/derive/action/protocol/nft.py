"""NFTs (TEP-62): mints, transfers, purchases through a sale or an auction, discoveries."""

from typing import NamedTuple
from urllib.parse import urlsplit

from tonlake.ingest.derive.action.body import Body
from tonlake.ingest.derive.action.interface import DNS_ITEM, Interfaces, Listing, NftItem
from tonlake.ingest.derive.action.model import Message
from tonlake.ingest.derive.action.pattern import EXCESS_OPCODE, Match, built, call
from tonlake.ingest.derive.action.protocol.jetton import show_payload
from tonlake.ingest.derive.action.rule import CALL, DEPLOYING, Block, Columns, rule
from tonlake.ingest.derive.action.rule import TRANSFER as TON_TRANSFER

GETGEMS, FRAGMENT = "getgems", "fragment"
FILL_UP = 0x370FEC51
"""Payment by the auction of an item: telemint and DNS items, op::fill_up."""
OUTBID = 0x557CEA20
CANCEL_AUCTION, FINISH_AUCTION = 0x5616C572, 0xB95616B6
CLOSE_AUCTION = 0x20C9EB18
"""Auctions of Getgems, version 4; 20c9eb18 ends one either way."""

DNS_COLLECTION = "0:B774D95EB20543F186C06B371AB88AD704F7E256130CAF96189368A7D0CB6CCF"
"""Collection of the domains under .ton."""
DNS_ITEM_CODE = "i1/8nr/TkGTY1fVuRlnIJrt1k5I/XKSHKL5NYK9vUfk="
"""Code hash of the items of that collection; other collections may use it too."""

_TELEGRAM_HOST = "nft.fragment.com"


def find_item(interfaces: Interfaces, account: str | None) -> NftItem:
    """Return the item at an account; an unknown one has no collection."""
    known = interfaces.nft_item(account)
    return known or NftItem(account or "", None, None, None, {})


def is_telegram_item(item: NftItem) -> bool:
    """Return whether the metadata of an item are those of a Telegram username or number."""
    uri = item.content.get("uri")
    return isinstance(uri, str) and urlsplit(uri).hostname == _TELEGRAM_HOST


def is_domain(interfaces: Interfaces, item: NftItem) -> bool:
    """Return whether an item is a domain with its own auction, by its collection or code."""
    facts = interfaces.find(item.address, "NftItem") or {}
    return (
        item.collection == DNS_COLLECTION
        or interfaces.has(item.address, DNS_ITEM)
        or facts.get("code_hash") == DNS_ITEM_CODE
    )


TRANSFER, OWNERSHIP_ASSIGNED = 0x5FCC3D14, 0x05138D91
GET_STATIC_DATA, REPORT_STATIC_DATA = 0x2FCB26A2, 0x8B771735
BID_INFO, DEPLOY_ITEM = 0x38127DE1, 0x299A3E15


class TransferBody(NamedTuple):
    """Body of 5fcc3d14. TL-B: transfer of TEP-62."""

    query_id: int
    new_owner: str | None
    response_destination: str | None
    custom_payload: Body | None
    forward_amount: int
    forward_payload: Body


def read_transfer(message: Message) -> TransferBody:
    """Read the body of a transfer, as far as it goes."""
    body = message.arguments()
    head = body.uint(64), body.address()
    return TransferBody(*head, *body.response(), body.forward_amount(), body.either_ref())


def _pays(cause: Block) -> bool:
    """Return whether the message before a purchase belongs to it: it paid, or is external."""
    if cause.type == TON_TRANSFER:
        return cause.comment not in {"finish", "stop"}
    return _is_external(cause)


def _find_seller(
    interfaces: Interfaces, cause: Block | None, new_owner: str | None, item: NftItem
) -> Listing | None:
    """Return the sale, paid by the new owner, or the auction, that sold an item."""
    if cause is None:
        return None
    address = cause.columns.get("destination")
    seller = interfaces.nft_auction(address)
    if seller is None:
        seller = interfaces.nft_sale(address)
        if cause.type != TON_TRANSFER or cause.columns["source"] != new_owner:
            return None
    if seller is None or seller.nft != item.address or seller.owner == new_owner:
        return None
    return seller


def _is_external(block: Block) -> bool:
    return block.type == CALL and block.columns.get("source") is None


_AMOUNTS = ("payout_amount", "royalty_amount")
_ADDRESSES = ("marketplace_fee_address", "royalty_address")
_OF_SALES = (
    *("marketplace", "marketplace_address", "real_prev_owner", "payout_amount", "payout_comment"),
    *("payout_comment_encrypted", "payout_comment_encoded", "royalty_amount"),
)
"""Facts about payments, which only purchases have."""


@rule(built(DEPLOYING).where(lambda block: len(block.deployments) == 1))
def mint(match: Match) -> Block | None:
    """Draft a mint: a message that deploys only an item."""
    block = match.block
    (address,) = block.deployments
    item = match.interfaces.nft_item(address)
    if item is None:
        return None
    columns = (
        block.pick("source")
        | item.show()
        | {
            "destination": address,
            "opcode": block.message.opcode,
            "nft_mint_data": {"nft_item_index": item.item_index},
        }
    )
    return Block("nft_mint", columns)


@rule(
    call(TRANSFER).then(call(OWNERSHIP_ASSIGNED, name="assigned").maybe, call(EXCESS_OPCODE).maybe)
)
def transfer(match: Match) -> Block | None:
    """Draft a transfer of a known item; if a sale or auction sends it to a buyer, a purchase."""
    block, assigned = match.block, match.get("assigned")
    item = match.interfaces.nft_item(block.message.destination)
    if item is None:
        return None
    body = read_transfer(block.message)
    owner = block.message.source
    if assigned is not None:
        owner = assigned.fields().address() or owner
    seller = _find_seller(match.interfaces, block.previous, body.new_owner, item)
    is_purchase = seller is not None
    data: Columns = {
        "query_id": body.query_id,
        "price": None,
        "forward_amount": body.forward_amount,
        "custom_payload": show_payload(body.custom_payload),
        "forward_payload": show_payload(body.forward_payload),
        "response_destination": body.response_destination,
        **dict.fromkeys(_OF_SALES),
        "is_purchase": is_purchase,
        "nft_item_index": item.item_index,
    }
    if seller is not None:
        data |= {
            "price": seller.price,
            "marketplace": GETGEMS,
            "marketplace_address": seller.marketplace,
            "real_prev_owner": seller.owner,
        }
    columns = item.show() | {
        "source": owner,
        "destination": body.new_owner,
        "nft_transfer_data": data,
        "nft_listing_data": dict.fromkeys(_ADDRESSES),
    }
    return Block(
        "nft_transfer",
        columns,
        failed=block.failed,
        notes={"seller": block.message.source, "payload": body.forward_payload},
        more=[block.previous] if block.previous and is_purchase and _pays(block.previous) else (),
    )


@rule(call(OWNERSHIP_ASSIGNED))
def assignment(match: Match) -> Block | None:
    """Draft a change of owner without a transfer, as at the end of the item's own auction.

    Payload at the end of an auction. TL-B: teleitem_bid_info#38127de1 bid:Coins bid_ts:uint32.
    """
    block = match.block
    item = match.interfaces.nft_item(block.message.source)
    if item is None:
        return None
    body = block.arguments()
    query_id, owner = body.uint(64), body.address()
    payload = body.either_ref()
    data: Columns = {
        "query_id": query_id,
        "is_purchase": False,
        "price": None,
        "nft_item_index": item.item_index,
        "forward_payload": payload.boc(),
        "marketplace": None,
        "real_prev_owner": owner,
    }
    listing: Columns = dict.fromkeys(_ADDRESSES)
    more: list[Block] = []
    cause = block.previous
    if payload.peek_opcode() == BID_INFO:
        is_new = cause is not None and (cause.type == "nft_mint" or cause.opcode == DEPLOY_ITEM)
        data |= {
            "is_purchase": not is_new,
            "price": payload.copy().skip(32).coins(),
            "marketplace": FRAGMENT,
            "real_prev_owner": None,
        }
    if cause is not None and (cause.type == TON_TRANSFER or _is_external(cause)):
        # Of several payments of an auction, the first one sent is the royalty.
        fill_ups = [each for each in block.siblings if each.opcode == FILL_UP]
        fill_ups.sort(key=lambda each: each.message.created_lt or 0)
        paid = [*fill_ups[1::-1], None, None][:2]
        more = [each for each in paid if each is not None]
        if more:
            more.append(cause)
        for each, amount, address in zip(paid, _AMOUNTS, _ADDRESSES, strict=True):
            data[amount] = each and each["value"]
            listing[address] = each and each["destination"]
    columns = (
        block.pick("destination")
        | item.show()
        | {"source": owner, "nft_transfer_data": data, "nft_listing_data": listing}
    )
    return Block("nft_transfer", columns, more=more)


@rule(built("nft_transfer"))
def getgems_purchase(match: Match) -> Block | None:
    """Draft a purchase on Getgems: the transfer, with the payment to the previous owner."""
    moved = match.block
    data = moved["nft_transfer_data"]
    if not data["is_purchase"] or data["marketplace"] != GETGEMS:
        return None
    payout = next(
        (
            block
            for block in (*moved.following, *moved.siblings)
            if block.type == TON_TRANSFER
            and (block["source"], block["destination"])
            == (moved["seller"], data["real_prev_owner"])
        ),
        None,
    )
    if payout is None:
        return None
    paid = payout["ton_transfer_data"]
    data = {name: value for name, value in data.items() if name != "royalty_amount"} | {
        "payout_amount": payout["value"],
        "payout_comment": paid["content"],
        "payout_comment_encrypted": paid["encrypted"],
        "payout_comment_encoded": paid["encrypted"],
    }
    columns = moved.pick("source", "destination", "asset", "asset_secondary")
    columns["nft_transfer_data"] = data
    return Block("nft_purchase", columns, notes=moved.notes, more=[payout])


@rule(call(GET_STATIC_DATA).then(call(REPORT_STATIC_DATA, name="report")))
def discovery(match: Match) -> Block:
    """Draft a request to an item for its index and collection."""
    index, collection = match["report"].fields().take(256, "address")
    columns = match.block.pick("source", asset_secondary="destination") | {
        "asset": collection,
        "nft_transfer_data": {"nft_item_index": index},
    }
    return Block("nft_discovery", columns)
