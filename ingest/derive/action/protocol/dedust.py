"""DeDust: swaps of one or several hops, withdrawals of liquidity, and deposits.

Deposits go side by side through a deposit contract into a pool.
"""

from tonlake.ingest.derive.action.interface import Interfaces
from tonlake.ingest.derive.action.pattern import (
    Match,
    Pattern,
    built,
    call,
    jettons,
    one_of,
    repeat,
)
from tonlake.ingest.derive.action.protocol import exchange, jetton
from tonlake.ingest.derive.action.rule import JETTON_TRANSFER, TRANSFER, Block, Columns, rule, walk

SWAP_NATIVE, SWAP, SWAP_PEER, SWAP_LOG = 0xEA06185D, 0x61EE542D, 0x72ACA8AA, 0x9C610DE3
PAYOUT_FROM_POOL, PAYOUT = 0xAD4EB6F5, 0x474F86CF
DEX = "dedust"
ASSET_TAG_BITS = 4


def _read_payout(order: Block, paid: Block) -> exchange.Leg:
    """Return the leg of a payment that a pool ordered from a vault (ad4eb6f5)."""
    if paid.type == JETTON_TRANSFER:
        return exchange.read_jettons(paid)
    amount = order.fields().coins()
    message = paid.message
    return exchange.Leg(amount, message.source, None, message.destination, None, None)


def _read_log(log: Block) -> exchange.Hop:
    """Read 9c610de3: asset_in, asset_out, amount_in:Coins, amount_out:Coins."""
    body = log.arguments()
    asset_in, asset_out = exchange.read_assets(body, ASSET_TAG_BITS)
    return exchange.Hop(asset_in, body.coins(), asset_out, body.coins())


def _pays(order: str, out: str) -> Pattern:
    return call(PAYOUT_FROM_POOL, name=order).then(one_of(jettons(), call(PAYOUT)).named(out))


_LOG = call(SWAP_LOG, name="log").maybe
_OUT = _pays("order", "out")


@rule(
    call(SWAP, name="first")
    .then(one_of(_OUT, repeat(call(SWAP_PEER, SWAP, name="peer").then(_LOG), until=_OUT)), _LOG)
    .after(one_of(jettons(), call(SWAP_NATIVE)).named("in"))
)
def swap(match: Match) -> Block | None:
    """Draft a swap through known pools; it failed if one of them did not log its hop."""
    pools = [each["destination"] for each in (match["first"], *match.all("peer"))]
    if len(pools) > 1 and not all(match.interfaces.has(pool, "DedustPool") for pool in pools):
        return None
    incoming = exchange.read_incoming(match["in"])
    outgoing = _read_payout(match["order"], match["out"])
    hops = [_read_log(block) for block in match.all("log")]
    columns = exchange.show_swap(DEX, incoming, outgoing, hops=hops)
    return Block("jetton_swap", columns, failed=len(hops) < len(pools))


@rule(
    call(jetton.BURN).then(
        call(jetton.BURN_NOTIFICATION, name="notification").then(
            _pays("order_2", "out_2"), _pays("order_1", "out_1")
        )
    )
)
def withdraw_liquidity(match: Match) -> Block:
    """Draft a withdrawal: liquidity tokens burnt, both sides paid out; the last comes first."""
    block = match.block
    data = {"dex": DEX, "is_refund": False, "lp_tokens_burnt": block.fields().coins()}
    data |= exchange.show_payouts(
        _read_payout(match[f"order_{number}"], match[f"out_{number}"]) for number in (1, 2)
    )
    columns = block.pick("source", source_secondary="destination") | match["notification"].pick(
        "destination", asset="destination"
    )
    return Block("dex_withdraw_liquidity", columns | {"dex_withdraw_liquidity_data": data})


DEPOSIT_NATIVE, ASK_FACTORY, INSTALL = 0xD55E4686, 0xF04EC526, 0x9B3AA3FA
TOP_UP, DEPOSIT_ALL = 0x54240FE5, 0xB56B9598
REJECT, FULFILL, PAY_BACK = 0xE1A36CD4, 0xAAE79256, 0x6B0B787F
WHOLE, PARTIAL = "dedust_deposit_liquidity", "dedust_deposit_liquidity_partial"
_SERVED = "dex_deposit_liquidity"


_TARGET = ("target_asset_1", "target_asset_2", "target_amount_1", "target_amount_2")
_Target = tuple[str | None, str | None, int, int]


def _read_asked(block: Block) -> tuple[str | None, _Target]:
    """Read the depositor and the requested target from f04ec526.

    TL-B: query_id:uint64 proof:^Cell owner_addr:MsgAddress is_stable:Bool asset0:DedustAsset
    asset1:DedustAsset ^[asset0_target_balance:Coins asset1_target_balance:Coins …].
    """
    body = block.fields()
    _proof, owner, _is_stable = body.take("child", "address", 1)
    assets = exchange.read_assets(body, ASSET_TAG_BITS)
    inner = body.child()
    return owner, (*assets, inner.coins(), inner.coins())


