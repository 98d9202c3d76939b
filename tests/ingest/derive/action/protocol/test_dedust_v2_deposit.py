"""Deposits of DeDust v2 on built traces: what recordings lack."""

from __future__ import annotations

from tests.ingest.derive.action.scene import Cell, Scene, Step, account
from tonlake.ingest.derive.action.protocol import dedust_v2
from tonlake.ingest.derive.action.protocol import dedust_v2_deposit as deposit

OWNER, POOL, CONTRACT, COIN = (account(name) for name in ("owner", "pool", "contract", "coin"))
POOL_WALLET, WALLET = account("pool wallet"), account("wallet")


def write_order(payload: Cell, opcode: int = deposit.DEPOSIT) -> Cell:
    """Write the order of 9 jettons (X) and 70 coins (Y)."""
    return payload.uint(opcode, 32).coins(9).coins(70).coins(1)


def pay_jettons(payload: Cell) -> Cell:
    """Write the forward payload of jettons for a pool."""
    payload.uint(dedust_v2.PAY_JETTON, 32)
    return payload.ref(write_order(payload.child())).ref(payload.child())


def credit(amount: int, *, is_x: bool) -> Cell:
    """Return what a pool credits."""
    return Cell(deposit.CREDIT).uint(1, 64).uint(is_x, 1).coins(amount)


def pay_coins(wallet: Step, opcode: int = deposit.DEPOSIT) -> Step:
    """Bring the coins; return the deposit contract's step."""
    body = Cell(dedust_v2.PAY_NATIVE).uint(1, 64).coins(70)
    body.ref(write_order(body.child(), opcode)).ref(body.child())
    return wallet.send(POOL, body).send(CONTRACT, credit(70, is_x=False))


def join(wallet: Step) -> Step:
    """Bring the jettons, and let the contract join both sides; return the pool's step."""
    wallet.scene.know_wallet(WALLET, OWNER, COIN)
    taken = wallet.send_jettons(WALLET, POOL, POOL_WALLET, 9, pay_jettons)
    pool = taken.send(POOL, opcode=0x7362D09C)
    contract = pool.send(CONTRACT, credit(9, is_x=True))
    body = Cell(deposit.JOIN).uint(1, 64)
    return contract.send(POOL, body.ref(body.child()).coins(9).coins(70).address(OWNER))


def test_both_sides_are_one_deposit() -> None:
    scene = Scene()
    wallet = scene.external(OWNER)
    pay_coins(wallet)
    join(wallet).send(None, Cell(deposit.DEPOSIT_LOG).coins(8).coins(69).coins(20))
    action = scene.find("dex_deposit_liquidity")
    data = action.columns["dex_deposit_liquidity_data"]
    assert action.success
    assert (data["asset1"], data["amount1"], data["target_amount_1"]) == (COIN, 8, 9)
    assert (data["asset2"], data["amount2"], data["target_amount_2"]) == (None, 69, 70)
    assert (data["lp_tokens_minted"], data["user_jetton_wallet_1"]) == (20, WALLET)
    assert action.columns["destination"] == POOL
    assert action.columns["destination_secondary"] == CONTRACT


def test_deposit_that_is_paid_back_failed() -> None:
    scene = Scene()
    pool = join(scene.external(OWNER))
    pool.send(OWNER, Cell(dedust_v2.PAYOUT).uint(1, 64).coins(70).int(30, 32))
    pool.send_jettons(POOL_WALLET, OWNER, WALLET, 9)
    action = scene.find("dex_deposit_liquidity")
    data = action.columns["dex_deposit_liquidity_data"]
    assert not action.success
    assert (data["amount1"], data["amount2"], data["lp_tokens_minted"]) == (9, 70, None)
    assert data["vault_excesses"] == [{"asset": COIN, "amount": 9}, {"asset": None, "amount": 70}]


def test_first_side_alone_is_partial() -> None:
    scene = Scene()
    pay_coins(scene.external(OWNER))
    action = scene.find("dex_deposit_liquidity")
    data = action.columns["dex_deposit_liquidity_data"]
    assert action.success
    assert (data["amount1"], data["amount2"], data["target_amount_2"]) == (None, 70, 70)
    assert action.columns["source"] == OWNER


def test_more_sides_than_two_stay_apart() -> None:
    scene = Scene()
    wallet = scene.external(OWNER)
    pay_coins(wallet)
    pay_coins(wallet)
    join(wallet).send(None, Cell(deposit.DEPOSIT_LOG).coins(8).coins(69).coins(20))
    found = [each for each in scene.classify() if each.type == "dex_deposit_liquidity"]
    assert len(found) == 3


def test_another_order_is_no_deposit() -> None:
    scene = Scene()
    pay_coins(scene.external(OWNER), opcode=7)
    assert "dex_deposit_liquidity" not in {action.type for action in scene.classify()}
