"""Sales and auctions of NFTs: listings, price changes, bids, refunds, ends and cancellations.

The terms of a sale are those in the StateInit that deploys it; its get-method returns them.
"""

from tonlake.ingest.decode.block.state import read_state_init
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.derive.action.interface import (
    Facts,
    Interfaces,
    Listing,
    NftItem,
    exact,
    show_sale,
)
from tonlake.ingest.derive.action.pattern import Match, built, call, comment, one_of
from tonlake.ingest.derive.action.protocol import nft
from tonlake.ingest.derive.action.rule import CALL, Block, Columns, rule
from tonlake.ingest.derive.action.rule import TRANSFER as TON_TRANSFER
from tonlake.ingest.derive.contract.program import run_alone
from tonlake.ingest.derive.contract.stack import Cell, Detector, Finding, Mismatch, parse_address
from tonlake.ingest.derive.contract.standard import detect_auction_v4, detect_sale, detect_sale_v4
from tonlake.ingest.errors import BocError

_DETECTORS = (detect_sale, detect_sale_v4, detect_auction_v4)
SALE_V4_CODE = bytes.fromhex("6b95a6418b9c9d2359045d1e7559b8d549ae0e506f24caab58fa30c8fb1feb86")
"""Sale of Getgems, version 4, whose data have fees as shares of the price."""


def read_deployment(address: str, init_state: bytes) -> tuple[bytes | None, dict[str, Facts]]:
    """Return the code hash in a StateInit, None without code or data, and its interfaces, if any.

    They are those of sales and auctions, from the initial data. Raises BocError.
    """
    tree = parse_boc(init_state)
    init = read_state_init(tree.slice(tree.roots[0]))
    code, data = init.code, init.data
    if code is None or data is None:
        return None, {}
    found: dict[str, Facts] = {}
    for detector in _DETECTORS:
        for finding in _detect(detector, address, Cell(tree, code), Cell(tree, data)):
            found |= show_sale(finding.fields, finding.fields["details"], address)
    return tree.hash(code), found


def _detect(detector: Detector, address: str, code: Cell, data: Cell) -> list[Finding]:
    """Return the findings of a detector that asks nothing but one get-method of its account."""
    detection = detector(parse_address(address))
    try:
        question = next(detection)
        detection.send(run_alone(question, code, data))
    except StopIteration as end:
        found: list[Finding] = end.value
        return found
    except (BocError, Mismatch):
        pass
    return []


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
"""Numbers of a listing, and the names of its fee addresses, by interface."""


def _read_terms(kind: str, address: str, init_state: bytes, interfaces: Interfaces) -> Columns:
    """Return price, bids and fees as deployed, or the current facts if the code is unknown."""
    code_hash, deployed = read_deployment(address, init_state)
    facts = deployed.get(kind) or interfaces.find(address, kind) or {}
    amounts, fee_address, royalty_address = _TERMS[kind]
    terms: Columns = {name: exact(facts.get(name)) for name in amounts}
    if code_hash == SALE_V4_CODE:
        terms |= dict.fromkeys(_FEES)
    return terms | {
        "marketplace_fee_address": facts.get(fee_address),
        "royalty_address": facts.get(royalty_address),
    }


def _is_deployment(block: Block) -> bool:
    """Return whether a message deploys a contract to which an item is sent next."""
    message = block.message
    return message.init_state is not None and any(
        each.type == "nft_transfer" and each.columns["destination"] == message.destination
        for each in block.siblings
    )


