"""DeDust v2: swaps of any number of hops, and swaps refused by a pool.

A carrier brings coins (a5a7cbf8) or jettons (with cbc33949 as forward payload) directly to a pool,
with an order as payload. The pool logs a swap and pays out, or pays into the next pool.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tonlake.ingest.derive.action.pattern import built, call, one_of, passes, repeat
from tonlake.ingest.derive.action.protocol.jetton import JETTON_TRANSFER
from tonlake.ingest.derive.action.protocol.swap import (
    Hop,
    Leg,
    read_incoming,
    show_swap,
)
from tonlake.ingest.derive.action.rule import Draft, Rule

if TYPE_CHECKING:
    from tonlake.ingest.derive.action.block import Block
    from tonlake.ingest.derive.action.body import Body
    from tonlake.ingest.derive.action.interface import Interfaces
    from tonlake.ingest.derive.action.pattern import Match, Pattern

PAY_NATIVE, PAY_JETTON, PAYOUT = 0xA5A7CBF8, 0xCBC33949, 0x3216CA09
SWAP, SWAP_LOG = 0xC442500F, 0x78E79BA4
DEX = "dedust_v2"
_DEADLINE_BITS = 40


def read_order(block: Block) -> Body:
    """Return a reader at the payload of a carrier, the order to the pool.

    TL-B: pay_native#a5a7cbf8 query_id:uint64 amount:Coins payload:^Cell config:^Cell;
    pay_jetton#cbc33949 payload:^Cell config:^Cell, as forward payload.

    Raises:
        LookupError: the jettons have no such payload.
    """
    if block.type != JETTON_TRANSFER:
        return block.message.arguments().ref()
    payload: Body | None = block["payload"]
    if payload is None or payload.peek_opcode() != PAY_JETTON:
        raise LookupError("jettons arrived at a pool of DeDust without an order")
    return payload.copy().skip(32).ref()


def has_order(block: Block, opcode: int) -> bool:
    """Return whether the order of a carrier has an opcode."""
    return passes(lambda carrier: read_order(carrier).peek_opcode() == opcode, block)


def _has_log(block: Block) -> bool:
    return any(after.opcode == SWAP_LOG for after in block.next)


def _is_swap(block: Block) -> bool:
    return has_order(block, SWAP)


def _is_carrier(block: Block) -> bool:
    """Return whether a block brought an asset to a pool that swapped it."""
    if not _has_log(block):
        return False
    return block.type == JETTON_TRANSFER or (block.opcode == PAY_NATIVE and _is_swap(block))


def _is_first(block: Block) -> bool:
    """Return whether a carrier starts a route, so that long ones are tried only once."""
    return _is_carrier(block) and (block.previous is None or not _is_carrier(block.previous))


def _is_refused(block: Block) -> bool:
    return _is_swap(block) and not _has_log(block)


def _is_last(block: Block) -> bool:
    return not _has_log(block)


def _is_refund(block: Block) -> bool:
    """Return whether a pool returned the carrier's asset: coins with an exit code, or jettons."""
    carrier = block.previous
    if carrier is None:
        return False
    brought, back = read_incoming(carrier), read_incoming(block)
    if back.destination != brought.source:
        return False
    if block.type == JETTON_TRANSFER:
        return carrier.type == JETTON_TRANSFER and block["asset"] == carrier["asset"]
    body = block.message.arguments().skip(64)
    body.coins()
    return body.signed(32) != 0


def _read_min_out(carrier: Block) -> int | None:
    """Return the minimum output of the last step; None for jettons without an order.

    TL-B: swap#c442500f min_out:Coins deadline:uint40 next:(Maybe ^Step); step$_ pool:MsgAddress
    min_out:Coins deadline:uint40 next:(Maybe ^Step).
    """
    if not _is_swap(carrier):
        return None
    body = read_order(carrier).skip(32)
    while True:
        min_out = body.coins()
        step = body.skip(_DEADLINE_BITS).maybe_ref()
        if step is None:
            return min_out
        step.address()
        body = step


def _read_log(log: Block) -> tuple[int, int]:
    """Return the incoming and outgoing amounts of 78e79ba4: x_to_y:Bool in:Coins out:Coins …."""
    body = log.message.arguments().skip(1)
    return body.coins(), body.coins()


def _is_failure(log: Block) -> bool:
    return log.transaction.aborted or log.transaction.exit_code not in {0, None}


def _make_swap(match: Match) -> Draft | None:
    """Draft a swap with the amounts of its logs and the assets of its transfers."""
    out, logs = match["out"], match.all("log")
    if out.type == JETTON_TRANSFER and _is_swap(out):
        return None
    carriers = sorted(match.all("carrier"), key=lambda block: block.min_lt)
    logs.sort(key=lambda block: block.min_lt)
    amounts = [_read_log(log) for log in logs]
    legs = [read_incoming(block) for block in (*carriers, out)]
    hops = [
        Hop(legs[place].asset, came, legs[place + 1].asset, went)
        for place, (came, went) in enumerate(amounts)
    ]
    columns = show_swap(
        DEX,
        legs[0]._replace(amount=amounts[0][0]),
        legs[-1]._replace(amount=amounts[-1][1]),
        hops=hops if len(hops) > 1 else (),
        min_out_amount=_read_min_out(carriers[0]),
    )
    return Draft("jetton_swap", columns, failed=any(map(_is_failure, logs)))


def _make_refused(match: Match) -> Draft:
    """Draft a swap refused by the pool, which paid the incoming asset back."""
    incoming = read_incoming(match.block)
    other = _find_other_asset(match.interfaces, incoming)
    outgoing = Leg(0, incoming.destination, None, incoming.source, None, other)
    columns = show_swap(DEX, incoming, outgoing, min_out_amount=_read_min_out(match.block))
    return Draft("jetton_swap", columns, failed=True)


def _find_other_asset(interfaces: Interfaces, incoming: Leg) -> str | None:
    """Return the other asset of a pool; None for coins and for unknown pools."""
    facts = interfaces.find(incoming.destination, "DedustPool") or {}
    assets = [asset["address"] for asset in facts.get("assets") or ()]
    return next((asset for asset in assets if asset != incoming.asset), None)


def carrier() -> Pattern:
    """Return the pattern of coins or jettons sent to a pool, with excesses and bounces."""
    return one_of(call(PAY_NATIVE).with_excesses, built(JETTON_TRANSFER).with_excesses)


_CARRIER = carrier().where(_is_carrier).named("carrier")
_OUT = one_of(call(PAYOUT), built(JETTON_TRANSFER).where(_is_last)).named("out")
_LOG = call(SWAP_LOG, name="log")

SWAP_RULE = Rule(
    "dedust_v2.swap",
    _CARRIER.where(_is_first).then(_LOG, repeat(_CARRIER.then(_LOG), until=_OUT)),
    _make_swap,
)
REFUSED_RULE = Rule(
    "dedust_v2.refused_swap",
    carrier()
    .where(_is_refused)
    .then(one_of(call(PAYOUT), built(JETTON_TRANSFER)).where(_is_refund)),
    _make_refused,
)
