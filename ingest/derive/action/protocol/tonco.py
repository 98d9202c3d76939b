"""TONCO: pools with concentrated liquidity: swaps, creation of pools, deposits, withdrawals.

Jettons are sent to a router, which calls a pool (a7fb58f8); the pool orders the router to pay
(a1daa96d). Coins pass through a wallet of a jetton that represents TON (01f3835d). A deposit
becomes a position (an NFT).
"""

from typing import NamedTuple

from tonlake.ingest.derive.action.interface import Interfaces
from tonlake.ingest.derive.action.pattern import EXCESS_OPCODE, Match, built, call
from tonlake.ingest.derive.action.protocol import exchange
from tonlake.ingest.derive.action.protocol.jetton import PTON_MASTERS, asset_of
from tonlake.ingest.derive.action.rule import JETTON_TRANSFER, Block, Columns, rule

SWAP, PAY_TO = 0xA7FB58F8, 0xA1DAA96D
CREATE_POOL, INIT_POOL = 0x2E3034EF, 0x441C39ED
FUND, ADD_LIQUIDITY, MINT_AND_REFUND = 0x4468DE77, 0x3EBE5431, 0x81702EF8
START_BURN, POSITION_BURN, BURN = 0x530B5F2C, 0x46CA335A, 0xD73AC09D
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
    Raises LookupError if it has no amounts.
    """
    *_, exit_code, _, coins = block.fields().take("address", "address", 32, 64, "maybe_ref")
    if coins is None:
        raise LookupError("a payment of TONCO has no amounts")
    first, first_wallet, second, second_wallet = coins.take("coins", "address", "coins", "address")
    return Payment(exit_code, (first, second), (first_wallet, second_wallet))


def find_asset(interfaces: Interfaces, wallet: str | None) -> str | None:
    """Return the asset of a wallet of the router; None for coins."""
    return asset_of(interfaces.jetton_of(wallet))


def _read_source_wallet(order: Block) -> str | None:
    """Return the router's wallet through which a swap was paid.

    TL-B: query_id:uint64 owner_address:MsgAddress source_wallet:MsgAddress.
    """
    wallet: str | None = order.fields().take("address", "address")[1]
    return wallet


@rule(call(SWAP, name="swap").then(exchange.pay(PAY_TO, SWAP, _MAX_HOPS)).after(exchange.SENT))
def swap(match: Match) -> Block | None:
    """Draft a swap of one or several hops; it failed if it pays back the incoming asset."""
    incoming, out, orders = exchange.read_sent(match), match.get("out"), match.all("swap")
    if incoming is None or out is None:
        return None
    outgoing = exchange.read_paid(out)
    payments = [read_payment(block) for block in match.all("payment")]
    source_wallet = _read_source_wallet(orders[-1])
    other = next((each for each in payments[-1].wallets if each != source_wallet), None)
    hops: list[exchange.Hop] = []
    asset, amount = incoming.asset, incoming.amount
    for order, payment in zip(orders, payments, strict=True):
        side = 1 if payment.wallets[0] == _read_source_wallet(order) else 0
        came = asset, amount
        asset, amount = find_asset(match.interfaces, payment.wallets[side]), payment.amounts[side]
        if order is orders[-1]:
            asset, amount = outgoing.asset, outgoing.amount or 0
        hops.append(exchange.Hop(*came, asset, amount))
    failed = payments[-1].exit_code not in _OK_CODES or outgoing.asset == incoming.asset
    columns = exchange.show_swap(
        DEX,
        incoming,
        outgoing,
        hops=hops,
        # As in TON Center: the amount received, if the swap succeeded. TL-B of swap_params:
        # amount:Coins sqrt_price_limit:uint160 min_out_amount:Coins.
        min_out_amount=orders[-1].arguments().child().take("coins", 160, "coins")[2]
        if failed
        else outgoing.amount,
        asset_out=find_asset(match.interfaces, other),
    )
    return Block("jetton_swap", columns, failed=failed)


@rule(call(CREATE_POOL).then(call(INIT_POOL, name="init").then(call(EXCESS_OPCODE).maybe)))
def deploy_pool(match: Match) -> Block:
    """Draft the creation of a pool of two jettons by a router.

    TL-B of 441c39ed: query_id:uint64 from_admin:Bool has_admin:Bool admin_address:MsgAddress
    has_controller:Bool controller_address:MsgAddress set_spacing:Bool tick_spacing:int24
    set_price:Bool initial_price_x96:uint160 set_active:Bool pool_active:Bool.
    """
    body, init = match.block.fields(), match["init"]
    data = body.show(
        jetton0_router_wallet="address",
        jetton1_router_wallet="address",
        tick_spacing=-24,
        initial_price_x96=160,
        protocol_fee=16,
        lp_fee_base=16,
        lp_fee_current=16,
    )
    started = init.fields()
    started.take(2, "address", 1, "address", 1 + 24 + 1 + 160 + 1)
    data["pool_active"] = started.bit()
    data |= body.take("child", "child", "child")[2].show(
        jetton0_minter="address", jetton1_minter="address"
    )
    columns = match.block.pick("source", "destination") | {
        "destination_secondary": init["destination"],
        "tonco_deploy_pool_data": data,
    }
    return Block("tonco_deploy_pool", columns)


def _read_other_wallet(sent: Block) -> str | None:
    """Return the wallet in the payload. TL-B: 4468de77 other_jetton_wallet:MsgAddress."""
    if sent.type == JETTON_TRANSFER:
        payload = sent["payload"]
    else:
        payload = sent.fields().take("coins", "address", "either_ref")[2]
    return None if payload is None else payload.copy().skip(32).address()


_EXCESS = exchange.paid_out("excess").maybe
_PAID = exchange.paid_out("paid").maybe


@rule(
    call(ADD_LIQUIDITY)
    .then(
        call(MINT_AND_REFUND, name="minted")
        .then(
            call(PAY_TO).then(_EXCESS, _EXCESS).maybe,
            built("nft_mint", name="nft"),
            call(EXCESS_OPCODE).maybe,
        )
        .maybe
    )
    .after(call(FUND, name="fund").after(exchange.SENT))
)
def deposit_liquidity(match: Match) -> Block | None:
    """Draft the payment of one side, or the position that is minted once both have arrived.

    TL-B of 4468de77: query_id:uint64 owner_address:MsgAddress amount0:Coins amount1:Coins
    enough0:Coins enough1:Coins liquidity:uint128 tick_lower:int24 tick_upper:int24. The payment is
    for the side with an amount.
    """
    incoming, fund, nft = exchange.read_sent(match), match["fund"], match.get("nft")
    if incoming is None:
        return None
    _, first, _, *targets, liquidity, lower, upper = fund.fields().take(
        "address", "coins", "coins", "coins", "coins", 128, -24, -24
    )
    excesses = [exchange.show_excess(exchange.read_paid(block)) for block in match.all("excess")]
    other = find_asset(match.interfaces, _read_other_wallet(match["in"]))
    item = match.interfaces.nft_item(nft["asset_secondary"]) if nft is not None else None
    data: Columns = {
        "dex": DEX,
        "amount1": incoming.amount,
        "amount2": None,
        "asset1": incoming.asset,
        "asset2": None,
        "user_jetton_wallet_1": incoming.source_jetton_wallet if first else None,
        "user_jetton_wallet_2": None if first else incoming.source_jetton_wallet,
        "lp_tokens_minted": liquidity if "minted" in match else None,
        "tick_lower": lower,
        "tick_upper": upper,
        "nft_index": None if item is None else item.item_index,
        "nft_address": match.column("nft", "asset_secondary"),
        "target_amount_1": targets[0],
        "target_amount_2": targets[1],
        "target_asset_1": incoming.asset if first else other,
        "target_asset_2": other if first else incoming.asset,
        "vault_excesses": excesses,
    }
    columns = {
        "source": incoming.source,
        "source_secondary": incoming.source_jetton_wallet,
        "destination": fund["destination"],
        "destination_secondary": match.block["destination"],
        "dex_deposit_liquidity_data": data,
    }
    return Block("tonco_deposit_liquidity", columns, served="dex_deposit_liquidity")


@rule(
    call(START_BURN).then(
        call(POSITION_BURN, name="position").then(
            call(BURN, name="burn").then(call(PAY_TO, name="payment").then(_PAID, _PAID))
        )
    )
)
def withdraw_liquidity(match: Match) -> Block:
    """Draft the burn of a position, in whole or in part."""
    block, burn = match.block, match["burn"]
    index, liquidity, lower, upper = block.fields().take(64, 128, -24, -24)
    payment = read_payment(match["payment"])
    # Coins without a last message keep their jetton.
    legs = (exchange.read_paid(each, raw=True) for each in match.all("paid"))
    paid = {leg.source_jetton_wallet: leg for leg in legs}
    data: Columns = {
        "dex": DEX,
        "lp_tokens_burnt": liquidity,
        "burned_nft_index": index,
        "burned_nft_address": match["position"]["destination"],
        "tick_lower": lower,
        "tick_upper": upper,
    }
    for number, (amount, wallet) in enumerate(zip(payment.amounts, payment.wallets, strict=True)):
        is_coins = match.interfaces.jetton_of(wallet) in PTON_MASTERS
        leg = paid.get(None if is_coins else wallet) or exchange.Leg(
            amount=amount,
            source=burn["destination"],
            source_jetton_wallet=wallet,
            destination=block["source"],
            destination_jetton_wallet=block["source"],
            asset=find_asset(match.interfaces, wallet),
        )
        data |= {
            f"amount{number + 1}": amount,
            f"asset{number + 1}_out": leg.asset,
            f"user_jetton_wallet_{number + 1}": leg.destination_jetton_wallet,
            f"dex_wallet_{number + 1}": leg.source,
            f"dex_jetton_wallet_{number + 1}": None if is_coins or leg.asset is None else wallet,
        }
    columns = block.pick("source", "destination") | {"dex_withdraw_liquidity_data": data}
    return Block("tonco_withdraw_liquidity", columns, served="dex_withdraw_liquidity")
