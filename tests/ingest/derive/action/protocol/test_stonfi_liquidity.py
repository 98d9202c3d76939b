"""Ston.fi liquidity rules on built traces."""

from __future__ import annotations

import pytest

from tests.ingest.derive.action.scene import Cell, Scene, Step, account
from tonlake.ingest.derive.action.protocol import jetton, stonfi, stonfi_liquidity

OWNER, ROUTER, POOL, LP_ACCOUNT = (account(n) for n in ("owner", "router", "pool", "lp account"))
COINS = account("coin"), account("other coin")
WALLETS = account("wallet"), account("other wallet")
ROUTERS = account("router coin"), account("router other")


def provide(step: Step, side: int, amount: int) -> Step:
    """Pay one side in; return the depositor's account with the pool."""
    step.scene.know_wallet(WALLETS[side], OWNER, COINS[side])
    step.scene.know_wallet(ROUTERS[side], ROUTER, COINS[side])
    taken = step.send_jettons(WALLETS[side], ROUTER, ROUTERS[side], amount)
    told = taken.send(ROUTER, opcode=jetton.NOTIFY)
    return told.send(POOL, opcode=stonfi_liquidity.PROVIDE).send(
        LP_ACCOUNT, opcode=stonfi_liquidity.ADD_LIQUIDITY
    )


def test_one_side_alone() -> None:
    scene = Scene()
    provide(scene.external(OWNER), 0, 100)
    action = scene.find("dex_deposit_liquidity")
    assert action.success
    assert action.columns["destination"] == POOL
    assert action.columns["destination_secondary"] == LP_ACCOUNT
    data = action.columns["dex_deposit_liquidity_data"]
    assert (data["asset1"], data["amount1"], data["asset2"]) == (COINS[0], 100, None)
    assert data["lp_tokens_minted"] is None


@pytest.mark.parametrize("refunded", [False, True])
def test_both_sides_of_one_message_are_one_action(*, refunded: bool) -> None:
    scene = Scene()
    step = scene.external(OWNER)
    provide(step, 0, 100)
    back = provide(step, 1, 7).send(POOL, opcode=stonfi_liquidity.CALL_BACK)
    if refunded:
        back.send(LP_ACCOUNT, opcode=stonfi_liquidity.ADD_LIQUIDITY)
    else:
        minted = Cell(jetton.INTERNAL).uint(1, 64).coins(55)
        back.send(account("lp wallet"), minted)
    action = scene.find("dex_deposit_liquidity")
    assert action.success is not refunded
    data = action.columns["dex_deposit_liquidity_data"]
    assert (data["asset1"], data["amount1"]) == (COINS[0], 100)
    assert (data["asset2"], data["amount2"]) == (COINS[1], 7)
    assert data["lp_tokens_minted"] == (None if refunded else 55)


def pay_both(step: Step) -> None:
    """Let the router pay both sides out."""
    for side, amount in ((0, 60), (1, 6)):
        step.scene.know_wallet(ROUTERS[side], ROUTER, COINS[side])
        step.send_jettons(ROUTERS[side], OWNER, WALLETS[side], amount)


def test_burnt_tokens_pay_both_sides() -> None:
    scene = Scene()
    lp_wallet = scene.know_wallet(account("lp wallet"), OWNER, POOL)
    burn = Cell(jetton.BURN).uint(1, 64).coins(50)
    told = (
        scene.external(OWNER)
        .send(lp_wallet, burn)
        .send(POOL, opcode=stonfi_liquidity.BURN_NOTIFICATION)
    )
    pay_both(told.send(ROUTER, opcode=stonfi.PAY_TO))
    action = scene.find("dex_withdraw_liquidity")
    data = action.columns["dex_withdraw_liquidity_data"]
    assert (action.columns["source"], action.columns["destination"]) == (OWNER, POOL)
    assert (data["amount1"], data["amount2"], data["lp_tokens_burnt"]) == (60, 6, 50)
    assert (data["asset1_out"], data["asset2_out"]) == COINS
    assert data["is_refund"] is False


def test_what_was_not_used_is_taken_back() -> None:
    scene = Scene()
    asked = scene.external(OWNER).send(LP_ACCOUNT, opcode=stonfi_liquidity.REFUND_ME)
    pay_both(asked.send(POOL, opcode=stonfi_liquidity.REFUNDED).send(ROUTER, opcode=stonfi.PAY_TO))
    action = scene.find("dex_withdraw_liquidity")
    assert action.columns["source"] == OWNER
    assert action.columns["dex_withdraw_liquidity_data"]["is_refund"] is True
