"""DeDust rules on built traces, for cases without recordings."""

import pytest

from tests.ingest.derive.action.scene import Cell, Scene, account
from tonlake.ingest.derive.action.protocol import dedust, jetton

OWNER, POOL, VAULT, COIN_VAULT = (account(n) for n in ("owner", "pool", "vault", "coin vault"))
COIN, VAULT_WALLET, WALLET = account("coin"), account("vault wallet"), account("wallet")


def order(amount: int) -> Cell:
    """Return a pool's payout order."""
    return Cell(dedust.PAYOUT_FROM_POOL).uint(1, 64).coins(amount).address(OWNER)


@pytest.mark.parametrize("logged", [True, False])
def test_swap_of_coins_needs_its_log(*, logged: bool) -> None:
    scene = Scene()
    scene.know_wallet(VAULT_WALLET, COIN_VAULT, COIN)
    sent = scene.external(OWNER).send(VAULT, Cell(dedust.SWAP_NATIVE).uint(1, 64).coins(70))
    pool = sent.send(POOL, opcode=dedust.SWAP)
    if logged:
        log = Cell(dedust.SWAP_LOG).uint(0, 4).uint(1, 4).int(0, 8).uint(5, 256)
        pool.send(None, log.coins(70).coins(9))
    pool.send(COIN_VAULT, order(9)).send_jettons(VAULT_WALLET, OWNER, WALLET, 9)
    action = scene.find("jetton_swap")
    assert action.success is logged
    assert (action.columns["asset"], action.columns["asset2"]) == (None, COIN)
    data = action.columns["jetton_swap_data"]
    assert data["dex_incoming_transfer"]["amount"] == 70
    assert data["dex_outgoing_transfer"]["source_jetton_wallet"] == VAULT_WALLET


def test_withdrawal_pays_coins_and_jettons() -> None:
    scene = Scene()
    scene.know_wallet(VAULT_WALLET, COIN_VAULT, COIN)
    lp_wallet = scene.know_wallet(account("lp wallet"), OWNER, POOL)
    burn = Cell(jetton.BURN).uint(1, 64).coins(50)
    told = scene.external(OWNER).send(lp_wallet, burn).send(POOL, opcode=jetton.BURN_NOTIFICATION)
    told.send(COIN_VAULT, order(9)).send_jettons(VAULT_WALLET, OWNER, WALLET, 9)
    told.send(VAULT, order(70)).send(OWNER, opcode=dedust.PAYOUT, value=71)
    action = scene.find("dex_withdraw_liquidity")
    data = action.columns["dex_withdraw_liquidity_data"]
    assert (data["amount1"], data["asset1_out"]) == (70, None)
    assert (data["amount2"], data["asset2_out"]) == (9, COIN)
    assert data["lp_tokens_burnt"] == 50
    assert (action.columns["destination"], action.columns["asset"]) == (POOL, POOL)


def test_an_asset_of_unknown_kind_is_not_a_swap() -> None:
    scene = Scene()
    sent = scene.external(OWNER).send(VAULT, Cell(dedust.SWAP_NATIVE).uint(1, 64).coins(70))
    pool = sent.send(POOL, opcode=dedust.SWAP)
    pool.send(None, Cell(dedust.SWAP_LOG).uint(9, 4))
    pool.send(VAULT, order(9)).send(OWNER, opcode=dedust.PAYOUT)
    assert "jetton_swap" not in {action.type for action in scene.classify()}
