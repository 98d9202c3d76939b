"""EVAA rules on built traces: liquidations, and payouts of jettons."""

from collections.abc import Callable

import pytest

from tests.ingest.derive.action.scene import Cell, Scene, Step, account
from tonlake.ingest.derive.action.protocol import evaa

LIQUIDATOR, BORROWER, MASTER, USER = (
    account(name) for name in ("liquidator", "borrower", "master", "user contract")
)
DEBT_ASSET, COLLATERAL_ASSET = 0xD1, 0xC2


def tell_user(step: Step, opcode: int, body: Callable[[Cell], Cell] = lambda cell: cell) -> Step:
    """Send a message with the header from the master to the user's contract."""
    cell = Cell().coins(6).uint(0, 1).uint(3, 2).uint(opcode, 32).uint(1, 64)
    return step.send(USER, body(cell))


def liquidate(scene: Scene) -> Step:
    """Send a liquidator's request with coins to the master."""
    body = Cell(evaa.LIQUIDATE).uint(1, 64).address(BORROWER).address(LIQUIDATOR)
    return scene.external(LIQUIDATOR).send(MASTER, body)


def satisfy(step: Step) -> Step:
    """Approve the liquidation from the user's contract."""
    body = Cell(evaa.LIQUIDATE_SATISFIED).uint(1, 64).address(BORROWER).address(LIQUIDATOR)
    inner = body.child().int(1, 64).uint(400, 64).uint(2, 64).int(3, 64)
    inner.uint(COLLATERAL_ASSET, 256).int(4, 64).uint(450, 64)
    return step.send(MASTER, body.uint(DEBT_ASSET, 256).ref(inner))


def test_liquidation(scene: Scene) -> None:
    answered = satisfy(tell_user(liquidate(scene), evaa.LIQUIDATE_USER))
    tell_user(answered, evaa.LIQUIDATE_SUCCESS).send(LIQUIDATOR, Cell(0).text("ok"))
    answered.send(LIQUIDATOR, opcode=evaa.LIQUIDATE_REPORT)
    action = scene.find("evaa_liquidate")
    assert action.success
    assert action.columns == {
        "source": LIQUIDATOR,
        "destination": BORROWER,
        "destination_secondary": USER,
        "amount": 450,
        "evaa_liquidate_data": {
            "fail_reason": None,
            "debt_amount": 400,
            "asset_id": hex(DEBT_ASSET),
        },
    }


def find_refusal(scene: Scene) -> object:
    action = scene.find("evaa_liquidate")
    assert not action.success
    return action.columns["evaa_liquidate_data"]["fail_reason"]


def test_the_master_lacks_coins(scene: Scene) -> None:
    answered = satisfy(tell_user(liquidate(scene), evaa.LIQUIDATE_USER))
    tell_user(answered, evaa.LIQUIDATE_FAIL)
    answered.send(LIQUIDATOR, opcode=evaa.LIQUIDATE_REPORT)
    assert find_refusal(scene) == "master_not_enough_liquidity"


def test_the_user_cannot_be_liquidated(scene: Scene) -> None:
    body = Cell(evaa.LIQUIDATE_UNSATISFIED).uint(1, 64).address(BORROWER).address(LIQUIDATOR)
    inner = body.child().uint(400, 64).uint(COLLATERAL_ASSET, 256).uint(1, 64).coins(0)
    body.uint(DEBT_ASSET, 256).ref(inner.uint(0x30F1, 32))
    notified = tell_user(liquidate(scene), evaa.LIQUIDATE_USER).send(MASTER, body)
    notified.send(LIQUIDATOR, opcode=evaa.LIQUIDATE_FAIL)
    assert find_refusal(scene) == "liquidation_error_0x30f1"


def test_the_master_refuses_at_once(scene: Scene) -> None:
    liquidate(scene).abort().send(LIQUIDATOR, opcode=0xFFFFFFFF)
    assert find_refusal(scene) == "immediate_rejection"


def withdraw(scene: Scene) -> Step:
    """Request a withdrawal of jettons; return the user's contract."""
    body = Cell(evaa.WITHDRAW).uint(1, 64).uint(DEBT_ASSET, 256).uint(9, 64).address(BORROWER)
    return tell_user(scene.external(BORROWER).send(MASTER, body), evaa.WITHDRAW_USER)


@pytest.mark.parametrize(("opcode", "reason"), evaa.REFUSALS.items())
def test_withdrawal_is_rejected(scene: Scene, opcode: int, reason: str) -> None:
    withdraw(scene).send(BORROWER, opcode=opcode)
    action = scene.find("evaa_withdraw")
    assert not action.success
    assert action.columns["amount"] == 9
    assert action.columns["evaa_withdraw_data"]["fail_reason"] == reason


def test_jettons_are_paid_out(scene: Scene) -> None:
    ours, theirs, coin = account("master wallet"), account("their wallet"), account("coin")
    scene.know_wallet(ours, MASTER, coin)
    granted = Cell(evaa.WITHDRAW_COLLATERALIZED).uint(1, 64).address(BORROWER)
    granted.uint(DEBT_ASSET, 256).uint(8, 64)
    answered = withdraw(scene).send(MASTER, granted)
    answered.send_jettons(ours, BORROWER, theirs, 8)
    tell_user(answered, evaa.WITHDRAW_SUCCESS).send(BORROWER)
    action = scene.find("evaa_withdraw")
    assert action.success
    assert action.columns["asset"] == coin
    assert action.columns["amount"] == 8
    data = action.columns["evaa_withdraw_data"]
    assert data["recipient_jetton_wallet"] == theirs
    assert data["master_jetton_wallet"] == ours
