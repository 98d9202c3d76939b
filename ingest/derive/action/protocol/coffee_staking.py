"""Swap.Coffee: staking positions, and funds held back from front-running."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tonlake.ingest.derive.action.pattern import built, call, one_of
from tonlake.ingest.derive.action.protocol.jetton import JETTON_TRANSFER
from tonlake.ingest.derive.action.rule import Draft, Rule

if TYPE_CHECKING:
    from tonlake.ingest.derive.action.block import Block, Columns
    from tonlake.ingest.derive.action.interface import Interfaces
    from tonlake.ingest.derive.action.pattern import Match

DEPOSIT, WITHDRAW, CLAIM = 0xF9471134, 0xCB03BFAF, 0xB30C7310
HOLD_FUNDS, SERVICE_FEE, FAILED_SWAP = 0x6BC79E7E, 0xC0FFEEA0, 0xEE51CE51


def _make_deposit(match: Match, interfaces: Interfaces) -> Draft:
    """Jettons are staked; a position (an NFT) is made."""
    sent, nft = match.block, match["nft"]
    item = interfaces.nft_item(nft["asset_secondary"])
    columns = {
        "source": sent["source"],
        "source_secondary": sent["source_secondary"],
        "destination": match["pool"].message.destination,
        "destination_secondary": sent["destination_secondary"],
        "asset": sent["asset"],
        "amount": sent["amount"],
        "coffee_staking_deposit_data": {
            "minted_item_address": nft["asset_secondary"],
            "minted_item_index": None if item is None else item.item_index,
        },
    }
    return Draft("coffee_staking_deposit", columns)


def _make_withdraw(match: Match, _interfaces: Interfaces) -> Draft:
    """A position is closed, and its jettons are paid back."""
    message, paid = match.block.message, match["paid"]
    log = match.get("log")
    data = {
        "nft_address": message.destination,
        "nft_index": match["position"].message.arguments().skip(64).uint(64),
        "points": None if log is None else log.message.arguments().ref().coins(),
    }
    columns = {
        "source": message.source,
        "source_secondary": paid["destination_secondary"],
        "destination": message.destination,
        "destination_secondary": paid["source_secondary"],
        "asset": paid["asset"],
        "amount": paid["amount"],
        "coffee_staking_withdraw_data": data,
    }
    return Draft("coffee_staking_withdraw", columns)


def _make_claim(match: Match, _interfaces: Interfaces) -> Draft:
    """Rewards are paid out by the pool."""
    paid = match["paid"]
    columns = {
        "source": match.block.message.destination,
        "source_secondary": paid["source_secondary"],
        "destination": paid["destination"],
        "destination_secondary": paid["destination_secondary"],
        "asset": paid["asset"],
        "amount": paid["amount"],
    }
    return Draft("coffee_staking_claim_rewards", columns)


def _make_hold(match: Match, _interfaces: Interfaces) -> Draft:
    """Coins or jettons wait with a contract that swaps them; the fee paid beside belongs to it."""
    block = match.block
    columns: Columns
    if block.type == JETTON_TRANSFER:
        names = ("source", "source_secondary", "destination", "destination_secondary")
        columns = {name: block[name] for name in (*names, "asset", "amount")}
    else:
        message = block.message
        columns = {
            "source": message.source,
            "destination": message.destination,
            "amount": message.value,
        }
    beside = [each for each in block.siblings if each.opcode == SERVICE_FEE]
    if beside and block.previous is not None:
        beside.append(block.previous)
    return Draft("coffee_mev_protect_hold_funds", columns, more=beside)


def _make_failed_swap(match: Match, _interfaces: Interfaces) -> Draft:
    """A swap that did not come about goes back. TL-B: query_id:uint64 recipient:MsgAddress."""
    recipient = match.block.message.arguments().skip(64).address()
    columns = {"destination": recipient}
    return Draft("coffee_mev_protect_failed_swap", columns)


def _holds(block: Block) -> bool:
    payload = block["payload"]
    return payload is not None and payload.peek_opcode() == HOLD_FUNDS


RULES = (
    Rule(
        "coffee.mev_protect_hold_funds",
        one_of(call(HOLD_FUNDS), built(JETTON_TRANSFER).where(_holds)),
        _make_hold,
    ),
    Rule("coffee.mev_protect_failed_swap", call(FAILED_SWAP), _make_failed_swap),
    Rule(
        "coffee.staking_deposit",
        built(JETTON_TRANSFER).then(
            call(DEPOSIT, name="pool").then(call(DEPOSIT).maybe, built("nft_mint", name="nft"))
        ),
        _make_deposit,
    ),
    Rule(
        "coffee.staking_withdraw",
        call(WITHDRAW).then(
            call(WITHDRAW, name="position").then(
                call(WITHDRAW).then(built(JETTON_TRANSFER, name="paid")),
                call(WITHDRAW, name="log").maybe,
            )
        ),
        _make_withdraw,
    ),
    Rule(
        "coffee.staking_claim_rewards",
        call(CLAIM).then(built(JETTON_TRANSFER, name="paid"), call(CLAIM).maybe),
        _make_claim,
    ),
)
"""In the order in which they are tried."""
