"""DeDust v2: swaps of any number of hops, swaps refused by a pool, and liquidity.

A carrier brings coins (a5a7cbf8) or jettons (with cbc33949 as forward payload) directly to a pool,
with an order as payload. The pool logs a swap and pays out, or pays into the next pool.

A position is a separate contract in addition to the pool. A carrier brings one side of a deposit to
the pool, which credits it to the deposit contract (dc5ddba1); after the second side that contract
joins both to the pool (25251ee0).
"""

from collections.abc import Sequence

from tonlake.ingest.derive.action.body import Body
from tonlake.ingest.derive.action.pattern import (
    Match,
    Pattern,
    call,
    jettons,
    one_of,
    passes,
    repeat,
)
from tonlake.ingest.derive.action.protocol import exchange
from tonlake.ingest.derive.action.rule import JETTON_TRANSFER, Block, Columns, rule
from tonlake.ingest.errors import BodyError

PAY_NATIVE, PAY_JETTON, PAYOUT = 0xA5A7CBF8, 0xCBC33949, 0x3216CA09
SWAP, SWAP_LOG = 0xC442500F, 0x78E79BA4
DEX = "dedust_v2"
_DEADLINE_BITS = 40


def read_order(block: Block) -> Body:
    """Return a reader at the payload of a carrier, the order to the pool.

    TL-B: pay_native#a5a7cbf8 query_id:uint64 amount:Coins payload:^Cell config:^Cell;
    pay_jetton#cbc33949 payload:^Cell config:^Cell, as forward payload. Raises LookupError if the
    jettons have no such payload.
    """
    if block.type != JETTON_TRANSFER:
        return block.arguments().child()
    payload: Body | None = block["payload"]
    if payload is None or payload.peek_opcode() != PAY_JETTON:
        raise LookupError("jettons arrived at a pool of DeDust without an order")
    return payload.copy().skip(32).child()


def _is_swap(block: Block) -> bool:
    """Return whether the order of a carrier is a swap."""
    return passes(lambda carrier: read_order(carrier).peek_opcode() == SWAP, block)


def _has_log(block: Block) -> bool:
    return any(after.opcode == SWAP_LOG for after in block.next)


def _is_carrier(block: Block) -> bool:
    """Return whether a block brought an asset to a pool that swapped it."""
    if not _has_log(block):
        return False
    return block.type == JETTON_TRANSFER or (block.opcode == PAY_NATIVE and _is_swap(block))


def _is_refund(block: Block) -> bool:
    """Return whether a pool returned the carrier's asset: coins with an exit code, or jettons."""
    carrier = block.previous
    if carrier is None:
        return False
    brought, back = exchange.read_incoming(carrier), exchange.read_incoming(block)
    if back.destination != brought.source:
        return False
    if block.type == JETTON_TRANSFER:
        return carrier.type == JETTON_TRANSFER and block["asset"] == carrier["asset"]
    return bool(block.fields().take("coins", -32)[1])


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


def carrier() -> Pattern:
    """Return the pattern of coins or jettons sent to a pool, with excesses and bounces."""
    return one_of(call(PAY_NATIVE).with_excesses, jettons().with_excesses)


_CARRIER = carrier().where(_is_carrier).named("carrier")
_OUT = one_of(call(PAYOUT), jettons().where(lambda block: not _has_log(block))).named("out")
_LOG = call(SWAP_LOG, name="log")


@rule(
    # Only the carrier that starts a route, so that long ones are tried only once.
    _CARRIER.where(
        lambda block: (
            _is_carrier(block) and (block.previous is None or not _is_carrier(block.previous))
        )
    ).then(_LOG, repeat(_CARRIER.then(_LOG), until=_OUT))
)
def swap(match: Match) -> Block | None:
    """Draft a swap with the amounts of its logs and the assets of its transfers.

    TL-B of 78e79ba4: x_to_y:Bool in:Coins out:Coins ….
    """
    out, logs = match["out"], match.all("log")
    if out.type == JETTON_TRANSFER and _is_swap(out):
        return None
    carriers = sorted(match.all("carrier"), key=lambda block: block.min_lt)
    logs.sort(key=lambda block: block.min_lt)
    amounts = [log.arguments().skip(1).take("coins", "coins") for log in logs]
    legs = [exchange.read_incoming(block) for block in (*carriers, out)]
    hops = [
        exchange.Hop(legs[place].asset, came, legs[place + 1].asset, went)
        for place, (came, went) in enumerate(amounts)
    ]
    columns = exchange.show_swap(
        DEX,
        legs[0]._replace(amount=amounts[0][0]),
        legs[-1]._replace(amount=amounts[-1][1]),
        hops=hops,
        min_out_amount=_read_min_out(carriers[0]),
    )
    return Block("jetton_swap", columns, failed=not all(log.transaction.ran for log in logs))


