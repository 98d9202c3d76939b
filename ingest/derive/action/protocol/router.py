"""What exchanges with a router share: coins and jettons that come to it, and that it pays.

Coins go through the router's wallet of the jetton that stands for them (01f3835d).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tonlake.ingest.derive.action.pattern import Pattern, built, call, one_of
from tonlake.ingest.derive.action.protocol.jetton import (
    JETTON_TRANSFER,
    NOTIFY,
    PTON_TRANSFER,
)
from tonlake.ingest.derive.action.protocol.swap import (
    Leg,
    read_coins,
    read_jettons,
    read_paid_coins,
)

if TYPE_CHECKING:
    from tonlake.ingest.derive.action.block import Block
    from tonlake.ingest.derive.action.pattern import Match

SENT = one_of(
    built(JETTON_TRANSFER, name="in"),
    call(NOTIFY, name="notify").after(call(PTON_TRANSFER, name="in")),
)
"""Pattern of what came to the router, read by ``read_sent``."""


def read_sent(match: Match) -> Leg | None:
    """Return the leg of what came to the router, None where it is not in the trace."""
    block = match.get("in")
    if block is None:
        return None
    if block.type == JETTON_TRANSFER:
        return read_jettons(block)
    return read_coins(block, match["notify"].message.destination)


def read_paid(block: Block) -> Leg:
    """Return the leg of what the router paid."""
    return read_jettons(block) if block.type == JETTON_TRANSFER else read_paid_coins(block)


def paid_out(name: str) -> Pattern:
    """Return the pattern of what a router pays: coins through their wallet, or jettons."""
    return one_of(
        built(JETTON_TRANSFER).then(call(PTON_TRANSFER, name=name).then(call(NOTIFY).maybe)),
        built(JETTON_TRANSFER, name=name),
    )


def pay(order: int, swap: int, most_hops: int) -> Pattern:
    """Return the pattern of a payment: out of the router, or into the next of several swaps.

    Names: ``payment`` is the order of a pool, ``between`` what it paid into the next ``swap``,
    and ``out`` what left the router. ``order`` and ``swap`` are op-codes.
    """
    payment = call(order, name="payment")
    if not most_hops:
        return payment.then(paid_out("out"))
    again = call(swap, name="swap").then(pay(order, swap, most_hops - 1))
    coins = call(PTON_TRANSFER, name="between").then(call(NOTIFY).then(again))
    return payment.then(
        one_of(
            built(JETTON_TRANSFER).then(coins),
            built(JETTON_TRANSFER, name="between").then(again),
            paid_out("out"),
        )
    )
