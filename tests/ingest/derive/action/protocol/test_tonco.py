"""TONCO rules on built traces: swaps of one and several hops, refusals, creation of pools."""

import pytest

from tests.ingest.derive.action.scene import Cell, Scene, Step, account
from tonlake.ingest.derive.action.pattern import EXCESS_OPCODE
from tonlake.ingest.derive.action.protocol import jetton, nft, tonco

OWNER, ROUTER = account("owner"), account("router")
POOL, NEXT_POOL = account("pool"), account("next pool")
COINS = tuple(account(f"coin {n}") for n in range(3))
ROUTERS = tuple(account(f"router wallet {n}") for n in range(3))
WALLETS = tuple(account(f"wallet {n}") for n in range(3))
REFUSED = 84


def know_wallets(scene: Scene) -> None:
    """Declare the jettons of the wallets of the router and of the owner."""
    for coin, router, wallet in zip(COINS, ROUTERS, WALLETS, strict=True):
        scene.know_wallet(router, ROUTER, coin)
        scene.know_wallet(wallet, OWNER, coin)


def ask(notified: Step, pool: str, wallet: str, min_out: int = 80) -> Step:
    """Order a pool, as the router, to swap a payment through one of its wallets."""
    body = Cell(tonco.SWAP).uint(1, 64).address(OWNER).address(wallet)
    params = body.child().coins(100).uint(0, 160).coins(min_out)
    return notified.send(pool, body.ref(params))


def pay(pool: Step, out: tuple[int, int], wallets: tuple[str, str], code: int = 0) -> Step:
    """Order the router, as a pool, to pay both sides."""
    body = Cell(tonco.PAY_TO).uint(1, 64).address(OWNER).address(OWNER).uint(code, 32).uint(5, 64)
    sides = body.child()
    for amount, wallet in zip(out, wallets, strict=True):
        sides.coins(amount).address(wallet)
    return pool.send(ROUTER, body.uint(1, 1).ref(sides))


def start(scene: Scene) -> Step:
    """Send jettons to the router; return the router."""
    know_wallets(scene)
    taken = scene.external(OWNER).send_jettons(WALLETS[0], ROUTER, ROUTERS[0], 100)
    return taken.send(ROUTER, opcode=jetton.NOTIFY)


@pytest.mark.parametrize(("code", "success"), [(0, True), (200, True), (REFUSED, False)])
def test_swap_by_its_code(scene: Scene, code: int, *, success: bool) -> None:
    paying = pay(ask(start(scene), POOL, ROUTERS[0]), (0, 90), (ROUTERS[0], ROUTERS[1]), code)
    paying.send_jettons(ROUTERS[1], OWNER, WALLETS[1], 90)
    action = scene.find("jetton_swap")
    assert action.success is success
    assert (action.columns["asset"], action.columns["asset2"]) == COINS[:2]
    data = action.columns["jetton_swap_data"]
    assert (data["dex"], data["peer_swaps"]) == ("tonco", [])
    assert data["min_out_amount"] == (90 if success else 80)
    assert data["dex_incoming_transfer"]["amount"] == 100
    assert data["dex_outgoing_transfer"]["destination_jetton_wallet"] == WALLETS[1]


def test_a_swap_that_pays_back_its_input_failed_and_shows_the_requested_asset(scene: Scene) -> None:
    paying = pay(ask(start(scene), POOL, ROUTERS[0]), (100, 0), (ROUTERS[0], ROUTERS[1]))
    paying.send_jettons(ROUTERS[0], OWNER, WALLETS[0], 100)
    action = scene.find("jetton_swap")
    assert not action.success
    assert (action.columns["asset"], action.columns["asset2"]) == COINS[:2]
    assert action.columns["jetton_swap_data"]["dex_outgoing_transfer"]["asset"] == COINS[0]


def test_hops_are_listed_with_input_and_output(scene: Scene) -> None:
    paying = pay(ask(start(scene), POOL, ROUTERS[0]), (0, 90), (ROUTERS[0], ROUTERS[1]))
    back = paying.send_jettons(ROUTERS[1], ROUTER, ROUTERS[1], 90)
    again = ask(back.send(ROUTER, opcode=jetton.NOTIFY), NEXT_POOL, ROUTERS[1])
    last = pay(again, (0, 70), (ROUTERS[1], ROUTERS[2]))
    last.send_jettons(ROUTERS[2], OWNER, WALLETS[2], 70)
    action = scene.find("jetton_swap")
    assert action.success
    assert (action.columns["asset"], action.columns["asset2"]) == (COINS[0], COINS[2])
    assert action.columns["jetton_swap_data"]["peer_swaps"] == [
        {"asset_in": COINS[0], "amount_in": 100, "asset_out": COINS[1], "amount_out": 90},
        {"asset_in": COINS[1], "amount_in": 90, "asset_out": COINS[2], "amount_out": 70},
    ]


