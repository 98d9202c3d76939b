"""Swap.Coffee: swaps of one or several hops, and what its other actions share."""

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
    from tonlake.ingest.derive.action.block import Block
    from tonlake.ingest.derive.action.interface import Interfaces
    from tonlake.ingest.derive.action.pattern import Match

SWAP_NATIVE, SWAP_INTERNAL, SWAP_EVENT = 0xC0FFEE00, 0xC0FFEE20, 0xC0FFEE30
PAYOUT_INTERNAL, PAYOUT, NOTIFICATION = 0xC0FFEE21, 0xC0FFEE32, 0xC0FFEE36
DEX = "coffee"
ASSET_TAG_BITS = 2


def read_payout(order: Block, paid: Block) -> Leg:
    """Return the leg of what a vault paid because a pool ordered it (c0ffee21).

    Of coins that go with a notification the service names the vault and what they carried, of
    others the pool and what it ordered.
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
    """Return the pattern of an order to pay, named ``<name>_order``, and of the payment."""
    return call(PAYOUT_INTERNAL, name=f"{name}_order").then(
        one_of(built(JETTON_TRANSFER), call(PAYOUT, NOTIFICATION)).named(name)
    )


def _make_swap(match: Match, _interfaces: Interfaces) -> Draft | None:
    """A swap; one that pays back what came in failed."""
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
