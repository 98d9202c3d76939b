"""Liquidity of DeDust v2 on built traces, for cases without recordings."""

import pytest

from tests.ingest.derive.action.scene import Cell, Scene, Step, account
from tonlake.ingest.derive.action.protocol import dedust_v2
from tonlake.ingest.derive.action.protocol import dedust_v2 as liquidity

OWNER, POOL, POSITION, COIN = (account(name) for name in ("owner", "pool", "position", "coin"))
POOL_WALLET, WALLET = account("pool wallet"), account("wallet")


def payout(amount: int) -> Cell:
    return Cell(dedust_v2.PAYOUT).uint(1, 64).coins(amount).int(0, 32)


def withdraw(scene: Scene, *, logged: bool, auto_claim: bool = False) -> None:
    """Withdraw liquidity: jettons first, although they are the second side of the pool."""
    scene.know_wallet(POOL_WALLET, POOL, COIN)
    body = Cell(liquidity.WITHDRAW).uint(1, 64).coins(50).coins(1).coins(1).uint(auto_claim, 1)
    took = scene.external(OWNER).send(POOL, body).send(POSITION, opcode=liquidity.TAKE_OUT)
    pool = took.send(POOL, opcode=liquidity.EXIT)
    if logged:
        pool.send(None, Cell(liquidity.WITHDRAW_LOG).coins(49).coins(70).coins(9))
        pool.send_jettons(POOL_WALLET, OWNER, WALLET, 9)
        pool.send(OWNER, payout(70))


def test_withdrawal_pairs_payouts_by_amount(scene: Scene) -> None:
    withdraw(scene, logged=True)
    action = scene.find("dex_withdraw_liquidity")
    data = action.columns["dex_withdraw_liquidity_data"]
    assert action.success
    assert (data["amount1"], data["asset1_out"], data["user_jetton_wallet_1"]) == (70, None, None)
    assert (data["amount2"], data["asset2_out"], data["user_jetton_wallet_2"]) == (9, COIN, WALLET)
    assert (data["lp_tokens_burnt"], data["is_refund"]) == (49, False)


def test_withdrawal_without_its_log_failed(scene: Scene) -> None:
    withdraw(scene, logged=False)
    action = scene.find("dex_withdraw_liquidity")
    data = action.columns["dex_withdraw_liquidity_data"]
    assert (action.success, data["lp_tokens_burnt"], data["is_refund"]) == (False, 50, True)


def test_withdrawal_with_a_claim_is_not_an_action(scene: Scene) -> None:
    withdraw(scene, logged=True, auto_claim=True)
    assert "dex_withdraw_liquidity" not in {action.type for action in scene.classify()}


@pytest.mark.parametrize("amounts", [(70, 9), (9, 70)])
def test_fees_go_to_the_side_of_their_amount(scene: Scene, amounts: tuple[int, int]) -> None:
    scene.know_wallet(POOL_WALLET, POOL, COIN)
    asked = scene.external(OWNER).send(POOL, opcode=liquidity.CLAIM_FEES)
    position = asked.send(POSITION, opcode=liquidity.ASK_FEES)
    order = Cell(liquidity.PAY_FEES).uint(1, 64).coins(amounts[0]).coins(amounts[1]).address(OWNER)
    pool = position.send(POOL, order)
    pool.send_jettons(POOL_WALLET, OWNER, WALLET, 9)
    pool.send(OWNER, payout(70))
    action = scene.find("dedust_v2_claim_fees")
    data = action.columns["dex_withdraw_liquidity_data"]
    assert (data["amount1"], data["amount2"]) == amounts
    assert data[f"asset{amounts.index(9) + 1}_out"] == COIN
    assert data[f"dex_wallet_{amounts.index(70) + 1}"] == POOL
    assert action.columns["destination_secondary"] == POSITION


def test_reward_has_one_side(scene: Scene) -> None:
    scene.know_wallet(POOL_WALLET, POOL, COIN)
    asked = scene.external(OWNER).send(POOL, opcode=liquidity.CLAIM_REWARD)
    position = asked.send(POSITION, opcode=liquidity.ASK_REWARD)
    order = Cell(liquidity.PAY_REWARD).uint(1, 64).coins(9).uint(1, 2).address(OWNER)
    position.send(POOL, order).send_jettons(POOL_WALLET, OWNER, WALLET, 9)
    data = scene.find("dedust_v2_claim_reward").columns["dex_withdraw_liquidity_data"]
    assert (data["amount1"], data["asset1_out"], data["amount2"]) == (9, COIN, None)


