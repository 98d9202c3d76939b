"""DeDust rules on built traces, for cases without recordings."""

import pytest

from tests.ingest.derive.action.scene import Cell, Scene, Step, account
from tonlake.ingest.derive.action.protocol import dedust, jetton

OWNER, POOL, VAULT, COIN_VAULT = (account(n) for n in ("owner", "pool", "vault", "coin vault"))
COIN, VAULT_WALLET, WALLET = account("coin"), account("vault wallet"), account("wallet")


def order(amount: int) -> Cell:
    return Cell(dedust.PAYOUT_FROM_POOL).uint(1, 64).coins(amount).address(OWNER)


@pytest.mark.parametrize("logged", [True, False])
def test_swap_of_coins_needs_its_log(scene: Scene, *, logged: bool) -> None:
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


def test_withdrawal_pays_coins_and_jettons(scene: Scene) -> None:
    scene.know_wallet(VAULT_WALLET, COIN_VAULT, COIN)
    lp_wallet = scene.know_wallet(account("lp wallet"), OWNER, POOL)
    burn = Cell(jetton.BURN).uint(1, 64).coins(50)
    burnt = scene.external(OWNER).send(lp_wallet, burn).send(POOL, opcode=jetton.BURN_NOTIFICATION)
    burnt.send(COIN_VAULT, order(9)).send_jettons(VAULT_WALLET, OWNER, WALLET, 9)
    burnt.send(VAULT, order(70)).send(OWNER, opcode=dedust.PAYOUT, value=71)
    action = scene.find("dex_withdraw_liquidity")
    data = action.columns["dex_withdraw_liquidity_data"]
    assert (data["amount1"], data["asset1_out"]) == (70, None)
    assert (data["amount2"], data["asset2_out"]) == (9, COIN)
    assert data["lp_tokens_burnt"] == 50
    assert (action.columns["destination"], action.columns["asset"]) == (POOL, POOL)


def test_an_asset_of_unknown_kind_is_not_a_swap(scene: Scene) -> None:
    sent = scene.external(OWNER).send(VAULT, Cell(dedust.SWAP_NATIVE).uint(1, 64).coins(70))
    pool = sent.send(POOL, opcode=dedust.SWAP)
    pool.send(None, Cell(dedust.SWAP_LOG).uint(9, 4))
    pool.send(VAULT, order(9)).send(OWNER, opcode=dedust.PAYOUT)
    assert "jetton_swap" not in {action.type for action in scene.classify()}


FACTORY, DEPOSIT = account("factory"), account("deposit")


def write_asset(cell: Cell, asset: str | None) -> Cell:
    """Write coins, or a jetton by its master."""
    if asset is None:
        return cell.uint(0, 4)
    workchain, _, digits = asset.partition(":")
    return cell.uint(1, 4).int(int(workchain), 8).uint(int(digits, 16), 256)


def pay_in(received: Step, asset: str | None, amount: int, *, first: bool) -> Step:
    """Continue from a vault that received one side; return the deposit contract's step."""
    asked = Cell(dedust.ASK_FACTORY).uint(1, 64)
    asked.ref(asked.child()).address(OWNER).uint(0, 1)
    write_asset(write_asset(asked, None), COIN).ref(asked.child().coins(110).coins(220))
    factory = received.send(FACTORY, asked)
    if first:
        factory.send(DEPOSIT, opcode=dedust.INSTALL)
    top_up = write_asset(Cell(dedust.TOP_UP).uint(1, 64), asset).coins(amount)
    return factory.send(DEPOSIT, top_up)


def pay_coins(step: Step, *, first: bool) -> Step:
    vault = step.send(COIN_VAULT, opcode=dedust.DEPOSIT_NATIVE)
    return pay_in(vault, None, 100, first=first)


def pay_jettons(step: Step, *, first: bool) -> Step:
    scene = step.scene
    scene.know_wallet(WALLET, OWNER, COIN)
    scene.know_wallet(VAULT_WALLET, VAULT, COIN)
    taken = step.send_jettons(WALLET, VAULT, VAULT_WALLET, 200)
    return pay_in(taken.send(VAULT, opcode=jetton.NOTIFY), COIN, 200, first=first)


def put_all(deposit: Step) -> Step:
    """Send both sides from the deposit contract to the pool; return the pool's step."""
    body = Cell(dedust.DEPOSIT_ALL)
    sides = write_asset(write_asset(body.child(), None).coins(100), COIN).coins(200)
    return deposit.send(POOL, body.ref(body.child()).ref(sides))


@pytest.mark.parametrize("jettons", [False, True])
def test_the_first_side_alone(scene: Scene, *, jettons: bool) -> None:
    (pay_jettons if jettons else pay_coins)(scene.external(OWNER), first=True)
    action = scene.find("dex_deposit_liquidity")
    assert action.success
    assert action.columns["source"] == OWNER
    assert action.columns["destination_secondary"] == DEPOSIT
    data = action.columns["dex_deposit_liquidity_data"]
    paid = (COIN, 200, WALLET) if jettons else (None, 100, None)
    assert (data["asset1"], data["amount1"], data["user_jetton_wallet_1"]) == paid
    assert (data["target_asset_1"], data["target_asset_2"]) == (None, COIN)
    assert (data["target_amount_1"], data["target_amount_2"]) == (110, 220)
    assert data["lp_tokens_minted"] is None


@pytest.mark.parametrize("rejected", [False, True])
def test_both_sides_of_one_trace_are_one_action(scene: Scene, *, rejected: bool) -> None:
    step = scene.external(OWNER)
    pay_coins(step, first=True)
    pool = put_all(pay_jettons(step, first=False))
    if rejected:
        pool.send(DEPOSIT, opcode=dedust.REJECT)
    else:
        pool.send(account("lp wallet"), Cell(jetton.INTERNAL).uint(1, 64).coins(55))
    action = scene.find("dex_deposit_liquidity")
    assert action.success is not rejected
    assert (action.columns["source"], action.columns["destination"]) == (OWNER, POOL)
    data = action.columns["dex_deposit_liquidity_data"]
    assert (data["asset1"], data["amount1"]) == (None, 100)
    assert (data["asset2"], data["amount2"]) == (COIN, 200)
    assert (data["user_jetton_wallet_1"], data["user_jetton_wallet_2"]) == (None, WALLET)
    assert data["lp_tokens_minted"] == (None if rejected else 55)


def test_the_pool_refunds_the_unneeded_amount(scene: Scene) -> None:
    step = scene.external(OWNER)
    pay_coins(step, first=True)
    deposit = pay_jettons(step, first=False)
    pool = put_all(deposit)
    pool.send(account("lp wallet"), Cell(jetton.INTERNAL).uint(1, 64).coins(55))
    done = pool.send(DEPOSIT, opcode=dedust.FULFILL)
    back = done.send(COIN_VAULT, opcode=dedust.PAY_BACK)
    back.send(OWNER, opcode=dedust.PAYOUT, value=9)
    data = scene.find("dex_deposit_liquidity").columns["dex_deposit_liquidity_data"]
    assert data["vault_excesses"] == [{"asset": None, "amount": 9}]
