"""Ston.fi, version 2: liquidity that is paid in, side by side, and taken out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tonlake.ingest.derive.action.pattern import anything, built, call, one_of
from tonlake.ingest.derive.action.protocol.jetton import (
    INTERNAL,
    JETTON_TRANSFER,
    NOTIFY,
    PTON_TRANSFER,
)
from tonlake.ingest.derive.action.protocol.router import paid_out, read_sent
from tonlake.ingest.derive.action.protocol.stonfi import DEX, PAY_TO
from tonlake.ingest.derive.action.protocol.swap import (
    Leg,
    read_jettons,
    read_paid_coins,
    show_payouts,
)
from tonlake.ingest.derive.action.rule import Draft, Rule

if TYPE_CHECKING:
    from tonlake.ingest.derive.action.block import Block, Columns
    from tonlake.ingest.derive.action.interface import Interfaces
    from tonlake.ingest.derive.action.pattern import Match

PROVIDE, ADD_LIQUIDITY, CALL_BACK = 0x37C096DF, 0x50C6A654, 0x06ECD527
BURN_NOTIFICATION, REFUND_ME, REFUNDED = 0x297437CF, 0x132B9A2C, 0x0F98E2B8
DEPOSIT = "dex_deposit_liquidity"
_DATA = "dex_deposit_liquidity_data"


def _make_deposit(match: Match, _interfaces: Interfaces) -> Draft | None:
    """One side is paid in; the other one, if the same message sent it, belongs to the action."""
    incoming = read_sent(match)
    if incoming is None:
        return None
    minted, part = match.get("minted"), match.get("part")
    data: Columns = {
        "dex": DEX,
        "asset1": incoming.asset,
        "amount1": incoming.amount,
        "user_jetton_wallet_1": incoming.source_wallet,
        "asset2": None,
        "amount2": None,
        "user_jetton_wallet_2": None,
        "lp_tokens_minted": None if minted is None else minted.message.arguments().skip(64).coins(),
    }
    if part is not None:
        other = part[_DATA]
        for name in ("asset", "amount", "user_jetton_wallet_"):
            data[f"{name}2"], data[f"{name}1"] = data[f"{name}1"], other[f"{name}1"]
    columns = {
        "source": incoming.source,
        "destination": match.block.message.destination,
        "destination_secondary": match["account"].message.destination,
        _DATA: data,
    }
    return Draft(DEPOSIT, columns, failed="refund" in match)


def _is_part(block: Block) -> bool:
    data = block[_DATA]
    return data is not None and data["dex"] == DEX


def _make_withdraw(match: Match, _interfaces: Interfaces) -> Draft | None:
    """A pool pays both sides out: for tokens that were burnt, or what it could not use."""
    pool = match.block.message.source
    paid = [each for each in match.block.following if each.type == JETTON_TRANSFER]
    legs = [_read_payout(block) for block in paid]
    if not legs:
        return None
    burn = match.get("burn")
    data: Columns = {"dex": DEX, "is_refund": burn is None}
    data["lp_tokens_burnt"] = None if burn is None else burn["amount"]
    data |= show_payouts(legs[:2])
    asked = match.get("asked")
    columns: Columns = {
        "source": burn["source"] if burn is not None else None,
        "source_secondary": burn["source_secondary"] if burn is not None else None,
        "destination": pool,
        "asset": burn["asset"] if burn is not None else None,
        "dex_withdraw_liquidity_data": data,
    }
    if burn is None:
        columns["source"] = legs[0].destination if asked is None else asked.message.source
    return Draft("dex_withdraw_liquidity", columns, more=paid)


def _read_payout(block: Block) -> Leg:
    """Return the leg of a payment; coins leave through the wallet that stands for them."""
    for after in block.following:
        if after.opcode == PTON_TRANSFER:
            return read_paid_coins(after)
    return read_jettons(block)


_PART = anything().then(built(DEPOSIT, name="part").where(_is_part)).maybe
_COINS = call(PTON_TRANSFER, name="in").after(_PART)
_JETTONS = built(JETTON_TRANSFER, name="in").after(_PART)

DEPOSIT_RULE = Rule(
    "stonfi.deposit_liquidity",
    call(PROVIDE)
    .then(
        call(ADD_LIQUIDITY, name="account").then(
            call(CALL_BACK)
            .then(one_of(call(INTERNAL, name="minted"), call(ADD_LIQUIDITY, name="refund")))
            .maybe
        )
    )
    .after(
        one_of(
            call(NOTIFY, name="notify").after(_COINS),
            _JETTONS,
            call(NOTIFY).after(call(INTERNAL).after(_JETTONS)),
        )
    ),
    _make_deposit,
)
WITHDRAW_RULE = Rule(
    "stonfi.withdraw_liquidity",
    call(PAY_TO)
    .then(paid_out("out"))
    .after(
        one_of(
            call(REFUNDED).after(call(REFUND_ME, name="asked").maybe),
            call(BURN_NOTIFICATION).after(built("jetton_burn", name="burn").maybe),
        )
    ),
    _make_withdraw,
)
