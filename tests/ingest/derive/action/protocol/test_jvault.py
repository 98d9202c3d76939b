"""JVault rules on built traces: returned stakes, and claims of several jettons."""

import base64

from tests.ingest.derive.action.scene import Cell, Scene, Step, account
from tonlake.ingest.derive.action.protocol import jetton, jvault

OWNER, POOL, STAKE, COIN = (account(name) for name in ("owner", "pool", "stake wallet", "coin"))
WALLET, POOL_WALLET = account("wallet"), account("pool wallet")


def send_jettons(step: Step, wallet: str, to: str, amount: int) -> Step:
    """Send jettons from a wallet of the owner; return the notified account."""
    body = Cell(jetton.TRANSFER).uint(1, 64).coins(amount).address(to).address(OWNER)
    body.uint(0, 1).coins(1).uint(0, 1).uint(0x3A069890, 32).uint(86_400, 32)
    taken_by = account(f"{wallet} to {to}")
    step.scene.know_wallet(taken_by, to, COIN)
    arrived = Cell(jetton.INTERNAL).uint(1, 64).coins(amount).address(OWNER).address(OWNER)
    taken = step.send(wallet, body).send(taken_by, arrived.coins(1))
    return taken.send(to, opcode=jetton.NOTIFY)


def test_a_cancelled_stake_failed(scene: Scene) -> None:
    scene.know_wallet(WALLET, OWNER, COIN)
    scene.know_wallet(POOL_WALLET, POOL, COIN)
    notified = send_jettons(scene.external(OWNER), WALLET, POOL, 50)
    cancelled = notified.send(STAKE, opcode=jvault.RECEIVE_JETTONS).send(
        POOL, opcode=jvault.CANCEL_STAKE
    )
    send_jettons(cancelled, POOL_WALLET, OWNER, 50)
    action = scene.find("jvault_stake")
    assert not action.success
    assert action.columns["jvault_stake_data"] == {
        "period": 86_400,
        "minted_stake_jettons": None,
        "stake_wallet": STAKE,
    }


def know_data(scene: Scene, address: str, data: Cell) -> None:
    scene.know(address, "data_boc", data_boc=base64.b64encode(data.boc()).decode())


def test_unstaking_pays_back(scene: Scene) -> None:
    scene.know_wallet(STAKE, OWNER, account("stake jetton"))
    scene.know_wallet(POOL_WALLET, POOL, COIN)
    body = Cell(jvault.UNSTAKE).uint(1, 64).coins(60).uint(0, 1)
    master = account("stake jetton")
    know_data(scene, STAKE, Cell().address(POOL).address(master))
    know_data(scene, POOL, Cell().uint(0, 33).address(OWNER).address(OWNER).address(POOL_WALLET))
    asked = scene.external(OWNER).send(STAKE, body).send(POOL, opcode=jvault.REQUEST_UPDATE)
    send_jettons(asked, POOL_WALLET, OWNER, 60)
    asked.send(STAKE, opcode=jvault.UPDATE_REWARDS)
    action = scene.find("jvault_unstake")
    assert action.success
    assert action.columns["destination"] == POOL
    assert action.columns["asset"] == COIN
    assert action.columns["asset2"] == account("stake jetton")
    assert action.columns["opcode"] is None
