"""Ston.fi: swaps of version 1, swaps of version 2 with several hops, and liquidity."""

import itertools

from tonlake.ingest.derive.action.interface import Interfaces
from tonlake.ingest.derive.action.pattern import Match, anything, built, call, jettons, one_of
from tonlake.ingest.derive.action.protocol import exchange, jetton
from tonlake.ingest.derive.action.rule import JETTON_TRANSFER, Block, Columns, rule
from tonlake.ingest.errors import BodyError

SWAP_V1, PAYMENT_V1 = 0x25938561, 0xF93BB43F
SWAP, PAY_TO = 0x6664DE2A, 0x657B54F5
OK_CODE, REFERRAL_CODE = 0xC64370E5, 0x45078540
DEX_V1, DEX = "stonfi", "stonfi_v2"
_MAX_HOPS = 4


def _read_code(payment: Block, addresses: int) -> int:
    """Return the exit code of a payment.

    TL-B: query_id:uint64 owner:MsgAddress exit_code:uint32 in f93bb43f; query_id:uint64
    to_address:MsgAddress excesses_address:MsgAddress original_caller:MsgAddress exit_code:uint32 in
    657b54f5.
    """
    code: int = payment.fields().take(*["address"] * addresses, 32)[-1]
    return code


def _is_known(paid: Block, interfaces: Interfaces) -> bool:
    """Return whether a payment is in coins, or from a known jetton wallet."""
    if paid.type != JETTON_TRANSFER or paid["source_secondary"] is None:
        return True
    return interfaces.jetton_wallet(paid["source_secondary"]) is not None


@rule(
    jettons().then(
        call(SWAP_V1).then(
            call(PAYMENT_V1, name="payment")
            .where(lambda block: _read_code(block, 1) != REFERRAL_CODE)
            .then(jettons("out"))
        )
    )
)
def swap_v1(match: Match) -> Block:
    """Draft a swap of version 1; the receiver's wallet is shown as the router's, as in TON Center.

    TL-B of the payload that requests it: swap#25938561 token_wallet:MsgAddress ….
    """
    block, paid = match.block, match["out"]
    incoming, outgoing = (
        exchange.read_jettons(block, raw=True),
        exchange.read_jettons(paid, raw=True),
    )
    if incoming.destination_jetton_wallet is None:
        incoming = incoming._replace(destination_jetton_wallet=block["wallet"])
    if outgoing.source_jetton_wallet is not None:
        outgoing = outgoing._replace(
            asset=match.interfaces.jetton_of(outgoing.source_jetton_wallet)
        )
    columns = exchange.show_swap(DEX_V1, incoming, outgoing)
    columns["destination_secondary"] = paid["wallet"]
    payload = block["payload"]
    if payload is not None and payload.peek_opcode() == SWAP_V1:
        requested = payload.copy().skip(32).address()
        columns["destination_secondary"] = requested
        columns["asset2"] = match.interfaces.jetton_of(requested)
    failed = _read_code(match["payment"], 1) != OK_CODE
    return Block("jetton_swap", columns, failed=failed)


@rule(call(SWAP, name="swap").then(exchange.pay(PAY_TO, SWAP, _MAX_HOPS)).after(exchange.SENT))
def swap(match: Match) -> Block | None:
    """Draft a swap of version 2; it failed if it pays back the incoming asset."""
    incoming, out = exchange.read_sent(match), match.get("out")
    if incoming is None or out is None:
        return None
    if out["asset"] in jetton.PTON_MASTERS:
        return None  # order only: the coins were not sent
    payments = [*match.all("between"), out]
    if len(payments) > 1 and not all(_is_known(block, match.interfaces) for block in payments):
        raise BodyError("a wallet that pays in the middle of a swap is unknown")
    stops = [incoming, *map(exchange.read_paid, payments)]
    outgoing = stops[-1]
    hops = [
        exchange.Hop(before.asset, before.amount, after.asset, after.amount)
        for before, after in itertools.pairwise(stops)
    ]
    codes = {_read_code(block, 3) for block in match.all("payment")}
    columns = exchange.show_swap(DEX, incoming, outgoing, hops=hops)
    failed = codes != {OK_CODE} or outgoing.asset == incoming.asset
    return Block("jetton_swap", columns, failed=failed)


