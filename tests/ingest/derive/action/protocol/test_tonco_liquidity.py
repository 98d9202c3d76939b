"""TONCO liquidity rules on built traces: positions minted side by side, and burnt."""

import pytest

from tests.ingest.derive.action.protocol.test_tonco import (
    COINS,
    OWNER,
    POOL,
    ROUTER,
    ROUTERS,
    WALLETS,
    know_wallets,
    pay,
)
from tests.ingest.derive.action.scene import Cell, Scene, Step, account
from tonlake.ingest.derive.action.protocol import jetton, nft, tonco

ACCOUNT, POSITION = account("lp account"), account("position")


def fund(scene: Scene, side: int) -> Step:
    """Pay one side; return the depositor's account with the pool."""
    know_wallets(scene)

    def other_wallet(payload: Cell) -> Cell:
        return payload.uint(tonco.FUND, 32).address(ROUTERS[1 - side])

    taken = scene.external(OWNER).send_jettons(
        WALLETS[side], ROUTER, ROUTERS[side], 100, other_wallet
    )
    told = taken.send(ROUTER, opcode=jetton.NOTIFY)
    body = Cell(tonco.FUND).uint(1, 64).address(OWNER)
    for number in (0, 1):
        body.coins(100 if number == side else 0)
    body.coins(110).coins(220).uint(55, 128).int(-600, 24).int(600, 24)
    pool = told.send(POOL, body)
    return pool.send(ACCOUNT, opcode=tonco.ADD_LIQUIDITY)


@pytest.mark.parametrize("side", [0, 1])
def test_one_side_alone(side: int) -> None:
    scene = Scene()
    fund(scene, side)
    action = scene.find("dex_deposit_liquidity")
    assert action.success
    assert (action.columns["source"], action.columns["destination"]) == (OWNER, POOL)
    assert action.columns["destination_secondary"] == ACCOUNT
    data = action.columns["dex_deposit_liquidity_data"]
    assert (data["asset1"], data["amount1"], data["asset2"]) == (COINS[side], 100, None)
    assert data[f"user_jetton_wallet_{side + 1}"] == WALLETS[side]
    assert data[f"user_jetton_wallet_{2 - side}"] is None
    assert (data["target_asset_1"], data["target_asset_2"]) == COINS[:2]
    assert (data["target_amount_1"], data["target_amount_2"]) == (110, 220)
    assert (data["tick_lower"], data["tick_upper"]) == (-600, 600)
    assert (data["lp_tokens_minted"], data["nft_address"]) == (None, None)


@pytest.mark.parametrize("made", [True, False])
def test_both_sides_make_a_position(*, made: bool) -> None:
    scene = Scene()
    scene.know(POSITION, "NftItem", index=4, collection_address=POOL, owner_address=OWNER)
    pool = fund(scene, 0).send(POOL, opcode=tonco.MINT_AND_REFUND)
    refund = pay(pool, (7, 0), (ROUTERS[0], ROUTERS[1]))
    refund.send_jettons(ROUTERS[0], OWNER, WALLETS[0], 7)
    if made:
        pool.send(POSITION, opcode=nft.OWNERSHIP_ASSIGNED).deploy()
    action = scene.find("dex_deposit_liquidity")
    assert action.success
    data = action.columns["dex_deposit_liquidity_data"]
    assert data["lp_tokens_minted"] == (55 if made else None)
    assert data["vault_excesses"] == ([{"asset": COINS[0], "amount": 7}] if made else [])
    assert (data["nft_address"], data["nft_index"]) == ((POSITION, 4) if made else (None, None))


def test_a_position_is_burnt_and_both_sides_paid() -> None:
    scene = Scene()
    know_wallets(scene)
    body = Cell(tonco.START_BURN).uint(1, 64).uint(4, 64).uint(50, 128)
    pool = scene.external(OWNER).send(POOL, body.int(-600, 24).int(600, 24))
    burn = pool.send(POSITION, opcode=tonco.POSITION_BURN).send(POOL, opcode=tonco.BURN)
    paying = pay(burn, (60, 6), (ROUTERS[0], ROUTERS[1]), code=201)
    for side, amount in ((0, 60), (1, 6)):
        paying.send_jettons(ROUTERS[side], OWNER, WALLETS[side], amount)
    action = scene.find("dex_withdraw_liquidity")
    assert action.success
    assert (action.columns["source"], action.columns["destination"]) == (OWNER, POOL)
    data = action.columns["dex_withdraw_liquidity_data"]
    assert (data["amount1"], data["amount2"], data["lp_tokens_burnt"]) == (60, 6, 50)
    assert (data["asset1_out"], data["asset2_out"]) == COINS[:2]
    assert (data["user_jetton_wallet_1"], data["user_jetton_wallet_2"]) == WALLETS[:2]
    assert (data["dex_jetton_wallet_1"], data["dex_jetton_wallet_2"]) == ROUTERS[:2]
    assert (data["burned_nft_index"], data["burned_nft_address"]) == (4, POSITION)
    assert (data["tick_lower"], data["tick_upper"]) == (-600, 600)