@rule(
    carrier()
    .where(lambda block: _is_swap(block) and not _has_log(block))
    .then(one_of(call(PAYOUT), jettons()).where(_is_refund))
)
def refused_swap(match: Match) -> Block:
    """Draft a swap refused by the pool, which paid the incoming asset back."""
    incoming = exchange.read_incoming(match.block)
    pool = match.interfaces.find(incoming.destination, "DedustPool") or {}
    assets = [asset["address"] for asset in pool.get("assets") or ()]
    other = next((asset for asset in assets if asset != incoming.asset), None)
    outgoing = exchange.Leg(0, incoming.destination, None, incoming.source, None, other)
    columns = exchange.show_swap(DEX, incoming, outgoing, min_out_amount=_read_min_out(match.block))
    return Block("jetton_swap", columns, failed=True)


WITHDRAW, TAKE_OUT, EXIT, WITHDRAW_LOG = 0x20B5EF89, 0xBC1531A9, 0xF6F6A3AA, 0xC0D77B54
CLAIM_FEES, ASK_FEES, PAY_FEES = 0x5652F1DF, 0x25F19752, 0x29FF1BCF
CLAIM_REWARD, ASK_REWARD, PAY_REWARD = 0x909FDB65, 0x2E0CCCBA, 0x9E17FBBE
_NO_LEG = exchange.Leg()


def _pair_legs(amounts: Sequence[int | None], legs: Sequence[exchange.Leg]) -> list[exchange.Leg]:
    """Return the leg that paid each amount, an empty one where there is none."""
    left = list(legs)
    found = []
    for amount in amounts:
        leg = next((leg for leg in left if leg.amount == amount), _NO_LEG)
        if leg is not _NO_LEG:
            left.remove(leg)
        found.append(leg)
    return found


def _show_sides(
    match: Match, amounts: tuple[int | None, int | None], burnt: int | None, *, is_refund: bool
) -> Columns:
    """Return the columns of both sides paid out by a pool."""
    legs = _pair_legs(amounts, [exchange.read_incoming(block) for block in match.all("leg")])
    data: Columns = {"dex": DEX, "is_refund": is_refund, "lp_tokens_burnt": burnt}
    return data | exchange.show_payouts(
        leg._replace(amount=amount) for amount, leg in zip(amounts, legs, strict=True)
    )


def _draft_claim(match: Match, action_type: str, amounts: tuple[int, int | None]) -> Block:
    columns = match.block.pick("source", "destination") | {
        "destination_secondary": match["position"]["destination"],
        "dex_withdraw_liquidity_data": _show_sides(match, amounts, None, is_refund=False),
    }
    return Block(action_type, columns)


_PAID = one_of(call(PAYOUT), jettons())
_LEG, _BACK = _PAID.named("leg").maybe, _PAID.named("back").maybe


@rule(
    call(EXIT)
    .then(call(WITHDRAW_LOG, name="log").maybe, _LEG, _LEG)
    .after(call(TAKE_OUT).after(call(WITHDRAW, name="withdraw")))
)
def withdraw_liquidity(match: Match) -> Block | None:
    """Draft a withdrawal of liquidity; it failed if the pool did not log it.

    TL-B: withdraw#20b5ef89 query_id:uint64 liquidity:Coins min_x:Coins min_y:Coins auto_claim:Bool;
    log c0d77b54 liquidity:Coins x_out:Coins y_out:Coins.
    """
    asking, log = match["withdraw"], match.get("log")
    asked = asking.fields()
    burnt, _min_x, _min_y = asked.coins(), asked.coins(), asked.coins()
    if asked.bit():
        return None
    amounts: tuple[int | None, int | None] = (None, None)
    if log is not None:
        logged = log.arguments()
        burnt, amounts = logged.coins(), (logged.coins(), logged.coins())
    columns = asking.pick("source", "destination") | {
        "dex_withdraw_liquidity_data": _show_sides(match, amounts, burnt, is_refund=log is None)
    }
    return Block("dex_withdraw_liquidity", columns, failed=log is None)


@rule(
    call(CLAIM_FEES).then(
        call(ASK_FEES, name="position").then(call(PAY_FEES, name="order").then(_LEG, _LEG))
    )
)
def claim_fees(match: Match) -> Block:
    """Draft a claim of fees. TL-B: 29ff1bcf query_id:uint64 x:Coins y:Coins owner:MsgAddress."""
    body = match["order"].fields()
    return _draft_claim(match, "dedust_v2_claim_fees", (body.coins(), body.coins()))


