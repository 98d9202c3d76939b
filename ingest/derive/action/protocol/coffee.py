"""Swap.Coffee: swaps, liquidity, vaults and pools, staking, and swaps protected from MEV.

A vault passes an incoming asset on to a pool (c0ffee20 ff.); payouts are ordered from a vault.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tonlake.ingest.derive.action.pattern import (
    EXCESS_OPCODE,
    Match,
    Pattern,
    built,
    call,
    one_of,
    repeat,
)
from tonlake.ingest.derive.action.protocol.jetton import INTERNAL, JETTON_TRANSFER
from tonlake.ingest.derive.action.protocol.swap import (
    Hop,
    Leg,
    read_asset,
    read_incoming,
    read_jettons,
    show_swap,
)
from tonlake.ingest.derive.action.rule import Block, Columns, Draft, rule

if TYPE_CHECKING:
    from tonlake.ingest.derive.action.body import Body


SWAP_NATIVE, SWAP_INTERNAL, SWAP_EVENT = 0xC0FFEE00, 0xC0FFEE20, 0xC0FFEE30
PAYOUT_INTERNAL, PAYOUT, NOTIFICATION = 0xC0FFEE21, 0xC0FFEE32, 0xC0FFEE36
DEX = "coffee"
ASSET_TAG_BITS = 2


def read_payout(order: Block, paid: Block) -> Leg:
    """Return the leg of a payment that a pool ordered from a vault (c0ffee21).

    If coins are sent with a notification, the service shows the vault and the value of the message,
    else the pool and the ordered amount.
    """
    if paid.type == JETTON_TRANSFER:
        return read_jettons(paid, raw=True)
    if paid.opcode == NOTIFICATION:
        source, amount = paid.message.source, paid.message.value
    else:
        body = order.message.arguments().skip(64)
        body.address()
        source, amount = order.message.source, body.coins()
    return Leg(amount, source, None, paid.message.destination, None, None)


def pays(name: str) -> Pattern:
    """Return the pattern of a payout order, named ``<name>_order``, and of the payment."""
    return call(PAYOUT_INTERNAL, name=f"{name}_order").then(
        one_of(built(JETTON_TRANSFER), call(PAYOUT, NOTIFICATION)).named(name)
    )


def _read_event(log: Block) -> Hop:
    """Read c0ffee30. TL-B: query_id:uint64 input:CoffeeAsset input_amount:Coins output_amount."""
    body = log.message.arguments().skip(64)
    asset = read_asset(body, ASSET_TAG_BITS)
    return Hop(asset_in=asset, amount_in=body.coins(), asset_out=None, amount_out=body.coins())


_EVENT = call(SWAP_EVENT, name="event")
_LINK = call(SWAP_INTERNAL).then(_EVENT)
_OUT = pays("out")


@rule(
    "coffee.swap",
    call(SWAP_INTERNAL)
    .then(_EVENT, one_of(repeat(_LINK, until=_OUT), _OUT))
    .after(one_of(built(JETTON_TRANSFER), call(SWAP_NATIVE)).named("in")),
)
def swap(match: Match) -> Draft | None:
    """Draft a swap; it failed if it pays back the incoming asset."""
    paid = match.get("out")
    if paid is None:
        return None
    incoming, outgoing = read_incoming(match["in"], raw=True), read_payout(match["out_order"], paid)
    events = [_read_event(block) for block in match.all("event")]
    nexts = [event.asset_in for event in events[1:]]
    hops = [
        event._replace(asset_out=asset)
        for event, asset in zip(events, [*nexts, outgoing.asset], strict=True)
    ]
    columns = show_swap(DEX, incoming, outgoing, hops=hops if len(hops) > 1 else ())
    return Draft("jetton_swap", columns, failed=outgoing.asset == incoming.asset)


STAKE, UNSTAKE, CLAIM = 0xF9471134, 0xCB03BFAF, 0xB30C7310
HOLD_FUNDS, SERVICE_FEE, FAILED_SWAP = 0x6BC79E7E, 0xC0FFEEA0, 0xEE51CE51


def _holds(block: Block) -> bool:
    payload = block["payload"]
    return payload is not None and payload.peek_opcode() == HOLD_FUNDS


@rule(
    "coffee.mev_protect_hold_funds", one_of(call(HOLD_FUNDS), built(JETTON_TRANSFER).where(_holds))
)
def mev_protect_hold_funds(match: Match) -> Draft:
    """Draft coins or jettons held by a contract that will swap them, including the service fee."""
    block = match.block
    columns: Columns
    if block.type == JETTON_TRANSFER:
        names = ("source", "source_secondary", "destination", "destination_secondary")
        columns = {name: block[name] for name in (*names, "asset", "amount")}
    else:
        message = block.message
        columns = {
            "source": message.source,
            "destination": message.destination,
            "amount": message.value,
        }
    beside = [each for each in block.siblings if each.opcode == SERVICE_FEE]
    if beside and block.previous is not None:
        beside.append(block.previous)
    return Draft("coffee_mev_protect_hold_funds", columns, more=beside)


@rule("coffee.mev_protect_failed_swap", call(FAILED_SWAP))
def mev_protect_failed_swap(match: Match) -> Draft:
    """Draft the return of a failed swap. TL-B: query_id:uint64 recipient:MsgAddress."""
    recipient = match.block.message.arguments().skip(64).address()
    columns = {"destination": recipient}
    return Draft("coffee_mev_protect_failed_swap", columns)


@rule(
    "coffee.staking_deposit",
    built(JETTON_TRANSFER).then(
        call(STAKE, name="pool").then(call(STAKE).maybe, built("nft_mint", name="nft"))
    ),
)
def staking_deposit(match: Match) -> Draft:
    """Draft a stake of jettons, for which a position (an NFT) is minted."""
    sent, nft = match.block, match["nft"]
    item = match.interfaces.nft_item(nft["asset_secondary"])
    columns = {
        "source": sent["source"],
        "source_secondary": sent["source_secondary"],
        "destination": match["pool"].message.destination,
        "destination_secondary": sent["destination_secondary"],
        "asset": sent["asset"],
        "amount": sent["amount"],
        "coffee_staking_deposit_data": {
            "minted_item_address": nft["asset_secondary"],
            "minted_item_index": None if item is None else item.item_index,
        },
    }
    return Draft("coffee_staking_deposit", columns)


@rule(
    "coffee.staking_withdraw",
    call(UNSTAKE).then(
        call(UNSTAKE, name="position").then(
            call(UNSTAKE).then(built(JETTON_TRANSFER, name="paid")), call(UNSTAKE, name="log").maybe
        )
    ),
)
def staking_withdraw(match: Match) -> Draft:
    """Draft the closing of a position, with its jettons paid back."""
    message, paid = match.block.message, match["paid"]
    log = match.get("log")
    data = {
        "nft_address": message.destination,
        "nft_index": match["position"].message.arguments().skip(64).uint(64),
        "points": None if log is None else log.message.arguments().ref().coins(),
    }
    columns = {
        "source": message.source,
        "source_secondary": paid["destination_secondary"],
        "destination": message.destination,
        "destination_secondary": paid["source_secondary"],
        "asset": paid["asset"],
        "amount": paid["amount"],
        "coffee_staking_withdraw_data": data,
    }
    return Draft("coffee_staking_withdraw", columns)


@rule(
    "coffee.staking_claim_rewards",
    call(CLAIM).then(built(JETTON_TRANSFER, name="paid"), call(CLAIM).maybe),
)
def staking_claim_rewards(match: Match) -> Draft:
    """Draft a payout of rewards by the pool."""
    paid = match["paid"]
    columns = {
        "source": match.block.message.destination,
        "source_secondary": paid["source_secondary"],
        "destination": paid["destination"],
        "destination_secondary": paid["destination_secondary"],
        "asset": paid["asset"],
        "amount": paid["amount"],
    }
    return Draft("coffee_staking_claim_rewards", columns)


OTHER_RULES = (
    mev_protect_hold_funds,
    mev_protect_failed_swap,
    staking_deposit,
    staking_withdraw,
    staking_claim_rewards,
)
"""In order of precedence."""


DEPLOY = 0xC0FFEE22
CREATE_VAULT, PROVIDE_WALLET_ADDRESS, TAKE_WALLET_ADDRESS = 0xC0FFEE06, 0x2C76B973, 0xD1735400
CREATE_POOL_NATIVE, CREATE_POOL_EXTRA = 0xC0FFEE02, 0xC0FFEE03
POOL_CREATOR_REQUEST, POOL_REQUEST, POOL_NOTIFIED = 0xC0FFEE23, 0xC0FFEE25, 0xB216D31F
DEPOSIT_NATIVE, DEPOSITORY_REQUEST, DEPOSIT_INTERNAL = 0xC0FFEE04, 0xC0FFEE27, 0xC0FFEE29
DEPOSIT_EVENT, WITHDRAW_EVENT = 0xC0FFEE33, 0xC0FFEE35


def _read_minted(log: Block) -> int:
    """Read lp_amount of c0ffee33. TL-B: query_id:uint64 amount1:Coins amount2:Coins lp_amount."""
    body = log.message.arguments().skip(64)
    body.coins()
    body.coins()
    return body.coins()


def _read_pool_assets(body: Body) -> tuple[str | None, str | None]:
    """Read the assets of the pool in c0ffee27.

    TL-B: query_id:uint64 amount:Coins params:^[…] pool_params:^CoffeePoolParams.
    """
    body.skip(64).coins()
    body.ref()
    params = body.ref()
    return read_asset(params, ASSET_TAG_BITS), read_asset(params, ASSET_TAG_BITS)


def _read_side(match: Match, name: str) -> Leg:
    return read_payout(match[f"{name}_order"], match[name])


_MINTED = call(INTERNAL).then(call(EXCESS_OPCODE).maybe)


@rule(
    "coffee.create_vault",
    call(CREATE_VAULT).then(
        call(DEPLOY, name="deploy").then(
            call(PROVIDE_WALLET_ADDRESS).then(call(TAKE_WALLET_ADDRESS).maybe).maybe
        )
    ),
)
def create_vault(match: Match) -> Draft:
    """Draft the creation of a vault for one asset. TL-B: query_id:uint64 asset:CoffeeAsset."""
    message = match.block.message
    columns = {
        "source": message.source,
        "destination": match["deploy"].message.destination,
        "asset": read_asset(message.arguments().skip(64), ASSET_TAG_BITS),
        "value": message.value,
    }
    return Draft("coffee_create_vault", columns)


@rule(
    "coffee.create_pool_creator",
    call(POOL_CREATOR_REQUEST)
    .then(call(DEPLOY, name="deploy"))
    .after(one_of(built(JETTON_TRANSFER), call(CREATE_POOL_NATIVE, CREATE_POOL_EXTRA)).named("in")),
)
def create_pool_creator(match: Match) -> Draft:
    """Draft the payment of one side of a new pool.

    TL-B of c0ffee23: query_id:uint64 amount:Coins params:CoffeePoolParams
    creation_params:^[recipient:MsgAddress …].
    """
    incoming = read_incoming(match["in"], raw=True)
    body = match.block.message.arguments().skip(64)
    amount = body.coins()
    first, second = read_asset(body, ASSET_TAG_BITS), read_asset(body, ASSET_TAG_BITS)
    if body.skip(3).bit():  # settings of the market maker
        body.ref()
    columns = {
        "source": incoming.source,
        "source_secondary": incoming.source_wallet,
        "destination": body.ref().address(),
        "destination_secondary": match["deploy"].message.destination,
        "asset": incoming.asset,
        "asset2": first,
        "asset2_secondary": second,
        "amount": amount,
    }
    return Draft("coffee_create_pool_creator", columns)


@rule(
    "coffee.create_pool",
    built("coffee_create_pool_creator").then(
        call(POOL_REQUEST, name="request").then(
            call(DEPLOY, name="pool").then(
                _MINTED,
                call(DEPOSIT_EVENT, name="event"),
                call(NOTIFICATION).then(call(POOL_NOTIFIED).maybe).maybe,
            )
        )
    ),
)
def create_pool(match: Match) -> Draft:
    """Draft the creation of a pool from both sides; the asset paid last comes first.

    TL-B of c0ffee25: query_id:uint64 amount1:Coins amount2:Coins tx_initiator:MsgAddress.
    """
    creator = match.block
    body = match["request"].message.arguments().skip(64)
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
    columns = {
        "source": creator["source"],
        "source_secondary": creator["source_secondary"],
        "destination": match["pool"].message.destination,
        "destination_secondary": creator["destination_secondary"],
        "asset": provided,
        "asset2": assets[1],
        "amount": creator["amount"],
        "coffee_create_pool_data": data,
    }
    return Draft("coffee_create_pool", columns)


@rule(
    "coffee.deposit_liquidity",
    call(DEPOSITORY_REQUEST)
    .then(
        call(DEPLOY, name="deploy").then(
            call(DEPOSIT_INTERNAL, name="deposit")
            .then(_MINTED, call(DEPOSIT_EVENT, name="event"), pays("paid").maybe)
            .maybe
        )
    )
    .after(one_of(call(DEPOSIT_NATIVE), built(JETTON_TRANSFER)).named("in")),
)
def deposit_liquidity(match: Match) -> Draft:
    """Draft the payment of one side of a deposit, or a whole deposit if it reached the pool."""
    incoming = read_incoming(match["in"], raw=True)
    event, deposit = match.get("event"), match.get("deposit")
    first, second = _read_pool_assets(match.block.message.arguments())
    number = 1 if incoming.asset == first else 2
    paid = match.get("paid")
    excesses = [] if paid is None else [read_payout(match["paid_order"], paid)]
    data: Columns = {
        "dex": DEX,
        "asset1": None,
        "amount1": None,
        "asset2": None,
        "amount2": None,
        "user_jetton_wallet_1": None,
        "user_jetton_wallet_2": None,
        "lp_tokens_minted": None if event is None else _read_minted(event),
        "target_asset_1": incoming.asset,
        "target_amount_1": None,
        "target_asset_2": second if number == 1 else first,
        "target_amount_2": None,
        "vault_excesses": [{"asset": leg.asset, "amount": leg.amount} for leg in excesses],
    }
    data |= {
        f"asset{number}": incoming.asset,
        f"amount{number}": incoming.amount,
        f"user_jetton_wallet_{number}": incoming.source_wallet,
    }
    columns = {
        "source": incoming.source,
        "destination": None if deposit is None else deposit.message.destination,
        "destination_secondary": match["deploy"].message.destination,
        "dex_deposit_liquidity_data": data,
    }
    return Draft("coffee_deposit_liquidity", columns, served="dex_deposit_liquidity")


@rule(
    "coffee.withdraw_liquidity",
    built("jetton_burn").then(pays("first"), pays("second"), call(WITHDRAW_EVENT, name="event")),
)
def withdraw_liquidity(match: Match) -> Draft:
    """Draft a withdrawal: liquidity tokens are burnt, and both sides are paid out.

    TL-B of c0ffee35: query_id:uint64 amount1:Coins amount2:Coins lp_amount:Coins. The amounts
    belong to the payments in the order in which they were sent.
    """
    burn, event = match.block, match["event"].message.arguments().skip(64)
    legs = [_read_side(match, name) for name in ("first", "second")]
    data: Columns = {"dex": DEX, "is_refund": False}
    for number, leg in enumerate(legs, start=1):
        data |= {
            f"amount{number}": event.coins(),
            f"asset{number}_out": leg.asset,
            f"user_jetton_wallet_{number}": leg.destination_wallet,
            f"dex_jetton_wallet_{number}": leg.source_wallet,
            f"dex_wallet_{number}": burn["asset"],
        }
    data["lp_tokens_burnt"] = event.coins()
    columns = {
        "source": burn["source"],
        "source_secondary": burn["source_secondary"],
        "destination": burn["asset"],
        "asset": burn["asset"],
        "dex_withdraw_liquidity_data": data,
    }
    return Draft("dex_withdraw_liquidity", columns)
