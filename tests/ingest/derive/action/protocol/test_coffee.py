"""Swap.Coffee rules on built traces, for cases without recordings."""

import pytest

from tests.ingest.derive.action.scene import Cell, Scene, account
from tonlake.ingest.derive.action.protocol import coffee, jetton

OWNER, VAULT, POOL, OUT = account("owner"), account("vault"), account("pool"), account("out vault")


@pytest.mark.parametrize("opcode", [coffee.PAYOUT, coffee.NOTIFICATION])
def test_coins_for_coins_failed(scene: Scene, opcode: int) -> None:
    """A pool that pays back the incoming asset did not swap."""
    sent = scene.external(OWNER).send(VAULT, Cell(coffee.SWAP_NATIVE).uint(1, 64).coins(50))
    pool = sent.send(POOL, opcode=coffee.SWAP_INTERNAL)
    event = Cell(coffee.SWAP_EVENT).uint(1, 64).uint(0, 2).coins(50).coins(49)
    pool.send(None, event)
    order = Cell(coffee.PAYOUT_INTERNAL).uint(1, 64).address(OWNER).coins(49)
    pool.send(OUT, order).send(OWNER, opcode=opcode, value=48)
    action = scene.find("jetton_swap")
    assert not action.success
    outgoing = action.columns["jetton_swap_data"]["dex_outgoing_transfer"]
    if opcode == coffee.PAYOUT:
        assert (outgoing["source"], outgoing["amount"]) == (POOL, 49)
    else:
        assert (outgoing["source"], outgoing["amount"]) == (OUT, 48)


def test_held_jettons_and_the_fee(scene: Scene) -> None:
    wallet = scene.know_wallet(account("wallet"), OWNER, account("coin"))
    step = scene.external(OWNER)
    guard, guard_wallet = account("guard"), account("guard wallet")

    def write(payload: Cell) -> Cell:
        return payload.uint(coffee.HOLD_FUNDS, 32).uint(1, 64)

    step.send_jettons(wallet, guard, guard_wallet, 40, write)
    step.send(account("fees"), opcode=coffee.SERVICE_FEE)
    action = scene.find("coffee_mev_protect_hold_funds")
    assert len(action.tx_hashes) == 4
    assert action.columns["destination_secondary"] == guard_wallet
    assert (action.columns["asset"], action.columns["amount"]) == (account("coin"), 40)


def test_failed_swap_names_who_gets_it_back(scene: Scene) -> None:
    body = Cell(coffee.FAILED_SWAP).uint(1, 64).address(OWNER)
    scene.external(VAULT).send(account("guard"), body)
    assert scene.find("coffee_mev_protect_failed_swap").columns == {"destination": OWNER}


def test_deposit_that_the_pool_did_not_take(scene: Scene) -> None:
    depository = account("depository")
    sent = Cell(coffee.DEPOSIT_NATIVE).uint(1, 64).coins(50)
    asked = Cell(coffee.DEPOSITORY_REQUEST).uint(1, 64).coins(50)
    asked.ref(asked.child()).ref(asked.child().uint(0, 2).uint(1, 2).int(0, 8).uint(7, 256))
    made = scene.external(OWNER).send(VAULT, sent).send(account("factory"), asked)
    made.send(depository, opcode=coffee.DEPLOY)
    action = scene.find("dex_deposit_liquidity")
    data = action.columns["dex_deposit_liquidity_data"]
    assert (data["amount1"], data["target_asset_2"]) == (50, f"0:{7:064X}")
    assert action.columns["destination"] is None
    assert action.columns["destination_secondary"] == depository


def test_an_unknown_asset_is_not_a_vault(scene: Scene) -> None:
    body = Cell(coffee.CREATE_VAULT).uint(1, 64).uint(3, 2)
    scene.external(OWNER).send(account("factory"), body).send(VAULT, opcode=coffee.DEPLOY)
    assert {action.type for action in scene.classify()} == {"call_contract"}


def test_internal_transfers_of_others_are_no_lp_tokens(scene: Scene) -> None:
    scene.external(OWNER).send(POOL, opcode=jetton.INTERNAL)
    assert [action.type for action in scene.classify()] == ["call_contract"]
