"""TONCO: pools with concentrated liquidity: swaps, creation of pools, deposits, withdrawals.

Jettons are sent to a router, which calls a pool (a7fb58f8); the pool orders the router to pay
(a1daa96d). Coins pass through a wallet of a jetton that represents TON (01f3835d). A deposit
becomes a position (an NFT).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tonlake.ingest.derive.action.pattern import EXCESS_OPCODE, Match, built, call
from tonlake.ingest.derive.action.protocol.jetton import JETTON_TRANSFER, asset_of
from tonlake.ingest.derive.action.protocol.swap import (
    SENT,
    Hop,
    Leg,
    paid_out,
    pay,
    read_jettons,
    read_paid,
    read_sent,
    show_swap,
)
from tonlake.ingest.derive.action.rule import Block, Columns, Draft, rule

if TYPE_CHECKING:
    from tonlake.ingest.derive.action.interface import Interfaces


SWAP, PAY_TO = 0xA7FB58F8, 0xA1DAA96D
CREATE_POOL, INIT_POOL = 0x2E3034EF, 0x441C39ED
DEX = "tonco"
_OK_CODES = {0, 200}
_MAX_HOPS = 4


class Payment(NamedTuple):
    """Body of a1daa96d: two sides of a pool, each an amount and the router's wallet."""

    exit_code: int
    amounts: tuple[int, int]
    wallets: tuple[str | None, str | None]


def read_payment(block: Block) -> Payment:
    """Read the payment that a pool orders from the router.

    TL-B: query_id:uint64 reciever0:MsgAddress reciever1:MsgAddress exit_code:uint32 seqno:uint64
    coinsinfo_cell:(Maybe ^[amount0:Coins jetton0:MsgAddress amount1:Coins jetton1:MsgAddress]).

    Raises:
        LookupError: it has no amounts.
    """
    body = block.message.arguments().skip(64)
    body.address()
    body.address()
    exit_code = body.uint(32)
    coins = body.skip(64).maybe_ref()
    if coins is None:
        raise LookupError("a payment of TONCO has no amounts")
    first, first_wallet = coins.coins(), coins.address()
    second, second_wallet = coins.coins(), coins.address()
    return Payment(exit_code, (first, second), (first_wallet, second_wallet))


def find_asset(interfaces: Interfaces, wallet: str | None) -> str | None:
    """Return the asset of a wallet of the router; None for coins."""
    known = interfaces.jetton_wallet(wallet)
    return None if known is None else asset_of(known.jetton)


def _list_hops(
    interfaces: Interfaces,
    swaps: list[Block],
    payments: list[Payment],
    incoming: Leg,
    outgoing: Leg,
) -> list[Hop]:
    """Return the consecutive swaps; the output of one is the input of the next."""
    hops: list[Hop] = []
    asset, amount = incoming.asset, incoming.amount
    for swap, payment in zip(swaps, payments, strict=True):
        came_by = _read_source_wallet(swap)
        side = 1 if payment.wallets[0] == came_by else 0
        out_asset, out_amount = find_asset(interfaces, payment.wallets[side]), payment.amounts[side]
        if swap is swaps[-1]:
            out_asset, out_amount = outgoing.asset, outgoing.amount or 0
        hops.append(Hop(asset, amount, out_asset, out_amount))
        asset, amount = out_asset, out_amount
    return hops


def _read_source_wallet(swap: Block) -> str | None:
    """Return the router's wallet through which a swap was paid.

    TL-B: query_id:uint64 owner_address:MsgAddress source_wallet:MsgAddress.
    """
    body = swap.message.arguments().skip(64)
    body.address()
    return body.address()


def _read_min_out(swap: Block) -> int:
    """Return the requested minimum amount.

    TL-B of swap_params: amount:Coins sqrt_price_limit:uint160 min_out_amount:Coins.
    """
    params = swap.message.arguments().ref()
    params.coins()
    return params.skip(160).coins()


def _read_pool_active(init: Block) -> bool:
    """Return whether a new pool is active.

    TL-B: query_id:uint64 from_admin:Bool has_admin:Bool admin_address:MsgAddress
    has_controller:Bool controller_address:MsgAddress set_spacing:Bool tick_spacing:int24
    set_price:Bool initial_price_x96:uint160 set_active:Bool pool_active:Bool.
    """
    body = init.message.arguments().skip(64 + 2)
    body.address()
    body.skip(1).address()
    return body.skip(1 + 24 + 1 + 160 + 1).bit()


@rule("tonco.swap", call(SWAP, name="swap").then(pay(PAY_TO, SWAP, _MAX_HOPS)).after(SENT))
def swap(match: Match) -> Draft | None:
    """Draft a swap of one or several hops; it failed if it pays back the incoming asset."""
    incoming, out = read_sent(match), match.get("out")
    if incoming is None or out is None:
        return None
    outgoing, swaps = read_paid(out), match.all("swap")
    payments = [read_payment(block) for block in match.all("payment")]
    source_wallet = _read_source_wallet(swaps[-1])
    paid_back = payments[-1]
    other = next((each for each in paid_back.wallets if each != source_wallet), None)
    requested = find_asset(match.interfaces, other)
    hops = _list_hops(match.interfaces, swaps, payments, incoming, outgoing)
    failed = paid_back.exit_code not in _OK_CODES or outgoing.asset == incoming.asset
    columns = show_swap(
        DEX,
        incoming,
        outgoing,
        hops=hops if len(hops) > 1 else (),
        # As in TON Center: the amount received, if the swap succeeded.
        min_out_amount=_read_min_out(swaps[-1]) if failed else outgoing.amount,
        asset_out=requested,
    )
    return Draft("jetton_swap", columns, failed=failed)


@rule(
    "tonco.deploy_pool",
    call(CREATE_POOL).then(call(INIT_POOL, name="init").then(call(EXCESS_OPCODE).maybe)),
)
def deploy_pool(match: Match) -> Draft:
    """Draft the creation of a pool of two jettons by a router."""
    message, init = match.block.message, match["init"]
    body = message.arguments().skip(64)
    wallets = body.address(), body.address()
    data: Columns = {
        "jetton0_router_wallet": wallets[0],
        "jetton1_router_wallet": wallets[1],
        "tick_spacing": body.signed(24),
        "initial_price_x96": body.uint(160),
        "protocol_fee": body.uint(16),
        "lp_fee_base": body.uint(16),
        "lp_fee_current": body.uint(16),
        "pool_active": _read_pool_active(init),
    }
    body.ref()
    body.ref()
    minters = body.ref()
    data |= {"jetton0_minter": minters.address(), "jetton1_minter": minters.address()}
    columns = {
        "source": message.source,
        "destination": message.destination,
        "destination_secondary": init.message.destination,
        "tonco_deploy_pool_data": data,
    }
    return Draft("tonco_deploy_pool", columns)


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


@rule(
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
)
def deposit_liquidity(match: Match) -> Draft | None:
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


@rule(
    "tonco.withdraw_liquidity",
    call(START_BURN).then(
        call(POSITION_BURN, name="position").then(
            call(BURN, name="burn").then(
                call(PAY_TO, name="payment").then(paid_out("paid").maybe, paid_out("paid").maybe)
            )
        )
    ),
)
def withdraw_liquidity(match: Match) -> Draft:
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
    return Draft("tonco_withdraw_liquidity", columns, served="dex_withdraw_liquidity")
