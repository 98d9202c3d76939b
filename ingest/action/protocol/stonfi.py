"""Ston.fi: swaps of version 1, and of version 2 with several hops."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from ingest.action.pattern import Pattern, built, call, one_of
from ingest.action.protocol.jetton import NOTIFY, PTON_TRANSFER, TRANSFER
from ingest.action.protocol.swap import (
    Hop,
    Leg,
    read_coins,
    read_jettons,
    read_paid_coins,
    show_swap,
)
from ingest.action.rule import Draft, Rule

if TYPE_CHECKING:
    from ingest.action.block import Block
    from ingest.action.interface import Interfaces
    from ingest.action.pattern import Match

SWAP_V1, PAYMENT_V1 = 0x25938561, 0xF93BB43F
SWAP, PAY_TO = 0x6664DE2A, 0x657B54F5
OK_CODE, REFERRAL_CODE = 0xC64370E5, 0x45078540
DEX_V1, DEX = "stonfi", "stonfi_v2"
JETTON_TRANSFER = "jetton_transfer"
_MOST_HOPS = 4


def _read_code_v1(payment: Block) -> int:
    """Return the exit code in f93bb43f. TL-B: query_id:uint64 owner:MsgAddress exit_code:uint32."""
    body = payment.message.arguments().skip(64)
    body.address()
    return body.uint(32)


def _is_main_payment(block: Block) -> bool:
    """Whether a payment of version 1 is the swap's own, not the referrer's."""
    return _read_code_v1(block) != REFERRAL_CODE


def _make_swap_v1(match: Match, _interfaces: Interfaces) -> Draft:
    """A swap of version 1; the wallet of the receiver is that of the router, as served."""
    block, paid = match.block, match["out"]
    incoming, outgoing = read_jettons(block, raw=True), read_jettons(paid, raw=True)
    if incoming.destination_wallet is None:
        incoming = incoming._replace(destination_wallet=block["wallet"])
    columns = show_swap(DEX_V1, incoming, outgoing)
    columns["destination_secondary"] = paid["wallet"]
    failed = _read_code_v1(match["payment"]) != OK_CODE
    return Draft("jetton_swap", columns, failed=failed)


def read_code(payment: Block) -> int:
    """Return the exit code in 657b54f5.

    TL-B: query_id:uint64 to_address:MsgAddress excesses_address:MsgAddress
    original_caller:MsgAddress exit_code:uint32.
    """
    body = payment.message.arguments().skip(64)
    for _ in range(3):
        body.address()
    return body.uint(32)


def _make_swap(match: Match, _interfaces: Interfaces) -> Draft | None:
    """A swap of version 2; one that pays back what came in failed."""
    sent, paid = match.get("in"), match.get("out")
    if sent is None or paid is None:
        return None
    if sent.type == JETTON_TRANSFER:
        incoming = read_jettons(sent)
    else:
        incoming = read_coins(sent, match["notify"].message.destination)
    outgoing = _read_paid(paid)
    between = [_read_paid(block) for block in match.all("between")]
    stops = [incoming, *between, outgoing]
    hops = [
        Hop(before.asset, before.amount, after.asset, after.amount)
        for before, after in itertools.pairwise(stops)
    ]
    codes = {read_code(block) for block in match.all("payment")}
    columns = show_swap(DEX, incoming, outgoing, hops=hops if between else ())
    failed = codes != {OK_CODE} or outgoing.asset == incoming.asset
    return Draft("jetton_swap", columns, failed=failed)


def _read_paid(block: Block) -> Leg:
    return read_jettons(block) if block.type == JETTON_TRANSFER else read_paid_coins(block)


def paid_out(name: str) -> Pattern:
    """Return the pattern of what a router pays: coins through their wallet, or jettons."""
    return one_of(
        Pattern(TRANSFER, JETTON_TRANSFER).then(call(PTON_TRANSFER, name=name)),
        built(JETTON_TRANSFER, name=name),
    )


def _pay(hops_left: int) -> Pattern:
    """Return the pattern of a payment: out, or into the next of several swaps."""
    payment = call(PAY_TO, name="payment")
    if not hops_left:
        return payment.then(paid_out("out"))
    again = call(SWAP).then(_pay(hops_left - 1))
    coins = call(PTON_TRANSFER, name="between").then(call(NOTIFY).then(again))
    return payment.then(
        one_of(
            Pattern(TRANSFER, JETTON_TRANSFER).then(coins),
            built(JETTON_TRANSFER, name="between").then(again),
            paid_out("out"),
        )
    )


SWAP_V1_RULE = Rule(
    "stonfi.swap_v1",
    built(JETTON_TRANSFER).then(
        call(SWAP_V1).then(
            call(PAYMENT_V1, name="payment")
            .where(_is_main_payment)
            .then(built(JETTON_TRANSFER, name="out"))
        )
    ),
    _make_swap_v1,
)
SWAP_RULE = Rule(
    "stonfi.swap",
    call(SWAP)
    .then(_pay(_MOST_HOPS))
    .after(
        one_of(
            built(JETTON_TRANSFER, name="in"),
            call(NOTIFY, name="notify").after(call(PTON_TRANSFER, name="in")),
        )
    ),
    _make_swap,
)
