"""DeDust: swaps of one or several hops, and withdrawals of liquidity."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tonlake.ingest.derive.action.pattern import Pattern, built, call, one_of, repeat
from tonlake.ingest.derive.action.protocol.jetton import BURN, BURN_NOTIFICATION, JETTON_TRANSFER
from tonlake.ingest.derive.action.protocol.swap import (
    Hop,
    Leg,
    read_asset,
    read_incoming,
    read_jettons,
    show_payouts,
    show_swap,
)
from tonlake.ingest.derive.action.rule import Draft, Rule

if TYPE_CHECKING:
    from tonlake.ingest.derive.action.block import Block, Columns
    from tonlake.ingest.derive.action.pattern import Match

SWAP_NATIVE, SWAP, SWAP_PEER, SWAP_LOG = 0xEA06185D, 0x61EE542D, 0x72ACA8AA, 0x9C610DE3
PAYOUT_FROM_POOL, PAYOUT = 0xAD4EB6F5, 0x474F86CF
DEX = "dedust"
ASSET_TAG_BITS = 4


def _read_payout(order: Block, paid: Block) -> Leg:
    """Return the leg of a payment that a pool ordered from a vault (ad4eb6f5)."""
    if paid.type == JETTON_TRANSFER:
        return read_jettons(paid)
    amount = order.message.arguments().skip(64).coins()
    message = paid.message
    return Leg(amount, message.source, None, message.destination, None, None)


def _read_log(log: Block) -> Hop:
    """Read 9c610de3: asset_in, asset_out, amount_in:Coins, amount_out:Coins."""
    body = log.message.arguments()
    asset_in, asset_out = read_asset(body, ASSET_TAG_BITS), read_asset(body, ASSET_TAG_BITS)
    return Hop(asset_in, body.coins(), asset_out, body.coins())


def _make_swap(match: Match) -> Draft | None:
    """Draft a swap; it failed if a pool did not log its hop.

    If there are several hops, all pools must be known.
    """
    peers = match.all("peer")
    pools = [each.message.destination for each in (match["first"], *peers)]
    if peers and not all(match.interfaces.has(pool, "DedustPool") for pool in pools):
        return None
    incoming = read_incoming(match["in"])
    outgoing = _read_payout(match["order"], match["out"])
    hops = [_read_log(block) for block in match.all("log")]
    swaps = 1 + len(match.all("peer"))
    columns = show_swap(DEX, incoming, outgoing, hops=hops if len(hops) > 1 else ())
    return Draft("jetton_swap", columns, failed=len(hops) < swaps)


def _make_withdraw(match: Match) -> Draft:
    """Draft a withdrawal: liquidity tokens burnt, both sides paid out; the last comes first."""
    message = match.block.message
    pool = match["notification"].message.destination
    data: Columns = {"dex": DEX, "is_refund": False}
    data["lp_tokens_burnt"] = message.arguments().skip(64).coins()
    data |= show_payouts(
        _read_payout(match[f"order_{number}"], match[f"out_{number}"]) for number in (1, 2)
    )
    columns = {
        "source": message.source,
        "source_secondary": message.destination,
        "destination": pool,
        "asset": pool,
        "dex_withdraw_liquidity_data": data,
    }
    return Draft("dex_withdraw_liquidity", columns)


def _pays(order: str, out: str) -> Pattern:
    return call(PAYOUT_FROM_POOL, name=order).then(
        one_of(built(JETTON_TRANSFER), call(PAYOUT)).named(out)
    )


_LOG = call(SWAP_LOG, name="log").maybe
_OUT = _pays("order", "out")

SWAP_RULE = Rule(
    "dedust.swap",
    call(SWAP, name="first")
    .then(one_of(_OUT, repeat(call(SWAP_PEER, SWAP, name="peer").then(_LOG), until=_OUT)), _LOG)
    .after(one_of(built(JETTON_TRANSFER), call(SWAP_NATIVE)).named("in")),
    _make_swap,
)
WITHDRAW_RULE = Rule(
    "dedust.withdraw_liquidity",
    call(BURN).then(
        call(BURN_NOTIFICATION, name="notification").then(
            _pays("order_2", "out_2"), _pays("order_1", "out_1")
        )
    ),
    _make_withdraw,
)
