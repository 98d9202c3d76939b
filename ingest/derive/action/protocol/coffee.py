"""Swap.Coffee: swaps, liquidity, vaults and pools, staking, and swaps protected from MEV.

A vault passes an incoming asset on to a pool (c0ffee20 ff.); payouts are ordered from a vault.
"""

from tonlake.ingest.derive.action.pattern import (
    EXCESS_OPCODE,
    Match,
    Pattern,
    built,
    call,
    jettons,
    one_of,
    repeat,
)
from tonlake.ingest.derive.action.protocol import exchange
from tonlake.ingest.derive.action.protocol.jetton import INTERNAL
from tonlake.ingest.derive.action.rule import JETTON_TRANSFER, WAY, Block, Columns, rule

SWAP_NATIVE, SWAP_INTERNAL, SWAP_EVENT = 0xC0FFEE00, 0xC0FFEE20, 0xC0FFEE30
PAYOUT_INTERNAL, PAYOUT, NOTIFICATION = 0xC0FFEE21, 0xC0FFEE32, 0xC0FFEE36
DEX = "coffee"
ASSET_TAG_BITS = 2


def read_payout(order: Block, paid: Block) -> exchange.Leg:
    """Return the leg of a payment that a pool ordered from a vault (c0ffee21).

    If coins are sent with a notification, the service shows the vault and the value of the message,
    else the pool and the ordered amount.
    """
    if paid.type == JETTON_TRANSFER:
        return exchange.read_jettons(paid, raw=True)
    if paid.opcode == NOTIFICATION:
        source, amount = paid.message.source, paid.message.value
    else:
        body = order.fields()
        body.address()
        source, amount = order.message.source, body.coins()
    return exchange.Leg(amount, source, None, paid.message.destination, None, None)


def pays(name: str) -> Pattern:
    """Return the pattern of a payout order, named ``<name>_order``, and of the payment."""
    return call(PAYOUT_INTERNAL, name=f"{name}_order").then(
        one_of(jettons(), call(PAYOUT, NOTIFICATION)).named(name)
    )


def _read_event(log: Block) -> exchange.Hop:
    """Read c0ffee30. TL-B: query_id:uint64 input:CoffeeAsset input_amount:Coins output_amount."""
    body = log.fields()
    asset = exchange.read_asset(body, ASSET_TAG_BITS)
    return exchange.Hop(
        asset_in=asset, amount_in=body.coins(), asset_out=None, amount_out=body.coins()
    )


_EVENT = call(SWAP_EVENT, name="event")
_LINK = call(SWAP_INTERNAL).then(_EVENT)
_OUT = pays("out")


@rule(
    call(SWAP_INTERNAL)
    .then(_EVENT, one_of(repeat(_LINK, until=_OUT), _OUT))
    .after(one_of(jettons(), call(SWAP_NATIVE)).named("in"))
)
def swap(match: Match) -> Block | None:
    """Draft a swap; it failed if it pays back the incoming asset."""
    if "out" not in match:
        return None
    incoming = exchange.read_incoming(match["in"], raw=True)
    outgoing = read_payout(match["out_order"], match["out"])
    events = [_read_event(block) for block in match.all("event")]
    outs = [*(event.asset_in for event in events[1:]), outgoing.asset]
    hops = [event._replace(asset_out=out) for event, out in zip(events, outs, strict=True)]
    columns = exchange.show_swap(DEX, incoming, outgoing, hops=hops)
    return Block("jetton_swap", columns, failed=outgoing.asset == incoming.asset)


STAKE, UNSTAKE, CLAIM = 0xF9471134, 0xCB03BFAF, 0xB30C7310
HOLD_FUNDS, SERVICE_FEE, FAILED_SWAP = 0x6BC79E7E, 0xC0FFEEA0, 0xEE51CE51


@rule(one_of(call(HOLD_FUNDS), jettons(carrying=HOLD_FUNDS)))
def mev_protect_hold_funds(match: Match) -> Block:
    """Draft coins or jettons held by a contract that will swap them, including the service fee."""
    block = match.block
    if block.type == JETTON_TRANSFER:
        columns = block.pick(*WAY, "asset", "amount")
    else:
        columns = block.pick("source", "destination", amount="value")
    beside = [each for each in block.siblings if each.opcode == SERVICE_FEE]
    if beside and block.previous is not None:
        beside.append(block.previous)
    return Block("coffee_mev_protect_hold_funds", columns, more=beside)


@rule(call(FAILED_SWAP))
def mev_protect_failed_swap(match: Match) -> Block:
    """Draft the return of a failed swap. TL-B: query_id:uint64 recipient:MsgAddress."""
    return Block("coffee_mev_protect_failed_swap", {"destination": match.block.fields().address()})


