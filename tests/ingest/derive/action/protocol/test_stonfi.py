"""Ston.fi rules on built traces: refunds, failures, payouts of coins, liquidity."""

import pytest

from tests.ingest.derive.action.scene import Cell, Scene, Step, account
from tonlake.ingest.derive.action.protocol import jetton, stonfi

OWNER, ROUTER, POOL = account("owner"), account("router"), account("pool")
COIN, OTHER = account("coin"), account("other coin")
WALLET, ROUTER_COIN, ROUTER_OTHER, OTHER_WALLET = (
    account(name) for name in ("wallet", "router coin", "router other", "other wallet")
)
REFUND_CODE = 0x5FFE1295


def pay(step: Step, code: int) -> Step:
    """Order the router to pay, as the pool."""
    body = Cell(stonfi.PAY_TO).uint(1, 64).address(OWNER).address(OWNER).address(OWNER)
    return step.send(ROUTER, body.uint(code, 32))


def start(scene: Scene, opcode: int) -> Step:
    """Send jettons to the router; return the pool."""
    scene.know_wallet(WALLET, OWNER, COIN)
    scene.know_wallet(ROUTER_COIN, ROUTER, COIN)
    scene.know_wallet(ROUTER_OTHER, ROUTER, OTHER)
    taken = scene.external(OWNER).send_jettons(WALLET, ROUTER, ROUTER_COIN, 100)
    return taken.send(ROUTER, opcode=jetton.NOTIFY).send(POOL, opcode=opcode)


@pytest.mark.parametrize(
    ("code", "wallet", "success"),
    [
        (stonfi.OK_CODE, ROUTER_OTHER, True),
        (REFUND_CODE, ROUTER_COIN, False),
    ],
)
def test_swap_or_refund(scene: Scene, code: int, wallet: str, *, success: bool) -> None:
    paying = pay(start(scene, stonfi.SWAP), code)
    paying.send_jettons(wallet, OWNER, OTHER_WALLET, 90)
    action = scene.find("jetton_swap")
    assert action.success is success
    data = action.columns["jetton_swap_data"]
    assert (data["dex"], data["peer_swaps"]) == ("stonfi_v2", [])
    assert data["dex_outgoing_transfer"]["source_jetton_wallet"] == wallet
    assert action.columns["asset2"] == (OTHER if success else COIN)


@pytest.mark.parametrize("is_known", [True, False], ids=["known", "unknown"])
def test_swap_in_two_hops_needs_known_paying_wallets(scene: Scene, *, is_known: bool) -> None:
    """Otherwise the trace is broken, and the second hop is a separate swap."""
    second, second_pool = account("second router"), account("second pool")
    to, last = account("wallet of second"), account("last")
    scene.know_wallet(last, second, account("third coin"))
    taken = pay(start(scene, stonfi.SWAP), stonfi.OK_CODE)
    taken = taken.send_jettons(ROUTER_OTHER, second, to, 90).send(second, opcode=jetton.NOTIFY)
    body = Cell(stonfi.PAY_TO).uint(1, 64).address(OWNER).address(OWNER).address(OWNER)
    paid = taken.send(second_pool, opcode=stonfi.SWAP).send(second, body.uint(stonfi.OK_CODE, 32))
    paid.send_jettons(last, OWNER, OTHER_WALLET, 80)
    if not is_known:
        del scene.facts[ROUTER_OTHER]
    data = scene.find("jetton_swap").columns["jetton_swap_data"]
    assert data["dex_outgoing_transfer"]["amount"] == 80
    assert data["dex_incoming_transfer"]["amount"] == (100 if is_known else 90)
    assert scene.state() == ("ok" if is_known else "broken")


def test_coins_are_paid_out_through_their_wallet(scene: Scene) -> None:
    pton = account("router pton")
    scene.know_wallet(pton, ROUTER, min(jetton.PTON_MASTERS))
    paying = pay(start(scene, stonfi.SWAP), stonfi.OK_CODE)
    sent = Cell(jetton.TRANSFER).uint(1, 64).coins(80).address(OWNER).address(OWNER)
    asked = paying.send(pton, sent.uint(0, 1).coins(0).uint(0, 1))
    asked.send(OWNER, Cell(jetton.PTON_TRANSFER).uint(1, 64).coins(80).address(OWNER))
    action = scene.find("jetton_swap")
    assert action.success
    assert action.columns["asset2"] is None
    outgoing = action.columns["jetton_swap_data"]["dex_outgoing_transfer"]
    assert (outgoing["amount"], outgoing["destination"]) == (80, OWNER)


@pytest.mark.parametrize("code", [stonfi.OK_CODE, REFUND_CODE])
def test_first_version_leaves_the_referrer_out(scene: Scene, code: int) -> None:
    swapping = start(scene, stonfi.SWAP_V1)
    for part, amount in ((stonfi.REFERRAL_CODE, 1), (code, 95)):
        body = Cell(stonfi.PAYMENT_V1).uint(1, 64).address(OWNER).uint(part, 32)
        swapping.send(ROUTER, body).send_jettons(ROUTER_OTHER, OWNER, OTHER_WALLET, amount)
    action = scene.find("jetton_swap")
    assert action.success is (code == stonfi.OK_CODE)
    assert action.columns["jetton_swap_data"]["dex_outgoing_transfer"]["amount"] == 95
    assert [each.type for each in scene.classify()].count("jetton_transfer") == 1