CONTRACT = account("contract")


def write_order(payload: Cell, opcode: int = liquidity.DEPOSIT) -> Cell:
    """Write the order of 9 jettons (X) and 70 coins (Y)."""
    return payload.uint(opcode, 32).coins(9).coins(70).coins(1)


def pay_jettons(payload: Cell) -> Cell:
    """Write the forward payload of jettons sent to a pool."""
    payload.uint(dedust_v2.PAY_JETTON, 32)
    return payload.ref(write_order(payload.child())).ref(payload.child())


def credit(amount: int, *, is_x: bool) -> Cell:
    """Return a pool's credit to the deposit contract."""
    return Cell(liquidity.CREDIT).uint(1, 64).uint(is_x, 1).coins(amount)


def pay_coins(wallet: Step, opcode: int = liquidity.DEPOSIT) -> Step:
    """Pay the coins; return the deposit contract's step."""
    body = Cell(dedust_v2.PAY_NATIVE).uint(1, 64).coins(70)
    body.ref(write_order(body.child(), opcode)).ref(body.child())
    return wallet.send(POOL, body).send(CONTRACT, credit(70, is_x=False))


def join(wallet: Step) -> Step:
    """Pay the jettons and join both sides; return the pool's step."""
    wallet.scene.know_wallet(WALLET, OWNER, COIN)
    taken = wallet.send_jettons(WALLET, POOL, POOL_WALLET, 9, pay_jettons)
    pool = taken.send(POOL, opcode=0x7362D09C)
    contract = pool.send(CONTRACT, credit(9, is_x=True))
    body = Cell(liquidity.JOIN).uint(1, 64)
    return contract.send(POOL, body.ref(body.child()).coins(9).coins(70).address(OWNER))


def test_both_sides_are_one_deposit(scene: Scene) -> None:
    wallet = scene.external(OWNER)
    pay_coins(wallet)
    join(wallet).send(None, Cell(liquidity.DEPOSIT_LOG).coins(8).coins(69).coins(20))
    action = scene.find("dex_deposit_liquidity")
    data = action.columns["dex_deposit_liquidity_data"]
    assert action.success
    assert (data["asset1"], data["amount1"], data["target_amount_1"]) == (COIN, 8, 9)
    assert (data["asset2"], data["amount2"], data["target_amount_2"]) == (None, 69, 70)
    assert (data["lp_tokens_minted"], data["user_jetton_wallet_1"]) == (20, WALLET)
    assert action.columns["destination"] == POOL
    assert action.columns["destination_secondary"] == CONTRACT


def test_deposit_that_is_paid_back_failed(scene: Scene) -> None:
    pool = join(scene.external(OWNER))
    pool.send(OWNER, Cell(dedust_v2.PAYOUT).uint(1, 64).coins(70).int(30, 32))
    pool.send_jettons(POOL_WALLET, OWNER, WALLET, 9)
    action = scene.find("dex_deposit_liquidity")
    data = action.columns["dex_deposit_liquidity_data"]
    assert not action.success
    assert (data["amount1"], data["amount2"], data["lp_tokens_minted"]) == (9, 70, None)
    assert data["vault_excesses"] == [{"asset": COIN, "amount": 9}, {"asset": None, "amount": 70}]


def test_first_side_alone_is_partial(scene: Scene) -> None:
    pay_coins(scene.external(OWNER))
    action = scene.find("dex_deposit_liquidity")
    data = action.columns["dex_deposit_liquidity_data"]
    assert action.success
    assert (data["amount1"], data["amount2"], data["target_amount_2"]) == (None, 70, 70)
    assert action.columns["source"] == OWNER


def test_more_sides_than_two_stay_apart(scene: Scene) -> None:
    wallet = scene.external(OWNER)
    pay_coins(wallet)
    pay_coins(wallet)
    join(wallet).send(None, Cell(liquidity.DEPOSIT_LOG).coins(8).coins(69).coins(20))
    found = [each for each in scene.classify() if each.type == "dex_deposit_liquidity"]
    assert len(found) == 3


def test_another_order_is_not_a_deposit(scene: Scene) -> None:
    pay_coins(scene.external(OWNER), opcode=7)
    assert "dex_deposit_liquidity" not in {action.type for action in scene.classify()}