@rule(
    jettons().then(call(STAKE, name="pool").then(call(STAKE).maybe, built("nft_mint", name="nft")))
)
def staking_deposit(match: Match) -> Block:
    """Draft a stake of jettons, for which a position (an NFT) is minted."""
    sent, nft = match.block, match["nft"]
    item = match.interfaces.nft_item(nft["asset_secondary"])
    columns = sent.pick(*WAY, "asset", "amount") | {
        "destination": match["pool"]["destination"],
        "coffee_staking_deposit_data": {
            "minted_item_address": nft["asset_secondary"],
            "minted_item_index": None if item is None else item.item_index,
        },
    }
    return Block("coffee_staking_deposit", columns)


@rule(
    call(UNSTAKE).then(
        call(UNSTAKE, name="position").then(
            call(UNSTAKE).then(jettons("paid")), call(UNSTAKE, name="log").maybe
        )
    )
)
def staking_withdraw(match: Match) -> Block:
    """Draft the closing of a position, with its jettons paid back."""
    block, paid, log = match.block, match["paid"], match.get("log")
    columns = block.pick("source", "destination") | paid.pick(
        *("asset", "amount"),
        source_secondary="destination_secondary",
        destination_secondary="source_secondary",
    )
    columns["coffee_staking_withdraw_data"] = {
        "nft_address": block["destination"],
        "nft_index": match["position"].fields().uint(64),
        "points": None if log is None else log.arguments().child().coins(),
    }
    return Block("coffee_staking_withdraw", columns)


@rule(call(CLAIM).then(jettons("paid"), call(CLAIM).maybe))
def staking_claim_rewards(match: Match) -> Block:
    """Draft a payout of rewards by the pool."""
    paid = match["paid"].pick(*WAY, "asset", "amount")
    return Block("coffee_staking_claim_rewards", paid | match.block.pick(source="destination"))


OTHER_RULES = (
    mev_protect_hold_funds,
    mev_protect_failed_swap,
    staking_deposit,
    staking_withdraw,
    staking_claim_rewards,
)


DEPLOY = 0xC0FFEE22
CREATE_VAULT, PROVIDE_WALLET_ADDRESS, TAKE_WALLET_ADDRESS = 0xC0FFEE06, 0x2C76B973, 0xD1735400
CREATE_POOL_NATIVE, CREATE_POOL_EXTRA = 0xC0FFEE02, 0xC0FFEE03
POOL_CREATOR_REQUEST, POOL_REQUEST, POOL_NOTIFIED = 0xC0FFEE23, 0xC0FFEE25, 0xB216D31F
DEPOSIT_NATIVE, DEPOSITORY_REQUEST, DEPOSIT_INTERNAL = 0xC0FFEE04, 0xC0FFEE27, 0xC0FFEE29
DEPOSIT_EVENT, WITHDRAW_EVENT = 0xC0FFEE33, 0xC0FFEE35


def _read_minted(log: Block) -> int:
    """Read lp_amount of c0ffee33. TL-B: query_id:uint64 amount1:Coins amount2:Coins lp_amount."""
    body = log.fields()
    return [body.coins() for _ in range(3)][2]


_MINTED = call(INTERNAL).then(call(EXCESS_OPCODE).maybe)


@rule(
    call(CREATE_VAULT).then(
        call(DEPLOY, name="deploy").then(
            call(PROVIDE_WALLET_ADDRESS).then(call(TAKE_WALLET_ADDRESS).maybe).maybe
        )
    )
)
def create_vault(match: Match) -> Block:
    """Draft the creation of a vault for one asset. TL-B: query_id:uint64 asset:CoffeeAsset."""
    columns = match.block.pick("source", "value") | match["deploy"].pick("destination")
    columns["asset"] = exchange.read_asset(match.block.fields(), ASSET_TAG_BITS)
    return Block("coffee_create_vault", columns)


@rule(
    call(POOL_CREATOR_REQUEST)
    .then(call(DEPLOY, name="deploy"))
    .after(one_of(jettons(), call(CREATE_POOL_NATIVE, CREATE_POOL_EXTRA)).named("in"))
)
def create_pool_creator(match: Match) -> Block:
    """Draft the payment of one side of a new pool.

    TL-B of c0ffee23: query_id:uint64 amount:Coins params:CoffeePoolParams
    creation_params:^[recipient:MsgAddress …].
    """
    incoming = exchange.read_incoming(match["in"], raw=True)
    body = match.block.fields()
    amount = body.coins()
    first, second = exchange.read_assets(body, ASSET_TAG_BITS)
    if body.skip(3).bit():  # settings of the market maker
        body.child()
    columns = {
        "source": incoming.source,
        "source_secondary": incoming.source_jetton_wallet,
        "destination": body.child().address(),
        "destination_secondary": match["deploy"].message.destination,
        "asset": incoming.asset,
        "asset2": first,
        "asset2_secondary": second,
        "amount": amount,
    }
    return Block("coffee_create_pool_creator", columns)