@pytest.mark.parametrize(
    ("is_known", "asset"), [(True, OTHER), (False, None)], ids=["known", "unknown"]
)
def test_refund_of_first_version_shows_the_requested_jetton(
    scene: Scene, asset: str | None, *, is_known: bool
) -> None:
    """The outgoing transfer shows the paid jetton; that of an unknown wallet is unknown."""
    scene.know_wallet(WALLET, OWNER, COIN)
    scene.know_wallet(ROUTER_COIN, ROUTER, COIN)
    scene.know_wallet(OTHER_WALLET, OWNER, COIN)
    if is_known:
        scene.know_wallet(ROUTER_OTHER, ROUTER, OTHER)
    taken = scene.external(OWNER).send_jettons(
        WALLET,
        ROUTER,
        ROUTER_COIN,
        100,
        lambda cell: cell.uint(stonfi.SWAP_V1, 32).address(ROUTER_OTHER).coins(50).address(OWNER),
    )
    swapping = taken.send(ROUTER, opcode=jetton.NOTIFY).send(POOL, opcode=stonfi.SWAP_V1)
    body = Cell(stonfi.PAYMENT_V1).uint(1, 64).address(OWNER).uint(REFUND_CODE, 32)
    swapping.send(ROUTER, body).send_jettons(ROUTER_COIN, OWNER, OTHER_WALLET, 100)
    action = scene.find("jetton_swap")
    assert not action.success
    assert action.columns["destination_secondary"] == ROUTER_OTHER
    assert action.columns["asset2"] == asset
    outgoing = action.columns["jetton_swap_data"]["dex_outgoing_transfer"]
    assert (outgoing["asset"], outgoing["source_jetton_wallet"]) == (COIN, ROUTER_COIN)


LP_ACCOUNT = account("lp account")
COINS = account("coin"), account("other coin")
WALLETS = account("wallet"), account("other wallet")
ROUTERS = account("router coin"), account("router other")


def provide(step: Step, side: int, amount: int) -> Step:
    """Pay one side; return the depositor's account with the pool."""
    step.scene.know_wallet(WALLETS[side], OWNER, COINS[side])
    step.scene.know_wallet(ROUTERS[side], ROUTER, COINS[side])
    taken = step.send_jettons(WALLETS[side], ROUTER, ROUTERS[side], amount)
    notified = taken.send(ROUTER, opcode=jetton.NOTIFY)
    return notified.send(POOL, opcode=stonfi.PROVIDE).send(LP_ACCOUNT, opcode=stonfi.ADD_LIQUIDITY)


def test_one_side_alone(scene: Scene) -> None:
    provide(scene.external(OWNER), 0, 100)
    action = scene.find("dex_deposit_liquidity")
    assert action.success
    assert action.columns["destination"] == POOL
    assert action.columns["destination_secondary"] == LP_ACCOUNT
    data = action.columns["dex_deposit_liquidity_data"]
    assert (data["asset1"], data["amount1"], data["asset2"]) == (COINS[0], 100, None)
    assert data["lp_tokens_minted"] is None


@pytest.mark.parametrize("refunded", [False, True])
def test_both_sides_of_one_message_are_one_action(scene: Scene, *, refunded: bool) -> None:
    step = scene.external(OWNER)
    provide(step, 0, 100)
    back = provide(step, 1, 7).send(POOL, opcode=stonfi.CALL_BACK)
    if refunded:
        back.send(LP_ACCOUNT, opcode=stonfi.ADD_LIQUIDITY)
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
    """Pay out both sides from the router."""
    for side, amount in ((0, 60), (1, 6)):
        step.scene.know_wallet(ROUTERS[side], ROUTER, COINS[side])
        step.send_jettons(ROUTERS[side], OWNER, WALLETS[side], amount)


def test_burnt_tokens_pay_both_sides(scene: Scene) -> None:
    lp_wallet = scene.know_wallet(account("lp wallet"), OWNER, POOL)
    burn = Cell(jetton.BURN).uint(1, 64).coins(50)
    notified = (
        scene.external(OWNER).send(lp_wallet, burn).send(POOL, opcode=stonfi.BURN_NOTIFICATION)
    )
    pay_both(notified.send(ROUTER, opcode=stonfi.PAY_TO))
    action = scene.find("dex_withdraw_liquidity")
    data = action.columns["dex_withdraw_liquidity_data"]
    assert (action.columns["source"], action.columns["destination"]) == (OWNER, POOL)
    assert (data["amount1"], data["amount2"], data["lp_tokens_burnt"]) == (60, 6, 50)
    assert (data["asset1_out"], data["asset2_out"]) == COINS
    assert data["is_refund"] is False


def test_the_unused_amount_is_withdrawn(scene: Scene) -> None:
    asked = scene.external(OWNER).send(LP_ACCOUNT, opcode=stonfi.REFUND_ME)
    pay_both(asked.send(POOL, opcode=stonfi.REFUNDED).send(ROUTER, opcode=stonfi.PAY_TO))
    action = scene.find("dex_withdraw_liquidity")
    assert action.columns["source"] == OWNER
    assert action.columns["dex_withdraw_liquidity_data"]["is_refund"] is True
