"""NFTs put on sale or on auction, price changes, and cancelled sales.

The terms of a sale are those in the StateInit that deploys it. TL-B: ``_ fixed_prefix_length:(Maybe
(## 5)) special:(Maybe TickTock) code:(Maybe ^Cell) data:(Maybe ^Cell) library:(Maybe ^Cell) =
StateInit``. The data are read as the contract's get-method would return them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.derive.action.account.facts import show_sale
from tonlake.ingest.derive.action.block import CALL
from tonlake.ingest.derive.action.block import TRANSFER as TON_TRANSFER
from tonlake.ingest.derive.action.interface import exact
from tonlake.ingest.derive.action.pattern import built, call
from tonlake.ingest.derive.action.protocol.trade import GETGEMS, find_item
from tonlake.ingest.derive.action.rule import Draft, Rule
from tonlake.ingest.derive.contract.layout import Subject, make_maybe_cell
from tonlake.ingest.derive.contract.reader import find_reader
from tonlake.ingest.derive.contract.stack import Mismatch, parse_address
from tonlake.ingest.derive.contract.standard.sale import (
    detect_auction_v4,
    detect_sale,
    detect_sale_v4,
)
from tonlake.ingest.errors import BocError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tonlake.ingest.derive.action.block import Block, Columns
    from tonlake.ingest.derive.action.interface import Facts, Interfaces
    from tonlake.ingest.derive.action.pattern import Match
    from tonlake.ingest.derive.contract.stack import Detector, Finding

_PREFIX_BITS, _TICK_TOCK_BITS = 5, 2
_DETECTORS = (detect_sale, detect_sale_v4, detect_auction_v4)
SALE_V4_CODE = bytes.fromhex("6b95a6418b9c9d2359045d1e7559b8d549ae0e506f24caab58fa30c8fb1feb86")
"""Sale of Getgems, version 4, whose data have fees as shares of the price."""


class Deployment(NamedTuple):
    """A code hash and the interfaces of its initial data; none if the code has no reader."""

    code_hash: bytes
    interfaces: Mapping[str, Facts]


def read_deployment(address: str, init_state: bytes) -> Deployment | None:
    """Return the contract that a StateInit deploys at an account; None if it lacks code or data.

    Raises:
        BocError: ``init_state`` is not a StateInit.
    """
    tree = parse_boc(init_state)
    start = tree.slice(tree.roots[0])
    for bits in (_PREFIX_BITS, _TICK_TOCK_BITS):
        if start.load_bit():
            start.skip(bits)
    code, data = make_maybe_cell(start), make_maybe_cell(start)
    if code is None or data is None:
        return None
    subject = Subject(parse_address(address), code, data, ())
    return Deployment(
        code.hash,
        {
            interface: facts
            for detector in _DETECTORS
            for finding in _detect(detector, subject)
            for interface, facts in show_sale(finding.fields, finding.fields["details"], address)
        },
    )


def _detect(detector: Detector, subject: Subject) -> list[Finding]:
    """Return the findings of a detector; [] if no reader answers one of its questions."""
    detection = detector(subject.address)
    try:
        question = next(detection)
        while True:
            reader = find_reader(subject.code.hash, question.method)
            if reader is None:
                return []
            question = detection.send(reader(subject._replace(arguments=question.arguments)))
    except StopIteration as end:
        found: list[Finding] = end.value
        return found
    except (BocError, Mismatch):
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


def _make_listing(match: Match) -> Draft | None:
    """Draft a listing: an item moves through the marketplace to the sale or auction it deployed."""
    first, deployed = match.block, match["sale_init"].message
    address = match["to_sale"].columns["destination"]
    sale, auction = match.interfaces.nft_sale(address), match.interfaces.nft_auction(address)
    seller = sale or auction
    if seller is None or seller.owner != first.columns["source"]:
        return None
    if deployed.init_state is None or deployed.destination != address:
        return None
    item = find_item(match.interfaces, first.columns["asset_secondary"])
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
            **_read_terms(kind, address, deployed.init_state, match.interfaces),
        },
    }
    return Draft("nft_put_on_sale" if sale is not None else "nft_put_on_auction", columns)


def _read_terms(kind: str, address: str, init_state: bytes, interfaces: Interfaces) -> Columns:
    """Return price, bids and fees as deployed, or the current facts if the code has no reader."""
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
    """Return whether a message deploys a contract to which an item is sent next."""
    message = block.message
    return message.init_state is not None and any(
        each.type == "nft_transfer" and each.columns["destination"] == message.destination
        for each in block.siblings
    )


def _is_sent_on(block: Block) -> bool:
    """Return whether the item is that of the previous transfer."""
    before = block.previous
    return before is not None and before["asset_secondary"] == block["asset_secondary"]


def _make_update(match: Match) -> Draft | None:
    """Draft a price change by the owner of a sale."""
    block = match.block
    sale = match.interfaces.nft_sale(block.message.destination)
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


def _make_cancel(match: Match) -> Draft | None:
    """Draft the cancellation of a sale, which returns the item to its owner."""
    block, transfer = match.block, match["nft_transfer"]
    address = block.message.destination
    sale = match.interfaces.nft_sale(address)
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