def _draft(match: Match, block_type: str, target: _Target | None, **more: object) -> Block:
    """Return the draft of one side of a deposit; ``target`` defaults to the requested one."""
    (owner, asked), top_up = _read_asked(match["ask"]), match["top_up"]
    paid = top_up.fields()
    wallet = match.column("transfer", "destination")
    is_shown = block_type == PARTIAL or match.interfaces.jetton_wallet(wallet) is not None
    data: Columns = dict.fromkeys(exchange.DEPOSIT_FIELDS[:-1]) | {
        "dex": DEX,
        "asset1": exchange.read_asset(paid, ASSET_TAG_BITS),
        "amount1": paid.coins(),
        "user_jetton_wallet_1": wallet if is_shown else None,
        **dict(zip(_TARGET, target or asked, strict=True)),
        **more,
    }
    columns = {
        "source": owner,
        "destination_secondary": top_up["destination"],
        "dex_deposit_liquidity_data": data,
    }
    return Block(block_type, columns, served=_SERVED)


def _is_known(match: Match) -> bool:
    """Return whether a side paid in jettons arrived at a known jetton wallet."""
    wallet = match.column("internal", "destination")
    return "internal" not in match or match.interfaces.jetton_wallet(wallet) is not None


def _drop_unknown(match: Match) -> None:
    """Leave out jettons that were returned to an unknown wallet."""
    for back in match.all("back"):
        sent = back.previous
        if sent is not None and match.interfaces.jetton_wallet(back["destination"]) is None:
            gone = set(walk([sent]))
            match.blocks = [block for block in match.blocks if block not in gone]
            match.names["excess"].remove(sent)


def _read_deposited(block: Block) -> _Target:
    """Read the deposited assets and amounts from b56b9598.

    TL-B: query_id:uint64 proof:^Cell owner_addr:MsgAddress min_lp_amount:Coins ^[asset0:DedustAsset
    asset0_amount:Coins asset1:DedustAsset asset1_amount:Coins].
    """
    inner = block.arguments().take("child", "child")[1]
    first, first_amount = exchange.read_asset(inner, ASSET_TAG_BITS), inner.coins()
    second, second_amount = exchange.read_asset(inner, ASSET_TAG_BITS), inner.coins()
    return first, second, first_amount, second_amount


def _read_excess(block: Block, interfaces: Interfaces) -> Columns:
    """Return a refund of a vault: jettons, or the coins of the message."""
    if block.opcode != jetton.TRANSFER:
        return {"asset": None, "amount": block["value"]}
    (received,) = (each for each in block.following if each.opcode == jetton.INTERNAL)
    asset = interfaces.jetton_of(received["destination"])
    return {"asset": asset, "amount": block.fields().coins()}


def merge_deposit(sides: list[Block]) -> Block | None:
    """Return the block of both sides, in the order of the pool's assets."""
    main = max(sides, key=lambda side: side.type == WHOLE)
    if main.type != WHOLE:
        return None
    data = dict(main.columns["dex_deposit_liquidity_data"])
    for side in sides:
        own = side.columns["dex_deposit_liquidity_data"]
        number = 1 if own["asset1"] == data["target_asset_1"] else 2
        for name in ("asset", "amount", "user_jetton_wallet_"):
            data[f"{name}{number}"] = own[f"{name}1"]
    return exchange.join_sides(main, sides, data, "dedust.merge")


_RECEIVED = one_of(
    call(DEPOSIT_NATIVE),
    call(jetton.NOTIFY).after(
        call(jetton.INTERNAL, name="internal")
        .after(call(jetton.TRANSFER, name="transfer").maybe)
        .maybe
    ),
)
_JETTONS_BACK = call(jetton.TRANSFER, name="excess").then(
    call(jetton.INTERNAL, name="back").then(call(jetton.NOTIFY).maybe)
)
_BACK = call(PAY_BACK).then(one_of(_JETTONS_BACK, call(PAYOUT, name="excess")).maybe).maybe
_REST = (built(TRANSFER).maybe, _BACK, _BACK)


@rule(
    call(DEPOSIT_ALL)
    .then(
        one_of(
            call(jetton.INTERNAL, name="minted").then(call(jetton.NOTIFY).maybe),
            call(REJECT, name="rejection").then(*_REST),
        ),
        call(FULFILL).then(*_REST).maybe,
    )
    .after(
        call(TOP_UP, name="top_up").after(
            call(ASK_FACTORY, name="ask").then(call(INSTALL).maybe).after(_RECEIVED)
        )
    )
)
def deposit_liquidity(match: Match) -> Block | None:
    """Draft a deposit whose second side has arrived: both go to the pool, or are returned."""
    if not _is_known(match):
        return None
    minted = match.get("minted")
    _drop_unknown(match)
    excesses = reversed(match.all("excess"))  # in TON Center's order
    draft = _draft(
        match,
        WHOLE,
        _read_deposited(match.block),
        lp_tokens_minted=None if minted is None else minted.fields().coins(),
        vault_excesses=[_read_excess(each, match.interfaces) for each in excesses],
    )
    draft.columns["destination"] = match.block["destination"]
    draft.failed = "rejection" in match
    return draft


@rule(
    call(TOP_UP, name="top_up").after(
        call(ASK_FACTORY, name="ask").then(call(INSTALL)).after(_RECEIVED)
    )
)
def deposit_first_side(match: Match) -> Block | None:
    """Draft the payment of the first side, which does not reach the pool yet."""
    goes_on = any(after.opcode in {DEPOSIT_ALL, REJECT} for after in match["top_up"].next)
    return None if goes_on or not _is_known(match) else _draft(match, PARTIAL, None)