@rule(
    built("coffee_create_pool_creator").then(
        call(POOL_REQUEST, name="request").then(
            call(DEPLOY, name="pool").then(
                _MINTED,
                call(DEPOSIT_EVENT, name="event"),
                call(NOTIFICATION).then(call(POOL_NOTIFIED).maybe).maybe,
            )
        )
    )
)
def create_pool(match: Match) -> Block:
    """Draft the creation of a pool from both sides; the asset paid last comes first.

    TL-B of c0ffee25: query_id:uint64 amount1:Coins amount2:Coins tx_initiator:MsgAddress.
    """
    creator = match.block
    body = match["request"].fields()
    amounts = [body.coins(), body.coins()]
    provided, assets = creator["asset"], [creator["asset2"], creator["asset2_secondary"]]
    if provided != assets[0]:
        amounts.reverse()
        assets.reverse()
    data = {
        "amount_1": amounts[0],
        "amount_2": amounts[1],
        "initiator_1": creator["source"],
        "initiator_2": body.address(),
        "provided_asset": provided,
        "lp_tokens_minted": _read_minted(match["event"]),
    }
    columns = creator.pick(*WAY, "asset", "amount") | match["pool"].pick("destination")
    return Block(
        "coffee_create_pool", columns | {"asset2": assets[1], "coffee_create_pool_data": data}
    )


@rule(
    call(DEPOSITORY_REQUEST)
    .then(
        call(DEPLOY, name="deploy").then(
            call(DEPOSIT_INTERNAL, name="deposit")
            .then(_MINTED, call(DEPOSIT_EVENT, name="event"), pays("paid").maybe)
            .maybe
        )
    )
    .after(one_of(call(DEPOSIT_NATIVE), jettons()).named("in"))
)
def deposit_liquidity(match: Match) -> Block:
    """Draft the payment of one side of a deposit, or a whole deposit if it reached the pool.

    TL-B of c0ffee27: query_id:uint64 amount:Coins params:^[…] pool_params:^CoffeePoolParams.
    """
    incoming, event = exchange.read_incoming(match["in"], raw=True), match.get("event")
    body = match.block.fields()
    body.coins()
    body.child()
    params = body.child()
    first, second = exchange.read_assets(params, ASSET_TAG_BITS)
    number, other = (1, second) if incoming.asset == first else (2, first)
    excesses = [read_payout(match["paid_order"], paid) for paid in match.all("paid")]
    data: Columns = dict.fromkeys(exchange.DEPOSIT_FIELDS) | {
        "dex": DEX,
        "lp_tokens_minted": None if event is None else _read_minted(event),
        "target_asset_1": incoming.asset,
        "target_asset_2": other,
        "vault_excesses": [exchange.show_excess(leg) for leg in excesses],
    }
    columns = {
        "source": incoming.source,
        "destination": match.column("deposit", "destination"),
        "destination_secondary": match["deploy"]["destination"],
        "dex_deposit_liquidity_data": data | exchange.show_side(number, incoming),
    }
    return Block("coffee_deposit_liquidity", columns, served="dex_deposit_liquidity")


@rule(built("jetton_burn").then(pays("first"), pays("second"), call(WITHDRAW_EVENT, name="event")))
def withdraw_liquidity(match: Match) -> Block:
    """Draft a withdrawal: liquidity tokens are burnt, and both sides are paid out.

    TL-B of c0ffee35: query_id:uint64 amount1:Coins amount2:Coins lp_amount:Coins. The amounts
    belong to the payments in the order in which they were sent.
    """
    burn, event = match.block, match["event"].fields()
    legs = [read_payout(match[f"{name}_order"], match[name]) for name in ("first", "second")]
    data: Columns = {"dex": DEX, "is_refund": False}
    data |= exchange.show_payouts(
        leg._replace(amount=event.coins(), source=burn["asset"]) for leg in legs
    )
    data["lp_tokens_burnt"] = event.coins()
    columns = burn.pick("source", "source_secondary", "asset", destination="asset")
    return Block("dex_withdraw_liquidity", columns | {"dex_withdraw_liquidity_data": data})
