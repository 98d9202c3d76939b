"""Swap.Coffee: creation of vaults and pools, deposits and withdrawals of liquidity."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tonlake.ingest.derive.action.pattern import EXCESS_OPCODE, built, call, one_of
from tonlake.ingest.derive.action.protocol.coffee import (
    ASSET_TAG_BITS,
    DEX,
    NOTIFICATION,
    pays,
    read_payout,
)
from tonlake.ingest.derive.action.protocol.jetton import INTERNAL, JETTON_TRANSFER
from tonlake.ingest.derive.action.protocol.swap import read_asset, read_incoming
from tonlake.ingest.derive.action.rule import Draft, Rule

if TYPE_CHECKING:
    from tonlake.ingest.derive.action.block import Block, Columns
    from tonlake.ingest.derive.action.body import Body
    from tonlake.ingest.derive.action.pattern import Match
    from tonlake.ingest.derive.action.protocol.swap import Leg

DEPLOY = 0xC0FFEE22
CREATE_VAULT, PROVIDE_WALLET_ADDRESS, TAKE_WALLET_ADDRESS = 0xC0FFEE06, 0x2C76B973, 0xD1735400
CREATE_POOL_NATIVE, CREATE_POOL_EXTRA = 0xC0FFEE02, 0xC0FFEE03
POOL_CREATOR_REQUEST, POOL_REQUEST, POOL_NOTIFIED = 0xC0FFEE23, 0xC0FFEE25, 0xB216D31F
DEPOSIT_NATIVE, DEPOSITORY_REQUEST, DEPOSIT_INTERNAL = 0xC0FFEE04, 0xC0FFEE27, 0xC0FFEE29
DEPOSIT_EVENT, WITHDRAW_EVENT = 0xC0FFEE33, 0xC0FFEE35


def _make_vault(match: Match) -> Draft:
    """Draft the creation of a vault for one asset. TL-B: query_id:uint64 asset:CoffeeAsset."""
    message = match.block.message
    columns = {
        "source": message.source,
        "destination": match["deploy"].message.destination,
        "asset": read_asset(message.arguments().skip(64), ASSET_TAG_BITS),
        "value": message.value,
    }
    return Draft("coffee_create_vault", columns)


def _make_pool_creator(match: Match) -> Draft:
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


def _make_pool(match: Match) -> Draft:
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


def _read_minted(log: Block) -> int:
    """Read lp_amount of c0ffee33. TL-B: query_id:uint64 amount1:Coins amount2:Coins lp_amount."""
    body = log.message.arguments().skip(64)
    body.coins()
    body.coins()
    return body.coins()


def _make_deposit(match: Match) -> Draft:
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
    return Draft(
        "coffee_deposit_liquidity",
        columns,
        served="dex_deposit_liquidity",
    )


def _read_pool_assets(body: Body) -> tuple[str | None, str | None]:
    """Read the assets of the pool in c0ffee27.

    TL-B: query_id:uint64 amount:Coins params:^[…] pool_params:^CoffeePoolParams.
    """
    body.skip(64).coins()
    body.ref()
    params = body.ref()
    return read_asset(params, ASSET_TAG_BITS), read_asset(params, ASSET_TAG_BITS)


def _make_withdraw(match: Match) -> Draft:
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


def _read_side(match: Match, name: str) -> Leg:
    return read_payout(match[f"{name}_order"], match[name])


_MINTED = call(INTERNAL).then(call(EXCESS_OPCODE).maybe)

VAULT_RULE = Rule(
    "coffee.create_vault",
    call(CREATE_VAULT).then(
        call(DEPLOY, name="deploy").then(
            call(PROVIDE_WALLET_ADDRESS).then(call(TAKE_WALLET_ADDRESS).maybe).maybe
        )
    ),
    _make_vault,
)
POOL_CREATOR_RULE = Rule(
    "coffee.create_pool_creator",
    call(POOL_CREATOR_REQUEST)
    .then(call(DEPLOY, name="deploy"))
    .after(one_of(built(JETTON_TRANSFER), call(CREATE_POOL_NATIVE, CREATE_POOL_EXTRA)).named("in")),
    _make_pool_creator,
)
POOL_RULE = Rule(
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
    _make_pool,
)
DEPOSIT_RULE = Rule(
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
    _make_deposit,
)
WITHDRAW_RULE = Rule(
    "coffee.withdraw_liquidity",
    built("jetton_burn").then(pays("first"), pays("second"), call(WITHDRAW_EVENT, name="event")),
    _make_withdraw,
)