@rule(
    built("nft_transfer").then(
        built(TON_TRANSFER, CALL, name="sale_init").where(_is_deployment),
        built("nft_transfer", name="to_sale").where(
            lambda block: (
                block.previous is not None
                and block.previous["asset_secondary"] == block["asset_secondary"]
            )
        ),
    ),
    name="sale.listing",
)
def put_on_sale(match: Match) -> Block | None:
    """Draft a listing: an item moves through the marketplace to the sale or auction it deployed."""
    first, deployed = match.block, match["sale_init"].message
    address = match["to_sale"].columns["destination"]
    sale, auction = match.interfaces.nft_sale(address), match.interfaces.nft_auction(address)
    seller = sale or auction
    if seller is None or seller.owner != first.columns["source"]:
        return None
    if deployed.init_state is None or deployed.destination != address:
        return None
    item = nft.find_item(match.interfaces, first.columns["asset_secondary"])
    kind = SALE if sale is not None else AUCTION
    columns = (
        first.pick("source", source_secondary="destination")
        | item.show()
        | {
            "destination": address,
            "nft_transfer_data": {"marketplace": None, "marketplace_address": seller.marketplace},
            "nft_listing_data": {
                "nft_item_index": item.item_index,
                "marketplace": nft.GETGEMS,
                **_read_terms(kind, address, deployed.init_state, match.interfaces),
            },
        }
    )
    return Block("nft_put_on_sale" if sale is not None else "nft_put_on_auction", columns)


@rule(call(UPDATE_SALE), name="sale.update")
def update_sale(match: Match) -> Block | None:
    """Draft a price change by the owner of a sale."""
    block = match.block
    sale = match.interfaces.nft_sale(block.message.destination)
    if sale is None:
        return None
    terms = block.fields().show(full_price="coins", marketplace_fee="coins", royalty_amount="coins")
    columns = block.pick("source", "destination") | {
        "asset_secondary": sale.nft,
        "nft_transfer_data": {"marketplace": None, "marketplace_address": sale.marketplace},
        "nft_listing_data": terms,
    }
    extra = [sale.nft] if sale.nft is not None else []
    failed = block.transaction.aborted
    return Block("nft_update_sale", columns, failed=failed, extra_accounts=extra)


def _draft_end(
    kind: str, match: Match, listing: Listing | None, marketplace: str | None
) -> Block | None:
    """Return the draft of a listing's end, which transfers the item to its owner or to a buyer."""
    moved = match["transfer"]
    item = moved["asset_secondary"]
    if listing is None or listing.nft != item:
        return None
    address = None if moved.type == "nft_purchase" else listing.marketplace
    columns = moved.pick("asset", "asset_secondary", source="destination")
    columns |= match.block.pick("destination")
    data = {"marketplace": marketplace, "marketplace_address": address}
    return Block(kind, columns | {"nft_transfer_data": data}, extra_accounts=[item])


@rule(call(CANCEL_SALE).then(built("nft_transfer", name="transfer").apart), name="sale.cancel")
def cancel_sale(match: Match) -> Block | None:
    """Draft the cancellation of a sale, which returns the item to its owner."""
    sale = match.interfaces.nft_sale(match.block["destination"])
    return _draft_end("nft_cancel_sale", match, sale, None)


START_TELEGRAM, CANCEL_TELEGRAM = 0x487A8E81, 0x371638AE
TELEGRAM_OK = 0xA37A0983
_OUTBID_TEXT = "Your bid has been outbid by another user"
_CLOSING_COMMENTS = {"finish", "stop", "cancel"}


def _is_own_auction(block: Block, interfaces: Interfaces, item: NftItem) -> bool:
    """Return whether coins for an item are a bid; for a domain, if an earlier bid was refunded."""
    if nft.is_telegram_item(item):
        return True
    return nft.is_domain(interfaces, item) and any(
        after.opcode == nft.OUTBID for after in block.next
    )


def _is_refund(block: Block) -> bool:
    """Return whether a block refunds the bid of an earlier bidder in the same auction."""
    bid = block.previous
    if bid is None or bid.type != "auction_bid":
        return False
    if bid.columns["nft_transfer_data"]["marketplace"] == nft.FRAGMENT:
        return block.opcode == nft.OUTBID
    return _OUTBID_TEXT in (block.comment or "")


_OK = call(TELEGRAM_OK, name="teleitem_ok").maybe


