"""Multisig rules on built traces."""

import pytest

from tests.ingest.derive.action.scene import Cell, Scene, account
from tonlake.ingest.derive.action.protocol import wallet

SIGNER, WALLET, ORDER = account("signer"), account("multisig"), account("order")


def know_order(scene: Scene) -> None:
    """Declare the order, with two signers."""
    scene.know(ORDER, wallet.ORDER, signers=[SIGNER, account("second")])


def create(scene: Scene, *, signed: bool) -> None:
    """Create an order as a signer."""
    body = Cell(wallet.NEW_ORDER).uint(3, 64).uint(12, 256).uint(1, 1).uint(1, 8)
    body.uint(1_700_000_500, 48).ref(body.child().uint(5, 8))
    init = Cell(wallet.INIT_ORDER).uint(3, 64).uint(2, 8)
    init.ref(init.child()).uint(1_700_000_500, 48).ref(init.child().uint(5, 8))
    init.uint(1, 1).uint(1, 8) if signed else init.uint(0, 1)
    scene.external(SIGNER).send(WALLET, body).send(ORDER, init).deploy()


@pytest.mark.parametrize("signed", [False, True])
def test_an_order_is_created(scene: Scene, *, signed: bool) -> None:
    know_order(scene)
    create(scene, signed=signed)
    action = scene.find("multisig_create_order")
    data = action.columns["multisig_create_order_data"]
    assert data.pop("order_boc").startswith("te6cc")
    assert data == {
        "query_id": 3,
        "order_seqno": 12,
        "is_created_by_signer": True,
        "is_signed_by_creator": signed,
        "creator_index": 1,
        "expiration_date": 1_700_000_500,
    }
    assert action.columns["destination_secondary"] == ORDER
    assert account("second") in action.accounts


def test_an_unknown_order_is_a_call(scene: Scene) -> None:
    create(scene, signed=True)
    assert {action.type for action in scene.classify()} == {"call_contract", "contract_deploy"}


@pytest.mark.parametrize("exit_code", [None, 107])
def test_approval_is_accepted_or_rejected(scene: Scene, exit_code: int | None) -> None:
    know_order(scene)
    body = Cell(wallet.APPROVE).uint(3, 64).uint(1, 8)
    asked = scene.external(SIGNER).send(ORDER, body)
    if exit_code is None:
        asked.send(SIGNER, Cell(wallet.APPROVE_ACCEPTED).uint(3, 64))
    else:
        asked.send(SIGNER, Cell(wallet.APPROVE_REJECTED).uint(3, 64).uint(exit_code, 32))
    action = scene.find("multisig_approve")
    assert action.success is (exit_code is None)
    assert action.columns["multisig_approve_data"] == {
        "signer_index": 1,
        "exit_code": exit_code or 0,
    }


def test_approval_by_comment(scene: Scene) -> None:
    know_order(scene)
    asked = scene.external(SIGNER).send(ORDER, Cell(0).text("approve"))
    asked.send(SIGNER, Cell(wallet.APPROVE_ACCEPTED).uint(3, 64))
    data = scene.find("multisig_approve").columns["multisig_approve_data"]
    assert data == {"signer_index": -1, "exit_code": 0}


def test_an_order_is_carried_out(scene: Scene) -> None:
    know_order(scene)
    body = Cell(wallet.EXECUTE).uint(3, 64).uint(12, 256).uint(99, 48).uint(2, 8)
    body.uint(0xAB, 256).ref(body.child().uint(5, 8))
    scene.external(ORDER).send(WALLET, body).send(account("target"))
    action = scene.find("multisig_execute")
    data = action.columns["multisig_execute_data"]
    assert (data["order_seqno"], data["approvals_num"]) == (12, 2)
    assert data["signers_hash"] == "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAKs="
    assert (action.columns["source"], action.columns["destination"]) == (ORDER, WALLET)
