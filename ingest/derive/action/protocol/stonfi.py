"""Ston.fi: swaps of version 1, and of version 2 with several hops."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from tonlake.ingest.derive.action.pattern import built, call
from tonlake.ingest.derive.action.protocol.jetton import JETTON_TRANSFER, PTON_MASTERS
from tonlake.ingest.derive.action.protocol.router import SENT, pay, read_paid, read_sent
from tonlake.ingest.derive.action.protocol.swap import Hop, read_jettons, show_swap
from tonlake.ingest.derive.action.rule import Draft, Rule
from tonlake.ingest.errors import ActionUnreadable

if TYPE_CHECKING:
    from tonlake.ingest.derive.action.block import Block
    from tonlake.ingest.derive.action.interface import Interfaces
    from tonlake.ingest.derive.action.pattern import Match

SWAP_V1, PAYMENT_V1 = 0x25938561, 0xF93BB43F
SWAP, PAY_TO = 0x6664DE2A, 0x657B54F5
OK_CODE, REFERRAL_CODE = 0xC64370E5, 0x45078540
DEX_V1, DEX = "stonfi", "stonfi_v2"
_MOST_HOPS = 4


def _read_code_v1(payment: Block) -> int:
    """Return the exit code in f93bb43f. TL-B: query_id:uint64 owner:MsgAddress exit_code:uint32."""
    body = payment.message.arguments().skip(64)
    body.address()
    return body.uint(32)


def _is_main_payment(block: Block) -> bool:
    """Whether a payment of version 1 is the swap's own, not the referrer's."""
    return _read_code_v1(block) != REFERRAL_CODE


def _make_swap_v1(match: Match, interfaces: Interfaces) -> Draft:
    """A swap of version 1; the wallet of the receiver is that of the router, as served.

    TL-B of the payload that asks for it: swap#25938561 token_wallet:MsgAddress ….
    """
    block, paid = match.block, match["out"]
    incoming, outgoing = read_jettons(block, raw=True), read_jettons(paid, raw=True)
    if incoming.destination_wallet is None:
        incoming = incoming._replace(destination_wallet=block["wallet"])
    if outgoing.source_wallet is not None:
        sender = interfaces.jetton_wallet(outgoing.source_wallet)
        outgoing = outgoing._replace(asset=None if sender is None else sender.jetton)
    columns = show_swap(DEX_V1, incoming, outgoing)
    columns["destination_secondary"] = paid["wallet"]
    payload = block["payload"]
    if payload is not None and payload.peek_opcode() == SWAP_V1:
        requested = payload.copy().skip(32).address()
        known = interfaces.jetton_wallet(requested)
        columns |= {
            "destination_secondary": requested,
            "asset2": None if known is None else known.jetton,
        }
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


def _make_swap(match: Match, interfaces: Interfaces) -> Draft | None:
    """A swap of version 2; one that pays back what came in failed.

    Of several hops, each that pays jettons does so from a known wallet.

    Raises:
        ActionUnreadable: one of these wallets is not known.
    """
    incoming, out = read_sent(match), match.get("out")
    if incoming is None or out is None:
        return None
    if out["asset"] in PTON_MASTERS:
        return None  # the order alone: the coins did not go out
    outgoing, later = read_paid(out), match.all("between")
    if later and not all(_is_known(block, interfaces) for block in (*later, out)):
        raise ActionUnreadable("a wallet that pays in the middle of a swap is not known")
    between = [read_paid(block) for block in later]
    stops = [incoming, *between, outgoing]
    hops = [
        Hop(before.asset, before.amount, after.asset, after.amount)
        for before, after in itertools.pairwise(stops)
    ]
    codes = {read_code(block) for block in match.all("payment")}
    columns = show_swap(DEX, incoming, outgoing, hops=hops if between else ())
    failed = codes != {OK_CODE} or outgoing.asset == incoming.asset
    return Draft("jetton_swap", columns, failed=failed)


def _is_known(paid: Block, interfaces: Interfaces) -> bool:
    """Whether a payment is one of coins, or of a known jetton wallet."""
    if paid.type != JETTON_TRANSFER or paid["source_secondary"] is None:
        return True
    return interfaces.jetton_wallet(paid["source_secondary"]) is not None


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
    call(SWAP, name="swap").then(pay(PAY_TO, SWAP, _MOST_HOPS)).after(SENT),
    _make_swap,
)