@rule(
    call(CLAIM_REWARD).then(
        call(ASK_REWARD, name="position").then(call(PAY_REWARD, name="order").then(_LEG))
    )
)
def claim_reward(match: Match) -> Block:
    """Draft a claim. TL-B: 9e17fbbe query_id:uint64 amount:Coins index:uint2 owner:MsgAddress."""
    body = match["order"].fields()
    return _draft_claim(match, "dedust_v2_claim_reward", (body.coins(), None))


RULES = (withdraw_liquidity, claim_fees, claim_reward)


DEPOSIT, CREDIT, JOIN = 0xC9A015DA, 0xDC5DDBA1, 0x25251EE0
DEPOSIT_LOG, CREDIT_LIQUIDITY = 0x35DF2E12, 0x855AFCBD
WHOLE, PARTIAL = "dedust_v2_deposit_liquidity", "dedust_v2_deposit_liquidity_partial"
_SERVED, _DATA = "dex_deposit_liquidity", "dex_deposit_liquidity_data"
_SIDE_FIELDS = ("asset", "amount", "user_jetton_wallet_", "target_asset_", "target_amount_")


def _read_target(brought: Block) -> tuple[int, int]:
    """Return x and y of deposit#c9a015da x:Coins y:Coins …, or raise BodyError."""
    order = read_order(brought)
    if order.uint(32) != DEPOSIT:
        raise BodyError("a side of a deposit has an order other than deposit")
    return order.coins(), order.coins()


def _draft(match: Match, block_type: str, source: str | None, **more: object) -> Block:
    """Return the draft of a deposit with one known side, X or Y.

    TL-B: credit#dc5ddba1 query_id:uint64 is_x:Bool amount:Coins.
    """
    credit, leg = match["credit"], exchange.read_incoming(match["carrier"])
    is_x, amount = credit.fields().take("bit", "coins")
    number = 1 if is_x else 2
    data: Columns = dict.fromkeys(f"{name}{each}" for name in _SIDE_FIELDS for each in (1, 2))
    data |= exchange.show_side(number, leg._replace(amount=amount)) | {
        f"target_asset_{number}": leg.asset,
        f"target_amount_{number}": _read_target(match["carrier"])[number - 1],
        "dex": DEX,
        "lp_tokens_minted": None,
        "vault_excesses": [],
    }
    columns = credit.pick(destination="source", destination_secondary="destination") | {
        "source": source,
        _DATA: data | more,
    }
    return Block(block_type, columns, served=_SERVED, notes={"side": number})


def merge_deposit(sides: list[Block]) -> Block | None:
    """Return the block of a deposit with the columns that only its first side has."""
    whole, first = sorted(sides, key=lambda side: side.type == PARTIAL)
    if (whole.type, first.type) != (WHOLE, PARTIAL):
        return None
    number, own = first.notes["side"], first.columns[_DATA]
    names = [f"{name}{number}" for name in ("asset", "user_jetton_wallet_", "target_asset_")]
    data = whole.columns[_DATA] | {name: own[name] for name in names}
    return exchange.join_sides(whole, sides, data, "dedust_v2.merge")


_SIDE = carrier().named("carrier")


@rule(
    call(JOIN)
    .then(call(DEPOSIT_LOG, name="log").maybe, _BACK, _BACK, call(CREDIT_LIQUIDITY).maybe)
    .after(call(CREDIT, name="credit").after(_SIDE))
)
def deposit_liquidity(match: Match) -> Block | None:
    """Draft a deposit of both sides; the pool does not log it if it returns them.

    TL-B: join#25251ee0 query_id:uint64 config:^Cell x:Coins y:Coins initiator:MsgAddress; log
    35df2e12 x_in:Coins y_in:Coins liquidity:Coins ….
    """
    _config, *amounts, initiator = match.block.fields().take("child", "coins", "coins", "address")
    minted, log = None, match.get("log")
    legs = [exchange.read_incoming(block) for block in match.all("back")]
    if log is not None:
        *amounts, minted = log.arguments().take("coins", "coins", "coins")
    elif not legs:
        return None
    target = _read_target(match["carrier"])
    legs.sort(key=lambda leg: leg.source_jetton_wallet is None)  # Jettons first.
    draft = _draft(
        match,
        WHOLE,
        initiator,
        amount1=amounts[0],
        amount2=amounts[1],
        target_amount_1=target[0],
        target_amount_2=target[1],
        lp_tokens_minted=minted,
        vault_excesses=[exchange.show_excess(leg) for leg in legs if leg.destination == initiator],
    )
    draft.failed = log is None
    return draft


@rule(call(CREDIT, name="credit").with_excesses.after(_SIDE))
def deposit_first_side(match: Match) -> Block:
    """Draft the payment of the first side."""
    return _draft(match, PARTIAL, exchange.read_incoming(match["carrier"]).source)
