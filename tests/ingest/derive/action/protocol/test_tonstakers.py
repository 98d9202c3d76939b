"""Tonstakers rules on built traces: what recordings lack."""

from __future__ import annotations

from tests.ingest.derive.action.scene import Cell, Scene, account
from tonlake.ingest.derive.action.protocol import jetton, tonstakers

OWNER, POOL, MASTER, WALLET = (account(name) for name in ("owner", "pool", "tsTON", "wallet"))
ITEM, PAYOUTS = account("item"), account("payouts")


def test_deposit_without_jettons_failed() -> None:
    scene = Scene()
    scene.external(OWNER).send(POOL, Cell(tonstakers.DEPOSIT).uint(1, 64), value=3_000_000_000)
    action = scene.find("stake_deposit")
    assert not action.success
    assert action.columns["amount"] == 2_000_000_000
    assert action.columns["asset"] is None


def test_request_names_the_item_of_the_payout() -> None:
    scene = Scene()
    scene.know_wallet(WALLET, OWNER, MASTER)
    burn = Cell(jetton.BURN).uint(1, 64).coins(500)
    told = scene.external(OWNER).send(WALLET, burn).send(MASTER, opcode=jetton.BURN_NOTIFICATION)
    asked = told.send(POOL, opcode=tonstakers.WITHDRAW_REQUEST)
    asked.send(PAYOUTS, opcode=tonstakers.MINT_JETTONS).send(ITEM, opcode=0x12345678).deploy()
    action = scene.find("stake_withdrawal_request")
    assert action.columns == {
        "source": OWNER,
        "source_secondary": WALLET,
        "destination": POOL,
        "asset": MASTER,
        "amount": 500,
        "staking_data": {"provider": "liquid_staking", "ts_nft": ITEM},
    }


def test_payout_at_the_end_of_a_round() -> None:
    scene = Scene()
    burnt = scene.external(PAYOUTS).send(ITEM, opcode=tonstakers.NFT_BURN)
    told = burnt.send(PAYOUTS, opcode=tonstakers.NFT_BURNT)
    told.send(OWNER, opcode=tonstakers.NFT_PAYOUT, value=700)
    action = scene.find("stake_withdrawal")
    assert (action.columns["source"], action.columns["amount"]) == (OWNER, 700)
    assert action.columns["staking_data"]["ts_nft"] == ITEM
