"""TONCO: deposits of liquidity into a pool as a position (an NFT), and withdrawals."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tonlake.ingest.derive.action.pattern import EXCESS_OPCODE, built, call
from tonlake.ingest.derive.action.protocol.jetton import JETTON_TRANSFER, asset_of
from tonlake.ingest.derive.action.protocol.swap import (
    SENT,
    Leg,
    paid_out,
    read_jettons,
    read_paid,
    read_sent,
)
from tonlake.ingest.derive.action.protocol.tonco import DEX, PAY_TO, find_asset, read_payment
from tonlake.ingest.derive.action.rule import Draft, Rule

if TYPE_CHECKING:
    from tonlake.ingest.derive.action.block import Block, Columns
    from tonlake.ingest.derive.action.pattern import Match

FUND, ADD_LIQUIDITY, MINT_AND_REFUND = 0x4468DE77, 0x3EBE5431, 0x81702EF8
START_BURN, POSITION_BURN, BURN = 0x530B5F2C, 0x46CA335A, 0xD73AC09D


class _Target(NamedTuple):
    """The requested position, side by side."""

    amounts: tuple[int, int]
    liquidity: int
    tick_lower: int
    tick_upper: int


def _read_target(fund: Block) -> _Target:
    """Read the body of 4468de77.

    TL-B: query_id:uint64 owner_address:MsgAddress amount0:Coins amount1:Coins enough0:Coins
    enough1:Coins liquidity:uint128 tick_lower:int24 tick_upper:int24.
    """
    body = fund.message.arguments().skip(64)
    body.address()
    body.coins()
    body.coins()
    return _Target(
        amounts=(body.coins(), body.coins()),
        liquidity=body.uint(128),
        tick_lower=body.signed(24),
        tick_upper=body.signed(24),
    )


def _make_deposit(match: Match) -> Draft | None:
    """Draft the payment of one side, or the position that is minted once both have arrived."""
    incoming = read_sent(match)
    fund, add, minted = match["fund"], match.block, match.get("minted")
    if incoming is None:
        return None
    target, side = _read_target(fund), _read_side(fund)
    excesses = [_read_excess(block) for block in match.all("excess")]
    nft = match.get("nft")
    assets = _find_assets(match, incoming, side)
    data: Columns = {
        "dex": DEX,
        "amount1": incoming.amount,
        "amount2": None,
        "asset1": incoming.asset,
        "asset2": None,
        "user_jetton_wallet_1": incoming.source_wallet if side == 0 else None,
        "user_jetton_wallet_2": incoming.source_wallet if side == 1 else None,
        "lp_tokens_minted": None if minted is None else target.liquidity,
        "tick_lower": target.tick_lower,
        "tick_upper": target.tick_upper,
        "nft_index": None,
        "nft_address": None,
        "target_amount_1": target.amounts[0],
        "target_amount_2": target.amounts[1],
        "target_asset_1": assets[0],
        "target_asset_2": assets[1],
        "vault_excesses": excesses,
    }
    if nft is not None:
        item = match.interfaces.nft_item(nft["asset_secondary"])
        data |= {
            "nft_address": nft["asset_secondary"],
            "nft_index": None if item is None else item.item_index,
        }
    columns = {
        "source": incoming.source,
        "source_secondary": incoming.source_wallet,
        "destination": fund.message.destination,
        "destination_secondary": add.message.destination,
        "dex_deposit_liquidity_data": data,
    }
    return Draft("tonco_deposit_liquidity", columns, served="dex_deposit_liquidity")


def _read_side(fund: Block) -> int:
    """Return the side of the pool that a payment was for: the one with an amount."""
    body = fund.message.arguments().skip(64)
    body.address()
    return 0 if body.coins() else 1


def _read_excess(block: Block) -> Columns:
    """Return an amount that the position did not need."""
    leg = read_paid(block)
    return {"asset": leg.asset, "amount": leg.amount}


def _find_assets(match: Match, incoming: Leg, side: int) -> tuple[str | None, str | None]:
    """Return the assets of both sides: the incoming one, and the other from the payload.

    TL-B of the payload: 4468de77 other_jetton_wallet:MsgAddress.
    """
    other = find_asset(match.interfaces, _read_other_wallet(match))
    return (incoming.asset, other) if side == 0 else (other, incoming.asset)


def _read_other_wallet(match: Match) -> str | None:
    sent = match["in"]
    if sent.type == JETTON_TRANSFER:
        payload = sent["payload"]
        return None if payload is None else payload.copy().skip(32).address()
    body = sent.message.arguments().skip(64)
    body.coins()
    body.address()
    return body.either_ref().skip(32).address()


def _read_payout(block: Block) -> Leg:
    """Return the leg of the router's payment; coins without a last message keep their jetton."""
    return read_jettons(block, raw=True) if block.type == JETTON_TRANSFER else read_paid(block)


def _make_withdraw(match: Match) -> Draft:
    """Draft the burn of a position, in whole or in part."""
    message, position, burn = match.block.message, match["position"], match["burn"]
    body = message.arguments().skip(64)
    index, liquidity = body.uint(64), body.uint(128)
    payment = read_payment(match["payment"])
    paid = {leg.source_wallet: leg for leg in map(_read_payout, match.all("paid"))}
    data: Columns = {
        "dex": DEX,
        "lp_tokens_burnt": liquidity,
        "burned_nft_index": index,
        "burned_nft_address": position.message.destination,
        "tick_lower": body.signed(24),
        "tick_upper": body.signed(24),
    }
    for number, (amount, wallet) in enumerate(
        zip(payment.amounts, payment.wallets, strict=True), start=1
    ):
        known = match.interfaces.jetton_wallet(wallet)
        is_coins = known is not None and asset_of(known.jetton) is None
        leg = paid.get(None if is_coins else wallet)
        asset = find_asset(match.interfaces, wallet) if leg is None else leg.asset
        data |= {
            f"amount{number}": amount,
            f"asset{number}_out": asset,
            f"user_jetton_wallet_{number}": message.source
            if leg is None
            else leg.destination_wallet,
            f"dex_wallet_{number}": burn.message.destination if leg is None else leg.source,
            f"dex_jetton_wallet_{number}": None if is_coins or asset is None else wallet,
        }
    columns = {
        "source": message.source,
        "destination": message.destination,
        "dex_withdraw_liquidity_data": data,
    }
    return Draft(
        "tonco_withdraw_liquidity",
        columns,
        served="dex_withdraw_liquidity",
    )


DEPOSIT_RULE = Rule(
    "tonco.deposit_liquidity",
    call(ADD_LIQUIDITY)
    .then(
        call(MINT_AND_REFUND, name="minted")
        .then(
            call(PAY_TO).then(paid_out("excess").maybe, paid_out("excess").maybe).maybe,
            built("nft_mint", name="nft"),
            call(EXCESS_OPCODE).maybe,
        )
        .maybe
    )
    .after(call(FUND, name="fund").after(SENT)),
    _make_deposit,
)
WITHDRAW_RULE = Rule(
    "tonco.withdraw_liquidity",
    call(START_BURN).then(
        call(POSITION_BURN, name="position").then(
            call(BURN, name="burn").then(
                call(PAY_TO, name="payment").then(paid_out("paid").maybe, paid_out("paid").maybe)
            )
        )
    ),
    _make_withdraw,
)
