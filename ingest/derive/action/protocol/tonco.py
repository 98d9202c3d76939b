"""TONCO: pools with concentrated liquidity: swaps, and creation of pools.

Jettons are sent to a router, which calls a pool (a7fb58f8); the pool orders the router to pay
(a1daa96d). Coins pass through a wallet of a jetton that represents TON (01f3835d).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tonlake.ingest.derive.action.pattern import EXCESS_OPCODE, call
from tonlake.ingest.derive.action.protocol.jetton import asset_of
from tonlake.ingest.derive.action.protocol.swap import (
    SENT,
    Hop,
    Leg,
    pay,
    read_paid,
    read_sent,
    show_swap,
)
from tonlake.ingest.derive.action.rule import Draft, Rule

if TYPE_CHECKING:
    from tonlake.ingest.derive.action.block import Block, Columns
    from tonlake.ingest.derive.action.interface import Interfaces
    from tonlake.ingest.derive.action.pattern import Match

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


def _make_swap(match: Match) -> Draft | None:
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


def _make_deploy_pool(match: Match) -> Draft:
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


SWAP_RULE = Rule(
    "tonco.swap",
    call(SWAP, name="swap").then(pay(PAY_TO, SWAP, _MAX_HOPS)).after(SENT),
    _make_swap,
)
DEPLOY_POOL_RULE = Rule(
    "tonco.deploy_pool",
    call(CREATE_POOL).then(call(INIT_POOL, name="init").then(call(EXCESS_OPCODE).maybe)),
    _make_deploy_pool,
)