@rule(call(START_TELEGRAM).then(_OK), name="auction.telegram_start")
def telegram_start(match: Match) -> Block | None:
    """Draft the start of an auction of a Telegram item by its owner.

    TL-B of the config: beneficiary_address:MsgAddress initial_min_bid:Coins max_bid:Coins.
    """
    block = match.block
    item = nft.find_item(match.interfaces, block.message.destination)
    if not nft.is_telegram_item(item):
        return None
    config = block.fields().child()
    beneficiary = config.address()
    columns = (
        block.pick("source")
        | item.show()
        | {
            "destination": item.address,
            "nft_listing_data": {
                "nft_item_index": item.item_index,
                "mp_fee_factor": 0,
                "mp_fee_base": 0,
                "royalty_fee_base": 0,
                "marketplace": nft.FRAGMENT,
                "marketplace_fee_address": beneficiary,
                "min_bid": config.coins(),
                "max_bid": config.coins(),
            },
        }
    )
    return Block("teleitem_start_auction", columns, failed=block.transaction.aborted)


@rule(call(CANCEL_TELEGRAM).then(_OK), name="auction.telegram_cancel")
def telegram_cancel(match: Match) -> Block | None:
    """Draft the cancellation of a Telegram item's auction by its owner, before any bid."""
    block = match.block
    item = nft.find_item(match.interfaces, block.message.destination)
    if not nft.is_telegram_item(item):
        return None
    columns = block.pick("source") | item.show() | {"destination": item.address}
    return Block("teleitem_cancel_auction", columns, failed=block.transaction.aborted)


@rule(built(TON_TRANSFER), name="auction.bid")
def bid(match: Match) -> Block | None:
    """Draft a bid: coins sent to an auction, or to an item that is its own auction."""
    block = match.block
    address = block.message.destination
    if block.deployments or block.comment in _CLOSING_COMMENTS:
        return None
    auction = match.interfaces.nft_auction(address)
    item = nft.find_item(match.interfaces, address if auction is None else auction.nft)
    if auction is None and not _is_own_auction(block, match.interfaces, item):
        return None
    marketplace = nft.FRAGMENT if auction is None else nft.GETGEMS
    columns = block.pick("source", "destination", "value") | {
        "asset": item.collection,
        "asset_secondary": item.address or None,
        "nft_transfer_data": {"nft_item_index": item.item_index, "marketplace": marketplace},
    }
    extra = [item.address] if item.address else []
    return Block("auction_bid", columns, failed=block.failed, extra_accounts=extra)


@rule(
    one_of(built(TON_TRANSFER), call(nft.OUTBID))
    .where(_is_refund)
    .after(built("auction_bid", name="bid").apart),
    name="auction.outbid",
)
def outbid(match: Match) -> Block | None:
    """Draft an outbid: coins returned to the previous bidder; several refunds are not an outbid."""
    refund, beaten = match.block, match["bid"]
    if sum(map(_is_refund, beaten.next)) != 1:
        return None
    columns = refund.pick("source", "destination", amount="value")
    columns |= beaten.pick("asset", "asset_secondary", source_secondary="source") | {
        "nft_transfer_data": {"marketplace": beaten["nft_transfer_data"]["marketplace"]},
        "ton_transfer_data": {"comment": refund.comment},
    }
    return Block("auction_outbid", columns, extra_accounts=[beaten["asset_secondary"] or ""])


_ENDED = built("nft_purchase", "nft_transfer", name="transfer").apart


@rule(
    one_of(comment("finish", "stop"), call(nft.FINISH_AUCTION, nft.CLOSE_AUCTION)).then(_ENDED),
    name="auction.finish",
)
def finish_auction(match: Match) -> Block | None:
    """Draft the end of an auction that transfers the item to the last bidder."""
    auction = match.interfaces.nft_auction(match.block["destination"])
    return _draft_end("nft_finish_auction", match, auction, nft.GETGEMS)


@rule(one_of(comment("cancel"), call(nft.CANCEL_AUCTION)).then(_ENDED), name="auction.cancel")
def cancel_auction(match: Match) -> Block | None:
    """Draft the cancellation of an auction that returns the item."""
    auction = match.interfaces.nft_auction(match.block["destination"])
    return _draft_end("nft_cancel_auction", match, auction, nft.GETGEMS)