def test_coins_are_received_and_paid_through_their_wallet(scene: Scene) -> None:
    know_wallets(scene)
    pton = scene.know_wallet(account("router pton"), ROUTER, min(jetton.PTON_MASTERS))
    body = Cell(jetton.PTON_TRANSFER).uint(1, 64).coins(100).address(OWNER)
    notified = scene.external(OWNER).send(pton, body).send(ROUTER, opcode=jetton.NOTIFY)
    paying = pay(ask(notified, POOL, pton), (0, 90), (pton, ROUTERS[1]))
    paying.send_jettons(ROUTERS[1], OWNER, WALLETS[1], 90)
    action = scene.find("jetton_swap")
    assert action.success
    assert (action.columns["asset"], action.columns["asset2"]) == (None, COINS[1])
    incoming = action.columns["jetton_swap_data"]["dex_incoming_transfer"]
    assert (incoming["amount"], incoming["source"], incoming["destination"]) == (100, OWNER, ROUTER)
    assert incoming["destination_jetton_wallet"] == pton


def test_a_payment_without_amounts_is_not_a_swap(scene: Scene) -> None:
    pool = ask(start(scene), POOL, ROUTERS[0])
    body = Cell(tonco.PAY_TO).uint(1, 64).address(OWNER).address(OWNER).uint(0, 32).uint(5, 64)
    pool.send(ROUTER, body.uint(0, 1)).send_jettons(ROUTERS[1], OWNER, WALLETS[1], 90)
    assert "jetton_swap" not in {action.type for action in scene.classify()}


def make_pool(scene: Scene) -> Step:
    """Request a pool from the router; return the router."""
    body = Cell(tonco.CREATE_POOL).uint(1, 64).address(ROUTERS[0]).address(ROUTERS[1])
    body.int(-60, 24).uint(1 << 96, 160).uint(10, 16).uint(30, 16).uint(25, 16)
    minters = body.child().address(COINS[0]).address(COINS[1])
    return scene.external(OWNER).send(
        ROUTER, body.ref(body.child()).ref(body.child().uint(1, 1)).ref(minters)
    )


def test_a_pool_is_created(scene: Scene) -> None:
    init = Cell(tonco.INIT_POOL).uint(1, 64).uint(0b11, 2).address(OWNER).uint(0, 1).address(None)
    init.uint(0, 1).int(-60, 24).uint(0, 1).uint(0, 160).uint(1, 1).uint(1, 1)
    make_pool(scene).send(POOL, init).send(OWNER, opcode=EXCESS_OPCODE)
    action = scene.find("tonco_deploy_pool")
    assert action.success
    assert action.columns["destination_secondary"] == POOL
    data = action.columns["tonco_deploy_pool_data"]
    assert (data["jetton0_minter"], data["jetton1_minter"]) == COINS[:2]
    assert (data["jetton0_router_wallet"], data["jetton1_router_wallet"]) == ROUTERS[:2]
    assert (data["tick_spacing"], data["initial_price_x96"]) == (-60, 1 << 96)
    assert (data["protocol_fee"], data["lp_fee_base"], data["lp_fee_current"]) == (10, 30, 25)
    assert data["pool_active"] is True


def test_a_pool_that_was_not_initialised_is_a_call(scene: Scene) -> None:
    make_pool(scene)
    assert {action.type for action in scene.classify()} == {"call_contract"}


ACCOUNT, POSITION = account("lp account"), account("position")


def fund(scene: Scene, side: int) -> Step:
    """Pay one side; return the depositor's account with the pool."""
    know_wallets(scene)

    def other_wallet(payload: Cell) -> Cell:
        return payload.uint(tonco.FUND, 32).address(ROUTERS[1 - side])

    taken = scene.external(OWNER).send_jettons(
        WALLETS[side], ROUTER, ROUTERS[side], 100, other_wallet
    )
    notified = taken.send(ROUTER, opcode=jetton.NOTIFY)
    body = Cell(tonco.FUND).uint(1, 64).address(OWNER)
    for number in (0, 1):
        body.coins(100 if number == side else 0)
    body.coins(110).coins(220).uint(55, 128).int(-600, 24).int(600, 24)
    pool = notified.send(POOL, body)
    return pool.send(ACCOUNT, opcode=tonco.ADD_LIQUIDITY)


@pytest.mark.parametrize("side", [0, 1])
def test_one_side_alone(scene: Scene, side: int) -> None:
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
def test_both_sides_make_a_position(scene: Scene, *, made: bool) -> None:
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


def test_a_position_is_burnt_and_both_sides_paid(scene: Scene) -> None:
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
