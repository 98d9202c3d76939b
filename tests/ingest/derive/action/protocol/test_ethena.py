"""Ethena rules on built traces."""

import pytest

from tests.ingest.derive.action.scene import Cell, Scene, account
from tonlake.ingest.derive.action.protocol import ethena, jetton

OWNER, POOL = account("owner"), account("pool")
WALLET, POOL_WALLET, STAKED = account("wallet"), account("pool wallet"), account("staked wallet")


def test_deposit_joins_transfer_and_mint(scene: Scene) -> None:
    scene.know_wallet(WALLET, OWNER, ethena.USDE)
    scene.know_wallet(STAKED, OWNER, ethena.TSUSDE)
    taken = scene.external(OWNER).send_jettons(WALLET, POOL, POOL_WALLET, 300)
    notified = taken.send(POOL, opcode=jetton.NOTIFY)
    mint = Cell(jetton.MINT).uint(1, 64).address(OWNER).coins(5)
    minted = Cell(jetton.INTERNAL).uint(1, 64).coins(290)
    notified.send(ethena.TSUSDE, mint).send(STAKED, minted)
    action = scene.find("stake_deposit")
    assert action.columns == {
        "source": OWNER,
        "source_secondary": WALLET,
        "destination": POOL,
        "amount": 300,
        "asset": ethena.TSUSDE,
        "asset2": ethena.USDE,
        "staking_data": {"provider": "ethena", "tokens_minted": 290},
    }


@pytest.mark.parametrize("is_granted", [True, False])
def test_withdrawal_is_a_request_once_it_is_granted(scene: Scene, *, is_granted: bool) -> None:
    scene.know_wallet(WALLET, OWNER, ethena.TSUSDE)
    body = Cell(jetton.TRANSFER).uint(1, 64).coins(300).address(POOL).address(OWNER)
    body.uint(0, 1).coins(1).uint(0, 1)
    inner = Cell(jetton.INTERNAL).uint(1, 64).coins(300)
    asked = scene.external(OWNER).send(WALLET, body).send(ethena.TSUSDE, inner)
    minted = asked.send(POOL, opcode=jetton.NOTIFY).send(ethena.TSUSDE, opcode=jetton.MINT)
    if not is_granted:
        assert {action.type for action in scene.classify()} <= {"call_contract", "jetton_mint"}
        return
    minted.send(WALLET, Cell(ethena.RELEASE).uint(1, 64).coins(310))
    columns = scene.find("stake_withdrawal_request").columns
    assert (columns["amount"], columns["destination"]) == (300, POOL)
    assert columns["staking_data"]["tokens_minted"] == 310
