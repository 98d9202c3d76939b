"""Swap.Coffee: swaps, staking positions, and funds held for protection from front-running."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tonlake.ingest.derive.action.pattern import Pattern, built, call, one_of, repeat
from tonlake.ingest.derive.action.protocol.jetton import JETTON_TRANSFER
from tonlake.ingest.derive.action.protocol.swap import (
    Hop,
    Leg,
    read_asset,
    read_incoming,
    read_jettons,
    show_swap,
)
from tonlake.ingest.derive.action.rule import Draft, Rule

if TYPE_CHECKING:
    from tonlake.ingest.derive.action.block import Block, Columns
    from tonlake.ingest.derive.action.pattern import Match

SWAP_NATIVE, SWAP_INTERNAL, SWAP_EVENT = 0xC0FFEE00, 0xC0FFEE20, 0xC0FFEE30
PAYOUT_INTERNAL, PAYOUT, NOTIFICATION = 0xC0FFEE21, 0xC0FFEE32, 0xC0FFEE36
DEX = "coffee"
ASSET_TAG_BITS = 2


def read_payout(order: Block, paid: Block) -> Leg:
    """Return the leg of a payment that a pool ordered from a vault (c0ffee21).

    If coins are sent with a notification, the service shows the vault and the value of the message,
    else the pool and the ordered amount.
    """
    if paid.type == JETTON_TRANSFER:
        return read_jettons(paid, raw=True)
    if paid.opcode == NOTIFICATION:
        source, amount = paid.message.source, paid.message.value
    else:
        body = order.message.arguments().skip(64)
        body.address()
        source, amount = order.message.source, body.coins()
    return Leg(amount, source, None, paid.message.destination, None, None)


def pays(name: str) -> Pattern:
    """Return the pattern of a payout order, named ``<name>_order``, and of the payment."""
    return call(PAYOUT_INTERNAL, name=f"{name}_order").then(
        one_of(built(JETTON_TRANSFER), call(PAYOUT, NOTIFICATION)).named(name)
    )


def _make_swap(match: Match) -> Draft | None:
    """Draft a swap; it failed if it pays back the incoming asset."""
    paid = match.get("out")
    if paid is None:
        return None
    incoming, outgoing = read_incoming(match["in"], raw=True), read_payout(match["out_order"], paid)
    events = [_read_event(block) for block in match.all("event")]
    nexts = [event.asset_in for event in events[1:]]
    hops = [
        event._replace(asset_out=asset)
        for event, asset in zip(events, [*nexts, outgoing.asset], strict=True)
    ]
    columns = show_swap(DEX, incoming, outgoing, hops=hops if len(hops) > 1 else ())
    return Draft("jetton_swap", columns, failed=outgoing.asset == incoming.asset)


def _read_event(log: Block) -> Hop:
    """Read c0ffee30. TL-B: query_id:uint64 input:CoffeeAsset input_amount:Coins output_amount."""
    body = log.message.arguments().skip(64)
    asset = read_asset(body, ASSET_TAG_BITS)
    return Hop(asset_in=asset, amount_in=body.coins(), asset_out=None, amount_out=body.coins())


_EVENT = call(SWAP_EVENT, name="event")
_LINK = call(SWAP_INTERNAL).then(_EVENT)
_OUT = pays("out")

SWAP_RULE = Rule(
    "coffee.swap",
    call(SWAP_INTERNAL)
    .then(_EVENT, one_of(repeat(_LINK, until=_OUT), _OUT))
    .after(one_of(built(JETTON_TRANSFER), call(SWAP_NATIVE)).named("in")),
    _make_swap,
)


STAKE, UNSTAKE, CLAIM = 0xF9471134, 0xCB03BFAF, 0xB30C7310
HOLD_FUNDS, SERVICE_FEE, FAILED_SWAP = 0x6BC79E7E, 0xC0FFEEA0, 0xEE51CE51


def _make_stake(match: Match) -> Draft:
    """Draft a stake of jettons, for which a position (an NFT) is minted."""
    sent, nft = match.block, match["nft"]
    item = match.interfaces.nft_item(nft["asset_secondary"])
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


def _make_unstake(match: Match) -> Draft:
    """Draft the closing of a position, with its jettons paid back."""
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


def _make_claim(match: Match) -> Draft:
    """Draft a payout of rewards by the pool."""
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


def _make_hold(match: Match) -> Draft:
    """Draft coins or jettons held by a contract that will swap them, including the service fee."""
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


def _make_failed_swap(match: Match) -> Draft:
    """Draft the return of a failed swap. TL-B: query_id:uint64 recipient:MsgAddress."""
    recipient = match.block.message.arguments().skip(64).address()
    columns = {"destination": recipient}
    return Draft("coffee_mev_protect_failed_swap", columns)


def _holds(block: Block) -> bool:
    payload = block["payload"]
    return payload is not None and payload.peek_opcode() == HOLD_FUNDS


OTHER_RULES = (
    Rule(
        "coffee.mev_protect_hold_funds",
        one_of(call(HOLD_FUNDS), built(JETTON_TRANSFER).where(_holds)),
        _make_hold,
    ),
    Rule("coffee.mev_protect_failed_swap", call(FAILED_SWAP), _make_failed_swap),
    Rule(
        "coffee.staking_deposit",
        built(JETTON_TRANSFER).then(
            call(STAKE, name="pool").then(call(STAKE).maybe, built("nft_mint", name="nft"))
        ),
        _make_stake,
    ),
    Rule(
        "coffee.staking_withdraw",
        call(UNSTAKE).then(
            call(UNSTAKE, name="position").then(
                call(UNSTAKE).then(built(JETTON_TRANSFER, name="paid")),
                call(UNSTAKE, name="log").maybe,
            )
        ),
        _make_unstake,
    ),
    Rule(
        "coffee.staking_claim_rewards",
        call(CLAIM).then(built(JETTON_TRANSFER, name="paid"), call(CLAIM).maybe),
        _make_claim,
    ),
)
"""In order of precedence."""