PROVIDE, ADD_LIQUIDITY, CALL_BACK = 0x37C096DF, 0x50C6A654, 0x06ECD527
BURN_NOTIFICATION, REFUND_ME, REFUNDED = 0x297437CF, 0x132B9A2C, 0x0F98E2B8
DEPOSIT = "dex_deposit_liquidity"
_DATA = "dex_deposit_liquidity_data"


def _read_payout(block: Block) -> exchange.Leg:
    """Return the leg of a payment; coins are sent through the wallet of pTON."""
    for after in block.following:
        if after.opcode == jetton.PTON_TRANSFER:
            return exchange.read_paid_coins(after)
    return exchange.read_jettons(block)


_PART = (
    anything()
    .then(built(DEPOSIT, name="part").where(lambda block: block[_DATA]["dex"] == DEX))
    .maybe
)
_COINS = call(jetton.PTON_TRANSFER, name="in").after(_PART)
_JETTONS = jettons("in").after(_PART)


@rule(
    call(PROVIDE)
    .then(
        call(ADD_LIQUIDITY, name="account").then(
            call(CALL_BACK)
            .then(one_of(call(jetton.INTERNAL, name="minted"), call(ADD_LIQUIDITY, name="refund")))
            .maybe
        )
    )
    .after(
        one_of(
            call(jetton.NOTIFY, name="notify").after(_COINS),
            _JETTONS,
            call(jetton.NOTIFY).after(call(jetton.INTERNAL).after(_JETTONS)),
        )
    )
)
def deposit_liquidity(match: Match) -> Block | None:
    """Draft the payment of one side; includes the other side if the same message sent it."""
    incoming = exchange.read_sent(match)
    if incoming is None:
        return None
    minted, part = match.get("minted"), match.get("part")
    data = {"dex": DEX, **exchange.show_side(1, incoming), **exchange.show_side(2, exchange.Leg())}
    data["lp_tokens_minted"] = None if minted is None else minted.fields().coins()
    if part is not None:
        other = part[_DATA]
        for name in ("asset", "amount", "user_jetton_wallet_"):
            data[f"{name}2"], data[f"{name}1"] = data[f"{name}1"], other[f"{name}1"]
    columns = {
        "source": incoming.source,
        "destination": match.block["destination"],
        "destination_secondary": match["account"]["destination"],
        _DATA: data,
    }
    return Block(DEPOSIT, columns, failed="refund" in match)


@rule(
    call(PAY_TO)
    .then(exchange.paid_out("out"))
    .after(
        one_of(
            call(REFUNDED).after(call(REFUND_ME, name="asked").maybe),
            call(BURN_NOTIFICATION).after(built("jetton_burn", name="burn").maybe),
        )
    )
)
def withdraw_liquidity(match: Match) -> Block | None:
    """Draft a payout of both sides by a pool: for burnt tokens, or of an unused deposit."""
    paid = [each for each in match.block.following if each.type == JETTON_TRANSFER]
    legs = [_read_payout(block) for block in paid]
    if not legs:
        return None
    is_refund = "burn" not in match
    data = {"dex": DEX, "is_refund": is_refund, "lp_tokens_burnt": match.column("burn", "amount")}
    columns: Columns = {
        name: match.column("burn", name) for name in ("source", "source_secondary", "asset")
    }
    columns["destination"] = match.block["source"]
    columns["dex_withdraw_liquidity_data"] = data | exchange.show_payouts(legs[:2])
    if is_refund:
        columns["source"] = (
            match.column("asked", "source") if "asked" in match else legs[0].destination
        )
    return Block("dex_withdraw_liquidity", columns, more=paid)
